"""Quantile calibration: how often targets fall below predicted quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.checks import check_levels, described
from wellcal._arrays.namespaces import Array, to_numpy
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.axes import SQUARE, Canvas
from wellcal.displays.base import LEVEL, SEEN, TIE, Display, curve_outside, reach_of, verdict_of
from wellcal.measures.quantiles import QuantileCalibration, quantile_calibration
from wellcal.predictions import Predictions, Quantiles
from wellcal.predictions.base import check_inputs

QUESTION = "Do as many outcomes lie below the model's quantiles as promised?"
_FEW = 50  # levels up to which each is a marker


@dataclass(repr=False)
class QuantileCalibrationDisplay(Display):
    """Proportion of targets below predicted quantiles against the level of the quantiles.

    Parameters
    ----------
    levels, frequencies
        As in the result of :func:`wellcal.quantile_calibration`.
    name
        Name of the model.
    low, high
        Where the whole curve of a calibrated model lies with probability `level`, or None for no band.
    verdict
        What a test said of the model, for the title; with None the title says what is seen.
    level
        Share of calibrated models whose whole curve lies in the band.

    Attributes
    ----------
    ax_, figure_
        Where the curve was drawn, after `plot`.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> y = np.random.default_rng(0).normal(size=50)
    >>> display = QuantileCalibrationDisplay.from_predictions(y, wc.Normal(np.zeros(50), 1.0))
    >>> display.ax_.get_xlabel()
    'share of outcomes that the model promised below'
    """

    levels: Array
    frequencies: Array
    name: str | None = None
    low: Array | None = None
    high: Array | None = None
    verdict: str | None = None
    level: float = LEVEL

    @classmethod
    def from_predictions(
        cls,
        y: object,
        pred: Predictions | object,
        *,
        levels: Sequence[float] | Array | None = None,
        name: str | None = None,
        ax: Any = None,
        level: float = LEVEL,
        test: bool | None = None,
        result: Any = None,
        rng: int | np.random.Generator | None = None,
        **options: Any,
    ) -> QuantileCalibrationDisplay:
        """Compute the curve from targets and predictions, and draw it.

        Parameters
        ----------
        y, pred
            Targets, and continuous predictions of numbers.
        levels
            As in :func:`wellcal.quantile_calibration`; None takes so many that the curve has no gaps.
        name, ax, level, test, result, rng
            As for all displays: see :mod:`wellcal.displays`.
        options
            For `plot`.
        """
        given: dict[str, Any] = {"levels": levels, "level": level, "name": name}
        return cls.computed(y, pred, test=test, result=result, rng=rng, **given).plot(ax, **options)

    @classmethod
    def computed(
        cls,
        y: object,
        pred: Predictions | object,
        *,
        levels: Sequence[float] | Array | None = None,
        name: str | None = None,
        level: float = LEVEL,
        test: bool | None = None,
        result: Any = None,
        rng: int | np.random.Generator | None = None,
    ) -> QuantileCalibrationDisplay:
        """The same as `from_predictions`, and not drawn yet."""
        _, predictions = check_inputs(y, pred)
        if levels is not None:
            chosen = np.unique(check_levels(levels))  # a curve goes from left to right
        elif isinstance(predictions, Quantiles):  # nothing is known between them
            chosen = np.asarray(predictions.levels, dtype=np.float64)
        else:
            chosen = np.linspace(0.0, 1.0, 1001)
        found = quantile_calibration(y, pred, levels=chosen)
        verdict = verdict_of(y, pred, test, result, rng)
        return cls._of(found, name, level, verdict)

    @classmethod
    def from_result(
        cls, result: Any, *, name: str | None = None, ax: Any = None, level: float = LEVEL, **options: Any
    ) -> QuantileCalibrationDisplay:
        """Draw what :func:`wellcal.quantile_calibration` returned, at its levels."""
        if not isinstance(result, QuantileCalibration):
            raise TypeError(
                f"result must be what quantile_calibration returns, found {described(result)}; "
                "from_predictions takes targets and predictions"
            )
        return cls._of(result, name, level, None).plot(ax, **options)

    @classmethod
    def _of(
        cls, found: QuantileCalibration, name: str | None, level: float, verdict: str | None
    ) -> QuantileCalibrationDisplay:
        low, high = found.band(level)
        return cls(found.levels, found.frequencies, name, low, high, verdict, level)

    @property
    def reach(self) -> float:
        """How far the curve lies from the diagonal, in half widths of the band; nan without one."""
        if self.low is None or self.high is None:
            return math.nan
        return reach_of(to_numpy(self.frequencies), to_numpy(self.low), to_numpy(self.high), SEEN)

    @property
    def finding(self) -> str:
        """Whether the curve leaves the band, in a sentence; without a band, how many are below the median."""
        found, levels = to_numpy(self.frequencies), to_numpy(self.levels)
        if self.low is None or self.high is None:
            k = int(np.argmin(np.abs(levels - 0.5)))
            return f"{100 * found[k]:.3g}% of outcomes lie below the quantile of level {levels[k]:.3g}."
        return curve_outside((found < to_numpy(self.low) - TIE) | (found > to_numpy(self.high) + TIE))

    def plot(self, ax: Any = None, **options: Any) -> QuantileCalibrationDisplay:
        """Draw the curve, the band and the diagonal.

        `options` go to ``Axes.step``, or to ``Axes.plot`` where levels are few.
        """
        with style():
            ax = axes_or_new(ax, SQUARE)
            canvas = Canvas(ax)
            levels = to_numpy(self.levels)
            canvas.ideal([0.0, 1.0], [0.0, 1.0])
            if self.low is not None and self.high is not None:
                low, high = to_numpy(self.low), to_numpy(self.high)
                canvas.band(levels, low, high)
                place = int(np.argmin(np.abs(levels - 0.7)))
                text = f"{self.level:.0%} of calibrated\nmodels stay in here"
                if canvas.first:
                    canvas.label(text, (float(levels[place]), float(low[place])), (0.97, 0.12))
            frequencies, few = to_numpy(self.frequencies), len(levels) <= _FEW
            if few:
                look = {**canvas.look.points, "linestyle": canvas.look.dash, "clip_on": False, **options}
                (handle,) = ax.plot(levels, frequencies, **look)
            else:
                look = {**canvas.look.line, "where": "post", **options}
                (handle,) = ax.step(levels, frequencies, **look)
            canvas.add(self.name, handle, (levels, frequencies))
            canvas.say(self.name, self.statement)
            ticks = np.linspace(0.0, 1.0, 5)
            ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), xticks=ticks, yticks=ticks, aspect="equal")
            ax.set_xlabel("share of outcomes that the model promised below", color=canvas.theme.ink)
            ax.set_ylabel("share that was below", color=canvas.theme.ink)
            canvas.title()
            named = f"{self.name}: " if self.name and len(canvas.shown.names) == 1 else ""
            canvas.note(f"{named}quantile calibration; the band is exact, for all levels at once.")
            canvas.name_models()
        self._drawn(ax)
        return self
