"""Batches of one family, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import wellcal as wc
from wellcal.predictions.batches import concatenate

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=3), RNG.normal(size=2)
PROBS = RNG.dirichlet(np.ones(3), 5)
VALUES = RNG.normal(size=(5, 4))


def together(first: Any, second: Any) -> Any:
    return concatenate((first, second), ("first", "second"), "both")


def covariances(n: int) -> np.ndarray:
    root = RNG.normal(size=(n, 2, 2))
    return root @ np.swapaxes(root, 1, 2) + np.eye(2)


WHOLE: dict[str, Any] = {
    "Normal": wc.Normal(VALUES[:, 0], np.exp(VALUES[:, 1])),
    "MultivariateNormal": wc.MultivariateNormal(VALUES[:, :2], covariances(5)),
    "PowerExponential": wc.PowerExponential(VALUES[:, :2], shape=1.5, cov=covariances(5)),
    "NegativeBinomial": wc.NegativeBinomial(np.exp(VALUES[:, 0]), 0.5),
    "Bernoulli": wc.Bernoulli(PROBS[:, 0]),
    "Categorical": wc.Categorical(PROBS, classes=["a", "b", "c"]),
    "support": wc.Categorical(PROBS, support=[1.0, 2.0, 4.0]),
    "Samples": wc.Samples(VALUES),
    "atoms": wc.Samples(VALUES[:, :3], PROBS, kind="atoms"),
    "objects": wc.Samples(VALUES.round(1).astype(str).astype(object)),
    "Quantiles": wc.Quantiles([0.2, 0.5, 0.7, 0.9], np.sort(VALUES, axis=1)),
    "Mixture": wc.Mixture(
        [wc.Normal(VALUES[:, 0], 1.0), wc.Laplace(VALUES[:, 1], 2.0)],
        PROBS[:, :2] / PROBS[:, :2].sum(1, keepdims=True),
    ),
    "scipy": wc.as_predictions(stats.uniform(loc=VALUES[:, 0], scale=2.0)),
}


def leaves(batch: Any) -> list[np.ndarray]:
    out: list[np.ndarray] = []
    batch.map_arrays(lambda array: out.append(array) or array)
    return out


@pytest.mark.parametrize("name", WHOLE)
def test_parts_make_the_whole(name: str) -> None:
    whole = WHOLE[name]
    found = together(whole[:3], whole[3:])
    assert type(found) is type(whole)
    assert len(found) == 5
    for before, after in zip(leaves(whole), leaves(found), strict=True):
        np.testing.assert_array_equal(before, after)


def test_samples_of_different_sizes_become_weighted_atoms() -> None:
    few, many = wc.Samples(VALUES[:2, :3]), wc.Samples(VALUES, kind="atoms")
    found = together(few, many)
    assert found.kind == "atoms"
    assert found.values.shape == (7, 4)
    assert_allclose(found.mean()[:2], VALUES[:2, :3].mean(axis=1), rtol=1e-14)
    assert_allclose(found.mean()[2:], VALUES.mean(axis=1), rtol=1e-14)
    assert_allclose(found.quantile(0.5)[:2], np.median(VALUES[:2, :3], axis=1))


def test_objects_are_padded() -> None:
    words = np.array([["a", "b", "c"]], dtype=object)
    found = together(wc.Samples(words), wc.Samples(words[:, :2]))
    assert found.values.tolist() == [["a", "b", "c"], ["a", "b", "a"]]
    assert found.weights.tolist() == [[1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0]]


def test_precision_is_that_of_the_wider() -> None:
    narrow = wc.Normal(A.astype(np.float32), np.float32(1.0) * np.ones(3, np.float32))
    assert together(narrow, wc.Normal(B, 1.0)).loc.dtype == np.float64


BAD: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "families": (
        wc.Normal(A, 1.0),
        wc.Laplace(B, 1.0),
        TypeError,
        "found Normal as first and Laplace as second",
    ),
    "dimensions": (
        wc.DiagonalNormal(VALUES, 1.0),
        wc.DiagonalNormal(VALUES[:, :2], 1.0),
        ValueError,
        r"one shape, found \(4,\) in first and \(2,\) in second",
    ),
    "classes": (
        wc.Categorical(PROBS, classes=["a", "b", "c"]),
        wc.Categorical(PROBS, classes=["a", "b", "d"]),
        ValueError,
        "same classes, and that of second",
    ),
    "number of classes": (
        wc.Categorical(PROBS),
        wc.Categorical(np.full((2, 4), 0.25)),
        ValueError,
        r"probs of one shape beyond the first axis, found \(3,\) in first and \(4,\) in second",
    ),
    "levels": (
        wc.Quantiles([0.1, 0.5], np.sort(VALUES[:, :2], axis=1)),
        wc.Quantiles([0.1, 0.6], np.sort(VALUES[:, :2], axis=1)),
        ValueError,
        "same levels",
    ),
    "components": (
        wc.Mixture([wc.Normal(A, 1.0), wc.Normal(A, 2.0)]),
        wc.Mixture([wc.Normal(B, 1.0)]),
        ValueError,
        "found 2 in first and 1 in second; add components of weight zero",
    ),
    "families of components": (
        wc.Mixture([wc.Normal(A, 1.0)]),
        wc.Mixture([wc.Laplace(B, 1.0)]),
        TypeError,
        "Normal as first and Laplace as second",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_refused(name: str) -> None:
    first, second, error, message = BAD[name]
    with pytest.raises(error, match=message):
        together(first, second)
