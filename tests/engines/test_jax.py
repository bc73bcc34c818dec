"""JAX: estimates compile, differentiate and vectorise, and no global setting is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal._arrays.chunks import limited
from wellcal.kernels import ExpDistance, Gaussian, Kernel, Laplacian, Wasserstein

from ..processes import run_python
from .examples import EXAMPLES, LOC, SCALE, Y, jax_x64, optimised

KERNEL = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)


@pytest.fixture(autouse=True)
def settings_stay_as_they_are() -> Any:
    before = dict(jax.config.values)
    yield
    assert jax.config.values == before


def arrays() -> tuple[jax.Array, ...]:
    return tuple(jnp.asarray(x) for x in (LOC, SCALE, Y))


# -- compilation ----------------------------------------------------------------------------------------


def test_a_compiled_estimate_with_its_default_kernel() -> None:
    expected = wc.skce(Y, wc.Normal(LOC, SCALE))

    def value(m: Any, s: Any, y: Any) -> Any:
        return wc.skce(y, wc.Normal(m, s)).value

    with jax_x64():
        assert float(optimised(value, *arrays())) == pytest.approx(expected.value, rel=1e-11)
    single = float(jax.jit(value)(*(x.astype(jnp.float32) for x in arrays())))
    assert single == pytest.approx(expected.value, rel=2e-4)


@pytest.mark.parametrize("name", ["Laplace", "Categorical", "MultivariateNormal", "Mixture"])
def test_default_kernels_are_chosen_under_tracing(name: str) -> None:
    example = EXAMPLES[name]
    expected = wc.skce(example.targets, example.build()).value
    compiled = jax.jit(lambda y, *parameters: wc.skce(y, example.family(*parameters)).value)
    with jax_x64():
        found = compiled(jnp.asarray(example.targets), *map(jnp.asarray, example.parameters))
    assert float(found) == pytest.approx(expected, rel=1e-10)


def test_batches_go_in_and_estimates_come_out() -> None:
    """Predictions are pytrees, and so are results."""
    expected = wc.skce(Y, wc.Normal(LOC, SCALE), kernel=KERNEL)
    compiled = jax.jit(lambda pred, y: wc.skce(y, pred, kernel=KERNEL))
    with jax_x64():
        m, s, y = arrays()
        found = compiled(wc.Normal(m, s), y)
        assert isinstance(found, wc.Estimate)
        assert isinstance(found.value, jax.Array)
        assert float(found) == pytest.approx(expected.value, rel=1e-11)
        assert float(found.standard_error) == pytest.approx(expected.standard_error, rel=1e-11)
        assert (found.estimator, found.n_samples, found.kernel) == ("unbiased", len(Y), KERNEL)
        assert repr(found) == repr(expected)
        assert found.confidence_interval().method == "normal"  # what was compiled has no cases any more
        eager = wc.skce(y, wc.Normal(m, s), kernel=KERNEL).confidence_interval()
        assert eager.high == pytest.approx(expected.confidence_interval().high, rel=1e-11)


def test_compiled_once_for_each_shape() -> None:
    traces: list[int] = []

    @jax.jit
    def compiled(pred: Any, y: Any) -> Any:
        traces.append(1)
        return wc.skce(y, pred)

    with jax_x64():
        m, s, y = arrays()
        first = compiled(wc.Normal(m, s), y)
        second = compiled(wc.Normal(m + 1.0, 2.0 * s), y)
        assert len(traces) == 1
        assert float(first) != float(second)
        compiled(wc.Normal(m[:5], s[:5]), y[:5])
        assert len(traces) == 2


def test_programs_do_not_grow_with_the_number_of_cases() -> None:
    """One loop over tiles, however many they are."""
    engine = wc.engines.Tiled(tile=(8, 8))

    def value(m: Any, s: Any, y: Any) -> Any:
        return wc.skce(y, wc.Normal(m, s), kernel=KERNEL, engine=engine).value

    def size(cases: int) -> int:
        given = (jax.ShapeDtypeStruct((cases,), jnp.float32),) * 3
        return len(jax.jit(value).lower(*given).as_text().splitlines())

    assert size(200) <= 1.1 * size(24)


def test_programs_of_blocks_do_not_grow_either() -> None:
    def value(m: Any, s: Any, y: Any) -> Any:
        return wc.skce(y, wc.Normal(m, s), kernel=KERNEL, estimator="block", block_size=2).value

    def size(cases: int) -> int:
        given = (jax.ShapeDtypeStruct((cases,), jnp.float32),) * 3
        return len(jax.jit(value).lower(*given).as_text())

    assert size(3_000_000) <= 1.2 * size(100)


def test_settings_of_jax_are_left_alone() -> None:
    assert not jax.config.jax_enable_x64
    found = wc.skce(jnp.asarray(Y), wc.Normal(jnp.asarray(LOC), jnp.asarray(SCALE)), kernel=KERNEL)
    assert found.value.dtype == jnp.float32
    assert not jax.config.jax_enable_x64


# -- derivatives ------------------------------------------------------------------------------------------


def test_gradients_match_finite_differences() -> None:
    """Those of NumPy, with the default kernel held fixed: for gradients it is a constant."""
    kernel, step = wc.default_kernel(wc.Normal(LOC, SCALE)), 1e-6
    estimators = ("unbiased", "block")

    def values(m: Any, s: Any, y: Any, chosen: Kernel | None) -> list[Any]:
        return [wc.skce(y, wc.Normal(m, s), kernel=chosen, estimator=e).value for e in estimators]

    def slope(parameter: int, case: int) -> np.ndarray:
        def moved(by: float) -> np.ndarray:
            given = [LOC.copy(), SCALE.copy()]
            given[parameter][case] += by
            return np.array(values(*given, Y, kernel))

        return (moved(step) - moved(-step)) / (2 * step)

    with jax_x64():
        compiled = jax.jit(jax.jacrev(lambda *given: jnp.stack(values(*given, None)), argnums=(0, 1)))
        gradients = compiled(*arrays())
    for parameter, case in ((0, 0), (0, 4), (0, 10), (1, 0), (1, 4), (1, 10)):
        found = np.asarray(gradients[parameter])[:, case]
        np.testing.assert_allclose(found, slope(parameter, case), rtol=0, atol=1e-8)


TWICE = np.array([0, 1, 1, 2])


@pytest.mark.parametrize(
    "name",
    ["Categorical", "DiagonalNormal", "MultivariateNormal", "Laplace", "Mixture"],
)
def test_gradients_agree_with_torch_where_predictions_coincide(name: str) -> None:
    """JAX evaluates all branches: each must have a derivative, also where it is not taken."""
    example = EXAMPLES[name]
    y = example.targets[TWICE]
    kernel = wc.default_kernel(example.build(rows=TWICE))
    leaves = [torch.tensor(x, requires_grad=True) for x in example.free(TWICE)]
    wc.skce(y, example.from_free(*leaves), kernel=kernel).value.backward()

    def value(*free: Any) -> Any:
        return wc.skce(jnp.asarray(y), example.from_free(*free), kernel=kernel).value

    with jax_x64():
        free = tuple(jnp.asarray(x) for x in example.free(TWICE))
        found = jax.jit(jax.grad(value, argnums=tuple(range(len(free)))))(*free)
        for gradient, leaf in zip(found, leaves, strict=True):
            np.testing.assert_allclose(np.asarray(gradient), leaf.grad.numpy(), rtol=1e-8, atol=1e-11)


def test_gradients_where_rates_and_locations_coincide() -> None:
    loc, scale, y = np.zeros(3), np.ones(3), np.zeros(3)
    kernel = ExpDistance(Wasserstein()) @ Laplacian()

    def value(m: Any, s: Any) -> Any:
        return wc.skce(jnp.asarray(y), wc.Laplace(m, s), kernel=kernel).value

    tensors = [torch.tensor(x, requires_grad=True) for x in (loc, scale)]
    wc.skce(y, wc.Laplace(*tensors), kernel=kernel).value.backward()
    with jax_x64():
        found = jax.jit(jax.grad(value, argnums=(0, 1)))(jnp.asarray(loc), jnp.asarray(scale))
        for gradient, tensor in zip(found, tensors, strict=True):
            np.testing.assert_allclose(np.asarray(gradient), tensor.grad.numpy(), rtol=1e-10, atol=1e-13)


def test_gradients_of_length_scales() -> None:
    step = 1e-6

    def value(a: Any, b: Any, m: Any = LOC, s: Any = SCALE, y: Any = Y) -> Any:
        return wc.skce(y, wc.Normal(m, s), kernel=ExpDistance(Wasserstein(), a) @ Gaussian(b)).value

    with jax_x64():
        gradient = jax.jit(jax.grad(value, argnums=(0, 1)))(0.8, 0.9, *arrays())
    for k, (a, b) in enumerate(((step, 0.0), (0.0, step))):
        numerical = (value(0.8 + a, 0.9 + b) - value(0.8 - a, 0.9 - b)) / (2 * step)
        assert float(gradient[k]) == pytest.approx(numerical, abs=1e-8)


def test_gradients_through_blocks_beyond_one_chunk() -> None:
    def value(m: Any, s: Any, y: Any) -> Any:
        return wc.skce(y, wc.Normal(m, s), kernel=KERNEL, estimator="block", block_size=3).value

    tensors = [torch.tensor(x, requires_grad=True) for x in (LOC, SCALE)]
    with limited(cache=4), jax_x64():
        wc.skce(Y, wc.Normal(*tensors), kernel=KERNEL, estimator="block", block_size=3).value.backward()
        found = jax.jit(jax.grad(value, argnums=(0, 1)))(*arrays())
        for gradient, tensor in zip(found, tensors, strict=True):
            np.testing.assert_allclose(np.asarray(gradient), tensor.grad.numpy(), rtol=1e-10, atol=1e-14)


# -- many data sets ---------------------------------------------------------------------------------------


def test_many_data_sets_at_once() -> None:
    rng = np.random.default_rng(0)
    m, s = rng.normal(size=(3, 20)), np.exp(rng.normal(0.0, 0.3, (3, 20)))
    y = rng.normal(m, s)
    expected = [wc.skce(y[k], wc.Normal(m[k], s[k])).value for k in range(3)]
    with jax_x64():
        many = jax.jit(jax.vmap(lambda m, s, y: wc.skce(y, wc.Normal(m, s)).value))
        found = many(*map(jnp.asarray, (m, s, y)))
        assert found.shape == (3,)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-10)


@pytest.mark.parametrize("name", ["Poisson", "NegativeBinomial", "Gamma"])
def test_families_that_call_back_for_many_data_sets_in_single_precision(name: str) -> None:
    """Inside jit, under vmap and both; 1 less the tail of a count is 1 in single precision."""
    example = EXAMPLES[name]
    options = {"expectations": wc.Lowering(nodes=32)}
    kernel = wc.default_kernel(example.build(), **options)

    def value(y: Any, *parameters: Any) -> Any:
        return wc.skce(y, example.family(*parameters), kernel=kernel, **options).value

    given = [jnp.asarray(a, dtype=jnp.float32) for a in (example.targets, *example.parameters)]
    there = wc.skce(example.targets, example.build(), kernel=kernel, **options).value
    assert float(jax.jit(value)(*given)) == pytest.approx(there, abs=3e-6)
    many = [jnp.stack([a, a[::-1]]) for a in given]
    np.testing.assert_allclose(np.asarray(jax.vmap(value)(*many)), there, atol=3e-6)
    np.testing.assert_allclose(np.asarray(jax.jit(jax.vmap(value))(*many)), there, atol=3e-6)


# -- a process of its own -----------------------------------------------------------------------------------
# Special functions that JAX lacks are had from NumPy by a callback, which runs on a thread where the setting
# of `jax.enable_x64` does not hold: a process that computes in double precision from its start is needed.

CALLBACKS = ["NegativeBinomial", "StudentT", "Dirichlet"]

SCRIPT = """
import importlib.util, json, sys
import numpy as np, jax, jax.numpy as jnp, wellcal as wc, wellcal.jax as wj

assert jax.config.jax_enable_x64
found = {}
early = wc.Normal(np.zeros(3), np.ones(3))
compiled = jax.jit(wj.skce_loss)(np.ones(3), early)
found["before any array"] = [float(compiled), wc.skce(np.ones(3), early).value, 1.0]

spec = importlib.util.spec_from_file_location("examples", sys.argv[1])
examples = importlib.util.module_from_spec(spec)
sys.modules["examples"] = examples
spec.loader.exec_module(examples)
options = {"expectations": wc.Lowering(nodes=16, points=16)}
for name in sys.argv[2:]:
    example = examples.EXAMPLES[name]
    kernel = wc.default_kernel(example.build(), **options)
    compiled = jax.jit(lambda y, *p: wc.skce(y, example.family(*p), kernel=kernel, **options).value)
    here = compiled(jnp.asarray(example.targets), *map(jnp.asarray, example.parameters))
    there = wc.skce(example.targets, example.build(), kernel=kernel, **options).value
    size = examples.mean_size(example.targets, example.build(), kernel=kernel, **options)
    found[name] = [float(here), there, size]
print(json.dumps(found))
"""


def test_a_process_in_double_precision() -> None:
    """Families that call back compile; predictions of NumPy cross jit before any array of JAX is met."""
    examples = Path(__file__).with_name("examples.py")
    done = run_python("-c", SCRIPT, str(examples), *CALLBACKS, JAX_ENABLE_X64="1")
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found) == {"before any array", *CALLBACKS}
    for name, (here, there, size) in found.items():
        assert abs(here - there) <= 1e-12 * size, name


def test_second_derivatives_by_full_covariances() -> None:
    with jax_x64():
        y, loc = np.array([[0.4, -0.2], [1.0, 0.3], [-0.7, 0.9]]), np.zeros((3, 2))
        cov = jnp.asarray([[[2.0, 0.3], [0.3, 1.0]], [[1.0, 0.2], [0.2, 0.8]], [[0.5, 0.1], [0.1, 2.0]]])
        direction = jnp.asarray(np.random.default_rng(0).normal(size=cov.shape))
        direction = direction + jnp.swapaxes(direction, 1, 2)
        kernel = wc.default_kernel(wc.MultivariateNormal(loc, np.asarray(cov)))

        def slope(matrices: Any, metric: Any = kernel) -> Any:
            return jax.grad(
                lambda c: wc.skce(y, wc.MultivariateNormal(jnp.asarray(loc), c), kernel=metric).value
            )(matrices)

        step = 1e-5
        expected = (slope(cov + step * direction) - slope(cov - step * direction)) / (2.0 * step)
        _, found = jax.jvp(slope, (cov,), (direction,))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(jax.grad(lambda c: jnp.sum(slope(c) * direction))(cov), found, atol=1e-12)
        rotated = wc.kernels.ExpDistance(wc.kernels.Wasserstein()) @ wc.kernels.Gaussian()
        with pytest.raises(NotImplementedError, match="Wasserstein metric are known once only"):
            jax.jvp(lambda c: slope(c, rotated), (cov,), (direction,))


def test_second_derivatives_that_are_not_known_are_errors() -> None:
    y, concentration = (
        np.full((3, 3), 1.0 / 3.0),
        jnp.asarray([[1.0, 2.0, 0.7], [0.6, 1.0, 1.2], [3.0, 1.0, 1.0]]),
    )
    slope = jax.jit(jax.grad(lambda a: wc.skce(y, wc.Dirichlet(a)).value))
    assert np.isfinite(np.asarray(slope(concentration))).all()
    for differentiate in (jax.jacfwd, jax.jacrev):
        with pytest.raises(NotImplementedError, match="concentration of Dirichlet are known once only"):
            differentiate(slope)(concentration)
