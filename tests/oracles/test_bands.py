"""Simultaneous bands against enumeration of all cases."""

from __future__ import annotations

from itertools import product
from math import factorial

import numpy as np
import pytest
from scipy import stats

import wellcal as wc
from wellcal import quantile_calibration
from wellcal.measures.quantiles.bands import calibration_band, path_probability


@pytest.mark.parametrize("n", [1, 4, 7])
def test_path_probability_by_enumeration(n: int) -> None:
    """Over all ways to distribute n uniforms over the cells between levels."""
    levels = np.array([0.1, 0.35, 0.5, 0.9])
    least, most = np.array([0, 0, 1, min(2, n)]), np.array([1, 2, 3, n])
    widths = np.diff([0.0, *levels, 1.0])
    total = 0.0
    for cells in product(range(n + 1), repeat=5):
        if sum(cells) != n:
            continue
        below = np.cumsum(cells)[:-1]
        if np.all((below >= least) & (below <= most)):
            ways = factorial(n) / np.prod([float(factorial(k)) for k in cells])
            total += ways * np.prod(widths ** np.array(cells))
    assert path_probability(levels, n, least, most) == pytest.approx(total, rel=1e-12)


def test_a_single_level_is_a_binomial_interval() -> None:
    low, high = calibration_band(np.array([0.3]), 50, 0.9, "equal_precision")
    inside = stats.binom.cdf(round(50 * high[0]), 50, 0.3) - stats.binom.cdf(round(50 * low[0]) - 1, 50, 0.3)
    assert inside >= 0.9
    shorter = stats.binom.cdf(round(50 * high[0]) - 1, 50, 0.3) - stats.binom.cdf(round(50 * low[0]), 50, 0.3)
    assert shorter < 0.9


@pytest.mark.parametrize("n", [5, 100, 3000])
def test_equal_precision_holds_its_level_and_hardly_more(n: int) -> None:
    levels = np.linspace(0.0, 1.0, 21)
    low, high = calibration_band(levels, n, 0.95, "equal_precision")
    held = path_probability(levels[1:-1], n, np.rint(n * low[1:-1]), np.rint(n * high[1:-1]))
    assert held >= 0.95
    if n >= 100:  # of few cases the steps of the bounds are large
        assert held < 0.96
    assert (low[0], high[0], low[-1], high[-1]) == (0.0, 0.0, 1.0, 1.0)


def test_equal_precision_is_narrower_at_the_ends() -> None:
    levels = np.linspace(0.01, 0.99, 99)
    flat, precise = (
        np.subtract(*calibration_band(levels, 500, 0.95, kind)[::-1])
        for kind in ("kolmogorov", "equal_precision")
    )
    assert precise[0] < 0.5 * flat[0]
    assert precise[49] < 1.3 * flat[49]


def test_kolmogorov_is_the_band_of_the_reported_value() -> None:
    """The largest deviation is beyond the quantile of Kolmogorov's statistic just where the band is left."""
    rng = np.random.default_rng(2)
    y = rng.normal(size=60)
    found = quantile_calibration(y, wc.Normal(np.zeros(60), 1.0))
    low, high = found.band(0.9)
    half = stats.kstwo.ppf(0.9, 60)
    assert high[50] - found.levels[50] == pytest.approx(half, rel=1e-12)
    assert found.levels[50] - low[50] == pytest.approx(half, rel=1e-12)
    assert np.all(low >= 0)
    assert np.all(high <= 1)


def test_unordered_levels() -> None:
    levels = np.array([0.5, 0.2, 0.5, 0.9])
    low, high = calibration_band(levels, 40, 0.9, "equal_precision")
    again = calibration_band(np.sort(levels), 40, 0.9, "equal_precision")
    assert np.array_equal(np.sort(low), again[0])
    assert np.array_equal(np.sort(high), again[1])


def test_errors() -> None:
    found = quantile_calibration(np.zeros(3), wc.Normal(np.zeros(3), 1.0))
    with pytest.raises(ValueError, match="level must be between"):
        found.band(1.0)
    with pytest.raises(ValueError, match="known are kolmogorov, equal_precision"):
        found.band(kind="flat")
