"""Groups of cases by summaries of their predictions: above, below and between cuts of one, boxes of two.

All cuts are made beforehand, at shares of the cases. Sums over cells between neighbouring cuts then give the
sum over any region as a difference of sums up to its ends: all regions are looked at for the price of the
cells, and only sums over cells are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.round_numbers import SAME, cut_text, distinct, round_between, share_cut_text
from wellcal.witnesses.summaries import Cases, Summary

LINE = 32
"""Cells of one summary at most, with 527 intervals between them: one for 8 cases, and no fewer than 8."""

PLANE = 14
"""Cells of each of two summaries at most, with 10,816 boxes: two for 5 cases, and no fewer than 4 by 4."""

MOST_PLANES = 3
"""Pairs of summaries that boxes are made of."""

_DENSE = 65_536  # entries up to which a product with an array of mostly zeros is quicker than a sparse one
_ROUNDING = 1e-12  # of a difference of sums of squares, relative to the largest


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
    """

    name: str
    ordered: NDArray
    level: NDArray
    ends: NDArray
    cell: NDArray
    share: bool = False

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
        return Cases(f"where {' and '.join(sides)}", self.mask, kind)


# -- grids -------------------------------------------------------------------------------------


Look = Callable[[NDArray], "Iterator[tuple[slice[int, int], NDArray]]"]
"""From sums over cells, ``(size, r)``, to those over groups, ``(g, r)``: pieces that a core's cache holds."""


class Grid(ABC):
    """Cells of cases, and groups that are made of them."""

    size: int
    """Number of cells."""
    kinds: NDArray
    """What each group is, ``(G,)``."""
    numbers: NDArray
    """How many cuts, or labels, it takes to describe each group, ``(G,)``."""
    piece: NDArray
    """In which order groups are summed over, ``(G,)``."""

    @abstractmethod
    def membership(self, weights: NDArray) -> NDArray | Any:
        """Weights of cases in cells, ``(n, size)``: an array, or a sparse one."""

    @abstractmethod
    def totals(self, cells: NDArray) -> NDArray:
        """Sums over groups, ``(G,)``, from sums over cells, ``(size,)``."""

    @abstractmethod
    def looked_up(self, groups: NDArray, units: NDArray) -> Look:
        """How to sum over some groups, ordered by piece, in units of each, ``(g,)``, for many sets."""

    @abstractmethod
    def group(self, g: int) -> Cases:
        """A group."""

    def region(self, g: int) -> Region | None:
        """A group by its summaries; None if it is not made of any."""
        return None

    def variances(self, cells: NDArray) -> NDArray:
        """Variances of sums over groups, from those of sums over cells, ``(size,)``; rounding is zero."""
        found = self.totals(cells)
        return np.where(found > _ROUNDING * np.max(found, initial=0.0), found, 0.0)


class Listed(Grid):
    """Groups that are cells of their own, and may overlap: all cases, and segments."""

    def __init__(self, groups: Sequence[Cases]) -> None:
        self.groups = list(groups)
        self.size = len(self.groups)
        self.kinds = np.array([group.kind for group in self.groups])
        self.numbers = np.array([group.kind != "all" for group in self.groups], dtype=np.intp)
        self.piece = np.zeros(self.size, dtype=np.intp)

    def membership(self, weights: NDArray) -> NDArray:
        return np.stack([group.mask * weights for group in self.groups], axis=1)

    def totals(self, cells: NDArray) -> NDArray:
        return cells

    def looked_up(self, groups: NDArray, units: NDArray) -> Look:
        def look(cells: NDArray) -> Iterator[tuple[slice[int, int], NDArray]]:
            yield slice(0, len(groups)), cells[groups] * units[:, None]

        return look

    def group(self, g: int) -> Cases:
        return self.groups[g]


class Line(Grid):
    """Cases above, below and between cuts of a summary."""

    def __init__(self, axis: Axis) -> None:
        self.axis = axis
        self.size = axis.size
        self._first, self._last = _intervals(axis.size)
        self.numbers = _cuts(self._first, self._last, self.size)
        self.kinds = np.where(self.numbers == 1, "split", "interval")
        self.piece = np.zeros(len(self.numbers), dtype=np.intp)

    def membership(self, weights: NDArray) -> Any:
        return _one_hot(self.axis.cell, self.size, weights)

    def totals(self, cells: NDArray) -> NDArray:
        upto = _upto(cells)
        return upto[self._last] - upto[self._first]

    def looked_up(self, groups: NDArray, units: NDArray) -> Look:
        table = _table(self._first[groups], self._last[groups], self.size, units)

        def look(cells: NDArray) -> Iterator[tuple[slice[int, int], NDArray]]:
            yield slice(0, len(groups)), table @ cells

        return look

    def region(self, g: int) -> Region:
        ends = self.axis.ends
        return Region((self.axis,), ((int(ends[self._first[g]]), int(ends[self._last[g]])),))

    def group(self, g: int) -> Cases:
        return _named(self.region(g))


class Plane(Grid):
    """Cases in boxes of two summaries, each above, below or between cuts."""

    def __init__(self, across: Axis, along: Axis) -> None:
        self.axes = across, along
        self.size = across.size * along.size
        sides = [np.stack(_intervals(axis.size)) for axis in self.axes]
        rows, columns = (side.shape[1] for side in sides)
        self._ends = np.concatenate([np.repeat(sides[0], columns, axis=1), np.tile(sides[1], rows)])
        a, b, c, d = self._ends
        self.numbers = _cuts(a, b, across.size) + _cuts(c, d, along.size)
        self.kinds = np.array(["box"] * len(self.numbers))
        self.piece = b * (across.size + 1) + a

    def membership(self, weights: NDArray) -> Any:
        across, along = self.axes
        return _one_hot(across.cell * along.size + along.cell, self.size, weights)

    def totals(self, cells: NDArray) -> NDArray:
        upto = _upto(np.swapaxes(_upto(cells.reshape(self.axes[0].size, -1)), 0, 1))
        a, b, c, d = self._ends
        return (upto[d, b] - upto[d, a]) - (upto[c, b] - upto[c, a])

    def looked_up(self, groups: NDArray, units: NDArray) -> Look:
        across, along = self.axes
        a, b, c, d = self._ends[:, groups]
        # Products of small tables are quicker than differences of sums: they go once through memory.
        table = _table(c, d, along.size, units)
        parts = runs(self.piece[groups])

        def look(cells: NDArray) -> Iterator[tuple[slice[int, int], NDArray]]:
            upto = _upto(cells.reshape(across.size, along.size, -1))
            for part in parts:
                yield part, table[part] @ (upto[b[part.start]] - upto[a[part.start]])

        return look

    def region(self, g: int) -> Region:
        a, b, c, d = (int(end) for end in self._ends[:, g])
        across, along = (axis.ends for axis in self.axes)
        return Region(self.axes, ((int(across[a]), int(across[b])), (int(along[c]), int(along[d]))))

    def group(self, g: int) -> Cases:
        return _named(self.region(g))


def _named(region: Region) -> Cases:
    found = region.cases()
    assert found is not None, "a region of a grid leaves cases out"
    return found


def _intervals(size: int) -> tuple[NDArray, NDArray]:
    """First cells, and cells after the last, of all intervals but that of all cells."""
    first, last = np.triu_indices(size + 1, 1)
    some = last - first < size
    return first[some], last[some]


def _cuts(first: NDArray, last: NDArray, size: int) -> NDArray:
    """Ends of intervals that are not those of the line."""
    return (first > 0).astype(np.intp) + (last < size)


def _upto(cells: NDArray) -> NDArray:
    """Sums over none, one, two and so on of the first cells."""
    found = np.zeros((len(cells) + 1, *cells.shape[1:]))
    np.cumsum(cells, axis=0, out=found[1:])
    return found


def runs(numbers: NDArray) -> list[slice[int, int]]:
    """Where the same number, none of them negative, stands several times in a row."""
    edges = np.flatnonzero(np.diff(numbers, prepend=-1, append=-1)).tolist()
    return [slice(a, b) for a, b in pairwise(edges)]


def _table(first: NDArray, last: NDArray, size: int, units: NDArray) -> NDArray:
    """Cells first .. last - 1 of each of some intervals, in units of each, ``(g, size)``."""
    cells = np.arange(size)
    return ((cells >= first[:, None]) & (cells < last[:, None])) * units[:, None]


def _one_hot(cell: NDArray, size: int, weights: NDArray) -> Any:
    n = len(cell)
    if n * size <= _DENSE:
        table = np.zeros((n, size))
        table[np.arange(n), cell] = weights
        return table
    made: Any = sparse.csr_array((weights, cell, np.arange(n + 1)), shape=(n, size))
    return made


def grids_of(summaries: Sequence[Summary]) -> list[Grid]:
    """Lines of all summaries, and planes of some pairs: the first with the others, the last first."""
    n = len(summaries[0].values) if summaries else 0
    fine, rough = min(LINE, max(8, n // 8)), min(PLANE, max(4, round((n / 2.5) ** 0.5)))
    lines = [axis for summary in summaries if (axis := axis_of(summary, fine)) is not None]
    coarse = [axis for summary in summaries if (axis := axis_of(summary, rough)) is not None]
    partners = [*coarse[-1:], *coarse[1:-1]] if len(coarse) > 1 else []
    pairs = [(coarse[0], other) for other in partners]
    if len(coarse) > 2:
        pairs.insert(1, (coarse[1], coarse[-1]))
    return [*map(Line, lines), *(Plane(a, b) for a, b in pairs[:MOST_PLANES])]
