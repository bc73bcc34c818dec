"""What p-values after recalibration are worth: cross-fitted, by folds, and on the fitting data."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import wellcal as wc
from benchmarks import environment
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.studies import ALPHA, Rate, rates
from wellcal.recalibration import TemperatureScaling, apply_temperature, cross_fit

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


NAMES = ("pooled", "one fold", "bound", "fitting data")


def pvalues(y: Any, pred: Any, *, rng: np.random.Generator) -> dict[str, float]:
    """p-values after recalibration of one data set.

    Of all cases, each recalibrated by the other folds; of one fold, recalibrated by the others; twice the
    median of folds; and on the data that the temperature was fitted to, which nobody should report.
    """
    for_folds, for_same = rng.spawn(2)
    found = cross_fit(y, pred, rng=for_folds, n_resamples=RESAMPLES)
    scaled = TemperatureScaling().fit(y, pred).transform(pred)
    same = wc.calibration_test(y, scaled, rng=for_same, n_resamples=RESAMPLES)
    values = (found.after.pvalue, float(found.fold_pvalues[0]), found.pvalue_bound, same.pvalue)
    return dict(zip(NAMES, values, strict=True))


def recalibrated(settings: Settings) -> Section:
    """Rejection rates after a temperature that is the right remedy."""
    load = environment.load_average()
    cells: list[tuple[str, int, dict[str, Rate]]] = []
    for family in FAMILIES:
        for n in SIZES:
            draw = partial(too_certain, family)
            found = rates(("recalibrated", family, n), draw, n, pvalues, settings.data_sets)
            cells.append((family, n, found))
    rows = [(family, str(n), *(str(rate) for rate in found.values())) for family, n, found in cells]
    failures = [
        f"{name} on {family}, n = {n}: {found[name]}"
        for family, n, found in cells
        for name in ("pooled", "bound")
        if not found[name].within(ALPHA, 0.01 / (2 * len(cells)), upper_only=True)
    ]
    body = (
        f"Rejection rates at alpha = {ALPHA} after temperature scaling of models that are too certain by the "
        f"same temperature everywhere, {settings.data_sets:,} data sets a cell, 5 folds.\n\n"
        f"{table(('predictions', 'n', *NAMES), rows)}\n\n{environment.describe(load)}"
    )
    return Section("recalibration", "p-values after recalibration", body, tuple(failures))
