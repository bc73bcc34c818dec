"""Outcomes that were called impossible and happened are counted, after slope or temperature."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special

import wellcal as wc
from wellcal.hypotests.findings.impossible import impossible_finding

N = 300
RNG = np.random.default_rng(11)
Z = RNG.normal(size=(N, 3))
P = special.softmax(1.5 * Z, axis=1)
Y = (P.cumsum(axis=1) < RNG.uniform(size=(N, 1))).sum(axis=1)
TOP = P.argmax(axis=1)
ONE = (RNG.uniform(size=N) < special.expit(Z[:, 0])).astype(int)
GUESS = (Z[:, 0] > 0).astype(float)
MODELS: dict[str, tuple[Any, Any, int]] = {
    "classes": (Y, np.eye(3)[TOP], int((TOP != Y).sum())),
    "two classes": (ONE, GUESS, int((GUESS != ONE).sum())),
}


def kinds(result: wc.TestResult) -> list[str]:
    return [finding.kind for finding in result.findings]


@pytest.mark.parametrize("name", MODELS)
def test_what_was_certain_and_wrong_is_counted_second(name: str) -> None:
    y, pred, wrong = MODELS[name]
    result = wc.calibration_test(y, pred, rng=0, n_resamples=199)
    assert kinds(result) == ["temperature" if name == "classes" else "slope", "impossible"]
    assert "are too extreme" in result.verdict
    second = result.findings[1]
    told = "taken as 1 / (4 n) = 0.00083 for slopes and temperatures"
    assert second.sentence == f"{wrong} cases had probability 0 for what happened ({told})"
    assert second.size == pytest.approx(wrong / N)
    assert second.interval is None
    assert result.yardstick is not None
    assert "too low" in result.yardstick.sentence
    assert wc.TestResult.from_json(result.to_json()).findings[1] == second


def test_slope_is_that_of_clipped_probabilities() -> None:
    p = special.expit(2.5 * Z[:, 0])
    wrong = np.flatnonzero(ONE == 1)[:3]
    p[wrong] = [0.0, 1e-13, 1e-300]
    result = wc.calibration_test(ONE, p, rng=0, n_resamples=199)
    assert kinds(result) == ["slope", "impossible"]
    assert result.findings[1].short == "3 cases had a probability below 1e-12 for what happened"
    odds = np.maximum(p, 0.25 / N) / np.maximum(1.0 - p, 0.25 / N)

    def loss(line: Any) -> float:
        return float(np.sum(np.logaddexp(0.0, (1 - 2 * ONE) * (line[0] + line[1] * np.log(odds)))))

    assert result.findings[0].size == pytest.approx(optimize.minimize(loss, [0.0, 1.0]).x[1], abs=0.01)


@pytest.mark.parametrize(("sharpness", "side"), [(0.4, "not extreme enough"), (4.5, "too extreme")])
@pytest.mark.parametrize("least", [0.0, 1e-20])
def test_one_impossible_case_leaves_temperature_and_its_direction(
    sharpness: float, side: str, least: float
) -> None:
    pred = special.softmax(sharpness * Z, axis=1)
    before = wc.calibration_test(Y, pred, rng=0, n_resamples=199)
    wrong = int(np.flatnonzero(TOP != Y)[0])
    pred[wrong] = np.where(np.arange(3) == TOP[wrong], 1.0, least)
    after = wc.calibration_test(Y, pred, rng=0, n_resamples=199)
    assert kinds(before) == ["temperature"]
    assert kinds(after) == ["temperature", "impossible"]
    assert side in before.verdict
    assert side in after.verdict
    assert "no temperature" not in str(after.findings)
    assert after.findings[0].size == pytest.approx(before.findings[0].size, rel=0.25)
    assert after.yardstick.ratio == pytest.approx(before.yardstick.ratio, rel=0.25)


def test_without_a_direction_the_likelier_side_is_told_first() -> None:
    events = special.expit(3.0 * Z[:, 0])
    y = (np.random.default_rng(3).uniform(size=N) < events).astype(int)
    pred = special.expit(Z[:, 0])  # three times the temperature
    pred[int(np.argmin(np.where(y == 1, pred, 2.0)))] = 0.0
    found = wc.calibration_test(y, pred, rng=0, n_resamples=199).yardstick
    assert not found.directed
    assert found.ratio > 2.0
    assert re.search(r"temperature is \S+ times too high \(.*, or .* too low", found.sentence)


def test_nearly_nothing_is_called_so() -> None:
    tiny = np.array([[1.0 - 1e-13, 1e-13], [0.5, 0.5]])
    found = impossible_finding(np.array([1, 0]), wc.Categorical(tiny))
    assert found is not None
    assert found.short == "1 case had a probability below 1e-12 for what happened"
    assert 0.0 < found.pvalue <= 1e-11
    assert impossible_finding(np.array([0, 0]), wc.Categorical(tiny)) is None
    assert impossible_finding(np.array([0.0]), wc.Normal([9e9], [1.0])) is None
