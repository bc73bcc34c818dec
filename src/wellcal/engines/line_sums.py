"""Sums over pairs of points on a line whose kernel decays exponentially: exact to rounding, by running sums.

On sorted points ``exp(-rate |x - x'|)`` is a product: what comes from the left is one running sum that decays
from point to point, and so is what comes from the right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.chunks import budget
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.progress import reporter
from wellcal.engines.kernel_sums import Finished, KernelSum

_CHUNK = 1 << 16  # points at a time
_WIDEST = 500.0  # of a chunk, in decay lengths: exp of more would overflow
MOST_RUNS = 20_000
"""Runs of points, taken one after another: points spread over more decay lengths are not for it."""


class Sorted(NamedTuple):
    """Points in ascending order and the features at them, with the positions that they had."""

    order: NDArray
    x: NDArray
    phi: Any = None


@dataclass(frozen=True)
class LineSum(KernelSum):
    """Exact sum over pairs of ``exp(-rate |x - x'|) <phi, phi'>``, for points ``(n, 1)`` in NumPy."""

    rate: float
    batch: int = 1 << 40  # all of them
    columns: int = 1 << 40

    def runs(self, points: NDArray) -> float:
        """Return how many runs the points need, at most."""
        return len(points) / _CHUNK + float(np.ptp(points)) * self.rate / _WIDEST + 2.0

    def encode(self, points: NDArray) -> Sorted:
        """Sort the points."""
        order = np.argsort(points[:, 0])
        return Sorted(order, points[order, 0])

    def chunk(self, encoded: Sorted, phi: NDArray) -> Sorted:
        """Return the points with their features."""
        return encoded._replace(phi=phi[encoded.order])

    def merge(self, first: Sorted, second: Sorted) -> Sorted:
        """Return all points in ascending order."""
        x, phi = (np.concatenate(pair) for pair in ((first.x, second.x), (first.phi, second.phi)))
        order = np.argsort(x, kind="stable")
        return Sorted(order, x[order], phi[order])

    def finish(self, state: Sorted) -> Finished:
        """Return sums at each point, of all points to the left and to the right of it."""
        left, back = self._from_the_left(state.x, state.phi, 0), slice(None, None, -1)
        right = self._from_the_left(-state.x[back], state.phi[back], len(left))[back]
        potential = left + right - state.phi
        products = np.einsum("nm,nm->n", state.phi, potential - state.phi)
        total = 0.5 * math.fsum(float(part.sum()) for part in np.array_split(products, 64))
        return Finished(total, total, (state.x, potential))

    def rows(self, encoded: Sorted, phi: NDArray, finished: Finished) -> NDArray:
        """Return sums over all other points."""
        x, potential = finished.potential
        at = slice(None) if x is encoded.x else np.searchsorted(x, encoded.x)
        out, own = np.empty(len(phi)), phi[encoded.order]
        out[encoded.order] = np.einsum("nm,nm->n", own, potential[at] - own)
        return out

    def _from_the_left(self, x: NDArray, phi: NDArray, done: int) -> NDArray:
        """Return the sum over ascending points up to each of them, itself included."""
        out, tell, most = np.empty_like(phi), reporter(), min(_CHUNK, budget.work // 4)
        carried, at, start = np.zeros(phi.shape[1]), float(x[0]), 0
        while start < len(x):
            away = (x[start : start + most] - x[start]) * self.rate
            away = away[: int(np.searchsorted(away, _WIDEST, side="right"))]
            stop = start + len(away)
            carried = carried * math.exp(-(float(x[start]) - at) * self.rate)
            grown = np.exp(away)[:, None]
            sums = np.cumsum(phi[start:stop] * grown, axis=0)
            np.divide(sums + carried, grown, out=out[start:stop])
            carried, at, start = out[stop - 1], float(x[stop - 1]), stop
            tell("points on a line", done + stop, 2 * len(x))
        return out
