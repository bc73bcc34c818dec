"""What recalibration would do for cases that it has not seen."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal.comparison.differences import paired
from wellcal.comparison.models import NLL, scores_of_cases
from wellcal.hypotests.findings.finding import LEVEL
from wellcal.hypotests.findings.reasons import ALPHA
from wellcal.hypotests.result import TestResult
from wellcal.measures.scores.casewise import mean_score
from wellcal.predictions import (
    DiagonalNormal,
    LogNormal,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Predictions,
    Quantiles,
    Samples,
)
from wellcal.predictions.temperatures import check_supported
from wellcal.recalibration.cross_fitting import cross_fit
from wellcal.reporting.data import ModelData
from wellcal.reporting.pieces import Mended

NOT_TRIED = "Recalibration was not tried"
"""How the sentence begins that says why."""

FEWEST = 20
"""Cases that are worth a try: four in each fold."""


FITTED = 10_000_000
"""Parameters of all predictions together that temperatures are fitted to: a million cases of ten classes."""


def mended(
    model: ModelData, test: TestResult, rows: NDArray | None, seed: int, n_resamples: int | None = None
) -> Mended | str:
    """What recalibration does for a model, or a sentence that says why it cannot be tried.

    Temperatures and scores are those of all cases, and tests those of some of many. Where no likelihood
    can choose a temperature, or predictions are so many that this takes long, these are all there is.

    Parameters
    ----------
    model
        All cases.
    test
        What the report says of the model.
    rows
        Cases that are tested again; None for all.
    seed, n_resamples
        Of folds and tests.
    """
    try:
        check_supported(model.predictions)
    except TypeError as error:
        reason = str(error).removeprefix("pred: ").partition(";")[0]  # not all that it could be tried for
        if test.pvalue > ALPHA:
            return f"{NOT_TRIED}: {reason}."
        return f"{NOT_TRIED}: {reason}; {instead_of_temperature(model.predictions)}."
    if model.clusters is not None:
        return f"{NOT_TRIED}: its folds take cases as independent, and these come in clusters."
    if len(model) < FEWEST:
        return f"{NOT_TRIED}: {how_many(len(model))} are too few, {FEWEST} are needed."
    some, first = model, _scores(model)
    if rows is not None and (NLL not in first or _parameters(model) > FITTED):
        some, rows = model.some(rows), None
        first = _scores(some)
    # Forests and naive Bayes call things impossible that happen: no likelihood can choose for them.
    objective = "nll" if NLL in first else "skce"
    tested = len(some) if rows is None else len(rows)
    before = test if tested == test.n_samples else None
    options: dict[str, Any] = {"rng": seed, "n_resamples": n_resamples, "before": before}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # temperatures at the end of their range, which are told below
        found = cross_fit(some.targets, some.predictions, tested=rows, objective=objective, **options)
    if not _between(found.scaling.temperature_, found.scaling.bounds):
        return (
            "Recalibration was of no use: no temperature is best for these cases, which need another remedy."
        )
    second = _scores(replace(some, predictions=found.predictions))
    common = [name for name in first if name in second]
    if not common:
        return f"{NOT_TRIED}: no proper score is finite for these cases."
    was, now = (mean_score(scores[common[0]], common[0]) for scores in (first, second))
    differences = tuple(paired(name, first[name], second[name], LEVEL) for name in common)
    remedy = _remedy(model.predictions, found.scaling.temperature_)
    return Mended(remedy, was, now, differences, found, test.pvalue <= ALPHA, len(model))


def instead_of_temperature(predictions: Predictions) -> str:
    """What a person can do for predictions that no temperature is known for.

    Examples
    --------
    >>> from wellcal.predictions import LogNormal
    >>> instead_of_temperature(LogNormal([0.0], [1.0]))
    'give the logarithms of the targets and their normal distributions, which have one'
    """
    if isinstance(predictions, LogNormal):
        return "give the logarithms of the targets and their normal distributions, which have one"
    if isinstance(predictions, Quantiles):
        return "move each quantile by as much as other cases miss it (conformal prediction)"
    if isinstance(predictions, Samples):
        return "move draws, and stretch them about their mean, as other cases choose, and report again"
    if isinstance(predictions, NegativeBinomial):
        return "multiply means and dispersions by factors that other cases choose, and report again"
    if predictions.kind == "counts":
        return (
            "multiply means by a factor that other cases choose, and where counts are more dispersed than "
            "predicted take negative binomials (wc.NegativeBinomial)"
        )
    return "choose factors for means and spreads together on other cases, and report again"


def _scores(model: ModelData) -> dict[str, NDArray]:
    """Proper scores of each case, those that are finite."""
    targets = np.asarray(to_numpy(model.predictions.check_targets(model.targets)))
    return scores_of_cases(targets, model.predictions)


def _parameters(model: ModelData) -> int:
    """Numbers that all predictions are made of."""
    return sum(math.prod(array.shape) for array in model.predictions.arrays())


def _between(temperature: float, bounds: tuple[float, float]) -> bool:
    """Whether a temperature was found, and not the end of its range."""
    low, high = bounds
    return low * (1.0 + 1e-6) < temperature < high * (1.0 - 1e-6)


def _remedy(predictions: Predictions, temperature: float) -> str:
    if isinstance(predictions, (Normal, DiagonalNormal, MultivariateNormal)):
        return f"spreads times {temperature**0.5:.3g}"
    return f"temperature {temperature:.3g}"
