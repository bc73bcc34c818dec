"""Coverage of prediction intervals against what they promise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.checks import described
from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.axes import SQUARE, Canvas
from wellcal.displays.base import LEVEL, SEEN, TIE, Display, band_below, reach_of, verdict_of
from wellcal.displays.percentages import percent
from wellcal.measures.quantiles import IntervalCoverage
from wellcal.measures.quantiles.checks import check_standing
from wellcal.measures.quantiles.coverage import if_calibrated
from wellcal.measures.quantiles.intervals import intervals_of
from wellcal.measures.quantiles.known_levels import interval_levels

QUESTION = "Do the model's intervals hold as many outcomes as they promise?"
_TOLD = 0.9  # level that is told in words
_USUAL = np.linspace(0.05, 0.95, 19)


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
    expected
        What the intervals of a calibrated model hold, ``(T,)``; None for what they promise. Those of counts
        hold more, and those of few draws less. That is where they are drawn.

    Notes
    -----
    Coverage and what is expected are those of :func:`wellcal.interval_coverage`. The band is exact for
    continuous predictions, quantiles, and draws without ties. Where intervals of different cases hold with
    different probabilities, as those of counts do, outcomes vary less than the band allows for, and it holds
    more calibrated models than it says.

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
    expected: Array | None = None

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
            the intervals between them, which are the only ones that they have.
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
        targets, predictions = check_standing(y, pred, "CoverageDisplay")
        chosen = np.unique(interval_levels(predictions, levels, _USUAL)[0])
        held = list(map(intervals_of(predictions, targets), chosen.tolist()))
        coverage, expected = (np.array([found[k] for found in held]) for k in range(2))
        low, high = band_below(expected, len(predictions), level)
        verdict = verdict_of(y, pred, test, result, rng)
        return cls(chosen, coverage, low, high, name, verdict, level, len(predictions), expected)

    @classmethod
    def from_result(cls, result: Any, *, name: str | None = None, ax: Any = None) -> CoverageDisplay:
        """Draw what :func:`wellcal.interval_coverage` returned, with confidence limits of the coverage."""
        if not isinstance(result, IntervalCoverage):
            raise TypeError(f"result must be what interval_coverage returns, found {described(result)}")
        values = (result.levels, result.coverage, result.low, result.high)
        return cls(*values, name, None, None, result.n_samples, result.expected).plot(ax)

    @property
    def _where(self) -> NDArray:
        """Where intervals are drawn: at what they hold if the model is calibrated."""
        return to_numpy(self.levels if self.expected is None else self.expected)

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
        promised = f"{percent(levels[k])}{if_calibrated(levels[k], self._where[k])}"
        held = f"Intervals that promise {promised} held {percent(coverage[k])} of the outcomes"
        if self.level is None:
            return f"{held} (at 95% confidence {percent(low[k])} to {percent(high[k])})."
        inside = low[k] - TIE <= coverage[k] <= high[k] + TIE
        return f"{held}, {'in' if inside else 'outside of'} the band of calibrated models."

    def plot(self, ax: Any = None) -> CoverageDisplay:
        """Draw it on given axes, which may show other models already, or on new ones."""
        with style():
            ax = axes_or_new(ax, SQUARE)
            canvas = Canvas(ax)
            look = canvas.look
            places, coverage, low, high = map(to_numpy, (self._where, self.coverage, self.low, self.high))
            canvas.ideal([0.0, 1.0], [0.0, 1.0])
            shape: dict[str, Any] = {**look.points, "linestyle": look.dash, "zorder": 3, "clip_on": False}
            (handle,) = ax.plot(places, coverage, **shape, markersize=4.0)
            if self.level is None:
                ends = np.stack([coverage - low, high - coverage])
                ax.errorbar(
                    places, coverage, ends, fmt="none", ecolor=look.colour, elinewidth=1.0, zorder=2.4
                )
            else:
                ends = [0.0, *places, 1.0], [0.0, *low, 1.0], [0.0, *high, 1.0]
                canvas.band(*ends)
                over = bool(np.mean(coverage - places) > 0)
                place = int(np.argmin(np.abs(places - (0.7 if over else 0.3))))
                edge = float((low if over else high)[place])
                to = (0.97, 0.17) if over else (0.03, 0.83)
                text = f"{self.level:.0%} of calibrated\nmodels stay in here"
                if canvas.first:
                    canvas.label(text, (float(places[place]), edge), to, ha="right" if over else "left")
            canvas.add(self.name, handle, (places, coverage))
            canvas.say(self.name, self.statement)
            ticks = np.linspace(0.0, 1.0, 6)
            ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), xticks=ticks, yticks=ticks, aspect="equal")
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_major_formatter(percent)
            ax.set_xlabel("outcomes that the interval should hold", color=canvas.theme.ink)
            ax.set_ylabel("outcomes that it held", color=canvas.theme.ink)
            canvas.title()
            named = f"{self.name}: " if self.name and len(canvas.shown.names) == 1 else ""
            bars = "; bars: confidence limits that hold together" if self.level is None else ""
            other = any(map(if_calibrated, to_numpy(self.levels), places))
            told = "central intervals, at what they hold if calibrated" if other else "central intervals"
            canvas.note(f"{named}{how_many(self.n_samples)}; {told}{bars}.")
            canvas.name_models()
        self._drawn(ax)
        return self
