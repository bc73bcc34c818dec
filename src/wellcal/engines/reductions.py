"""What engines accumulate over pieces: mergeable, in float64, in an order that threads cannot change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from wellcal._arrays.chunks import Chunk
from wellcal._arrays.equality import ByValue
from wellcal._arrays.namespaces import Array

Place: TypeAlias = "Chunk | tuple[Chunk, Chunk]"
"""Where some cases stand among row sums: consecutive ones, or the same members of consecutive blocks."""


@dataclass(frozen=True)
class Sums(ByValue):
    """Sums of h over the visited pairs i < j.

    Attributes
    ----------
    total
        Sum over visited pairs, a scalar in the problem's library that carries gradients.
    rows
        For each case the sum over all its visited partners, ``(n,)``, without gradients.

    Examples
    --------
    >>> import numpy as np
    >>> h = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    >>> sums = Sums(total=np.triu(h, 1).sum(), rows=h.sum(axis=1))
    >>> float(sums.total), sums.rows
    (6.0, array([3., 4., 5.]))
    """

    total: Array
    rows: Array


class RowAccumulator:
    """Row sums from pieces visited in any grouping: each unordered pair adds to both of its cases.

    Parameters
    ----------
    shape
        Shape of the row sums, in which all cases visited have a place: the number of cases, or blocks
        by cases of a block.
    rows
        Zeros of that shape to add to, in a library whose arrays can be written to; None takes NumPy's.

    Examples
    --------
    >>> sums = RowAccumulator(3)
    >>> sums.add(slice(0, 1), slice(1, 3), right=np.array([3.0]), down=np.array([1.0, 2.0]))
    >>> sums.result()
    Sums(total=3.0, rows=array([3., 1., 2.]))
    """

    def __init__(self, shape: int | tuple[int, ...], rows: Array | None = None) -> None:
        self.rows: Array = np.zeros(shape) if rows is None else rows
        self.total = 0.0
        self._compensation = 0.0

    def add(self, i: Place, j: Place, right: Array, down: Array) -> None:
        """Add sums over partners, each pair once: `right` to cases at `i`, `down` to cases at `j`."""
        self.add_rows(i, j, right, down)
        self._add_total(float(np.sum(right)))

    def add_rows(self, i: Place, j: Place, right: Array, down: Array) -> None:
        """The same without the total, where that is kept elsewhere."""
        self.rows[i] += right
        self.rows[j] += down

    def _add_total(self, value: float) -> None:
        # Neumaier's compensated sum: millions of tiles lose nothing.
        total = self.total + value
        if abs(self.total) >= abs(value):
            self._compensation += (self.total - total) + value
        else:
            self._compensation += (value - total) + self.total
        self.total = total

    def result(self) -> Sums:
        """The sums so far."""
        return Sums(self.total + self._compensation, self.rows)
