"""Pieces of the set of pairs that an engine evaluates at once, and what each adds to the sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, cast

import numpy as np

from wellcal._arrays.chunks import Chunk, Span, pairs_above
from wellcal._arrays.namespaces import Array, NDArray, asarray, device_of, is_numpy, namespace
from wellcal._arrays.rows import Rows, map_rows, once_each
from wellcal.engines.reductions import Place
from wellcal.problem.problem import Problem

PAIRS = "pairs of cases"
"""What progress is told of."""


class Piece(Protocol):
    """Some pairs of cases."""

    @property
    def cases(self) -> tuple[Chunk, ...]:
        """The cases that `value` reads: it takes their rows, one batch for each slice."""
        ...

    def value(self, problem: Problem, *rows: Rows) -> Array:
        """h for the pairs of the piece, zero for others that are evaluated along with them."""
        ...

    @property
    def places(self) -> tuple[Place, Place]:
        """Where the cases of either side stand among the row sums."""
        ...

    def reduce(self, h: Array) -> tuple[Array, Array]:
        """Sums of h over partners, for the cases of either side."""
        ...

    @property
    def pairs(self) -> int:
        """How many there are."""
        ...


def _pairs_between(rows: Span, columns: Span) -> int:
    """Pairs i < j of a rectangle."""
    before = max(0, min(rows.stop, columns.start) - rows.start)  # cases that all columns come after
    first, last = max(rows.start, columns.start), min(rows.stop, columns.stop)
    inside = max(0, last - first)  # of the others, each has one column less than the one before
    width = columns.stop - columns.start
    return before * width + inside * (columns.stop - 1 - first) - inside * (inside - 1) // 2


@dataclass(frozen=True, slots=True)
class Tile:
    """The pairs i < j of a rectangle; sums are ``(n,)``."""

    rows: Span
    columns: Span

    @property
    def cases(self) -> tuple[Chunk, Chunk]:
        """Rows and columns."""
        return self.rows.index, self.columns.index

    def value(self, problem: Problem, *rows: Rows) -> Array:
        """h on the tile, zero where not i < j."""
        h = problem.tile(*rows)
        if self.rows.stop <= self.columns.start:
            return h
        xp = problem.xp
        above = pairs_above(self.rows, self.columns)
        if is_numpy(xp):
            return np.where(above, h, 0.0)
        return xp.where(asarray(above, xp=xp, device=device_of(h)), h, xp.zeros_like(h))

    @property
    def pairs(self) -> int:
        """Those i < j."""
        return _pairs_between(self.rows, self.columns)

    @property
    def places(self) -> tuple[Place, Place]:
        """Rows and columns."""
        return self.cases

    def reduce(self, h: Array) -> tuple[Array, Array]:
        """Sums along the rows and along the columns."""
        if isinstance(h, np.ndarray):
            # Sums in float32 would have a bias of their own where all pairs are alike.
            values = cast("NDArray", h).astype(np.float64, copy=False)
            return values @ _ones(values.shape[1]), _ones(values.shape[0]) @ values
        xp = namespace(h)
        return xp.sum(h, axis=1), xp.sum(h, axis=0)


@lru_cache(maxsize=16)
def _ones(count: int) -> NDArray:
    ones = np.ones(count)
    ones.flags.writeable = False
    return ones


@dataclass(frozen=True, slots=True)
class Batch:
    """The pairs of members `rows` and `columns` of some blocks, those i < j; sums are as those of `Lag`.

    All blocks are evaluated at once: ``(blocks, rows, columns)``. In NumPy only.
    """

    blocks: Span
    size: int
    rows: Span
    columns: Span

    @property
    def cases(self) -> tuple[Chunk, ...]:
        """All cases of the blocks."""
        return (slice(self.blocks.start * self.size, self.blocks.stop * self.size),)

    def value(self, problem: Problem, *rows: Rows) -> Array:
        """h, zero where not i < j."""

        def members(some: Span) -> Rows:
            def pick(value: Array) -> Array:
                blocks = value.reshape(len(value) // self.size, self.size, *value.shape[1:])
                return blocks if some.stop - some.start == self.size else blocks[:, some.index]

            return map_rows(once_each(pick), rows[0])

        first = members(self.rows)
        if self.rows.stop <= self.columns.start:
            return problem.batched(first, members(self.columns))
        h = problem.batched(first, first if self.rows == self.columns else members(self.columns))
        return np.where(pairs_above(self.rows, self.columns), h, 0.0)

    @property
    def pairs(self) -> int:
        """Those of all blocks."""
        return (self.blocks.stop - self.blocks.start) * _pairs_between(self.rows, self.columns)

    @property
    def places(self) -> tuple[Place, Place]:
        """Members of each block."""
        return (self.blocks.index, self.rows.index), (self.blocks.index, self.columns.index)

    def reduce(self, h: Array) -> tuple[Array, Array]:
        """Sums along the rows and along the columns of each block."""
        return h @ _ones(h.shape[2]), _ones(h.shape[1]) @ h


@dataclass(frozen=True, slots=True)
class Lag:
    """The pairs of some blocks that are `lag` cases apart; sums are ``(number of blocks, size)``.

    Listed in this way, the two sides of all pairs are plain slices, which are read several times
    faster than cases gathered by their numbers.
    """

    blocks: Span
    size: int
    lag: int

    @property
    def cases(self) -> tuple[Chunk, ...]:
        """All cases of the blocks."""
        return (slice(self.blocks.start * self.size, self.blocks.stop * self.size),)

    def value(self, problem: Problem, *rows: Rows) -> Array:
        """h, ``(blocks, size - lag)``."""
        members = self.size - self.lag
        h = problem.paired(self._members(rows[0], 0), self._members(rows[0], self.lag))
        return problem.xp.reshape(h, (-1, members))

    def _members(self, rows: Rows, first: int) -> Rows:
        """In each block the cases from `first` on, as many as have a partner."""

        def pick(value: Array) -> Array:
            if self.size - self.lag == 1:
                return value[first :: self.size, ...]  # one of each block, as they stand
            xp = namespace(value)
            blocks = xp.reshape(value, (-1, self.size, *value.shape[1:]))
            return xp.reshape(blocks[:, first : first + self.size - self.lag, ...], (-1, *value.shape[1:]))

        return map_rows(once_each(pick), rows)

    @property
    def pairs(self) -> int:
        """Those of all blocks."""
        return (self.blocks.stop - self.blocks.start) * (self.size - self.lag)

    @property
    def places(self) -> tuple[Place, Place]:
        """All cases of each block that have a partner behind them, or before them."""
        return (self.blocks.index, slice(0, self.size - self.lag)), (
            self.blocks.index,
            slice(self.lag, self.size),
        )

    def reduce(self, h: Array) -> tuple[Array, Array]:
        """Each case has one partner."""
        return h, h
