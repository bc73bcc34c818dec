"""Sizes of errors of positive targets and of shares, whose normal scores bend where targets are moved."""

from __future__ import annotations

import numpy as np
import pytest

import wellcal as wc
from wellcal.hypotests.findings.families import findings_in

N = 2000


def _sizes(y, predictions):
    return {found.kind: found for found in findings_in(y, predictions, False)}


def _gammas(rng, shape):
    scale = np.exp(0.5 * rng.normal(size=N))
    return wc.Gamma(np.full(N, shape), scale), scale


@pytest.mark.parametrize(
    ("factor", "shape", "shift", "ratio"),
    [(1.5, 2.0, 0.5 * np.sqrt(2.0), 1.0 / 1.5), (1.0, 3.0, 1.0 / np.sqrt(2.0), 1.0 / np.sqrt(1.5))],
    ids=["all of them larger", "another shape"],
)
def test_gammas_are_off_by_what_was_planted(factor, shape, shift, ratio):
    rng = np.random.default_rng(3)
    predictions, scale = _gammas(rng, 2.0)
    found = _sizes(factor * rng.gamma(shape, size=N) * scale, predictions)
    for kind, true in {"shift": shift, "spread": ratio}.items():
        low, high = found[kind].interval
        assert low <= true <= high
        assert high - low < 0.2
    assert "too small" in found["spread"].sentence  # scores of the second are closer together


def test_shares_whose_mean_is_right_have_no_shift():
    rng = np.random.default_rng(5)
    found = _sizes(rng.beta(1.0, 2.5, size=N), wc.Beta(np.full(N, 2.0), np.full(N, 5.0)))
    assert "shift" not in found
    low, high = found["spread"].interval
    assert low <= np.sqrt((1.0 + 2.5 + 1.0) / (2.0 + 5.0 + 1.0)) <= high


def test_a_trend_is_told_in_units_of_the_targets():
    rng = np.random.default_rng(7)
    predictions, scale = _gammas(rng, 2.0)
    factor = np.where(scale > 1.0, 1.6, 1.0)
    found = _sizes(factor * rng.gamma(2.0, size=N) * scale, predictions)["trend of the centre"]
    assert found.interval[0] <= 0.6 * np.sqrt(2.0) <= found.interval[1]


def test_scores_that_are_off_alone_are_told_as_scores():
    """Where means and spreads of targets are right, and those of scores are not."""
    rng = np.random.default_rng(1)
    variance = np.log(2.0)
    y = np.exp(-0.5 * variance + np.sqrt(variance) * rng.normal(size=N))
    found = findings_in(y, wc.Gamma(np.ones(N), np.ones(N)), False)
    assert found  # a log-normal of the mean and the standard deviation of an exponential
    for one in found:
        assert "standard deviations" not in one.sentence
        assert "spreads are" not in one.sentence


def _log_normals(mean, deviation):
    variance = np.log1p((deviation / mean) ** 2)
    return np.log(mean) - 0.5 * variance, np.sqrt(variance)


def _of_all_shapes(rng):
    mean = np.exp(0.7 * rng.normal(size=N))
    return mean, mean * np.exp(rng.uniform(np.log(0.2), np.log(1.3), size=N))


def test_spreads_that_are_wrong_in_some_cases_have_the_size_that_was_planted():
    """Scores of these are higher, too, and cases bend differently."""
    rng = np.random.default_rng(1001)
    mean, deviation = _of_all_shapes(rng)
    y = rng.lognormal(*_log_normals(mean, deviation))
    found = _sizes(y, wc.LogNormal(*_log_normals(mean, np.where(mean > 1.5, 0.6, 1.0) * deviation)))
    trend = found["trend of the spread"]
    assert trend.interval[0] <= 0.6 <= trend.interval[1] < 0.8
    assert trend.elsewhere[1] <= 1.0 <= trend.elsewhere[2]


def test_a_shift_makes_no_trend_of_the_spread():
    rng = np.random.default_rng(1000)
    mean, deviation = _of_all_shapes(rng)
    y = rng.lognormal(*_log_normals(mean, deviation))
    found = findings_in(y, wc.LogNormal(*_log_normals(mean + 0.3 * deviation, deviation)), False)
    assert found
    for one in found:
        assert one.kind != "trend of the spread"
        low, high = one.interval
        assert not low <= 0.0 <= high  # nor is anything told that may be right


@pytest.mark.parametrize(
    ("predictions", "kind"),
    [
        (wc.Laplace(np.zeros(N), np.ones(N)), "tails"),
        (wc.StudentT(3.0, np.zeros(N), np.ones(N)), "tails"),
        (wc.Mixture([wc.Normal(np.full(N, at), np.ones(N)) for at in (-2.0, 2.0)]), "tails"),
    ],
    ids=["Laplace", "t", "two peaks"],
)
def test_another_shape_is_no_wrong_spread(predictions, kind):
    """Scores of targets of another shape spread farther, while their standard deviation is right."""
    z = np.random.default_rng(2).normal(size=N)
    z = (z - z.mean()) / z.std()
    found = findings_in(z * np.sqrt(np.asarray(predictions.variance())), predictions, False)
    assert [one.kind for one in found] == [kind]


def test_a_wrong_spread_of_another_shape_has_the_size_that_was_planted():
    z = np.random.default_rng(2).normal(size=N)
    found = _sizes(z / z.std() * np.sqrt(2.0) / 0.7, wc.Laplace(np.zeros(N), np.ones(N)))["spread"]
    assert found.interval[0] <= 0.7 <= found.interval[1] < 0.8
