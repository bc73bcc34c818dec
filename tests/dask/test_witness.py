"""Groups in partitions are those of the same cases in memory, and their numbers those of all cases."""

from __future__ import annotations

import re
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from tests.dask.conftest import BLOCK
from tests.dask.examples import SMOOTH, cut, example, in_memory, partitioned, tied

import wellcal as wc
import wellcal.dask
from wellcal.dask.building import as_cases
from wellcal.dask.partitioned import computed_sum
from wellcal.dask.witness_sums import Outline, ScannedCases, Sought, outlined, overview_of, sides_of
from wellcal.problem.locations import draw_locations
from wellcal.witnesses.candidates import Candidates
from wellcal.witnesses.directions import LEVELS, directions_in
from wellcal.witnesses.regions import Listed, grids_of
from wellcal.witnesses.summaries import Cases, Overview

N = BLOCK + 600
OPTIONS = {"rng": 1, "n_resamples": 19}

pytestmark = pytest.mark.usefixtures("few_cases_are_many")


def wrong(name: str) -> Any:
    """An example whose targets are too high where much is predicted."""
    y, family, parameters = example(name, N)
    if name == "categorical":
        return np.where((parameters[0][:, 2] > 0.5) & (np.arange(N) % 2 == 0), 2, y), family, parameters
    some = (np.arange(N) % 3 == 0).reshape(-1, *(1,) * (y.ndim - 1))
    return y + np.where(y > 1.0, 1.0, 0.0) * some, family, parameters


@pytest.mark.parametrize(
    ("name", "resamples", "weighted"),
    [
        ("normal", 19, False),
        ("normal", 19, True),
        ("categorical", 119, False),
        ("vectors", 119, False),
        ("vectors", 79, True),
    ],
)
def test_pvalues_are_those_of_cases_in_memory(
    name: str, resamples: int, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cuts come from some of the cases, the same ones wherever these are."""
    monkeypatch.setattr("wellcal.witnesses.axes.MOST_RANKED", 2000)
    monkeypatch.setattr("wellcal.dask.sampling.SAMPLE", 500)
    if not weighted:  # a round for each hundred of resamples, which come in one round otherwise
        monkeypatch.setattr("wellcal.dask.witnessing.MOST_KEPT", 1)
    found = wrong(name)
    options: dict[str, Any] = {"rng": 1, "n_resamples": resamples, "max_groups": 2, "locations": 5}
    options["kernel"] = SMOOTH if name == "vectors" else None
    weights = np.arange(N) % 4 * 0.7 if weighted else None  # a quarter does not count
    thirds = np.arange(N) % 3
    expected = wc.witness(*in_memory(found), weights=weights, segments=thirds, **options)
    parts = None if weights is None else cut(weights, 900)
    result = wc.witness(*partitioned(found, 1100), weights=parts, segments=cut(thirds, N), **options)
    assert result.provenance.get("weights") == expected.provenance.get("weights")
    for name_of in ("statistic", "observed", "expected", "n_samples"):
        mine, theirs = ([getattr(s, name_of) for s in one.segments] for one in (result, expected))
        assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    assert result.pvalue == expected.pvalue
    assert result.provenance["candidates"] == expected.provenance["candidates"]
    for curve in ("values", "low", "high", "pvalues"):  # which any other draw would change
        assert_allclose(getattr(result, curve), getattr(expected, curve), rtol=1e-9, atol=1e-15)
    assert (result.n_samples, result.kernel) == (N, expected.kernel)
    assert result.statements
    assert "500 of 2,648 cases" in result.provenance["sample"]
    assert len(result.contributions) == 500
    assert wc.Witness.from_json(result.to_json()).groups[0].n_samples == result.groups[0].n_samples


def test_of_draws_all_cases_and_segments_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups by mean or spread of draws change when these are swapped: in partitions nobody looks at them."""
    monkeypatch.setattr("wellcal.dask.sampling.SAMPLE", 500)
    found, options = wrong("draws"), {"rng": 1, "n_resamples": 19, "locations": 5}
    thirds = np.arange(N) % 3
    expected = wc.witness(*in_memory(found), segments=thirds, **options)
    result = wc.witness(*partitioned(found, 1100), segments=cut(thirds, N), **options)
    for name in ("statistic", "observed", "expected", "n_samples"):
        mine, theirs = ([getattr(s, name) for s in one.segments] for one in (result, expected))
        assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    for curve in ("values", "low", "high", "pvalues"):
        assert_allclose(getattr(result, curve), getattr(expected, curve), rtol=1e-9, atol=1e-15)
    assert {group.kind for group in result.groups} <= {"all", "segment"}
    assert result.groups[0].where == "in segment 0"
    assert "all cases and segments" in result.provenance["groups"]
    assert "all cases and segments, none by prediction" in repr(result)
    assert "over all cases and in every segment;" in repr(result)
    assert "in every group" in repr(expected)


@pytest.mark.parametrize(
    ("by", "said", "tested"),
    [
        (None, "All cases together are in no direction further", "over all cases;"),
        (
            3,
            "Neither all cases together nor any segment is in any direction",
            "over all cases and in every segment;",
        ),
    ],
)
def test_of_draws_the_answer_says_what_was_looked_at(
    by: int | None, said: str, tested: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is said of groups by prediction, at which nobody looked."""
    monkeypatch.setattr("wellcal.dask.sampling.SAMPLE", 500)
    options: dict[str, Any] = {"rng": 1, "n_resamples": 19, "locations": 2}
    segments = None if by is None else cut(np.arange(N) % by, N)
    result = wc.witness(*partitioned(example("draws", N), 1100), segments=segments, **options)
    assert result.pvalue > 0.05, "an example in which nothing is found"
    for found in (result, wc.Witness.from_json(result.to_json())):
        words = found.in_words()
        assert words.headline.startswith(said)
        assert words.headline.endswith("cases); at groups by prediction nobody looked.")
        assert tested in dict(words.rows)["tested"]
        assert dict(words.rows)["groups"] == result.provenance["groups"]
    assert result.provenance["groups"].startswith("all cases and segments" if by else "all cases, none")
    display = wc.displays.WitnessDisplay.from_result(result)
    assert (display.looked_at, "roup" in display.finding) == (result.provenance["groups"], False)


def test_partitions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wellcal.dask.sampling.SAMPLE", 500)
    found, options = example("bernoulli", N), {"rng": 2, "n_resamples": 99}
    results = [wc.witness(*partitioned(found, size), **options) for size in (N, (N - 1, 1), 700)]
    assert len({(result.pvalue, result.groups[0].statement) for result in results}) == 1
    expected = wc.witness(*in_memory(found), **options).pvalue
    assert results[0].pvalue == expected
    assert 0.1 < expected < 0.9, "an example that other draws would change"
    z = [[group.statistic for group in result.groups] for result in results]
    assert_allclose(z[1:], [z[0]] * 2, rtol=1e-10)


def test_numbers_of_a_group_are_those_of_all_its_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence itself says which cases these are: they are counted by hand."""
    monkeypatch.setattr("wellcal.dask.sampling.SAMPLE", 2000)
    y, family, (mu, sigma) = example("normal", N)
    y = y + np.where(mu > 0.9, 0.5 * sigma, 0.0)
    result = wc.witness(*partitioned((y, family, (mu, sigma)), 900), **OPTIONS)
    group = result.groups[0]
    said = re.fullmatch(
        r"targets (exceed|fall below) the predicted (median|[\d.]+% quantile) .* "
        r"where the predicted mean is above (\S+) \(.*; ([\d,]+) cases\)",
        group.statement,
    )
    assert said, group.statement
    level = 0.5 if said[2] == "median" else float(said[2].removesuffix("% quantile")) / 100.0
    inside = mu > float(said[3])
    above = y > stats.norm.ppf(level, mu, sigma)
    happened = above if said[1] == "exceed" else ~above
    share = 1.0 - level if said[1] == "exceed" else level
    assert group.n_samples == np.count_nonzero(inside) == int(said[4].replace(",", ""))
    assert_allclose([group.observed, group.expected], [happened[inside].mean(), share], rtol=1e-12)
    z = (happened[inside].mean() - share) / np.sqrt(share * (1.0 - share) / inside.sum())
    assert_allclose(group.statistic, z, rtol=1e-10)
    sampled = inside[group.cases]
    assert sampled.all(), "cases of the group are given by their places among all"
    assert len(group.cases) == pytest.approx(group.n_samples * 2000 / N, rel=0.2)
    # The band, and where it is, are those of all cases, too.
    expected = wc.witness(y, wc.Normal(mu, sigma), **OPTIONS)
    for name in ("values", "low", "high", "pvalues"):
        assert_allclose(getattr(result, name), getattr(expected, name), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["normal", "categorical", "poisson", "vectors"])
def test_what_a_scan_asks_of_partitions_is_what_it_asks_of_memory(name: str, weighted: bool) -> None:
    found = example(name, 900)
    y, pred = in_memory(found)
    targets = pred.check_targets(y)
    directions = directions_in(pred, LEVELS, Overview.of(pred))
    weights = np.arange(900) % 3 * 0.5 if weighted else np.ones(900)
    candidates = Candidates(directions, [], weights, 10)
    sets = np.stack([targets, targets[::-1], targets])
    candidates.sums(sets)
    sizes = (500, 380, 20)
    cases = as_cases(*partitioned(found, sizes), cut(weights, sizes) if weighted else None)
    grids = [
        [Listed([Cases("", np.ones(900, bool), "all")]), *grids_of(direction.summaries)]
        for direction in directions
    ]
    sides = tuple(
        tuple(sides_of(grid, direction) for grid in own)
        for direction, own in zip(directions, grids, strict=True)
    )
    overview = computed_sum(cases.map(overview_of))
    where = draw_locations(pred, 2, 0)
    largest = 1.0 if weighted else None
    sought = Sought(LEVELS, overview, sides, wc.default_kernel(pred), "auto", where, 900, largest)
    outline, _ = computed_sum(cases.map(outlined, sought=sought))
    scanned = ScannedCases(cases, sought, directions, grids, Outline(*outline), 10)
    scanned.sums_of_all = candidates.sums_of_all
    if name == "vectors":
        squares = np.stack([np.mean((d.of(sets) - d.expected) ** 2, axis=0) for d in directions])
        scanned.know_squares(np.split(squares, np.cumsum(sizes)[:-1], axis=1))
    assert len(scanned) == len(candidates)
    some = np.random.default_rng(3).choice(len(candidates), 4, replace=False).tolist()
    told = [candidates[k] for k in some]
    again = [scanned[k] for k in some]
    assert [c.cases.where for c in told] == [c.cases.where for c in again]
    z = np.random.default_rng(4).normal(size=len(candidates))
    for mine, theirs, start in zip(scanned.blocks, candidates.blocks, candidates.starts, strict=False):
        own = z[start : start + len(theirs.kept)]
        assert_allclose(scanned.gains(mine, own), candidates.gains(theirs, own), atol=1e-9)
    pairs = [
        (scanned.scales(), candidates.scales()),
        (scanned.shared(again[0]), candidates.shared(told[0])),
        *zip(
            zip(*scanned.untold(again), strict=True), zip(*candidates.untold(told), strict=True), strict=True
        ),
    ]
    for mine, theirs in pairs:
        assert_allclose(np.concatenate(mine), np.concatenate(theirs), atol=1e-9)
    assert not np.allclose(np.concatenate(pairs[2][0]), np.concatenate([s for s, _ in scanned.untold([])]))


def test_segments_are_those_of_cases_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels, truths, few numbers, many, which are cut, and dates; one is too small to be looked at."""
    monkeypatch.setattr("wellcal.witnesses.axes.MOST_RANKED", 2000)
    monkeypatch.setattr("wellcal.dask.sampling.SAMPLE", 500)
    y, family, (p,) = example("bernoulli", N)
    rng = np.random.default_rng(5)
    region = np.where(np.arange(N) < 4, "tiny", rng.choice(["South", "North"], N))
    columns = {
        "region": region,
        "late": rng.uniform(size=N) < p,
        "floor": rng.integers(0, 4, N),
        "age": rng.gamma(9, 4, N),
        "day": np.datetime64("2020-01-01", "ns") + rng.integers(0, 400, N).astype("m8[D]"),
    }
    found = np.where((region == "North") & (np.arange(N) % 20 == 0), 1, y), family, (p,)
    expected = wc.witness(*in_memory(found), segments=columns, **OPTIONS)
    parts = {name: cut(column, 900) for name, column in columns.items()}
    result = wc.witness(*partitioned(found, 1100), segments=parts, **OPTIONS)
    assert result.pvalue == expected.pvalue
    assert [s.where for s in result.segments] == [s.where for s in expected.segments]
    assert len(result.segments) == 2 + 2 + 4 + 4 + 4
    for name in ("statistic", "pvalue", "n_samples", "observed", "expected", "statement"):
        mine, theirs = ([getattr(s, name) for s in one.segments] for one in (result, expected))
        if name == "statement":
            assert mine == theirs
        else:
            assert_allclose(mine, theirs, rtol=1e-10)
    assert result.provenance["segments too small"] == ["for region = tiny"]
    for segment in result.segments[:2]:
        assert set(region[segment.cases]) == {segment.where.removeprefix("for region = ")}
    frame = dd.from_dask_array(da.stack([parts["floor"], parts["age"]], axis=1), columns=["floor", "age"])
    again = wc.witness(*partitioned(found, 900), segments=frame, **OPTIONS)
    assert [s.where for s in again.segments] == [s.where for s in expected.segments[4:12]]
    with pytest.raises(ValueError, match=r"segments\['id'\] has 1001 different labels"):
        wc.witness(*partitioned(found, 1100), segments={"id": cut(np.arange(N).astype(str), 1100)}, **OPTIONS)


@pytest.mark.parametrize("named", [True, False])
def test_segments_of_few_cases(named: bool) -> None:
    found, labels = example("bernoulli", 400), np.arange(400) % 3
    parts = cut(labels, 100)
    both = [{"of three": s} if named else s for s in (parts, labels)]
    result = wc.witness(*partitioned(found, 150), segments=both[0], **OPTIONS)
    assert result.to_dict() == wc.witness(*in_memory(found), segments=both[1], **OPTIONS).to_dict()


def test_few_cases_are_taken_into_memory() -> None:
    found = example("bernoulli", 400)
    result, expected = (
        wc.witness(*cases, **OPTIONS) for cases in (partitioned(found, 150), in_memory(found))
    )
    assert result.to_dict() == expected.to_dict()


def test_what_is_refused_says_what_to_do() -> None:
    y, family, (loc, scale) = example("vectors", N)
    scale[7] = 0.0
    with pytest.raises(ValueError, match=r"some predictions have no spread"):
        wc.witness(*partitioned((y, family, (loc, scale)), 1500), **OPTIONS)
    y, pred = partitioned(example("normal", 300), 200)
    with pytest.raises(ValueError, match=r"engine is not supported .*sample_cases"):
        wc.witness(y, pred, engine="tiled")
    y, pred = partitioned(example("normal", N), 1500)
    with pytest.raises(ValueError, match="weights must be positive for at least 2 of the cases, and only 1"):
        wc.witness(y, pred, weights=cut((np.arange(N) == 5).astype(float), 1500), **OPTIONS)
    with pytest.raises(ValueError, match="n_resamples"):
        wc.witness(y, pred, n_resamples=5)


def test_the_target_is_no_segment() -> None:
    found = wrong("normal")
    y, pred = partitioned(found, 1500)
    with pytest.raises(ValueError, match=r"segments\['y'\] is the target itself"):
        wc.witness(y, pred, segments={"y": cut(found[0], 1100)}, **OPTIONS)


@pytest.mark.parametrize("hidden", [0.0, 1e-13])
def test_outcomes_that_were_called_impossible_are_counted(hidden: float) -> None:
    """In no group is anything left to chance, in partitions as in memory."""
    y = np.arange(N) % 2
    probs = np.where(np.arange(N) % 10 == 0, 1 - y, y) * (1.0 - 2.0 * hidden) + hidden
    found = [wc.witness(y, wc.Bernoulli(probs), **OPTIONS)]
    found.append(wc.witness(*partitioned((y, wc.Bernoulli, (probs,)), 9_000), **OPTIONS))
    assert found[0].provenance["impossible"] == found[1].provenance["impossible"]
    assert found[0].in_words().headline == found[1].in_words().headline
    assert "cases had " in found[1].provenance["impossible"]


def test_outcomes_on_quantiles_are_counted_over_all_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample hides too many, and may have most of a few: all partitions are judged, as in memory."""
    monkeypatch.setattr("wellcal.dask.sampling.SAMPLE", 500)
    found = example("quantiles", N)
    sampled = as_cases(*partitioned(found, 900)).sampled(500, 0)
    unseen = np.setdiff1d(np.arange(N), sampled)[::50]
    for cases in (partitioned(tied(found, unseen), 900), in_memory(tied(found, unseen))):
        with pytest.raises(wc.RowError, match=f"in {len(unseen)} of 2,648 cases, first in row {unseen[0]}:"):
            wc.witness(*cases, **OPTIONS)
    few = tied(found, sampled[:10])
    results = [wc.witness(*cases, **OPTIONS) for cases in (partitioned(few, 900), in_memory(few))]
    assert results[0].pvalue == results[1].pvalue
