"""Sums over pairs of classes by one compiled loop, beside tiles of NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import wellcal as wc
from wellcal.engines import Tiled
from wellcal.kernels import Delta, ExpDistance, Gaussian, Kernel, TotalVariation
from wellcal.problem import feature_form
from wellcal.problem.feature_form import in_features
from wellcal.problem.problem import Problem, prepare

N = 1100
RELATIVE = 1e-12  # of the sum of |h|
USUAL = ExpDistance(TotalVariation(), 0.5) @ Delta()
EXACT = Tiled(precision="float64")


@pytest.fixture(autouse=True)
def few_pairs_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_form, "LOOPED", 1.0)


def _classes(kernel: Kernel = USUAL, count: int = 7, support: bool = False) -> Problem:
    rng = np.random.default_rng(0)
    pred = wc.Categorical(
        rng.dirichlet(np.full(count, 0.3), size=N), support=np.arange(count) if support else None
    )
    return prepare(pred.sample(rng=rng), pred, kernel)


def _is_looped(problem: Problem) -> bool:
    found = in_features(problem)
    return found is not None and all(term.looped for term in found.problem.terms)


@pytest.mark.parametrize("count", [2, 3, 7, 40])
@pytest.mark.parametrize(
    "kernel", [USUAL, 0.3 * USUAL + ExpDistance(TotalVariation(), 0.02) @ Delta()], ids=["one", "two"]
)
def test_sums_are_those_of_tiles(kernel: Kernel, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = EXACT.triangle(_classes(kernel, count))
    blocks = EXACT.blocks(_classes(kernel, count), 1050)
    assert _is_looped(_classes(kernel, count))
    monkeypatch.setattr(feature_form, "can_compile", lambda: False)
    problem = _classes(kernel, count)
    assert not _is_looped(problem)
    whole = np.abs(problem.values(slice(0, N), slice(0, N))).sum()
    for loop, tiles in ((found, EXACT.triangle(problem)), (blocks, EXACT.blocks(problem, 1050))):
        assert abs(loop.total - tiles.total) < RELATIVE * whole
        assert np.abs(loop.rows - tiles.rows).max() < RELATIVE * whole
        assert np.abs(loop.rows).max() > 1e-3


def test_threads_and_what_ran_before_change_no_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for threads in (1, 2):
        for there in (False, True):
            monkeypatch.setattr(feature_form, "is_compiled", lambda there=there: there)
            found.append(Tiled(threads=threads, precision="float64").triangle(_classes()))
    assert all(sums == found[0] for sums in found)


def test_the_provenance_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    pred = wc.Categorical(rng.dirichlet(np.ones(5), size=N))
    y = pred.sample(rng=rng)
    assert wc.skce(y, pred, engine=EXACT).provenance["compiled"].startswith("numba ")
    assert "compiled" not in wc.skce(y, pred, engine=EXACT.at_precision("mixed")).provenance
    monkeypatch.setattr(feature_form, "LOOPED", 1e9)
    assert "compiled" not in wc.skce(y, pred, engine=EXACT).provenance


def test_other_kernels_and_many_classes_keep_their_tiles() -> None:
    other_power = ExpDistance(TotalVariation(), 0.5, power=0.5) @ Delta()
    assert not _is_looped(_classes(other_power))
    assert not _is_looped(_classes(count=130))
    assert not _is_looped(replace(_classes(), rows=(), terms=()))
    mixed = 0.5 * USUAL + other_power
    assert not _is_looped(_classes(mixed))
    assert "compiled" not in EXACT.describe(_classes(mixed))


def test_smooth_kernels_on_a_support_meet_in_features() -> None:
    kernel = ExpDistance(TotalVariation(), 0.5) @ Gaussian(2.0)
    problem = _classes(kernel, 20, support=True)
    plain = _classes(kernel, 20, support=True)
    h = np.triu(plain.values(slice(0, N), slice(0, N)), 1)
    assert abs(EXACT.triangle(problem).total - h.sum()) < RELATIVE * np.abs(h).sum()
