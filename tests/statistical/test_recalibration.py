"""What cross-fitted p-values are worth, over simulated data sets with fixed seeds."""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.recalibration import TemperatureScaling, cross_fit
from wellcal.recalibration.temperature import apply_temperature

from .designs import check_rate, check_spread, check_value

HIGH = 0.2


@cache
def fitted(r: int, n: int, shift: float) -> Any:
    """A model whose spread a temperature mends, and its shift none."""
    rng = np.random.default_rng([41, r, n])
    mu = rng.normal(size=n)
    y = rng.normal(mu + shift * np.sign(mu), 1.0)
    return cross_fit(y, wc.Normal(mu, 0.5 * np.ones(n)), folds=3, method="exact", rng=rng, n_resamples=99)


def test_a_mended_model_is_seldom_rejected() -> None:
    """All cases together are a little cautious, one fold the opposite; twice the median is a bound."""
    found = (fitted(r, 60, 0.0) for r in count())
    check_rate("recalibration, all folds", (each.after.pvalue <= HIGH for each in found))
    found = (fitted(r, 60, 0.0) for r in count())
    check_rate("recalibration, one fold", (each.fold_pvalues[0] <= HIGH for each in found))
    found = (fitted(r, 60, 0.0) for r in count())
    check_rate("recalibration, missed before", (each.before.pvalue > 0.05 for each in found))
    for r in range(5):
        each = fitted(r, 60, 0.0)
        assert each.pvalue_bound == pytest.approx(min(1.0, 2.0 * np.median(each.fold_pvalues)))


def test_a_model_that_no_temperature_mends_is_found() -> None:
    found = (fitted(r, 120, 0.7) for r in count())
    check_rate("recalibration, missed after", (each.after.pvalue > 0.05 for each in found))


def test_temperatures_are_found_by_both_objectives() -> None:
    """The error of log T falls as n^(-1/2): it has the mean and the spread that the likelihood gives."""
    errors = {"nll": [], "skce": []}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        mu, sigma = rng.normal(size=200), np.exp(rng.normal(0.0, 0.3, 200))
        honest = wc.Normal(mu, sigma)
        y, sharp = honest.sample(rng), apply_temperature(honest, 1.0 / 3.0)
        for objective, found in errors.items():
            found.append(np.log(TemperatureScaling().fit(y, sharp, objective).temperature_ / 3.0))
    spread = 1.5 * np.sqrt(2.0 / 200)  # of the likelihood, and room for the SKCE, which is less exact
    for found in errors.values():
        error = spread / np.sqrt(len(found))
        check_value("temperatures", float(np.mean(found)), 0.0, error=error, size=10**6, find=0.3)
        check_spread("temperatures", found, spread, find=3.0)
