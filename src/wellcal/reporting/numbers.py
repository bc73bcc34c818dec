"""Numbers of a report: the size of the error, proper scores, coverage and ECE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy, widen
from wellcal._arrays.round_numbers import how_many
from wellcal.hypotests.findings.finding import LEVEL
from wellcal.hypotests.result import TestResult
from wellcal.measures._kce import kce
from wellcal.measures.binned import ece
from wellcal.measures.estimate import NOT_FINITE, Estimate
from wellcal.measures.intervals import Interval
from wellcal.measures.quantiles import (
    IntervalCoverage,
    QuantileCalibration,
    interval_coverage,
    quantile_calibration,
)
from wellcal.measures.quantiles.known_levels import has_intervals
from wellcal.measures.running.means import SCORES
from wellcal.measures.scores import brier, crps, energy_score
from wellcal.measures.scores.casewise import nll, pinball_loss
from wellcal.measures.wording import impossible_phrase
from wellcal.predictions import Quantiles, Samples
from wellcal.reporting.data import ModelData

INFINITE = "infinite"
"""What the provenance of a score says of cases that make it infinite."""


def error_of(some: ModelData, test: TestResult) -> Estimate:
    """KCE with its interval: over all pairs, and for many cases from blocks, as the test has it."""
    if test.estimate.estimator != "block" and some.clusters is None:
        # Draws are pooled with their targets by a test: of few draws as they are KCE is not zero, nor is its
        # interval, even if they are right.
        targets, predictions, kernel = some.targets, some.predictions, test.kernel
        cases = test.estimate.cases
        if isinstance(predictions, Samples) and cases is not None:
            targets, predictions, kernel = cases.targets, cases.predictions, cases.kernel
        found = kce(targets, predictions, kernel=kernel).with_deviations_of(test.estimate)
        found.confidence_interval(LEVEL)
        told = replace(found, kernel=test.kernel)
        return told if found.cases is None else told.with_cases(found.cases).with_deviations_of(found)
    value, squared = float(test.estimate), test.estimate.confidence_interval(LEVEL)
    between = "SKCE between clusters" if some.clusters is not None else "mean over blocks"
    low, high = (max(end, 0.0) ** 0.5 for end in (squared.low, squared.high))
    return Estimate(
        max(value, 0.0) ** 0.5,
        None,
        "KCE",
        f"root of the {between}",
        test.n_samples,
        test.kernel,
        intervals=(Interval(low, high, LEVEL, squared.method),),
    )


def scores_of(model: ModelData) -> dict[str, Estimate]:
    """Proper scores that the predictions have, the one in units of the targets first."""
    y, predictions = model.targets, model.predictions
    known: dict[str, Callable[..., Estimate]] = (
        {"Brier score": brier, "NLL": nll}
        if predictions.kind == "classes"
        else {"CRPS": crps, "NLL": nll}
        if predictions.event_shape == ()
        else {"energy score": energy_score, "NLL": nll}
    )
    if isinstance(predictions, Quantiles):
        known = {"pinball loss": pinball_loss}
    found: dict[str, Estimate] = {}
    for name, score in known.items():
        try:
            with np.errstate(all="ignore"):
                value = score(y, predictions)
        except (TypeError, ValueError):  # a family that does not have it
            continue
        lost = value.provenance.get(NOT_FINITE, 0)
        if np.isposinf(float(value)) and name == "NLL" and lost:
            value = replace(value, provenance={**value.provenance, INFINITE: _impossible(model, lost)})
        if model.clusters is not None:
            told = {**value.provenance, "clusters": len(np.unique(model.clusters))}
            value = replace(value, standard_error=_clustered_error(name, model), provenance=told)
        known_interval(value)  # which is stored with it
        found[name] = value
    return found


def _impossible(model: ModelData, lost: int) -> str:
    """How many cases have an infinite NLL."""
    of_densities = model.predictions.continuous
    return f"{how_many(lost)} had density 0 for what happened" if of_densities else impossible_phrase(lost)


def known_interval(estimate: Estimate) -> Interval | None:
    """The 95% interval of an estimate; None where it has none, as an infinite score."""
    error = estimate.standard_error
    known = error is not None and bool(np.isfinite(float(to_numpy(error))))
    if not (estimate.intervals or known or (error is None and estimate.cases is not None)):
        return None
    found = estimate.confidence_interval(LEVEL)
    return found if np.isfinite(found.high - found.low) else None


def _clustered_error(name: str, model: ModelData) -> float | None:
    """Standard error of a mean of scores, from the sums of deviations in clusters."""
    y, predictions = model.targets, model.predictions
    with np.errstate(all="ignore"):
        of_cases = next(function for called, function in SCORES.values() if called == name)
        scores, _ = of_cases(y, predictions)
        values = np.asarray(to_numpy(widen(scores)), dtype=np.float64)
        sums = np.bincount(cast("NDArray", model.clusters), weights=values - values.mean())
    count = len(sums)
    return float(np.sqrt(np.sum(sums**2) * count / (count - 1.0)) / len(values))


def numbers_of(model: ModelData) -> tuple[IntervalCoverage | None, QuantileCalibration | None]:
    """Coverage of intervals, and calibration of quantiles, of predictions that have them."""
    if model.predictions.kind == "classes" or model.predictions.event_shape != ():
        return None, None
    coverage: Any = None
    if has_intervals(model.predictions):
        coverage = _or_none(lambda: interval_coverage(model.targets, model.predictions))
    quantiles: Any = _or_none(lambda: quantile_calibration(model.targets, model.predictions))
    return coverage, quantiles


def ece_of(model: ModelData) -> Estimate | None:
    """ECE of predictions of classes, or None."""
    if model.predictions.kind != "classes":
        return None
    return _or_none(lambda: ece(model.targets, model.predictions))


def _or_none(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except (TypeError, ValueError):
        return None
