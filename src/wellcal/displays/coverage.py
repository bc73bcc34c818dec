"""Coverage of prediction intervals against what they promise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.checks import described
from wellcal._arrays.levels import check_levels
from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.seeds import as_generator
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.axes import SQUARE, Canvas, percent
from wellcal.displays.base import LEVEL, SEEN, Display, band_below, reach_of, shares_below, verdict_of
from wellcal.measures.quantiles import IntervalCoverage
from wellcal.predictions import Quantiles
from wellcal.predictions.base import check_inputs

QUESTION = "Do the model's intervals hold as many outcomes as they promise?"
_TOLD = 0.9  # level that is told in words


@dataclass(repr=False)
class CoverageDisplay(Display):
    """How many outcomes lie in central prediction intervals, against how many should.

    Parameters
    ----------
    levels
        What the intervals promise, ``(T,)``.
    coverage
        Share of outcomes in them, ``(T,)``.
    low, high
        Where a calibrated model lies at all levels at once, ``(T,)``; of a result, the confidence limits of
        the coverage.
    name, verdict
        Of the model: see :mod:`wellcal.displays`.
    level
        Share of calibrated models whose whole curve lies in the band; None where `low` and `high` are limits
        of the coverage.
    n_samples
        Number of cases.

    Notes
    -----
    An outcome is in the interval of level l where its PIT is within l / 2 of one half. For counts and draws,
    an outcome at the end of an interval is in it with the probability that makes the interval hold exactly
    what it promises, so that the band is exact for them too.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> y = np.array([-3.0, 0.1, 0.5, 1.0])
    >>> display = CoverageDisplay.from_predictions(y, wc.Normal(np.zeros(4), 1.0), levels=[0.5, 0.9])
    >>> display.coverage
    array([0.5 , 0.75])
    """

    levels: Array
    coverage: Array
    low: Array
    high: Array
    name: str | None = None
    verdict: str | None = None
    level: float | None = LEVEL
    n_samples: int = 0

    @classmethod
    def from_predictions(
        cls,
        y: object,
        pred: object,
        *,
        levels: Sequence[float] | Array | None = None,
        level: float = LEVEL,
        name: str | None = None,
        ax: Any = None,
        test: bool | None = None,
        result: Any = None,
        rng: int | np.random.Generator | None = None,
    ) -> CoverageDisplay:
        """Compute the coverage from targets and predictions, and draw it.

        Parameters
        ----------
        y, pred
            Targets, and predictions of numbers, counts or samples.
        levels
            What the intervals promise; None takes 0.05, 0.1 .. 0.95, and for predictions that are quantiles
            the intervals between them.
        level
            Share of calibrated models whose whole curve lies in the band.
        name, ax, test, result, rng
            As for all displays: see :mod:`wellcal.displays`.
        """
        given: dict[str, Any] = {"levels": levels, "level": level, "name": name}
        return cls.computed(y, pred, test=test, result=result, rng=rng, **given).plot(ax)

    @classmethod
    def computed(
        cls,
        y: object,
        pred: object,
        *,
        levels: Sequence[float] | Array | None = None,
        level: float = LEVEL,
        name: str | None = None,
        test: bool | None = None,
        result: Any = None,
        rng: int | np.random.Generator | None = None,
    ) -> CoverageDisplay:
        """The same as `from_predictions`, and not drawn yet."""
        generator = as_generator(rng)
        _, predictions = check_inputs(y, pred)
        chosen = (
            _usual(predictions) if levels is None else np.unique(check_levels(levels, open_interval=True))
        )
        values = shares_below(y, pred, None if rng is None else generator)
        off = np.sort(np.abs(2.0 * values - 1.0))
        n = len(off)
        coverage = np.searchsorted(off, chosen + 1e-12, side="right") / n
        low, high = band_below(chosen, n, level)
        verdict = verdict_of(y, pred, test, result, rng)
        return cls(chosen, coverage, low, high, name, verdict, level, n)

    @classmethod
    def from_result(cls, result: Any, *, name: str | None = None, ax: Any = None) -> CoverageDisplay:
        """Draw what :func:`wellcal.interval_coverage` returned, with confidence limits of the coverage."""
        if not isinstance(result, IntervalCoverage):
            raise TypeError(f"result must be what interval_coverage returns, found {described(result)}")
        values = (result.expected, result.coverage, result.low, result.high)
        return cls(*values, name, None, None, result.n_samples).plot(ax)

    @property
    def reach(self) -> float:
        """How far the curve lies from what was promised, in half widths of the band; nan without one."""
        low, high = to_numpy(self.low), to_numpy(self.high)
        return math.nan if self.level is None else reach_of(to_numpy(self.coverage), low, high, SEEN)

    @property
    def finding(self) -> str:
        """How many outcomes the intervals hold that promise about 90%, in a sentence."""
        levels, coverage, low, high = map(to_numpy, (self.levels, self.coverage, self.low, self.high))
        k = int(np.argmin(np.abs(levels - _TOLD)))
        held = f"Intervals that promise {percent(levels[k])} held {percent(coverage[k])} of the outcomes"
        if self.level is None:
            return f"{held} (at 95% confidence {percent(low[k])} to {percent(high[k])})."
        inside = low[k] <= coverage[k] <= high[k]
        return f"{held}, {'in' if inside else 'outside of'} the band of calibrated models."

    def plot(self, ax: Any = None) -> CoverageDisplay:
        """Draw it on given axes, which may show other models already, or on new ones."""
        with style():
            ax = axes_or_new(ax, SQUARE)
            canvas = Canvas(ax)
            look = canvas.look
            levels, coverage, low, high = map(to_numpy, (self.levels, self.coverage, self.low, self.high))
            canvas.ideal([0.0, 1.0], [0.0, 1.0])
            shape: dict[str, Any] = {**look.points, "linestyle": look.dash, "zorder": 3, "clip_on": False}
            (handle,) = ax.plot(levels, coverage, **shape, markersize=4.0)
            if self.level is None:
                ends = np.stack([coverage - low, high - coverage])
                ax.errorbar(
                    levels, coverage, ends, fmt="none", ecolor=look.colour, elinewidth=1.0, zorder=2.4
                )
            else:
                ends = [0.0, *levels, 1.0], [0.0, *low, 1.0], [0.0, *high, 1.0]
                canvas.band(*ends)
                over = bool(np.mean(coverage - levels) > 0)
                place = int(np.argmin(np.abs(levels - (0.7 if over else 0.3))))
                edge = float((low if over else high)[place])
                to = (0.97, 0.17) if over else (0.03, 0.83)
                text = f"{self.level:.0%} of calibrated\nmodels stay in here"
                if canvas.first:
                    canvas.label(text, (float(levels[place]), edge), to, ha="right" if over else "left")
            canvas.add(self.name, handle, (levels, coverage))
            canvas.say(self.name, self.statement)
            ticks = np.linspace(0.0, 1.0, 6)
            ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), xticks=ticks, yticks=ticks, aspect="equal")
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_major_formatter(percent)
            ax.set_xlabel("outcomes that the interval promised to hold", color=canvas.theme.ink)
            ax.set_ylabel("outcomes that it held", color=canvas.theme.ink)
            canvas.title()
            named = f"{self.name}: " if self.name and len(canvas.shown.names) == 1 else ""
            bars = "; bars: confidence limits that hold together" if self.level is None else ""
            canvas.note(f"{named}{how_many(self.n_samples)}; central intervals{bars}.")
            canvas.name_models()
        self._drawn(ax)
        return self


def _usual(predictions: Any) -> NDArray:
    """Levels of intervals: between predicted quantiles, where there are no others."""
    if isinstance(predictions, Quantiles):
        known = np.asarray(predictions.levels, dtype=np.float64)
        below = known[known < 0.5]
        paired = below[np.any(np.isclose(1.0 - below[:, None], known), axis=1)]
        if len(paired):
            return np.sort(1.0 - 2.0 * paired)
    return np.linspace(0.05, 0.95, 19)
