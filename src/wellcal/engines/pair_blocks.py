"""Pieces of the set of pairs that an engine evaluates at once, and what each adds to the sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np

from wellcal._arrays.chunks import Chunk, Span, pairs_above
from wellcal._arrays.namespaces import Array, NDArray, asarray, device_of, is_numpy, namespace
from wellcal._arrays.rows import Rows, map_rows, once_each
from wellcal.engines.reductions import Place
from wellcal.problem.problem import Problem

PAIRS = "pairs of cases"
"""What progress is told of."""


def _pairs_between(rows: Span, columns: Span) -> int:
    """Pairs i < j of a rectangle."""
    before = max(0, min(rows.stop, columns.start) - rows.start)  # cases that all columns come after
    first, last = max(rows.start, columns.start), min(rows.stop, columns.stop)
    inside = max(0, last - first)  # of the others, each has one column less than the one before
    width = columns.stop - columns.start
    return before * width + inside * (columns.stop - 1 - first) - inside * (inside - 1) // 2


@dataclass(frozen=True, slots=True)
class Piece:
    """Pairs i < j of members `rows` and `columns` of some consecutive blocks of `size` cases.

    Sums are ``(number of blocks, size)``. A tile of all pairs is a piece of one block.
    """

    blocks: Span
    size: int
    rows: Span
    columns: Span

    @property
    def is_tile(self) -> bool:
        """True if there is one block, whose values are a matrix."""
        return self.blocks.stop - self.blocks.start == 1

    @property
    def cases(self) -> tuple[Chunk, ...]:
        """The cases that `value` reads: those of either side of a tile, or all cases of the blocks."""
        first = self.blocks.start * self.size
        if not self.is_tile:
            return (slice(first, self.blocks.stop * self.size),)
        return tuple(slice(first + side.start, first + side.stop) for side in (self.rows, self.columns))

    def value(self, problem: Problem, *rows: Rows) -> Array:
        """Return h of rows of `cases`, ``(..., rows, columns)``: zero where not i < j."""
        if not self.is_tile:
            rows = tuple(self._members(rows[0], side) for side in (self.rows, self.columns))
        h = problem.h(*rows)
        if self.rows.stop <= self.columns.start:
            return h
        xp = problem.xp
        above = pairs_above(self.rows, self.columns)
        if is_numpy(xp):
            return np.where(above, h, 0.0)
        return xp.where(asarray(above, xp=xp, device=device_of(h)), h, xp.zeros_like(h))

    def _members(self, rows: Rows, side: Span) -> Rows:
        def pick(value: Array) -> Array:
            blocks = namespace(value).reshape(value, (-1, self.size, *value.shape[1:]))
            return blocks[:, side.index, ...]

        return map_rows(once_each(pick), rows)

    @property
    def pairs(self) -> int:
        """Number of pairs i < j."""
        return (self.blocks.stop - self.blocks.start) * _pairs_between(self.rows, self.columns)

    @property
    def places(self) -> tuple[Place, Place]:
        """Places of the cases of either side among row sums."""
        return (self.blocks.index, self.rows.index), (self.blocks.index, self.columns.index)

    def reduce(self, h: Array) -> tuple[Array, Array]:
        """Return sums of h over partners, for the cases of either side."""
        if isinstance(h, np.ndarray):
            # Sums in float32 would have a bias of their own where all pairs are alike.
            values = cast("NDArray", h).astype(np.float64, copy=False)
            return values @ _ones(values.shape[-1]), _ones(values.shape[-2]) @ values
        xp = namespace(h)
        return xp.sum(h, axis=-1), xp.sum(h, axis=-2)


@lru_cache(maxsize=16)
def _ones(count: int) -> NDArray:
    ones = np.ones(count)
    ones.flags.writeable = False
    return ones
