"""Sums at locations that are few predictions, each with many targets: fewer kernel values, fewer weights.

Locations with the same prediction have the same weights, and Gaussian functions about many targets that lie
close to each other are sums of those about a few of them (an interpolative decomposition; Cheng, Gimbutas,
Martinsson, Rokhlin, 2005). So a set of targets takes a kernel value for each of the few, and one small matrix
product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal.kernels.base import Kernel
from wellcal.kernels.targets import Gaussian

FEWEST = 50_000
"""Cases from which it is looked for: for fewer, sums are quick."""

_PER_SCALE, _MARGIN = 10.0, 8.5  # points in a length scale at which functions are compared, and how far out
_MOST_POINTS = 20_000
_DROPPED = 3e-15  # of the largest pivot
_ERROR = 1e-13  # of a kernel value
_LARGEST = 100.0  # sum of the coefficients of a function, without their signs: rounding grows by it
_WORTH = 0.7  # of the time
_PER_VALUE = 20.0  # multiplications in the time of a kernel value


@dataclass(frozen=True)
class RepeatedLocations:
    """Weighted sums of a Gaussian kernel between targets and locations.

    Attributes
    ----------
    lengthscale
        Of the kernel.
    at
        Targets ``(M,)`` of some locations.
    coefficients
        ``(M, J)``: the function of each location as a sum of those of some.
    weights
        ``(D, n)``, those of different predictions.
    which
        Which of these a location has, ``(J,)``.
    """

    lengthscale: float
    at: NDArray
    coefficients: NDArray
    weights: NDArray
    which: NDArray

    @classmethod
    def of(cls, kernel: Kernel, points: NDArray, weights: NDArray) -> RepeatedLocations | None:
        """For locations with targets ``(J,)`` and weights ``(n, J)``; None where nothing is gained.

        Examples
        --------
        >>> points, weights = np.linspace(-1.0, 1.0, 60), np.ones((3, 60))
        >>> found = RepeatedLocations.of(Gaussian(), points, weights)
        >>> found.weights.shape, len(found.at) < 30
        ((1, 3), True)
        >>> y = np.array([[0.3, 0.5, -2.0]])
        >>> direct = np.exp(-0.5 * (y[:, :, None] - points) ** 2).sum(axis=1)
        >>> bool(np.abs(found.sums(y) - direct).max() < 1e-12)
        True
        """
        if type(kernel) is not Gaussian or not isinstance(kernel.lengthscale, float):
            return None
        lengthscale = kernel.lengthscale
        which, first = _alike(weights)
        # Few columns to multiply with, or nothing is gained.
        if (1.0 + len(first) / _PER_VALUE) > _WORTH * len(points):
            return None
        found = _interpolated(lengthscale, points)
        if found is None:
            return None
        some, coefficients = found
        if len(some) * (1.0 + len(first) / _PER_VALUE) > _WORTH * len(points):
            return None
        own = np.ascontiguousarray(weights.T[first])
        return cls(lengthscale, points[some], coefficients, own, which)

    def sums(self, targets: NDArray) -> NDArray:
        """``sum_i w_ij k(y_i, t_j)`` for sets of targets ``(R, n)``: ``(R, J)``."""
        count = len(self.at)
        total = np.zeros((len(targets), count, len(self.weights)))
        # Exponents are products of three numbers on either side, exact about the middle of the locations.
        centre, rate = 0.5 * float(self.at.min() + self.at.max()), -0.5 / self.lengthscale**2
        away = self.at - centre
        left = np.stack([rate * away**2, -2.0 * rate * away, np.full(count, rate)], axis=1)
        with np.errstate(over="ignore", under="ignore"):
            for cases in in_chunks(targets.shape[1], count, within=budget.cache // 2):
                weights = self.weights[:, cases].T
                right, table = np.ones((3, len(weights))), np.empty((count, len(weights)))
                for r, own in enumerate(targets[:, cases]):
                    np.subtract(own, centre, out=right[1])
                    np.multiply(right[1], right[1], out=right[2])
                    np.matmul(left, right, out=table)
                    np.exp(table, out=table)
                    total[r] += table @ weights
        return np.einsum("mj,rmj->rj", self.coefficients, total[:, :, self.which])


def _alike(weights: NDArray) -> tuple[NDArray, NDArray]:
    """Which of the different columns each is, ``(J,)``, and where these are first."""
    which: NDArray = np.empty(weights.shape[1], dtype=np.intp)
    first: list[int] = []
    for j in range(weights.shape[1]):
        column = weights[:, j]
        known = (d for d, k in enumerate(first) if np.array_equal(weights[:, k], column))
        found = next(known, len(first))
        if found == len(first):
            first.append(j)
        which[j] = found
    return which, np.array(first)


def _interpolated(lengthscale: float, points: NDArray) -> tuple[NDArray, NDArray] | None:
    """Some of the points, and how Gaussian functions about all of them are sums of those about these."""
    low, high = (float(end) for end in (points.min(), points.max()))
    margin = _MARGIN * lengthscale
    size = _PER_SCALE * ((high - low) / lengthscale + 2.0 * _MARGIN)
    if not size <= _MOST_POINTS:
        return None
    grid = np.linspace(low - margin, high + margin, int(size) + 1)
    table = np.exp(-0.5 * ((grid[:, None] - points) / lengthscale) ** 2)
    decomposed: Any = qr(table, mode="r", pivoting=True)
    upper, order = (np.asarray(part) for part in decomposed)
    pivots = np.abs(np.diagonal(upper))
    rank = int(np.count_nonzero(pivots > _DROPPED * pivots[0]))
    rest = solve_triangular(upper[:rank, :rank], upper[:rank, rank:])
    coefficients = np.empty((rank, len(points)))
    coefficients[:, order[:rank]] = np.eye(rank)
    coefficients[:, order[rank:]] = rest
    some = order[:rank]
    exact = float(np.abs(table[:, some] @ coefficients - table).max()) <= _ERROR
    return (some, coefficients) if exact and np.abs(coefficients).sum(axis=0).max() <= _LARGEST else None
