"""Features of a Gaussian kernel between vectors, from a few points that stand for all others.

Predictions of vectors that lie within a few length scales of each other see a kernel matrix of low rank. A
Cholesky decomposition with pivots finds the points that span it, and stops where no other is further away
from their span than rounding (Harbrecht, Peters, Schneider, 2012): the features of x are ``L^-1 k(Z, x)``,
and products of features are kernel values up to the distances of both points from the span.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.linalg import lapack, solve_triangular
from scipy.spatial.distance import cdist

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray

_ROUNDING = 1e-13  # squared distance from the span at which it is complete
_NEGLIGIBLE = 1e-9  # weight of an atom, times its squared distance from the span, that changes no result
_MOST = 800  # points that span it, at most
_CANDIDATES = 2048
_LOOKED_AT = 16_384  # atoms, with the heaviest of each row and all targets, that must lie in the span
_ROUNDS = 4


@dataclass(frozen=True)
class Pivots:
    """Features spanned by pivots.

    Attributes
    ----------
    lengthscale
        Of the kernel.
    points
        Pivots ``(M, d)``.
    lower
        Cholesky factor of the kernel matrix between them.
    """

    lengthscale: float
    points: NDArray
    lower: NDArray

    @property
    def size(self) -> int:
        """Number of features."""
        return len(self.points)

    def of_points(self, values: NDArray, weights: NDArray | None) -> NDArray:
        """Return mean features ``(n, M)`` of atoms ``(n, S, d)`` with weights ``(n, S)``; None is uniform."""
        (n, count, d), m = values.shape, self.size
        mean = np.empty((n, m))
        for rows in in_chunks(n, count * m):
            table = _gaussian(values[rows].reshape(-1, d), self.points, self.lengthscale)
            table = table.reshape(-1, count, m)
            own = np.full((len(table), count), 1.0 / count) if weights is None else weights[rows]
            mean[rows] = (own[:, None, :] @ table)[:, 0]
        found: NDArray = np.asarray(solve_triangular(self.lower, mean.T, lower=True, check_finite=False)).T
        return found[first_equal(mean)]  # small pivots make much of the last digits of equal rows


def spanning_pivots(
    lengthscale: float, atoms: Sequence[tuple[NDArray, NDArray | None]], targets: Sequence[NDArray]
) -> Pivots | None:
    """Return features that reproduce atoms ``(n, S, d)`` and targets ``(m, d)``; None for too many."""
    points = np.concatenate([*(x.reshape(-1, x.shape[2]) for x, _ in atoms), *targets])
    sizes = [(np.ones(x.shape[:2]) if w is None else w).reshape(-1) for x, w in atoms]
    weights = np.abs(np.concatenate([*sizes, *(np.ones(len(x)) for x in targets)]))
    rng, count = np.random.default_rng(0), sum(map(len, sizes))
    there = np.flatnonzero(weights[:count] > _NEGLIGIBLE)
    ends = np.concatenate([points[there].argmin(axis=0), points[there].argmax(axis=0)])
    order = there[np.append(ends, rng.permutation(len(there)))]
    candidates = points[order[:_CANDIDATES]]
    starts = np.cumsum([0, *map(len, sizes)])
    heaviest = [
        start + np.arange(len(x)) * x.shape[1] + size.reshape(x.shape[:2]).argmax(axis=1)
        for start, size, (x, _) in zip(starts, sizes, atoms, strict=False)
    ]
    looked_at = np.concatenate([order[:_LOOKED_AT], *heaviest, np.arange(count, len(points))])
    for _ in range(_ROUNDS):
        gram = _gaussian(candidates, candidates, lengthscale)
        decompose: Any = cast("Any", lapack).dpstrf
        lower, pivots, rank, _ = decompose(gram, tol=_ROUNDING, lower=1)
        if rank > _MOST:
            return None
        chosen = candidates[pivots[:rank] - 1]
        found = Pivots(lengthscale, chosen, np.tril(lower[:rank, :rank]))
        features = found.of_points(points[looked_at][:, None, :], None)
        left = (1.0 - np.einsum("nm,nm->n", features, features)) * weights[looked_at]
        off = np.flatnonzero(left > np.where(looked_at < count, _NEGLIGIBLE, _ROUNDING * 10.0))
        if not len(off):
            return found
        worst = looked_at[off[np.argsort(-left[off])][: _CANDIDATES // 2]]
        candidates = np.concatenate([chosen, points[worst]])
    return None


def _gaussian(x: NDArray, y: NDArray, lengthscale: float) -> NDArray:
    squared = cdist(x, y, "sqeuclidean")
    squared *= -0.5 / lengthscale**2
    return np.exp(squared, out=squared)


def first_equal(rows: NDArray) -> NDArray:
    """For each row of a table ``(n, m)`` in float64, the place of the first that has the same bits.

    What a library computes of a row depends, in its last digits, on where the row stands in a block. Taking
    the result of the first for all that are equal keeps them equal.

    Examples
    --------
    >>> first_equal(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [2.0, 1.0]])).tolist()
    [0, 1, 0, 3]
    """
    rows = np.ascontiguousarray(rows)
    places = np.arange(len(rows))
    factors = np.random.default_rng(0).integers(2**64, size=rows.shape[1], dtype=np.uint64)
    _, first, which = np.unique(
        np.einsum("nm,m->n", rows.view(np.uint64), factors), return_index=True, return_inverse=True
    )
    if len(first) == len(rows):
        return places
    found = first[which]
    return np.where(np.all(rows[found] == rows, axis=1), found, places)
