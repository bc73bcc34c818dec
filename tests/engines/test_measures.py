"""Measures and scores in every array library: one value, derivatives, compilation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal import ece, interval_coverage, local_discrepancy, mce, mmce, pit, smooth_ece
from wellcal._arrays.namespaces import to_numpy
from wellcal.measures.scores import brier, crps, energy_score
from wellcal.measures.scores.casewise import nll

from .examples import LIBRARIES, jax_x64

RNG = np.random.default_rng(60)
N = 12
LOC, SCALE, OTHER = RNG.normal(size=N), RNG.gamma(3.0, 0.4, N), RNG.gamma(3.0, 0.4, N)
P = RNG.random(N)
PROBS = RNG.dirichlet(np.ones(3), N)
HIT, CLASS, COUNT = RNG.integers(0, 2, N), RNG.integers(0, 3, N), RNG.integers(0, 6, N)
Y, POSITIVE, UNIT = RNG.normal(size=N), RNG.gamma(2.0, 1.0, N), RNG.random(N)
DRAWS = RNG.normal(size=(N, 7))
VECTORS, MATRIX = RNG.normal(size=(N, 2)), RNG.normal(size=(N, 2, 2))
COV = MATRIX @ np.swapaxes(MATRIX, 1, 2) + 0.2 * np.eye(2)

Measure = Callable[[Any, Any], Any]
CASES: dict[str, tuple[Measure, Any, tuple[Any, ...], Any]] = {
    "ece": (ece, wc.Bernoulli, (P,), HIT),
    "ece, all classes": (lambda y, p: ece(y, p, n_bins=3, reduce="none"), wc.Categorical, (PROBS,), CLASS),
    "ece, debiased": (lambda y, p: ece(y, p, n_bins=2, estimator="debiased"), wc.Bernoulli, (P,), HIT),
    "ece, classwise": (lambda y, p: ece(y, p, reduce="classwise"), wc.Categorical, (PROBS,), CLASS),
    "ece, counts": (lambda y, p: ece(y, p, distance=2, n_bins=2), wc.Poisson, (SCALE,), COUNT),
    "mce": (lambda y, p: mce(y, p, reduce="confidence"), wc.Categorical, (PROBS,), CLASS),
    "smooth_ece": (smooth_ece, wc.Bernoulli, (P,), HIT),
    "mmce": (mmce, wc.Categorical, (PROBS,), CLASS),
    "brier": (brier, wc.Categorical, (PROBS,), CLASS),
    "brier, counts": (brier, wc.Poisson, (SCALE,), COUNT),
    "crps, Normal": (crps, wc.Normal, (LOC, SCALE), Y),
    "crps, Laplace": (crps, wc.Laplace, (LOC, SCALE), Y),
    "crps, StudentT": (crps, wc.StudentT, (OTHER + 1, LOC, SCALE), Y),
    "crps, Gamma": (crps, wc.Gamma, (OTHER, SCALE), POSITIVE),
    "crps, LogNormal": (crps, wc.LogNormal, (LOC, SCALE), POSITIVE),
    "crps, Beta": (crps, wc.Beta, (OTHER, SCALE), UNIT),
    "crps, PowerExponential": (crps, wc.PowerExponential, (LOC, SCALE, OTHER + 1), Y),
    "crps, Poisson": (crps, wc.Poisson, (SCALE,), COUNT),
    "crps, NegativeBinomial": (crps, wc.NegativeBinomial, (SCALE, OTHER), COUNT),
    "crps, Bernoulli": (crps, wc.Bernoulli, (P,), HIT),
    "crps, Samples": (crps, wc.Samples, (DRAWS,), Y),
    "crps, mixture": (
        crps,
        lambda a, b, c: wc.Mixture([wc.Laplace(a, b), wc.StudentT(c + 2, a, b)], [0.3, 0.7]),
        (LOC, SCALE, OTHER),
        Y,
    ),
    "crps, normals": (
        crps,
        lambda a, b, c: wc.Mixture([wc.Normal(a, b), wc.Normal(a, c)], [0.3, 0.7]),
        (LOC, SCALE, OTHER),
        Y,
    ),
    "crps, counts": (
        crps,
        lambda a, b: wc.Mixture([wc.Poisson(a), wc.NegativeBinomial(b, 0.5)]),
        (SCALE, OTHER),
        COUNT,
    ),
    "energy, diagonal": (energy_score, wc.DiagonalNormal, (VECTORS, np.abs(VECTORS) + 0.1), VECTORS[::-1]),
    "energy, covariances": (energy_score, wc.MultivariateNormal, (VECTORS, COV), VECTORS[::-1]),
}
# One of each kind: compilation takes seconds.
UNDER_JIT = ("ece", "brier", "crps, Normal", "crps, Gamma", "crps, mixture", "energy, diagonal")
ONLY_EAGER = ("ece, all classes", "smooth_ece")


def value_in(name: str, library: str) -> Any:
    measure, family, parameters, y = CASES[name]
    convert, setting = LIBRARIES[library].convert, LIBRARIES[library].setting
    with setting():
        found = measure(convert(np.ascontiguousarray(y)), family(*(convert(a) for a in parameters)))
        return found.value, float(to_numpy(found.value))


@pytest.mark.parametrize(
    ("name", "library"),
    [(name, library) for name in CASES for library in ("torch", "strict", "read-only")]
    + [(name, "jax") for name in ONLY_EAGER],
)
def test_one_value(name: str, library: str) -> None:
    measure, family, parameters, y = CASES[name]
    expected = measure(y, family(*parameters)).value
    assert isinstance(expected, float)
    array, value = value_in(name, library)
    assert value == pytest.approx(expected, rel=1e-10)
    kind = {"torch": torch.Tensor, "jax": jax.Array}.get(library)
    assert kind is None or isinstance(array, kind)


def slopes(name: str) -> list[Any]:
    """Differences in NumPy of the value by each parameter, along a fixed direction."""
    measure, family, parameters, y = CASES[name]
    rng = np.random.default_rng(1)
    out = []
    for k, parameter in enumerate(parameters):
        direction = _tangent(name, parameter, rng)
        h = 2e-5

        def at(step: float, k: int = k, d: Any = direction) -> float:
            moved = [a + step * d if j == k else a for j, a in enumerate(parameters)]
            return float(measure(y, family(*moved)).value)

        out.append((direction, (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)))
    return out


def _tangent(name: str, parameter: Any, rng: np.random.Generator) -> Any:
    direction = rng.normal(size=parameter.shape) * np.abs(parameter)
    if parameter is PROBS:
        direction -= direction.sum(axis=1, keepdims=True) * parameter
    if parameter is COV:
        direction = 0.1 * (direction + np.swapaxes(direction, 1, 2))
    return 0.1 * direction


@pytest.mark.parametrize("name", CASES)
def test_gradients_in_torch(name: str) -> None:
    measure, family, parameters, y = CASES[name]
    tensors = [torch.tensor(a, requires_grad=True) for a in parameters]
    measure(torch.tensor(np.ascontiguousarray(y)), family(*tensors)).value.backward()
    for tensor, (direction, slope) in zip(tensors, slopes(name), strict=True):
        assert tensor.grad is not None
        found = float((tensor.grad * torch.as_tensor(direction)).sum())
        assert found == pytest.approx(slope, rel=2e-6, abs=1e-9)


@pytest.mark.parametrize("name", UNDER_JIT)
def test_gradients_in_jax_under_jit(name: str) -> None:
    measure, family, parameters, y = CASES[name]
    with jax_x64():
        target = jnp.asarray(np.ascontiguousarray(y))

        def value(given: Any) -> Any:
            return measure(target, family(*given)).value

        arrays = tuple(jnp.asarray(a) for a in parameters)
        found, gradients = jax.jit(jax.value_and_grad(value))(arrays)
        assert float(found) == pytest.approx(float(measure(y, family(*parameters)).value), rel=1e-9)
        for gradient, (direction, slope) in zip(gradients, slopes(name), strict=True):
            assert float((gradient * direction).sum()) == pytest.approx(slope, rel=2e-6, abs=1e-9)


def test_smooth_ece_under_jit_with_a_bandwidth() -> None:
    with jax_x64():
        found = jax.jit(lambda p: smooth_ece(HIT, wc.Bernoulli(p), bandwidth=0.1).value)(jnp.asarray(P))
    assert float(found) == pytest.approx(smooth_ece(HIT, P, bandwidth=0.1).value, rel=1e-4)


@pytest.mark.parametrize(
    "measure", [lambda p: ece(CLASS, wc.Categorical(p), reduce="none"), lambda p: smooth_ece(HIT, p[:, 0])]
)
def test_what_cannot_be_traced_says_so(measure: Any) -> None:
    with pytest.raises(TypeError, match=r"inside jax\.jit"):
        jax.jit(lambda p: measure(p).value)(jnp.asarray(PROBS))


def test_bins_from_outside_under_jit() -> None:
    bins = np.arange(N) % 3
    with jax_x64():
        found = jax.jit(lambda p: ece(CLASS, wc.Categorical(p), binning=bins, reduce="none").value)(
            jnp.asarray(PROBS)
        )
    assert float(found) == pytest.approx(ece(CLASS, PROBS, binning=bins, reduce="none").value, rel=1e-12)


@pytest.mark.parametrize("library", ["torch", "strict"])
def test_tables_of_numbers(library: str) -> None:
    convert, setting = LIBRARIES[library].convert, LIBRARIES[library].setting
    with setting():
        normal = wc.Normal(convert(LOC), convert(SCALE))
        counts = wc.Poisson(convert(SCALE))
        transformed = pit(convert(COUNT), counts, rng=3)
        assert isinstance(transformed, type(convert(LOC)))
        covered = interval_coverage(convert(Y), normal)
        local = local_discrepancy(convert(Y), normal).values
    assert to_numpy(transformed) == pytest.approx(pit(COUNT, wc.Poisson(SCALE), rng=3), rel=1e-12)
    assert covered.coverage == pytest.approx(interval_coverage(Y, wc.Normal(LOC, SCALE)).coverage)
    assert to_numpy(local) == pytest.approx(local_discrepancy(Y, wc.Normal(LOC, SCALE)).values, rel=1e-8)


@pytest.mark.parametrize("name", ["ece", "crps, Normal", "crps, Gamma", "energy, diagonal", "smooth_ece"])
def test_single_precision_in_torch(name: str) -> None:
    measure, family, parameters, y = CASES[name]
    given = [torch.tensor(a, dtype=torch.float32) for a in parameters]
    value = measure(torch.tensor(np.ascontiguousarray(y)), family(*given)).value
    assert value.dtype == torch.float64
    assert float(value) == pytest.approx(float(measure(y, family(*parameters)).value), rel=1e-5)


def test_scores_of_cases_under_jit() -> None:
    with jax_x64():
        found = jax.jit(lambda m: nll(jnp.asarray(Y), wc.Normal(m, jnp.asarray(SCALE))))(jnp.asarray(LOC))
    expected = nll(Y, wc.Normal(LOC, SCALE))
    assert float(found.value) == pytest.approx(expected.value, rel=1e-12)
    assert float(found.standard_error) == pytest.approx(expected.standard_error, rel=1e-12)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_values_live_on_the_device(name: str) -> None:
    measure, family, parameters, y = CASES[name]
    given = [torch.as_tensor(a, device="cuda") for a in parameters]
    found = measure(torch.as_tensor(np.ascontiguousarray(y), device="cuda"), family(*given)).value
    assert found.device.type == "cuda"
    assert float(found) == pytest.approx(float(measure(y, family(*parameters)).value), rel=1e-10)
