"""A calibration error with its interval, beside what is tolerated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wellcal._arrays.checks import described
from wellcal._arrays.round_numbers import how_many
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.axes import WIDE, Canvas
from wellcal.displays.base import Display
from wellcal.hypotests.tolerance import ToleranceResult

QUESTION = "Is the model near enough to calibrated?"


@dataclass(repr=False)
class ToleranceDisplay(Display):
    """Where the calibration error of a model lies, and how much of it is tolerated.

    Parameters
    ----------
    value, low, high
        KCE, and its 95% interval.
    tolerance
        The largest KCE that is tolerated.
    verdict
        What the test found, for the title.
    name
        Name of the model.
    n_samples
        Number of cases.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 200)
    >>> found = wc.calibration_test(mu + 0.9, wc.Normal(mu, np.ones(200)), tolerance=0.1)
    >>> display = ToleranceDisplay.from_result(found)
    >>> display.low > display.tolerance
    True
    """

    value: float
    low: float
    high: float
    tolerance: float
    verdict: str | None = None
    name: str | None = None
    n_samples: int = 0

    @classmethod
    def from_result(cls, result: Any, *, name: str | None = None, ax: Any = None) -> ToleranceDisplay:
        """Draw what :func:`wellcal.equivalence_test`, or a test with a tolerance, returned."""
        if not isinstance(result, ToleranceResult):
            raise TypeError(
                "result must be what equivalence_test or calibration_test(..., tolerance=) returns, found "
                f"{described(result)}"
            )
        ends = (result.statistic, result.low, result.high, result.tolerance)
        return cls(*ends, result.verdict, name, result.n_samples).plot(ax)

    @property
    def finding(self) -> str:
        """Where the interval lies, in a sentence."""
        if self.high < self.tolerance:
            return "The interval of the calibration error lies below the tolerance."
        where = "above the tolerance" if self.low > self.tolerance else "on both sides of the tolerance"
        return f"The interval of the calibration error lies {where}."

    def plot(self, ax: Any = None) -> ToleranceDisplay:
        """Draw the interval, and shade what is tolerated."""
        with style():
            ax = axes_or_new(ax, (WIDE[0], 1.9))
            canvas = Canvas(ax)
            theme = canvas.theme
            ax.axvspan(0.0, self.tolerance, color=theme.band, alpha=0.75, linewidth=0.0, zorder=0.8)
            ax.axvline(self.tolerance, color=theme.ideal, linewidth=0.8, zorder=1.2)
            inside = self.high < self.tolerance or self.low > self.tolerance
            handle = canvas.rows(
                [self.name or ""],
                canvas.look.colour,
                [self.value],
                [self.low],
                [self.high],
                [inside],
            )
            reach = 1.15 * max(self.high, self.tolerance)
            ax.set_xlim(-0.01 * reach, reach)
            ax.set_xlabel("calibration error (KCE)", color=theme.ink)
            canvas.add(self.name, handle)
            canvas.head(self.verdict or self.finding)
            canvas.note(
                f"{how_many(self.n_samples)}; 95% interval; grey: tolerated, up to {self.tolerance:.3g}; "
                "filled: the interval is on one side of it."
            )
        self._drawn(ax)
        return self
