"""What cross-fitted p-values are worth, over simulated data sets with fixed seeds."""

from __future__ import annotations

import numpy as np
from scipy import stats

import wellcal as wc
from wellcal.scaling import TemperatureScaling, cross_fit
from wellcal.scaling.temperature import apply_temperature


def pvalues(repeats: int, n: int, shift: float) -> np.ndarray:
    """p-values before, after, and their bound by folds, of a model whose spread a temperature mends."""
    found = []
    for seed in range(repeats):
        rng = np.random.default_rng([seed, n])
        mu = rng.normal(size=n)
        y = rng.normal(mu + shift * np.sign(mu), 1.0)
        result = cross_fit(
            y, wc.Normal(mu, 0.5 * np.ones(n)), folds=3, method="exact", rng=rng, n_resamples=99
        )
        found.append((result.before.pvalue, result.after.pvalue, result.pvalue_bound))
    return np.array(found)


def test_a_mended_model_is_seldom_rejected() -> None:
    p = pvalues(30, 60, shift=0.0)
    rejected = np.sum(p <= 0.05, axis=0)
    assert rejected[0] > 20
    assert rejected[1] <= stats.binom.ppf(0.999, 30, 0.05)
    assert rejected[2] <= stats.binom.ppf(0.999, 30, 0.05)


def test_a_model_that_no_temperature_mends_is_found() -> None:
    p = pvalues(10, 120, shift=0.7)
    assert np.mean(p[:, 1] <= 0.05) > 0.8


def test_temperatures_are_found_by_both_objectives() -> None:
    """The error of log T falls as n^(-1/2): within four standard errors of the likelihood's."""
    errors = {"nll": [], "skce": []}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        mu, sigma = rng.normal(size=200), np.exp(rng.normal(0.0, 0.3, 200))
        honest = wc.Normal(mu, sigma)
        y, sharp = honest.sample(rng), apply_temperature(honest, 1.0 / 3.0)
        for objective, found in errors.items():
            found.append(np.log(TemperatureScaling().fit(y, sharp, objective).temperature_ / 3.0))
    spread = np.sqrt(2.0 / 200)
    for objective, found in errors.items():
        assert abs(np.mean(found)) < 4 * spread / np.sqrt(8), objective
        assert np.sqrt(np.mean(np.square(found))) < 2 * spread, objective
