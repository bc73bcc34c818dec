"""Features of a Gaussian kernel between vectors, from a few points that stand for all others.

Predictions of vectors that lie within a few length scales of each other see a kernel matrix of low rank. A
Cholesky decomposition with pivots finds the points that span it, and stops where no other is further away
from their span than rounding (Harbrecht, Peters, Schneider, 2012): the features of x are ``L^-1 k(Z, x)``,
and products of features are kernel values up to the distances of both points from the span.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.equality import first_equal
from wellcal._arrays.memo import Memo
from wellcal._arrays.namespaces import NDArray
from wellcal.expectations.nodes import Part, in_order
from wellcal.predictions import Predictions

_ROUNDING = 1e-13  # squared distance from the span at which it is complete
_MOST = 800  # points that span it, at most
_EARLY = 256  # after so many the mean squared distance must have fallen
_EARLY_SHARE = 0.05
_MOST_ADDED = 512  # targets that lie off the span


@dataclass(frozen=True)
class LowRank:
    """Features spanned by pivots.

    Attributes
    ----------
    lengthscale
        Of the kernel.
    pivots
        Points ``(M, d)``.
    lower
        Cholesky factor of the kernel matrix between them.
    """

    lengthscale: float
    pivots: NDArray
    lower: NDArray

    @property
    def size(self) -> int:
        """Number of features."""
        return len(self.pivots)

    def of_points(self, values: NDArray, weights: NDArray | None) -> NDArray:
        """Mean features ``(n, M)`` of atoms ``(n, S, d)`` with weights ``(n, S)``, uniform where None."""
        return _solved(self.lower, _mean_kernel(values, weights, self.pivots, self.lengthscale))

    def extended(self, points: NDArray) -> LowRank | None:
        """The same and more features, so that points ``(m, d)`` are reproduced too; None for too many."""
        features = self.of_points(points[:, None, :], None)
        off = np.flatnonzero(1.0 - np.sum(features * features, axis=1) > _ROUNDING)
        if not len(off):
            return self
        if len(off) > _MOST_ADDED:
            return None
        points, features = points[off], features[off]
        between = _gaussian(points, points, self.lengthscale) - features @ features.T
        chosen, columns = _pivoted(lambda k: between[k], np.diagonal(between).copy(), len(off))
        new = columns[:, chosen].T
        lower = np.block([[self.lower, np.zeros((self.size, len(chosen)))], [features[chosen], np.tril(new)]])
        return LowRank(self.lengthscale, np.concatenate([self.pivots, points[chosen]]), lower)

    def more_of_parts(self, parts: Iterable[Part], known: NDArray | None = None) -> NDArray:
        """Mean features ``(n, M)`` of atoms, of which the first ones may be `known` from fewer features."""
        found: list[tuple[NDArray | None, NDArray]] = []
        for rows, atoms in parts:
            values, weights = np.asarray(atoms.values), np.asarray(atoms.weights)
            if known is None:
                found.append((rows, self.of_points(values, weights)))
            else:
                old = known if rows is None else known[rows]
                found.append((rows, self.more_of_points(values, weights, old)))
        return in_order(found)

    def more_of_points(self, values: NDArray, weights: NDArray | None, known: NDArray) -> NDArray:
        """Mean features, of which the first ones are `known` from fewer features."""
        old = known.shape[1]
        if old == self.size:
            return known
        mean = _mean_kernel(values, weights, self.pivots[old:], self.lengthscale)
        from_known = (known @ self.lower[old:, :old].T)[first_equal(known)]
        rest = _solved(self.lower[old:, old:], mean - from_known)
        return np.concatenate([known, rest], axis=1)


def span(candidates: NDArray, lengthscale: float) -> LowRank | None:
    """Features that reproduce the kernel between candidates ``(m, d)``; None where they would be too many."""

    def row(k: int) -> NDArray:
        return _gaussian(candidates[k : k + 1], candidates, lengthscale)[0]

    chosen, columns = _pivoted(row, np.ones(len(candidates)), _MOST)
    if len(chosen) == 0:
        return None
    return LowRank(lengthscale, candidates[chosen], np.tril(columns[:, chosen].T))


def _pivoted(row: Callable[[int], NDArray], left: NDArray, most: int) -> tuple[list[int], NDArray]:
    """Pivots of a Cholesky decomposition and its columns ``(M, m)``; none where `most` are not enough.

    `row` gives rows of the matrix, `left` is its diagonal.
    """
    columns = np.zeros((min(most, len(left)), len(left)))
    chosen: list[int] = []
    for k in range(len(columns) + 1):
        pivot = int(np.argmax(left))
        if left[pivot] <= _ROUNDING:
            return chosen, columns[:k]
        if k == len(columns) or (k == _EARLY and left.mean() > _EARLY_SHARE):
            break
        columns[k] = (row(pivot) - columns[:k, pivot] @ columns[:k]) / np.sqrt(left[pivot])
        left = np.maximum(left - columns[k] ** 2, 0.0)
        left[pivot] = 0.0
        chosen.append(pivot)
    return [], columns[:0]


def _mean_kernel(values: NDArray, weights: NDArray | None, at: NDArray, lengthscale: float) -> NDArray:
    """Mean kernel values ``(n, M)`` between atoms ``(n, S, d)`` and points ``(M, d)``."""
    n, count, d = values.shape
    mean = np.empty((n, len(at)))
    for rows in in_chunks(n, count * len(at)):
        table = _gaussian(values[rows].reshape(-1, d), at, lengthscale).reshape(-1, count, len(at))
        mean[rows] = table.mean(axis=1) if weights is None else np.einsum("ns,nsm->nm", weights[rows], table)
    return mean


def _solved(lower: NDArray, values: NDArray) -> NDArray:
    """``L^-1 v`` for rows v, equal for rows that are: small pivots make much of their last digits."""
    found = np.asarray(solve_triangular(lower, values.T, lower=True, check_finite=False)).T
    return found[first_equal(values)]


def _gaussian(x: NDArray, y: NDArray, lengthscale: float) -> NDArray:
    squared = cdist(x, y, "sqeuclidean")
    squared *= -0.5 / lengthscale**2
    return np.exp(squared, out=squared)


# -- batches -------------------------------------------------------------------------------------


class Spanned(NamedTuple):
    """Features for a batch, and its mean features ``(n, M)``."""

    features: LowRank
    mean: NDArray


_spanned: Memo[Spanned | None] = Memo()

_NEGLIGIBLE = 1e-9  # weight of an atom, times its squared distance from the span, that changes no result
_ROUNDS = 3


def _spanning(features: LowRank | None, parts: Iterable[Part]) -> LowRank | None:
    """Features that reproduce the atoms of all rows, as well as those few that they were made from."""
    for _ in range(_ROUNDS):
        off = np.empty(0) if features is None else _off_span(features, parts)
        if features is None or not len(off):
            return features
        features = features.extended(off)
    return None


def _off_span(features: LowRank, parts: Iterable[Part]) -> NDArray:
    """Atoms ``(m, d)`` off the span: all such of rows whose heaviest or outermost atoms are off it."""

    def is_off(at: NDArray, weights: NDArray) -> NDArray:
        distance = 1.0 - np.sum(features.of_points(at[:, None, :], None) ** 2, axis=1)
        return weights * distance > _NEGLIGIBLE

    found: list[NDArray] = []
    for _, atoms in parts:
        values, weights = np.asarray(atoms.values), np.asarray(atoms.weights)
        real = (weights > _NEGLIGIBLE)[:, :, None]
        ends = [np.where(real, values, np.inf).argmin(axis=1), np.where(real, values, -np.inf).argmax(axis=1)]
        index = np.concatenate([*ends, weights.argmax(axis=1)[:, None]], axis=1)
        at = np.take_along_axis(values, index[:, :, None], axis=1).reshape(-1, values.shape[2])
        off = is_off(at, np.take_along_axis(weights, index, axis=1).reshape(-1)).reshape(index.shape)
        rows = np.flatnonzero(off.any(axis=1))[:_MOST_ROWS]
        some, mass = values[rows].reshape(-1, values.shape[2]), weights[rows].reshape(-1)
        found.append(some[is_off(some, mass)])
    off = np.concatenate(found)
    return off[np.argsort(np.random.default_rng(0).random(len(off)))[:_MOST_ADDED]]


_MOST_ROWS = 64  # looked at as a whole


def spanned(
    family: Predictions,
    key: Any,
    candidates: NDArray,
    lengthscale: float,
    atoms: Callable[[], Iterable[Part]],
) -> Spanned | None:
    """Features for a batch in NumPy, which remembers them; None where they would be too many.

    Parameters
    ----------
    family, key
        The batch, and what features depend on beside it and the length scale.
    candidates
        Points ``(m, d)`` that lie where its mass does.
    lengthscale
        Of the Gaussian kernel.
    atoms
        Gives its atoms, which are made only if there are features.
    """

    def find() -> Spanned | None:
        features = span(candidates, lengthscale)
        if features is not None:
            features = _spanning(features, atoms())
        return None if features is None else Spanned(features, features.more_of_parts(atoms()))

    return _spanned.get(family, (key, lengthscale), find)
