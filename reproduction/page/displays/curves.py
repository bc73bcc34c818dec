"""Curves with markers, bands and reference values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import ArrayLike

from wellcal.displays import COLOURS, CYCLE, MARKERS, axes_or_new, style


@dataclass(frozen=True)
class Curve:
    """One curve.

    Attributes
    ----------
    x, y
        Points, ``(n,)`` each.
    label
        For the legend.
    low, high
        A band around the curve, or ranges at its points, ``(n,)`` each.
    published
        Values of others at the same points, drawn as open markers; not-a-number where there are none.
    colour, marker, line
        Looks; None takes the next of the common ones, and "" draws no marker.
    open_marker
        Marker of published values, where the curve itself has none.
    """

    x: ArrayLike
    y: ArrayLike
    label: str = ""
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    published: ArrayLike | None = None
    colour: str | None = None
    marker: str | None = None
    line: str = "-"
    open_marker: str = "o"


@dataclass
class CurvesDisplay:
    """Several curves on one pair of axes.

    Parameters
    ----------
    curves
        The curves.
    xlabel, ylabel, title
        Texts.
    xscale, yscale
        Names of matplotlib's scales, such as "log".
    reference
        Height of a horizontal dashed line, or None.
    ranges
        How `low` and `high` are drawn: "band" or "bars".

    Attributes
    ----------
    ax_, figure_
        Where they were drawn, after `plot`.

    Examples
    --------
    >>> display = CurvesDisplay([Curve([1, 2], [3, 4], "a")], xlabel="n").plot()
    >>> [line.get_label() for line in display.ax_.get_lines()]
    ['a']
    """

    curves: list[Curve]
    xlabel: str = ""
    ylabel: str = ""
    title: str = ""
    xscale: str = "linear"
    yscale: str = "linear"
    reference: float | None = None
    ranges: str = "band"
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def plot(self, ax: Any = None) -> CurvesDisplay:
        """Draw the curves; legends are left to the caller, who may share one between axes."""
        with style():
            self.ax_ = axes_or_new(ax)
            self.figure_ = self.ax_.figure
            self.ax_.set_xscale(self.xscale)
            self.ax_.set_yscale(self.yscale)
            for index, curve in enumerate(self.curves):
                self._draw(curve, curve.colour or CYCLE[index % len(CYCLE)], index)
            if self.reference is not None:
                look: Any = {"color": COLOURS["black"], "linestyle": "--", "linewidth": 1.2}
                self.ax_.axhline(self.reference, zorder=1, **look)
            self.ax_.set(xlabel=self.xlabel, ylabel=self.ylabel, title=self.title)
        return self

    def _draw(self, curve: Curve, colour: str, index: int) -> None:
        marker = MARKERS[index % len(MARKERS)] if curve.marker is None else curve.marker
        if curve.low is not None and curve.high is not None:
            if self.ranges == "band":
                self.ax_.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)
            else:
                self.ax_.vlines(curve.x, curve.low, curve.high, color=colour, linewidth=5, alpha=0.35)
        self.ax_.plot(curve.x, curve.y, curve.line, color=colour, marker=marker, label=curve.label, zorder=3)
        if curve.published is not None:
            self.ax_.plot(
                curve.x, curve.published, linestyle="", marker=marker or curve.open_marker, color=colour,
                markersize=9, markerfacecolor="none", markeredgewidth=1.0, zorder=4,
            )  # fmt: skip
