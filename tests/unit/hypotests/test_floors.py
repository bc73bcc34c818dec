"""A p-value at its floor is a bound, and is shown as one wherever p-values are shown."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wellcal as wc
from wellcal.hypotests import METHODS, Block, Exact, Omnibus, Outcome
from wellcal.hypotests.parts.part import Evaluated
from wellcal.hypotests.pvalues import rank_pvalues, ranked
from wellcal.hypotests.resampling.components import Component, smallest_ranks
from wellcal.hypotests.resampling.more_resamples import with_more_resamples
from wellcal.hypotests.setup import make_setup
from wellcal.hypotests.tails import SMALLEST
from wellcal.measures.presentation import at_floor, pvalue_phrase
from wellcal.monitoring.status import MonitorStatus
from wellcal.reporting.segmenting import adjusted_pvalues, segments_alone
from wellcal.reporting.tables import segments_table

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
def test_of_several_statistics_is_no_higher(seed: int) -> None:
    """Beyond all drawn sets in one statistic, the observed set is the first of all."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(5, 30))
    values[seed % 5, 0] = 100.0
    weights = (1.0, 0.5, 0.3, 1.0, 0.6)
    parts = [Evaluated(str(k), weights[k], values[k]) for k in range(5)]
    found = smallest_ranks(parts)
    assert found.pvalues[0] == found.floor == pytest.approx(1 / 30)


def test_ties_with_drawn_sets_are_no_floor() -> None:
    """More resamples would not make it smaller."""
    found = ranked(np.array([1.0, 1.0, 1.0, 1.0]))
    assert not at_floor(float(found.pvalues[0]), found.floor)
    both = smallest_ranks([Evaluated("a", 1.0, np.ones(4)), Evaluated("b", 0.5, np.ones(4))])
    assert not at_floor(float(both.pvalues[0]), both.floor)


# -- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", RESAMPLING)
def test_results_say_so(method: str) -> None:
    result = shifted(Omnibus(most_resamples=0) if method == "omnibus" else method)
    assert result.at_floor
    assert result.pvalue_floor == pytest.approx(1 / 200)
    text = "p <= 0.005, the smallest that 199 resamples can give"
    assert result.pvalue_statement == text
    assert repr(result).startswith(f"Miscalibrated ({text})")
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
    assert re.match(r"No miscalibration found \(p = 0\.\d+\)\.", repr(result))
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
    assert "distribution <= 0.001" in repr(result)  # tails are fitted to 999 sets, whatever was asked for
    assert "SKCE <= 0.005" in repr(result)
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


# -- more resamples where the case is clear -------------------------------------------------------------


def test_sums_over_cases_are_drawn_on() -> None:
    result = shifted("omnibus", n_resamples=None)
    assert result.pvalue == pytest.approx(1e-5)
    assert result.pvalue_statement == "p <= 1.0e-05, the smallest that 99,999 resamples can give"
    assert result.provenance["resamples_of_all_parts"] == 999
    assert shifted(Omnibus(most_resamples=5000)).pvalue_floor == pytest.approx(1 / 5001)
    assert shifted(Omnibus(most_resamples=5000), n_resamples=19).provenance["resamples_of_all_parts"] == 19
    with pytest.raises(ValueError, match="most_resamples must be a whole number"):
        Omnibus(most_resamples=-1)


@pytest.mark.parametrize("method", ["auto", "omnibus", Omnibus(pairs=False)], ids=str)
@pytest.mark.parametrize("count", [199, 999])
def test_a_number_that_is_given_is_what_is_drawn(method: Any, count: int) -> None:
    result = shifted(method, n_resamples=count)
    assert result.provenance["n_resamples"] == count
    assert result.pvalue == result.pvalue_floor == pytest.approx(1 / (count + 1))
    assert f"the smallest that {count} resamples can give" in result.pvalue_statement


def test_the_same_holds_wherever_a_test_is_run() -> None:
    """The report, a comparison and recalibration pass on what they were given, or that nothing was."""
    y = MU + 3.0
    found = wc.report(y, PRED, rng=0, n_resamples=199).models[0].test
    pair = wc.compare(y, PRED, PRED, rng=0, n_resamples=199)
    mended = wc.recalibration.cross_fit(y, PRED, rng=0, n_resamples=199)
    for test in (found, *pair.tests, mended.before):
        assert test.provenance["n_resamples"] == 199
    assert wc.compare(y, PRED, PRED, rng=0).tests[0].provenance["n_resamples"] == 99_999


def test_drawing_on_ends_where_it_tells_more() -> None:
    """A p-value of some 5e-3 needs no more than a second stage."""
    y = MU + np.random.default_rng(3).normal(size=N) + 0.42
    on = Omnibus(most_resamples=9999)
    found = [wc.calibration_test(y, PRED, method=on, rng=seed, n_resamples=99) for seed in range(6)]
    drawn = [result for result in found if result.provenance["n_resamples"] > 99]
    assert drawn
    for result in drawn:
        assert result.pvalue <= 0.01
        assert result.provenance["n_resamples"] == 999
        assert not result.at_floor


def test_drawing_on_is_exact() -> None:
    """Over exchangeable sets, each in turn the observed one: P(p <= a) <= a below the first floor, too."""

    component = Component(
        lambda targets: targets[:, 0], lambda values: [Evaluated("first target", 1.0, values)]
    )
    pred, count, floor = wc.Normal(np.zeros(2), np.ones(2)), 4000, 1 / 20
    rng = np.random.default_rng(7)
    pvalues = np.empty(count)
    for k in range(count):
        setup = make_setup(rng.normal(size=2), pred, n_resamples=19, rng=rng)
        drawn = rng.normal(size=19)
        rank = (1 + np.count_nonzero(drawn >= setup.targets[0])) / 20
        first = Outcome(0.0, rank, "t", floor=floor)
        pvalues[k] = with_more_resamples(setup, component, first, 199).pvalue
    for alpha in (0.01, 0.02, 0.05, 0.1):
        assert np.count_nonzero(pvalues <= alpha) <= stats.binom(count, alpha).ppf(1 - 1e-4)
    assert np.count_nonzero(pvalues <= 0.01) >= stats.binom(count, 0.01).ppf(1e-4)


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
    found = wc.compare(y, PRED, wc.Normal(MU + 1.2, np.ones(N)), rng=0, n_resamples=99)
    assert re.search(r"calibration test: p <= \S+ the smallest that [\d,]+ resamples can give", repr(found))


def test_cross_fitting() -> None:
    rng = np.random.default_rng(0)
    mu = rng.normal(size=120)
    found = wc.recalibration.cross_fit(
        rng.normal(mu, 3.0), wc.Normal(mu, np.ones(120)), method="exact", n_resamples=99, rng=0
    )
    assert re.search(r"before +p <= \S+ the smallest that", repr(found))


def test_adjusted_for_segments_it_is_a_bound_too() -> None:
    which = np.repeat(["a", "b"], N // 2)
    y = np.random.default_rng(4).normal(MU + 1.5 * (which == "a"), 1.0)
    found = segments_alone(y, PRED, {"at": which}, seed=0, n_resamples=199)
    first, second = found.segments
    assert first.test is not None
    assert first.test.at_floor
    assert first.verdict.startswith(
        "Miscalibrated for at = a (p <= 0.01, the smallest that resampling can give for 2 segments together)"
    )
    shown = [row[2].text for row in segments_table(found).rows]
    assert shown == ["<= 0.01", f"{second.pvalue:.3g}"]
    assert second.pvalue_floor is None
    assert found.figures["segments"].display.rows[0] == "for at = a, 30 cases (p <= 0.01)"


def test_what_others_bound_is_a_bound() -> None:
    """Of two segments at .01 and .012, the second is adjusted to what the first one is."""
    seen: Any = [SimpleNamespace(pvalue=p, pvalue_floor=0.01) for p in (0.01, 0.012, 0.2)]
    assert adjusted_pvalues(seen) == [(0.03, 0.03), (0.03, 0.03), (0.2, None)]
