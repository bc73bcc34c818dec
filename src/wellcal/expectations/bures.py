"""The 2-Wasserstein distance between normals with full covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from wellcal._arrays.derivatives import right_derivatives
from wellcal._arrays.namespaces import Array, namespace, stop_gradient
from wellcal._arrays.ops import Ops, ops_for
from wellcal.expectations.bilinear import Cost


class NormalRows(NamedTuple):
    """Means ``(n, d)``, covariances ``(n, d, d)`` and their symmetric roots."""

    loc: Array
    cov: Array
    root: Array


@dataclass(frozen=True)
class BuresDistance:
    """Squared 2-Wasserstein distance of multivariate normals (paper, appendix "Normal distributions")."""

    degree: float = 2.0

    @property
    def cost(self) -> Cost:
        """A singular value decomposition."""
        return Cost(64.0, entries=64)

    def __call__(self, ops: Ops, a: NormalRows, b: NormalRows) -> Array:
        """Return ``|m - m'|^2 + min ||R - R' Q||_F^2`` over orthogonal Q, R and R' roots of the covariances.

        The traces and the root of a product in the usual formula cancel for near predictions, and leave
        half of the digits of the distance. The best Q is a constant for derivatives (envelope theorem).
        """
        xp = ops.xp
        a = NormalRows(a.loc[..., :, None, :], *(x[..., :, None, :, :] for x in (a.cov, a.root)))
        b = NormalRows(b.loc[..., None, :, :], *(x[..., None, :, :, :] for x in (b.cov, b.root)))
        left, _, right = xp.linalg.svd(stop_gradient(xp.matmul(b.root, a.root)))
        difference = a.root - xp.matmul(b.root, xp.matmul(left, right))
        spread = xp.sum(difference**2, axis=(-2, -1))
        # What rounding leaves of equal covariances has a direction but no meaning.
        size = stop_gradient(xp.linalg.trace(a.cov) + xp.linalg.trace(b.cov))
        rounding = 32.0 * float(xp.finfo(spread.dtype).eps)
        spread = xp.where(spread > rounding**2 * size, spread, 0.0 * spread)
        return xp.sum((a.loc - b.loc) ** 2, axis=-1) + spread


def matrix_root(cov: Array) -> Array:
    """Symmetric square root of positive definite matrices ``(n, d, d)``, differentiable twice.

    The derivative solves R dR + dR R = dS in the eigenbasis of S, which unlike the derivative of
    the eigenvectors exists where eigenvalues coincide.
    """
    xp = namespace(cov)
    ops = ops_for(xp)
    fixed = stop_gradient(cov)
    eigenvalues, vectors = xp.linalg.eigh(fixed)
    roots = ops.root(ops.maximum(eigenvalues, 0.0 * eigenvalues))
    transposed = xp.matrix_transpose(vectors)
    root = xp.matmul(vectors * roots[:, None, :], transposed)
    if not ops.differentiable:
        return root
    sums = roots[:, :, None] + roots[:, None, :]
    sums = xp.where(sums > 0, sums, xp.ones_like(sums))

    def solved(change: Array) -> Array:
        inner = xp.matmul(xp.matmul(transposed, change), vectors) / sums
        return xp.matmul(xp.matmul(vectors, inner), transposed)

    cov = right_derivatives(cov, 2, "full covariances")
    once = root + solved(cov - fixed)
    # A step of Newton's method with the slope of the first doubles the derivatives that are right.
    missing = cov - xp.matmul(once, once)
    return once + solved(missing - stop_gradient(missing))
