"""Weights of cases in scores, and where they are refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from scipy import stats

import wellcal as wc
from wellcal.measures.scores.casewise import mean_score
from wellcal.problem.weights import MeanOfWeighted

RNG = np.random.default_rng(3)
N = 12
LOC, SCALE = RNG.normal(size=N), RNG.uniform(0.5, 1.5, size=N)
Y = RNG.normal(LOC, SCALE)
PROBS, LABELS = RNG.dirichlet(np.ones(3), size=N), RNG.integers(3, size=N)
COUNTS = np.array([0, 1, 2, 3] * 3)
SCORES: dict[str, tuple[Any, Any, Any]] = {
    "nll": (wc.nll, Y, wc.Normal(LOC, SCALE)),
    "mse": (wc.mse, Y, wc.Normal(LOC, SCALE)),
    "pinball_loss": (wc.pinball_loss, Y, wc.Normal(LOC, SCALE)),
    "crps": (wc.crps, Y, wc.Normal(LOC, SCALE)),
    "energy_score": (wc.energy_score, Y, wc.Normal(LOC, SCALE)),
    "brier": (wc.brier, LABELS, wc.Categorical(PROBS)),
}


@pytest.mark.parametrize("name", SCORES)
def test_a_weight_is_so_many_copies(name: str) -> None:
    score, y, pred = SCORES[name]
    repeated = np.repeat(np.arange(N), COUNTS)
    weighted = score(y, pred, weights=COUNTS)
    assert weighted.value == pytest.approx(score(y[repeated], pred[repeated]).value, rel=1e-12)
    assert weighted.estimator == "weighted mean"


@pytest.mark.parametrize("name", SCORES)
def test_equal_weights_change_nothing(name: str) -> None:
    score, y, pred = SCORES[name]
    weighted, plain = score(y, pred, weights=np.full(N, 7.0)), score(y, pred)
    assert weighted.value == pytest.approx(plain.value, rel=1e-12)
    assert weighted.standard_error == pytest.approx(plain.standard_error, rel=1e-12)


def test_an_infinite_score_of_weight_zero_does_not_count() -> None:
    probs = np.array([[1.0, 0.0], [0.4, 0.6]])
    assert wc.nll([1, 1], wc.Categorical(probs)).value == np.inf
    assert wc.nll([1, 1], wc.Categorical(probs), weights=[0.0, 1.0]).value == pytest.approx(-np.log(0.6))


def test_one_dominating_weight_leaves_no_standard_error() -> None:
    """What was seen: NLL 1.07 +- 0.0014 of weights 1e6, 1, 1, ..., with an interval 1e149 wide."""
    weights = np.r_[1e6, np.ones(N - 1)]
    found = wc.nll(Y, wc.Normal(LOC, SCALE), weights=weights)
    words = "weights are worth 1 case of equal weight, fewer than two"
    assert found.standard_error is None
    assert words in repr(found)
    with pytest.raises(ValueError, match=words):
        found.confidence_interval()
    running = wc.RunningMeasures(["nll"])
    for rows in (slice(5, N), slice(0, 5)):
        running.update(Y[rows], wc.Normal(LOC[rows], SCALE[rows]), weights=weights[rows])
    summed = running.result()
    assert summed.estimates["nll"].standard_error is None
    assert f"; no error known: {words}" in repr(summed)
    error = wc.skce(Y, wc.Normal(LOC, SCALE), weights=weights)
    assert error.standard_error is None
    assert words in repr(error)
    for score in (found, summed.estimates["nll"]):
        assert wc.Estimate.from_json(score.to_json()) == score


def test_one_dominating_weight_shows_no_difference() -> None:
    two = wc.Normal(LOC, SCALE), wc.Normal(LOC, 2.0 * SCALE)
    found = wc.compare(Y, *two, weights=np.r_[1e6, np.ones(N - 1)], n_resamples=99, rng=0)
    assert not any(np.abs(difference.statistic) > 100.0 for difference in found.differences)
    assert not any(difference.is_shown for difference in found.differences)


def test_standard_errors_of_weighted_means_are_unbiased_for_scores_of_one_variance() -> None:
    """The expectation, and degrees that match the variance, of a quadratic form by its matrix."""
    for weights in (RNG.lognormal(0.0, 1.0, N), np.r_[3.0, 2.0, np.full(N - 2, 0.1)]):
        share = weights / weights.sum()
        residuals = np.eye(N) - share
        form = residuals.T @ np.diag(share**2) @ residuals
        found = MeanOfWeighted.of(weights)
        assert found.factor * np.trace(form) == pytest.approx(np.sum(share**2), rel=1e-12)
        assert found.degrees == pytest.approx(np.trace(form) ** 2 / np.trace(form @ form), rel=1e-10)
        assert found.cases == pytest.approx(1.0 / np.sum(share**2), rel=1e-12)
        sums = MeanOfWeighted.from_sums(*(np.sum(weights**k) for k in range(1, 6)))
        assert sums == pytest.approx(found, rel=1e-10)


def test_intervals_of_unequal_weights_hold_the_mean() -> None:
    """Three heavy cases among 30: Kish's number of cases in the place of degrees gave 90%."""
    rng, held, sets = np.random.default_rng(0), 0, 400
    weights = np.where(np.arange(30) < 3, 30.0, 1.0)
    for scores in rng.normal(size=(sets, 30)):
        interval = mean_score(scores, "a score", weights=weights).confidence_interval()
        held += interval.low <= 0.0 <= interval.high
    assert held >= stats.binom.ppf(0.001, sets, 0.95)


def test_weights_of_any_size_in_parts() -> None:
    """Fifth powers of weights are within what numbers hold."""
    pred = wc.Normal(LOC, SCALE)
    expected = wc.nll(Y, pred, weights=COUNTS)
    for unit in (1e-90, 1e90):
        running = wc.RunningMeasures(["nll"])
        for rows in (slice(0, 1), slice(1, 7), slice(7, N)):  # the first has weight zero
            running.update(Y[rows], pred[rows], weights=unit * COUNTS[rows])
        found = running.result().estimates["nll"]
        assert found.value == pytest.approx(expected.value, rel=1e-12)
        assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-12)
        ends = [x.confidence_interval().high for x in (found, expected)]
        assert ends[0] == pytest.approx(ends[1], rel=1e-12)


def test_gradients_flow_through_weighted_scores() -> None:
    loc = torch.tensor(LOC, requires_grad=True)
    wc.crps(torch.tensor(Y), wc.Normal(loc, torch.tensor(SCALE)), weights=COUNTS).value.backward()
    repeated = np.repeat(np.arange(N), COUNTS)
    other = torch.tensor(LOC, requires_grad=True)
    pred = wc.Normal(other[repeated], torch.tensor(SCALE[repeated]))
    wc.crps(torch.tensor(Y[repeated]), pred).value.backward()
    np.testing.assert_allclose(loc.grad.numpy(), other.grad.numpy(), rtol=1e-12, atol=1e-15)


def test_weighted_scores_compile() -> None:
    with jax.enable_x64(True):
        arrays = [jnp.asarray(a) for a in (LOC.copy(), SCALE.copy(), Y.copy(), COUNTS.astype(float))]
        compiled = jax.jit(lambda m, s, y, w: wc.nll(y, wc.Normal(m, s), weights=w).value)
        expected = wc.nll(Y, wc.Normal(LOC, SCALE), weights=COUNTS).value
        assert float(compiled(*arrays)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(N - 1), "weights"),
        (np.where(np.arange(N) == 4, -1.0, 1.0), "row 4"),
        (np.where(np.arange(N) == 2, np.nan, 1.0), "row 2"),
        (np.zeros(N), "all are zero"),
    ],
)
def test_bad_weights_are_errors(weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wc.nll(Y, wc.Normal(LOC, SCALE), weights=weights)


def test_mmce_takes_weights() -> None:
    repeated = np.repeat(np.arange(N), COUNTS)
    pred = wc.Categorical(PROBS)
    expected = wc.mmce(LABELS[repeated], pred[repeated]).value
    assert wc.mmce(LABELS, pred, weights=COUNTS).value == pytest.approx(expected, rel=1e-10)


def test_measures_that_weights_forbid_are_told_and_those_of_other_families_are_not() -> None:
    running = wc.RunningMeasures()
    y, pred = np.array([0.1, 0.4, -0.3]), wc.Normal(np.zeros(3), np.ones(3))
    running.update(y, pred, weights=[1.0, 2.0, 3.0])
    both = wc.RunningMeasures()
    both.merge(running)
    for found in (running.result(), both.result()):
        assert found.forbidden == ("coverage", "pit", "skce")
        assert "left out      coverage: weights have no meaning for coverage: " in repr(found)
        assert "ece" in found.left_out  # as of all normals
    plain = wc.RunningMeasures()
    plain.update(y, pred)
    assert plain.result().forbidden == ()
