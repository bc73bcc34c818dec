"""Brier score and CRPS: what they accept, how they report, what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import brier_score_loss

import wellcal as wc
from wellcal.measures.scores import brier, crps

RNG = np.random.default_rng(40)
N = 30
PROBS = RNG.dirichlet(np.ones(4), N)
Y = RNG.integers(0, 4, N)
HIT, P = (Y == 0).astype(int), PROBS[:, 0]


@pytest.mark.parametrize("half", [True, False, None])
def test_brier_against_scikit_learn(half: bool | None) -> None:
    name: Any = "auto" if half is None else half
    theirs = brier_score_loss(Y, PROBS, labels=range(4), scale_by_half=name)
    assert brier(Y, PROBS, scale_by_half=half).value == pytest.approx(theirs, rel=1e-13)
    theirs = brier_score_loss(HIT, P, scale_by_half=name)
    assert brier(HIT, P, scale_by_half=half).value == pytest.approx(theirs, rel=1e-13)


def test_brier_of_two_classes_and_labels() -> None:
    both = wc.Categorical(np.stack([1 - P, P], axis=1), classes=["no", "yes"])
    assert brier(np.array(["no", "yes"])[HIT], both).value == pytest.approx(
        np.mean((P - HIT) ** 2), rel=1e-13
    )
    found = brier(HIT, P)
    assert found.standard_error == pytest.approx(stats.sem((P - HIT) ** 2), rel=1e-12)
    assert (found.name, found.n_samples) == ("Brier score", N)


def test_brier_of_perfect_predictions_is_zero() -> None:
    assert brier(Y, np.eye(4)[Y]).value == 0.0


def test_brier_of_counts() -> None:
    rate = RNG.gamma(2.0, 2.0, N)
    y = RNG.poisson(rate)
    k = np.arange(300)
    hit = k == y[:, None]
    expected = np.sum((stats.poisson.pmf(k, rate[:, None]) - hit) ** 2, axis=1).mean()
    assert brier(y, wc.Poisson(rate)).value == pytest.approx(expected, rel=1e-11)
    assert brier(y, wc.Poisson(rate), scale_by_half=True).value == pytest.approx(0.5 * expected, rel=1e-11)
    masses = stats.nbinom.pmf(k, 2.0, 1.0 / (1.0 + 0.5 * rate[:, None]))
    expected = np.sum((masses - hit) ** 2, axis=1).mean()
    assert brier(y, wc.NegativeBinomial(rate, 0.5)).value == pytest.approx(expected, rel=1e-10)


def test_scores_are_estimates() -> None:
    mu, y = RNG.normal(size=N), RNG.normal(size=N)
    found = crps(y, (mu, np.ones(N)))
    assert (found.name, found.estimator, found.n_samples) == ("CRPS", "mean", N)
    assert isinstance(found.value, float)
    assert found.confidence_interval().low < found.value
    assert crps(y[:1], wc.Normal(mu[:1], 1.0)).standard_error is None


def test_units_and_shifts() -> None:
    mu, y = RNG.normal(size=N), RNG.normal(size=N)
    families = (
        lambda a, b: wc.Normal(a * mu + b, a * np.ones(N)),
        lambda a, b: wc.Laplace(a * mu + b, a * np.ones(N)),
        lambda a, b: wc.StudentT(3.0, a * mu + b, a * np.ones(N)),
        lambda a, b: wc.PowerExponential(a * mu + b, a * np.ones(N), 1.5),
    )
    for family in families:
        assert crps(1e3 * y + 7, family(1e3, 7.0)).value == pytest.approx(
            1e3 * crps(y, family(1.0, 0.0)).value, rel=1e-10
        )


def test_the_true_distribution_scores_best() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=4000)
    honest = crps(y, (np.zeros(4000), np.ones(4000))).value
    for loc, scale in ((0.3, 1.0), (0.0, 1.5), (0.0, 0.6)):
        assert crps(y, wc.Normal(np.full(4000, loc), scale)).value > honest + 0.005


def test_numerical_scores_say_so() -> None:
    parts = [wc.PowerExponential(np.full(3, loc), 1.0, 1.5) for loc in (0.0, 0.7)]
    found = crps(np.zeros(3), wc.Mixture(parts))
    assert found.provenance["expectations"] == "lowered"
    assert found.provenance["expectation_error"] < 1e-10
    assert "Gauss-Legendre" in repr(found)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: brier(np.zeros(2), wc.Normal(np.zeros(2), 1.0)), TypeError, "wc.crps"),
        (lambda: brier(wc.Bernoulli(P), HIT), TypeError, "truth first"),
        (lambda: brier([0, 7], PROBS[:2]), ValueError, "row 1"),
        (lambda: crps(wc.Normal(P, 1.0), P), TypeError, "truth first"),
        (lambda: crps(Y, PROBS), TypeError, "support="),
        (lambda: crps(np.zeros((2, 2)), wc.DiagonalNormal(np.zeros((2, 2)), 1.0)), TypeError, "energy_score"),
        (lambda: crps(np.zeros(1), wc.Quantiles([0.5], np.zeros((1, 1)))), TypeError, "pinball_loss"),
        (lambda: crps(np.zeros(1), wc.Samples(np.zeros((1, 1)))), ValueError, "at least two draws"),
        (
            lambda: crps(np.zeros(2), wc.Normal(np.zeros(2), 1.0), fair=True),
            ValueError,
            "fair is for Samples",
        ),
        (lambda: crps(["a"], wc.Samples([["a", "b"]])), TypeError, "objects"),
        (lambda: crps([0.0, np.nan], wc.Normal(np.zeros(2), 1.0)), ValueError, "row 1"),
        (lambda: crps([1.0, 1.5], wc.Poisson(np.ones(2))), ValueError, "whole number in row 1"),
        (
            lambda: crps([1.0], wc.Mixture([wc.Poisson(np.ones(1)), wc.Normal(np.ones(1), 1.0)])),
            TypeError,
            "counts with other families",
        ),
        (
            lambda: crps([1.0], wc.Samples([[1.0, 2.0]], [[0.5, 0.5]], kind="atoms"), fair=True),
            ValueError,
            "equally weighted draws",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
