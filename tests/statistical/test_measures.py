"""Statistical claims of measures: uniform transforms, bands that hold, estimates without bias."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wellcal as wc
from wellcal import ece, interval_coverage, pit, quantile_calibration
from wellcal.measures.scores import crps

from .designs import check_mean, check_rate, check_share, check_uniform, check_value, rate_of


def calibrated(family: str, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    a, b = rng.normal(size=n), rng.gamma(2.0, 1.0, n)
    if family == "draws":
        pool = rng.normal(a[:, None], b[:, None], (n, 8))
        return pool[:, 0], wc.Samples(pool[:, 1:])
    pred: Any = {
        "Poisson": lambda: wc.Poisson(b),
        "NegativeBinomial": lambda: wc.NegativeBinomial(b, 0.5),
        "Categorical": lambda: wc.Categorical(rng.dirichlet(np.ones(4), n), support=[3, 1, 4, 2]),
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
    y, pred = calibrated(family, 6000, rng)
    check_uniform("uniform transforms", pit(y, pred, rng=rng), find=0.045)


@pytest.mark.parametrize("family", ["Poisson", "draws", "Gamma"])
def test_coverage_is_as_expected(family: str) -> None:
    """Cases outside of intervals come at their rate, not at twice that; limits are exact at their level."""
    n = 6000
    y, pred = calibrated(family, n, np.random.default_rng(8))
    found = interval_coverage(y, pred)
    for covered, expected, low, high in zip(
        found.coverage, found.expected, found.low, found.high, strict=True
    ):
        inside, outside = round(covered * n), round((1.0 - covered) * n)
        # Of draws and counts rates differ between cases, which makes their sum less variable than a binomial.
        check_share("coverage", outside, n, 1.0 - expected, find=min(2.0 * (1.0 - expected), 0.9))
        assert stats.binom.sf(inside - 1, n, low) == pytest.approx(0.05 / 8, rel=1e-9)
        assert stats.binom.cdf(inside, n, high) == pytest.approx(0.05 / 8, rel=1e-9)


BAND_CASES = 40
BAND_LEVELS = np.linspace(0.05, 0.95, 19)


def chance_outside(low: np.ndarray, high: np.ndarray) -> float:
    """Probability that counts of uniforms leave a band at any level: by steps of a multinomial."""
    n, mass, before = BAND_CASES, np.eye(BAND_CASES + 1)[0], 0.0
    for level, least, most in zip(BAND_LEVELS, low, high, strict=True):
        share = (level - before) / (1.0 - before)
        moved = np.zeros(n + 1)
        for seen in np.flatnonzero(mass):
            moved[seen:] += mass[seen] * stats.binom.pmf(np.arange(n - seen + 1), n - seen, share)
        frequency = np.arange(n + 1) / n
        mass, before = np.where((frequency >= least - 1e-12) & (frequency <= most + 1e-12), moved, 0.0), level
    return 1.0 - float(mass.sum())


@pytest.mark.parametrize("kind", ["kolmogorov", "equal_precision"])
def test_bands_hold_for_the_whole_curve(kind: str) -> None:
    """Share of curves of a calibrated model that leave a band of level 0.9: exactly, and by simulation."""

    def curve(r: int) -> Any:
        rng = np.random.default_rng([9, r])
        mu = rng.normal(size=BAND_CASES)
        return quantile_calibration(rng.normal(mu, 1.0), wc.Normal(mu, 1.0), levels=BAND_LEVELS)

    low, high = curve(0).band(0.9, kind=kind)
    design = rate_of(f"bands: {kind}")
    exact, twice = chance_outside(low, high), chance_outside(*curve(0).band(0.8, kind=kind))
    assert exact <= design.null
    assert design.doubled <= twice
    assert exact <= 0.1 < twice  # a band at twice its error rate is seen without any simulation
    if kind == "equal_precision":
        assert exact > 0.07
    frequencies = (curve(r).frequencies for r in count())
    outside = (np.any((f < low - 1e-12) | (f > high + 1e-12)) for f in frequencies)
    check_rate(f"bands: {kind}", outside)


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
    check_mean("debiased errors", values["squared"], 0.0, find=0.5 * np.std(values["squared"]))
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
    error = float(fair.standard_error)
    check_value("fair scores", float(fair), float(exact), error=error, size=n, find=0.05)
    assert plug_in.value > exact.value + 0.1
