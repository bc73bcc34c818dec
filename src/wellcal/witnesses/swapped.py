"""Groups of predictions that are draws, for targets that are swapped with them.

A target and its S draws are exchangeable if the model is calibrated. In each set of targets a member of the
pooled S + 1 is the target, and the others are the draws: the group that a case is in is made of these, so
that cases move between groups from set to set. The observed groups are those of the model's own draws, and
all sets are treated alike, so that p-values are exact.

Draws that happen to lie close together leave out more targets than others: what calibration makes of a group
is not what it makes of all cases. Its expectation is the mean over all members that are in the group when
they are the target, in each cell of a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.witnesses.candidates import (
    Block,
    Candidate,
    Scanned,
    distinct_groups,
    everything_of,
    kept_groups,
    largest_gains,
    nearly_all,
    rivals_of,
)
from wellcal.witnesses.directions import Direction
from wellcal.witnesses.refine import Deviation
from wellcal.witnesses.regions import Grid, Listed, grids_of
from wellcal.witnesses.summaries import Cases


@dataclass(frozen=True, eq=False)
class Places:
    """A grid, and the cells that cases are in.

    Attributes
    ----------
    grid
        The grid.
    table
        The cell of each case, for each member of its pooled set as the target, ``(n, S + 1)``; None where
        that does not matter, and `mask` says who is in.
    mask
        Members of cells that may overlap, ``(n, size)``.
    """

    grid: Grid
    table: NDArray | None = None
    mask: NDArray | None = None

    @classmethod
    def of(cls, grid: Grid) -> Places:
        """The cells of all members."""
        if isinstance(grid, Listed):
            return cls(grid, mask=grid.membership(np.ones(len(grid.groups[0].mask))))
        cell: NDArray | int = 0
        for axis in grid.axes:
            assert axis.swapped is not None, "summaries of draws know of swapped ones"
            cell = cell * axis.size + axis.swapped
        return cls(grid, np.asarray(cell))

    def sums(self, values: NDArray, members: NDArray) -> NDArray:
        """Sums over cells, ``(r, size)``, of values ``(r, n)`` of cases with these members as targets."""
        if self.table is None:
            assert self.mask is not None
            return np.asarray(values @ self.mask)
        size, cell = self.grid.size, self.table[np.arange(len(self.table)), members]
        cell = cell + size * np.arange(len(values))[:, None]
        found = np.bincount(cell.reshape(-1), values.reshape(-1), size * len(values))
        return found.reshape(-1, size)

    def of_observed(self, values: NDArray) -> NDArray:
        """The same for the observed targets in all rows."""
        return self.sums(values, np.full(values.shape, -1))

    def own(self, values: NDArray) -> NDArray:
        """The same for the observed targets, ``(size,)`` from ``(n,)``."""
        return self.of_observed(values[None])[0]

    def at_own(self, cells: NDArray) -> NDArray:
        """What belongs to the cell of each observed case, ``(n,)``; zero where cells overlap."""
        n = len(self.mask) if self.mask is not None else 0
        return np.zeros(n) if self.table is None else cells[self.table[:, -1]]


@dataclass(frozen=True, eq=False)
class Usual:
    """What calibration makes of the cells of a grid in a direction, each ``(size,)``: means over all members.

    Attributes
    ----------
    weights, counted, happened
        Weights of cases, numbers of those that count, and of those in which it happens.
    beyond
        Weighted sums of function minus expectation. Members that move a case into a cell are unlike others.
    squares, double
        Sums of the squares of weighted deviations from the mean of a cell, and of weights.
    """

    weights: NDArray
    counted: NDArray
    happened: NDArray
    beyond: NDArray
    squares: NDArray
    double: NDArray

    @property
    def shift(self) -> NDArray:
        """By how much the mean of a cell differs from the expectation of its cases."""
        return _share(self.beyond, self.weights)


def _share(sums: NDArray, weights: NDArray) -> NDArray:
    return np.divide(sums, weights, out=np.zeros_like(sums), where=weights > 0.0)


class SwappedCandidates(Scanned):
    """Pairs of group and direction for draws, and their sums for sets of targets.

    Parameters
    ----------
    directions
        Directions, with summaries that know what swapped draws make of them.
    pool
        The pooled sets, ``(n, S + 1, ...)``, the observed target last.
    segments, weights, fewest
        As for `Candidates`.
    """

    def __init__(
        self,
        directions: Sequence[Direction],
        pool: NDArray,
        segments: Sequence[Cases],
        weights: NDArray,
        fewest: int,
    ) -> None:
        self.weights, self._fewest, self._pool = weights, fewest, pool
        self._counted = (weights > 0).astype(np.float64)
        self._observed: dict[int, NDArray] = {}
        everything = everything_of(len(weights))
        summaries = directions[0].summaries if directions else ()
        grids: list[Grid] = [
            Listed(distinct_groups([everything, *segments], weights, fewest)),
            *grids_of(summaries),
        ]
        self._grids = [Places.of(grid) for grid in grids]
        self._places: list[Places] = []
        self._usual: list[Usual] = []
        blocks: list[Block] = []
        cells, total = 0, float(self._counted.sum())
        for direction in directions:
            usual = self._means(direction)
            for places, known in zip(self._grids, usual, strict=True):
                grid = places.grid
                count, yes = grid.totals(known.counted), grid.totals(known.happened)
                rivals = rivals_of(grid.kinds, count / max(total, 1.0))
                order, rival = kept_groups(grid, direction, count, yes, rivals, fewest, total)
                if len(order):
                    where = slice(cells, cells + grid.size)
                    cells += grid.size
                    blocks.append(Block(direction, grid, None, None, order, rival, where))
                    self._places.append(places)
                    self._usual.append(known)
        super().__init__(directions, blocks)

    def _means(self, direction: Direction) -> list[Usual]:
        """Means over all members of the pooled sets, for each grid."""
        m = self._pool.shape[1]
        w, n = self.weights, len(self.weights)
        found = [np.zeros((6, places.grid.size)) for places in self._grids]
        for k in range(m):
            value = np.asarray(direction.of(self._pool[None, :, k])[0], dtype=np.float64)
            deviation = value - direction.expected
            rows = np.stack([w, self._counted, self._counted * value, w * deviation])
            more = np.stack([w**2 * deviation**2, w**2 * deviation, w**2])
            each = np.concatenate([rows, more])
            for i, places in enumerate(self._grids):
                sums = places.sums(each, np.full((len(each), n), k)) / m
                found[i] = sums if k == 0 else found[i] + sums
        usual: list[Usual] = []
        for places, (weights, counted, happened, beyond, square, first, double) in zip(
            self._grids, found, strict=True
        ):
            if places.table is None:
                beyond = np.zeros_like(beyond)  # nobody moves: the sum over all members is zero
            shift = _share(beyond, weights)
            squares = np.maximum(square - 2.0 * shift * first + shift**2 * double, 0.0)
            usual.append(Usual(weights, counted, happened, beyond, squares, double))
        return usual

    def sums(self, targets: NDArray, members: NDArray) -> NDArray:
        """Weighted sums ``(r, C)`` over the cells of all blocks, of function minus expectation.

        Parameters
        ----------
        targets
            Sets of targets, the observed one first of all, ``(r, n, ...)``.
        members
            Which members of the pooled sets these are, ``(r, n)``.
        """
        w = np.broadcast_to(self.weights, members.shape)
        counts = {id(places): places.sums(w, members) for places in self._grids}
        of_all = np.zeros((len(targets), len(self.listed)))
        self.sums_of_all.append(of_all)
        parts: list[NDArray] = [np.zeros((len(targets), 0))]
        direction, deviation = None, np.zeros((0, 0))
        for block, places, usual in zip(self.blocks, self._places, self._usual, strict=True):
            if block.direction is not direction:
                direction = block.direction
                deviation = (direction.of(targets) - direction.expected) * self.weights
                self._observed.setdefault(id(direction), direction.of(targets[:1])[0] - direction.expected)
                of_all[:, self.number[id(direction)]] = deviation.sum(axis=1)
            parts.append(places.sums(deviation, members) - usual.shift * counts[id(places)])
        return np.concatenate(parts, axis=1)

    def scales(self) -> list[NDArray]:
        return [
            block.grid.variances(usual.squares)[block.kept] ** 0.5
            for block, usual in zip(self.blocks, self._usual, strict=True)
        ]

    # -- of the observed targets ---------------------------------------------------------------

    def tellable(self) -> NDArray:
        """Groups that the draws themselves make large enough, and that show in all what cells show."""
        parts = [np.zeros(0, dtype=bool)]
        total = float(self._counted.sum())
        for block, places, usual in zip(self.blocks, self._places, self._usual, strict=True):
            grid, kept = block.grid, block.kept
            count = grid.totals(places.own(self._counted))[kept]
            some = (count >= self._fewest - 1e-9) & ~nearly_all(count, total)
            deviation = self.weights * self._observed[id(block.direction)]
            sums = grid.totals(places.own(deviation))[kept]
            weights = grid.totals(places.own(self.weights))[kept]
            shift = _share(grid.totals(usual.beyond)[kept], grid.totals(usual.weights)[kept])
            in_cells = grid.totals(places.own(deviation - self.weights * places.at_own(usual.shift)))[kept]
            some &= (sums - shift * weights) * in_cells > 0.0
            parts.append(some | np.isin(grid.kinds[kept], ("all", "segment")))
        return np.concatenate(parts)

    def promised(self, candidate: Candidate) -> float:
        b, g = self._at(candidate)
        inside, usual = candidate.cases.mask, self._usual[b]
        mean = float(np.average(candidate.direction.expected[inside], weights=self.weights[inside]))
        cells = self.blocks[b].grid.cells(g)
        weight = float(usual.weights[cells].sum())
        mean += float(usual.beyond[cells].sum()) / weight if weight > 0.0 else 0.0
        return min(max(mean, 0.0), 1.0) if candidate.direction.happens else mean

    def _at(self, candidate: Candidate) -> tuple[int, int]:
        assert candidate.place is not None
        return candidate.place

    def _variance(self, b: int) -> NDArray:
        """Of the weighted deviation of each observed case, ``(n,)``."""
        places, usual = self._places[b], self._usual[b]
        if places.table is None:
            each = self.blocks[b].direction
            known = each.expected * (1.0 - each.expected) if each.happens else np.ones(len(self.weights))
            return self.weights**2 * known
        return self.weights**2 * places.at_own(_share(usual.squares, usual.double))

    def _observed_variances(self, b: int, among: NDArray | None = None) -> NDArray:
        """Of sums over the groups of a block, or over their cases `among` some, ``(K,)``."""
        block = self.blocks[b]
        each = self._variance(b) if among is None else self._variance(b) * among
        return block.grid.variances(self._places[b].own(each))[block.kept]

    def _units(self, b: int) -> NDArray:
        """Scales of groups in units of what they are in the observed set, where other cases are in them."""
        own = np.sqrt(self._observed_variances(b))
        block = self.blocks[b]
        return _share(block.grid.variances(self._usual[b].squares)[block.kept] ** 0.5, own)

    def gains(self, block: Block, z: NDArray) -> NDArray:
        if not block.direction.happens:
            return z**2
        b = next(b for b, one in enumerate(self.blocks) if one is block)
        places, direction = self._places[b], block.direction
        shift = places.at_own(self._usual[b].shift)
        expected = np.clip(direction.expected + shift, 0.0, 1.0)
        observed = self._observed[id(direction)] + direction.expected - expected
        deviation = Deviation(observed, expected, expected * (1.0 - expected), self.weights, True)
        return largest_gains(block, z, len(self.weights), deviation.gains, places.of_observed)

    def shared(self, candidate: Candidate) -> list[NDArray]:
        own, g = self._at(candidate)
        unit = float(self._units(own)[np.flatnonzero(self.blocks[own].kept == g)[0]])
        return [
            self._observed_variances(b, candidate.cases.mask) * self._units(b) * unit
            if block.direction is candidate.direction
            else np.zeros(len(block.kept))
            for b, block in enumerate(self.blocks)
        ]

    def untold(self, told: Sequence[Candidate]) -> list[tuple[NDArray, NDArray]]:
        found: list[tuple[NDArray, NDArray]] = []
        for b, (block, places) in enumerate(zip(self.blocks, self._places, strict=True)):
            rest = np.ones(len(self.weights))
            for one in told:
                if self.related[self.number[id(one.direction)], self.number[id(block.direction)]]:
                    rest = rest * ~one.cases.mask
            shift = places.at_own(self._usual[b].shift)
            deviation = self.weights * (self._observed[id(block.direction)] - shift) * rest
            units = self._units(b)
            sums = block.grid.totals(places.own(deviation))[block.kept]
            found.append((sums * units, self._observed_variances(b, rest) * units**2))
        return found
