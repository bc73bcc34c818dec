"""Size and power of comparisons, by simulation with fixed seeds; `benchmarks` has the long version."""

import numpy as np
import pytest
from scipy import stats

import wellcal as wc
from wellcal.comparison import _difference, compare, pooled_kernel
from wellcal.engines import Tiled
from wellcal.hypotests.setup import make_setup

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


@pytest.mark.parametrize(("n", "repeats"), [(64, 300), (256, 100)])
def test_size_of_the_difference_with_equal_errors(n, repeats):
    """The normal approximation of the difference: within a binomial's 99.9% range of .05."""
    rng = np.random.default_rng(n)
    rejected = 0
    for _ in range(repeats):
        y, *pair = models(rng, n, "equal")
        kernel = pooled_kernel(*pair)
        setups = [make_setup(y, pred, kernel, engine=ONE_THREAD) for pred in pair]
        _, found = _difference(setups, None)
        rejected += abs(float(found)) > stats.norm.ppf(0.975) * found.standard_error
    low, high = stats.binom.interval(0.999, repeats, 0.05)
    assert low <= rejected <= high


def test_size_with_equal_errors():
    found = comparisons(64, "equal", 60)
    assert sum(f.pvalue <= 0.05 for f in found) <= stats.binom.ppf(0.999, 60, 0.05)
    assert not any(f.degenerate for f in found)


def test_size_with_two_calibrated_models():
    """Two different, calibrated forecasts: the difference alone rejects too often, the p-value does not."""
    found = comparisons(64, "both calibrated", 100)
    assert sum(f.pvalue <= 0.05 for f in found) <= stats.binom.ppf(0.999, 100, 0.05)
    assert np.mean([f.degenerate for f in found]) > 0.8


def test_power_of_pairing():
    """Where both models share most of their error, standard errors of each alone see nothing."""
    found = comparisons(64, "close", 40)
    least = stats.binom.ppf(0.001, 40, 0.9)  # the power is at least .9
    assert sum(f.pvalue <= 0.05 for f in found) >= least
    alone = [float(f.estimate) / np.hypot(f.a.standard_error, f.b.standard_error) for f in found]
    assert np.mean(np.abs(alone) > 1.96) < 0.1
