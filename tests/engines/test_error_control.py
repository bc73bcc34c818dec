"""Errors of sums over all pairs: their unit, and what is reported where a few cases dominate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.engines import Engine, Linear, Tiled
from wellcal.engines.error_control import TOLERANCE, null_scale, sampling_weights
from wellcal.kernels import Delta, ExpDistance, Gaussian, TotalVariation, Wasserstein
from wellcal.problem.problem import prepare, some_cases
from wellcal.problem.weights import weighted_problem

N = 400
KERNEL = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)


def _normals() -> wc.Normal:
    rng = np.random.default_rng(1)
    return wc.Normal(rng.normal(size=N), np.exp(0.3 * rng.normal(size=N)))


def _classes() -> wc.Categorical:
    return wc.Categorical(np.random.default_rng(2).dirichlet(np.ones(4), size=N))


CASES: dict[str, tuple[Any, Any]] = {
    "normals": (_normals(), KERNEL),
    "classes": (_classes(), ExpDistance(TotalVariation(), 0.4) @ Delta()),
}


@pytest.mark.parametrize("name", CASES)
def test_the_unit_is_the_spread_of_sums_of_calibrated_predictions(name: str) -> None:
    pred, kernel = CASES[name]
    rng = np.random.default_rng(3)
    sums = [
        float(Tiled(threads=1).triangle(prepare(pred.sample(rng=rng), pred, kernel)).total)
        for _ in range(200)
    ]
    # 200 sums have a standard deviation to 5%, and h^2 of 400 cases a mean to 5%.
    found = null_scale(prepare(pred.sample(rng=rng), pred, kernel))
    assert found.drawn
    assert found.value == pytest.approx(float(np.std(sums)), rel=0.25)


def test_targets_do_not_change_the_unit() -> None:
    pred = _normals()
    near, far = (prepare(y, pred, KERNEL) for y in (pred.loc, pred.loc + 5.0))
    assert null_scale(near) == null_scale(far)


def test_weights_and_a_choice_of_cases_change_the_unit() -> None:
    pred = _normals()
    problem = prepare(pred.loc, pred, KERNEL)
    weights = np.where(np.arange(N) < 200, 1.0, 0.0)
    # Of 400 cases the first 200 count: their pairs are a quarter of all.
    weighted = null_scale(weighted_problem(problem, weights))
    first = null_scale(some_cases(problem, slice(0, 200)))
    assert weighted.value == pytest.approx(first.value, rel=0.2)
    assert weighted.value < 0.7 * null_scale(problem).value
    assert first == null_scale(prepare(pred.loc[:200], pred[:200], KERNEL))


def test_without_a_sampler_observed_h_is_the_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    def named(_: object) -> str:
        return "Normal"

    monkeypatch.setattr("wellcal.problem.problem.unsampled_family", named)
    rng = np.random.default_rng(4)
    pred = wc.Normal(rng.normal(size=3000), rng.uniform(0.9, 1.1, 3000))
    y = pred.sample(rng=5)
    problem = prepare(y, pred, KERNEL)
    h = np.asarray(problem.values(slice(0, 1500), slice(1500, 3000)))
    found = null_scale(problem)
    assert not found.drawn
    assert found.value == pytest.approx(np.sqrt(0.5 * 3000 * 2999 * np.mean(h**2)), rel=0.2)
    for engine in (Tiled(precision="mixed"), Linear()):
        said = wc.skce(y, pred, kernel=KERNEL, engine=engine).provenance
        assert said["error_unit"].startswith("observed h")


@pytest.mark.parametrize("engine", [Linear(), Tiled(precision="mixed")], ids=repr)
def test_far_off_predictions_have_errors_in_the_deviation_of_their_own_sum(engine: Engine) -> None:
    rng = np.random.default_rng(6)
    loc, scale = rng.normal(size=3000), np.exp(0.3 * rng.normal(size=3000))
    far = prepare(loc + 5.0 * scale * rng.normal(size=3000), wc.Normal(loc, scale), KERNEL)
    exact = Tiled(precision="float64").triangle(far)
    found, said = engine.triangle(far), engine.describe(far)
    assert said["error_unit"].startswith("standard deviation of the sum itself")
    own = np.sqrt(0.5 * 3000 * np.var(exact.rows))
    assert own > 1.5 * null_scale(far).value
    assert abs(found.total - exact.total) <= 2.0 * said["control_error"] * own
    assert said["control_error"] <= TOLERANCE


def _sure(wrong: int) -> tuple[np.ndarray, wc.Normal]:
    """Predictions that are sharp and right, but for a few that are off by ten thousand of their scales."""
    rng, n = np.random.default_rng(3), 4000
    loc, scale = rng.normal(size=n), 1e-4 * np.exp(0.3 * rng.normal(size=n))
    y = rng.normal(loc, scale)
    y[rng.choice(n, wrong, replace=False)] += 1.0
    return y, wc.Normal(loc, scale)


@pytest.mark.parametrize("wrong", [3, 20, 60])
@pytest.mark.parametrize(
    "engine", [Tiled(precision="mixed"), Linear(), Linear(precision="float64")], ids=repr
)
def test_errors_account_for_a_few_cases_that_dominate(engine: Engine, wrong: int) -> None:
    y, pred = _sure(wrong)
    problem = prepare(y, pred, ExpDistance(Wasserstein()) @ Gaussian())
    exact = Tiled(precision="float64").triangle(problem)
    found = engine.triangle(problem)
    unit = max(null_scale(problem).value, float(np.sqrt(0.5 * problem.n * np.var(exact.rows))))
    off = abs(float(found.total - exact.total)) / unit
    assert off <= 2.0 * engine.describe(problem).get("control_error", 0.0) + 1e-7
    assert off <= TOLERANCE


@pytest.mark.parametrize("wide", [5, 20])
def test_errors_account_for_a_few_ensembles_that_are_far_away(wide: int) -> None:
    rng, n = np.random.default_rng(1), 8000
    loc, scale = rng.normal(size=n), rng.uniform(0.3, 1.0, n)
    draws = loc[:, None] + scale[:, None] * rng.normal(size=(n, 10))
    draws[:wide] += 50.0 * rng.normal(size=(wide, 10))
    problem = prepare(rng.normal(loc, scale), wc.Samples(draws))
    exact = Tiled(precision="float64").triangle(problem)
    engine = Linear()
    found = engine.triangle(problem)
    reported = engine.describe(problem).get("control_error", 0.0)  # none from tiles
    off = abs(float(found.total - exact.total)) / null_scale(problem).value
    assert off <= 2.0 * reported + 1e-9
    assert off <= 2e-3


def test_cases_that_dominate_are_drawn_in_proportion() -> None:
    own = np.asarray(prepare(*_sure(3)).diagonal())
    chances = sampling_weights(own)
    assert chances[np.argmax(own)] == pytest.approx(own.max() / own.sum())
    assert sampling_weights(np.ones(4), np.array([1.0, np.nan, -1.0, 0.0])).tolist() == [0.625, *3 * [0.125]]
