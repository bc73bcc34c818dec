"""Measures of cases that come in parts are those of all cases at once, however they were cut."""

from __future__ import annotations

import copy
import warnings
import weakref
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import wellcal as wc
from wellcal.extend import family, parameter, real
from wellcal.measures.running import chosen_bins
from wellcal.reading import case_batches


@family
class WithoutSpread(wc.Predictions):
    """Of which nothing is known but a density."""

    loc: Any = parameter(real)

    def log_prob(self, y: Any) -> Any:
        return -abs(y - self.loc)


N, BLOCK = 437, 20
RNG = np.random.default_rng(7)
MU = RNG.normal(size=N)
RATE = RNG.gamma(2.0, 2.0, size=N)
PROBS = RNG.dirichlet(np.ones(3), size=N)
LABELS = np.array(["a", "b", "c"])
DRAWS = RNG.normal(MU[:, None], 1.0, size=(N, 9))

MODELS: dict[str, tuple[Any, Any]] = {
    "normal": (RNG.normal(MU, 1.0), wc.Normal(MU, np.full(N, 0.8))),
    "poisson": (RNG.poisson(RATE), wc.Poisson(RATE)),
    "bernoulli": ((RNG.random(N) < PROBS[:, 0]).astype(int), wc.Bernoulli(PROBS[:, 0])),
    "labels": (LABELS[(PROBS.cumsum(1) < RNG.random((N, 1))).sum(1)], wc.Categorical(PROBS, classes=LABELS)),
    "grades": (RNG.integers(1, 4, size=N), wc.Categorical(PROBS, support=[1.0, 2.0, 3.0])),
    "draws": (RNG.normal(MU, 1.0), wc.Samples(DRAWS, axis=1)),
    "quantiles": (RNG.normal(MU, 1.0), wc.Quantiles([0.1, 0.5, 0.9], np.sort(DRAWS[:, :3], axis=1))),
    "vectors": (
        RNG.normal(size=(N, 2)),
        wc.DiagonalNormal(np.stack([MU, RATE], axis=1), np.ones((N, 2))),
    ),
}
SCORES: dict[str, Callable[..., wc.Estimate]] = {
    "nll": wc.nll,
    "crps": wc.crps,
    "brier": wc.brier,
    "energy_score": wc.energy_score,
    "mse": wc.mse,
    "pinball_loss": wc.pinball_loss,
}
CUTS = ([0, N], [0, 1, 2, 100, 119, 300, N], [0, *range(7, N, 61), N])


def seen(name: str, cuts: list[int], **options: Any) -> wc.RunningMeasures:
    y, pred = MODELS[name]
    kernel = None if options.get("weights") is not None else wc.default_kernel(pred)
    weights = options.pop("weights", None)
    running = wc.RunningMeasures(kernel=kernel, block_size=BLOCK, rng=5, **options)
    for start, stop in pairwise(cuts):
        part = slice(start, stop)
        running.update(y[part], pred[part], weights=None if weights is None else weights[part])
    return running


def same(found: Any, wanted: Any) -> None:
    assert float(found) == pytest.approx(float(wanted), rel=1e-12, abs=1e-15)
    assert (found.standard_error is None) == (wanted.standard_error is None)
    if wanted.standard_error is not None:
        assert float(found.standard_error) == pytest.approx(float(wanted.standard_error), rel=1e-12)
    assert (found.name, found.estimator, found.n_samples) == (wanted.name, wanted.estimator, wanted.n_samples)


def check(measured: wc.Measured, name: str, weights: Any = None) -> None:
    """All measures against the functions for cases in memory."""
    y, pred = MODELS[name]
    for measure, found in measured.estimates.items():
        if measure in SCORES:
            same(found, SCORES[measure](y, pred, weights=weights))
        elif measure == "ece":
            same(found, wc.ece(y, pred))
            assert found.provenance == wc.ece(y, pred).provenance
        elif measure == "coverage":
            wanted = wc.interval_coverage(y, pred)
            same(found, wanted)
            for curve in ("levels", "coverage", "expected", "widths", "low", "high"):
                assert np.allclose(getattr(found, curve), getattr(wanted, curve), rtol=1e-12, atol=0.0)
        elif measure == "skce":
            kernel = wc.default_kernel(pred)
            same(found, wc.skce(y, pred, kernel=kernel, estimator="block", block_size=BLOCK))
        else:
            below = np.sort(wc.pit(y, pred, rng=5))
            assert (np.searchsorted(below, found.levels, side="right") / N == found.frequencies).all()
    for measure in measured.left_out:
        assert len(measured.left_out[measure]) > 20, "a reason is given"
    assert set(measured.estimates) | set(measured.left_out) >= set(SCORES) - {"energy_score"}


@pytest.mark.parametrize("name", MODELS)
def test_parts_add_up_to_the_whole(name: str) -> None:
    for cuts in CUTS:
        check(seen(name, list(cuts)).result(), name)


@pytest.mark.parametrize("name", ["normal", "labels"])
def test_parts_with_weights_add_up_too(name: str) -> None:
    weights = RNG.random(N) * (RNG.random(N) > 0.2)
    weights[:2] = 0.0  # a part without any
    for cuts in CUTS:
        measured = seen(name, list(cuts), weights=weights).result()
        assert "nll" in measured.estimates
        assert "weights have no meaning" in measured.left_out["pit"]
        check(measured, name, weights)


@pytest.mark.parametrize("name", ["normal", "labels", "poisson"])
def test_merging_is_as_good_as_seeing(name: str) -> None:
    """Blocks are those of each stream: where these hold whole blocks they are the same ones."""
    first, second = seen(name, [0, 7, 200]), seen(name, [200, 201, N])
    first.merge(second)
    y, pred = MODELS[name]
    measured = first.result()
    if name == "labels":
        assert "3 classes have none" in measured.left_out["pit"]
    elif name != "normal":  # values of the others were drawn by two generators
        measured.estimates.pop("pit")
    check(measured, name)
    odd, rest = seen(name, [0, 207]), seen(name, [207, N])
    odd.merge(rest)
    found = odd.result().estimates["skce"]
    assert found.provenance["blocks"] == N // BLOCK
    assert float(found) == pytest.approx(
        float(wc.skce(y, pred, kernel=found.kernel, estimator="block", block_size=BLOCK)), abs=0.01
    )
    empty = wc.RunningMeasures(block_size=BLOCK)
    empty.merge(first)
    assert empty.result() == first.result()
    first.merge(wc.RunningMeasures())
    assert first.n_samples == N


@pytest.mark.parametrize("name", ["normal", "labels"])
def test_all_pairs_of_few_cases_are_visited_however_they_are_cut(name: str) -> None:
    y, pred = MODELS[name]
    wanted = wc.skce(y, pred)
    for cuts in CUTS:
        first, rest = (wc.RunningMeasures(["skce"]) for _ in range(2))
        for start, stop in pairwise(cuts):
            part = y[start:stop].copy()
            (first if stop <= 300 else rest).update(part, pred[start:stop])
            part[:] = part[0]  # a stream may use its memory again
        first.merge(rest)
        same(first.result().estimates["skce"], wanted)


def test_blocks_of_many_cases_do_not_depend_on_the_first_part() -> None:
    n = 2_150
    mu = np.random.default_rng(0).normal(size=n) * np.linspace(1.0, 9.0, n)
    y, pred = mu + 0.5, wc.Normal(mu, np.ones(n))
    found: list[wc.Estimate] = []
    for cut in (1, 100, 2_100, n):
        first, rest = (wc.RunningMeasures(["skce"]) for _ in range(2))
        first.update(y[:cut], pred[:cut])
        for part in (slice(cut, 2_120), slice(max(cut, 2_120), n)):
            if part.start < part.stop:
                first.update(y[part], pred[part])
        rest.update(y[:30], pred[:30])
        for one, other in ((first, rest), (rest, first)):
            both = copy.deepcopy(one)
            both.merge(other)
            assert both.result().n_samples == n + 30
        found.append(first.result().estimates["skce"])
    assert {(float(one), one.estimator, one.kernel) for one in found} == {
        (float(found[0]), "block", wc.default_kernel(pred[:2_000]))
    }


def test_predictions_without_skce_have_the_other_measures() -> None:
    """What is found out from 2,000 cases on would take all other measures with it."""
    objects = wc.Samples(np.array([[{}, {}, {}]] * 2, dtype=object))
    with pytest.raises(TypeError, match="none of the measures"):
        wc.RunningMeasures().update(np.array([{}, {}], dtype=object), objects)
    running = wc.RunningMeasures()
    for _ in range(2):
        running.update(np.ones(1_200), WithoutSpread(np.ones(1_200)))
    found = running.result()
    assert list(found.estimates) == ["nll"]
    assert "interquartile range" in found.left_out["skce"]


def test_an_error_changes_nothing() -> None:
    y, pred = MODELS["poisson"]
    running = seen("poisson", [0, 100])
    before = running.result()
    with pytest.raises(ValueError, match="y is not finite"):
        running.update(np.array([1.0, np.nan]), pred[:2])
    with pytest.raises(ValueError, match="some of the cases only"):
        running.update(y[:2], pred[:2], weights=np.ones(2))
    assert running.result() == before
    running.update(y[100:], pred[100:])
    check(running.result(), "poisson")  # numbers that were drawn for the error are drawn again


def test_what_is_refused() -> None:
    y, pred = MODELS["normal"]
    with pytest.raises(ValueError, match="unknown measure 'nlll'"):
        wc.RunningMeasures(["nlll"])
    with pytest.raises(TypeError, match="list of names"):
        wc.RunningMeasures("nll")
    with pytest.raises(ValueError, match="empty list"):
        wc.RunningMeasures([])
    with pytest.raises(ValueError, match="block_size"):
        wc.RunningMeasures(block_size=1)
    with pytest.raises(ValueError, match="no case was seen yet"):
        wc.RunningMeasures().result()
    with pytest.raises(TypeError, match="brier needs"):
        wc.RunningMeasures(["brier"]).update(y, pred)
    few = wc.RunningMeasures(["skce"], block_size=30)
    few.update(y[:9], pred[:9])
    with pytest.raises(ValueError, match="needs 30 cases at least"):
        few.result()
    nothing = wc.RunningMeasures(["nll"])
    nothing.update(y, pred, weights=np.zeros(N))
    with pytest.raises(ValueError, match="zero for all cases"):
        nothing.result()
    with pytest.raises(ValueError, match="weights must not be negative in row 1"):
        wc.RunningMeasures(["nll"]).update(y[:2], pred[:2], weights=[1.0, -1.0])


@pytest.mark.parametrize(
    ("others", "said"),
    [({"measures": ["nll"]}, "other has the measures nll"), ({"block_size": 30}, "other kernels or blocks")],
)
def test_what_differs_is_not_merged(others: dict[str, Any], said: str) -> None:
    y, pred = MODELS["normal"]
    first, second = wc.RunningMeasures(["skce"]), wc.RunningMeasures(**{"measures": ["skce"], **others})
    for running in (first, second):
        running.update(y, pred)
    with pytest.raises(ValueError, match=said):
        first.merge(second)


def test_coverage_is_told_beside_that_of_a_calibrated_model() -> None:
    """The ends of ten draws hold 9/11 of the targets, however wide an interval was asked for."""
    told: list[str] = []
    for pred in (wc.Samples(np.arange(20.0).reshape(2, 10), axis=1), wc.Normal([5.0, 15.0], [1.0, 1.0])):
        running = wc.RunningMeasures(["coverage"], levels=[0.95])
        running.update([5.0, 15.0], pred)
        told.append(repr(running.result()).splitlines()[-1].strip())
    assert told == [
        "coverage  100.0% in 95% intervals (81.8% if calibrated)",
        "coverage  100.0% in 95% intervals",
    ]


def test_a_result_is_read_again() -> None:
    for name in ("normal", "labels"):
        measured = seen(name, [0, N]).result()
        assert wc.Measured.from_json(measured.to_json()) == measured


def test_infinite_scores_of_a_later_part_are_added_without_a_warning() -> None:
    running = wc.RunningMeasures(["nll", "mse"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for p in (0.3, 0.0, 0.6, 0.0):
            running.update([1, 0], wc.Bernoulli([p, 0.5]))
    assert float(running.result().estimates["nll"]) == np.inf


def test_squared_errors_of_means_that_are_not_defined_are_left_out() -> None:
    pred = wc.StudentT(np.array([1.0, 3.0]), np.zeros(2), np.ones(2))
    every, chosen = wc.RunningMeasures(), wc.RunningMeasures(["mse"])
    for running in (every, chosen):
        running.update([0.5, 0.5], pred)
    assert "mse" not in every.result().estimates
    assert every.result().left_out["mse"].startswith("mse needs predictions with a mean, and some have none")
    with pytest.raises(ValueError, match="mse needs predictions with a mean"):
        chosen.result()


def test_infinite_scores_stay_so() -> None:
    pred = wc.Bernoulli(np.array([1.0, 0.5, 0.5]))
    running = wc.RunningMeasures(["nll"])
    for part in (slice(0, 1), slice(1, 3)):
        running.update(np.array([0, 1, 0])[part], pred[part])
    found = running.result().estimates["nll"]
    assert float(found) == np.inf == float(wc.nll([0, 1, 0], pred))
    assert np.isnan(found.standard_error)


def test_few_parts_of_a_file_are_held_at_a_time(tmp_path: Path) -> None:
    """Of 40 parts that are read three are there at most: one that is looked at, and two on their way."""
    n = 4000
    mu = np.zeros(n)
    table = pa.table({"y": np.random.default_rng(0).normal(size=n), "mu": mu, "sigma": mu + 1.0})
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=500)
    alive: list[weakref.ref[Any]] = []
    running = wc.RunningMeasures(block_size=30)
    most = count = 0
    for cases in case_batches(tmp_path / "p.parquet", options={"rows": 100}):
        running.update(cases.y, cases.pred)
        alive = [ref for ref in (*alive, weakref.ref(cases.pred.loc)) if ref() is not None]
        most, count = max(most, len(alive)), count + 1
    assert (count, running.n_samples) == (40, n)
    assert most <= 3


@pytest.mark.parametrize("name", ["poisson", "quantiles"])
def test_bins_of_equal_mass_are_those_of_the_first_cases(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However cases are cut into parts, and as `ece` with these bins has it."""
    assert "ece" in seen(name, [0, N]).result().estimates
    monkeypatch.setattr(chosen_bins, "CHOOSING", 150)
    y, pred = MODELS[name]
    features = pred.values if name == "quantiles" else pred.rate[:, None]
    rule = wc.EqualMassBins().cuts(features[:150])
    wanted = wc.ece(y, pred, binning=rule)
    assert len(np.unique(rule.cells(features[:150]))) == 10
    for cuts in CUTS:
        found = seen(name, list(cuts), measures=["ece"]).result().estimates["ece"]
        same(found, wanted)
        assert found.provenance == wanted.provenance
        assert found.provenance["binning"] == "EqualMassBins(n_bins=10) of the first 150 cases"


def test_merged_streams_keep_their_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen_bins, "CHOOSING", 150)
    y, pred = MODELS["poisson"]
    parts = [slice(0, 200), slice(200, N)]
    merged, other = (seen("poisson", [part.start, part.stop], measures=["ece"]) for part in parts)
    merged.merge(other)
    found = merged.result().estimates["ece"]
    cells = [
        wc.EqualMassBins().cuts(pred.rate[part, None][:150]).cells(pred.rate[part, None]) for part in parts
    ]
    same(found, wc.ece(y, pred, binning=np.concatenate([cells[0], 10 + cells[1]])))
    few = seen("poisson", [0, 50], measures=["ece"])
    few.merge(seen("poisson", [50, N], measures=["ece"]))
    # Fewer cases than choose bins are put into those of the others.
    rule = wc.EqualMassBins().cuts(pred.rate[50:200, None])
    same(few.result().estimates["ece"], wc.ece(y, pred, binning=rule))


def test_ece_of_counts_that_are_nearly_continuous_is_left_out_with_the_reason() -> None:
    running = wc.RunningMeasures(rng=0, block_size=2)
    running.update(np.array([9_000_000.0, 5e6]), wc.Poisson(np.array([9e6, 5e6])))
    assert "spread over" in running.result().left_out["ece"]


@pytest.mark.parametrize("size", [3, 200])
def test_outcomes_on_quantiles_are_counted_over_all_parts(size: int) -> None:
    rng, levels = np.random.default_rng(3), np.array([0.1, 0.5, 0.9])
    rate = rng.gamma(3.0, 0.5, 200)
    y, pred = rng.poisson(rate), wc.Quantiles(levels, stats.poisson.ppf(levels, rate[:, None]))
    chosen = wc.RunningMeasures(["coverage"])
    running, other = wc.RunningMeasures(), wc.RunningMeasures()
    for k, start in enumerate(range(0, 200, size)):
        part = slice(start, start + size)
        chosen.update(y[part], pred[part])
        (other if k % 2 else running).update(y[part], pred[part])
    running.merge(other)
    found = running.result()
    assert set(found.estimates) == {"pinball_loss"}
    for name in ("ece", "coverage", "pit", "skce"):
        assert "equals its own quantile of level 0.5 in 76 of 200 cases: where" in found.left_out[name]
    with pytest.raises(ValueError, match="in 76 of 200 cases"):
        chosen.result()


@pytest.mark.parametrize("size", [7, 60])
def test_what_cases_forbid_is_shown_with_the_reason_and_the_first_row(size: int) -> None:
    """Unlike what a family can never have; and a measure that was asked for says where the first one is."""
    y, pred = np.full(60, 5.5), wc.Quantiles([0.25, 0.75], np.tile([0.0, 2.0], (60, 1)))
    y[13::2] = 2.0
    parts = [slice(start, start + size) for start in range(0, 60, size)]
    chosen, running, other = wc.RunningMeasures(["pit"]), wc.RunningMeasures(), wc.RunningMeasures()
    for k, part in enumerate(parts):
        chosen.update(y[part], pred[part])
        (other if k else running).update(y[part], pred[part])
    running.merge(other)
    found = running.result()
    assert found.forbidden == ("ece", "coverage", "pit", "skce")
    told = [text for name, text in found.in_words().rows if name == "left out"]
    assert told == [f"ECE, coverage, PIT, SKCE: {found.left_out['pit']}"]
    assert "nll" in found.left_out
    with pytest.raises(wc.RowError, match=r"level 0\.75 in 24 of 60 cases, first in row 13: where"):
        chosen.result()
    stored = found.to_dict()
    assert wc.Measured.from_dict(stored) == found
    del stored["forbidden"]  # by an earlier version
    assert wc.Measured.from_dict(stored).forbidden == ()


def test_ties_among_the_first_cases_do_not_leave_out_what_all_have() -> None:
    rng = np.random.default_rng(8)
    y, pred = rng.normal(size=2000), wc.Quantiles([0.25, 0.75], np.tile([-0.6745, 0.6745], (2000, 1)))
    y[:5] = 0.6745  # more than a few of ten, and few of all
    running = wc.RunningMeasures(["coverage", "pit"])
    running.update(y[:10], pred[:10])
    running.update(y[10:], pred[10:])
    assert float(running.result().estimates["coverage"]) == float(wc.interval_coverage(y, pred))
