"""Bad input is an error that names the argument, the first bad row and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import wellcal.predictions as wp

ONES, ROWS = np.ones(3), np.ones((3, 2))
EYES = np.tile(np.eye(2), (3, 1, 1))
HALVES = np.full((3, 2), 0.5)

# Families with their parameters: name -> (good value, values that are not allowed in a row).
SCALARS: list[tuple[Callable[..., Any], dict[str, tuple[float, tuple[float, ...]]]]] = [
    (wp.Bernoulli, {"probs": (0.5, (-0.1, 1.1))}),
    (wp.Normal, {"loc": (0.0, ()), "scale": (1.0, (-1.0,))}),
    (wp.Laplace, {"loc": (0.0, ()), "scale": (1.0, (-1.0, 0.0))}),
    (wp.Poisson, {"rate": (1.0, (-1.0,))}),
    (wp.NegativeBinomial, {"mean": (1.0, (-1.0,)), "dispersion": (1.0, (-1.0, 0.0))}),
    (wp.StudentT, {"df": (3.0, (0.0, -1.0)), "loc": (0.0, ()), "scale": (1.0, (-1.0, 0.0))}),
    (wp.Gamma, {"shape": (3.0, (0.0, -1.0)), "scale": (1.0, (-1.0, 0.0))}),
    (wp.LogNormal, {"mu": (0.0, ()), "sigma": (1.0, (-1.0, 0.0))}),
    (wp.Beta, {"a": (3.0, (0.0, -1.0)), "b": (1.0, (-1.0, 0.0))}),
    (wp.PowerExponential, {"loc": (0.0, ()), "scale": (1.0, (-1.0, 0.0)), "shape": (1.5, (-1.0, 0.0))}),
]
PARAMETERS = [(family, given, name) for family, given in SCALARS for name in given]
each_parameter = pytest.mark.parametrize(
    ("family", "given", "name"), PARAMETERS, ids=[f"{f.__name__}.{n}" for f, _, n in PARAMETERS]
)


def good(given: dict[str, tuple[float, tuple[float, ...]]]) -> dict[str, Any]:
    return {name: np.full(3, value) for name, (value, _) in given.items()}


@each_parameter
def test_the_first_bad_row_is_named(family: Any, given: Any, name: str) -> None:
    for value in (np.nan, np.inf, *given[name][1]):
        arguments = good(given)
        arguments[name][1:] = value
        with pytest.raises(ValueError, match=rf"^{name} .* in row 1: found .*\(2 rows in all\); .+"):
            family(**arguments)


@each_parameter
def test_shapes_are_not_guessed(family: Any, given: Any, name: str) -> None:
    arguments = good(given)
    arguments[name] = arguments[name][:, None]
    with pytest.raises(
        ValueError, match=rf"{name} must be 1-dimensional, found shape \(3, 1\); pass {name}\[:, 0\]"
    ):
        family(**arguments)
    if len(given) > 1:
        with pytest.raises(ValueError, match="must be 1-dimensional, found shape"):
            family(**(arguments | {name: np.array(1.0)}))
    with pytest.raises(TypeError, match="numeric"):
        family(**(arguments | {name: ["a", "b", "c"]}))
    with pytest.raises(TypeError, match="real"):
        family(**(arguments | {name: np.ones(3, dtype=complex)}))
    if len(given) > 1:
        arguments[name] = np.full(2, given[name][0])
        with pytest.raises(ValueError, match=r"must have the same shape, found \([23],\) and \([23],\)"):
            family(**arguments)


@pytest.mark.parametrize(("family", "given"), SCALARS)
def test_empty_batches_are_errors(family: Any, given: Any) -> None:
    with pytest.raises(ValueError, match=f"{family.__name__} is empty: at least one row"):
        family(**{name: np.empty(0) for name in given})


@pytest.mark.parametrize(("family", "given"), [(f, g) for f, g in SCALARS if len(g) > 1])
def test_a_number_stands_for_all_rows(family: Any, given: Any) -> None:
    names = list(given)
    for name in names:
        number = family(**(good(given) | {name: given[name][0]}))
        for field in number.array_fields:
            value = getattr(number, field)
            assert value is None or np.array_equal(value, getattr(family(**good(given)), field))
        with pytest.raises(ValueError, match=f"{name} must be finite"):
            family(**(good(given) | {name: np.nan}))


def test_dispersion_zero_is_poisson() -> None:
    with pytest.raises(ValueError, match=r"a dispersion of zero is Poisson\(mean\)"):
        wp.NegativeBinomial(ONES, 0.0)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        # vectors
        (lambda: wp.DiagonalNormal(ONES, ROWS), ValueError, r"loc must be 2-dimensional"),
        (
            lambda: wp.DiagonalNormal(ROWS, -ROWS),
            ValueError,
            r"scale must not be negative in row 0, column 0",
        ),
        (lambda: wp.DiagonalNormal(ROWS, ONES), ValueError, r"scale must be 2-dimensional"),
        (lambda: wp.DiagonalNormal(ROWS, ROWS[:2]), ValueError, r"found \(3, 2\) and \(2, 2\)"),
        (lambda: wp.DiagonalNormal(np.ones((3, 0)), 1.0), ValueError, r"loc has no columns"),
        (lambda: wp.DiagonalNormal(np.ones((0, 2)), 1.0), ValueError, r"is empty"),
        (lambda: wp.MultivariateNormal(ROWS, [[1.0, 0.0], [0.0]]), ValueError, r"cov is ragged"),
        (lambda: wp.MultivariateNormal(ROWS, ROWS), ValueError, r"\(3, 2, 2\), or \(2, 2\) for all"),
        (
            lambda: wp.MultivariateNormal(ROWS, EYES[:2]),
            ValueError,
            r"cov must have shape \(3, 2, 2\) for loc of shape \(3, 2\), found \(2, 2, 2\)",
        ),
        (lambda: wp.MultivariateNormal(np.ones((0, 2)), np.ones((0, 2, 2))), ValueError, r"is empty"),
        (lambda: wp.Dirichlet(EYES), ValueError, r"concentration must be 2-dimensional"),
        (lambda: wp.Dirichlet(ONES[:, None]), ValueError, r"at least 2 columns"),
        (lambda: wp.Dirichlet(0.0 * ROWS), ValueError, r"concentration must be positive in row 0, column 0"),
        # power exponential
        (lambda: wp.PowerExponential(ONES, ONES), TypeError, r"shape is missing"),
        (lambda: wp.PowerExponential(ONES, shape=ONES), TypeError, r"either scale= .* or cov="),
        (lambda: wp.PowerExponential(ROWS, ROWS, 1.0, EYES), TypeError, r"either scale= .* or cov="),
        (lambda: wp.PowerExponential(ROWS, shape=ONES[:2], cov=EYES), ValueError, r"found 2 and 3"),
        (lambda: wp.PowerExponential(ROWS, shape=ROWS, cov=EYES), ValueError, r"shape must be 1-dimensional"),
        (
            lambda: wp.PowerExponential(ROWS, shape=-ONES, cov=EYES),
            ValueError,
            r"shape must be positive in row 0",
        ),
        (lambda: wp.PowerExponential(ROWS, 1.0, 2.0), ValueError, r"loc must be 1-dimensional"),
        (lambda: wp.PowerExponential(ONES, shape=2.0, cov=EYES), ValueError, r"loc must be 2-dimensional"),
        # classes
        (lambda: wp.Categorical(ONES), ValueError, r"probs must be 2-dimensional"),
        (
            lambda: wp.Categorical(ONES[:, None]),
            ValueError,
            r"at least 2 columns, found shape \(3, 1\); .*Bernoulli",
        ),
        (lambda: wp.Categorical(HALVES[:0]), ValueError, r"is empty"),
        (
            lambda: wp.Categorical(0.99 * HALVES),
            ValueError,
            r"the sum of probs must be one within 1e-06 in row 0: found 0.99",
        ),
        (
            lambda: wp.Categorical([[0.5, 0.5], [1.5, -0.5]]),
            ValueError,
            r"must not be negative in row 1, column 1",
        ),
        (lambda: wp.Categorical([[0.5, 0.5], [np.nan, 0.5]]), ValueError, r"not finite in row 1, column 0"),
        (lambda: wp.Categorical(HALVES, ["a", "b"], [[0, 1], [1, 0]]), ValueError, r"support of vectors"),
        (
            lambda: wp.Categorical(HALVES, ["a"]),
            ValueError,
            r"one label for each of the 2 columns of probs, found 1",
        ),
        (lambda: wp.Categorical(HALVES, ["a", "a"]), ValueError, r"classes must be distinct"),
        (lambda: wp.Categorical(HALVES, "ab"), TypeError, r"the one string 'ab'"),
        (lambda: wp.Categorical(HALVES, ROWS[:2]), ValueError, r"classes must be 1-dimensional"),
        (lambda: wp.Categorical(HALVES, support=[1.0]), ValueError, r"one value for each of the 2 columns"),
        (lambda: wp.Categorical(HALVES, support=[1.0, 1.0]), ValueError, r"support must be distinct"),
        (
            lambda: wp.Categorical(HALVES, support=[1.0, np.inf]),
            ValueError,
            r"support is not finite in row 1",
        ),
        # samples
        (
            lambda: wp.Samples(np.ones((2, 2, 2, 2)), axis=1),
            ValueError,
            r"values must be 2-dimensional or 3-dimensional",
        ),
        (lambda: wp.Samples(np.ones((3, 0))), ValueError, r"values has no samples"),
        (lambda: wp.Samples(np.ones((0, 3))), ValueError, r"is empty"),
        (
            lambda: wp.Samples([[1.0, 2.0], [np.nan, 1.0]]),
            ValueError,
            r"values is not finite in row 1, column 0",
        ),
        (
            lambda: wp.Samples(ROWS, kind="other"),
            ValueError,
            r"unknown kind 'other'; known are draws, atoms",
        ),
        (lambda: wp.Samples(ROWS, HALVES), ValueError, r'weights need kind="atoms"'),
        (
            lambda: wp.Samples(ROWS, 0.4 * ROWS, kind="atoms"),
            ValueError,
            r"sum of weights must be one .* in row 0",
        ),
        (
            lambda: wp.Samples(ROWS, [[0.5, 0.5], [2.0, -1.0], [1.0, 0.0]], "atoms"),
            ValueError,
            r"weights .* row 1",
        ),
        (
            lambda: wp.Samples(ROWS, ONES, "atoms"),
            ValueError,
            r"weights must have shape \(2,\) or \(3, 2\), found \(3,\)",
        ),
        (
            lambda: wp.Samples([[1.0], [1.0, 2.0]]),
            ValueError,
            r"row 0 has 1 samples and row 1 has 2; pad the rows",
        ),
        # quantiles
        (lambda: wp.Quantiles([0.1, 0.5], EYES), ValueError, r"values must be 2-dimensional"),
        (lambda: wp.Quantiles([0.1, 0.5, 0.9], ROWS), ValueError, r"one column for each of the 3 levels"),
        (lambda: wp.Quantiles([0.5, 0.1], ROWS), ValueError, r"levels must be strictly increasing"),
        (lambda: wp.Quantiles([0.5, 0.5], ROWS), ValueError, r"levels must differ, found 0.5 twice"),
        (lambda: wp.Quantiles([0.0, 0.5], ROWS), ValueError, r"strictly between 0 and 1"),
        (lambda: wp.Quantiles([], np.ones((3, 0))), ValueError, r"levels is empty"),
        (lambda: wp.Quantiles([0.1, 0.5], np.ones((0, 2))), ValueError, r"is empty"),
        (
            lambda: wp.Quantiles([0.1, 0.5], [[0, 1], [1, 0]]),
            ValueError,
            r"values cross .* in row 1: .*; give sort=True",
        ),
        # mixtures
        (lambda: wp.Mixture([]), ValueError, r"components is empty"),
        (
            lambda: wp.Mixture(wp.Normal(ONES, 1.0)),
            TypeError,
            r"components must be a list of predictions, found Normal",
        ),
        (lambda: wp.Mixture([wp.Normal(ONES, 1.0), ONES]), TypeError, r"found ndarray as component 1"),
        (
            lambda: wp.Mixture([wp.Normal(ONES, 1.0), wp.Normal(ONES[:2], 1.0)]),
            ValueError,
            r"same length, found 3 in component 0 and 2 in component 1",
        ),
        (
            lambda: wp.Mixture([wp.Normal(ONES, 1.0), wp.DiagonalNormal(ROWS, 1.0)]),
            ValueError,
            r"targets of one shape, found \(\) in component 0 and \(2,\) in component 1",
        ),
        (
            lambda: wp.Mixture([wp.Normal(ONES, 1.0)] * 2, [[0.5, 0.5], [0.5, 0.5], [0.5, 0.6]]),
            ValueError,
            r"sum of weights must be one within 1e-06 in row 2: found 1.1",
        ),
        (
            lambda: wp.Mixture([wp.Normal(ONES, 1.0)] * 2, [1.5, -0.5]),
            ValueError,
            r"weights must not be negative",
        ),
        (
            lambda: wp.Mixture([wp.Normal(ONES, 1.0)] * 2, ONES),
            ValueError,
            r"weights must have shape \(2,\) or \(3, 2\) for 2 components of 3 predictions, found \(3,\)",
        ),
        (
            lambda: wp.Mixture([wp.Categorical(HALVES, ["a", "b"]), wp.Categorical(HALVES, ["b", "a"])]),
            ValueError,
            r"component 0 predicts classes .* support=",
        ),
        (
            lambda: wp.Mixture([wp.Normal(ONES, 1.0), wp.Bernoulli(ONES)]),
            ValueError,
            r"component 1 predicts classes",
        ),
        (
            lambda: wp.Mixture([wp.Quantiles([0.1, 0.5], ROWS)] * 2),
            TypeError,
            r"Quantiles of bins, which cannot be mixed",
        ),
        (
            lambda: wp.Mixture([wp.Samples([["a"], ["b"]])] * 2),
            TypeError,
            r"Samples of objects, which cannot be mixed",
        ),
    ],
)
def test_messages_of_construction(build: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build()


BAD_MATRICES = {
    "indefinite": ([[1.0, 2.0], [2.0, 1.0]], r"smallest eigenvalue is -1 and its largest 3; .*jitter"),
    "singular": ([[1.0, 1.0], [1.0, 1.0]], "must be positive definite"),
    "singular up to rounding": (
        np.outer([1.0, 1 / 3], [1.0, 1 / 3]) + np.diag([0.0, 1e-17]),
        "positive definite",
    ),
    "zero": ([[0.0, 0.0], [0.0, 0.0]], "must be positive definite"),
    "asymmetric": ([[1.0, 0.5], [0.4, 1.0]], r"must be symmetric \(to 1e-08 of its largest entry\)"),
}


@pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor, None], ids=["numpy", "torch", "jax"])
@pytest.mark.parametrize(("matrix", "message"), BAD_MATRICES.values(), ids=list(BAD_MATRICES))
def test_covariances_must_be_positive_definite(matrix: Any, message: str, convert: Any) -> None:
    cov = EYES.copy()
    cov[2] = matrix
    with jax.enable_x64(True):
        convert = convert or jnp.asarray
        with pytest.raises(ValueError, match=message) as caught:
            wp.MultivariateNormal(convert(ROWS), convert(cov))
        assert "cov" in str(caught.value)
        assert "row 2" in str(caught.value)
        with pytest.raises(ValueError, match="row 2"):
            wp.PowerExponential(convert(ROWS), shape=1.0, cov=convert(cov))


@pytest.mark.parametrize(
    ("pred", "y", "message"),
    [
        (wp.Normal(ONES, 1.0), [0.0, np.nan, 1.0], r"y is not finite in row 1"),
        (wp.Normal(ONES, 1.0), [0.0, 1.0], r"y and predictions must have the same length, found 2 and 3"),
        (
            wp.Normal(ONES, 1.0),
            np.ones((3, 1)),
            r"y must be 1-dimensional, found shape \(3, 1\); pass y\[:, 0\]",
        ),
        (wp.DiagonalNormal(ROWS, 1.0), ONES, r"y must be 2-dimensional"),
        (wp.DiagonalNormal(ROWS, 1.0), np.ones((3, 3)), r"targets of shape \(2,\) .* found \(3,\)"),
        (wp.Bernoulli(ONES), [0, 1, 2], r"y must be 0 or 1 in row 2: found 2"),
        (wp.Bernoulli(ONES), [0, 0.5, 1], r"y must be 0 or 1 in row 1"),
        (wp.Poisson(ONES), [0, 1, -1], r"non-negative whole number in row 2"),
        (wp.Poisson(ONES), [0, 1.5, 1], r"non-negative whole number in row 1"),
        (wp.NegativeBinomial(ONES, 1.0), [0, 1.5, 1], r"non-negative whole number in row 1"),
        (wp.Gamma(ONES, 1.0), [0, -1.5, 1], r"y must not be negative in row 1"),
        (wp.LogNormal(ONES, 1.0), [0, -1.5, 1], r"y must not be negative in row 1"),
        (wp.Beta(ONES, 1.0), [0, 1.5, 1], r"y must lie in \[0, 1\] in row 1"),
        (
            wp.Dirichlet(ROWS),
            [[0.5, 0.5], [0.5, 0.6], [1, 0]],
            r"the sum of y must be one within 1e-06 in row 1",
        ),
        (wp.Dirichlet(ROWS), [[0.5, 0.5], [1.5, -0.5], [1, 0]], r"y must not be negative in row 1, column 1"),
        (
            wp.Categorical(HALVES),
            [0, 1, 2],
            r"y is not among the classes in row 2: found 2; the classes are 0, 1$",
        ),
        (wp.Categorical(HALVES), [0, 1.5, 1], r"not among the classes in row 1"),
        (wp.Categorical(HALVES), [0, -1, 1], r"not among the classes in row 1"),
        (wp.Categorical(HALVES), [0, np.nan, 1], r"not among the classes in row 1"),
        (wp.Categorical(HALVES), [0, 1], r"same length, found 2 and 3"),
        (wp.Categorical(HALVES, ["a", "b"]), ["a", "c", "b"], r"row 1: found 'c'; the classes are 'a', 'b'$"),
        (
            wp.Categorical(HALVES, ["a", "b"]),
            [0, 1, 0],
            r"row 0: found 0 \(3 rows in all\); the classes are 'a'",
        ),
        (wp.Categorical(HALVES, support=[1.0, 4.0]), [1, 4, 3], r"row 2: found 3; the classes are 1.0, 4.0"),
        (wp.Samples(ROWS), [0.0, np.inf, 1.0], r"y is not finite in row 1"),
        (wp.Samples([["a", "b"]]), ["a", "b"], r"same length, found 2 and 1"),
        (wp.Quantiles([0.1, 0.2], ROWS), [0.0, np.inf, 1.0], r"y is not finite in row 1"),
    ],
)
def test_messages_about_targets(pred: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pred.check_targets(y)
    with pytest.raises(ValueError, match="outcome"):
        pred.check_targets(y, name="outcome")


def test_arguments_end_in_the_batch_shape() -> None:
    pred = wp.Normal(ONES, 1.0)
    for call in (pred.log_prob, pred.cdf, pred.quantile):
        assert call(0.5 * np.ones((4, 3))).shape == (4, 3)
        for bad in (np.ones((3, 2)),) if call == pred.quantile else (np.ones(2), np.ones((3, 1))):
            with pytest.raises(ValueError, match=r"must be a number or end in shape \(3,\), found shape"):
                call(bad)
    with pytest.raises(ValueError, match=r"y must end in shape \(3, 2\), found shape \(2,\)"):
        wp.DiagonalNormal(ROWS, 1.0).log_prob(np.ones(2))


def test_many_bad_labels_show_few_classes() -> None:
    pred = wp.Categorical(np.full((2, 10), 0.1))
    with pytest.raises(ValueError, match=r"the classes are 0, 1, 2, 3, 4, 5, \.\.\.$"):
        pred.check_targets([10, 11])


def test_single_precision_has_its_own_tolerance() -> None:
    probs = np.full((2, 3), 1 / 3, dtype=np.float32) * np.float32(1.0005)
    wp.Categorical(probs)
    with pytest.raises(ValueError, match="within 1e-06"):
        wp.Categorical(probs.astype(np.float64))
    with pytest.raises(ValueError, match=r"within 0\.001"):
        wp.Categorical(probs * np.float32(1.01))


def test_values_are_not_checked_under_tracing_but_shapes_are() -> None:
    assert jax.jit(lambda s: wp.Normal(jnp.zeros(3), s).variance())(-jnp.ones(3)).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="same shape"):
        jax.jit(lambda s: wp.Normal(jnp.zeros(2), s).variance())(jnp.ones(3))
    with pytest.raises(ValueError, match="1-dimensional"):
        jax.jit(lambda s: wp.Normal(jnp.zeros(3), s).variance())(jnp.ones((3, 1)))
