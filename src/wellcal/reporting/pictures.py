"""Pictures of results, drawn when somebody looks: the same for all results, and for reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellcal._arrays.registry import Rules
from wellcal.comparison import Comparison, Comparisons
from wellcal.displays import (
    ComparisonDisplay,
    CoverageDisplay,
    MonitorDisplay,
    NullDisplay,
    QuantileCalibrationDisplay,
    RecalibrationDisplay,
    WitnessDisplay,
    WitnessMapDisplay,
    coverage,
    monitors,
    nulls,
    quantiles,
    style,
    to_svg,
    witness_maps,
    witnesses,
)
from wellcal.hypotests.resampling.targets import users_form
from wellcal.hypotests.result import TestResult
from wellcal.measures.presentation import Presentable
from wellcal.measures.quantiles import IntervalCoverage, QuantileCalibration
from wellcal.monitoring import MonitorChange, MonitorStatus
from wellcal.scaling import CrossFitted
from wellcal.witnesses import Witness


@dataclass(eq=False)
class ReportFigure:
    """A picture with the question that it answers. Nothing is drawn before somebody looks.

    Attributes
    ----------
    title
        What kind of picture it is, in a few words: "Reliability diagram".
    question
        The question that it answers, for a caption: "Are the model's probabilities what happens?"
    draw
        Draws it and returns a display, whose `figure_` is matplotlib's.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> found = wc.interval_coverage(np.linspace(-2.0, 2.0, 40), (np.zeros(40), np.ones(40)))
    >>> picture = found.figures["coverage"]
    >>> picture.question
    "Do the model's intervals hold as many outcomes as they promise?"
    >>> picture.svg().startswith("<svg")
    True
    """

    title: str
    question: str
    draw: Callable[[], Any] = field(repr=False)

    @property
    def display(self) -> Any:
        """The display, drawn when it is first asked for: data in it, axes in `ax_`."""
        if "_display" not in self.__dict__:
            with style("light") as pyplot:  # the theme that pages recolour
                self.__dict__["_display"] = self.draw()
                # Out of pyplot's hands, which would show it and hold on to it; the figure itself stays.
                pyplot.close(self.__dict__["_display"].figure_)
        return self.__dict__["_display"]

    @property
    def figure(self) -> Any:
        """matplotlib's figure."""
        return self.display.figure_

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


def pictures_of(result: Presentable) -> Pictures:
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


def null_of(found: TestResult, name: str | None = None) -> Pictures:
    """The statistic among those of calibrated models, where they were kept."""
    null = np.zeros(0) if found.null is None else found.null[np.isfinite(found.null)]
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


@pictures.register(Comparisons)
@pictures.register(Comparison)
def _of_comparison(found: Comparison | Comparisons) -> Pictures:
    draw = lambda: ComparisonDisplay.from_result(found)  # noqa: E731
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
    given = found.before.given
    if given is None or given[1].event_shape != ():
        return {}
    y = users_form(given[1], given[0])
    draw = lambda: RecalibrationDisplay.from_result(found, y, given[1])  # noqa: E731
    return {"mended": ReportFigure("Before and after recalibration", MENDED, draw)}
