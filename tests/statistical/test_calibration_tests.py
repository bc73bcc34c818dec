"""Error rates and power of the tests, by simulation with fixed seeds.

Small versions of the studies in `benchmarks`, on the same kinds of data sets. `designs` says how many of them
each rate needs, and what it finds: an error rate that is doubled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import wellcal as wc
from wellcal.engines import Tiled
from wellcal.hypotests import Bootstrap, MeanEmbedding

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are not part of the installed package

from benchmarks.calibration_studies import PAPER_KERNEL, POWER_CELLS
from benchmarks.data_sets import HARD, QUANTILES, SAMPLES, calibrated, hard, synthetic
from benchmarks.settings import FULL
from benchmarks.studies import ALPHA, generators

from .designs import CHECKS, check_rate, check_rates, rate_of

pytestmark = pytest.mark.filterwarnings(
    "ignore:with n_resamples", "ignore:p = .* is the smallest", "ignore:n SKCE_u is carried"
)
ENGINE = Tiled(threads=1)
HIGH = 0.2  # an error rate at which few data sets say much


def pvalues(key: tuple[Any, ...], r: int, draw: Any, tests: dict[str, dict[str, Any]]) -> dict[str, float]:
    """p-values of each test on data set r."""
    for_data, for_tests = generators(("fast", *key), r)
    y, pred = draw(for_data)
    return {
        name: wc.calibration_test(y, pred, rng=rng, engine=ENGINE, **options).pvalue
        for (name, options), rng in zip(tests.items(), for_tests.spawn(len(tests)), strict=True)
    }


# -- exact tests ------------------------------------------------------------------------------------

# With fewer resamples the smallest of several p-values has many ties, which make its test cautious.
EXACT = {
    name: {"method": name, "n_resamples": 199}
    for name in ("exact", "aggregated", "regularised", "auto", "cme")
}
CONTINUOUS = ("normals, d = 1", "normals, d = 10", SAMPLES)
FAMILIES = (*CONTINUOUS, "Bernoulli", "Categorical, 10 classes", "Poisson")


class WhenAsked(dict[str, bool]):
    """What is said of each test, found when it is asked for: those that are decided are asked no more."""

    def __init__(self, find: Callable[[str], bool]) -> None:
        super().__init__()
        self.find = find

    def __missing__(self, name: str) -> bool:
        return self.find(name)


@cache
def data_set(family: str, r: int) -> tuple[Any, Any, dict[str, Any]]:
    """Targets and predictions of data set r of a calibrated model, and a generator for each test."""
    for_data, for_tests = generators(("fast", "type I", family), r)
    if family.startswith("normals"):
        drawn = synthetic("calibrated", int(family.split()[-1]), 16, for_data)
    else:
        drawn = calibrated(family, 16, for_data)
    return *drawn, dict(zip(EXACT, for_tests.spawn(len(EXACT)), strict=True))


@cache
def exact_pvalue(family: str, r: int, name: str) -> float:
    """p-value of an exact test on data set r of a calibrated model."""
    y, pred, rng = data_set(family, r)
    return wc.calibration_test(y, pred, rng=rng[name], engine=ENGINE, **EXACT[name]).pvalue


def in_turn(families: tuple[str, ...], error: Callable[[float], bool]) -> Iterator[dict[str, bool]]:
    """Errors of the exact tests on data sets of all families, one after the other."""
    return (
        WhenAsked(lambda name, at=(family, r): error(exact_pvalue(*at, name)))
        for r in count()
        for family in families
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_exact_tests_keep_their_error_rate_for_each_family(family: str) -> None:
    check_rates("exact tests, each family", list(EXACT), in_turn((family,), lambda p: p <= HIGH))


def test_exact_tests_keep_their_error_rate() -> None:
    check_rates("exact tests, all families", list(EXACT), in_turn(FAMILIES, lambda p: p <= ALPHA))


def test_exact_tests_are_not_cautious() -> None:
    """p-values of continuous targets are about as often above a half as below: ties are few."""
    check_rates("exact tests are not cautious", list(EXACT), in_turn(CONTINUOUS, lambda p: p > 0.5))


def test_draws_that_are_taken_for_the_distribution_are_found() -> None:
    """The check can fail: two draws as if they were atoms reject far too often."""

    def rejected(r: int) -> bool:
        def draw(rng: Any) -> Any:
            y, pred = calibrated(SAMPLES, 16, rng)
            return y, wc.Samples(pred.values[:, :2], kind="atoms")

        return (
            pvalues(("atoms",), r, draw, {"exact": {"method": "exact", "n_resamples": 39}})["exact"] <= ALPHA
        )

    assert rate_of("exact tests, all families").run(map(rejected, count())).alarm


# -- where few cases carry a statistic ------------------------------------------------------------------

SETTINGS = (*HARD, QUANTILES)
HARD_N = FULL.hard_cases


@cache
def hard_pvalue(setting: str, r: int) -> float:
    """p-value of `cme` on data set r of a calibrated model."""
    test = {"cme": {"method": "cme", "n_resamples": 99}}
    return pvalues(("hard", setting), r, lambda rng: hard(setting, HARD_N, rng), test)["cme"]


REACHED = [setting for setting in SETTINGS if "0.0001" not in setting]  # there nothing ever happens
TIED = [setting for setting in REACHED if setting.startswith(("Bernoulli", "Poisson"))]


def hard_design(setting: str) -> tuple[str, float]:
    """The line of a setting, and a level such that p-values lie between its half and itself.

    Where hardly any target is not zero, p-values are 1 most of the time, and small the rest of it: none of
    them tells 0.2 from 0.4.
    """
    if setting in TIED:
        return "cme of few effective cases, with ties", ALPHA
    return "cme of few effective cases, each", HIGH


@pytest.mark.parametrize("setting", REACHED)
def test_cme_keeps_its_error_rate_where_few_cases_carry_it(setting: str) -> None:
    line, level = hard_design(setting)
    check_rate(line, (hard_pvalue(setting, r) <= level for r in count()))


@pytest.mark.parametrize("setting", [s for s in REACHED if not s.startswith("Poisson")])  # which is slow
def test_half_the_p_values_of_cme_are_found_there(setting: str) -> None:
    """The checks can fail, each of them."""
    line, level = hard_design(setting)
    assert rate_of(line).run(0.5 * hard_pvalue(setting, r) <= level for r in count()).alarm


def test_cme_keeps_its_error_rate_where_few_cases_carry_it_at_alpha() -> None:
    assert len(REACHED) == len(SETTINGS) - 1
    assert len(TIED) == 2
    found = (hard_pvalue(setting, r) <= ALPHA for r in count() for setting in REACHED)
    check_rate("cme of few effective cases, all", found)


@pytest.mark.filterwarnings("ignore:reference=")
@pytest.mark.parametrize("setting", ["100 classes", QUANTILES])
def test_the_limit_of_cme_is_found_to_be_wrong_there(setting: str) -> None:
    """The check can fail: F in place of resamples rejects far too often."""
    test = {"cme": {"method": MeanEmbedding(reference="F")}}

    def rejected(r: int) -> bool:
        return pvalues(("hard", setting), r, lambda rng: hard(setting, HARD_N, rng), test)["cme"] <= HIGH

    assert rate_of("cme of few effective cases, each").run(map(rejected, count())).alarm


# -- power ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "d", "n", "least", "limit"), POWER_CELLS)
def test_auto_has_the_power_that_is_wanted(
    model: str, d: int, n: int, least: float, limit: float | None
) -> None:
    name = f"power of auto: {model}, d = {d}"
    assert rate_of(name).null == pytest.approx(1.0 - least)

    def missed(r: int) -> bool:
        found = pvalues(("power", model, d, n), r, lambda rng: synthetic(model, d, n, rng), AUTO)
        return found["auto"] > ALPHA

    check_rate(name, map(missed, count()))


AUTO = {"auto": {"n_resamples": 99}}


# -- asymptotic tests ---------------------------------------------------------------------------------------

ASYMPTOTIC: dict[str, dict[str, Any]] = {
    "block of 2": {"method": "block", "block_size": 2},
    "bootstrap": {"method": "bootstrap", "n_resamples": 199},
    "bootstrap, authors' statistic": {"method": Bootstrap(statistic="authors"), "n_resamples": 199},
    "multiplier": {"method": "multiplier", "n_resamples": 199},
    "spectrum": {"method": "spectrum", "n_resamples": 199},
    "gamma": {"method": "gamma"},
    "pearson": {"method": "pearson"},
    "block of sqrt n": {"method": "block", "block_size": "sqrt"},
    "consistency": {"method": "consistency", "n_resamples": 19},
}
ONLY_HIGH = ("block of sqrt n", "consistency")  # whose rate at 0.05 is 0.03, and who is slow


@pytest.mark.parametrize("name", ASYMPTOTIC)
def test_asymptotic_tests_err_as_often_as_is_known(name: str) -> None:
    """In the paper's setting in one dimension, 3,000 data sets: 0.045 to 0.057 at alpha = 0.05, where halves
    of p-values have 0.091 to 0.109, and 0.17 to 0.22 at 0.2, where they have 0.37 to 0.41.
    """
    n = 16 if name == "consistency" else 64

    @cache
    def pvalue(r: int) -> float:
        test = {name: {"kernel": PAPER_KERNEL, **ASYMPTOTIC[name]}}
        return pvalues(("asymptotic", name), r, lambda rng: synthetic("calibrated", 1, n, rng), test)[name]

    check_rate("asymptotic tests, at 0.2", (pvalue(r) <= HIGH for r in count()))
    if name not in ONLY_HIGH:
        check_rate("asymptotic tests", (pvalue(r) <= ALPHA for r in count()))


@pytest.mark.parametrize("d", [1, 10])
def test_three_cumulants_keep_near_their_error_rate(d: int) -> None:
    """`pearson` at n = 16: at most 0.065 at alpha = 0.05, and not far below it."""
    test = {"pearson": {"method": "pearson", "kernel": PAPER_KERNEL}}

    @cache
    def pvalue(r: int) -> float:
        return pvalues(("pearson", d), r, lambda rng: synthetic("calibrated", d, 16, rng), test)["pearson"]

    check_rate("three cumulants", (pvalue(r) <= ALPHA for r in count()))
    check_rate("three cumulants are not cautious", (pvalue(r) > HIGH for r in count()))


def test_the_paper_s_mean_embedding_refuses_four_cases() -> None:
    y, pred = synthetic("calibrated", 1, 4, generators(("refused",), 0)[0])
    with pytest.raises(ValueError, match="needs more cases than locations, found 4 cases and 10 locations"):
        wc.calibration_test(y, pred, method=MeanEmbedding(reference="chi2"), kernel=PAPER_KERNEL, rng=0)


def test_all_power_cells_have_a_design() -> None:
    lines = {name for name in CHECKS if name.startswith("power of auto")}
    assert lines == {f"power of auto: {model}, d = {d}" for model, d, *_ in POWER_CELLS}
