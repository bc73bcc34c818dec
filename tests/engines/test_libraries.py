"""One result whatever the array library: NumPy, read-only NumPy, PyTorch, array-api-strict and JAX."""

from __future__ import annotations

from functools import cache
from typing import Any

import array_api_compat as compat
import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal._arrays.namespaces import to_numpy
from wellcal.kernels import (
    Callable,
    Delta,
    Euclidean,
    ExpDistance,
    Gaussian,
    Hellinger,
    Joint,
    Kernel,
    Laplacian,
    Matern,
    MaximumMeanDiscrepancy,
    MixtureWasserstein,
    RationalQuadratic,
    TotalVariation,
    Wasserstein,
)

from .examples import EXAMPLES, LABELS, LIBRARIES, LOC, PROBS, SCALE, Y, jax_x64, mean_size, optimised

ESTIMATORS = ("unbiased", "biased", "block")
EAGER = ("read-only", "torch", "strict")
RELATIVE = 1e-12  # of the mean size of h

SCALARS: dict[str, type] = {
    "read-only": float,
    "torch": torch.Tensor,
    "strict": type(array_api_strict.ones(())),
    "jax": jax.Array,
}


def joint(P: Any, y: Any, Q: Any, z: Any) -> Any:
    """A kernel that does not factor, in any library."""
    xp = compat.array_namespace(P.probs)
    gap = xp.abs(y[:, None] - z[None, :])
    return xp.exp(-0.3 * gap * (1.0 + xp.matmul(P.probs, xp.matrix_transpose(Q.probs))))


def overlap(P: Any, Q: Any) -> Any:
    """A user's kernel on predictions."""
    return P.probs @ compat.array_namespace(Q.probs).matrix_transpose(Q.probs)


KERNELS: dict[str, tuple[str, Kernel]] = {
    "the paper's": ("Normal", ExpDistance(Wasserstein()) @ Gaussian()),
    "sum and multiples": (
        "Normal",
        2.0 * (ExpDistance(Hellinger(), 0.5) @ Gaussian(0.7))
        + ExpDistance(MaximumMeanDiscrepancy(Gaussian()), 0.4) @ (Laplacian(1.3) + 0.5 * Gaussian(2.0)),
    ),
    "product": (
        "DiagonalNormal",
        (ExpDistance(Euclidean(), power=1.5) * ExpDistance(Hellinger())) @ (Gaussian() * Gaussian(3.0)),
    ),
    "radial on parameters": ("Normal", Matern(2.5, 0.8) @ Laplacian(0.9)),
    "Wasserstein between full covariances": (
        "MultivariateNormal",
        ExpDistance(Wasserstein()) @ Gaussian(2.0),
    ),
    "total variation": ("Categorical", ExpDistance(TotalVariation(), 0.3) @ Delta()),
    "Hellinger between classes": ("Mixture of classes", ExpDistance(Hellinger(), 0.3, power=2.0) @ Delta()),
    "MMD on a support": (
        "Categorical with support",
        ExpDistance(MaximumMeanDiscrepancy(Laplacian()), power=2.0) @ Laplacian(2.0),
    ),
    "Laplace and Gaussian": ("Laplace", ExpDistance(Wasserstein()) @ Gaussian(0.7)),
    "normals and Laplacian": ("Mixture", ExpDistance(MaximumMeanDiscrepancy(Laplacian())) @ Laplacian(0.6)),
    "counts and Delta": ("Poisson", ExpDistance(Hellinger()) @ Delta()),
    "draws and Matern": ("Samples", ExpDistance(Wasserstein(order=1)) @ Matern(1.5)),
    "vectors and rational quadratic": (
        "Samples of vectors",
        ExpDistance(MaximumMeanDiscrepancy(RationalQuadratic(1.0, 2.0)), power=2.0) @ RationalQuadratic(),
    ),
    "transport between mixtures": ("Mixture", ExpDistance(MixtureWasserstein()) @ Gaussian()),
    "joint": ("Categorical", Joint(joint)),
    "a user's": ("Categorical", Callable(overlap) @ Delta()),
}


@cache
def reference(name: str, kernel: str | None = None) -> tuple[dict[str, wc.Estimate], float]:
    """Estimates of an example in NumPy, and the mean size of h."""
    example = EXAMPLES[name]
    options: dict[str, Any] = {"kernel": None if kernel is None else KERNELS[kernel][1]}
    options["expectations"] = example.expectations
    pred = example.build()
    found = {e: wc.skce(example.targets, pred, estimator=e, **options) for e in ESTIMATORS}
    found["kce"] = wc.kce(example.targets, pred, **options)
    return found, mean_size(example.targets, pred, **options)


def check(found: dict[str, wc.Estimate], name: str, library: str, kernel: str | None = None) -> None:
    expected, size = reference(name, kernel)
    for estimator, estimate in found.items():
        assert isinstance(estimate.value, SCALARS[library])
        assert np.shape(to_numpy(estimate.value)) == ()
        assert repr(estimate.kernel) == repr(expected[estimator].kernel)
        assert estimate.provenance["precision"] == "float64"
        power = 2 if estimator == "kce" else 1  # a root loses digits near zero
        difference = float(estimate) ** power - expected[estimator].value ** power
        assert abs(difference) <= RELATIVE * size, estimator
        error = expected[estimator].standard_error
        if error is None:
            assert estimate.standard_error is None
        else:
            assert abs(float(estimate.standard_error) - error) <= 1e-10 * max(error, size)


def estimates(y: Any, pred: Any, **options: Any) -> dict[str, wc.Estimate]:
    """The biased estimate is the square of `kce`."""
    found = {e: wc.skce(y, pred, estimator=e, **options) for e in ("unbiased", "block")}
    return {**found, "kce": wc.kce(y, pred, **options)}


# -- eager libraries ----------------------------------------------------------------------------------


@pytest.mark.parametrize("library", EAGER)
@pytest.mark.parametrize("name", EXAMPLES)
def test_default_kernels_agree_with_numpy(name: str, library: str) -> None:
    example, convert = EXAMPLES[name], LIBRARIES[library].convert
    pred, y = example.build(convert), convert(example.targets)
    check(estimates(y, pred, expectations=example.expectations), name, library)


@pytest.mark.parametrize("library", EAGER)
@pytest.mark.parametrize("kernel", KERNELS)
def test_explicit_kernels_agree_with_numpy(kernel: str, library: str) -> None:
    name, chosen = KERNELS[kernel]
    example, convert = EXAMPLES[name], LIBRARIES[library].convert
    pred, y = example.build(convert), convert(example.targets)
    check(estimates(y, pred, kernel=chosen), name, library, kernel)


@pytest.mark.parametrize("library", EAGER)
@pytest.mark.parametrize("name", EXAMPLES)
def test_pairings_agree_with_numpy(name: str, library: str) -> None:
    example, convert = EXAMPLES[name], LIBRARIES[library].convert
    kernel = reference(name)[0]["unbiased"].kernel.targets
    options: dict[str, Any] = {"expectations": example.expectations}
    P, Q = example.build(), example.build(rows=slice(4, None))
    R, S = example.build(convert), example.build(convert, slice(4, None))
    y = example.targets if name == "Quantiles" else example.targets[:5]  # their bins are those of their rows
    for expected, found in (
        (wc.pairing(kernel, P, Q, **options), wc.pairing(kernel, R, S, **options)),
        (wc.pairing(kernel, P, y, **options), wc.pairing(kernel, R, convert(y), **options)),
    ):
        assert type(found) is type(convert(np.ones(1)))
        assert tuple(found.shape) == expected.shape
        np.testing.assert_allclose(to_numpy(found), expected, rtol=0, atol=RELATIVE * np.abs(expected).mean())


def test_read_only_arrays_are_left_alone() -> None:
    arrays = [LIBRARIES["read-only"].convert(x) for x in (Y, LOC, SCALE)]
    wc.skce(arrays[0], wc.Normal(*arrays[1:]))
    for array, original in zip(arrays, (Y, LOC, SCALE), strict=True):
        assert not array.flags.writeable
        assert np.array_equal(array, original)


# -- JAX ----------------------------------------------------------------------------------------------
# Compiled as a whole, which is how JAX is used and much quicker than operation by operation. Families that
# go through a callback are tried in a process of their own, in test_jax.py.

CALLBACKS = {name for name, example in EXAMPLES.items() if example.lowered} | {
    "Poisson",
    "NegativeBinomial",
    "Mixture of counts",
}


# Their parts are tried alone: together they take seconds to compile.
LARGE = {"Mixture of two families", "Mixture of vectors", "Samples of many draws", "Samples as atoms"}


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in CALLBACKS | LARGE])
def test_compiled_estimates_agree_with_numpy(name: str) -> None:
    """The biased estimate has the pairs of the unbiased one, and the diagonal."""
    example = EXAMPLES[name]
    words = example.targets.dtype.kind == "U"
    kernel = reference(name)[0]["unbiased"].kernel

    @jax.jit
    def compiled(y: Any, *parameters: Any) -> Any:
        targets, pred = example.targets if words else y, example.family(*parameters)
        return {e: wc.skce(targets, pred, kernel=kernel, estimator=e) for e in ("biased", "block")}

    with jax_x64():
        y = jnp.zeros(1) if words else jnp.asarray(example.targets)
        check(compiled(y, *map(jnp.asarray, example.parameters)), name, "jax")


@pytest.mark.parametrize(("kernel", "estimator"), [("the paper's", "block"), ("joint", "unbiased")])
def test_kernels_agree_in_jax_step_by_step(kernel: str, estimator: str) -> None:
    name, chosen = KERNELS[kernel]
    example = EXAMPLES[name]
    with jax_x64():
        pred, y = example.build(jnp.asarray), jnp.asarray(example.targets)
        check({estimator: wc.skce(y, pred, kernel=chosen, estimator=estimator)}, name, "jax", kernel)


@pytest.mark.parametrize("name", ["Normal", "Categorical"])
def test_jax_in_single_precision_says_so(name: str) -> None:
    example = EXAMPLES[name]
    expected, size = reference(name)
    kernel, estimators = expected["unbiased"].kernel, ("unbiased", "block")
    compiled = jax.jit(lambda y, p: [wc.skce(y, p, kernel=kernel, estimator=e) for e in estimators])
    pred = example.build(lambda x: jnp.asarray(x, dtype=jnp.float32))
    for estimator, found in zip(estimators, compiled(jnp.asarray(example.targets), pred), strict=True):
        assert found.value.dtype == jnp.float32
        assert found.provenance["precision"] == "float32, compensated sums"
        assert abs(float(found) - expected[estimator].value) <= 1e-5 * size


def test_single_precision_sums_are_compensated() -> None:
    """Tile by tile, errors of single precision must not add up: 500 terms of one sign and size.

    A compiler that takes (a + b) - a for b would undo it.
    """
    n = 400
    labels, probs = jnp.zeros(n, dtype=int), jnp.asarray(np.tile([[0.3, 0.7]], (n, 1)), dtype=jnp.float32)
    kernel = ExpDistance(TotalVariation()) @ Delta()
    engine = wc.engines.Tiled(tile=(8, 8))
    found = optimised(
        lambda y, p: wc.skce(y, wc.Categorical(p), kernel=kernel, engine=engine).value, labels, probs
    )
    assert abs(float(found) - 0.98) <= 2e-7 * 0.98


# -- targets of another library ---------------------------------------------------------------------------


def test_numpy_targets_join_the_predictions() -> None:
    expected = reference("Normal")[0]["unbiased"].value
    for y in (Y, Y.tolist()):
        found = wc.skce(y, EXAMPLES["Normal"].build(torch.as_tensor)).value
        assert isinstance(found, torch.Tensor)
        assert float(found) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "name", ["Normal", "Bernoulli", "Categorical", "Categorical with support", "Poisson"]
)
def test_targets_of_another_library_join_the_predictions(name: str) -> None:
    example = EXAMPLES[name]
    expected = wc.skce(example.targets, example.build()).value
    found = wc.skce(torch.as_tensor(example.targets), example.build()).value
    assert isinstance(found, float)
    assert found == pytest.approx(expected, rel=1e-12)
    tensors = example.build(torch.as_tensor)
    found = wc.skce(array_api_strict.asarray(example.targets), tensors).value
    assert isinstance(found, torch.Tensor)
    assert float(found) == pytest.approx(expected, rel=1e-12)


def test_traced_targets_need_predictions_of_jax() -> None:
    with pytest.raises(TypeError, match="arrays of different libraries"):
        jax.jit(lambda y: wc.skce(y, wc.Normal(LOC, SCALE)).value)(jnp.asarray(Y))


@pytest.mark.parametrize("library", ["read-only", "torch", "strict"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool", "float32", "float64"])
def test_targets_of_any_dtype(library: str, dtype: str) -> None:
    convert = LIBRARIES[library].convert
    binary = LABELS % 2
    p = PROBS[:, 0]
    expected = wc.skce(binary, wc.Bernoulli(p)).value
    found = wc.skce(convert(binary.astype(dtype)), wc.Bernoulli(convert(p)))
    assert float(found) == pytest.approx(expected, rel=1e-12)
    if dtype != "bool":
        expected = wc.skce(LABELS, wc.Categorical(PROBS)).value
        found = wc.skce(convert(LABELS.astype(dtype)), wc.Categorical(convert(PROBS)))
        assert float(found) == pytest.approx(expected, rel=1e-12)
