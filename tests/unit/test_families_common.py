"""What every family promises: batch behaviour, sampling, and the same numbers in every array library."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import wellcal.predictions as wp
from wellcal._arrays.namespaces import to_numpy

RNG = np.random.default_rng(7)
N, D, S = 6, 3, 9


def positive(*shape: int) -> np.ndarray:
    return np.exp(RNG.normal(0.0, 0.5, shape))


LOC, SCALE, SHAPE, OTHER = RNG.normal(size=N), positive(N), 1.0 + positive(N), 1.0 + positive(N)
LOCS, SCALES = RNG.normal(size=(N, D)), positive(N, D)
FACTOR = RNG.normal(size=(N, D, D))
COV = FACTOR @ FACTOR.transpose(0, 2, 1) + 0.2 * np.eye(D)
PROBS, WEIGHTS = RNG.dirichlet(np.ones(4), N), RNG.dirichlet(np.ones(2), N)
ATOM_WEIGHTS = RNG.dirichlet(np.ones(S), N)
DRAWS, VECTOR_DRAWS = RNG.normal(size=(N, S)), RNG.normal(size=(N, S, D))
POSITIVE_Y, UNIT_Y, COUNT_Y = positive(N), RNG.uniform(size=N), RNG.poisson(2.0, N).astype(float)
SIMPLEX_Y, LABELS_Y = RNG.dirichlet(np.ones(D), N), RNG.integers(0, 4, N)
SUPPORT = [-1.0, 0.5, 2.0, 7.0]


@dataclass
class Example:
    family: Callable[..., Any]
    parameters: tuple[np.ndarray, ...]
    targets: np.ndarray
    differentiable: bool = True

    def build(self, convert: Callable[[np.ndarray], Any] = np.asarray) -> Any:
        return self.family(*(convert(parameter) for parameter in self.parameters))


EXAMPLES: dict[str, Example] = {
    "Bernoulli": Example(wp.Bernoulli, (UNIT_Y,), LABELS_Y % 2),
    "Categorical": Example(wp.Categorical, (PROBS,), LABELS_Y),
    "Categorical support": Example(
        lambda p: wp.Categorical(p, support=SUPPORT), (PROBS,), np.array(SUPPORT)[LABELS_Y]
    ),
    "Normal": Example(wp.Normal, (LOC, SCALE), LOC + 1),
    "DiagonalNormal": Example(wp.DiagonalNormal, (LOCS, SCALES), LOCS + 1),
    "MultivariateNormal": Example(wp.MultivariateNormal, (LOCS, COV), LOCS + 1),
    "Laplace": Example(wp.Laplace, (LOC, SCALE), LOC + 1),
    "Poisson": Example(wp.Poisson, (SCALE,), COUNT_Y),
    "NegativeBinomial": Example(wp.NegativeBinomial, (SCALE, OTHER), COUNT_Y),
    "StudentT": Example(wp.StudentT, (2.0 + SHAPE, LOC, SCALE), LOC + 1),
    "Gamma": Example(wp.Gamma, (SHAPE, SCALE), POSITIVE_Y),
    "LogNormal": Example(wp.LogNormal, (LOC, 0.5 * SCALE), POSITIVE_Y),
    "Beta": Example(wp.Beta, (SHAPE, OTHER), UNIT_Y),
    "Beta with many counts": Example(wp.Beta, (100 * SHAPE, 100 * OTHER), UNIT_Y),
    "Dirichlet": Example(wp.Dirichlet, (SCALES,), SIMPLEX_Y),
    "PowerExponential": Example(wp.PowerExponential, (LOC, SCALE, SHAPE), LOC + 1),
    "PowerExponential of vectors": Example(
        lambda loc, shape, cov: wp.PowerExponential(loc, shape=shape, cov=cov), (LOCS, SHAPE, COV), LOCS + 1
    ),
    "Mixture": Example(
        lambda w, m, s, p, q: wp.Mixture([wp.Normal(m, s), wp.Laplace(p, q)], w),
        (WEIGHTS, LOC, SCALE, LOC[::-1].copy(), OTHER),
        LOC + 1,
    ),
    "Mixture of vectors": Example(
        lambda w, m, s, c: wp.Mixture([wp.DiagonalNormal(m, s), wp.MultivariateNormal(-m, c)], w),
        (WEIGHTS, LOCS, SCALES, COV),
        LOCS + 1,
    ),
    "Mixture of classes": Example(
        lambda w, p, q: wp.Mixture([wp.Categorical(p), wp.Categorical(q)], w),
        (WEIGHTS, PROBS, PROBS[::-1].copy()),
        LABELS_Y,
    ),
    "Samples": Example(wp.Samples, (DRAWS,), LOC),
    "Samples with weights": Example(lambda v, w: wp.Samples(v, w, kind="atoms"), (DRAWS, ATOM_WEIGHTS), LOC),
    "Samples of vectors": Example(wp.Samples, (VECTOR_DRAWS,), LOCS),
    "Quantiles": Example(lambda v: wp.Quantiles([0.1, 0.2, 0.5, 0.8], v), (np.sort(PROBS, axis=1),), UNIT_Y),
}
every_family = pytest.mark.parametrize("example", EXAMPLES.values(), ids=list(EXAMPLES))
with_density = pytest.mark.parametrize(
    "example",
    [e for e in EXAMPLES.values() if hasattr(e.build(), "log_prob")],
    ids=[name for name, e in EXAMPLES.items() if hasattr(e.build(), "log_prob")],
)


def read_only(x: np.ndarray) -> np.ndarray:
    copy = np.array(x)
    copy.flags.writeable = False
    return copy


def x64(x: np.ndarray) -> Any:
    with jax.enable_x64(True):
        return jnp.asarray(x)


LIBRARIES: dict[str, Callable[[np.ndarray], Any]] = {
    "read-only": read_only,
    "torch": torch.as_tensor,
    "strict": array_api_strict.asarray,
    "jax": x64,
}


def describe(pred: Any, y: Any, *, drawing: bool = True) -> dict[str, Any]:
    """Everything a batch can say about itself and about targets; nothing is drawn without `drawing`."""
    said: dict[str, Any] = {"targets": pred.check_targets(y)}
    level = 0.3
    calls: dict[str, Callable[[], Any]] = {
        "mean": lambda: pred.mean(),
        "variance": lambda: pred.variance(),
        "log_prob": lambda: pred.log_prob(y),
        "cdf": lambda: pred.cdf(y),
        "quantile": lambda: pred.quantile(level),
        "upper_quantile": lambda: pred.upper_quantile(level),
        "interquartile_range": lambda: pred.interquartile_range(),
        "class_probs": lambda: pred.class_probs(),
        "bins": lambda: pred.bins(y),
        "sample": lambda: pred.sample(3),
        "samples": lambda: pred.sample(3, size=2),
    }
    for name, call in calls.items():
        if name in ("sample", "samples") and not drawing:
            continue
        try:
            said[name] = call()
        except (TypeError, AttributeError):
            continue
    return said


SCALAR = {"mean", "variance", "log_prob", "cdf", "quantile", "interquartile_range"}
VECTOR = SCALAR - {"cdf", "quantile"}
EXPECTED_METHODS: dict[str, set[str]] = {
    "Bernoulli": SCALAR | {"class_probs"},
    "Categorical": SCALAR | {"class_probs"},
    "Categorical support": SCALAR | {"class_probs"},
    "Poisson": SCALAR,
    "NegativeBinomial": SCALAR,
    "DiagonalNormal": VECTOR,
    "MultivariateNormal": VECTOR,
    "Dirichlet": VECTOR,
    "PowerExponential of vectors": VECTOR,
    "Mixture": SCALAR,
    "Mixture of vectors": VECTOR,
    "Mixture of classes": SCALAR | {"class_probs"},
    "Samples": SCALAR - {"log_prob"},
    "Samples with weights": SCALAR - {"log_prob"},
    "Samples of vectors": VECTOR - {"log_prob"},
    "Quantiles": {"cdf", "quantile", "interquartile_range", "bins"},
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_families_have_the_methods_that_exist(name: str) -> None:
    example = EXAMPLES[name]
    expected = EXPECTED_METHODS.get(name, SCALAR | {"upper_quantile"}) | {"targets", "sample", "samples"}
    assert describe(example.build(), example.targets).keys() == expected


# -- batches ------------------------------------------------------------------------------------------


@every_family
def test_length_representation_and_iteration(example: Example) -> None:
    pred = example.build()
    assert len(pred) == N
    assert repr(pred).startswith(f"<{type(pred).__name__}: {N} predictions")
    assert [len(one) for one in pred] == [1] * N
    assert example.targets.shape == (N, *pred.event_shape)


INDICES: list[Any] = [
    slice(1, 4),
    slice(None, None, -2),
    [4, 0, 0],
    np.array([5, -1]),
    np.array([True, False, True, True, False, False]),
    [True] * N,
    2,
    -1,
    [],
]


def rows_of(index: Any) -> np.ndarray:
    return np.atleast_1d(
        np.arange(N)[np.asarray(index, dtype=int) if isinstance(index, list) and not index else index]
    )


def arrays_of(pred: Any) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    pred.map_arrays(lambda array: found.append(to_numpy(array)))
    return found


@every_family
def test_a_part_of_a_batch_says_what_the_whole_says_of_these_rows(example: Example) -> None:
    whole, expected = example.build(), describe(example.build(), example.targets)
    for index in INDICES[:-1]:
        rows = rows_of(index)
        found = describe(whole[index], example.targets[rows])
        for name in expected.keys() - {"sample", "samples"}:
            assert_allclose(found[name], expected[name][rows], rtol=1e-12, err_msg=name)


@every_family
@pytest.mark.parametrize("library", LIBRARIES)
def test_indexing_takes_rows_of_every_array(example: Example, library: str) -> None:
    with jax.enable_x64(True):
        whole = example.build(LIBRARIES[library])
        for index in INDICES:
            part = whole[index]
            assert type(part) is type(whole)
            assert len(part) == len(rows_of(index))
            for rows, array in zip(arrays_of(part), arrays_of(whole), strict=True):
                assert np.array_equal(rows, array[rows_of(index)])


@pytest.mark.parametrize("library", ["torch", "strict", "jax"])
def test_index_arrays_of_the_library(library: str) -> None:
    convert = LIBRARIES[library]
    with jax.enable_x64(True):
        pred = EXAMPLES["Normal"].build(convert)
        assert np.array_equal(to_numpy(pred[convert(np.array([4, -1]))].loc), LOC[[4, -1]])
        assert np.array_equal(to_numpy(pred[convert(LOC > 0)].loc), LOC[LOC > 0])


@every_family
def test_wrong_indices_are_errors(example: Example) -> None:
    pred = example.build()
    with pytest.raises(IndexError, match=r"^index 6 is outside of a batch of 6 predictions$"):
        pred[6]
    with pytest.raises(IndexError, match=r"^index -7 is outside of a batch of 6 predictions$"):
        pred[-7]
    for far in ([0, -1, 6, 9], np.array([0, -1, 6, 9])):
        with pytest.raises(IndexError, match=r"^index 6, entry 2 of the index, is outside of a batch of 6"):
            pred[far]
    with pytest.raises(ValueError, match="mask and predictions"):
        pred[np.array([True, False])]
    with pytest.raises(IndexError, match="whole numbers or a mask"):
        pred[[0.5, 1.0]]
    with pytest.raises(IndexError, match=r"index of 6 predictions must have one axis, found shape \(2, 2\)"):
        pred[np.zeros((2, 2), dtype=int)]


@every_family
def test_batches_are_frozen(example: Example) -> None:
    pred = example.build()
    with pytest.raises(AttributeError):
        setattr(pred, pred.array_fields[0], None)


# -- sampling -----------------------------------------------------------------------------------------


@every_family
def test_samples_have_the_moments_of_the_prediction(example: Example) -> None:
    pred = example.build()
    size = 20_000
    drawn = np.asarray(pred.sample(11, size), dtype=float)
    assert drawn.shape == (size, N, *pred.event_shape)
    assert pred.sample(11).shape == (N, *pred.event_shape)
    pred.check_targets(pred.sample(12))
    if isinstance(pred, wp.Quantiles):
        frequencies = np.stack([(pred.bins(drawn) == b).mean(0) for b in range(5)], axis=1)
        p = pred.bin_probs()
        assert_allclose(frequencies, np.tile(p, (N, 1)), atol=5 * np.sqrt(0.25 / size))
        return
    if isinstance(pred, wp.Mixture) and pred.shares_labels:
        pred = wp.Categorical(pred.class_probs())
    mean, variance = pred.mean(), pred.variance()
    standard_error = np.sqrt(variance / size)
    assert np.all(np.abs(drawn.mean(0) - mean) < 5 * standard_error)
    squares = (drawn - mean) ** 2
    assert np.all(np.abs(squares.mean(0) - variance) < 5 * squares.std(0) / np.sqrt(size) + 1e-12)


def test_sampling_is_reproducible_and_shares_a_generator() -> None:
    pred = EXAMPLES["Normal"].build()
    assert np.array_equal(pred.sample(5), pred.sample(5))
    rng = np.random.default_rng(5)
    assert not np.array_equal(pred.sample(rng), pred.sample(rng))
    assert pred.sample(0, size=0).shape == (0, N)
    with pytest.raises(ValueError, match="size must be a whole number of at least 0, found -1"):
        pred.sample(0, size=-1)


# -- array libraries ------------------------------------------------------------------------------------


@every_family
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_gives_the_same_numbers(example: Example, library: str) -> None:
    convert = LIBRARIES[library]
    expected = describe(example.build(), example.targets)
    with jax.enable_x64(True):
        found = describe(example.build(convert), convert(example.targets))
    assert found.keys() == expected.keys()
    kind = type(convert(np.ones(1)))
    for name in expected:
        assert isinstance(found[name], kind), name
        assert_allclose(to_numpy(found[name]), expected[name], rtol=1e-10, atol=1e-13, err_msg=name)


@every_family
@pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor, jnp.asarray])
def test_single_precision_stays_single(example: Example, convert: Any) -> None:
    """JAX compiles all of it at once: operation by operation, each would be compiled for this precision."""
    y = example.targets
    expected = describe(example.build(), y)
    for name in ("sample", "samples"):
        expected.pop(name)

    def told(pred: Any, y: Any) -> dict[str, Any]:
        said = describe(pred, y, drawing=False)
        return {name: said[name] for name in expected}

    pred = example.build(lambda x: convert(x.astype(np.float32)))
    targets = convert(y.astype(np.float32) if y.dtype.kind == "f" else y)
    said = (jax.jit(told) if convert is jnp.asarray else told)(pred, targets)
    for name in expected:
        assert "64" not in str(said[name].dtype) or name in ("targets", "bins"), name
        assert_allclose(to_numpy(said[name]), expected[name], rtol=2e-3, atol=1e-4, err_msg=name)


@every_family
def test_numbers_lists_and_numpy_targets_join_the_library(example: Example) -> None:
    pred = example.build(torch.as_tensor)
    expected = example.build().check_targets(example.targets)
    for y in (example.targets, example.targets.tolist()):
        found = pred.check_targets(y)
        assert isinstance(found, torch.Tensor)
        assert np.array_equal(to_numpy(found), expected)


@with_density
def test_log_prob_has_the_right_gradient(example: Example) -> None:
    leaves = [torch.tensor(parameter, requires_grad=True) for parameter in example.parameters]
    y = torch.as_tensor(example.targets)

    def log_prob(*given: torch.Tensor) -> Any:
        # Moves that keep probabilities on the simplex and matrices symmetric.
        rebuilt = iter([onto_domain(g, p) for g, p in zip(given, example.parameters, strict=True)])
        return example.build(lambda _: next(rebuilt)).log_prob(y)

    assert torch.autograd.gradcheck(log_prob, leaves, atol=1e-6, rtol=1e-5)


def onto_domain(given: torch.Tensor, original: np.ndarray) -> torch.Tensor:
    if any(original is p for p in (PROBS, WEIGHTS)) or np.allclose(original.sum(-1), 1.0):
        return given / given.sum(-1, keepdim=True)
    if original.ndim == 3:
        return 0.5 * (given + given.mT)
    return given


@with_density
def test_log_prob_has_the_same_gradient_in_jax(example: Example) -> None:
    tensors = [torch.tensor(parameter, requires_grad=True) for parameter in example.parameters]
    rest = iter(tensors)
    example.build(lambda _: next(rest)).log_prob(torch.as_tensor(example.targets)).sum().backward()
    with jax.enable_x64(True):
        y = jnp.asarray(example.targets)

        def total(*given: Any) -> Any:
            rest = iter(given)
            return example.build(lambda _: next(rest)).log_prob(y).sum()

        arguments = tuple(range(len(tensors)))
        gradients = jax.jit(jax.grad(total, argnums=arguments))(*map(jnp.asarray, example.parameters))
    for tensor, gradient in zip(tensors, gradients, strict=True):
        assert_allclose(to_numpy(gradient), to_numpy(tensor.grad), rtol=1e-8, atol=1e-10)


@every_family
def test_batches_pass_through_jit_and_are_built_inside(example: Example) -> None:
    with jax.enable_x64(True):
        pred, y = example.build(jnp.asarray), jnp.asarray(example.targets)
        expected = describe(pred, y)
        for name in ("sample", "samples"):
            expected.pop(name)

        def told(pred: Any, y: Any) -> dict[str, Any]:
            said = describe(pred, y, drawing=False)
            return {name: said[name] for name in expected}

        def both(pred: Any, y: Any, *parameters: Any) -> tuple[dict[str, Any], ...]:
            rest = iter(parameters)
            return told(pred, y), told(example.build(lambda _: next(rest)), y)

        passed, inside = jax.jit(both)(pred, y, *map(jnp.asarray, example.parameters))
        for name, value in expected.items():
            assert_allclose(passed[name], value, rtol=1e-9, atol=1e-13, err_msg=name)
            assert_allclose(inside[name], value, rtol=1e-9, atol=1e-13, err_msg=name)
        leaves, structure = jax.tree_util.tree_flatten(pred)
        again = jax.tree_util.tree_unflatten(structure, leaves)
        assert type(again) is type(pred)
        assert jax.tree_util.tree_structure(again) == structure


def test_a_family_defined_after_jax_was_seen_is_a_pytree_too() -> None:
    wp.Normal(jnp.zeros(2), 1.0)

    @dataclass(frozen=True, repr=False, eq=False)
    class Point(wp.Predictions):
        at: Any

        array_fields = ("at",)

    leaves, _ = jax.tree_util.tree_flatten(Point(jnp.arange(3.0)))
    assert len(leaves) == 1


def test_libraries_are_not_mixed() -> None:
    with pytest.raises(TypeError, match="different libraries"):
        wp.Normal(torch.zeros(2), jnp.ones(2))
    pred = wp.Normal(np.zeros(2), torch.ones(2, dtype=torch.float64))  # NumPy follows the other
    assert isinstance(pred.loc, torch.Tensor)
    with pytest.raises(TypeError, match="different libraries"):
        wp.Mixture([wp.Normal(torch.zeros(2), 1.0), wp.Normal(jnp.zeros(2), 1.0)])


with_quantiles = pytest.mark.parametrize(
    "example",
    [each for each in EXAMPLES.values() if each.build().supports("quantile")],
    ids=[name for name, each in EXAMPLES.items() if each.build().supports("quantile")],
)


@with_quantiles
def test_numbers_that_are_no_levels_are_refused(example: Example) -> None:
    """By one check for all families, whatever form levels come in; 0 and 1 are levels."""
    pred = example.build()
    told = r"u must be numbers between 0 and 1, found "
    given = {
        "1.5": 1.5,
        "-0.25": [0.5, -0.25],
        "nan": np.array([[0.5], [np.nan]]),
        "2": np.array(2.0),
        "95; levels are shares: 95% is 0.95": 95,
    }
    for found, levels in given.items():
        with pytest.raises(ValueError, match=told + re.escape(found)):
            pred.quantile(levels)
    if pred.supports("upper_quantile"):
        with pytest.raises(ValueError, match=r"q must be numbers between 0 and 1, found 1\.5"):
            pred.upper_quantile(1.5)
    if not isinstance(pred, wp.Quantiles):  # of which nothing is known there
        assert not np.isnan(pred.quantile([0.0, 1.0])).any()


def test_levels_of_a_library_without_lengths() -> None:
    pred = wp.Normal(array_api_strict.asarray(LOC), array_api_strict.asarray(SCALE))
    found = pred.quantile(array_api_strict.asarray([0.1, 0.9]))
    assert_allclose(to_numpy(found), wp.Normal(LOC, SCALE).quantile([0.1, 0.9]))


def test_numbers_keep_the_precision_of_the_parameters() -> None:
    pred = wp.Normal(torch.zeros(2, dtype=torch.float64), [0.1, 0.2])
    assert pred.scale.tolist() == [0.1, 0.2]
    assert pred.check_targets([0.1, 0.2]).tolist() == [0.1, 0.2]
    assert pred.quantile(0.1).tolist() == pytest.approx(
        wp.Normal(np.zeros(2), [0.1, 0.2]).quantile(0.1).tolist()
    )
    single = wp.Normal(np.zeros(2, dtype=np.float32), 0.1)
    assert single.scale.dtype == single.quantile(0.1).dtype == np.float32
