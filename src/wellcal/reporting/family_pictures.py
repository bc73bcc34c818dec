"""Which pictures show the error of a family best, and those of models and reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray, stop_gradient, to_numpy
from wellcal._arrays.seeds import as_generator
from wellcal._arrays.special import LEAST_PROBABILITY
from wellcal.displays import (
    CoordinatesDisplay,
    CorrelationsDisplay,
    CoverageDisplay,
    PITDisplay,
    QuantileCalibrationDisplay,
    ReliabilityDisplay,
    ResidualDisplay,
    coordinates,
    correlations,
    coverage,
    quantiles,
    reliability,
    residuals,
    uniformity,
)
from wellcal.displays._events import in_order
from wellcal.displays.against import differing, either, words_of
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.resampling.targets import users_form
from wellcal.hypotests.result import TestResult
from wellcal.hypotests.setup import numpy_batch
from wellcal.hypotests.tolerance import ToleranceResult
from wellcal.measures.estimate import Estimate
from wellcal.measures.quantiles.known_levels import has_intervals
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.base import check_inputs
from wellcal.predictions.class_names import is_ordered
from wellcal.reporting.data import DRAWN, at_most
from wellcal.reporting.examples import observed_in_words as in_words
from wellcal.reporting.pictures import Pictures, ReportFigure, null_of, pictures, pictures_of, tolerance_of
from wellcal.reporting.result import ModelReport, Report
from wellcal.reporting.telling import (
    BY_MEAN,
    ONE_CLASS,
    ONE_GRADE,
    SHOWS,
    class_pictures,
    most_telling,
    wanted,
)

__all__ = ["DRAWN", "Kind", "Shown", "kinds_for", "pictures_of", "telling"]

EACH = "coordinates"
"""The picture of all coordinates of vectors, which has curves enough for one model."""

_PIT, _COVERAGE, _TOGETHER = "pit", "coverage", "together"
_MOST_CLASSES = 12


class Kind(NamedTuple):
    """A kind of picture: its name, title and question, the display, and its options."""

    name: str
    title: str
    question: str
    display: Any
    options: dict[str, Any]


def kinds_for(*models: Any) -> list[Kind]:
    """Pictures of predictions of a family, the usual one first; none for objects.

    Of several models, those that all have. Their residuals are drawn against what differs in each of them.
    """
    families = [_of_family(predictions) for predictions in models]
    found = [kind for kind in families[0] if all(kind.name in map(_name, others) for others in families[1:])]
    names = [kind.name for kind in found]
    if _PIT in names:  # numbers, and with intervals if these were predicted
        place = 1 + names.index(_COVERAGE if _COVERAGE in names else "histogram")
        found[place:place] = _of_residuals(models)
    return found


def _name(kind: Kind) -> str:
    return kind.name


def _of_family(predictions: Any) -> list[Kind]:
    if predictions.kind == "classes":
        return _of_classes(predictions)
    if getattr(predictions, "holds_objects", False):
        return []
    if predictions.event_shape != ():
        each, display = "Coordinates, difference from uniform", CoordinatesDisplay
        joint = {"coordinates": False}
        found = [
            Kind(EACH, each, coordinates.QUESTION, display, {}),
            Kind(_TOGETHER, "All coordinates together", coordinates.FAR_OUT, display, joint),
        ]
        if math.prod(predictions.event_shape) > 1:
            pairs = "Correlations of coordinates"
            found.append(Kind("correlations", pairs, correlations.QUESTION, CorrelationsDisplay, {}))
        return found
    question = uniformity.QUESTION
    pit = [
        Kind(_PIT, "PIT, difference from uniform", question, PITDisplay, {"kind": "ecdf"}),
        Kind("histogram", "PIT histogram", question, PITDisplay, {"kind": "histogram"}),
    ]
    if predictions.kind == "draws":
        pit = [
            pit[1]._replace(title="Rank histogram"),
            pit[0]._replace(title="Ranks, difference from uniform"),
        ]
    if has_intervals(predictions):
        pit.append(Kind(_COVERAGE, "Coverage of intervals", coverage.QUESTION, CoverageDisplay, {}))
    if predictions.continuous and predictions.supports("cdf"):
        display = QuantileCalibrationDisplay
        pit.append(Kind("quantiles", "Calibration of quantiles", quantiles.QUESTION, display, {}))
    return pit


def _of_residuals(models: Sequence[Any]) -> list[Kind]:
    """Against spreads and means where both differ; none where all points would be at one place."""
    found: list[Kind] = []
    for name, against in zip(("residuals", BY_MEAN), differing(*models), strict=False):
        title = f"Residuals against the {either(words_of(model, against) for model in models)}"
        question = residuals.QUESTIONS[against]
        found.append(Kind(name, title, question, ResidualDisplay, {"against": against}))
    return found


def _of_classes(predictions: Any) -> list[Kind]:
    found = [Kind("reliability", "Reliability diagram", reliability.QUESTION, ReliabilityDisplay, {})]
    count = int(predictions.class_probs().shape[1])
    if 2 < count <= _MOST_CLASSES and getattr(predictions, "support", None) is None:
        each = "Does each class happen as often as the model says?"
        options = {"reduce": "classwise"}
        found.append(Kind("classes", "Reliability of each class", each, ReliabilityDisplay, options))
    return found


def farthest_class(targets: NDArray, predictions: Any) -> Any:
    """The label of the class that is farthest off, or of the grade at or above which it is.

    By their reliability diagrams; of many classes, by how often they occur and how that goes with their odds.

    Examples
    --------
    >>> import wellcal as wc
    >>> pred = wc.Categorical(np.full((30, 13), 1 / 13))
    >>> farthest_class(np.repeat([4, 7], [2, 28]), pred)
    7
    """
    ordered = is_ordered(predictions)
    names: list[Any] = np.asarray(predictions.labels()).tolist()
    if len(names) <= _MOST_CLASSES:
        reduce = "cumulative" if ordered else "classwise"
        shown = ReliabilityDisplay.computed(targets, predictions, reduce=reduce, test=False)
        farthest = int(np.argmax([curve.reach for curve in shown.curves]))
        return names[in_order(predictions)[1 + farthest]] if ordered else names[farthest]
    p = np.asarray(to_numpy(predictions.class_probs()), dtype=np.float64)
    index = np.asarray(to_numpy(predictions.check_targets(targets)))
    off = (index[:, None] == np.arange(len(names))) - p
    variance = p * (1.0 - p)
    odds = special.logit(np.clip(p, LEAST_PROBABILITY, 1.0 - 1e-9))
    total = np.maximum(variance.sum(axis=0), 1e-300)
    odds = odds - np.sum(variance * odds, axis=0) / total
    z: list[NDArray] = []
    for weight in (np.ones_like(p), odds):
        spread = np.sqrt(np.maximum(np.sum(weight**2 * variance, axis=0), 1e-300))
        z.append(np.abs(np.sum(weight * off, axis=0)) / spread)
    return names[int(np.argmax(np.maximum(*z)))]


class Shown(NamedTuple):
    """One model in a picture; `dependent` are cases in clusters, for which a picture runs no test itself."""

    targets: NDArray
    predictions: Predictions
    test: TestResult | None
    name: str | None
    dependent: bool = False

    @property
    def off(self) -> bool:
        """Whether it is miscalibrated."""
        return self.test is not None and self.test.rejected

    @property
    def drawn(self) -> tuple[NDArray, Predictions]:
        """Targets and predictions of the cases that pictures show, the same ones in each of them."""
        rows = at_most(len(self.predictions), DRAWN, as_generator(None))
        return (
            (self.targets, self.predictions) if rows is None else (self.targets[rows], self.predictions[rows])
        )


class Drawing:
    """One kind of picture of some models, on the same axes: computed when it is asked for, then drawn."""

    def __init__(self, kind: Kind, models: Sequence[Shown]) -> None:
        self.kind, self.models = kind, models

    @cached_property
    def computed(self) -> list[Any]:
        """A display for each model, with its data."""
        found: list[Any] = []
        for model in self.models:
            targets, predictions = model.drawn
            options = {"result": model.test, "name": model.name, **self.kind.options}
            if model.dependent and model.test is None:
                options["test"] = False
            found.append(self.kind.display.computed(targets, predictions, **options))
        return found

    @cached_property
    def by_model(self) -> dict[str | None, float]:
        """How far each of the models leaves its band."""
        return {model.name: display.reach for display, model in zip(self.computed, self.models, strict=True)}

    @property
    def reaches(self) -> list[float]:
        """The same of those that are miscalibrated."""
        return [self.by_model[model.name] for model in self.models if model.off]

    def draw(self) -> Any:
        """The display of the last model, on the axes of all."""
        ax: Any = None
        for display in self.computed:
            ax = display.plot(ax).ax_
        return self.computed[-1]

    @property
    def figure(self) -> ReportFigure:
        """What is shown when somebody looks."""
        return ReportFigure(self.kind.title, self.kind.question, self.draw, lambda: self.by_model)


def album(models: Sequence[Shown], kinds: Sequence[Kind]) -> dict[str, Drawing]:
    """Pictures of some kinds by name."""
    return {kind.name: Drawing(kind, models) for kind in kinds}


def leading(pictures: dict[str, Drawing], findings: Sequence[Finding]) -> str | None:
    """The name of the picture that shows best what was found; None where none shows it.

    Where nothing was found it is the usual one. Of several models it shows all that are miscalibrated, or
    else the first, of which the verdict tells; where that one is not, any of the others.
    """
    models = next(iter(pictures.values())).models
    tests = [model.test for model in models if model.test is not None and model.off]
    if not tests:
        return next(iter(pictures))
    first = [name for name in wanted(tests[0], findings, pictures) if name in pictures]
    if "histogram" in first and next(iter(pictures)) == "histogram":  # of draws, the usual one
        first = ["histogram", *(name for name in first if name != "histogram")]
    others = [name for name in pictures if name not in first]
    for of_models in (min, _first if models[0].off else max):
        for names in (first, others):
            found = most_telling(names, lambda name: of_models(pictures[name].reaches))  # noqa: B023
            if found is not None:
                return found
    return None


def _first(reaches: Sequence[float]) -> float:
    return reaches[0]


def telling(shown: Shown, otherwise: Pictures | None = None) -> Pictures:
    """The picture that shows the error of some cases best.

    Where no picture of the family does, some others come before the usual one.
    """
    findings = () if shown.test is None else shown.test.findings
    found = album([shown], kinds_with(shown, findings))
    if not found:
        return otherwise or {}
    name = leading(found, findings)
    first = {} if name is not None else otherwise or {}
    name = next(iter(found)) if name is None else name
    return {**first, name: found[name].figure}


def kinds_with(model: Shown, findings: Sequence[Finding]) -> list[Kind]:
    """Pictures of a model: those of its family, and of each class that was told, or of one class or grade."""
    kinds = kinds_for(model.predictions)
    classes = next((kind for kind in kinds if kind.name == "reliability"), None)
    known = {name for finding in findings for name in SHOWS.get(finding.kind, ())}
    if classes is None or ONE_CLASS not in known or int(model.predictions.class_probs().shape[1]) < 3:
        return kinds
    ordered = is_ordered(model.predictions)
    if getattr(model.predictions, "support", None) is not None and not ordered:
        return kinds  # classes that are vectors
    family: Any = model.predictions
    told = class_pictures(findings)
    if ordered or not told:
        name = ONE_GRADE if ordered else ONE_CLASS
        kinds.append(_of_one_class(classes, name, family, farthest_class(*model.drawn)))
    labels: list[Any] = np.asarray(family.labels()).tolist()
    return [*kinds, *(_of_one_class(classes, name, family, labels[k]) for k, name in told.items())]


def _of_one_class(classes: Kind, name: str, predictions: Any, label: Any) -> Kind:
    """The reliability diagram of a class, or of a grade and those above it."""
    above, named = name == ONE_GRADE, getattr(predictions, "classes", None) is not None
    what = "grade" if is_ordered(predictions) else "class"
    happens = f"{'' if named or above else f'{what} '}{in_words(label)}{' or above' if above else ''}"
    return classes._replace(
        name=name,
        title="Reliability at or above one grade" if above else f"Reliability of one {what}",
        question=f"Does {happens} happen as often as the model says?",
        options={"grade" if above else "label": label},
    )


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
        return {name: drawing.figure for name, drawing in album(shown, kinds).items()}
    # Draws that a test pooled with their targets are no predictions any more.
    if cases is None or cases.weights is not None or isinstance(cases.predictions, Samples):
        return {}
    some = cases.in_numpy()
    y = users_form(some.predictions, some.targets)
    return telling(Shown(y, some.predictions, None, None, cases.groups is not None))


@pictures.register(TestResult)
def _of_test(found: TestResult) -> Pictures:
    """The picture that shows the error, which is the null distribution where no other does, and that."""
    given, null = found.given, null_of(found)
    if given is None:
        return null
    seen = telling(Shown(users_form(given[1], given[0]), given[1], found, None), null)
    return seen | {name: figure for name, figure in null.items() if name not in seen}


@pictures.register(ToleranceResult)
def _of_tolerance(found: ToleranceResult) -> Pictures:
    return tolerance_of(found) | pictures_of(found.estimate)


@pictures.register(ModelReport)
def _of_model(model: ModelReport) -> Pictures:
    """The telling picture first, then where, others of the family, mending, and the null distribution."""
    one = _shown(model, False)
    of_family = {} if one is None else album([one], kinds_with(one, model.findings))
    first = leading(of_family, model.findings) if of_family else None
    where = {} if model.witness is None else pictures_of(model.witness)
    null = null_of(model.test)
    found: Pictures = {} if first is None else {first: of_family[first].figure}
    if first is None and of_family:  # no picture of the family shows it
        shown = where if model.worst_groups and "groups" in where else null
        found = dict(list(shown.items())[:1])
    found |= {name: figure for name, figure in where.items() if name not in found}
    # The picture of each coordinate has the curve of all together in it.
    others = {name: drawing.figure for name, drawing in of_family.items() if name != _TOGETHER}
    found |= {name: figure for name, figure in others.items() if name not in found}
    if model.segments is not None:
        found |= pictures_of(model.segments)
    if model.mended is not None:
        found |= pictures_of(model.mended.cross_fitted)
    return found | {name: figure for name, figure in null.items() if name not in found}


@pictures.register(Report)
def _of_report(report: Report) -> Pictures:
    """Those of the only model; of several, all models in each picture, and the comparison.

    The comparison comes first where in no picture the model leaves its band of which the verdict tells.
    """
    if report.comparison is None:
        return pictures_of(report.best)
    models = [one for one in (_shown(model, True) for model in report.models) if one is not None]
    found: Pictures = {}
    first: Pictures = {}
    if models:
        common = kinds_for(*(model.predictions for model in models))
        # Each class, or coordinate, of each model is for the pictures of single models; and so are residuals,
        # of which points of one model would hide those of another.
        single = ("classes", EACH, "residuals", BY_MEAN)
        shown = album(models, [kind for kind in common if kind.name not in single])
        wrong = next((model for model in report.models if model.rejected), report.best)
        chosen = leading(shown, wrong.findings) if shown else None
        found = {name: drawing.figure for name, drawing in shown.items()}
        first = {} if chosen is None else {chosen: found[chosen]}
    return {**first, **pictures_of(report.comparison), **found}
