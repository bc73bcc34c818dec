"""Differences between models, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.checks import described, one_of
from wellcal._arrays.round_numbers import how_many
from wellcal.comparison import Comparison, Comparisons
from wellcal.comparison.differences import Difference
from wellcal.comparison.shares import SHARES, called, clearest, most_shown
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.axes import WIDE, Canvas
from wellcal.displays.base import Display


@dataclass(repr=False)
class ComparisonDisplay(Display):
    """Differences between models on the same cases, one row for each pair.

    Parameters
    ----------
    rows
        Names of the pairs, or of measures, in the order from above.
    values, low, high
        Differences, first less second, and their intervals: NaN where there is none, since both models may
        be calibrated.
    measure
        What is compared; errors and scores for which less is better.
    verdict
        What the comparison found, for the title.
    level
        Coverage of the intervals.
    n_samples
        Number of cases.
    by_others
        Which pairs another measure shows to differ, in words.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=100)
    >>> y, one = rng.normal(mu, 1.0), np.ones(100)
    >>> found = wc.compare(y, wc.Normal(mu, one), wc.Normal(mu + 1.0, one), rng=0)
    >>> display = ComparisonDisplay.from_result(found)
    >>> display.rows, display.high[0] < 0
    (('A - B',), True)
    """

    rows: tuple[str, ...]
    values: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    measure: str
    verdict: str | None = None
    level: float = 0.95
    n_samples: int = 0
    by_others: tuple[str, ...] = ()

    @classmethod
    def from_result(cls, result: Any, *, measure: str | None = None, ax: Any = None) -> ComparisonDisplay:
        """Draw what :func:`wellcal.compare` returned.

        Parameters
        ----------
        result
            Of two models, or of several.
        measure
            One that the models were compared in, such as "SKCE" or "NLL"; None takes the one of
            calibration that shows differences of the most pairs; pairs that only another one shows are in
            the small print.
        ax
            Where to draw it.
        """
        if isinstance(result, Comparison):
            pairs: list[tuple[str, tuple[Difference, ...]]] = [(" - ".join(result.names), result.differences)]
        elif isinstance(result, Comparisons):
            pairs = [(f"{pair.first} - {pair.second}", pair.differences) for pair in result.pairs]
        else:
            raise TypeError(f"result must be what compare returns, found {described(result)}")
        known = [found.measure for found in pairs[0][1]]
        if not known:
            raise ValueError("result has no differences: it was stored by an earlier version; compare again")
        every = [differences for _, differences in pairs]
        chosen = most_shown(every) if measure is None else one_of(measure, "measure", known)
        found = [next(d for d in differences if d.measure == chosen) for _, differences in pairs]
        ends = [difference.confidence_interval() for difference in found]
        first, _, rest = result.verdict.partition(" ")
        # A name stays as it was given.
        first = first.capitalize() if first in ("no", "neither", "which") else first
        return cls(
            tuple(name for name, _ in pairs),
            tuple(difference.value for difference in found),
            tuple(end.low if d.holds else math.nan for d, end in zip(found, ends, strict=True)),
            tuple(end.high if d.holds else math.nan for d, end in zip(found, ends, strict=True)),
            chosen,
            f"{first} {rest}.",
            result.level,
            result.n_samples,
            _by_others(result, chosen) if isinstance(result, Comparisons) else (),
        ).plot(ax)

    @property
    def finding(self) -> str:
        """How many differences are larger than chance, in a sentence."""
        shown = sum(low > 0.0 or high < 0.0 for low, high in zip(self.low, self.high, strict=True))
        return f"{shown} of {len(self.rows)} differences in {self.measure} are larger than chance allows."

    def plot(self, ax: Any = None) -> ComparisonDisplay:
        """Draw the differences with their intervals."""
        with style():
            ax = axes_or_new(ax, (WIDE[0], 1.35 + 0.42 * len(self.rows)))
            canvas = Canvas(ax)
            look, theme = canvas.look, canvas.theme
            ax.axvline(0.0, color=theme.ideal, linewidth=0.8, zorder=1.2)
            values, low, high = (
                np.asarray(part, dtype=np.float64) for part in (self.values, self.low, self.high)
            )
            shown = (low > 0) | (high < 0)
            handle = canvas.rows(list(self.rows), look.colour, values, low, high, shown)
            reach = 1.12 * float(np.nanmax(np.abs([values, low, high])) or 1e-300)
            ax.set_xlim(-reach, reach)
            ax.locator_params(axis="x", nbins=5)
            text = f"difference in {called(self.measure)}  (left: the first is better)"
            ax.set_xlabel(text, color=theme.ink)
            canvas.add(None, handle)
            canvas.head(self.verdict or self.finding)
            others = "".join(f"; {told}" for told in self.by_others)
            canvas.note(f"{how_many(self.n_samples)}; {self._intervals(np.isnan(low))}{others}.")
        self._drawn(ax)
        return self

    def _intervals(self, without: Any) -> str:
        """What intervals hold for, and why there are none."""
        none = "where both models may be calibrated a difference has no interval"
        if without.all():
            return none
        measures = ["all measures of calibration"] if self.measure in SHARES else []
        what = " and ".join([*measures, *(["all pairs"] if len(self.rows) > 1 else [])])
        together = f" that hold for {what} together" if what else ""
        told = f"{self.level:.0%} intervals{together}; filled: zero is outside"
        return f"{told}; {none}" if without.any() else told


def _by_others(result: Comparisons, measure: str) -> tuple[str, ...]:
    """Pairs that differ, as the title says, and not in the measure that is drawn."""
    told: list[str] = []
    for pair in result.shown:
        drawn = next(found for found in pair.differences if found.measure == measure)
        if not drawn.is_shown:
            by = called(clearest(pair.differences).measure)
            told.append(f"{pair.first} - {pair.second} is shown by the {by}")
    return tuple(told)
