"""Kernel sums of points in many dimensions without the square, for kernels as smooth as a Gaussian.

The matrix of such a kernel between points that lie within a few length scales has a low rank: a Cholesky
decomposition with pivots finds points that span all others (Harbrecht, Peters, Schneider, 2012). With
features ``F_i = L^-1 k(Z, x_i)`` of the pivots Z a kernel value is a product of features up to the distances
of both points from the span, ``|k_ij - <F_i, F_j>| <= sqrt(e_i e_j)`` with ``e_i = 1 - |F_i|^2``, and a sum
over all pairs is two matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from wellcal._arrays.chunks import Chunk, budget, in_chunks
from wellcal._arrays.namespaces import NDArray

ROUNDING = 1e-13
"""Squared distance from the span at which a point is in it."""

KEPT = 8_000_000
"""Entries of features that are kept for a second look: 64 MB."""

_CANDIDATES = 2048  # points among which pivots are looked for, at first
_OUTERMOST = 256  # of them, those that are furthest away from the mean
_LOOKED_AT = 64  # pivots after which it is asked whether there will be enough
_ADDED = 256  # points off the span that become candidates, in each round
_ROUNDS = 4
_IN_PLACE = 60.0  # passes over an array that take as long as the products of a tile with so many terms
_IN_FLOAT64, _ROUNDED = 0.5, 0.25  # three quarters of the time of a tile's term, in those of a span
_SLOW = 4.0  # products of a matrix with a vector are so much slower than those of matrices


class Spread(NamedTuple):
    """Points ``(n, d)``, the rate of ``exp(-rate |x - x'|^2)``, phi ``(n, M)`` at them, and a factor."""

    points: NDArray
    rate: float
    phi: NDArray
    factor: float = 1.0

    def most_pivots(self, *, rounded: bool = False) -> int:
        """So many that sums through the span take three quarters of the time of tiles, `rounded` or not."""
        n, d = self.points.shape
        size = self.phi.shape[1]
        tiles = (_ROUNDED if rounded else _IN_FLOAT64) * 0.5 * n**2 * (d + size + _IN_PLACE)
        candidates = min(n, _CANDIDATES)
        # n (R^2 / 2 + R (d + 2 M)) + c R^2 / 2 for R pivots, as a square of R.
        square = 0.5 * (n + _SLOW * candidates)
        linear = n * (d + 2.0 * size)
        return int((math.sqrt(linear**2 + 4.0 * square * tiles) - linear) / (2.0 * square))


class Span:
    """Pivots for the points of a kernel sum, as many as are asked for.

    Attributes
    ----------
    spread
        The points.
    size
        Number of pivots.
    """

    def __init__(self, spread: Spread) -> None:
        self.spread = spread
        self.size = 0
        points = spread.points
        # Distances do not depend on the origin; exponents are exact where it is near.
        self._centre: NDArray = np.median(points[_spread_over(len(points), _CANDIDATES)], axis=0)
        self._candidates = self._moved(_candidates(points))
        self._columns = np.empty((_LOOKED_AT, len(self._candidates)))
        self._left: NDArray = np.ones(len(self._candidates))
        self._chosen: list[int] = []
        self._exponents = _Exponents.of(self._candidates, spread.rate)
        self._kept: list[tuple[Chunk, NDArray]] = []
        self._lower: NDArray | None = None

    @property
    def complete(self) -> bool:
        """Whether all candidates are in the span."""
        return float(self._left.max()) <= ROUNDING

    @property
    def left(self) -> float:
        """Mean squared distance of candidates from the span."""
        return float(self._left.mean())

    def grow(self, most: int) -> None:
        """Add pivots until there are so many, or all candidates are in the span."""
        while self.size < most:
            pivot = int(np.argmax(self._left))
            if self._left[pivot] <= ROUNDING:
                return
            k = self.size
            if k == len(self._columns):
                self._columns = np.concatenate([self._columns, np.empty_like(self._columns)])
            row = self._exponents.kernel(self._exponents.right[pivot])
            row -= self._columns[:k, pivot] @ self._columns[:k]
            row /= math.sqrt(self._left[pivot])
            self._columns[k] = row
            self._left = np.maximum(self._left - row * row, 0.0)
            self._left[pivot] = 0.0
            self._chosen.append(pivot)
            self._kept, self._lower = [], None
            self.size = k + 1

    def reaches_all(self, most: int) -> bool:
        """Grow until the span holds all points, if that is likely to take no more than `most` pivots.

        Distances from the span fall by a factor with each pivot, and by less and less in many dimensions: if
        they fell on as they did last, so many would be needed at least.
        """
        before = 0.0
        while not self.complete:
            self.grow(self.size + _LOOKED_AT)
            left = math.log(max(float(self._left.max()), ROUNDING))
            fall = max(before - left, 1e-3) / _LOOKED_AT
            if self.size + (left - math.log(ROUNDING)) / fall > most:
                return False
            before = left
        for _ in range(_ROUNDS):
            off = self._off()
            if not len(off):
                return True
            self._add(off)
            self.grow(most)
            if not self.complete:
                return False
        return False

    def features(self) -> Iterator[tuple[Chunk, NDArray]]:
        """Chunks of cases, and their features ``(n', R)``; those that are not many are kept."""
        if self._kept:
            yield from self._kept
            return
        n = len(self.spread.points)
        kept: list[tuple[Chunk, NDArray]] = []
        for cases in self._chunks():
            found = cases, self._features_of(self._moved(self.spread.points[cases]))
            if n * self.size <= KEPT:
                kept.append(found)
            yield found
        self._kept = kept

    def _chunks(self) -> Iterator[Chunk]:
        # Solving for few cases at a time would take longer than for as many as there are pivots.
        within = max(2 * budget.cache, self.size**2)
        return in_chunks(len(self.spread.points), max(1, self.size), within=within)

    def _kernel(self, points: NDArray) -> NDArray:
        """Of points with all pivots."""
        return _Exponents.of(points, self.spread.rate).kernel(self._exponents.right[self._chosen])

    def _features_of(self, points: NDArray) -> NDArray:
        return self._solved(self._kernel(points).T, overwrite_b=True).T

    def _solved(self, values: NDArray, **options: Any) -> NDArray:
        """``L^-1`` times values."""
        if self._lower is None:
            self._lower = np.tril(self._columns[: self.size, self._chosen].T)
        solve: Any = solve_triangular
        return np.asarray(solve(self._lower, values, lower=True, check_finite=False, **options))

    def beyond(self) -> NDArray:
        """Squared distances of all points from the span, times their sums of squares: what errors go by."""
        phi, out = self.spread.phi, np.empty(len(self.spread.phi))
        for cases, features in self.features():
            out[cases] = _left_of(features) * np.einsum("nm,nm->n", phi[cases], phi[cases])
        return abs(self.spread.factor) * out

    def row_sums(self) -> NDArray:
        """Sums of ``k(x_i, x_j) <phi_i, phi_j>``, times the factor, over all other cases."""
        phi = self.spread.phi
        total, rows = np.zeros((self.size, phi.shape[1])), np.empty(len(phi))
        for cases, features in self.features():
            own = phi[cases]
            total += features.T @ own
            rows[cases] = np.einsum("nm,nm->n", own, own) * np.einsum("nr,nr->n", features, features)
        for cases, sums in self._with(total):
            rows[cases] = np.einsum("nm,nm->n", phi[cases], sums) - rows[cases]
        return self.spread.factor * rows

    def _with(self, total: NDArray) -> Iterator[tuple[Chunk, NDArray]]:
        """Chunks of cases, and the products of their features with a matrix ``(R, M)``."""
        if self._kept or self.complete:
            yield from ((cases, features @ total) for cases, features in self.features())
            return
        # Features that are not kept are not made again: where the span is no more than near, solving for the
        # matrix is as exact, and takes no time for each case.
        solved = self._solved(total, trans="T")
        for cases in self._chunks():
            yield cases, self._kernel(self._moved(self.spread.points[cases])) @ solved

    def _moved(self, points: NDArray) -> NDArray:
        return points - self._centre

    def _off(self) -> NDArray:
        """The cases that are furthest away from the span, if they are not in it."""
        left = np.empty(len(self.spread.points))
        for cases, features in self.features():
            left[cases] = _left_of(features)
        worst = np.argsort(-left, kind="stable")[:_ADDED]
        return np.sort(worst[left[worst] > 2.0 * ROUNDING])

    def _add(self, cases: NDArray) -> None:
        """Make cases candidates."""
        added = self._moved(self.spread.points[cases])
        features = self._features_of(added)
        self._columns = np.concatenate([self._columns[: self.size], features.T], axis=1)
        self._left = np.concatenate([self._left, _left_of(features)])
        self._candidates = np.concatenate([self._candidates, added])
        self._exponents = _Exponents.of(self._candidates, self.spread.rate)
        self._kept = []


class _Exponents(NamedTuple):
    """Points with two coordinates more, so that the exponents between them are one product of matrices."""

    left: NDArray
    right: NDArray

    @classmethod
    def of(cls, points: NDArray, rate: float) -> _Exponents:
        squared = -rate * np.einsum("nd,nd->n", points, points)[:, None]
        one = np.ones_like(squared)
        return cls(
            np.concatenate([2.0 * rate * points, squared, one], axis=1),
            np.concatenate([points, one, squared], axis=1),
        )

    def kernel(self, right: NDArray) -> NDArray:
        """Of all points with others, whose `right` this is."""
        out = self.left @ right.T
        with np.errstate(under="ignore"):
            return np.exp(out, out=out)


def _left_of(features: NDArray) -> NDArray:
    """Squared distances from the span."""
    return np.maximum(1.0 - np.einsum("nr,nr->n", features, features), 0.0)


def _spread_over(n: int, count: int) -> NDArray:
    return np.unique(np.linspace(0, n - 1, min(n, count)).astype(int))


def _candidates(points: NDArray) -> NDArray:
    """Some of the points: those spread over the batch, and the outermost."""
    n = len(points)
    away = points - np.median(points[_spread_over(n, _CANDIDATES)], axis=0)
    squared = np.einsum("nd,nd->n", away, away)
    count = min(n, _OUTERMOST)
    furthest = np.argpartition(-squared, count - 1)[:count]
    return points[np.unique(np.concatenate([furthest, _spread_over(n, _CANDIDATES - count)]))]
