"""Differences of log pairings of the Gaussian kernel between normals with full covariances.

As in :mod:`wellcal.expectations.rules.differences`, nothing large is subtracted: with g the logarithm of
the pairing as a function of m = x - x' and S = l^2 I + C + C', its changes under moves of m and S
are written in the moves themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

from wellcal._arrays.namespaces import Array, device_of
from wellcal._arrays.ops import Ops

_SERIES_BELOW = 0.02  # norm of a matrix E for which 9 terms give log |I + E| to rounding
_TERMS = 9


@dataclass(frozen=True)
class FullMove:
    """Normals at (x, c), and their moves to (x + dx, c + dc); arrays end in (d,) and (d, d)."""

    x: Array
    c: Array
    dx: Array
    dc: Array


def full_gaussian_terms(
    ops: Ops, lengthscale: Array, a: FullMove, b: FullMove
) -> tuple[Array, Array, Array, Array]:
    """``g, u, v, w``: log pairing at the start, its two first differences and its mixed one.

    u moves a alone, v moves b alone, w is what moving both adds.
    """
    xp = ops.xp
    start = a.c + b.c
    d = start.shape[-1]
    start = start + lengthscale**2 * xp.eye(d, dtype=start.dtype, device=device_of(start))
    p, q = (xp.broadcast_to(move, start.shape) for move in (a.dc, b.dc))
    m = a.x - b.x
    alpha, beta = (xp.broadcast_to(move, m.shape) for move in (a.dx, -b.dx))
    with_p, with_q, with_both = start + p, start + q, start + p + q
    y = _solve(ops, start, m)  # S^-1 m, and its changes
    y_p = _solve(ops, with_p, alpha - _times(p, y))
    y_q = _solve(ops, with_q, beta - _times(q, y))
    y_q_after_p = _solve(ops, with_both, beta - _times(q, y + y_p))
    y_p_after_q = _solve(ops, with_both, alpha - _times(p, y + y_q))
    y_pq = -_solve(ops, with_both, _times(q, y_p) + _times(p, y_q))
    quadratic_u = _dot(alpha, y + y_p) + _dot(m, y_p)
    quadratic_v = _dot(beta, y + y_q) + _dot(m, y_q)
    quadratic_w = _dot(m, y_pq) + _dot(alpha, y_q_after_p) + _dot(beta, y_p_after_q)
    by_p, by_q = xp.linalg.solve(start, p), xp.linalg.solve(start, q)
    # (S + P)^-1 (S + P + Q) (S + Q)^-1 S = I - E
    both = xp.matmul(xp.linalg.solve(with_p, p), xp.matmul(by_q, xp.linalg.solve(with_q, start)))
    log_start = 2.0 * d * ops.log(xp.ones_like(quadratic_u) * lengthscale)
    g = 0.5 * (log_start - xp.linalg.slogdet(start)[1] - _dot(m, y))
    u = -0.5 * (_log_determinant(ops, by_p) + quadratic_u)
    v = -0.5 * (_log_determinant(ops, by_q) + quadratic_v)
    w = -0.5 * (_log_determinant(ops, -both) + quadratic_w)
    return g, u, v, w


def _solve(ops: Ops, matrix: Array, right: Array) -> Array:
    return ops.xp.linalg.solve(matrix, right[..., None])[..., 0]


def _times(matrix: Array, x: Array) -> Array:
    return (matrix @ x[..., None])[..., 0]


def _dot(x: Array, y: Array) -> Array:
    return (x[..., None, :] @ y[..., :, None])[..., 0, 0]


def _log_determinant(ops: Ops, e: Array) -> Array:
    """``log |I + E|``, to the precision of E where that is small."""
    xp = ops.xp
    small = xp.sqrt(xp.sum(e**2, axis=(-2, -1))) < _SERIES_BELOW
    near = xp.where(small[..., None, None], e, 0.0 * e)
    total: Array = 0.0
    power = near
    for n in range(1, _TERMS + 1):
        term = xp.linalg.trace(power) / n
        total = total + term if n % 2 else total - term
        power = xp.matmul(power, near) if n < _TERMS else power
    identity = xp.eye(e.shape[-1], dtype=e.dtype, device=device_of(e))
    far = xp.where(small[..., None, None], 0.0 * e, e)
    return xp.where(small, total, xp.linalg.slogdet(identity + far)[1])
