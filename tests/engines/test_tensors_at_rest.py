"""Many tensors on the processor, of which nobody wants derivatives, are summed as NumPy's arrays are."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

import wellcal as wc
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein

N = 2000
KERNEL = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)


def normals() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    loc, scale = rng.normal(size=N), rng.uniform(0.5, 1.5, N)
    return rng.normal(loc, scale), loc, scale


def tensors(*arrays: np.ndarray) -> tuple[torch.Tensor, ...]:
    return tuple(torch.as_tensor(array) for array in arrays)


def assert_same(found: wc.Estimate, expected: wc.Estimate) -> None:
    assert isinstance(found.value, torch.Tensor)
    assert found.value.dtype == torch.float64
    assert float(found.value) == expected.value
    assert found.standard_error == expected.standard_error
    assert found.kernel == expected.kernel
    assert dict(found.provenance) == {**expected.provenance, "arrays": "read by NumPy"}


@pytest.mark.parametrize(
    "options", [{}, {"estimator": "biased"}, {"estimator": "block"}, {"precision": "mixed"}], ids=repr
)
def test_they_have_the_numbers_and_the_engine_of_numpy(options: dict[str, Any]) -> None:
    y, loc, scale = normals()
    t, m, s = tensors(y, loc, scale)
    found = wc.skce(t, wc.Normal(m, s), **options)
    assert_same(found, wc.skce(y, wc.Normal(loc, scale), **options))
    assert isinstance(wc.kce(t, wc.Normal(m, s)).value, torch.Tensor)


def test_arrays_of_jax_at_hand_are_read_too() -> None:
    y, loc, scale = (array.astype(np.float32) for array in normals())
    w = np.linspace(1.0, 2.0, N).astype(np.float32)
    pred = wc.Normal(jnp.asarray(loc), jnp.asarray(scale))
    expected = wc.skce(
        y.astype(float), wc.Normal(loc.astype(float), scale.astype(float)), weights=w.astype(float)
    )
    for weights in (w, jnp.asarray(w)):
        found = wc.skce(jnp.asarray(y), pred, weights=weights)
        assert isinstance(found.value, jax.Array)
        assert float(found.value) == np.float32(expected.value)
        assert dict(found.provenance) == {**expected.provenance, "arrays": "read by NumPy"}

    def value(m: jax.Array) -> Any:
        return wc.skce(jnp.asarray(y), wc.Normal(m, pred.scale), kernel=KERNEL).value

    traced = jax.jit(value)(pred.loc)
    plain = wc.skce(jnp.asarray(y), pred, kernel=KERNEL)
    assert float(traced) == pytest.approx(float(plain), rel=1e-3)


def test_events_need_no_square() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(N)
    y = rng.random(N) < p
    found = wc.skce(torch.as_tensor(y), wc.Bernoulli(torch.as_tensor(p)))
    assert found.provenance["engine"] == "linear"
    assert_same(found, wc.skce(y, wc.Bernoulli(p)))
    assert found.confidence_interval() == wc.skce(y, wc.Bernoulli(p)).confidence_interval()


def test_weights_of_any_library() -> None:
    y, loc, scale = normals()
    w = np.linspace(1.0, 2.0, N)
    t, m, s, v = tensors(y, loc, scale, w)
    expected = wc.skce(y, wc.Normal(loc, scale), weights=w)
    for weights in (w, v, w.tolist()):
        assert_same(wc.skce(t, wc.Normal(m, s), weights=weights), expected)
    kept = wc.skce(t, wc.Normal(m, s), weights=v.requires_grad_())
    assert "arrays" not in kept.provenance


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # PyTorch's own
def test_where_derivatives_are_wanted_tensors_stay() -> None:
    y, loc, scale = normals()
    t, m, s = tensors(y, loc, scale)
    wanted = m.clone().requires_grad_()
    found = wc.skce(t, wc.Normal(wanted, s), kernel=KERNEL)
    assert "arrays" not in found.provenance
    found.value.backward()
    assert wanted.grad is not None
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(m, torch.ones_like(m))
        forward = forward_ad.unpack_dual(wc.skce(t, wc.Normal(dual, s), kernel=KERNEL).value)
    assert float(forward.tangent) == pytest.approx(float(wanted.grad.sum()), rel=1e-9)
    with torch.no_grad():
        assert "arrays" in wc.skce(t, wc.Normal(wanted, s), kernel=KERNEL).provenance


def test_an_engine_by_name_and_few_cases_leave_tensors_as_they_are() -> None:
    t, m, s = tensors(*normals())
    few = slice(0, 999)
    assert "arrays" not in wc.skce(t[few], wc.Normal(m[few], s[few])).provenance
    said = wc.skce(t, wc.Normal(m, s), engine="tiled", precision="mixed").provenance
    assert "arrays" not in said
    assert said["control_error"] < 0.01


def test_what_users_wrote_for_tensors_gets_tensors() -> None:
    class Shifted(wc.Normal):
        def interquartile_range(self) -> Any:
            assert isinstance(self.loc, torch.Tensor)
            return super().interquartile_range()

    rng = np.random.default_rng(8)
    loc = torch.tensor(rng.normal(size=1100))
    y = torch.tensor(rng.normal(size=1100))
    own = Shifted(loc, torch.ones(1100, dtype=torch.float64))
    expected = wc.skce(y, wc.Normal(loc, torch.ones(1100, dtype=torch.float64))).value
    assert float(wc.skce(y, own).value) == pytest.approx(float(expected), rel=1e-9)
