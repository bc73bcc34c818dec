"""Statistical claims about the estimators, by simulation with fixed seeds; `benchmarks` has the long version.

The setting is the paper's (appendix "Empirical properties and computational efficiency"): predictions
N(c 1_d, 0.1^2 I) with c uniform on [0, 1], and targets drawn from them; in the uncalibrated model the first
coordinate of the targets has mean 0.1 instead. Published mean absolute errors are those of its figures.
"""

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import wellcal as wc
from wellcal.measures import deviations

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are not part of the installed package

from benchmarks import estimator_studies as studies
from benchmarks import interval_studies as intervals
from benchmarks.data_sets import synthetic

from .designs import check_mean, check_rates, check_value, rate_of

PUBLISHED_SETS = 500
REPEATS = 200
ESTIMATORS = {
    "biased": {"estimator": "biased"},
    "B = 2": {"estimator": "block", "block_size": 2},
    "B = sqrt n": {"estimator": "block", "block_size": "sqrt"},
    "unbiased": {"estimator": "unbiased"},
}


def estimates(n, d):
    rng = np.random.default_rng([n, d])
    out = {name: np.empty(REPEATS) for name in ESTIMATORS}
    for r in range(REPEATS):
        y, pred = synthetic("calibrated", d, n, rng)
        for name, options in ESTIMATORS.items():
            out[name][r] = wc.skce(y, pred, kernel=studies.PAPER_KERNEL, **options).value
    return out


# Mean absolute error and variance of 500 estimates, as published with the paper.
PUBLISHED = {
    (1, 16): {
        "biased": (0.000612749, 3.25968e-07),
        "B = 2": (0.00178976, 5.51153e-06),
        "B = sqrt n": (0.00105996, 1.96389e-06),
        "unbiased": (0.000417513, 3.18398e-07),
    },
    (10, 64): {
        "biased": (0.00147388, 9.22523e-08),
        "B = 2": (0.00181648, 5.34779e-06),
        "B = sqrt n": (0.000666048, 7.00752e-07),
        "unbiased": (0.000231735, 8.77091e-08),
    },
}


@pytest.mark.parametrize(("d", "n"), PUBLISHED)
def test_published_errors_of_a_calibrated_model(d, n):
    """Ours and theirs are means over data sets: they agree, and a difference of three fifths would show."""
    ours = estimates(n, d)
    for name, (mean_error, variance) in PUBLISHED[d, n].items():
        error = np.abs(ours[name])
        both = math.sqrt(error.var(ddof=1) / REPEATS + variance / PUBLISHED_SETS)
        options = {"error": both, "size": REPEATS, "find": 0.6 * mean_error}
        check_value("published errors", float(error.mean()), mean_error, **options)
    for name in ("B = 2", "B = sqrt n", "unbiased"):
        check_mean("unbiased estimates", ours[name], 0.0, find=0.45 * ours[name].std())
    assert ours["biased"].min() > 0.0
    assert ours["unbiased"].var() < ours["B = sqrt n"].var() < ours["B = 2"].var()


@pytest.mark.parametrize("family", studies.FAMILIES)
def test_unbiased_under_calibration_for_other_families(family):
    repeats = 200 if family != "StudentT" else 60  # lowered, so slower
    values = studies.unbiased_values(family, 20, repeats, workers=1)
    check_mean("unbiased estimates", values, 0.0, find=0.9 * values.std())


# Mean absolute error and variance of 500 estimates of the uncalibrated model, as published.
UNCALIBRATED = {64: (0.0169261, 0.000437577), 256: (0.00838566, 0.000106268)}


@pytest.mark.parametrize("n", UNCALIBRATED)
def test_estimates_under_a_fixed_alternative(n):
    """Published errors, no bias, and standard errors that are the spread."""
    exact = studies.truth()
    mean_error, variance = UNCALIBRATED[n]
    both = 1 / REPEATS + 1 / PUBLISHED_SETS
    found = studies.under_the_alternative(n, REPEATS, workers=1)
    values = np.array([estimate.value for estimate in found])
    error = np.abs(values - exact)
    options = {"size": REPEATS, "error": math.sqrt(error.var(ddof=1) * both), "find": 0.5 * mean_error}
    check_value("published errors", float(error.mean()), mean_error, **options)
    # The variance of a variance estimate is about 2 / n of its square; both are estimates.
    options = {"size": REPEATS, "error": math.sqrt(2.0 * both), "find": 0.75}
    check_value("published errors", math.log(values.var(ddof=1) / variance), 0.0, **options)
    check_mean("unbiased estimates", values, exact, find=0.45 * values.std())
    # The first-order variance leaves out a term of order 1 / n^2.
    stated, spread = studies.stated_and_found(found)
    options = {"size": REPEATS, "error": 1.0 / math.sqrt(2.0 * REPEATS), "find": 0.5, "slack": 2.0 / n}
    check_value("stated errors", stated / spread, 1.0, **options)


def missed_at_thirty_cases():
    """Whether 95% intervals miss; at zero the drawn part alone, which is exact, shows a doubled rate."""
    weak = "classes, temperature 30% too low"
    rng = np.random.default_rng(51)
    while True:
        zero = intervals.one_estimate(rng, "normals, calibrated", 30)
        distances, interval = zero.deviations(), zero.confidence_interval()
        alone = replace(distances, multipliers=distances.drawn)
        classes = intervals.one_estimate(rng, weak, 30).confidence_interval()
        strong = intervals.one_estimate(rng, "normals, shift 1", 30).confidence_interval()
        yield {
            "at zero": interval.low > 0.0,
            "at zero, drawn targets alone": alone.ends(0.95)[0] > 0.0,
            "weak error of classes": not classes.low <= intervals.setting(weak)[1] <= classes.high,
            "strong": not strong.low <= intervals.setting("normals, shift 1")[1] <= strong.high,
        }


def test_intervals_of_kce_hold_for_calibrated_models_too(monkeypatch):
    monkeypatch.setattr(deviations, "DRAWN_SETS", (199, 199))  # quicker, and as exact
    names = ["at zero", "at zero, drawn targets alone", "weak error of classes", "strong"]
    check_rates("intervals miss", names, missed_at_thirty_cases())


BLOCK_KERNEL = wc.kernels.ExpDistance(wc.kernels.Wasserstein(), 1.0) @ wc.kernels.Gaussian(1.35)
SHIFT = 0.3


def true_skce() -> float:
    """Of standard normal predictions, all of them the same, and targets around `SHIFT`: an MMD."""
    square = 1.35**2 + 2.0
    return 2.0 * (1.35 / math.sqrt(square)) * (1.0 - math.exp(-(SHIFT**2) / (2.0 * square)))


def over_blocks(blocks, seed):
    """Estimates over blocks of three cases, on one data set after the other."""
    rng = np.random.default_rng([83, seed])
    pred = wc.Normal(np.zeros(3 * blocks), 1.0)
    while True:
        yield wc.skce(
            rng.normal(SHIFT, 1.0, 3 * blocks), pred, kernel=BLOCK_KERNEL, estimator="block", block_size=3
        )


def test_intervals_over_a_hundred_blocks_nearly_keep_their_level():
    """Ends of 90% intervals, which tests with a tolerance read at an error rate of 5%."""
    truth = true_skce()
    ends = (estimate.confidence_interval(0.9) for estimate in over_blocks(100, 0))
    missed = ({"too low": end.high < truth, "too high": end.low > truth} for end in ends)
    check_rates("blocks miss", ["too low", "too high"], missed)


def test_normal_intervals_over_few_blocks_do_not():
    """The check can fail, and blocks must not be few."""
    truth = true_skce()
    missed = (float(found) + 1.645 * found.standard_error < truth for found in over_blocks(8, 1))
    assert rate_of("blocks miss").run(missed).alarm
