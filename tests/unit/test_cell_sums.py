"""Sums over cells, however many sets of targets there are at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import wellcal as wc
from wellcal.problem import target_resampling
from wellcal.witnesses import refine
from wellcal.witnesses.cell_sums import FEW_SETS, Events, Members, few_sets, many_sets
from wellcal.witnesses.refine import Deviation

N, CELLS = 5000, 40


def _members(weights: np.ndarray) -> Members:
    cell = np.random.default_rng(1).integers(0, CELLS, N)
    table = sparse.csr_array((weights, cell, np.arange(N + 1)), shape=(N, CELLS))
    return Members(table, bool(np.all(weights == 1.0)))


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_the_same_to_the_last_digit(weighted: bool) -> None:
    rng = np.random.default_rng(2)
    members = _members(rng.random(N) if weighted else np.ones(N))
    deviation = (rng.random((5, N)) < 0.3) - rng.random(N)
    found = [way(deviation)(members) for way in (few_sets, many_sets)]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], np.asarray(deviation @ members.weights))
    dense = Members(members.weights.toarray(), members.alike)
    assert np.allclose(few_sets(deviation)(dense), found[0], atol=1e-11, rtol=0.0)


def test_events_are_counted() -> None:
    rng = np.random.default_rng(3)
    members, probability = _members(np.ones(N)), rng.random(N)
    happened = rng.random((3, N)) < probability
    events = Events([np.flatnonzero(row) for row in happened], probability, {})
    overlapping = Members(np.stack([np.ones(N), probability > 0.5], axis=1), False)
    for cells in (members, overlapping):
        direct = np.asarray((happened - probability) @ cells.weights)
        assert np.allclose(events.sums(cells), direct, atol=1e-10, rtol=0.0)
    assert np.allclose(events.total, (happened - probability).sum(axis=1), atol=1e-10, rtol=0.0)


def test_how_many_sets_are_drawn_at_a_time_changes_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    loc = rng.normal(size=6000)
    y, pred = rng.normal(loc + 0.4 * (loc > 1.0)), wc.Normal(loc, np.ones(6000))
    many = wc.witness(y, pred, rng=5, n_resamples=39)
    # The same sets, in pieces: streams of targets depend on how many come at a time.
    drawn = target_resampling.TargetStream.sets

    def in_pieces(self: target_resampling.TargetStream, *args: object, **options: object) -> object:
        for sets in drawn(self, *args, **options):  # type: ignore[arg-type]
            yield from np.array_split(sets, -(-len(sets) // (FEW_SETS - 1)))

    monkeypatch.setattr(target_resampling.TargetStream, "sets", in_pieces)
    few = wc.witness(y, pred, rng=5, n_resamples=39)
    assert few.pvalue == many.pvalue
    assert np.array_equal(few.pvalues, many.pvalues)
    assert [(g.where, g.pvalue) for g in few.groups] == [(g.where, g.pvalue) for g in many.groups]
    assert [g.statistic for g in few.groups] == pytest.approx([g.statistic for g in many.groups], rel=1e-9)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_one_case_stands_for_all_that_are_alike(sign: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    expected = np.full(400, 0.1)
    observed = (rng.random(400) < 0.1 + 0.05 * sign) - expected
    weights = np.where(np.arange(400) < 300, 2.0, 0.0)
    mask = np.arange(400) > 50

    def numbers() -> tuple[float, np.ndarray]:
        deviation = Deviation(observed, expected, expected * (1.0 - expected), weights, happens=True)
        return deviation.size(mask, sign), deviation.gains(0.3 * sign)

    size, gains = numbers()
    monkeypatch.setattr(refine, "ALIKE", -1.0)  # none are alike
    exact, each = numbers()
    assert size != 0.0
    assert size == pytest.approx(exact, rel=1e-9)
    assert np.allclose(gains, each, atol=1e-13, rtol=1e-12)


def test_draws_of_normals_are_those_of_numpy() -> None:
    rng = np.random.default_rng(7)
    loc, scale = rng.normal(size=50), np.where(np.arange(50) == 3, 0.0, rng.random(50))
    ours = wc.Normal(loc, scale).sample(8, 20)
    assert np.array_equal(np.asarray(ours), np.random.default_rng(8).normal(loc, scale, (20, 50)))
