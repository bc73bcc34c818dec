"""What engines accumulate over tiles: mergeable, in float64, in an order that threads cannot change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._array import Array


@dataclass(frozen=True)
class Sums:
    """Sums of h over the visited pairs i < j.

    Attributes
    ----------
    total
        Sum over visited pairs, a scalar in the problem's library that carries gradients.
    rows
        For each case the sum over all its visited partners, ``(n,)``, without gradients.
    """

    total: Array
    rows: Array


class RowAccumulator:
    """Row sums from tiles visited in any grouping: each unordered pair adds to both of its cases."""

    def __init__(self, n: int) -> None:
        self.rows = np.zeros(n)
        self.total = 0.0
        self._compensation = 0.0

    def add(self, i: slice, j: slice, right: Any, down: Any) -> None:
        """Add a tile's sums over columns (for cases `i`) and over rows (for cases `j`)."""
        self.rows[i] += right
        self.rows[j] += down
        self._add_total(float(np.sum(right)))

    def _add_total(self, value: float) -> None:
        # Neumaier's compensated sum: millions of tiles lose nothing.
        total = self.total + value
        if abs(self.total) >= abs(value):
            self._compensation += (self.total - total) + value
        else:
            self._compensation += (value - total) + self.total
        self.total = total

    def merge(self, other: RowAccumulator) -> RowAccumulator:
        """Combine with an accumulator over other pairs of the same cases."""
        out = RowAccumulator(len(self.rows))
        out.rows = self.rows + other.rows
        out.total, out._compensation = self.total, self._compensation + other._compensation
        out._add_total(other.total)
        return out

    def result(self) -> Sums:
        """The sums so far."""
        return Sums(self.total + self._compensation, self.rows)
