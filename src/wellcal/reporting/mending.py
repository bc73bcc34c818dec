"""What recalibration would do for cases that it has not seen."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal.comparison.differences import paired
from wellcal.comparison.models import NLL, scores_of_cases
from wellcal.hypotests.findings.finding import LEVEL
from wellcal.hypotests.result import TestResult
from wellcal.measures.scores.casewise import mean_score
from wellcal.predictions import DiagonalNormal, MultivariateNormal, Normal, Predictions
from wellcal.predictions.temperatures import check_supported
from wellcal.reporting.data import ModelData
from wellcal.reporting.pieces import Mended
from wellcal.scaling.cross_fitting import cross_fit

NOT_TRIED = "Recalibration was not tried"
"""How the sentence begins that says why."""

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
        reason = str(error).removeprefix("pred: ").partition(";")[0]  # not all that it could be tried for
        return f"{NOT_TRIED}: {reason}."
    if model.clusters is not None:
        return f"{NOT_TRIED}: its folds take cases as independent, and these come in clusters."
    if len(model) < FEWEST:
        return f"{NOT_TRIED}: {how_many(len(model))} are too few, {FEWEST} are needed."
    targets: NDArray = np.asarray(to_numpy(model.predictions.check_targets(model.targets)))
    first = scores_of_cases(targets, model.predictions)
    options: dict[str, Any] = {"rng": seed, "n_resamples": n_resamples, "before": before}
    # Forests and naive Bayes call things impossible that happen: no likelihood can choose for them.
    objective = "nll" if NLL in first else "skce"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # temperatures at the end of their range, which are told below
        found = cross_fit(model.targets, model.predictions, objective=objective, **options)
    if not _between(found.scaling.temperature_, found.scaling.bounds):
        return (
            "Recalibration was of no use: no temperature is best for these cases, which need another remedy."
        )
    second = scores_of_cases(targets, found.predictions)
    common = [name for name in first if name in second]
    if not common:
        return f"{NOT_TRIED}: no proper score is finite for these cases."
    was, now = (mean_score(scores[common[0]], common[0]) for scores in (first, second))
    differences = tuple(paired(name, first[name], second[name], LEVEL) for name in common)
    return Mended(_remedy(model.predictions, found.scaling.temperature_), was, now, differences, found)


def _between(temperature: float, bounds: tuple[float, float]) -> bool:
    """Whether a temperature was found, and not the end of its range."""
    low, high = bounds
    return low * (1.0 + 1e-6) < temperature < high * (1.0 - 1e-6)


def _remedy(predictions: Predictions, temperature: float) -> str:
    if isinstance(predictions, (Normal, DiagonalNormal, MultivariateNormal)):
        return f"spreads times {temperature**0.5:.3g}"
    return f"temperature {temperature:.3g}"
