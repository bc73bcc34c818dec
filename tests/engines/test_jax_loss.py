"""wellcal.jax: the loss and the measures compile, differentiate, and keep their precision."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import wellcal as wc
import wellcal.jax as wj
from wellcal.kernels import Delta, ExpDistance, Gaussian, TotalVariation, Wasserstein
from wellcal.torch import SKCELoss

from .examples import LABELS, LOC, PROBS, SCALE, Y, jax_x64

KERNEL = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)


@pytest.mark.parametrize("options", [{}, {"kernel": KERNEL}, {"estimator": "block", "block_size": 3}])
def test_value_and_gradient_are_those_of_the_torch_loss(options: dict[str, Any]) -> None:
    leaves = [torch.tensor(a, requires_grad=True) for a in (LOC, SCALE)]
    expected = SKCELoss(weight=2.5, **options)(torch.tensor(Y), wc.Normal(*leaves))
    expected.backward()

    def loss(m: Any, s: Any, y: Any) -> Any:
        return wj.skce_loss(y, wc.Normal(m, s), weight=2.5, **options)

    with jax_x64():
        given = [jnp.asarray(a) for a in (LOC, SCALE, Y)]
        value, gradients = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(*given)
        assert float(value) == pytest.approx(float(expected.detach()), rel=1e-10)
        for found, leaf in zip(gradients, leaves, strict=True):
            np.testing.assert_allclose(np.asarray(found), leaf.grad.numpy(), rtol=1e-8, atol=1e-12)


def test_measures_are_compiled_with_predictions_as_arguments() -> None:
    locations = wc.Normal(LOC[:3], SCALE[:3]), Y[:3] + 0.5
    with jax_x64():
        pred, y = wc.Normal(jnp.asarray(LOC), jnp.asarray(SCALE)), jnp.asarray(Y)
        for name, options in (
            ("skce", {"kernel": KERNEL, "estimator": "block", "block_size": 3}),
            ("skce", {"kernel": None}),
            ("kce", {"kernel": KERNEL}),
        ):
            compiled = jax.jit(getattr(wj, name), static_argnames=tuple(options))
            expected = getattr(wc, name)(Y, wc.Normal(LOC, SCALE), **options)
            assert float(compiled(y, pred, **options)) == pytest.approx(float(expected), rel=1e-10)
        at = locations[0].map_arrays(jnp.asarray), jnp.asarray(locations[1])
        compiled = jax.jit(lambda y, p: wj.ucme(y, p, locations=at, kernel=KERNEL))
        expected = wc.ucme(Y, wc.Normal(LOC, SCALE), locations=locations, kernel=KERNEL)
        assert float(compiled(y, pred)) == pytest.approx(float(expected), rel=1e-10)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_half_precision(dtype: Any) -> None:
    """Computed in single precision; gradients come back in the precision of the parameters."""
    m, s, y = (jnp.asarray(a, dtype=dtype) for a in (LOC, SCALE, Y))
    exact = wc.skce(
        *(np.asarray(y, float), wc.Normal(np.asarray(m, float), np.asarray(s, float))), kernel=KERNEL
    )

    def of_pair(m: Any, s: Any, y: Any) -> Any:
        return wj.skce_loss(y, (m, s), kernel=KERNEL)

    def of_batch(m: Any, s: Any, y: Any) -> Any:
        return wj.skce_loss(y, wc.Normal(m, s), kernel=KERNEL)

    loss, gradient = jax.jit(jax.value_and_grad(of_batch))(m, s, y)
    assert loss.dtype == jnp.float32
    assert float(loss) == pytest.approx(float(exact), rel=1e-4)
    assert gradient.dtype == dtype
    assert bool(jnp.isfinite(gradient).all())
    assert jax.eval_shape(of_pair, m, s, y).dtype == jnp.float32
    if dtype == jnp.bfloat16:
        assert float(jax.jit(of_pair)(m, s, y)) == pytest.approx(float(exact), rel=1e-4)


def test_half_precision_probabilities() -> None:
    rough = jnp.asarray(PROBS, dtype=jnp.bfloat16)
    kernel = ExpDistance(TotalVariation(), 0.3) @ Delta()
    wide = np.asarray(rough, float)
    expected = wc.skce(LABELS, wide / wide.sum(axis=1, keepdims=True), kernel=kernel)
    found = jax.jit(lambda y, p: wj.skce_loss(y, p, kernel=kernel))(LABELS, rough)
    assert float(found) == pytest.approx(float(expected), rel=1e-4)


def test_errors() -> None:
    pred = wc.Normal(jnp.zeros(3), jnp.ones(3))
    with pytest.raises(ValueError, match="too certain"):
        wj.skce_loss(jnp.zeros(3), pred, estimator="biased")
    with pytest.raises(TypeError, match="truth first"):
        wj.skce_loss(pred, jnp.zeros(3))


def test_a_model_learns() -> None:
    """A spread that is a third of the right one is found by descent on the loss."""
    key = jax.random.PRNGKey(0)
    mu = jax.random.normal(key, (128,))
    y = mu + jax.random.normal(jax.random.PRNGKey(1), (128,))
    kernel = ExpDistance(Wasserstein()) @ Gaussian(0.5)

    def loss(u: Any) -> Any:
        return wj.skce_loss(y, wc.Normal(mu, jnp.exp(u) * jnp.ones(128)), kernel=kernel)

    step = jax.jit(jax.value_and_grad(loss))
    u = jnp.log(1.0 / 3.0)
    first = float(step(u)[0])
    for _ in range(60):
        value, gradient = step(u)
        u = u - 3.0 * gradient
    assert float(value) < 0.2 * first
    assert float(jnp.exp(u)) == pytest.approx(1.0, abs=0.3)
