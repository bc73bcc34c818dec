"""Dirichlet predictions as atoms: Gauss rules for the breaks of a stick, one after the other.

The first coordinate breaks a part off a stick of length one, the second a part of what is left, and so on.
These parts are independent, and follow beta distributions. Gauss-Jacobi rules have their nodes where the mass
of a beta distribution is, however small or large its parameters, and converge faster than any power of their
number for kernels without a kink; so does the product of a rule for each break.

Gradients. Parameters act on the weights. The likelihood ratio asks for log x, no polynomial near 0: in its
place stands its projection on the polynomials that the nodes resolve, by Rodrigues' formula known from
``E[P_k(x) log x] = (-1)^(k-1) B(a, b + k) / (k B(a, b))``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wellcal._arrays.derivatives import right_derivatives
from wellcal._arrays.namespaces import Array, NDArray, namespace, stop_gradient, through_numpy, widen
from wellcal.expectations.atoms import Atoms
from wellcal.expectations.score_gradients import change
from wellcal.predictions import Dirichlet

MOST_COORDINATES = 4
"""Of vectors for which a product of rules is small enough."""


class BetaRule(NamedTuple):
    """Gauss rules of beta distributions: all arrays ``(..., m)``.

    Attributes
    ----------
    x, weights
        Nodes and their weights, which sum to one.
    by_a, by_b
        Derivatives of the logarithm of a weight by the parameters.
    """

    x: NDArray
    weights: NDArray
    by_a: NDArray
    by_b: NDArray


def beta_rule(a: NDArray, b: NDArray, nodes: int) -> BetaRule:
    """Rules with so many nodes for parameters of one shape (Golub and Welsch, 1969)."""
    a, b = (np.asarray(p, dtype=np.float64)[..., None] for p in (a, b))
    k = np.arange(nodes, dtype=np.float64)
    total = a + b
    # Means and products of the recurrence between orthogonal polynomials on [0, 1], of degrees k - 1 and k.
    # Whole numbers are added up before small parameters, and quotients come before products of large ones.
    centre, before = 2.0 * k + total, (2.0 * k - 2.0) + total
    first = a / total
    with np.errstate(divide="ignore", invalid="ignore"):
        later = 0.5 * (1.0 + (a - b) / before * ((total - 2.0) / centre))
        product = (
            ((k - 1.0) + a) / before * (((k - 1.0) + b) / before) * (((k - 2.0) + total) / (centre - 1.0))
        )
        product = product * (k / (centre - 3.0))
    mean = np.where(k == 0.0, first, later)
    second = (a / total) * (b / total) / (total + 1.0)  # of degree 1, where two factors cancel
    product = np.where(k == 1.0, second, product)[..., 1:]
    matrix = np.zeros((*mean.shape, nodes))
    index = np.arange(nodes)
    matrix[..., index, index] = mean
    matrix[..., index[1:], index[:-1]] = np.sqrt(product)
    x, vectors = np.linalg.eigh(matrix)
    start = vectors[..., 0, :]
    above = vectors / np.where(np.abs(start) < 1e-150, np.inf, start)[..., None, :]
    degree = k[1:]
    sign = np.where(degree % 2.0 == 1.0, 1.0, -1.0)
    by_a = np.einsum("...k,...km->...m", sign * _projection(a, b, degree), above[..., 1:, :])
    by_b = np.einsum("...k,...km->...m", -_projection(b, a, degree), above[..., 1:, :])
    return BetaRule(np.clip(x, 0.0, 1.0), start**2, by_a, by_b)


def _projection(a: NDArray, b: NDArray, degree: NDArray) -> NDArray:
    """Size of ``E[p_k(x) log x]`` for orthonormal polynomials of degrees 1, 2, ..."""
    before = degree - 1.0
    total = a + b
    from_product = np.cumsum(np.log((b + before) / (total + before)), axis=-1)
    with np.errstate(divide="ignore"):
        ratio = np.log(total + np.maximum(degree - 2.0, 0.0)) * (degree > 1.0)
    norm = np.cumsum(np.log((a + before) * (b + before) / degree) - ratio, axis=-1)
    norm = norm - np.log(2.0 * degree + total - 1.0)
    return np.exp(from_product - 0.5 * norm) / degree


def nodes_within(points: int, coordinates: int) -> int:
    """Nodes for each break, of which at most so many points are made."""
    nodes = int(points ** (1.0 / (coordinates - 1)))
    return nodes + 1 if (nodes + 1) ** (coordinates - 1) <= points else nodes


def stick_atoms(predictions: Dirichlet, nodes: int) -> Atoms:
    """Atoms of each prediction: `nodes` for each break of the stick."""
    xp = predictions.xp
    a = right_derivatives(widen(predictions.concentration), 1, "the concentration of Dirichlet")
    n, d = a.shape
    rest = xp.flip(xp.cumulative_sum(xp.flip(a, axis=1), axis=1), axis=1)[:, 1:]

    def rules(first: NDArray, others: NDArray) -> NDArray:
        return np.stack(beta_rule(first, others, nodes))

    found = through_numpy(
        rules,
        stop_gradient(a[:, :-1]),
        stop_gradient(rest),
        shape=(4, n, d - 1, nodes),
    )
    weights: Array = None
    left: Array = None
    coordinates: list[Array] = []
    for c in range(d - 1):
        x, mass, by_a, by_b = (found[k, :, c, :] for k in range(4))
        mass = mass * xp.exp(change(a[:, c]) * by_a + change(rest[:, c]) * by_b)
        if left is None:
            coordinates, weights, left = [x], mass, 1.0 - x
            continue
        coordinates = [_outer(one, xp.ones_like(x)) for one in coordinates]
        coordinates.append(_outer(left, x))
        weights, left = _outer(weights, mass), _outer(left, 1.0 - x)
    values = xp.stack([*coordinates, left], axis=-1)
    scheme = f"Gauss rules for the breaks of a stick, {nodes} nodes each"
    # A view: what is remembered for a batch must not keep the batch itself alive.
    again = predictions[:]
    return Atoms(values, weights, scheme, rougher=lambda: stick_atoms(again, coarser_rule(nodes)))


def coarser_rule(nodes: int) -> int:
    """Nodes for each break in the rule that an error estimate compares with."""
    return max(1, min(nodes - 1, 3 * nodes // 4))


LADDERS = {
    2: (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256),
    3: (6, 8, 12, 16, 24, 32, 48),
    4: (4, 6, 8, 12, 16),
}
"""Nodes for each break that are tried one after the other, by the number of coordinates."""


def _outer(a: Array, b: Array) -> Array:
    """Products ``(n, S m)`` of all entries of rows ``(n, S)`` and ``(n, m)``."""
    product = a[:, :, None] * b[:, None, :]
    return namespace(product).reshape(product, (a.shape[0], -1))
