"""Binned calibration errors: values by hand, bins, reductions, errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import wellcal as wc
from wellcal import EqualMassBins, MedianVarianceBins, UniformBins, ece, mce

RNG = np.random.default_rng(11)


# -- values by hand --------------------------------------------------------------------------

# Bins of width 1/2: {0.2, 0.4} with one hit of two, {0.5, 0.9, 1.0} with two of three.
P = np.array([0.2, 0.4, 0.5, 0.9, 1.0])
HIT = np.array([0, 1, 1, 0, 1])
GAPS = np.array([0.5 - 0.3, 2 / 3 - 0.8])


@pytest.mark.parametrize(
    ("distance", "of_gap"),
    [
        ("total_variation", np.abs),
        ("euclidean", lambda g: np.sqrt(2.0) * np.abs(g)),
        ("squared_euclidean", lambda g: 2.0 * g**2),
        (1, lambda g: 2.0 * np.abs(g)),
        (3.0, lambda g: 2.0 * np.abs(g) ** 3),
        (math.inf, np.abs),
        (lambda a, b: (a[:, 1] - b[:, 1]) ** 4, lambda g: g**4),
    ],
)
def test_two_bins_by_hand(distance: Any, of_gap: Any) -> None:
    values = of_gap(GAPS)
    found = ece(HIT, P, distance=distance, n_bins=2)
    assert found.value == pytest.approx(0.4 * values[0] + 0.6 * values[1], rel=1e-14)
    assert isinstance(found.value, float)
    assert mce(HIT, P, distance=distance, n_bins=2).value == pytest.approx(values.max(), rel=1e-14)


def test_probability_one_falls_into_the_last_bin() -> None:
    """0.95 and 1.0 share a bin: a mean of 0.975 and a frequency of 0.5. Two bins would give 0.525."""
    assert ece([1, 0], np.array([0.95, 1.0]), n_bins=10).value == pytest.approx(0.475, rel=1e-14)
    assert_array_equal(
        UniformBins(4).cells(np.array([[0.0], [0.25], [0.7499], [0.75], [1.0]])), [0, 1, 2, 3, 3]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [10, 15, 100])
def test_edges_begin_bins(dtype: Any, count: int) -> None:
    p = (np.arange(count) / count).astype(dtype)
    assert_array_equal(UniformBins(count).cells(p[:, None]), np.arange(count))


def test_empty_bins_are_not_counted() -> None:
    few, many = (ece(HIT, P, n_bins=n) for n in (2, 1000))
    assert few.provenance["bins"] == 2
    assert many.provenance["bins"] == 5
    assert many.value == pytest.approx(np.mean(np.abs(HIT - P)), rel=1e-14)


def test_debiased_by_hand() -> None:
    """Two cases at 0.3, one hit: mean difference 0.2, unbiased variance 1/2, so 0.04 - 1/4 for one class."""
    found = ece([0, 1], np.array([0.3, 0.3]), distance="squared_euclidean", estimator="debiased")
    assert found.value == pytest.approx(2.0 * (0.04 - 0.25), rel=1e-13)
    z = 0.2 / 0.5
    folded = 0.5 * (math.sqrt(2 / math.pi) * math.exp(-0.5 * z * z) + z * math.erf(z / math.sqrt(2)))
    found = ece([0, 1], np.array([0.3, 0.3]), estimator="debiased")
    assert found.value == pytest.approx(2.0 * 0.2 - folded, rel=1e-13)


def test_debiased_leaves_single_cases_out() -> None:
    p, y = np.array([0.31, 0.32, 0.9]), np.array([0, 1, 1])
    options: Any = {"distance": "squared_euclidean", "estimator": "debiased"}
    found = ece(y, p, **options)
    assert found.value == pytest.approx(ece(y[:2], p[:2], **options).value, rel=1e-14)
    assert found.provenance["left_out"] == 1
    with pytest.raises(ValueError, match="two cases or more"):
        ece(y[1:], p[1:], **options)


# -- bins ------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize(("n", "count"), [(100, 10), (103, 10), (7, 5), (3, 10)])
def test_equal_mass_is_equal(columns: int, n: int, count: int) -> None:
    cells = EqualMassBins(count).cells(RNG.random((n, columns)))
    sizes = np.bincount(cells)
    assert len(sizes) == min(count, n)
    assert sizes.max() - sizes.min() <= 1


def test_equal_mass_of_one_probability_is_cut_in_order() -> None:
    p = RNG.random(60)
    cells = EqualMassBins(6).cells(p[:, None])
    assert_array_equal(cells[np.argsort(p)], np.repeat(np.arange(6), 10))


@pytest.mark.parametrize("rule", [UniformBins(4), EqualMassBins(4), MedianVarianceBins(3)])
def test_equal_predictions_share_a_bin(rule: Any) -> None:
    features = RNG.integers(0, 3, (80, 2)) / 4.0
    cells = rule.cells(features)
    for row in np.unique(features, axis=0):
        assert len(np.unique(cells[(features == row).all(axis=1)])) == 1


def test_median_variance_splits_where_predictions_vary_most() -> None:
    features = np.stack([RNG.random(64), 0.01 * RNG.random(64)], axis=1)
    cells = MedianVarianceBins(min_size=32).cells(features)
    assert_array_equal(cells, (features[:, 0] >= np.sort(features[:, 0])[32]).astype(int))


def test_median_variance_keeps_its_limits() -> None:
    features = RNG.dirichlet(np.ones(3), 500)
    sizes = np.bincount(MedianVarianceBins(min_size=17).cells(features))
    assert sizes.min() >= 17
    assert sizes.max() < 2 * 17 + 2
    assert len(np.bincount(MedianVarianceBins(5, max_bins=7).cells(features))) == 7


def test_bins_of_the_user() -> None:
    found = ece(HIT, P, binning=np.array([7, 7, -1, -1, -1]))
    assert found.value == pytest.approx(0.4 * GAPS[0] + 0.6 * abs(GAPS[1]), rel=1e-14)
    assert found.provenance["binning"] == "given"


def test_defaults_are_reported() -> None:
    probs = RNG.dirichlet(np.ones(3), 50)
    y = RNG.integers(0, 3, 50)
    assert ece(HIT, P).provenance["binning"] == "UniformBins(n_bins=10)"
    assert ece(y, probs).provenance["binning"] == "UniformBins(n_bins=10)"
    assert (
        ece(y, probs, reduce="none").provenance["binning"] == "MedianVarianceBins(min_size=10, max_bins=None)"
    )
    assert ece(y, probs, n_bins=3, reduce="none").provenance["bins"] == 3
    assert ece(y, probs, reduce="confidence").provenance["binning"] == "UniformBins(n_bins=10)"
    assert ece(y, wc.Poisson(np.ones(50))).provenance["binning"] == "EqualMassBins(n_bins=10)"


# -- reductions ------------------------------------------------------------------------------


def test_confidence_is_the_error_of_the_top_class() -> None:
    probs, y = RNG.dirichlet(np.ones(4), 200), RNG.integers(0, 4, 200)
    for measure in (ece, mce):
        assert measure(y, probs, reduce="confidence").value == measure(*wc.confidence(y, probs)).value


def test_classwise_is_one_class_against_the_others() -> None:
    probs, y = RNG.dirichlet(np.ones(4), 200), RNG.integers(0, 4, 200)
    single = [ece((y == c).astype(int), probs[:, c]).value for c in range(4)]
    largest = [mce((y == c).astype(int), probs[:, c]).value for c in range(4)]
    assert ece(y, probs, reduce="classwise").value == pytest.approx(np.mean(single), rel=1e-13)
    assert mce(y, probs, reduce="classwise").value == pytest.approx(np.max(largest), rel=1e-13)


def test_a_probability_above_one_by_rounding() -> None:
    sure = wc.Mixture([wc.Categorical(np.array([[1.0, 0.0], [0.4, 0.6]]))] * 20, weights=[0.05] * 20)
    assert sure.class_probs()[0, 0] > 1.0
    for reduce in (None, "confidence", "classwise"):
        assert ece([0, 1], sure, reduce=reduce).value == pytest.approx(0.2, abs=1e-12)


# -- families --------------------------------------------------------------------------------


def test_quantiles_compare_frequencies_of_their_bins() -> None:
    values = np.tile([-1.0, 1.0], (4, 1)) + np.array([[0.0], [0.1], [5.0], [5.1]])
    y = np.array([-2.0, 0.0, 5.0, 7.0])  # bins 0, 1 of the lower two, 1, 2 of the upper two
    pred = wc.Quantiles([0.25, 0.75], values)
    found = ece(y, pred, n_bins=2)
    expected = [0.5 * (0.25 + 0.0 + 0.25), 0.5 * (0.25 + 0.0 + 0.25)]
    assert found.value == pytest.approx(np.mean(expected), rel=1e-14)


def test_labels_and_mixtures() -> None:
    probs, y = RNG.dirichlet(np.ones(3), 80), RNG.integers(0, 3, 80)
    names = np.array(["a", "b", "c"])
    value = ece(y, probs).value
    assert ece(names[y], wc.Categorical(probs, classes=names)).value == value
    halves = wc.Mixture([wc.Categorical(probs), wc.Categorical(probs)])
    assert ece(y, halves).value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("estimator", ["plug-in", "debiased"])
def test_a_mixture_of_one_count(estimator: str) -> None:
    rate = RNG.gamma(2.0, 1.0, 60)
    y = RNG.poisson(rate)
    bins = EqualMassBins(5).cells(rate[:, None])
    single = ece(y, wc.Poisson(rate), binning=bins, estimator=estimator).value
    mixed = wc.Mixture([wc.Poisson(rate), wc.Poisson(rate)])
    assert ece(y, mixed, binning=bins, estimator=estimator).value == pytest.approx(single, rel=1e-10)


def test_large_counts_stay_within_their_bins() -> None:
    rate = np.array([1e5, 1.00001e5, 3.0, 3.1])
    y = np.array([100_000, 100_001, 3, 3])
    found = ece(y, wc.Poisson(rate), n_bins=2)
    assert 0.5 < found.value < 1.0


# -- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ece(wc.Bernoulli(P), HIT), TypeError, "truth first"),
        (lambda: ece(HIT, wc.Normal(P, 1.0)), TypeError, "continuous target"),
        (lambda: ece(HIT, P, distance="manhattan"), ValueError, "unknown distance 'manhattan'"),
        (lambda: ece(HIT, P, distance=0.5), ValueError, "q >= 1"),
        (lambda: ece(HIT, P, distance=None), TypeError, "distance must be"),  # pyright: ignore
        (
            lambda: ece(HIT, P, distance=lambda a, b: a - b),
            ValueError,
            r"one number for each bin: shape \(4,\)",
        ),
        (lambda: ece(HIT, P, distance="euclidean", estimator="debiased"), ValueError, "no debiased"),
        (lambda: ece(HIT, P, estimator="unbiased"), ValueError, "unknown estimator"),
        (lambda: ece(HIT, P, binning="best"), ValueError, "unknown binning 'best'"),
        (lambda: ece(HIT, P, binning=UniformBins(3), n_bins=3), ValueError, "n_bins is for"),
        (lambda: ece(HIT, P, binning=np.arange(4)), ValueError, "same length, found 4 and 5"),
        (lambda: ece(HIT, P, binning=np.array([0.5] * 5)), TypeError, "binning must be"),
        (lambda: ece(HIT, P, n_bins=0), ValueError, "at least 1, found 0"),
        (lambda: ece(HIT, P, n_bins=True), ValueError, "whole number"),
        (lambda: ece(HIT, P, reduce="top"), ValueError, "unknown value of reduce 'top'"),
        (
            lambda: ece([1, 2], wc.Poisson(np.ones(2)), reduce="classwise"),
            TypeError,
            "predictions of classes",
        ),
        (lambda: mce([1, 2], wc.Poisson(np.ones(2)), binning="uniform"), ValueError, "finite simplex"),
        (lambda: ece([0, 1, 2, 0, 1], P), ValueError, "row 2"),
        (lambda: ece([1], wc.NegativeBinomial(np.array([1e9]), 5.0)), ValueError, "too many to go through"),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_distance_that_is_not_a_number() -> None:
    def divergence(observed: Any, predicted: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.sum(observed * np.log(observed / predicted), axis=1)

    with pytest.raises(ValueError, match="NaN"):
        ece([1], np.array([0.5]), distance=divergence)


def test_gradients_see_bins_as_constants() -> None:
    p = torch.tensor(P, requires_grad=True)
    ece(torch.tensor(HIT), p, n_bins=2).value.backward()
    assert_allclose(p.grad, np.array([-0.2, -0.2, 0.2, 0.2, 0.2]), rtol=1e-13)
