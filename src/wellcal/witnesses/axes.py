"""Summaries with cuts, and regions between them.

All cuts are made beforehand, at shares of the cases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.measures.round_numbers import SAME, cut_text, distinct, round_between, share_cut_text
from wellcal.problem.defaults import sampled_rows
from wellcal.witnesses.summaries import Cases, Side, Summary

MOST_RANKED = 100_000
"""Cases at whose shares cuts are made: where there are more, always the same of them.

Which these are depends on their number only, so that cases on several machines have the same cuts.
"""


@dataclass(frozen=True)
class Axis:
    """A summary with cuts.

    Attributes
    ----------
    name
        What the summary is called.
    ordered
        Its different values, in order, ``(m,)``.
    level
        Which of these each case has, ``(n,)``.
    ends
        How many of these lie below each cut, and none and all of them, ``(size + 1,)``.
    cell
        How many cuts each case lies above, ``(n,)``.
    share
        Whether it is a share, which is told in percent.
    swapped
        Cells of cases for each member of their pooled sets as the target, ``(n, S + 1)``, where predictions
        are draws; else None.
    """

    name: str
    ordered: NDArray
    level: NDArray
    ends: NDArray
    cell: NDArray
    share: bool = False
    swapped: NDArray | None = None

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.ends) - 1

    def words(self, first: int, last: int) -> str:
        """What cases with the values first .. last - 1 have in common, if these are not all.

        A cut lies between two neighbouring values and is called by the shortest number between them: a
        change of unit changes what it is called, and not which cases it separates.
        """
        told = share_cut_text if self.share else cut_text
        low, high = (told(self.number(end)) for end in (first, last))
        if low == high:  # two numbers that are about the same need their digits
            low, high = (f"{self.number(end):.15g}" for end in (first, last))
        if first == 0:
            return f"{self.name} is below {high}"
        if last == len(self.ordered):
            return f"{self.name} is above {low}"
        return f"{self.name} is between {low} and {high}"

    @property
    def cuts(self) -> NDArray:
        """Numbers between neighbouring cells, ``(size - 1,)``: cases at one belong to the cell above it.

        Those that cuts are called by, unless rounding makes one of them the number of a case.
        """
        ends = self.ends[1:-1]
        low, high = self.ordered[ends - 1], self.ordered[ends]
        named = np.array([self.number(int(end)) for end in ends])
        clear = np.minimum(named - low, high - named) > SAME * np.abs(named)
        return np.where(clear, named, 0.5 * (low + high))

    def number(self, end: int) -> float:
        """What a cut above the first `end` values is called by."""
        if not 0 < end < len(self.ordered):
            return float(np.copysign(np.inf, end - 0.5))
        return round_between(float(self.ordered[end - 1]), float(self.ordered[end]))


def axis_of(summary: Summary, cells: int) -> Axis | None:
    """Cuts of a summary into about as many cells of equal size; None where all values are the same.

    Examples
    --------
    >>> axis = axis_of(Summary("the predicted mean", np.array([1.0, 2.2, 2.9, 4.1])), 2)
    >>> axis.ends, axis.cell, axis.words(2, 4)
    (array([0, 2, 4]), array([0, 0, 1, 1]), 'the predicted mean is above 2.3')
    """
    values = np.asarray(summary.values, dtype=np.float64)
    if not np.isfinite(values).all():
        return None
    if summary.swapped is not None:  # which member is the target must not move the cuts
        members = np.sort(summary.swapped, axis=1).reshape(-1)
        some = axis_of(Summary(summary.name, members[ranked_rows(len(members))]), cells)
        found = _with_cuts_of(summary, some)
        if found is None or some is None:
            return None
        return replace(found, swapped=cells_between(summary.swapped, some.cuts).astype(np.int32))
    if len(values) > MOST_RANKED:
        return _with_cuts_of(
            summary, axis_of(replace(summary, values=values[ranked_rows(len(values))]), cells)
        )
    ordered = distinct(values)
    if len(ordered) < 2:
        return None
    # A value that differs from one of these by rounding only belongs to it.
    level = np.searchsorted(ordered, values + SAME * np.abs(values), side="right") - 1
    counts = np.bincount(level, minlength=len(ordered))
    upto = np.cumsum(counts)[:-1]  # cases below each gap
    wanted = np.arange(1, cells) * (len(values) / cells)
    after = np.clip(np.searchsorted(upto, wanted), 1, max(len(upto) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(upto) - 1)
    nearer = np.abs(upto[before] - wanted) <= np.abs(upto[after] - wanted)
    gaps = np.unique(np.where(nearer, before, after))
    ends = np.concatenate([[0], gaps + 1, [len(ordered)]])
    cell = np.searchsorted(gaps, level, side="left")
    return Axis(summary.name, ordered, level, ends, cell, summary.share)


def ranked_rows(n: int) -> NDArray:
    """Cases at whose shares cuts are made.

    Examples
    --------
    >>> ranked_rows(3), len(ranked_rows(10**6))
    (array([0, 1, 2]), 100000)
    """
    return sampled_rows(n, MOST_RANKED)


def cells_between(values: NDArray, cuts: NDArray) -> NDArray:
    """How many cuts each value lies above, or at; rounding moves none of them.

    Examples
    --------
    >>> cells_between(np.array([0.1 + 0.2, 0.3, 0.29]), np.array([0.3]))
    array([1, 1, 0])
    """
    return np.searchsorted(cuts - SAME * np.abs(cuts), values, side="right")


def _with_cuts_of(summary: Summary, some: Axis | None) -> Axis | None:
    """All cases, with the cuts of some of them."""
    if some is None:
        return None
    values = np.asarray(summary.values, dtype=np.float64)
    ordered = distinct(values)
    level = np.searchsorted(ordered, values + SAME * np.abs(values), side="right") - 1
    below = cells_between(ordered, some.cuts)  # of each value, how many cuts there are below
    ends = np.searchsorted(below, np.arange(some.size + 1))
    return Axis(summary.name, ordered, level, ends, below[level], summary.share)


@dataclass(frozen=True)
class Region:
    """Cases above, below or between values of one summary, or of each of two.

    Attributes
    ----------
    axes
        The summaries.
    ends
        Of each the first value, by its place in their order, and the one after the last.
    """

    axes: tuple[Axis, ...]
    ends: tuple[tuple[int, int], ...]

    @property
    def cuts(self) -> list[int]:
        """How many numbers it takes to describe each side."""
        return [
            (first > 0) + (last < len(axis.ordered))
            for axis, (first, last) in zip(self.axes, self.ends, strict=True)
        ]

    @property
    def mask(self) -> NDArray:
        """Which cases these are, ``(n,)``."""
        return np.all([self.side(j) for j in range(len(self.axes))], axis=0)

    def side(self, j: int) -> NDArray:
        """Which cases are within one side, ``(n,)``."""
        level, (first, last) = self.axes[j].level, self.ends[j]
        return (level >= first) & (level < last)

    def cases(self) -> Cases | None:
        """The group, named by the sides that leave cases out; None if none does."""
        sides = [
            axis.words(*ends) for axis, ends, n in zip(self.axes, self.ends, self.cuts, strict=True) if n
        ]
        if not sides:
            return None
        kind = "box" if len(sides) > 1 else "split" if sum(self.cuts) == 1 else "interval"
        ends = tuple(
            Side(axis.name, axis.number(first), axis.number(last))
            for axis, (first, last), n in zip(self.axes, self.ends, self.cuts, strict=True)
            if n
        )
        return Cases(f"where {' and '.join(sides)}", self.mask, kind, ends)
