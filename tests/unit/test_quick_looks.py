"""Short ways through large arrays find what the long ways find, at edges and ties too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal._arrays.checks import real_array
from wellcal._arrays.chunks import limited
from wellcal._arrays.domains import simplex
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein
from wellcal.measures.binned.binning import UniformBins, compact
from wellcal.measures.binned.tables import class_table
from wellcal.measures.scores.forms import atoms_crps, draws_crps
from wellcal.measures.waves import cosine_sums
from wellcal.recalibration.objectives import ClassLikelihood

RNG = np.random.default_rng(12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_that_are_not_finite_are_refused(bad: float, dtype: torch.dtype) -> None:
    for others in ([0.0, 1.0], [-bad, 2.0]):
        with pytest.raises(ValueError, match="x is not finite in row 0: found"):
            real_array(torch.tensor([bad, *others], dtype=dtype), "x")
    largest = torch.full((3,), torch.finfo(dtype).max, dtype=dtype)  # its sum is infinite
    assert real_array(largest, "x") is largest


@pytest.mark.parametrize("bad", [-1, 3, 1.5])
def test_tensors_that_are_no_classes_are_refused(bad: float) -> None:
    pred = wc.Categorical(torch.full((3, 3), 1.0 / 3.0, dtype=torch.float64))
    assert pred.check_targets(torch.tensor([0, 2, 1], dtype=torch.int32)).tolist() == [0, 2, 1]
    with pytest.raises(ValueError, match="y is not among the classes in row 1"):
        pred.check_targets(torch.tensor([0, bad, 1]))


def test_sums_at_the_tolerance_are_probabilities() -> None:
    probs = np.array([[0.5, 0.5 + 0.9e-6]])
    simplex.check(probs, "probs")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [3, 7, 10, 15, 49])
def test_uniform_bins_beside_their_edges(bins: int, dtype: Any) -> None:
    rule = UniformBins(bins)
    edges = rule.edges(np.zeros(1, dtype))
    near = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1), [0.0, 1.0]]).astype(dtype)
    p = np.concatenate([near, RNG.random(200 * bins).astype(dtype)])
    with limited(cache=4096):
        found = rule.cells(p[:, None])
    np.testing.assert_array_equal(found, np.searchsorted(edges, p, side="right"))


@pytest.mark.parametrize(
    "cells",
    [
        np.array([4, 4, 9]),
        np.array([0, 1, 2]),
        np.array([-7, 10**12]),
        np.array([True, True]),
        np.array([2**64 - 1, 2**64 - 3], dtype=np.uint64),
        np.array([-100, 100], dtype=np.int8),
    ],
)
def test_compact_numbers(cells: Any) -> None:
    used, places = compact(cells)
    expected, inverse = np.unique(cells, return_inverse=True)
    np.testing.assert_array_equal(places, inverse)
    assert [int(u) for u in used] == [int(u) for u in expected]


def test_confidence_of_ties_takes_the_first_class() -> None:
    probs = np.array([[0.25, 0.5, 0.25], [0.4, 0.2, 0.4], [0.2, 0.4, 0.4], [0.25, 0.25, 0.5]])
    with limited(cache=12):
        for y in range(3):
            correct, top = wc.confidence(np.full(4, y), probs)
            np.testing.assert_array_equal(correct, probs.argmax(axis=1) == y)
            np.testing.assert_array_equal(top.probs, probs.max(axis=1))


@pytest.mark.parametrize("classes", [4, 40])
def test_sums_in_bins_by_class(classes: int) -> None:
    probs, index = RNG.dirichlet(np.ones(classes), 90), RNG.integers(0, classes, 90)
    bins = np.arange(90) % 5
    with limited(cache=64):
        found = class_table(probs, index, bins, 5, squares=True)
    residuals = probs - np.eye(classes)[index]
    for b in range(5):
        np.testing.assert_allclose(found.predicted[b], probs[bins == b].mean(axis=0), rtol=1e-13)
        np.testing.assert_allclose(found.squares[b], (residuals[bins == b] ** 2).mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("fair", [False, True])
def test_draws_are_atoms_of_equal_weight(fair: bool) -> None:
    values, y = np.round(RNG.normal(size=(30, 7)), 1), np.round(RNG.normal(size=30), 1)
    expected = atoms_crps(values, np.full((30, 7), 1 / 7), y, fair=fair)
    with limited(cache=80):
        np.testing.assert_allclose(draws_crps(values, y, fair=fair), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("waves", [1, 30, 500])
def test_cosine_sums(waves: int) -> None:
    x, w = np.concatenate([[0.0, 1.0, 0.5], RNG.random(400)]), RNG.normal(size=403)
    expected = [float(w @ np.cos(np.pi * k * x)) for k in range(waves + 1)]
    with limited(cache=800):
        found = cosine_sums(w, x, waves)
    # A phase of pi k x is known to its rounding, whoever computes it.
    rounding = np.finfo(float).eps * (10.0 + np.pi * waves) * float(np.linalg.norm(w))
    np.testing.assert_allclose(found, expected, rtol=0, atol=rounding)


@pytest.mark.parametrize("d", [2, 3, 7, 10, 17])
def test_variances_that_are_alike_are_divided_by_once(d: int) -> None:
    """Against products over coordinates, for tiles and for blocks."""
    n, scale = 64, np.exp(RNG.normal(0.0, 0.5, 64))
    loc, y = RNG.normal(size=(2, n, d))
    kernel = Gaussian(1.3)
    alike = wc.DiagonalNormal(loc, np.repeat(scale[:, None], d, axis=1))
    alone = [wc.Normal(loc[:, c], scale) for c in range(d)]
    for other, coordinates in ((alike, alone), (y, list(y.T))):
        one_by_one = [wc.pairing(kernel, p, q) for p, q in zip(alone, coordinates, strict=True)]
        np.testing.assert_allclose(wc.pairing(kernel, alike, other), np.prod(one_by_one, axis=0), rtol=1e-12)
    whole = ExpDistance(Wasserstein()) @ kernel
    jittered = wc.DiagonalNormal(loc, alike.scale * (1.0 + 1e-15 * RNG.integers(0, 2, (n, d))))
    found, general = (
        wc.skce(y, pred, kernel=whole, estimator="block", block_size=32).value for pred in (alike, jittered)
    )
    assert found == pytest.approx(general, rel=1e-11)


# -- classes at another temperature ---------------------------------------------------------------


def likelihood_of(probs: Any, y: Any, b: float) -> float:
    powers = np.where(probs > 0, probs, 1.0) ** b * (probs > 0)
    return float(-np.log(powers[np.arange(len(y)), y] / powers.sum(axis=1)).mean())


def test_likelihood_of_classes_and_its_derivatives() -> None:
    probs = RNG.dirichlet(np.ones(3), 50)
    y = np.array([RNG.choice(3, p=row) for row in probs])
    probs[3] = [0.5, 0.0, 0.5]
    y[3] = 2
    with limited(cache=40):
        f = ClassLikelihood(probs, y)
        for b in (0.01, 1.0, 7.0):
            value, slope, curvature = f(b)
            assert value == pytest.approx(likelihood_of(probs, y, b), rel=1e-12)
            h = 1e-5 * b
            assert slope == pytest.approx((f(b + h)[0] - f(b - h)[0]) / (2 * h), rel=1e-5)
            assert curvature == pytest.approx((f(b + h)[1] - f(b - h)[1]) / (2 * h), rel=1e-5)
        temperature, at_bound = f.best((1e-4, 1e4))
    assert abs(f(1 / temperature)[1]) < 1e-12
    assert not at_bound


def test_likelihood_at_the_ends_of_the_bounds() -> None:
    certain = np.array([[0.9, 0.1], [0.2, 0.8]])
    assert ClassLikelihood(certain, np.array([0, 1])).best((0.25, 4.0)) == (0.25, True)
    assert ClassLikelihood(certain, np.array([1, 0])).best((0.25, 4.0)) == (4.0, True)
    assert ClassLikelihood(np.full((2, 2), 0.5), np.array([1, 0])).best((0.25, 4.0)) == (1.0, False)


# -- arrays that are looked at, and not copied ----------------------------------------------------


@pytest.mark.parametrize(("apart", "scale"), [(1e-15, "1"), (1e-9, "3e-09")])
def test_predictions_that_differ_by_rounding_are_equal(apart: float, scale: str) -> None:
    loc = np.where(np.arange(40) % 2, 3.0 * (1.0 + apart), 3.0)
    assert f"lengthscale={scale}," in repr(wc.default_kernel(wc.Normal(loc, np.ones(40))))
