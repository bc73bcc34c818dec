"""Groups of cases by summaries of their predictions: above, below and between cuts of one, boxes of two.

All cuts are made beforehand, at shares of the cases. Sums over cells between neighbouring cuts then give the
sum over any region as a difference of sums up to its ends: all regions are looked at for the price of the
cells, and only sums over cells are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from wellcal._arrays.namespaces import NDArray
from wellcal.witnesses.axes import Axis, Region, axis_of
from wellcal.witnesses.summaries import Cases, Summary

LINE = 32
"""Cells of one summary at most, with 527 intervals between them: one for 8 cases, and no fewer than 8."""

PLANE = 14
"""Cells of each of two summaries at most, with 10,816 boxes: two for 5 cases, and no fewer than 4 by 4."""

MOST_PLANES = 3
"""Pairs of summaries that boxes are made of."""

_DENSE = 65_536  # entries up to which a product with an array of mostly zeros is quicker than a sparse one
_ROUNDING = 1e-12  # of a difference of sums of squares, relative to the largest


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
    axes: tuple[Axis, ...] = ()
    """Summaries between whose cuts the cells are, the first slowest."""

    @abstractmethod
    def membership(self, weights: NDArray) -> NDArray | Any:
        """Weights of cases in cells, ``(n, size)``: an array, or a sparse one."""

    @abstractmethod
    def totals(self, cells: NDArray) -> NDArray:
        """Sums over groups, ``(G,)``, from sums over cells, ``(size,)``; or ``(G, r)`` from ``(size, r)``."""

    @abstractmethod
    def looked_up(self, groups: NDArray, units: NDArray) -> Look:
        """How to sum over some groups, ordered by piece, in units of each, ``(g,)``, for many sets."""

    @abstractmethod
    def group(self, g: int) -> Cases:
        """A group."""

    @abstractmethod
    def cells(self, g: int) -> NDArray:
        """Which cells a group is made of, ``(size,)``."""

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

    def cells(self, g: int) -> NDArray:
        return np.arange(self.size) == g


class Line(Grid):
    """Cases above, below and between cuts of a summary."""

    def __init__(self, axis: Axis) -> None:
        self.axes = (axis,)
        self.size = axis.size
        self._first, self._last = _intervals(axis.size)
        self.numbers = _cuts(self._first, self._last, self.size)
        self.kinds = np.where(self.numbers == 1, "split", "interval")
        self.piece = np.zeros(len(self.numbers), dtype=np.intp)

    def membership(self, weights: NDArray) -> Any:
        return one_hot(self.axes[0].cell, self.size, weights)

    def totals(self, cells: NDArray) -> NDArray:
        upto = _upto(cells)
        return upto[self._last] - upto[self._first]

    def looked_up(self, groups: NDArray, units: NDArray) -> Look:
        table = _table(self._first[groups], self._last[groups], self.size, units)

        def look(cells: NDArray) -> Iterator[tuple[slice[int, int], NDArray]]:
            yield slice(0, len(groups)), table @ cells

        return look

    def cells(self, g: int) -> NDArray:
        return _between(self._first[g], self._last[g], self.size)

    def region(self, g: int) -> Region:
        ends = self.axes[0].ends
        return Region(self.axes, ((int(ends[self._first[g]]), int(ends[self._last[g]])),))

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
        return one_hot(across.cell * along.size + along.cell, self.size, weights)

    def totals(self, cells: NDArray) -> NDArray:
        across, along = self.axes
        upto = _upto(np.swapaxes(_upto(cells.reshape(across.size, along.size, *cells.shape[1:])), 0, 1))
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

    def cells(self, g: int) -> NDArray:
        a, b, c, d = self._ends[:, g]
        across, along = (axis.size for axis in self.axes)
        return np.outer(_between(a, b, across), _between(c, d, along)).reshape(-1)

    def region(self, g: int) -> Region:
        a, b, c, d = (int(end) for end in self._ends[:, g])
        across, along = (axis.ends for axis in self.axes)
        return Region(self.axes, ((int(across[a]), int(across[b])), (int(along[c]), int(along[d]))))

    def group(self, g: int) -> Cases:
        return _named(self.region(g))


def _between(first: int, last: int, size: int) -> NDArray:
    cells = np.arange(size)
    return (cells >= first) & (cells < last)


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


def one_hot(cell: NDArray, size: int, weights: NDArray) -> Any:
    """Weights of cases in the cells that they are in, ``(n, size)``: an array, or a sparse one."""
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
