"""Groups times directions, over exchangeable sets of targets, with control of multiplicity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.pvalues import check_numbers, tie_width
from wellcal.witnesses.directions import Direction
from wellcal.witnesses.regions import Grid, Listed, grids_of
from wellcal.witnesses.summaries import Cases

_KINDS = ("all", "segment", "split", "interval", "box")
_ALIKE = 0.5  # correlation of groups that say the same, and share of a group that must be new
_RELATED = 0.3  # correlation of directions that say the same of a case
_PRICE = 2.0 * float(np.log(32.0))  # squared deviation that a cut gains by being the best of so many
_SMALLEST = 6  # sizes of groups are told apart by halves, down to 2^-6 of all cases


@dataclass(frozen=True)
class Candidate:
    """A group of cases that is looked at in a direction."""

    cases: Cases
    direction: Direction


@dataclass(frozen=True)
class _Block:
    """Groups of one grid that are looked at in one direction.

    Attributes
    ----------
    direction, grid
        In which direction, and where.
    membership
        Weights of cases in cells, ``(n, C)``.
    alike
        The same where all cases weigh one.
    kept
        Groups of the grid with enough cases in them, by pieces of the grid, then by their rivals.
    rivals
        Which groups each is compared with: those of its kind and size.
    cells
        Where the sums over cells are, among those of all blocks.
    """

    direction: Direction
    grid: Grid
    membership: Any
    alike: Any
    kept: NDArray
    rivals: NDArray
    cells: slice[int, int]

    def totals(self, cells: NDArray) -> NDArray:
        """Sums over the groups that are kept, ``(K,)``, from all sums over cells."""
        return self.grid.totals(cells[self.cells])[self.kept]


class Candidates:
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
        self.weights = weights
        self.blocks: list[_Block] = []
        everything = Cases("in all cases", np.ones(len(weights), dtype=bool), "all")
        listed = Listed(_distinct([everything, *segments], weights, fewest))
        made: dict[tuple[int, ...], list[tuple[Grid, Any, Any, NDArray, NDArray]]] = {}
        counted = (weights > 0).astype(np.float64)
        cells = 0
        for direction in directions:
            key = tuple(id(summary.values) for summary in direction.summaries)
            if key not in made:
                grids: list[Grid] = [listed, *grids_of(direction.summaries)]
                made[key] = [_placed(grid, weights, counted) for grid in grids]
            for grid, membership, alike, count, rivals in made[key]:
                yes = grid.totals(np.asarray((counted * direction.expected) @ alike))
                # All cases are looked at, however few they are.
                enough = (count >= fewest - 1e-9) | (grid.kinds == "all")
                kept = np.flatnonzero(enough & direction.enough(yes, count))
                if len(kept):
                    order = kept[np.lexsort((rivals[kept], grid.piece[kept]))]
                    where = slice(cells, cells + grid.size)
                    cells += grid.size
                    self.blocks.append(
                        _Block(direction, grid, membership, alike, order, rivals[order], where)
                    )
        self._sets = 0
        self._squares = {id(d): np.zeros(len(weights)) for d in directions if not d.happens}
        sizes = [len(block.kept) for block in self.blocks]
        self._starts = np.cumsum([0, *sizes])
        self.listed = list(directions)
        self.number = {id(direction): d for d, direction in enumerate(directions)}
        self.directions = np.repeat([self.number[id(block.direction)] for block in self.blocks], sizes)
        self._observed: dict[int, NDArray] = {}
        self._sums_of_all: list[NDArray] = []

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, k: int) -> Candidate:
        block = int(np.searchsorted(self._starts, k, side="right")) - 1
        found = self.blocks[block]
        return Candidate(found.grid.group(int(found.kept[k - self._starts[block]])), found.direction)

    def observed(self, block: _Block, among: NDArray) -> NDArray:
        """Sums over the groups of a block for the observed targets, over cases `among` some, ``(n,)``."""
        deviation = self._observed[id(block.direction)] * among
        return block.grid.totals(np.asarray(deviation @ block.membership))[block.kept]

    @cached_property
    def related(self) -> NDArray:
        """Which directions vary with each other over drawn sets of targets, by their sums over all cases."""
        sums = np.concatenate(self._sums_of_all)[1:]  # the observed set came first
        norms = np.sqrt(np.sum(sums**2, axis=0))
        together = np.abs(sums.T @ sums) >= _RELATED * np.outer(norms, norms)
        return together | np.eye(len(norms), dtype=bool)

    def segments(self) -> list[tuple[int, str]]:
        """Candidates that are segments, with what these are called."""
        found: list[tuple[int, str]] = []
        for start, block in zip(self._starts[:-1].tolist(), self.blocks, strict=True):
            some = np.flatnonzero(block.grid.kinds[block.kept] == "segment")
            found.extend((start + int(k), block.grid.group(int(block.kept[k])).where) for k in some)
        return found

    def sums(self, targets: NDArray) -> NDArray:
        """Weighted sums ``(r, C)`` over the cells of all blocks, of function minus expectation.

        What is needed of the latter besides is remembered: squares, the observed set, sums over all cases.
        """
        parts = [np.zeros((len(targets), 0))]
        direction, deviation = None, np.zeros(0)
        of_all = np.zeros((len(targets), len(self.listed)))
        self._sums_of_all.append(of_all)
        self._sets += len(targets)
        for block in self.blocks:
            if block.direction is not direction:
                direction = block.direction
                deviation = direction.of(targets) - direction.expected
                self._observed.setdefault(id(direction), deviation[0])  # the first set is the observed one
                of_all[:, self.number[id(direction)]] = deviation @ self.weights
                if not direction.happens:
                    self._squares[id(direction)] += np.sum(deviation**2, axis=0)
            parts.append(np.asarray(deviation @ block.membership))
        return np.concatenate(parts, axis=1)

    def scales(self) -> list[NDArray]:
        """Standard deviations of the candidates of each block, under calibration.

        Targets of different cases are independent: variances add up. That of what happens or does not is
        known; others are mean squares of each case over all sets of targets, the observed one among them, so
        that all are treated alike.
        """
        return [self.variances(block)[block.kept] ** 0.5 for block in self.blocks]

    def variances(self, block: _Block, among: NDArray | None = None) -> NDArray:
        """Variances of sums over all groups of a block, or over their cases `among` some, ``(n,)``."""
        expected = block.direction.expected
        variance = expected * (1.0 - expected)
        if not block.direction.happens:
            variance = self._squares[id(block.direction)] / max(self._sets, 1)
        each = self.weights**2 * (variance if among is None else variance * among)
        return block.grid.variances(np.asarray(each @ block.alike))


def _placed(grid: Grid, weights: NDArray, counted: NDArray) -> tuple[Grid, Any, Any, NDArray, NDArray]:
    """A grid with weights of cases in its cells, ones in their place, and cases and rivals of its groups."""
    ones = np.ones(len(weights))
    alike = grid.membership(ones)
    same = bool(np.all(weights == ones))
    membership = alike if same else grid.membership(weights)
    count = grid.totals(np.asarray(counted @ alike))
    return grid, membership, alike, count, _rivals(grid.kinds, count / max(counted.sum(), 1.0))


def _rivals(kinds: NDArray, share: NDArray) -> NDArray:
    """Numbers of kind and size, the latter by halves."""
    halves = np.clip(np.floor(-np.log2(np.maximum(share, 2.0**-64)) + 1e-9), 0, _SMALLEST).astype(np.intp)
    # Tens of thousands of groups are of a handful of kinds: each is looked up once.
    names, where = np.unique(kinds, return_inverse=True)
    kind = np.array([_KINDS.index(str(name)) for name in names.tolist()], dtype=np.intp)
    return kind[where] * (_SMALLEST + 1) + halves


def _distinct(groups: Sequence[Cases], weights: NDArray, fewest: int) -> list[Cases]:
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


# -- multiplicity ------------------------------------------------------------------------------


class ScanTest:
    """The largest deviation of all candidates over exchangeable sets of targets, the observed set first.

    Sums are in units of their spread. There are many more small groups than large ones, and more boxes than
    intervals, so that the largest of them is larger by chance. From each the median, over all sets, of the
    largest among its rivals, groups of its kind and about its size, is subtracted: a simple description
    wins over one that is hardly more striking, and boxes cost simple groups little of their power.

    Parameters
    ----------
    candidates
        What is looked at.
    cells
        Sums over cells of all sets, ``(R + 1, C)``.

    Attributes
    ----------
    z
        Standardised sums of the observed set, ``(M,)``; zero where there is no spread.
    excess
        Their absolute values beyond what is usual among their rivals, ``(M,)``.
    pvalues
        Adjusted p-values ``(M,)``: the share of sets whose largest excess is as large.
    """

    def __init__(self, candidates: Candidates, cells: NDArray) -> None:
        check_numbers(cells)
        self._candidates, self._cells = candidates, cells
        self._scales = candidates.scales()
        rivals = np.unique([rival for block in candidates.blocks for rival in np.unique(block.rivals)])
        largest = np.zeros((len(rivals), len(cells)))
        observed: list[NDArray] = [np.zeros(0)]
        for block, scale in zip(candidates.blocks, self._scales, strict=True):
            found = np.zeros(len(scale))
            table = np.ascontiguousarray(cells[:, block.cells].T)
            for chunk in in_chunks(len(cells), 16 * len(table)):
                for part, sums in block.grid.pieces(table[:, chunk], block.kept):
                    z = _ratio(sums, scale[part, None])
                    if chunk.start == 0:
                        found[part] = z[:, 0]
                    first = np.flatnonzero(np.diff(block.rivals[part], prepend=-1))
                    columns = np.searchsorted(rivals, block.rivals[part][first])
                    most = np.maximum.reduceat(np.abs(z, out=z), first, axis=0)
                    np.maximum(largest[columns, chunk], most, out=most)
                    largest[columns, chunk] = most
            observed.append(found)
        usual = np.median(largest, axis=1)
        self.z = np.concatenate(observed)
        own = np.concatenate([np.zeros(0, np.intp), *(block.rivals for block in candidates.blocks)])
        self.excess = np.abs(self.z) - usual[np.searchsorted(rivals, own)]
        most_of_set = np.max(largest.T - usual, axis=1, initial=-np.inf)
        self.pvalues = _adjusted(self.excess, most_of_set)
        self._chance = float(np.median(most_of_set))  # what the largest excess is by chance

    def striking(self, count: int) -> list[int]:
        """Up to `count` candidates: the one with the largest excess first, then those with other cases.

        A group is told after others only for the cases that have not been told in its direction, or in one
        that varies with it, and only if these are most of it: a part of a group that errs is no news. It ends
        where the excess of such cases is no larger than chance would give.

        Of candidates that overlap in one direction, and are as significant, the one is taken whose squared
        deviation is largest after a price for each number in its description: where all cases err, the
        largest deviation is hardly ever that of all, but of nearly all.
        """
        candidates = self._candidates
        numbers = [block.grid.numbers[block.kept] for block in candidates.blocks]
        worth = self.z**2 - _PRICE * np.concatenate([np.zeros(0), *numbers])
        usual = np.abs(self.z) - self.excess
        left = np.concatenate([np.zeros(0), *self._scales]) > 0.0
        beyond, told = self.excess, np.zeros((len(candidates.related), len(candidates.weights)), dtype=bool)
        chosen: list[int] = []
        while len(chosen) < count and left.any():
            k = _first_largest(beyond, left)
            if chosen and beyond[k] < self._chance:
                break
            same = left & (self.pvalues <= self.pvalues[k]) & (np.sign(self.z) == np.sign(self.z[k]))
            same &= (candidates.directions == candidates.directions[k]) & (self._overlap(k) >= _ALIKE)
            same &= beyond >= min(float(beyond[k]), self._chance)
            same[k] = True
            k = _first_largest(worth, same)
            chosen.append(k)
            told[candidates.related[candidates.directions[k]]] |= candidates[k].cases.mask
            rest, new = self._untold(told)
            beyond = np.minimum(np.sign(self.z) * rest, np.abs(self.z)) - usual
            left &= new >= _ALIKE
            left[k] = False
        return chosen

    def _overlap(self, k: int) -> NDArray:
        """Correlations of all candidates with one in its direction; zero for other directions."""
        candidates = self._candidates
        mask = candidates[k].cases.mask
        own = float(np.concatenate(self._scales)[k])
        direction = candidates.directions[k]
        parts = [
            _ratio(candidates.variances(block, mask)[block.kept], scale) / own
            if block.direction is candidates.listed[direction]
            else np.zeros(len(scale))
            for block, scale in zip(candidates.blocks, self._scales, strict=True)
        ]
        return np.concatenate(parts)

    def _untold(self, told: NDArray) -> tuple[NDArray, NDArray]:
        """Standardised sums over cases that have not been told, and the share of the variance they have."""
        candidates = self._candidates
        sums: list[NDArray] = []
        shares: list[NDArray] = []
        for block, scale in zip(candidates.blocks, self._scales, strict=True):
            others = ~told[candidates.number[id(block.direction)]]
            variance = candidates.variances(block, others)[block.kept]
            sums.append(_ratio(candidates.observed(block, others), np.sqrt(variance)))
            shares.append(_ratio(variance, scale**2))
        return np.concatenate(sums), np.concatenate(shares)


def _first_largest(values: NDArray, among: NDArray) -> int:
    """The first of those that rounding may tell apart."""
    some = np.where(among, values, -np.inf)
    return int(np.argmax(some >= some.max() - 1e-9))


def _ratio(sums: NDArray, scale: NDArray) -> NDArray:
    """Sums in units of their spread; zero where there is none."""
    known = scale > 0
    return sums * np.where(known, 1.0 / np.where(known, scale, 1.0), 0.0)


def _adjusted(observed: NDArray, largest: NDArray) -> NDArray:
    """Share of sets ``(R + 1,)`` whose largest value is at least as large as each of the observed.

    All sets are exchangeable under calibration, and so are their largest values: the probability that
    any p-value is at most a is at most a. If only the targets of some cases follow their predictions,
    this holds for the groups that consist of such cases: control is strong (Westfall, Young, 1993).
    """
    width = tie_width(largest)
    ordered = np.sort(largest)
    below = np.searchsorted(ordered, cast("NDArray", observed - width), side="left")
    return (len(ordered) - below) / len(ordered)


@dataclass(frozen=True)
class MaxTest:
    """Sums over exchangeable sets of targets, the observed set first, in units of their spread.

    Attributes
    ----------
    scale
        Root mean square of each sum over all sets, ``(M,)``.
    z
        Standardised sums, ``(R + 1, M)``; zero where there is no spread.
    largest
        Largest absolute value of each set, ``(R + 1,)``.
    """

    scale: NDArray
    z: NDArray
    largest: NDArray

    @classmethod
    def of(cls, sums: NDArray, precision: NDArray | float = 0.0) -> MaxTest:
        """Standardise; sums whose spread is within `precision` are rounding."""
        check_numbers(sums)
        scale = np.sqrt(np.mean(sums**2, axis=0))
        scale = np.where(scale > precision, scale, 0.0)
        z = _ratio(sums, scale)
        return cls(scale, z, np.abs(z).max(axis=1, initial=0.0))

    @property
    def pvalues(self) -> NDArray:
        """Adjusted p-values ``(M,)`` of the observed set: the share of sets whose largest is as large."""
        return _adjusted(np.abs(self.z[0]), self.largest)

    def half_width(self, alpha: float) -> NDArray:
        """Half width ``(M,)`` of a band that any of the sums leaves with probability at most `alpha`."""
        count = len(self.largest)
        # The smallest value that at most floor(alpha (R + 1)) of all sets exceed.
        position = count - 1 - int(np.floor(alpha * count + 1e-9))
        return self.scale * np.sort(self.largest)[max(position, 0)]
