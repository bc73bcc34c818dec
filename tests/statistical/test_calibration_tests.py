"""Type I error and power of the tests, by simulation with fixed seeds.

Small versions of the studies in `benchmarks`, on the same data sets: bounds are those of binomial counts, at
1% over all cells of a study together.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wellcal as wc
from wellcal.engines import Tiled

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are not part of the installed package

from benchmarks.calibration_studies import OURS, PAPER_KERNEL, POWER_CELLS, _published
from benchmarks.data_sets import DISCRETE, SAMPLES, calibrated, synthetic
from benchmarks.studies import LEVEL, Rate, generators

pytestmark = pytest.mark.filterwarnings("ignore:with n_resamples")
ENGINE = Tiled(threads=1)


def pvalues(
    key: tuple[Any, ...], draw: Any, tests: dict[str, dict[str, Any]], count: int
) -> dict[str, np.ndarray]:
    """p-values of each test on `count` data sets."""
    found: dict[str, list[float]] = {name: [] for name in tests}
    for r in range(count):
        for_data, for_tests = generators(("fast", *key), r)
        y, pred = draw(for_data)
        for (name, options), rng in zip(tests.items(), for_tests.spawn(len(tests)), strict=True):
            found[name].append(wc.calibration_test(y, pred, rng=rng, engine=ENGINE, **options).pvalue)
    return {name: np.array(values) for name, values in found.items()}


def rates(*arguments: Any) -> dict[str, Rate]:
    """Share of data sets on which each test rejects."""
    found = pvalues(*arguments).items()
    return {name: Rate(int(np.sum(values <= LEVEL)), len(values)) for name, values in found}


# -- type I error of the exact tests --------------------------------------------------------------------

# With fewer resamples the smallest of several p-values has many ties, which make its test cautious.
EXACT = {
    name: {"method": name, "n_resamples": 199} for name in ("exact", "aggregated", "regularised", "auto")
}
CELLS = {
    "normals, d = 1": 100,
    "normals, d = 10": 60,
    "Bernoulli": 100,
    "Categorical, 10 classes": 60,
    "Poisson": 25,
    SAMPLES: 60,
}
"""Families, with the number of data sets."""


@pytest.mark.parametrize("family", CELLS)
def test_exact_tests_keep_their_level(family: str) -> None:
    """Rejections at level 0.05, and the mean of p-values, which sees a bias with fewer data sets."""

    def draw(rng: Any) -> Any:
        if family.startswith("normals"):
            return synthetic("calibrated", int(family.split()[-1]), 16, rng)
        return calibrated(family, 16, rng)

    alpha = 0.01 / (len(CELLS) * len(EXACT))
    for method, found in pvalues(("type I", family), draw, EXACT, CELLS[family]).items():
        rate = Rate(int(np.sum(found <= LEVEL)), len(found))
        assert rate.within(LEVEL, alpha, upper_only=family in DISCRETE), (method, rate)
        # Uniform on k / 200, k = 1 .. 200; larger where statistics of discrete targets or of kernels tie.
        bound = stats.norm.isf(alpha) / np.sqrt(12 * len(found))
        assert found.mean() > 0.5 - bound, method
        if family not in DISCRETE:
            assert found.mean() < 0.5 + 0.02 + bound, method


def test_draws_that_are_taken_for_the_distribution_break_the_level() -> None:
    """The bounds can fail: few draws as if they were atoms reject too often (METHODS, exchangeability)."""

    def draw(rng: Any) -> Any:
        y, pred = calibrated(SAMPLES, 64, rng)
        return y, wc.Samples(pred.values, kind="atoms")

    rate = rates(("atoms",), draw, {"exact": {"method": "exact", "n_resamples": 39}}, 150)["exact"]
    assert not rate.within(LEVEL, 0.01 / (len(CELLS) * len(EXACT)))
    assert rate.value > 0.08


# -- power ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "d", "n", "least", "limit"), POWER_CELLS)
def test_auto_has_the_power_that_is_wanted(
    model: str, d: int, n: int, least: float, limit: float | None
) -> None:
    tests = {"auto": {"n_resamples": 99}}
    rate = rates(("power", model, d, n), lambda rng: synthetic(model, d, n, rng), tests, 40)["auto"]
    alpha = 0.01 / len(POWER_CELLS)
    assert stats.binom.cdf(rate.rejected, rate.total, least) >= alpha, rate
    if limit is not None:
        assert stats.binom.sf(rate.rejected - 1, rate.total, limit) >= alpha, rate


# -- the paper's tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 10])
def test_three_cumulants_keep_near_the_level(d: int) -> None:
    tests = {"pearson": {"method": "pearson", "kernel": PAPER_KERNEL}}
    rate = rates(("pearson", d), lambda rng: synthetic("calibrated", d, 16, rng), tests, 300)["pearson"]
    assert stats.binom.cdf(rate.rejected, rate.total, 0.04) >= 0.0025, rate
    assert stats.binom.sf(rate.rejected - 1, rate.total, 0.065) >= 0.0025, rate


@pytest.mark.parametrize("d", [1, 10])
def test_the_papers_tests_err_as_published(d: int) -> None:
    """Type I errors at n = 16, those of 500 data sets in the paper beside ours."""
    tests = {name: {**options, "kernel": PAPER_KERNEL} for name, options in OURS.items()}
    found = rates(("paper", d), lambda rng: synthetic("calibrated", d, 16, rng), tests, 100)
    for name, rate in found.items():
        published = round(500 * _published("calibrated", name, d, 16))
        counts = [[rate.rejected, rate.total - rate.rejected], [published, 500 - published]]
        assert float(stats.fisher_exact(counts).pvalue) >= 0.01 / 6, (name, rate, published / 500)


def test_the_mean_embedding_refuses_four_cases() -> None:
    y, pred = synthetic("calibrated", 1, 4, generators(("refused",), 0)[0])
    with pytest.raises(ValueError, match="needs more cases than locations, found 4 cases and 10 locations"):
        wc.calibration_test(y, pred, method="cme", kernel=PAPER_KERNEL, rng=0)
