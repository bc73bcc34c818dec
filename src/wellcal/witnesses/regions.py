"""Groups of cases by summaries of their predictions: above, below and between cuts of one, boxes of two.

All cuts are made beforehand, at shares of the cases. Sums over cells between neighbouring cuts then give the
sum over any region as a difference of sums up to its ends: all regions are looked at for the price of the
cells, and only sums over cells are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.round_numbers import round_between
from wellcal.witnesses.summaries import Cases, Summary

LINE = 32
"""Cells of one summary at most, with 527 intervals between them: one for 8 cases, and no fewer than 8."""

PLANE = 20
"""Cells of each of two summaries at most, with 43,681 boxes: two for 5 cases, and no fewer than 4 by 4."""

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
    cuts
        The number that each cut is called by, in order.
    cell
        How many cuts each case lies above, ``(n,)``.
    """

    name: str
    cuts: tuple[float, ...]
    cell: NDArray

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.cuts) + 1

    def words(self, first: int, last: int) -> str | None:
        """What cases in the cells first .. last - 1 have in common; None for all cells."""
        low = None if first == 0 else _short(self.cuts[first - 1])
        high = None if last == self.size else _short(self.cuts[last - 1])
        if low is None and high is None:
            return None
        if low is None:
            return f"{self.name} is below {high}"
        return f"{self.name} is above {low}" if high is None else f"{self.name} is between {low} and {high}"


def axis_of(summary: Summary, cells: int) -> Axis | None:
    """Cuts of a summary into about as many cells of equal size; None where all values are the same.

    A cut lies between two neighbouring values and is called by the shortest number between them: a
    change of unit changes what it is called, and not which cases it separates.

    Examples
    --------
    >>> axis = axis_of(Summary("the predicted mean", np.array([1.0, 2.2, 2.9, 4.1])), 2)
    >>> axis.cuts, axis.cell, axis.words(1, 2)
    ((2.3,), array([0, 0, 1, 1]), 'the predicted mean is above 2.3')
    """
    values = np.asarray(summary.values, dtype=np.float64)
    if not np.isfinite(values).all():
        return None
    ordered, counts = np.unique(values, return_counts=True)
    if len(ordered) < 2:
        return None
    upto = np.cumsum(counts)[:-1]  # cases below each gap
    wanted = np.arange(1, cells) * (len(values) / cells)
    after = np.clip(np.searchsorted(upto, wanted), 1, max(len(upto) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(upto) - 1)
    nearer = np.abs(upto[before] - wanted) <= np.abs(upto[after] - wanted)
    gaps = np.unique(np.where(nearer, before, after))
    cuts = tuple(round_between(float(ordered[gap]), float(ordered[gap + 1])) for gap in gaps)
    return Axis(summary.name, cuts, np.searchsorted(ordered[gaps], values, side="left"))


def _short(number: float) -> str:
    return f"{number:.15g}"


# -- grids -------------------------------------------------------------------------------------


class Grid(ABC):
    """Cells of cases, and groups that are made of them."""

    size: int
    """Number of cells."""
    kinds: NDArray
    """What each group is, ``(G,)``."""
    numbers: NDArray
    """How many cuts, or labels, it takes to describe each group, ``(G,)``."""
    piece: NDArray
    """In which order `pieces` come to the groups, ``(G,)``."""

    @abstractmethod
    def membership(self, weights: NDArray) -> NDArray | Any:
        """Weights of cases in cells, ``(n, size)``: an array, or a sparse one."""

    @abstractmethod
    def totals(self, cells: NDArray) -> NDArray:
        """Sums over groups, ``(G,)``, from sums over cells, ``(size,)``."""

    @abstractmethod
    def pieces(self, cells: NDArray, groups: NDArray) -> Iterator[tuple[slice[int, int], NDArray]]:
        """Sums over some groups for many sets of targets, in pieces that a core's cache holds.

        `cells` are sums over cells, ``(size, r)``, and `groups` are ordered by piece; for each piece there
        is the part of `groups`, and their sums, ``(g, r)``.
        """

    @abstractmethod
    def group(self, g: int) -> Cases:
        """A group."""

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

    def pieces(self, cells: NDArray, groups: NDArray) -> Iterator[tuple[slice[int, int], NDArray]]:
        yield slice(0, len(groups)), cells[groups]

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
        self.piece = self._last // 4

    def membership(self, weights: NDArray) -> Any:
        return _one_hot(self.axis.cell, self.size, weights)

    def totals(self, cells: NDArray) -> NDArray:
        upto = _upto(cells)
        return upto[self._last] - upto[self._first]

    def pieces(self, cells: NDArray, groups: NDArray) -> Iterator[tuple[slice[int, int], NDArray]]:
        upto = _upto(cells)
        for part in _parts(self.piece[groups]):
            some = groups[part]
            yield part, upto[self._last[some]] - upto[self._first[some]]

    def group(self, g: int) -> Cases:
        first, last = int(self._first[g]), int(self._last[g])
        cell = self.axis.cell
        mask = (cell >= first) & (cell < last)
        return Cases(f"where {self.axis.words(first, last)}", mask, str(self.kinds[g]))


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

    def pieces(self, cells: NDArray, groups: NDArray) -> Iterator[tuple[slice[int, int], NDArray]]:
        across, along = self.axes
        upto = _upto(cells.reshape(across.size, along.size, -1))
        for part in _parts(self.piece[groups]):
            some = self._ends[:, groups[part]]
            strip = _upto(upto[some[1, 0]] - upto[some[0, 0]])
            found = strip[some[3]]
            found -= strip[some[2]]
            yield part, found

    def group(self, g: int) -> Cases:
        ends = [int(end) for end in self._ends[:, g]]
        words: list[str] = []
        mask = np.ones(len(self.axes[0].cell), dtype=bool)
        for axis, first, last in zip(self.axes, ends[::2], ends[1::2], strict=True):
            words.append(str(axis.words(first, last)))
            mask &= (axis.cell >= first) & (axis.cell < last)
        return Cases(f"where {' and '.join(words)}", mask, "box")


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


def _parts(piece: NDArray) -> Iterator[slice[int, int]]:
    """Where the same number stands several times in a row."""
    edges = np.flatnonzero(np.diff(piece, prepend=-1, append=-1)).tolist()
    return (slice(a, b) for a, b in pairwise(edges))


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
