"""Pictures of results, drawn when somebody looks: the same for all results, and for reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wellcal._arrays.registry import Rules
from wellcal.displays import CoverageDisplay, style, to_svg
from wellcal.displays.coverage import QUESTION as COVERAGE
from wellcal.measures.presentation import Presentable
from wellcal.measures.quantiles import IntervalCoverage


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

pictures: Rules[Callable[[Any], Pictures]] = Rules("pictures")
"""Pictures of a result, by its class."""


def pictures_of(result: Presentable) -> Pictures:
    """Pictures of a result by name, the most telling first; none for results that have nothing to show."""
    rule = pictures.find(type(result))
    return {} if rule is None else rule(result)


@pictures.register(IntervalCoverage)
def _of_coverage(found: IntervalCoverage) -> Pictures:
    return {
        "coverage": ReportFigure(
            "Coverage of intervals", COVERAGE, lambda: CoverageDisplay.from_result(found)
        )
    }
