"""Which pictures show the error of a family best, and those of models and reports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray, stop_gradient, to_numpy
from wellcal._arrays.seeds import as_generator
from wellcal.displays import (
    CoordinatesDisplay,
    CoverageDisplay,
    PITDisplay,
    QuantileCalibrationDisplay,
    ReliabilityDisplay,
    ResidualDisplay,
    coordinates,
    coverage,
    quantiles,
    reliability,
    residuals,
    uniformity,
)
from wellcal.expectations.decompose import targets_are_indices
from wellcal.hypotests.resampling.targets import users_form
from wellcal.hypotests.result import TestResult
from wellcal.hypotests.setup import numpy_batch
from wellcal.hypotests.tolerance import ToleranceResult
from wellcal.measures.estimate import Estimate
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.base import check_inputs
from wellcal.reporting.data import DRAWN, at_most
from wellcal.reporting.pictures import Pictures, ReportFigure, null_of, pictures, pictures_of, tolerance_of
from wellcal.reporting.result import ModelReport, Report

__all__ = ["DRAWN", "Kind", "Shown", "kinds_for", "pictures_of", "telling"]

EACH = "coordinates"
"""The picture of all coordinates of vectors, which has curves enough for one model."""

_MOST_CLASSES = 12


class Kind(NamedTuple):
    """A kind of picture: what it is called, what it answers, the display, and its options."""

    name: str
    title: str
    question: str
    display: Any
    options: dict[str, Any]


def kinds_for(predictions: Any) -> list[Kind]:
    """Pictures of a family, the one that shows its errors best first; none for objects."""
    if targets_are_indices(predictions):
        found = [Kind("reliability", "Reliability diagram", reliability.QUESTION, ReliabilityDisplay, {})]
        classes = int(predictions.class_probs().shape[1])
        if 2 < classes <= _MOST_CLASSES and getattr(predictions, "support", None) is None:
            each = "Are the probabilities of each class what happens?"
            options = {"reduce": "classwise"}
            found.append(Kind("classes", "Reliability of each class", each, ReliabilityDisplay, options))
        return found
    if getattr(predictions, "holds_objects", False):
        return []
    if predictions.event_shape != ():
        each, display = "Coordinates, difference from uniform", CoordinatesDisplay
        joint = {"coordinates": False}
        return [
            Kind(EACH, each, coordinates.QUESTION, display, {}),
            Kind("together", "All coordinates together", coordinates.FAR_OUT, display, joint),
        ]
    question = uniformity.QUESTION
    pit = [
        Kind("pit", "PIT, difference from uniform", question, PITDisplay, {"kind": "ecdf"}),
        Kind("histogram", "PIT histogram", question, PITDisplay, {"kind": "histogram"}),
    ]
    if isinstance(predictions, Samples) and predictions.kind == "draws":
        pit = [
            pit[1]._replace(title="Rank histogram"),
            pit[0]._replace(title="Ranks, difference from uniform"),
        ]
    pit.append(Kind("coverage", "Coverage of intervals", coverage.QUESTION, CoverageDisplay, {}))
    pit.append(Kind("residuals", "Residuals", residuals.QUESTION, ResidualDisplay, {}))
    if predictions.continuous and predictions.supports("cdf"):
        display = QuantileCalibrationDisplay
        pit.append(Kind("quantiles", "Calibration of quantiles", quantiles.QUESTION, display, {}))
    return pit


class Shown(NamedTuple):
    """One model in a picture; `dependent` are cases in clusters, for which a picture runs no test itself."""

    targets: NDArray
    predictions: Predictions
    test: TestResult | None
    name: str | None
    dependent: bool = False


def telling(
    targets: NDArray, predictions: Predictions, test: TestResult | None, *, dependent: bool = False
) -> Pictures:
    """The picture that shows the error of a family best."""
    shown = [Shown(targets, predictions, test, None, dependent)]
    return {kind.name: _picture(kind, shown) for kind in kinds_for(predictions)[:1]}


def _picture(kind: Kind, models: Sequence[Shown]) -> ReportFigure:
    return ReportFigure(kind.title, kind.question, partial(_drawn, kind, models))


def _drawn(kind: Kind, models: Sequence[Shown]) -> Any:
    """All models on the same axes."""
    display: Any = None
    rows = at_most(len(models[0].predictions), DRAWN, as_generator(None))
    for model in models:
        targets, predictions = model.targets, model.predictions
        if rows is not None:
            targets, predictions = targets[rows], predictions[rows]
        options = {"result": model.test, "name": model.name, **kind.options}
        if model.dependent and model.test is None:
            options["test"] = False
        ax = None if display is None else display.ax_
        display = kind.display.from_predictions(targets, predictions, ax=ax, **options)
    return display


def _shown(model: ModelReport, named: bool) -> Shown | None:
    data = model.data
    if data is None:
        return None
    return Shown(data.targets, data.predictions, model.test, model.name if named else None)


@pictures.register(Estimate)
def _of_estimate(found: Estimate) -> Pictures:
    """The telling picture of the cases; that of a binned or smooth error with what it reduced classes to."""
    cases = found.cases
    if found.given is not None:
        targets, given = check_inputs(*found.given)
        own = numpy_batch(given).with_index(None)
        y = users_form(own, np.asarray(to_numpy(stop_gradient(targets))))
        shown = [Shown(y, own, None, None)]
        reduce = found.provenance.get("reduce")
        kinds = kinds_for(own)[:1]
        if reduce in reliability.REDUCTIONS and kinds and kinds[0].name == "reliability":
            kinds = [kinds[0]._replace(options={"reduce": reduce})]
        return {kind.name: _picture(kind, shown) for kind in kinds}
    # Draws that a test pooled with their targets are no predictions any more.
    if cases is None or cases.weights is not None or isinstance(cases.predictions, Samples):
        return {}
    some = cases.in_numpy()
    y = users_form(some.predictions, some.targets)
    return telling(y, some.predictions, None, dependent=cases.groups is not None)


@pictures.register(TestResult)
def _of_test(found: TestResult) -> Pictures:
    given = found.given
    seen = {} if given is None else telling(users_form(given[1], given[0]), given[1], found)
    return {**seen, **null_of(found)}


@pictures.register(ToleranceResult)
def _of_tolerance(found: ToleranceResult) -> Pictures:
    return tolerance_of(found) | pictures_of(found.estimate)


@pictures.register(ModelReport)
def _of_model(model: ModelReport) -> Pictures:
    """The telling picture first, then where, others of the family, mending, and the null distribution."""
    found: Pictures = {}
    one = _shown(model, False)
    kinds = [] if one is None else kinds_for(one.predictions)
    if one is not None and kinds:
        found[kinds[0].name] = _picture(kinds[0], [one])
    if model.witness is not None:
        found |= pictures_of(model.witness)
    if one is not None:
        found |= {kind.name: _picture(kind, [one]) for kind in kinds[1:] if kinds[0].name != EACH}
    if model.segments is not None:
        found |= pictures_of(model.segments)
    if model.mended is not None:
        found |= pictures_of(model.mended.cross_fitted)
    return found | null_of(model.test)


@pictures.register(Report)
def _of_report(report: Report) -> Pictures:
    """Those of the only model; of several, all models in each picture, and the comparison."""
    if report.comparison is None:
        return pictures_of(report.best)
    models = [one for one in (_shown(model, True) for model in report.models) if one is not None]
    found: Pictures = {}
    if models:
        first = {kind.name: kind for kind in kinds_for(models[0].predictions)}
        common = [name for name in first if all(_has(model, name) for model in models)]
        # Each class, or coordinate, of each model is for the pictures of single models.
        found = {name: _picture(first[name], models) for name in common if name not in ("classes", EACH)}
    compared = pictures_of(report.comparison)
    first_of_all = dict(list(found.items())[:1])
    return {**first_of_all, **compared, **found}


def _has(model: Shown, name: str) -> bool:
    return any(kind.name == name for kind in kinds_for(model.predictions))
