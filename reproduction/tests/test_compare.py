"""Bounds hold with the probability that they claim, and reject what differs."""

import numpy as np
import pytest
from scipy import stats

from reproduction.compare import (
    ALPHA,
    compare_mean_error,
    compare_proportions,
    compare_variance,
    compare_with_repeats,
)


def test_mean_error_bounds_cover_at_their_level():
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(2000):
        ours, theirs = rng.normal(1.0, 2.0, (2, 200))
        known = np.abs(theirs - 1.0).mean()
        missed += not compare_mean_error(ours, 1.0, known, published_count=200).matched
    assert stats.binomtest(missed, 2000, ALPHA).pvalue > 1e-3


def test_mean_error_bounds_widen_by_the_error_of_the_truth():
    """For estimates all on one side of the truth, its error moves the mean error one to one."""
    estimates = np.random.default_rng(0).uniform(1.0, 2.0, 500)
    narrow = compare_mean_error(estimates, 0.0, 1.5, published_count=500)
    wide = compare_mean_error(estimates, 0.0, 1.5, published_count=500, truth_variance=1e-2)
    z = stats.norm.isf(ALPHA / 2)
    assert narrow.high - narrow.ours == pytest.approx(z * np.sqrt(2 * estimates.var(ddof=1) / 500))
    assert (wide.high - wide.ours) ** 2 - (narrow.high - narrow.ours) ** 2 == pytest.approx(2e-2 * z**2)


def test_variance_bounds_cover_at_their_level():
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(500):
        ours, theirs = rng.normal(size=(2, 300))
        known = theirs.var(ddof=1)
        missed += not compare_variance(ours, known, published_count=300, resamples=400).matched
    assert stats.binomtest(missed, 500, ALPHA).pvalue > 1e-3


def test_variance_bounds_reject_another_variance():
    ours = np.random.default_rng(2).normal(size=500)
    assert not compare_variance(ours, 1.5, published_count=500).matched
    assert compare_variance(ours, 1.5, published_count=500, comparisons=10**9).matched


@pytest.mark.parametrize(("ours", "count"), [(0, 500), (25, 500), (440, 500), (3, 50)])
def test_proportions_agree_with_fishers_test(ours, count):
    """Bounds are the counts whose smaller tail, doubled, is above the level."""
    for theirs in range(0, 501, 7):
        found = compare_proportions(ours, count, theirs, published_count=500)
        tables = [[[theirs, 500 - theirs], [ours, count - ours]]]
        tails = [stats.fisher_exact(tables[0], alternative=side)[1] for side in ("less", "greater")]
        assert found.matched == (2 * min(tails) > ALPHA)


def test_more_comparisons_widen_every_bound():
    rng = np.random.default_rng(3)
    values = rng.normal(size=100)
    for compare in (
        lambda m: compare_mean_error(values, 0.0, 1.0, published_count=100, comparisons=m),
        lambda m: compare_variance(values, 1.0, published_count=100, comparisons=m),
        lambda m: compare_proportions(10, 100, 10, published_count=100, comparisons=m),
        lambda m: compare_with_repeats(values, 0.0, comparisons=m),
    ):
        one, many = compare(1), compare(160)
        assert many.low < one.low < one.high < many.high


def test_prediction_interval_of_repeats():
    repeats = np.array([1.0, 2.0, 4.0, 3.0])
    found = compare_with_repeats(repeats, 0.0)
    half = stats.t.isf(ALPHA / 2, 3) * repeats.std(ddof=1) * np.sqrt(1.25)
    assert (found.low, found.high) == pytest.approx((2.5 - half, 2.5 + half))


def test_prediction_interval_on_a_logarithmic_scale():
    repeats = np.exp(np.array([1.0, 2.0, 4.0, 3.0]))
    found = compare_with_repeats(repeats, 1.0, scale="log")
    half = stats.t.isf(ALPHA / 2, 3) * np.std([1.0, 2.0, 4.0, 3.0], ddof=1) * np.sqrt(1.25)
    assert (np.log(found.low), np.log(found.high)) == pytest.approx((2.5 - half, 2.5 + half))


def test_prediction_interval_on_the_scale_of_asinh():
    repeats = 1e-3 * np.sinh(np.array([-1.0, 2.0, 4.0, 3.0]))
    found = compare_with_repeats(repeats, 1.0, scale=1e-3)
    half = stats.t.isf(ALPHA / 2, 3) * np.std([-1.0, 2.0, 4.0, 3.0], ddof=1) * np.sqrt(1.25)
    ends = np.arcsinh(1e3 * np.array([found.low, found.high]))
    assert ends == pytest.approx([2.0 - half, 2.0 + half])
