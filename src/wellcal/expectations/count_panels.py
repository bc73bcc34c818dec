"""Panels of counts: a few nodes that stand for many counts, and rules for sums over whole numbers.

In a short panel every count is a node. In a long one the nodes are those of a Gauss rule with

    sum_k f(k) = sum_g w_g f(t_g)

for polynomials f of degree 2 m - 1, from the Jacobi matrix of the discrete Chebyshev (Gram) polynomials.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import cast

import numpy as np
from scipy import linalg

from wellcal._arrays.namespaces import NDArray

_RULES = ((160, 24), (64, 16))  # nodes of a panel of at least so many counts, on which polynomials are tame
_PART = 5.0  # length of a part of a long panel, in length scales of a kernel

SHORTEST = _RULES[-1][0]
"""Counts of the shortest panel that may have fewer nodes."""

QUADRATURE = 48
"""Nodes for a kernel on a part of a long panel."""


@dataclass(frozen=True)
class Panel:
    """Counts ``start <= k < stop``, and the nodes that stand for them.

    Attributes
    ----------
    nodes, weights
        Nodes, and their weights in sums over counts.
    long
        Whether there are fewer nodes than counts.
    """

    start: float
    stop: float
    nodes: NDArray
    weights: NDArray
    long: bool

    @classmethod
    def over(cls, start: float, stop: float) -> Panel:
        """All counts as nodes."""
        counts = np.arange(start, stop)
        return cls(start, stop, counts, np.ones_like(counts), False)

    @classmethod
    def thinned(cls, start: float, stop: float) -> Panel:
        """The nodes of a Gauss rule."""
        size = next(nodes for shortest, nodes in _RULES if stop - start >= shortest)
        nodes, weights = gauss_rule(int(stop - start), size)
        return cls(start, stop, start + nodes, weights, True)

    @property
    def count(self) -> int:
        """Counts in the panel."""
        return int(self.stop - self.start)

    def coefficients(self, values: NDArray) -> NDArray:
        """Coefficients ``(n, m)`` in orthonormal polynomials from values ``(n, m)`` at the nodes."""
        return (values * self.weights) @ _at_own_nodes(self.count, len(self.nodes)).T

    def basis(self, t: NDArray) -> NDArray:
        """L_g(t), ``(len(t), m)``, for t within the panel; whether t is node g, where every count is one."""
        if not self.long:
            return (t[:, None] == self.nodes[None, :]).astype(np.float64)
        return polynomials(self.count, len(self.nodes), t - self.start).T @ self._from_values()

    def summed_basis(self, t: NDArray, weights: NDArray) -> NDArray:
        """``sum_d w_d L_g(t_d)``, ``(p, m)``, for weights ``(D,)`` and t ``(p, D)`` within a long panel."""
        values = polynomials(self.count, len(self.nodes), (t - self.start).reshape(-1))
        return (values.reshape(-1, *t.shape) @ weights).T @ self._from_values()

    def _from_values(self) -> NDArray:
        """The coefficients of L_g in orthonormal polynomials, ``(m, m)``."""
        return _at_own_nodes(self.count, len(self.nodes)) * self.weights


@lru_cache(maxsize=256)
def gauss_rule(count: int, nodes: int) -> tuple[NDArray, NDArray]:
    """Nodes and weights for sums over 0, 1, ..., count - 1, exact for polynomials of degree 2 nodes - 1.

    From the Jacobi matrix of the discrete Chebyshev (Gram) polynomials.

    Examples
    --------
    >>> nodes, weights = gauss_rule(10, 3)
    >>> round(float(weights @ nodes**5), 6), sum(k**5 for k in range(10))
    (120825.0, 120825)
    """
    found = linalg.eigh_tridiagonal(np.full(nodes, 0.5 * (count - 1)), _off_diagonal(count, nodes))
    values, vectors = cast("tuple[NDArray, NDArray]", found)
    return values, count * vectors[0] ** 2


def _off_diagonal(count: int, nodes: int) -> NDArray:
    j = np.arange(1.0, nodes)
    return 0.5 * j * np.sqrt((count**2 - j**2) / (4.0 * j**2 - 1.0))


def polynomials(count: int, size: int, t: NDArray) -> NDArray:
    """The first `size` polynomials that are orthonormal over 0, ..., count - 1, at t: ``(size, len(t))``."""
    beta = _off_diagonal(count, size)
    x = t - 0.5 * (count - 1)
    out = np.empty((size, len(t)))
    out[0] = 1.0 / np.sqrt(count)
    if size > 1:
        out[1] = x * out[0] / beta[0]
    for j in range(1, size - 1):
        out[j + 1] = (x * out[j] - beta[j - 1] * out[j - 1]) / beta[j]
    return out


@lru_cache(maxsize=256)
def _at_own_nodes(count: int, size: int) -> NDArray:
    return polynomials(count, size, gauss_rule(count, size)[0])


# -- sums of a kernel ------------------------------------------------------------------------


def rules_over(start: float, stop: float, lengthscale: float) -> Iterator[tuple[NDArray, NDArray]]:
    """Points and weights, part by part, that sum a Gaussian kernel times a polynomial over counts."""
    yield from (sum_rule(a, b) for a, b in pairwise(edges_of(start, stop, lengthscale).tolist()))


def edges_of(start: float, stop: float, lengthscale: float) -> NDArray:
    """Ends of the parts, in whole numbers: all but the last are equally long, and share one rule."""
    length = max(2 * QUADRATURE, int(_PART * lengthscale))
    return np.append(np.arange(start, stop, length), stop)


def sum_rule(a: float, b: float) -> tuple[NDArray, NDArray]:
    """Points and weights for sums over a <= k < b."""
    if b - a <= 2 * QUADRATURE:
        return np.arange(a, b), np.ones(int(b - a))
    points, weights = gauss_rule(int(b - a), QUADRATURE)
    return points + a, weights
