"""The power of a test against the number of cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.checks import described
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.round_numbers import how_many
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.axes import WIDE, Canvas
from wellcal.displays.base import LEVEL, Display
from wellcal.displays.percentages import percent
from wellcal.hypotests._plan import PowerPlan

_FAR = 8.0  # ratio of numbers of cases from which an axis is logarithmic

QUESTION = "How many cases does the test need?"


@dataclass(repr=False)
class PowerDisplay(Display):
    """How often a test found an error in simulated data, by the number of cases.

    Parameters
    ----------
    cases, found, data_sets
        Numbers of cases that were tried, in how many data sets the error was found, and out of how many.
    power, alpha
        The power that is wanted, and the error rate of the test.
    n_samples, low, high
        The number of cases, and its 95% interval; None where it lies beyond what was tried.
    verdict
        What was found, for the title.

    Examples
    --------
    >>> import wellcal as wc
    >>> tried = ((50, 40, 18), (100, 80, 66), (200, 40, 39))
    >>> error = "spreads are 20% too small"
    >>> found = wc.PowerPlan(95, 80, 110, 0.8, 0.05, error, "auto", 199, 160, 10000, tried)
    >>> display = PowerDisplay.from_result(found)
    >>> display.shares().round(2)
    array([0.45, 0.82, 0.98])
    """

    cases: NDArray
    found: NDArray
    data_sets: NDArray
    power: float
    alpha: float
    n_samples: int | None = None
    low: int | None = None
    high: int | None = None
    verdict: str | None = None

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None) -> PowerDisplay:
        """Draw what :func:`wellcal.plan` returned."""
        if not isinstance(result, PowerPlan):
            raise TypeError(f"result must be what plan returns, found {described(result)}")
        if not result.tried:
            raise ValueError("result does not say which numbers of cases were tried; plan again")
        cases, data_sets, found = np.array(sorted(result.tried), dtype=np.int64).T
        verdict = f"{result.in_words().headline}."
        ends = (result.n_samples, result.low, result.high)
        return cls(cases, found, data_sets, result.power, result.alpha, *ends, verdict).plot(ax)

    def shares(self) -> NDArray:
        """Of data sets in which the error was found."""
        return self.found / self.data_sets

    def limits(self) -> tuple[NDArray, NDArray]:
        """Exact (Clopper-Pearson) 95% confidence limits of these shares."""
        rest, tail = self.data_sets - self.found, 0.5 * (1.0 - LEVEL)
        with np.errstate(invalid="ignore"):
            low = special.betaincinv(np.maximum(self.found, 1), rest + 1, tail)
            high = special.betaincinv(self.found + 1, np.maximum(rest, 1), 1.0 - tail)
        return np.where(self.found > 0, low, 0.0), np.where(rest > 0, high, 1.0)

    @property
    def finding(self) -> str:
        """How many cases are needed, in a sentence."""
        if self.n_samples is None:
            return f"More cases than were tried are needed for a power of {self.power:g}."
        return f"{how_many(self.n_samples)} have a power of {self.power:g}."

    def plot(self, ax: Any = None) -> PowerDisplay:
        """Draw shares with their limits, the power that is wanted, and the number of cases that has it."""
        with style():
            ax = axes_or_new(ax, WIDE)
            canvas = Canvas(ax)
            look, theme, shares = canvas.look, canvas.theme, self.shares()
            low, high = self.limits()
            ax.axhline(self.power, color=theme.ideal, linewidth=0.8, zorder=1.2)
            if self.low is not None:
                most = float(self.cases.max()) if self.high is None else float(self.high)
                ax.axvspan(self.low, most, color=theme.band, alpha=0.75, linewidth=0.0, zorder=0.8)
            if self.n_samples is not None:
                ax.axvline(self.n_samples, color=theme.ideal, linewidth=0.8, zorder=1.2)
            ends = np.stack([shares - low, high - shares])
            ax.errorbar(self.cases, shares, ends, fmt="none", ecolor=look.colour, elinewidth=1.0, zorder=2.4)
            (handle,) = ax.plot(self.cases, shares, **look.points, zorder=3)
            ax.set_ylim(0.0, 1.02)
            ax.yaxis.set_major_formatter(percent)
            _few_ticks(ax, self.cases)
            ax.annotate(
                f"wanted: {self.power:.0%}",
                (1.0, self.power),  # beside the axes, where no bar crosses it
                xycoords=("axes fraction", "data"),
                xytext=(4.0, 0.0),
                textcoords="offset points",
                va="center",
                fontsize=8.0,
                color=theme.quiet,
                annotation_clip=False,
            )
            ax.set_xlabel("cases", color=theme.ink)
            ax.set_ylabel("data sets in which it is found", color=theme.ink)
            canvas.add(None, handle, None)
            canvas.head(self.verdict or self.finding)
            spans = "; grey: the number of cases, with 95% confidence" if self.low is not None else ""
            canvas.note(
                f"{int(self.data_sets.sum()):,} simulated data sets; bars: 95% limits of each share; alpha = "
                f"{self.alpha:g}{spans}."
            )
        self._drawn(ax)
        return self


def _few_ticks(ax: Any, cases: NDArray) -> None:
    """Round numbers of cases, in figures; on a logarithmic axis where they differ by much."""
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

    least, most = float(cases.min()), float(cases.max())
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    if most > _FAR * least:
        ax.set_xscale("log")
        ax.set_xlim(0.85 * least, 1.15 * most)
        steps = (1.0, 2.0, 5.0) if most < 100.0 * least else (1.0,)
        ticks = [step * 10.0**k for k in range(8) for step in steps]
        inside = [tick for tick in ticks if 0.85 * least <= tick <= 1.15 * most]
        ax.xaxis.set_major_locator(FixedLocator(inside))
        ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(_count)


def _count(number: float, _: object) -> str:
    return f"{number:,.0f}"
