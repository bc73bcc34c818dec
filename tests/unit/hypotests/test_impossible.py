"""Outcomes that were called impossible and happened are counted: what hangs on a clip is not told."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import special

import wellcal as wc
from wellcal.hypotests.findings.impossible import OF_LOG_ODDS, impossible_finding

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
def test_what_was_certain_and_wrong_is_counted(name: str) -> None:
    y, pred, wrong = MODELS[name]
    result = wc.calibration_test(y, pred, rng=0, n_resamples=199)
    first = result.findings[0]
    assert first.sentence == f"{wrong} cases had probability 0 for what happened: no temperature mends that"
    assert first.size == pytest.approx(wrong / N)
    assert first.interval is None
    assert not set(kinds(result)) & set(OF_LOG_ODDS)
    assert not any("temperature is" in str(finding) or "slope" in str(finding) for finding in result.findings)
    assert result.yardstick is None  # at any temperature what is certain stays certain
    assert wc.TestResult.from_json(result.to_json()).findings[0] == first


def test_shares_are_told_in_the_place_of_temperature_and_slope() -> None:
    classes = wc.calibration_test(*MODELS["classes"][:2], rng=0, n_resamples=199)
    assert kinds(classes) == ["impossible", "confidence"]
    right = float((TOP == Y).mean())
    assert classes.findings[1].size == pytest.approx(right)
    assert "predicted 100%" in str(classes.findings[1])
    two = wc.calibration_test(*MODELS["two classes"][:2], rng=0, n_resamples=199)
    assert {"impossible", "group"} <= set(kinds(two))
    assert any("where it was predicted at about 0%" in str(finding) for finding in two.findings)


def test_a_single_impossible_case_is_enough() -> None:
    sharp = special.softmax(4.5 * Z, axis=1)
    before = wc.calibration_test(Y, sharp, rng=0, n_resamples=199)
    assert kinds(before) == ["temperature"]
    wrong = int(np.flatnonzero(TOP != Y)[0])
    certain = sharp.copy()
    certain[wrong] = np.eye(3)[TOP[wrong]]
    after = wc.calibration_test(Y, certain, rng=0, n_resamples=199)
    assert str(after.findings[0]).startswith("1 case had probability 0 for what happened")
    assert "temperature" not in kinds(after)
    assert after.yardstick is not None  # that of KCE, which no zero moves far
    assert after.yardstick.kind == "temperature"


@pytest.mark.parametrize(("sharpness", "side"), [(0.4, "too high"), (4.5, "too low")])
def test_one_impossible_case_leaves_the_direction_of_the_error(sharpness: float, side: str) -> None:
    pred = special.softmax(sharpness * Z, axis=1)
    size = wc.calibration_test(Y, pred, rng=0, n_resamples=199).yardstick
    wrong = int(np.flatnonzero(TOP != Y)[0])
    pred[wrong] = np.eye(3)[TOP[wrong]]
    found = wc.calibration_test(Y, pred, rng=0, n_resamples=199)
    assert kinds(found) == ["impossible", "confidence"]
    assert found.yardstick is not None
    assert side in size.sentence
    assert side in found.yardstick.sentence
    assert found.yardstick.ratio == pytest.approx(size.ratio, rel=0.25)


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
