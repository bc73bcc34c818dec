"""What errors of sums are measured in: the standard deviation for calibrated predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.engines import Linear, Tiled
from wellcal.engines.mixed import LARGEST_ERROR
from wellcal.kernels import Delta, ExpDistance, Gaussian, TotalVariation, Wasserstein
from wellcal.problem.deviations import null_deviation
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
def test_it_is_that_of_sums_of_calibrated_predictions(name: str) -> None:
    pred, kernel = CASES[name]
    rng = np.random.default_rng(3)
    sums = [
        float(Tiled(threads=1).triangle(prepare(pred.sample(rng=rng), pred, kernel)).total)
        for _ in range(200)
    ]
    # 200 sums have a standard deviation to 5%, and h^2 of 400 cases a mean to 5%.
    found = null_deviation(prepare(pred.sample(rng=rng), pred, kernel))
    assert found.drawn
    assert found.value == pytest.approx(float(np.std(sums)), rel=0.25)


def test_targets_do_not_change_it() -> None:
    pred = _normals()
    near, far = (prepare(y, pred, KERNEL) for y in (pred.loc, pred.loc + 5.0))
    assert null_deviation(near) == null_deviation(far)


def test_weights_and_a_choice_of_cases_go_along() -> None:
    pred = _normals()
    problem = prepare(pred.loc, pred, KERNEL)
    weights = np.where(np.arange(N) < 200, 1.0, 0.0)
    # Of 400 cases the first 200 count: their pairs are a quarter of all.
    weighted = null_deviation(weighted_problem(problem, weights))
    first = null_deviation(some_cases(problem, slice(0, 200)))
    assert weighted.value == pytest.approx(first.value, rel=0.2)
    assert weighted.value < 0.7 * null_deviation(problem).value
    alone = null_deviation(prepare(pred.loc[:200], pred[:200], KERNEL))
    assert first == alone


def test_without_a_sampler_observed_h_stands_in_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def named(_: object) -> str:
        return "Normal"

    monkeypatch.setattr("wellcal.problem.problem.unsampled_family", named)
    rng = np.random.default_rng(4)
    pred = wc.Normal(rng.normal(size=3000), rng.uniform(0.9, 1.1, 3000))  # in a plane, not on a line
    y = pred.sample(rng=5)
    problem = prepare(y, pred, KERNEL)
    h = np.asarray(problem.values(slice(0, 1500), slice(1500, 3000)))
    found = null_deviation(problem)
    assert not found.drawn
    assert found.value == pytest.approx(np.sqrt(0.5 * 3000 * 2999 * np.mean(h**2)), rel=0.2)
    for engine in (Tiled(precision="mixed"), Linear()):
        said = wc.skce(y, pred, kernel=KERNEL, engine=engine).provenance
        assert said["error_unit"].startswith("observed h")


def test_errors_are_told_in_it_whatever_the_targets_are() -> None:
    rng = np.random.default_rng(6)
    pred = wc.Normal(rng.normal(size=3000), rng.uniform(0.9, 1.1, 3000))
    far = prepare(np.asarray(pred.loc) + 6.0 * rng.normal(size=3000), pred, KERNEL)
    exact = Tiled(precision="float64").triangle(far)
    engine = Linear(tolerance=0.1)
    found, said = engine.triangle(far), engine.describe(far)
    unit = null_deviation(far).value
    # The mean difference of 128 rows and its standard error: four of them are all there is.
    assert abs(found.total - exact.total) <= 4.0 * said["control_error"] * unit
    assert said["control_error_observed"] < said["control_error"] / 1.5
    rows = np.sqrt(0.5 * 3000 * np.var(exact.rows))
    ratio = said["control_error"] / said["control_error_observed"]
    assert ratio == pytest.approx(rows / unit, rel=0.3)


def test_an_earlier_run_in_float32_leaves_no_trace() -> None:
    rng = np.random.default_rng(7)
    p = rng.random(3000)
    problem = prepare(rng.random(3000) < p, wc.Bernoulli(p))
    Tiled(precision="mixed").triangle(problem)
    engine = Linear(precision="mixed")
    engine.triangle(problem)
    said = engine.describe(problem)
    assert said["sums"] == "running sums on a line"
    assert not {"precision", "precision_bias", "precision_error", "precision_note"} & set(said)


def test_far_off_predictions_are_summed_in_float64() -> None:
    """Rounding in float32 is small beside the sum's own deviation, and not beside that of calibrated ones."""
    rng = np.random.default_rng(31)
    loc, scale = rng.normal(size=12_000), np.exp(0.3 * rng.normal(size=12_000))
    pred = wc.Normal(loc, scale)
    far = prepare(loc + 5.0 * scale * rng.normal(size=12_000), pred, KERNEL)
    engine = Linear()
    found, said = engine.triangle(far), engine.describe(far)
    exact = Tiled(precision="float64").triangle(far)
    assert said["precision"] == "float64"
    assert said["control_error"] <= LARGEST_ERROR
    assert abs(found.total - exact.total) <= LARGEST_ERROR * null_deviation(far).value
