"""Differences between models, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.checks import described, one_of
from wellcal._arrays.round_numbers import how_many
from wellcal.comparison import Comparison, Comparisons
from wellcal.comparison.differences import Difference
from wellcal.comparison.shares import SHARES, called, clearest, explained, most_shown, opposite_of
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.axes import WIDE, Canvas
from wellcal.displays.base import Display


@dataclass(repr=False)
class ComparisonDisplay(Display):
    """Differences between models on the same cases, one row a model: how it differs from the best of them.

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
        Which pairs differ that are not drawn, or not in this measure, in words.

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
    def from_result(
        cls, result: Any, *, measure: str | None = None, against: str | None = None, ax: Any = None
    ) -> ComparisonDisplay:
        """Draw what :func:`wellcal.compare` returned.

        Parameters
        ----------
        result
            Of two models, or of several.
        measure
            One that the models were compared in, such as "SKCE" or "NLL"; None takes the one of
            calibration that shows differences of the most pairs; pairs that only another one shows are in
            the small print.
        against
            The model that the others are compared with, where there are several; None takes the one that is
            best in that measure. Pairs of others that differ are in the small print.
        ax
            Where to draw it.
        """
        if isinstance(result, Comparison):
            every: list[tuple[Difference, ...]] = [result.differences]
        elif isinstance(result, Comparisons):
            every = [pair.differences for pair in result.pairs]
        else:
            raise TypeError(f"result must be what compare returns, found {described(result)}")
        known = [found.measure for found in every[0]]
        if not known:
            raise ValueError("result has no differences: it was stored by an earlier version; compare again")
        chosen = most_shown(every) if measure is None else one_of(measure, "measure", known)
        if isinstance(result, Comparison):
            rows, others = [_Row.of(*result.names, _in(chosen, result.differences))], ()
        else:
            given = None if against is None else one_of(against, "against", result.names)
            reference = _best(result, chosen) if given is None else given
            rows, others = _against(result, chosen, reference), _by_others(result, chosen, reference)
        first, _, rest = result.verdict.partition(" ")
        # A name stays as it was given.
        first = first.capitalize() if first in ("no", "neither", "which") else first
        return cls(
            tuple(row.name for row in rows),
            tuple(row.value for row in rows),
            tuple(row.low for row in rows),
            tuple(row.high for row in rows),
            chosen,
            f"{first} {rest}.",
            result.level,
            result.n_samples,
            others,
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
            numbers = "".join(f"; {told}" for told in explained([self.measure]))
            canvas.note(f"{how_many(self.n_samples)}; {self._intervals(np.isnan(low))}{others}{numbers}.")
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


class _Row(NamedTuple):
    """A difference with its interval, NaN where it has none."""

    name: str
    value: float
    low: float
    high: float

    @classmethod
    def of(cls, first: str, second: str, found: Difference) -> _Row:
        ends = found.confidence_interval()
        low, high = (ends.low, ends.high) if found.holds else (math.nan, math.nan)
        return cls(f"{first} - {second}", found.value, low, high)

    def turned(self, first: str, second: str) -> _Row:
        """The same the other way round."""
        return _Row(f"{first} - {second}", -self.value, -self.high, -self.low)


def _in(measure: str, differences: Sequence[Difference]) -> Difference:
    return next(found for found in differences if found.measure == measure)


def _best(result: Comparisons, measure: str) -> str:
    """The model with the least sum of differences to the others."""
    totals = dict.fromkeys(result.names, 0.0)
    for pair in result.pairs:
        value = _in(measure, pair.differences).value
        totals[pair.first] += value
        totals[pair.second] -= value
    return min(totals, key=lambda name: totals[name])


def _against(result: Comparisons, measure: str, reference: str) -> list[_Row]:
    """How each of the other models differs from one, the nearest first."""
    rows: list[_Row] = []
    for pair in result.pairs:
        row = _Row.of(pair.first, pair.second, _in(measure, pair.differences))
        if pair.second == reference:
            rows.append(row)
        elif pair.first == reference:
            rows.append(row.turned(pair.second, pair.first))
    return sorted(rows, key=lambda row: row.value)


def _by_others(result: Comparisons, measure: str, reference: str) -> tuple[str, ...]:
    """Pairs that differ, as the title says, and are not drawn, or not in that measure."""
    told: list[str] = []
    for pair in result.shown:
        name = f"{pair.first} - {pair.second}"
        if (other := opposite_of(measure, pair.differences)) is not None:
            told.append(f"the {called(other.measure)} says the opposite of {name}")
        elif not _in(measure, pair.differences).is_shown:
            told.append(f"{name} is shown by the {called(clearest(pair.differences).measure)}")
        elif reference not in (pair.first, pair.second):
            told.append(f"{name} is shown, too")
    return tuple(told)
