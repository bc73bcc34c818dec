"""Sets of targets drawn from predictions: the same, however the cases are cut into parts.

The random numbers of a case belong to its place among all cases, not to what was drawn before it. Cases form
blocks of a fixed length, and targets of one block in one batch of sets come from a generator of their own:
a counter-based one (Philox; Salmon et al., 2011) whose counter begins at the numbers of batch and block. So a
part of the cases that begins with a block can be drawn anywhere, by itself, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.predictions import Predictions
from wellcal.problem.drawn_targets import draw_targets

BLOCK = 16_384
"""Cases that are drawn together: a part of the cases begins with a multiple of it."""

MOST_SETS = 100
"""Sets that are drawn at a time, at most."""

MOST_NUMBERS = 2_000_000
"""Numbers that are drawn at a time, of all cases and coordinates, unless one set has more."""


def sets_at_a_time(numbers: int) -> int:
    """Sets that are drawn together, where one has so many numbers."""
    return min(MOST_SETS, max(1, MOST_NUMBERS // max(numbers, 1)))


@dataclass(frozen=True)
class TargetStream:
    """Random targets that belong to the places of cases.

    Attributes
    ----------
    key
        Two numbers of 64 bits: what tells one stream from another.
    block
        Cases that are drawn together.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> y, pred = np.zeros(5), wc.Normal(np.arange(5.0), 1.0)
    >>> stream = TargetStream.of(np.random.default_rng(0), block=2)
    >>> (whole,) = stream.sets(pred, y, 3)
    >>> (part,) = stream.sets(pred[2:], y[2:], 3, start=2, total=5)
    >>> bool((whole[:, 2:] == part).all())
    True
    """

    key: tuple[int, int]
    block: int = field(default_factory=lambda: BLOCK)

    @classmethod
    def of(cls, rng: np.random.Generator, block: int | None = None) -> TargetStream:
        """The next stream of a generator."""
        first, second = rng.integers(2**64, size=2, dtype=np.uint64)
        return cls((int(first), int(second)), BLOCK if block is None else block)

    def sets(
        self,
        predictions: Predictions,
        like: NDArray,
        count: int,
        *,
        start: int = 0,
        total: int | None = None,
        first: int = 0,
    ) -> Iterator[NDArray]:
        """So many sets of targets, some at a time.

        Parameters
        ----------
        predictions, like
            Cases, or a part of them, and targets of the form and dtype that are wanted.
        count
            Number of sets.
        start, total
            The first case among all, a multiple of the length of blocks, and the number of all cases: for a
            part of them.
        first
            Sets that come before, and are left to others: a multiple of how many come at a time.

        Yields
        ------
        array
            Targets ``(r, n, ...)``; how many sets come at a time depends on the number of all cases.
        """
        n = len(predictions)
        if start % self.block:
            raise ValueError(f"start must be a multiple of {self.block:,}, found {start:,}")
        size = sets_at_a_time(max(1, like.size // max(n, 1)) * (n if total is None else total))
        if first % size:
            raise ValueError(f"first must be a multiple of {size}, found {first}")
        blocks = [(predictions, like)] if n <= self.block else list(self._blocks(predictions, like))
        for batch, before in enumerate(range(0, count, size), first // size):
            sets = min(size, count - before)
            drawn = [
                draw_targets(cases, self._generator(batch, start // self.block + k), sets, form)
                for k, (cases, form) in enumerate(blocks)
            ]
            yield drawn[0] if len(drawn) == 1 else np.concatenate(drawn, axis=1)

    def _blocks(self, predictions: Predictions, like: NDArray) -> Iterator[tuple[Predictions, NDArray]]:
        for first in range(0, len(predictions), self.block):
            cases = slice(first, first + self.block)
            yield predictions[cases], like[cases]

    def _generator(self, batch: int, block: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=self.key, counter=(0, 0, batch, block)))
