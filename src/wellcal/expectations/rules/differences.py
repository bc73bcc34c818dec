"""``<P - Q, P' - Q'>`` of the Gaussian kernel without cancellation, for P near Q and P' near Q'.

Subtracting four pairings of size one leaves nothing of a difference below 1e-8. Here the logarithm g
of the pairing is differenced analytically: with first differences u, v and the mixed second
difference w of g, the result is ``exp(g) (expm1(u) expm1(v) + exp(u + v) expm1(w))``.
"""

from __future__ import annotations

from dataclasses import dataclass

from wellcal._arrays.namespaces import Array
from wellcal._arrays.ops import Ops
from wellcal.expectations.rules.exponentials import psi, sorted_rates
from wellcal.kernels.base import Coordinates


@dataclass(frozen=True)
class Move:
    """Normals with independent coordinates at (x, v), and their moves to (x + dx, v + dv)."""

    x: Coordinates
    v: Coordinates
    dx: Coordinates
    dv: Coordinates


def gaussian_terms(ops: Ops, lengthscale: Array, a: Move, b: Move) -> tuple[Array, Array, Array, Array]:
    """``g, u, v, w``: log pairing at the start, its two first differences and its mixed one.

    u moves a alone, v moves b alone, w is what moving both adds.
    """
    inverse = 1.0 / lengthscale**2
    root = inverse**0.5
    g: Array = 0.0
    u: Array = 0.0
    v: Array = 0.0
    w: Array = 0.0
    for c in range(len(a.x)):
        m, alpha, beta = (a.x[c] - b.x[c]) * root, a.dx[c] * root, -b.dx[c] * root
        s, p, q = 1.0 + (a.v[c] + b.v[c]) * inverse, a.dv[c] * inverse, b.dv[c] * inverse
        sp, sq, spq = s + p, s + q, s + p + q
        g = g - 0.5 * (ops.log(s) + m**2 / s)
        u = u - 0.5 * (ops.log1p(p / s) + _first_difference(m, s, alpha, p))
        v = v - 0.5 * (ops.log1p(q / s) + _first_difference(m, s, beta, q))
        mixed_log = ops.log1p(-p * q / (sp * sq))
        w = w - 0.5 * (mixed_log + _mixed_difference(m, s, alpha, beta, p, q, sp, sq, spq))
    return g, u, v, w


def _first_difference(m: Array, s: Array, alpha: Array, p: Array) -> Array:
    """``(m + alpha)^2 / (s + p) - m^2 / s``."""
    return ((2.0 * m + alpha) * alpha * s - m**2 * p) / (s * (s + p))


def _mixed_difference(
    m: Array, s: Array, alpha: Array, beta: Array, p: Array, q: Array, sp: Array, sq: Array, spq: Array
) -> Array:
    """Mixed second difference of m^2 / s, by the product rule for differences of m * (m * (1 / s))."""
    r_q = -q / (s * sq)  # first differences of 1 / s
    r_p_after_q = -p / (sq * spq)
    r_pq = p * q * (s + spq) / (s * sp * sq * spq)
    t_q = beta / s + (m + beta) * r_q  # differences of m / s
    t_p_after_q = alpha / sq + (m + beta + alpha) * r_p_after_q
    t_pq = alpha * r_q + beta * r_p_after_q + (m + alpha) * r_pq
    return alpha * t_q + beta * t_p_after_q + (m + alpha) * t_pq


def gaussian_difference(ops: Ops, g: Array, u: Array, v: Array, w: Array) -> Array:
    """``<a' - a, b' - b>`` from the four terms; by plain subtraction where a move is not small."""
    small = ops.abs(u) + ops.abs(v) + ops.abs(w) < 1.0
    u_small, v_small, w_small = (ops.where(small, t, 0.0 * t) for t in (u, v, w))
    stable = ops.expm1(u_small) * ops.expm1(v_small) + ops.exp(u_small + v_small) * ops.expm1(w_small)
    # Logarithms of pairings are not positive: none of these can overflow.
    plain = ops.exp(g + u + v + w) - ops.exp(g + u) - ops.exp(g + v) + ops.exp(g)
    return ops.where(small, ops.exp(g) * stable, plain)


def gaussian_one_sided(ops: Ops, g: Array, u: Array) -> Array:
    """``<a' - a, b>`` from the first two."""
    small = ops.abs(u) < 1.0
    stable = ops.exp(g) * ops.expm1(ops.where(small, u, 0.0 * u))
    return ops.where(small, stable, ops.exp(g + u) - ops.exp(g))


def laplace_discrepancy(ops: Ops, z: Array, rate_a: Array, rate_b: Array, kernel_rate: Array) -> Array:
    """Squared MMD between two Laplace distributions under a Laplacian kernel, as a sum of squares.

    With x = c / a and y = c / b, what the scales contribute is
    ``(x - y)^2 / (2 (1 + x) (1 + y)) * (1 / ((1 + x) (1 + y)) + 1 / (x + y))``; what the distance z adds is
    twice the fall of the pairing from 0 to z, taken from its form in `exponentials.laplace_laplace`.
    """
    x, y = kernel_rate / rate_a, kernel_rate / rate_b
    product = 1.0 / ((1.0 + x) * (1.0 + y))
    # x - y from the rates themselves: their difference is what is small.
    gap = kernel_rate * (rate_b - rate_a) / (rate_a * rate_b)
    scales = 0.5 * gap**2 * product * (product + 1.0 / (x + y))
    r1, r2, r3 = sorted_rates(ops, rate_a, rate_b, kernel_rate, z)
    s, t = r1 * z, (r2 - r1) * z
    decay = ops.exp(-s)
    zero = 0.0 * s
    lost = s**2 * psi(ops, s, s, ops.phi(s)) + decay * s * t * psi(ops, zero, t, ops.one(t))
    kept = decay * s * (r2 * z) * psi(ops, t, (r3 - r1) * z, ops.phi(t))
    fall = (1.0 + r3 / (r1 + r2)) * lost - kept
    return scales + 2.0 * rate_a * rate_b / ((r1 + r3) * (r2 + r3)) * fall
