"""Errors that are told of sums where a few cases say most of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal.engines import Engine, Linear, Tiled
from wellcal.engines.controls import ExactRows
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein
from wellcal.problem.deviations import null_deviation
from wellcal.problem.problem import prepare
from wellcal.problem.telling_cases import chances_by, uneven_chances

N = 4000
KERNEL = ExpDistance(Wasserstein()) @ Gaussian()


def _sure(wrong: int) -> tuple[np.ndarray, wc.Normal]:
    """Predictions that are sharp and right, but for a few that are off by ten thousand of their scales."""
    rng = np.random.default_rng(3)
    loc, scale = rng.normal(size=N), 1e-4 * np.exp(0.3 * rng.normal(size=N))
    y = rng.normal(loc, scale)
    y[rng.choice(N, wrong, replace=False)] += 1.0
    return y, wc.Normal(loc, scale)


@pytest.mark.parametrize("wrong", [3, 20, 60])
@pytest.mark.parametrize(
    "engine", [Tiled(precision="mixed"), Linear(), Linear(precision="float64")], ids=repr
)
def test_errors_know_of_a_few_cases_that_say_most(engine: Engine, wrong: int) -> None:
    y, pred = _sure(wrong)
    problem = prepare(y, pred, KERNEL)
    exact = Tiled(precision="float64").triangle(problem)
    found = engine.triangle(problem)
    said = engine.describe(problem)
    told = said.get("control_error", said.get("precision_error", 0.0))
    off = abs(float(found.total - exact.total)) / null_deviation(problem).value
    assert off <= 5.0 * told + 1e-7
    assert off < 0.01


@pytest.mark.parametrize("wide", [5, 20])
def test_a_span_knows_of_a_few_ensembles_that_are_far_off_it(wide: int) -> None:
    """None of them would be among 128 cases that are drawn alike."""
    rng, n = np.random.default_rng(1), 2 * N
    loc, scale = rng.normal(size=n), rng.uniform(0.3, 1.0, n)
    draws = loc[:, None] + scale[:, None] * rng.normal(size=(n, 10))
    draws[:wide] += 50.0 * rng.normal(size=(wide, 10))
    problem = prepare(rng.normal(loc, scale), wc.Samples(draws))
    exact = Tiled(precision="float64").triangle(problem)
    engine = Linear()
    found = engine.triangle(problem)
    told = engine.describe(problem).get("control_error", 0.0)  # none from tiles
    off = abs(float(found.total - exact.total)) / null_deviation(problem).value
    assert off <= min(5.0 * told, 2e-3) + 1e-9


@pytest.mark.parametrize("wrong", [1, 2, 3, 20])
def test_tensors_are_not_rounded_where_few_cases_say_most(wrong: int) -> None:
    y, pred = _sure(wrong)
    tensors = wc.Normal(torch.tensor(pred.loc), torch.tensor(pred.scale))
    found, exact = (
        wc.skce(torch.tensor(y), tensors, kernel=KERNEL, engine=Tiled(precision=precision))
        for precision in ("mixed", "float64")
    )
    told = found.provenance.get("precision_error", 0.0)
    unit = null_deviation(prepare(y, pred, KERNEL)).value / (0.5 * N * (N - 1))
    assert abs(float(found) - float(exact)) / unit <= 5.0 * told + 1e-7
    assert "not known to be exact enough" in found.provenance["precision_note"]


def test_cases_that_are_likelier_count_less() -> None:
    problem = prepare(*_sure(3), KERNEL)
    chances = uneven_chances(problem)
    assert chances is not None
    rows = ExactRows.of(N, chances)
    assert len(np.unique(rows.cases)) < len(rows.cases)
    assert float(rows.often.max()) == pytest.approx(2.0, rel=1e-3)
    own = np.asarray(problem.diagonal())
    assert np.array_equal(np.sort(np.argsort(chances)[-3:]), np.sort(np.argsort(own)[-3:]))
    assert chances_by(own)[np.argmax(own)] == pytest.approx(own.max() / own.sum())


def test_cases_that_are_about_alike_are_drawn_alike() -> None:
    rng = np.random.default_rng(0)
    loc = rng.normal(size=N)
    assert uneven_chances(prepare(rng.normal(loc), wc.Normal(loc, np.ones(N)))) is None
