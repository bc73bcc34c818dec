"""What recalibration would do for cases that it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.special import quiet
from wellcal.comparison.differences import Difference, t_quantile
from wellcal.comparison.models import scores_of_cases
from wellcal.hypotests.findings.finding import LEVEL
from wellcal.hypotests.result import TestResult
from wellcal.predictions import DiagonalNormal, MultivariateNormal, Normal, Predictions
from wellcal.predictions.temperatures import check_supported
from wellcal.reporting.data import ModelData
from wellcal.reporting.pieces import Mended
from wellcal.scaling.cross_fitting import cross_fit

FOLDS = 5
FEWEST = 20
"""Cases that are worth a try: four in each fold."""


def mended(
    model: ModelData, before: TestResult | None, seed: int, n_resamples: int | None = None
) -> Mended | str:
    """What recalibration does for a model, or a sentence that says why it cannot be tried.

    Parameters
    ----------
    model
        The cases.
    before
        A test of the same cases; None runs it.
    seed, n_resamples
        Of folds and tests.
    """
    try:
        check_supported(model.predictions)
    except TypeError as error:
        return f"Recalibration was not tried: {str(error).removeprefix('pred: ')}."
    if len(model) < FEWEST:
        return f"Recalibration was not tried: {len(model)} cases are too few, {FEWEST} are needed."
    targets: NDArray = np.asarray(to_numpy(model.predictions.check_targets(model.targets)))
    options: dict[str, Any] = {"folds": FOLDS, "rng": seed, "n_resamples": n_resamples, "before": before}
    # Forests and naive Bayes call things impossible that happen: no likelihood can choose for them.
    objective = "nll" if np.isfinite(_log_densities(model.predictions, targets)).all() else "skce"
    found = cross_fit(model.targets, model.predictions, objective=objective, **options)
    differences = _differences(targets, model.predictions, found.predictions)
    if not differences:
        return "Recalibration was not tried: no proper score is finite for these cases."
    return Mended(_remedy(model.predictions, found.scaling.temperature_), differences, found)


def _differences(targets: NDArray, before: Predictions, after: Any) -> tuple[Difference, ...]:
    """Scores before less after, case by case."""
    first, second = scores_of_cases(targets, before), scores_of_cases(targets, after)
    n = len(targets)
    critical = t_quantile(n - 1.0, LEVEL)
    found: list[Difference] = []
    for name in first:
        if name in second:
            gaps = first[name] - second[name]
            error = float(np.std(gaps, ddof=1)) / n**0.5
            means = float(first[name].mean()), float(second[name].mean())
            found.append(Difference(name, *means, error, n - 1.0, critical, LEVEL))
    return tuple(found)


@quiet
def _log_densities(predictions: Predictions, targets: NDArray) -> NDArray:
    return np.asarray(to_numpy(predictions.log_prob(targets)))


def _remedy(predictions: Predictions, temperature: float) -> str:
    if isinstance(predictions, (Normal, DiagonalNormal, MultivariateNormal)):
        return f"spreads times {temperature**0.5:.3g}"
    return f"temperature {temperature:.3g}"
