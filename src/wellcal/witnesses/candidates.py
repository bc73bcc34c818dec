"""Groups times directions, and their sums over sets of targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal.witnesses.axes import Region
from wellcal.witnesses.cell_sums import FEW_SETS, Events, Members, few_sets, many_sets
from wellcal.witnesses.directions import Direction
from wellcal.witnesses.refine import SIZES, Deviation
from wellcal.witnesses.regions import Grid, Listed, grids_of
from wellcal.witnesses.summaries import Cases

LARGEST_SHARE = 0.95
"""Of all cases that a group has at most, unless somebody named it.

Where an error is in a share s of the cases and nowhere else, its sum over all of them is sqrt(s) times as
many standard deviations off as its sum over those: above this share all cases show it 97% as clearly or more,
and hardly anything is said by where it is. What is wrong with the other cases is found among these."""

_KINDS = ("all", "segment", "split", "interval", "box")
_RELATED = 0.3  # correlation of directions that say the same of a case
_SMALLEST = 6  # sizes of groups are told apart by halves, down to 2^-6 of all cases


@dataclass(frozen=True)
class Candidate:
    """A group of cases that is looked at in a direction.

    Attributes
    ----------
    cases, direction
        The group and the direction.
    place
        The number of its block, and that of the group in its grid; None for a group of no grid.
    """

    cases: Cases
    direction: Direction
    place: tuple[int, int] | None = None


@dataclass(frozen=True)
class Block:
    """Groups of one grid that are looked at in one direction.

    Attributes
    ----------
    direction, grid
        In which direction, and where.
    members
        Weights of cases in its cells, `Members`; None where cases are elsewhere.
    alike
        The same where all cases weigh one, ``(n, C)``.
    kept
        Groups of the grid with enough cases in them, by pieces of the grid, then by their rivals.
    rivals
        Which groups each is compared with: those of its kind and size.
    cells
        Where the sums over cells are, among those of all blocks.
    """

    direction: Direction
    grid: Grid
    members: Any
    alike: Any
    kept: NDArray
    rivals: NDArray
    cells: slice[int, int]


class Scanned(ABC):
    """Pairs of group and direction that are looked at, by blocks of a grid and a direction.

    Parameters
    ----------
    directions
        Directions, each with the summaries whose regions it is looked at in.
    blocks
        Their grids, with the groups of each that are looked at.

    Attributes
    ----------
    starts
        Numbers of the first candidate of each block, and of all of them.
    number
        Numbers of directions by their identity.
    directions
        The number of the direction of each candidate, ``(M,)``.
    sums_of_all
        Sums over all cases for sets of targets, the observed one first, for each direction: lists of
        ``(r, D)``.
    """

    def __init__(self, directions: Sequence[Direction], blocks: Sequence[Block]) -> None:
        self.blocks = list(blocks)
        sizes = [len(block.kept) for block in self.blocks]
        self.starts = np.cumsum([0, *sizes])
        self.listed = list(directions)
        self.number = {id(direction): d for d, direction in enumerate(directions)}
        self.directions = np.repeat([self.number[id(block.direction)] for block in self.blocks], sizes)
        self.sums_of_all: list[NDArray] = []

    @abstractmethod
    def scales(self) -> list[NDArray]:
        """Standard deviations of the candidates of each block, under calibration."""

    @abstractmethod
    def gains(self, block: Block, z: NDArray) -> NDArray:
        """Twice the largest log-likelihood ratio, about, of the groups of a block that are kept, ``(K,)``."""

    @abstractmethod
    def shared(self, candidate: Candidate) -> list[NDArray]:
        """Variances of sums over the cases that each candidate of a block shares with another.

        Of blocks in the direction of that one; zeros for the others.
        """

    @abstractmethod
    def untold(self, told: Sequence[Candidate]) -> list[tuple[NDArray, NDArray]]:
        """Sums over the cases of candidates that have not been told, and their variances, for each block.

        A case has been told in the direction of a group that it is in, and in those that vary with it.
        """

    def tellable(self) -> NDArray:
        """Which candidates may be told, ``(M,)``."""
        return np.ones(len(self), dtype=bool)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, k: int) -> Candidate:
        b, g = self._place(k)
        block = self.blocks[b]
        return Candidate(block.grid.group(g), block.direction, (b, g))

    def region(self, k: int) -> Region | None:
        """The group of a candidate by its summaries; None if it is not made of any."""
        b, g = self._place(k)
        return self.blocks[b].grid.region(g)

    def numbers(self, k: int) -> int:
        """How many cuts, or labels, it takes to describe a candidate."""
        b, g = self._place(k)
        return int(self.blocks[b].grid.numbers[g])

    def _place(self, k: int) -> tuple[int, int]:
        b = int(np.searchsorted(self.starts, k, side="right")) - 1
        return b, int(self.blocks[b].kept[k - self.starts[b]])

    @cached_property
    def related(self) -> NDArray:
        """Which directions vary with each other over drawn sets of targets, by their sums over all cases."""
        sums = np.concatenate(self.sums_of_all)[1:]  # the observed set came first
        norms = np.sqrt(np.sum(sums**2, axis=0))
        together = np.abs(sums.T @ sums) >= _RELATED * np.outer(norms, norms)
        return together | np.eye(len(norms), dtype=bool)

    def segments(self) -> list[tuple[int, str]]:
        """Candidates that are segments, with what these are called, in the order in which they were given."""
        found: list[tuple[int, str]] = []
        for start, block in zip(self.starts[:-1].tolist(), self.blocks, strict=True):
            some = np.flatnonzero(block.grid.kinds[block.kept] == "segment")
            some = some[np.argsort(block.kept[some])]  # candidates stand beside their rivals
            found.extend((start + int(k), block.grid.group(int(block.kept[k])).where) for k in some)
        return found


class Candidates(Scanned):
    """All pairs of group and direction that are looked at, and their sums for sets of targets.

    Parameters
    ----------
    directions
        Directions, each with the summaries whose regions it is looked at in.
    segments
        Groups that are looked at in all directions.
    weights
        Weights of cases, ``(n,)``.
    fewest
        Cases that a group must have at least.
    """

    def __init__(
        self, directions: Sequence[Direction], segments: Sequence[Cases], weights: NDArray, fewest: int
    ) -> None:
        self.weights, self._fewest = weights, fewest
        blocks: list[Block] = []
        self.everything = everything_of(len(weights))
        listed = Listed(distinct_groups([self.everything, *segments], weights, fewest))
        made: dict[tuple[int, ...], list[_Placed]] = {}
        counted = self._counted = (weights > 0).astype(np.float64)
        cells = 0
        for direction in directions:
            key = tuple(id(summary.values) for summary in direction.summaries)
            if key not in made:
                grids: list[Grid] = [listed, *grids_of(direction.summaries)]
                made[key] = [_placed(grid, weights, counted) for grid in grids]
            for grid, members, alike, count, rivals in made[key]:
                yes = grid.totals(np.asarray((counted * direction.expected) @ alike))
                order, rival = kept_groups(grid, direction, count, yes, rivals, fewest, counted.sum())
                if len(order):
                    where = slice(cells, cells + grid.size)
                    cells += grid.size
                    blocks.append(Block(direction, grid, members, alike, order, rival, where))
        super().__init__(directions, blocks)
        self._sets = 0
        self._squares = {id(d): np.zeros(len(weights)) for d in directions if not d.happens}
        self._observed: dict[int, NDArray] = {}
        self._plain = bool(np.all(weights == 1.0))
        self._expected: dict[int, dict[int, NDArray]] = {}

    def observed(self, block: Block, among: NDArray) -> NDArray:
        """Sums over the groups of a block for the observed targets, over cases `among` some, ``(n,)``."""
        deviation = self._observed[id(block.direction)] * among
        return block.grid.totals(np.asarray(deviation @ block.members.weights))[block.kept]

    def sums(self, targets: NDArray) -> NDArray:
        """Weighted sums ``(r, C)`` over the cells of all blocks, of function minus expectation.

        What is needed of the latter besides is remembered: squares, the observed set, sums over all cases.
        """
        parts: list[NDArray] = [np.zeros((len(targets), 0))]
        direction, deviation, sums = None, np.zeros(0), many_sets(np.zeros((0, 0)))
        of_all = np.zeros((len(targets), len(self.listed)))
        self.sums_of_all.append(of_all)
        self._sets += len(targets)
        few = len(targets) <= FEW_SETS
        over_cells = few_sets if few else many_sets
        for block in self.blocks:
            if block.direction is not direction:
                direction = block.direction
                if few and direction.happens and self._plain:
                    events = self._events_of(direction, targets)
                    of_all[:, self.number[id(direction)]] = events.total
                    sums = events.sums
                    parts.append(sums(block.members))
                    continue
                deviation = direction.of(targets) - direction.expected
                sums = over_cells(deviation)
                self._observed.setdefault(id(direction), deviation[0])  # the first set is the observed one
                of_all[:, self.number[id(direction)]] = deviation @ self.weights
                if not direction.happens:
                    self._squares[id(direction)] += np.sum(deviation**2, axis=0)
            parts.append(sums(block.members))
        return np.concatenate(parts, axis=1)

    def _events_of(self, direction: Direction, targets: NDArray) -> Events:
        """Where something happens in sets of targets."""
        happened = np.asarray(direction.of(targets), dtype=bool)
        if id(direction) not in self._observed:
            self._observed[id(direction)] = happened[0] - direction.expected
        cases = [np.flatnonzero(row) for row in happened]
        return Events(cases, direction.expected, self._expected.setdefault(id(direction), {}))

    def scales(self) -> list[NDArray]:
        """Standard deviations of the candidates of each block, under calibration.

        Targets of different cases are independent: variances add up. That of what happens or does not is
        known; others are mean squares of each case over all sets of targets, the observed one among them, so
        that all are treated alike.
        """
        return [self.variances(block)[block.kept] ** 0.5 for block in self.blocks]

    def variances(self, block: Block, among: NDArray | None = None) -> NDArray:
        """Variances of sums over all groups of a block, or over their cases `among` some, ``(n,)``."""
        each = self.weights**2 * self._variance(block.direction)
        return block.grid.variances(np.asarray((each if among is None else each * among) @ block.alike))

    def _variance(self, direction: Direction) -> NDArray:
        """The variance of each case, ``(n,)``."""
        if direction.happens:
            return direction.expected * (1.0 - direction.expected)
        return self._squares[id(direction)] / max(self._sets, 1)

    # -- of the observed targets ---------------------------------------------------------------

    def deviation(self, direction: Direction, among: NDArray | float = 1.0) -> Deviation:
        """Deviations in a direction, which can be more or less likely; only cases `among` some count."""
        return Deviation(
            self._observed[id(direction)],
            direction.expected,
            self._variance(direction),
            self.weights * among,
            direction.happens,
        )

    def gains(self, block: Block, z: NDArray) -> NDArray:
        if not block.direction.happens:
            return z**2
        deviation = self.deviation(block.direction)
        n = len(self.weights)
        return largest_gains(block, z, n, deviation.gains, lambda rows: np.asarray(rows @ block.alike))

    def shared(self, candidate: Candidate) -> list[NDArray]:
        return [
            self.variances(block, candidate.cases.mask)[block.kept]
            if block.direction is candidate.direction
            else np.zeros(len(block.kept))
            for block in self.blocks
        ]

    def untold(self, told: Sequence[Candidate]) -> list[tuple[NDArray, NDArray]]:
        others = [self.untold_cases(direction, told) for direction in self.listed]
        found: list[tuple[NDArray, NDArray]] = []
        for block in self.blocks:
            rest = others[self.number[id(block.direction)]]
            found.append((self.observed(block, rest), self.variances(block, rest)[block.kept]))
        return found

    def untold_cases(self, direction: Direction, told: Sequence[Candidate]) -> NDArray:
        """Cases that have not been told in a direction, or in one that varies with it, ``(n,)``."""
        found = np.ones(len(self.weights), dtype=bool)
        for one in told:
            if self.related[self.number[id(one.direction)], self.number[id(direction)]]:
                found &= ~one.cases.mask
        return found

    def sum_of(self, candidate: Candidate) -> tuple[float, float]:
        """The sum over any group, and its standard deviation under calibration."""
        mask, direction = candidate.cases.mask, candidate.direction
        w = self.weights[mask]
        variance = float(w**2 @ self._variance(direction)[mask])
        return float(w @ self._observed[id(direction)][mask]), variance**0.5

    def promised(self, candidate: Candidate) -> float:
        """The mean that is expected over a group."""
        inside = candidate.cases.mask
        return float(np.average(candidate.direction.expected[inside], weights=self.weights[inside]))

    def nearly_all(self, candidate: Candidate) -> bool:
        """Whether a group has so many cases that it is told as all of them."""
        return bool(nearly_all(float(self._counted[candidate.cases.mask].sum()), float(self._counted.sum())))

    def enough(self, candidate: Candidate) -> bool:
        """Whether any group is as large as candidates have to be."""
        counted = self._counted * candidate.cases.mask
        count = np.array([counted.sum()])
        yes = np.array([counted @ candidate.direction.expected])
        return bool(count[0] >= self._fewest - 1e-9 and candidate.direction.enough(yes, count)[0])

    def within(self, candidate: Candidate) -> NDArray:
        """Which candidates of its direction have no cases that any group has not, ``(M,)``."""
        others = self._counted * ~candidate.cases.mask
        parts = [
            block.grid.totals(np.asarray(others @ block.alike))[block.kept] < 0.5
            if block.direction is candidate.direction
            else np.zeros(len(block.kept), dtype=bool)
            for block in self.blocks
        ]
        return np.concatenate(parts)


def kept_groups(
    grid: Grid,
    direction: Direction,
    count: NDArray,
    yes: NDArray,
    rivals: NDArray,
    fewest: int,
    total: float,
) -> tuple[NDArray, NDArray]:
    """Groups of a grid with enough cases and not nearly all, in which enough is expected, and their rivals.

    They are in the order of both.

    Parameters
    ----------
    grid, direction
        Which groups are looked at, and in which direction.
    count, yes
        Number of cases in each group, and the sum of their expectations.
    rivals
        Which groups each is compared with.
    fewest
        Cases that a group must have at least; all cases are looked at, however few they are.
    total
        Number of all cases. Of these a group has `LARGEST_SHARE` at most; a segment has what it has.
    """
    enough = (count >= fewest - 1e-9) | (grid.kinds == "all")
    some = ~nearly_all(count, total) | np.isin(grid.kinds, ("all", "segment"))
    kept = np.flatnonzero(enough & some & direction.enough(yes, count))
    order = kept[np.lexsort((rivals[kept], grid.piece[kept]))]
    return order, rivals[order]


def nearly_all(count: NDArray | float, total: float) -> NDArray:
    """Whether groups with so many cases are as good as all of them."""
    return np.asarray(count > LARGEST_SHARE * total + 1e-9)


def largest_gains(
    block: Block,
    z: NDArray,
    cases: int,
    gains: Callable[[float], NDArray],
    sums: Callable[[NDArray], NDArray],
) -> NDArray:
    """Twice the largest log-likelihood ratio over some sizes of errors, of which many are summed at a time.

    Parameters
    ----------
    block, z
        Groups in a direction, and how far their sums are off.
    cases
        Their number n.
    gains
        Ratios of cases ``(n,)`` for an error of a size, with its sign.
    sums
        From rows of cases ``(r, n)`` to sums over cells ``(r, size)``.
    """
    sizes = [sign * size for sign in (-1.0, 1.0) for size in SIZES]
    some = in_chunks(len(sizes), cases)
    cells = np.concatenate([sums(np.stack([gains(size) for size in sizes[rows]])) for rows in some])
    of_groups = block.grid.totals(np.ascontiguousarray(cells.T))[block.kept]
    below, above = of_groups[:, : len(SIZES)].max(axis=1), of_groups[:, len(SIZES) :].max(axis=1)
    return np.maximum(np.select([z < 0.0, z > 0.0], [below, above], 0.0), 0.0)


_Placed: TypeAlias = tuple[Grid, Members, Any, NDArray, NDArray]


def _placed(grid: Grid, weights: NDArray, counted: NDArray) -> _Placed:
    """A grid with weights of cases in its cells, ones in their place, and cases and rivals of its groups."""
    ones = np.ones(len(weights))
    alike: Any = grid.membership(ones)
    same = bool(np.all(weights == ones))
    members = Members(alike if same else grid.membership(weights), same)
    count = grid.totals(np.asarray(counted @ alike))
    return grid, members, alike, count, rivals_of(grid.kinds, count / max(counted.sum(), 1.0))


def rivals_of(kinds: NDArray, share: NDArray) -> NDArray:
    """Numbers of kind and size, the latter by halves."""
    halves = np.clip(np.floor(-np.log2(np.maximum(share, 2.0**-64)) + 1e-9), 0, _SMALLEST).astype(np.intp)
    # Tens of thousands of groups are of a handful of kinds: each is looked up once.
    names, where = np.unique(kinds, return_inverse=True)
    kind = np.array([_KINDS.index(str(name)) for name in names.tolist()], dtype=np.intp)
    return kind[where] * (_SMALLEST + 1) + halves


def everything_of(n: int) -> Cases:
    """All of so many cases."""
    return Cases("in all cases", np.ones(n, dtype=bool), "all", ())


def distinct_groups(groups: Sequence[Cases], weights: NDArray, fewest: int) -> list[Cases]:
    """Groups with enough cases that count, without those that repeat an earlier one; the first stays."""
    seen: set[bytes] = set()
    out: list[Cases] = []
    for group in groups:
        counted = group.mask & (weights > 0)
        key = np.packbits(counted).tobytes()
        if not out or (key not in seen and np.count_nonzero(counted) >= fewest):
            seen.add(key)
            out.append(group)
    return out
