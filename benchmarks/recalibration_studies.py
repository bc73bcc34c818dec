"""What p-values after recalibration are worth: cross-fitted, by folds, and on the fitting data."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import wellcal as wc
from benchmarks import environment
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.studies import ALPHA, Rate, rejection_rates
from wellcal.scaling import CrossFitted, TemperatureScaling, apply_temperature, cross_fit

RESAMPLES = 99
SIZES = (100, 400)
FAMILIES = ("normals", "classes")


def too_certain(family: str, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Targets, and predictions that a temperature of 2.5 would mend."""
    if family == "normals":
        honest: Any = wc.Normal(rng.normal(size=n), np.exp(rng.normal(0.0, 0.3, n)))
    else:
        logits = 2.0 * rng.normal(size=(n, 3))
        honest = wc.Categorical(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True))
    return honest.sample(rng), apply_temperature(honest, 1.0 / 2.5)


_last: list[Any] = [None, None]


def fitted(y: Any, pred: Any, rng: np.random.Generator) -> CrossFitted:
    """The cross-fitted result of a data set, which several columns of the table look at."""
    if _last[0] is not y:
        _last[:] = y, cross_fit(y, pred, rng=rng, n_resamples=RESAMPLES)
    return _last[1]


def pooled(y: Any, pred: Any, *, rng: np.random.Generator) -> float:
    """p-value of all cases, each recalibrated by the other folds."""
    return fitted(y, pred, rng).after.pvalue


def one_fold(y: Any, pred: Any, *, rng: np.random.Generator) -> float:
    """p-value of one fold, recalibrated by the others."""
    return float(fitted(y, pred, rng).fold_pvalues[0])


def bound(y: Any, pred: Any, *, rng: np.random.Generator) -> float:
    """Twice the median p-value of folds."""
    return fitted(y, pred, rng).pvalue_bound


def same_cases(y: Any, pred: Any, *, rng: np.random.Generator) -> float:
    """p-value on the data that the temperature was fitted to, which nobody should report."""
    scaled = TemperatureScaling().fit(y, pred).transform(pred)
    return wc.calibration_test(y, scaled, rng=rng, n_resamples=RESAMPLES).pvalue


TESTS = {"pooled": pooled, "one fold": one_fold, "bound": bound, "fitting data": same_cases}


def recalibrated(settings: Settings) -> Section:
    """Rejection rates after a temperature that is the right remedy."""
    load = environment.load_average()
    sets = max(20, settings.power_sets // 4)
    cells: list[tuple[str, int, dict[str, Rate]]] = []
    for family in FAMILIES:
        for n in SIZES:
            draw = partial(too_certain, family)
            cells.append((family, n, rejection_rates(("recalibrated", family, n), draw, n, TESTS, sets)))
    rows = [(family, str(n), *(str(rate) for rate in rates.values())) for family, n, rates in cells]
    failures = [
        f"{name} on {family}, n = {n}: {rates[name]}"
        for family, n, rates in cells
        for name in ("pooled", "bound")
        if not rates[name].within(ALPHA, 0.01 / (2 * len(cells)), upper_only=True)
    ]
    body = (
        f"Rejection rates at alpha = {ALPHA} after temperature scaling of models that are too certain by the "
        f"same temperature everywhere, {sets:,} data sets a cell, 5 folds.\n\n"
        f"{table(('predictions', 'n', *TESTS), rows)}\n\n{environment.describe(load)}"
    )
    return Section("recalibration", "p-values after recalibration", body, tuple(failures))
