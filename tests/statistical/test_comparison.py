"""Size and power of comparisons, by simulation with fixed seeds; `benchmarks` has the long version."""

import numpy as np
from scipy import stats

import wellcal as wc
from wellcal import compare
from wellcal.engines import Tiled

ONE_THREAD = Tiled(threads=1)


def models(rng, n, kind):
    mu, one = rng.normal(size=n), np.ones(n)
    y = rng.normal(mu, 1.0)
    if kind == "both calibrated":
        return y, wc.Normal(mu, one), wc.Normal(0.0 * mu, np.sqrt(2.0) * one)
    first, second = {"equal": (0.5, -0.5), "close": (0.5, 0.6)}[kind]
    return y, wc.Normal(mu + first, one), wc.Normal(mu + second, one)


def comparisons(n, kind, repeats):
    rng = np.random.default_rng([n, len(kind)])
    options = {"rng": rng, "n_resamples": 99, "engine": ONE_THREAD}
    return [compare(*models(rng, n, kind), **options) for _ in range(repeats)]


def test_size_with_equal_errors():
    """The normal approximation of the difference keeps its level; the p-value is at least as large."""
    repeats = 120
    found = comparisons(64, "equal", repeats)
    low, high = stats.binom.interval(0.999, repeats, 0.05)
    assert low <= sum(f.difference_pvalue <= 0.05 for f in found) <= high
    assert sum(f.pvalue <= 0.05 for f in found) <= stats.binom.ppf(0.999, repeats, 0.05)
    assert not any(f.degenerate for f in found)


def test_size_with_two_calibrated_models():
    """Two different, calibrated forecasts: the difference alone rejects too often, the p-value does not."""
    found = comparisons(64, "both calibrated", 50)
    assert sum(f.pvalue <= 0.05 for f in found) <= stats.binom.ppf(0.999, 50, 0.05)
    assert np.mean([f.degenerate for f in found]) > 0.8


def test_power_of_pairing():
    """Where both models share most of their error, standard errors of each alone see nothing."""
    found = comparisons(64, "close", 24)
    least = stats.binom.ppf(0.001, 24, 0.9)  # the power is at least .9
    assert sum(f.pvalue <= 0.05 for f in found) >= least
    alone = [float(f.estimate) / np.hypot(f.a.standard_error, f.b.standard_error) for f in found]
    assert np.mean(np.abs(alone) > 1.96) < 0.1
