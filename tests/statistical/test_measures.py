"""Statistical claims of measures: uniform transforms, bands that hold, estimates without bias."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import wellcal as wc
from wellcal import ece, interval_coverage, pit, quantile_calibration
from wellcal.measures.scores import crps


def calibrated(family: str, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    a, b = rng.normal(size=n), rng.gamma(2.0, 1.0, n)
    if family == "draws":
        pool = rng.normal(a[:, None], b[:, None], (n, 8))
        return pool[:, 0], wc.Samples(pool[:, 1:])
    pred: Any = {
        "Poisson": lambda: wc.Poisson(b),
        "NegativeBinomial": lambda: wc.NegativeBinomial(b, 0.5),
        "Categorical": lambda: wc.Categorical(rng.dirichlet(np.ones(4), n)),
        "Gamma": lambda: wc.Gamma(b, 1.0),
        "Mixture": lambda: wc.Mixture([wc.Poisson(b), wc.Poisson(3 * b)], [0.4, 0.6]),
        "Quantiles": lambda: wc.Quantiles([0.1, 0.5, 0.8], a[:, None] + [-1.0, 0.0, 2.0]),
    }[family]()
    return pred.sample(rng), pred


@pytest.mark.parametrize(
    "family", ["Poisson", "NegativeBinomial", "Categorical", "Gamma", "Mixture", "Quantiles", "draws"]
)
def test_transforms_of_calibrated_models_are_uniform(family: str) -> None:
    rng = np.random.default_rng(7)
    y, pred = calibrated(family, 3000, rng)
    assert stats.kstest(pit(y, pred, rng=rng), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("family", ["Poisson", "draws", "Gamma"])
def test_coverage_is_as_expected(family: str) -> None:
    y, pred = calibrated(family, 3000, np.random.default_rng(8))
    found = interval_coverage(y, pred)
    error = np.sqrt(found.expected * (1 - found.expected) / 3000)
    assert np.all(np.abs(found.coverage - found.expected) < 4 * error)
    assert np.all((found.low <= found.expected) & (found.expected <= found.high))


@pytest.mark.parametrize("kind", ["kolmogorov", "equal_precision"])
def test_bands_hold_for_the_whole_curve(kind: str) -> None:
    """Share of curves of a calibrated model that leave a band of level 0.9 somewhere: at most 0.1."""
    rng = np.random.default_rng(9)
    n, repetitions = 40, 400
    levels = np.linspace(0.05, 0.95, 19)
    left = 0
    low = high = None
    for _ in range(repetitions):
        mu = rng.normal(size=n)
        found = quantile_calibration(rng.normal(mu, 1.0), wc.Normal(mu, 1.0), levels=levels)
        if low is None:
            low, high = found.band(0.9, kind=kind)
        left += bool(np.any((found.frequencies < low - 1e-12) | (found.frequencies > high + 1e-12)))
    assert stats.binom.sf(left - 1, repetitions, 0.1) > 1e-3
    if kind == "equal_precision":
        assert stats.binom.cdf(left, repetitions, 0.07) > 1e-3


def test_debiased_errors_of_a_calibrated_model() -> None:
    """Squared errors have mean zero; of the bias of total variation about three fifths are left."""
    rng = np.random.default_rng(10)
    values = {"squared": [], "plug-in": [], "debiased": []}
    for _ in range(200):
        p = rng.random(100)
        y = (rng.random(100) < p).astype(int)
        values["squared"].append(float(ece(y, p, distance="squared_euclidean", estimator="debiased")))
        values["plug-in"].append(float(ece(y, p)))
        values["debiased"].append(float(ece(y, p, estimator="debiased")))
    squared = np.array(values["squared"])
    assert abs(squared.mean()) < 4 * stats.sem(squared)
    assert 0 < np.mean(values["debiased"]) < 0.8 * np.mean(values["plug-in"])


def test_fair_scores_of_few_draws() -> None:
    """The mean fair score of three draws is the score of the distribution; the plug-in's is larger."""
    rng = np.random.default_rng(11)
    n = 20_000
    mu = rng.normal(size=n)
    y = rng.normal(mu, 1.0)
    draws = wc.Samples(rng.normal(mu[:, None], 1.0, (n, 3)))
    exact = crps(y, wc.Normal(mu, 1.0))
    fair, plug_in = crps(y, draws), crps(y, draws, fair=False)
    assert abs(fair.value - exact.value) < 4 * fair.standard_error
    assert plug_in.value > exact.value + 0.1
