"""A p-value at its floor is a bound, and is shown as one wherever p-values are shown."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.hypotests import METHODS, Aggregated, Block, Exact, Omnibus, Regularised
from wellcal.hypotests.pvalues import combined, combined_pvalues, rank_pvalues, ranked
from wellcal.hypotests.tails import SMALLEST
from wellcal.measures.presentation import at_floor, pvalue_phrase
from wellcal.monitoring.status import MonitorStatus

N = 60
MU = np.linspace(-1.0, 1.0, N)
PRED = wc.Normal(MU, np.ones(N))
RESAMPLING = [name for name, kind in METHODS.items() if kind.resamples]


def shifted(method: Any, **options: Any) -> Any:
    return wc.calibration_test(MU + 1.5, PRED, **{"method": method, "rng": 0, "n_resamples": 199, **options})


# -- what the floor is ----------------------------------------------------------------------------


def test_of_one_statistic() -> None:
    values = np.random.default_rng(0).normal(size=40)
    assert ranked(values).floor == 1 / 40
    np.testing.assert_array_equal(ranked(values).pvalues, rank_pvalues(values))


@pytest.mark.parametrize("seed", range(20))
def test_of_several_statistics_is_what_the_decisive_one_could_give(seed: int) -> None:
    """Pushed beyond all drawn sets in the statistic that decides, the observed set has this p-value."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(3, 30))
    weights = rng.choice([0.3, 0.5, 1.0], 3)
    found = combined([(w, ranked(v)) for w, v in zip(weights, values, strict=True)])
    parts = [(w, rank_pvalues(v)) for w, v in zip(weights, values, strict=True)]
    np.testing.assert_array_equal(found.pvalues, combined_pvalues(parts))
    decisive = int(np.argmin([p[0] / w for w, p in parts]))
    values[decisive, 0] = 100.0
    pushed = [(w, rank_pvalues(v)) for w, v in zip(weights, values, strict=True)]
    # Others lose a place where the observed set overtakes them: at most that is the difference.
    assert found.floor - 1 / 30 <= combined_pvalues(pushed)[0] + 1e-12 <= found.pvalues[0] + 1e-12
    again = combined([(w, ranked(v)) for w, v in zip(weights, values, strict=True)])
    assert at_floor(float(again.pvalues[0]), again.floor)


def test_ties_with_drawn_sets_are_no_floor() -> None:
    """More resamples would not make it smaller."""
    found = ranked(np.array([1.0, 1.0, 1.0, 1.0]))
    assert not at_floor(float(found.pvalues[0]), found.floor)
    both = combined([(1.0, found), (0.5, found)])
    assert not at_floor(float(both.pvalues[0]), both.floor)


# -- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", RESAMPLING)
def test_results_say_so(method: str) -> None:
    result = shifted(method)
    assert result.at_floor
    assert result.pvalue_floor == pytest.approx(1 / 200)
    text = "p <= 0.005, the smallest that 199 resamples can give"
    assert result.pvalue_statement == text
    assert repr(result).startswith(f"Calibration test: {text} (60 cases, {method})")
    assert "p &lt;= 0.005, the smallest that 199 resamples can give" in result._repr_html_()
    plain = json.loads(result.to_json())
    assert plain["at_floor"] is True
    assert plain["pvalue_floor"] == pytest.approx(1 / 200)
    again = wc.TestResult.from_json(result.to_json())
    assert repr(again) == repr(result)


@pytest.mark.parametrize("method", RESAMPLING)
def test_other_p_values_are_equal_to_themselves(method: str) -> None:
    y = MU + np.random.default_rng(1).normal(size=N)
    result = wc.calibration_test(y, PRED, method=method, rng=0, n_resamples=199)
    assert result.pvalue > 0.05
    assert not result.at_floor
    assert re.match(r"Calibration test: p = 0\.\d+ \(60", repr(result))
    assert result.to_dict()["at_floor"] is False


@pytest.mark.parametrize("method", ["pearson", "gamma", Block(2)], ids=str)
def test_without_resamples_there_is_none(method: Any) -> None:
    result = shifted(method)
    assert result.pvalue_floor is None
    assert not result.at_floor
    assert "smallest" not in result.pvalue_statement


def test_numbers_have_one_too() -> None:
    assert pvalue_phrase(SMALLEST) == pvalue_phrase(0.0) == "p <= 2.3e-308, the smallest number"
    assert "p <= 2.3e-308" in repr(MonitorStatus(9, np.inf, 999.0, SMALLEST, alarm=True, alarm_at=3))
    sure = wc.Monitor(reference=PRED, rng=0)
    sure._state = replace(sure._state, largest=2000.0)
    assert sure.status.pvalue == SMALLEST


@pytest.mark.parametrize("count", [19, 99, 150, 299, 666, 999, 14_999, 123_456])
def test_the_number_is_never_below_the_p_value(count: int) -> None:
    floor = 1.0 / (count + 1)
    phrase = pvalue_phrase(floor, floor, count)
    shown = float(phrase.split()[2].rstrip(","))
    assert floor * (1 - 1e-9) <= shown <= 1.1 * floor
    assert phrase.endswith(f"the smallest that {count:,} resamples can give")


def test_parts_of_a_test() -> None:
    result = shifted("omnibus")
    assert "centre <= 0.005" in repr(result)
    y = MU + np.random.default_rng(1).normal(size=N)
    assert "<=" not in repr(wc.calibration_test(y, PRED, rng=0, n_resamples=199)).split("chosen")[0]


def test_a_user_s_own_method_that_draws_nothing_has_none() -> None:
    class Sure(wc.hypotests.Method):
        def run(self, setup: Any) -> Any:
            return wc.hypotests.Outcome(1.0, 1e-20, "t")

    result = wc.calibration_test(MU, PRED, method=Sure())
    assert result.pvalue_floor is None
    assert result.pvalue_statement == "p = 1.0e-20"


def test_an_early_stop_is_no_floor() -> None:
    y = MU + np.random.default_rng(1).normal(size=N)
    result = wc.calibration_test(y, PRED, method=Exact(stop_after=1), rng=0, n_resamples=199)
    assert not result.at_floor


# -- the floor of the smallest p-value --------------------------------------------------------------


def only_one_part_sees_it(n_resamples: int) -> Any:
    """Targets that are all too close to their predictions: surprise alone is beyond its resamples."""
    y = MU + 0.7 * np.random.default_rng(5).choice([-1.0, 1.0], N)
    return wc.calibration_test(y, PRED, method="omnibus", rng=0, n_resamples=n_resamples)


@pytest.mark.filterwarnings("ignore:with n_resamples")
def test_the_smallest_p_value_stops_earlier() -> None:
    with pytest.warns(UserWarning, match=r"smallest that 99 resamples can give here.*cannot reject at alpha"):
        result = only_one_part_sees_it(99)
    assert result.at_floor
    assert result.pvalue_floor > 0.05
    assert "the smallest that 99 resamples can give" in repr(result)


def test_more_resamples_lower_it() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = only_one_part_sees_it(1999)
    assert result.pvalue < 0.02


@pytest.mark.parametrize(
    ("method", "count", "warned"),
    [
        (Omnibus(), 118, True),
        (Omnibus(), 119, False),
        (Omnibus(pairs=False), 98, True),
        (Omnibus(pairs=False), 99, False),
        (Regularised(), 138, True),
        (Regularised(), 139, False),
        (Aggregated(), 238, True),
        (Aggregated(), 239, False),
        (Exact(), 99, False),
    ],
    ids=str,
)
def test_too_few_resamples_for_the_smallest_of_several(method: Any, count: int, warned: bool) -> None:
    y = MU + np.random.default_rng(1).normal(size=N)
    with warnings.catch_warnings(record=True, action="always") as seen:
        wc.calibration_test(y, PRED, method=method, rng=0, n_resamples=count)
    found = [str(w.message) for w in seen if "only one part of method" in str(w.message)]
    assert bool(found) == warned
    if warned:
        assert f"n_resamples={count}" in found[0]
        assert "alpha = 0.05; take n_resamples=999" in found[0]


def test_every_method_has_a_floor_of_one_part() -> None:
    for kind in METHODS.values():
        assert kind().floor_of_one_part(999) >= 1 / 1000
        assert kind().floor_of_one_part(999) <= 0.02


# -- other places that show p-values ----------------------------------------------------------------


def test_witness_groups_and_their_plain_form() -> None:
    found = wc.witness(MU + 1.5, PRED, rng=0, n_resamples=199)
    assert found.groups[0].at_floor
    text = "p <= 0.005, the smallest that 199 resamples can give"
    assert repr(found.groups[0]).endswith(f"; {text}")
    assert text in repr(found)
    assert found.to_dict()["at_floor"] is True
    assert found.to_dict()["groups"][0]["at_floor"] is True
    assert not replace(found.groups[0], pvalue=0.01).at_floor


def test_compare() -> None:
    y = MU + 1.5
    found = wc.compare(y, PRED, wc.Normal(MU + 1.2, np.ones(N)), rng=0)
    assert re.search(r"calibration test: p <= \S+ the smallest that [\d,]+ resamples can give", repr(found))


def test_cross_fitting() -> None:
    rng = np.random.default_rng(0)
    mu = rng.normal(size=120)
    found = wc.scaling.cross_fit(
        rng.normal(mu, 3.0), wc.Normal(mu, np.ones(120)), method="exact", n_resamples=99, rng=0
    )
    assert re.search(r"before +p <= \S+ the smallest that", repr(found))
