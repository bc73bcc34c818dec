"""Pictures of results, drawn when somebody looks: the same for all results, and for reports."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wellcal._arrays.files import write_whole
from wellcal._arrays.registry import Rules
from wellcal._arrays.seeds import as_generator
from wellcal.comparison import Comparison, Comparisons
from wellcal.comparison.differences import Difference
from wellcal.comparison.several import Pair
from wellcal.comparison.shares import clearest
from wellcal.displays import (
    ComparisonDisplay,
    CoverageDisplay,
    DiscrepancyDisplay,
    MonitorDisplay,
    NullDisplay,
    PowerDisplay,
    QuantileCalibrationDisplay,
    RecalibrationDisplay,
    SegmentsDisplay,
    ToleranceDisplay,
    WitnessDisplay,
    WitnessMapDisplay,
    coverage,
    discrepancies,
    monitors,
    nulls,
    plans,
    quantiles,
    segments,
    style,
    to_svg,
    tolerances,
    witness_maps,
    witnesses,
)
from wellcal.displays._style import letters_stay
from wellcal.displays.base import TESTED
from wellcal.hypotests import PowerPlan
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.result import TestResult
from wellcal.hypotests.tolerance import ToleranceResult
from wellcal.measures._local_discrepancy import LocalDiscrepancy
from wellcal.measures.intervals import Interval
from wellcal.measures.presentation import Presentable, Shown
from wellcal.measures.quantiles import IntervalCoverage, QuantileCalibration
from wellcal.measures.running.table import Measured
from wellcal.measures.yardstick import Yardstick
from wellcal.monitoring import MonitorChange, MonitorStatus
from wellcal.recalibration import CrossFitted, TemperatureScaling
from wellcal.reporting.data import DRAWN, at_most
from wellcal.reporting.pieces import Choices, ExampleCase, Mended, SegmentReport, Segments, WorstGroup
from wellcal.witnesses import Witness
from wellcal.witnesses.result import Group


@dataclass(eq=False)
class ReportFigure:
    """A picture with the question that it answers. Nothing is drawn before somebody looks.

    Attributes
    ----------
    title
        What kind of picture it is, in a few words: "Reliability diagram".
    question
        The question that it answers, for a caption: "Do outcomes happen as often as the model says?"
    draw
        Draws it and returns a display, whose `figure_` is matplotlib's.
    reaches
        How far each of the models in it, by name, leaves its band, where they are known before it is drawn.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> found = wc.interval_coverage(np.linspace(-2.0, 2.0, 40), (np.zeros(40), np.ones(40)))
    >>> picture = found.figures["coverage"]
    >>> picture.question
    "Do the model's intervals hold as many outcomes as they promise?"
    >>> picture.svg().startswith("<svg")
    True
    >>> picture.savefig("coverage.png")  # doctest: +SKIP
    """

    title: str
    question: str
    draw: Callable[[], Any] = field(repr=False)
    reaches: Callable[[], Mapping[str | None, float]] | None = field(default=None, repr=False)

    @property
    def display(self) -> Any:
        """The display, drawn when it is first asked for: data in it, axes in `ax_`."""
        if "_display" not in self.__dict__:
            with style("light") as pyplot, letters_stay():  # the theme that pages recolour
                self.__dict__["_display"] = self.draw()
                # Out of pyplot's hands, which would show it and hold on to it; the figure itself stays.
                pyplot.close(self.__dict__["_display"].figure_)
        return self.__dict__["_display"]

    def reach(self, model: str | None = None) -> float:
        """How far a model leaves the band of calibrated ones here: see `wellcal.displays.Display.reach`.

        Not a number where the picture does not show it.
        """
        return self.display.reach if self.reaches is None else self.reaches().get(model, math.nan)

    @property
    def figure(self) -> Any:
        """matplotlib's figure."""
        return self.display.figure_

    def savefig(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the picture to a file, which is there in full or not at all.

        The end of its name says the format.

        Parameters
        ----------
        path
            Such as ``"pit.png"``, ``"pit.svg"`` or ``"pit.pdf"``.
        options
            As of matplotlib's `savefig`.
        """
        content, kind = io.BytesIO(), os.path.splitext(path)[1].removeprefix(".").lower()
        with style("light"):
            self.figure.savefig(content, **{"format": kind or "png", "dpi": 200, **options})
        write_whole(path, content.getvalue())

    def svg(self) -> str:
        """The picture as SVG in the colours of the page that it is set into: `wellcal.displays.to_svg`."""
        if "_svg" not in self.__dict__:
            self.__dict__["_svg"] = to_svg(self.figure)
        return self.__dict__["_svg"]

    def _repr_svg_(self) -> str:
        return self.svg()


Pictures = dict[str, ReportFigure]
"""Pictures by name, the most telling first."""

pictures: Rules[Callable[[Any], Pictures]] = Rules("pictures")
"""Pictures of a result, by its class."""


def pictures_of(result: Shown) -> Pictures:
    """Pictures of a result by name, the most telling first; none for results that have nothing to show.

    They are made once: what was drawn is not drawn again.
    """
    kept = result.__dict__
    if "_pictures" not in kept:
        rule = pictures.find(type(result))
        kept["_pictures"] = {} if rule is None else rule(result)
    return dict(kept["_pictures"])


@pictures.register(IntervalCoverage)
def _of_coverage(found: IntervalCoverage) -> Pictures:
    draw = lambda: CoverageDisplay.from_result(found)  # noqa: E731
    return {"coverage": ReportFigure("Coverage of intervals", coverage.QUESTION, draw)}


@pictures.register(QuantileCalibration)
def _of_quantiles(found: QuantileCalibration) -> Pictures:
    draw = lambda: QuantileCalibrationDisplay.from_result(found)  # noqa: E731
    return {"quantiles": ReportFigure("Calibration of quantiles", quantiles.QUESTION, draw)}


_DRAWING = frozenset({"exact", "omnibus"})  # tests of which a null is drawn again


def null_of(found: TestResult, name: str | None = None) -> Pictures:
    """The statistic among those of calibrated models: as they were kept, or drawn again for few cases."""
    if found.null is None or not len(found.null):
        again = found.given is not None and found.n_samples <= TESTED and "clusters" not in found.provenance
        if not (again and found.method in _DRAWING):
            return {}
    else:
        null = found.null[np.isfinite(found.null)]
        if not len(null) or not np.ptp(null) > 0.0:  # whatever happens, the statistic is the same
            return {}
    draw = lambda: NullDisplay.from_result(found, name=name)  # noqa: E731
    return {"null": ReportFigure("Null distribution", nulls.QUESTION, draw)}


@pictures.register(Witness)
def _of_witness(found: Witness) -> Pictures:
    made: Pictures = {}
    if found.groups or found.segments:
        draw = lambda: WitnessDisplay.from_result(found)  # noqa: E731
        made["groups"] = ReportFigure("Groups of cases", witnesses.QUESTION, draw)
    predictions = found.locations[0]
    numbers = predictions.target_kind != "labels" and predictions.event_shape == ()
    if numbers and predictions.supports("mean"):
        draw = lambda: WitnessMapDisplay.from_result(found)  # noqa: E731
        made["map"] = ReportFigure("Map of outcomes", witness_maps.QUESTION, draw)
    return made


COMPARED = "Which model is better calibrated, and by how much?"
MENDED = "Would recalibration mend it?"
FITTED = "What did the temperature do to the cases that it was fitted to?"


@pictures.register(Comparisons)
@pictures.register(Comparison)
def _of_comparison(found: Comparison | Comparisons) -> Pictures:
    # Tables and sentences compare with the first in the ranking, too.
    best = {"against": found.ranking[0]} if isinstance(found, Comparisons) else {}
    draw = lambda: ComparisonDisplay.from_result(found, **best)  # noqa: E731
    known = found.differences if isinstance(found, Comparison) else found.pairs
    return {"comparison": ReportFigure("Differences between models", COMPARED, draw)} if known else {}


@pictures.register(MonitorStatus)
def _of_status(found: MonitorStatus) -> Pictures:
    if found.trace is None:
        return {}
    logs, log_threshold = found.trace
    if not len(logs):
        return {}
    cases = np.arange(found.n_samples - len(logs) + 1, found.n_samples + 1)

    def draw() -> Any:
        values = np.maximum(logs, np.log(np.finfo(np.float64).tiny)) / np.log(10.0)
        return MonitorDisplay(cases, values, float(np.exp(log_threshold)), found).plot()

    return {"monitor": ReportFigure("Evidence as cases came", monitors.QUESTION, draw)}


@pictures.register(MonitorChange)
def _of_change(found: MonitorChange) -> Pictures:
    return {} if found.witness is None else pictures_of(found.witness)


@pictures.register(CrossFitted)
def _of_cross_fitted(found: CrossFitted) -> Pictures:
    given = found.scaling.fitting_cases
    if given is None or given[1].event_shape != ():
        return {}
    targets, predictions = given

    def draw() -> Any:
        rows = at_most(len(predictions), DRAWN, as_generator(None))
        if rows is None:
            return RecalibrationDisplay.from_result(found)
        some = replace(found, predictions=found.predictions[rows])
        return RecalibrationDisplay.from_result(some, targets[rows], predictions[rows])

    return {"mended": ReportFigure("Before and after recalibration", MENDED, draw)}


@pictures.register(TemperatureScaling)
def _of_scaling(found: TemperatureScaling) -> Pictures:
    given = found.fitting_cases
    if given is None or given[1].event_shape != ():
        return {}
    draw = lambda: RecalibrationDisplay.from_result(found)  # noqa: E731
    return {"fitted": ReportFigure("Before and after recalibration", FITTED, draw)}


@pictures.register(PowerPlan)
def _of_plan(found: PowerPlan) -> Pictures:
    draw = lambda: PowerDisplay.from_result(found)  # noqa: E731
    return (
        {"power": ReportFigure("Power by the number of cases", plans.QUESTION, draw)} if found.tried else {}
    )


def tolerance_of(found: ToleranceResult) -> Pictures:
    """The calibration error beside what is tolerated."""
    draw = lambda: ToleranceDisplay.from_result(found)  # noqa: E731
    return {"tolerance": ReportFigure("Calibration error and tolerance", tolerances.QUESTION, draw)}


@pictures.register(Segments)
def _of_segments(found: Segments) -> Pictures:
    if not any(one.test is not None and one.test.estimate.cases is not None for one in found.segments):
        return {}
    draw = lambda: SegmentsDisplay.from_result(found)  # noqa: E731
    return {"segments": ReportFigure("Segments", segments.QUESTION, draw)}


@pictures.register(SegmentReport)
def _of_segment(found: SegmentReport) -> Pictures:
    return {} if found.test is None else pictures_of(found.test)


@pictures.register(Mended)
def _of_mended(found: Mended) -> Pictures:
    return pictures_of(found.cross_fitted)


@pictures.register(Measured)
def _of_measured(found: Measured) -> Pictures:
    """Those of what was measured, of which coverage and PIT have some."""
    return {
        picture: figure
        for estimate in found.estimates.values()
        for picture, figure in pictures_of(estimate).items()
    }


@pictures.register(Pair)
def _of_pair(found: Pair) -> Pictures:
    if not found.differences:
        return {}
    told = clearest(found.differences)
    return _difference(told, f"{found.first} - {found.second}")


@pictures.register(Difference)
def _of_difference(found: Difference) -> Pictures:
    return _difference(found, "first - second")


def _difference(found: Difference, row: str) -> Pictures:
    ends = found.confidence_interval()
    low, high = (ends.low, ends.high) if found.holds else (np.nan, np.nan)

    def draw() -> Any:
        return ComparisonDisplay(
            (row,), (found.value,), (low,), (high,), found.measure, level=ends.level
        ).plot()

    return {"comparison": ReportFigure("Difference between models", COMPARED, draw)}


@pictures.register(LocalDiscrepancy)
def _of_discrepancy(found: LocalDiscrepancy) -> Pictures:
    if not discrepancies.shown_against(found.locations):
        return {}
    draw = lambda: DiscrepancyDisplay.from_result(found)  # noqa: E731
    return {"discrepancy": ReportFigure("Local discrepancies", discrepancies.QUESTION, draw)}


IN_WORDS: Mapping[type[Presentable], str] = {
    Choices: "settings and versions, which are words",
    ExampleCase: "one case; a picture of its group is among those of the report",
    Finding: "one sentence; the pictures are those of the test or the report that it is a part of",
    Group: "one group; the pictures are those of the witness that it is a part of",
    Interval: "two numbers; the pictures are those of the estimate that they belong to",
    WorstGroup: "one group; the pictures are those of the report that it is a part of",
    Yardstick: "one number in words; the pictures are those of the test or the estimate that it is a part of",
}
"""Results that have no pictures, and why."""
