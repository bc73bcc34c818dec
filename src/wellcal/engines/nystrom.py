"""Sums over pairs of ``exp(-(r / l)^2) <phi, phi'>`` by the Nyström method, for points in many dimensions.

The matrix of so smooth a kernel has a low rank: a Cholesky decomposition with pivots finds points that span
nearly all others (Harbrecht, Peters, Schneider, 2012). With ``w(x) = L^-1 k(Z, x)`` of the pivots Z,
``khat(x, x') = <w(x), w(x')>``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal.engines.kernel_sums import DecayKernel, Finished, KernelSum, State

ROUNDING = 1e-13
"""Squared distance from the span of the pivots at which a point is in it."""

_CANDIDATES = 1280  # points among which pivots are looked for
_AT_FIRST, _FURTHEST = 64, 256  # pivots from which some points are furthest away: they are candidates, too
_LOOKED_AT = 4096  # points that stand for all others in the mean of khat(x, x)
_FEWER = 0.75  # of the pivots: the difference of their sum is about the error of all of them


class Encoded(NamedTuple):
    """Kernel values ``(n, R)``, and what each pivot adds to khat(x, x) of some cases, ``(R, k)``."""

    values: NDArray
    some: slice
    squares: NDArray

    def khat(self, phi: NDArray, count: int | None = None) -> float:
        """Return the mean of khat(x, x), weighted by |phi|^2, by so many pivots."""
        weights = _norms(phi[self.some])
        return float(self.squares[:count].sum(axis=0) @ weights) / max(float(weights.sum()), 1e-300)


@dataclass(frozen=True)
class Nystrom(KernelSum):
    """Approximate sum over pairs by pivots: a `KernelSum` in NumPy.

    Attributes
    ----------
    kernel
        Kernel with power 2.
    centre, pivots, lower
        A point near all others, pivots about it ``(R, d)``, and the Cholesky factor of their kernel matrix.
    left
        Mean squared distance of candidates from the span of the first pivots, ``(R,)``.
    stride
        Every so many-th case is looked at for the mean of khat(x, x).
    """

    kernel: DecayKernel
    centre: NDArray
    pivots: NDArray
    lower: NDArray
    left: NDArray
    stride: int
    batch: int
    columns: int = 1 << 30  # all of them

    @classmethod
    def of(cls, points: NDArray, kernel: DecayKernel) -> Nystrom:
        """Choose pivots, as many as hold some candidates to rounding."""
        n = len(points)
        spread = np.linspace(0, n - 1, min(n, _CANDIDATES)).astype(int)
        centre = np.median(points[spread], axis=0)  # exponents are exact where the origin is near
        few = cls._of(points[spread[::4]] - centre, kernel, centre, n).first(_AT_FIRST)
        left = np.empty(n)
        for some in in_chunks(n, within=few.batch):
            values = _values(kernel, few.pivots, points[some] - centre)
            left[some] = 1.0 - np.einsum("rn,rn->n", *(2 * (few._solved(values),)))
        furthest = np.argsort(-left)[:_FURTHEST]
        return cls._of(points[np.unique(np.concatenate([spread, furthest]))] - centre, kernel, centre, n)

    @classmethod
    def _of(cls, candidates: NDArray, kernel: DecayKernel, centre: NDArray, n: int) -> Nystrom:
        factor, order, rank, _ = lapack.dpstrf(_values(kernel, candidates, candidates), tol=ROUNDING, lower=1)
        factor = np.tril(factor)[:, :rank]
        left = 1.0 - np.cumsum(np.mean(factor**2, axis=0))
        pivots, stride = candidates[order[:rank] - 1], max(1, n // _LOOKED_AT)
        return cls(kernel, centre, pivots, factor[:rank], left, stride, batch=n).first(rank)

    def first(self, count: int) -> Nystrom:
        """Return the sum by the first pivots, which are those that say most."""
        batch = max(1, 4 * budget.cache // count)  # so many that kernel values stay in the cache
        return replace(self, pivots=self.pivots[:count], lower=self.lower[:count, :count], batch=batch)

    @property
    def _fewer(self) -> int:
        return max(1, int(_FEWER * len(self.pivots)))

    def encode(self, points: NDArray) -> Encoded:
        """Return kernel values with pivots, and khat(x, x) of some points, pivot by pivot."""
        values = _values(self.kernel, points - self.centre, self.pivots)
        some = slice(None, None, self.stride)
        return Encoded(values, some, self._solved(values[some].T) ** 2)

    def _solved(self, values: NDArray, count: int | None = None, **options: Any) -> NDArray:
        solve: Any = solve_triangular
        lower = self.lower[:count, :count]
        return solve(lower, values[:count], lower=True, check_finite=False, **options)

    def chunk(self, encoded: Encoded, phi: NDArray) -> State:
        """Return sums over cases."""
        own, own_half = _norms(phi).sum() * np.array([encoded.khat(phi), encoded.khat(phi, self._fewer)])
        return State(encoded.values.T @ phi, float(own), float(own_half))

    def finish(self, state: State) -> Finished:
        """Return sums over pairs, by all pivots and by fewer."""
        solved = self._solved(state.fields)
        energy = _norms(solved)
        total, half = energy.sum() - state.own, energy[: self._fewer].sum() - state.own_half
        return Finished(0.5 * float(total), 0.5 * float(half), self._solved(solved, trans="T"))

    def rows(self, encoded: Encoded, phi: NDArray, finished: Finished) -> NDArray:
        """Return sums over all other cases."""
        with_all = np.einsum("nm,nm->n", encoded.values @ finished.potential, phi)
        return with_all - encoded.khat(phi) * _norms(phi)


def _norms(phi: NDArray) -> NDArray:
    return np.einsum("nm,nm->n", phi, phi)


def _values(kernel: DecayKernel, a: NDArray, b: NDArray) -> NDArray:
    """Kernel between points: exponents are one product of matrices, with squared norms as coordinates."""
    rate = kernel.lengthscale**-2.0
    left = np.concatenate([2.0 * rate * a, -rate * _norms(a)[:, None], np.ones((len(a), 1))], axis=1)
    right = np.concatenate([b, np.ones((len(b), 1)), -rate * _norms(b)[:, None]], axis=1)
    with np.errstate(under="ignore"):
        exponents = left @ right.T
        return np.exp(exponents, out=exponents)
