"""What a scan for groups asks of cases in partitions: sums over cells, in all directions.

Groups lie between cuts that are made beforehand. What each partition finds are sums over cells between
neighbouring cuts, which add up; those over groups are made of the totals, as in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.dask.pairs import relative_weights
from wellcal.dask.partitioned import Cases, Partition, added, itself, on
from wellcal.dask.parts import check_spreads
from wellcal.dask.sums import in_parts
from wellcal.kernels.base import Kernel
from wellcal.problem.at_locations import location_kernel
from wellcal.problem.locations import Locations
from wellcal.problem.target_resampling import TargetStream
from wellcal.witnesses.axes import cells_between
from wellcal.witnesses.candidates import Block, Candidate, Scanned, kept_groups, largest_gains, rivals_of
from wellcal.witnesses.directions import Direction, directions_in, directions_of_draws
from wellcal.witnesses.refine import SIZES, Deviation
from wellcal.witnesses.regions import Grid, one_hot
from wellcal.witnesses.summaries import Overview

ERRORS = tuple(sign * size for size in SIZES for sign in (-1.0, 1.0))
"""Sizes of errors at which groups are compared."""


@dataclass(frozen=True)
class Column:
    """A grid of segments: a column of labels, or of numbers between cuts.

    Attributes
    ----------
    number
        Of the column.
    values
        Its different labels in order, or the cuts.
    places
        The number of the group of each label; None where `values` are cuts.
    """

    number: int
    values: NDArray
    places: NDArray | None = None

    @property
    def size(self) -> int:
        """How many groups there are."""
        return len(self.values) + (self.places is None)

    def cells(self, labels: NDArray) -> NDArray:
        """The group that each case is in."""
        if self.places is None:
            return np.searchsorted(self.values, labels, side="right")
        return self.places[np.searchsorted(self.values, labels)]


Sides = tuple[tuple[int, NDArray], ...] | Column
"""A grid: the number of each of its summaries among those of a direction, and cuts of that; or segments."""


@dataclass(frozen=True)
class Sought:
    """What is looked for in each partition: small, and the same for all of them.

    Attributes
    ----------
    levels
        Of quantiles that targets are compared with.
    overview
        What all predictions decide together.
    grids
        Of each direction: all cases, which have no sides, and what lies between cuts.
    kernel, expectations, locations
        The witness function, and where it is looked at.
    n
        Number of all cases.
    largest
        The largest weight of a case; None where all count alike.
    drawn
        Whether predictions are draws, pooled with their targets: of these, groups are all cases and segments.
    """

    levels: tuple[float, ...]
    overview: Overview
    grids: tuple[tuple[Sides, ...], ...]
    kernel: Kernel
    expectations: Any
    locations: Locations
    n: int
    largest: float | None = None
    drawn: bool = False

    @property
    def cells(self) -> int:
        """Number of cells of all grids in all directions."""
        return sum(_size(sides) for grids in self.grids for sides in grids)


class Outline(NamedTuple):
    """Sums over cells ``(C,)`` of what is known before targets are drawn.

    Attributes
    ----------
    cases, counted, weights
        Numbers of cases, of those whose weight is not zero, and weights.
    expected, weighted
        Expectations of those that count, and of all by their weight.
    variance
        Variances of weighted deviations; zero where only drawn targets tell.
    gains
        Log-likelihood ratios of the observed targets at each of `ERRORS`, ``(E, C)``.
    """

    cases: NDArray
    counted: NDArray
    weights: NDArray
    expected: NDArray
    weighted: NDArray
    variance: NDArray
    gains: NDArray


@dataclass(frozen=True)
class Told:
    """A group that may be told: cells of one grid, in a direction.

    Attributes
    ----------
    direction, grid
        Their numbers, the latter among the grids of that direction.
    cells
        Which cells it is made of.
    """

    direction: int
    grid: int
    cells: NDArray


def _size(sides: Sides) -> int:
    if isinstance(sides, Column):
        return sides.size
    return int(np.prod([len(cuts) + 1 for _, cuts in sides]))


def directions_for(
    predictions: Any, levels: Sequence[float], overview: Overview, drawn: bool
) -> list[Direction]:
    """Directions for some predictions; those of draws have no summaries.

    Groups that are made of draws change when these are swapped with targets: that is for cases in memory.
    """
    return directions_of_draws(predictions, levels) if drawn else directions_in(predictions, levels, overview)


def sides_of(grid: Grid, direction: Direction) -> Sides:
    """What tells in which cell of a grid a case is."""
    names = [summary.name for summary in direction.summaries]
    return tuple((names.index(axis.name), axis.cuts) for axis in grid.axes)


# -- what runs where the partitions are --------------------------------------------------------


def overview_of(block: Partition) -> Overview:
    """What the predictions of a partition decide, together with others."""
    if block.predictions.event_shape and block.predictions.kind != "classes":
        check_spreads(block.predictions)
    return Overview.of(block.predictions)


class Rows:
    """Some cases, and the cells that they are in."""

    def __init__(self, block: Partition, sought: Sought) -> None:
        self.directions = directions_for(block.predictions, sought.levels, sought.overview, sought.drawn)
        self._n, self._labels, self._sought = len(block.targets), block.labels, sought
        weights = relative_weights(block, sought.largest)
        self.weights = np.ones(self._n) if weights is None else weights
        self._known: dict[tuple[int, ...], tuple[NDArray, Any]] = {}

    def cell(self, d: int, grid: int) -> NDArray:
        """The cell that each case is in, ``(n,)``."""
        return self._placed(d, grid)[0]

    def _placed(self, d: int, grid: int) -> tuple[NDArray, Any]:
        """The same, and as a table ``(n, size)``; directions share summaries, and so do their grids."""
        sides = self._sought.grids[d][grid]
        if isinstance(sides, Column):
            columns: list[tuple[NDArray, NDArray]] = []
            key: tuple[int, ...] = (sides.number,)
        else:
            columns = [(self.directions[d].summaries[s].values, cuts) for s, cuts in sides]
            key = tuple(id(array) for column in columns for array in column)
        if key not in self._known:
            cell = np.zeros(self._n, dtype=np.intp)
            for values, cuts in columns:
                cell = cell * (len(cuts) + 1) + cells_between(values, cuts)
            if isinstance(sides, Column):
                cell = sides.cells(self._labels[sides.number])
            self._known[key] = cell, one_hot(cell, _size(sides), np.ones(self._n))
        return self._known[key]

    def over_cells(self, d: int, values: NDArray) -> NDArray:
        """Sums of values ``(r, n)`` over the cells of all grids of a direction, ``(r, C_d)``."""
        grids = range(len(self._sought.grids[d]))
        return np.concatenate([np.asarray(values @ self._placed(d, g)[1]) for g in grids], axis=1)

    def deviations(self, targets: NDArray) -> Iterator[tuple[int, NDArray]]:
        """Function minus expectation ``(r, n)`` of each direction, for sets of targets."""
        for d, direction in enumerate(self.directions):
            yield d, direction.of(targets) - direction.expected

    def variance(self, d: int, squares: NDArray | None) -> NDArray:
        """Variances ``(n,)`` of deviations: of events they are known, of others mean squares are given."""
        direction = self.directions[d]
        if direction.happens:
            return direction.expected * (1.0 - direction.expected)
        return np.zeros(self._n) if squares is None else squares[d]

    def inside(self, group: Told) -> NDArray:
        """Which cases are in a group, ``(n,)``."""
        return group.cells[self.cell(group.direction, group.grid)]


def outlined(block: Partition, sought: Sought) -> tuple[tuple[NDArray, ...], NDArray]:
    """Sums over cells, the fields of an `Outline`, and sums of expectations at locations, ``(J,)``."""
    total: Any = None
    for _, some in in_parts(block):
        rows = Rows(some, sought)
        w = rows.weights
        ones, counted = np.ones(len(w)), (w > 0.0).astype(np.float64)
        parts: list[NDArray] = []
        for d, (observed,) in rows.deviations(some.targets[None]):
            direction = rows.directions[d]
            expected, variance = direction.expected, rows.variance(d, None)
            deviation = Deviation(observed, expected, variance, w, direction.happens)
            gains = [deviation.gains(size) if direction.happens else 0.0 * w for size in ERRORS]
            known = [ones, counted, w, counted * expected, w * expected, w**2 * variance]
            parts.append(rows.over_cells(d, np.stack([*known, *gains])))
        cells = np.concatenate(parts, axis=1)
        at = _at_locations(some, rows, sought)
        found = (*cells[:6], cells[6:])
        total = added(total, (found, np.sum(np.abs(at.expected), axis=0)))
    return total


def _at_locations(block: Partition, rows: Rows, sought: Sought) -> Any:
    options = {"expectations": sought.expectations}
    return location_kernel(sought.kernel, block.predictions, sought.locations, **options).weighted(
        rows.weights
    )


def drawn_sums(
    block: Partition,
    start: int,
    sought: Sought,
    stream: TargetStream,
    count: int,
    *,
    first: int,
    squares: bool = False,
) -> Any:
    """Sums over cells ``(r, C)``, over all cases ``(r, D)`` and at locations ``(r, J)``, for sets of targets.

    The observed set comes before those with the first of all numbers. With `squares` there are also sums of
    squares over sets, ``(D, n)``, of deviations that are no events.
    """
    total: Any = None
    by_case: list[NDArray] = []
    for low, some in in_parts(block):
        rows = Rows(some, sought)
        at, w = _at_locations(some, rows, sought), rows.weights
        own = np.zeros((len(rows.directions), len(w)))
        by_case.append(own)
        place: dict[str, int] = {"start": start + low, "total": sought.n, "first": first}
        found: list[tuple[NDArray, NDArray, NDArray]] = []
        for drawn in stream.sets(some.predictions, some.targets, count, **place):
            observed = [some.targets[None]] if first == 0 and not found else []
            targets = np.concatenate([*observed, drawn])
            cells: list[NDArray] = []
            of_all: list[NDArray] = []
            for d, deviation in rows.deviations(targets):
                if squares and not rows.directions[d].happens:
                    own[d] += np.sum(deviation**2, axis=0)
                weighted = deviation if sought.largest is None else deviation * w
                cells.append(rows.over_cells(d, weighted))
                of_all.append(weighted.sum(axis=1))
            found.append((np.concatenate(cells, axis=1), np.stack(of_all, axis=1), at.sums(targets)))
        total = added(total, tuple(np.concatenate(rows_of_all) for rows_of_all in zip(*found, strict=True)))
    return (total, np.concatenate(by_case, axis=1)) if squares else total


def masked_sums(
    block: Partition,
    squares: NDArray | None,
    sought: Sought,
    groups: Sequence[Sequence[Told] | None],
    outside: bool,
) -> NDArray:
    """Sums over cells, for the observed targets, of cases inside or `outside` of groups.

    Parameters
    ----------
    block, squares, sought
        Cases, mean squares of deviations that are no events, ``(D, n)`` or None, and what is looked for.
    groups
        For each direction its groups; zeros are returned where there is None in their place.
    outside
        Whether cases count that are in none of the groups, or those that are in all of them.

    Returns
    -------
    array
        Deviations and variances, ``(2, C)``.
    """
    total: Any = None
    for low, some in in_parts(block):
        rows = Rows(some, sought)
        w = rows.weights
        mine = None if squares is None else squares[:, low : low + len(w)]
        parts: list[NDArray] = []
        for d, (observed,) in rows.deviations(some.targets[None]):
            own = groups[d]
            counted = np.zeros(len(w)) if own is None else np.ones(len(w))
            for group in own or ():
                counted = counted * (rows.inside(group) != outside)
            each = np.stack([w * observed, w**2 * rows.variance(d, mine)])
            parts.append(rows.over_cells(d, each * counted))
        total = added(total, np.concatenate(parts, axis=1))
    return total


# -- what a scan asks of all of them -----------------------------------------------------------


class ScannedCases(Scanned):
    """Groups and directions whose sums come from partitions.

    Parameters
    ----------
    cases
        All cases.
    sought
        What is looked for in each partition.
    directions, grids
        Of some of the cases in memory: what groups are called, and how cells make them.
    outline
        What `outlined` found of all partitions.
    fewest
        Cases that a group must have at least.
    """

    def __init__(
        self,
        cases: Cases,
        sought: Sought,
        directions: Sequence[Direction],
        grids: Sequence[Sequence[Grid]],
        outline: Outline,
        fewest: int,
    ) -> None:
        self._cases, self._sought, self.outline = cases, sought, outline
        self._squares: list[Any] = [None] * len(cases.blocks)
        positive = max(float(outline.counted[0]), 1.0)  # the first cell has all cases
        self._places: list[tuple[int, int]] = []  # of each block, its direction and its grid there
        blocks: list[Block] = []
        first = 0
        for d, (direction, own) in enumerate(zip(directions, grids, strict=True)):
            for g, grid in enumerate(own):
                where = slice(first, first + grid.size)
                first += grid.size
                count, yes = (grid.totals(row[where]) for row in (outline.counted, outline.expected))
                rivals = rivals_of(grid.kinds, count / positive)
                kept, rival = kept_groups(grid, direction, count, yes, rivals, fewest, positive)
                if len(kept):
                    self._places.append((d, g))
                    blocks.append(Block(direction, grid, None, None, kept, rival, where))
        super().__init__(directions, blocks)

    def know_squares(self, squares: Sequence[Any]) -> None:
        """Take mean squares of deviations that are no events, of each partition: their variances."""
        self._squares = list(squares)
        nobody: list[list[Told] | None] = [[] for _ in self.listed]
        found = self._masked(nobody, outside=True)
        self.outline = self.outline._replace(variance=found[1])

    def scales(self) -> list[NDArray]:
        return [
            block.grid.variances(self.outline.variance[block.cells])[block.kept] ** 0.5
            for block in self.blocks
        ]

    def gains(self, block: Block, z: NDArray) -> NDArray:
        if not block.direction.happens:
            return z**2
        known = self.outline.gains[:, block.cells]  # sums over cells already
        return largest_gains(
            block, z, known.shape[1], lambda size: known[ERRORS.index(size)], lambda rows: rows
        )

    def shared(self, candidate: Candidate) -> list[NDArray]:
        group = self.told(candidate)
        groups = [[group] if d == group.direction else None for d in range(len(self.listed))]
        return [variance for _, variance in self._over_groups(groups, outside=False)]

    def untold(self, told: Sequence[Candidate]) -> list[tuple[NDArray, NDArray]]:
        known = [self.told(candidate) for candidate in told]
        groups = [
            [group for group in known if self.related[group.direction, d]] for d in range(len(self.listed))
        ]
        return self._over_groups(groups, outside=True)

    def told(self, candidate: Candidate) -> Told:
        """A candidate as partitions know it."""
        assert candidate.place is not None
        b, g = candidate.place
        return Told(*self._places[b], self.blocks[b].grid.cells(g))

    def over_group(self, candidate: Candidate, cells: NDArray) -> float:
        """The sum over a group, from sums over all cells."""
        assert candidate.place is not None
        block = self.blocks[candidate.place[0]]
        return float(cells[block.cells] @ self.told(candidate).cells)

    def _masked(self, groups: Sequence[Sequence[Told] | None], *, outside: bool) -> NDArray:
        shared = {"sought": on(itself, self._sought), "groups": groups, "outside": outside}
        return self._cases.total(masked_sums, self._squares, **shared)

    def _over_groups(
        self, groups: Sequence[Sequence[Told] | None], *, outside: bool
    ) -> list[tuple[NDArray, NDArray]]:
        found = self._masked(groups, outside=outside)
        return [
            (
                block.grid.totals(found[0, block.cells])[block.kept],
                block.grid.variances(found[1, block.cells])[block.kept],
            )
            for block in self.blocks
        ]
