"""Closed forms of the Gaussian kernel.

A Gaussian kernel of length scale l is sqrt(2 pi) l times a normal density, so its expectation is a
density of Z - Z' + N(0, l^2) at zero. For normals this is the paper's formula (appendix "Normal
distributions"); a point is a normal without variance.
"""

from __future__ import annotations

import math

from wellcal._array import Array
from wellcal._ops import Ops
from wellcal.closed_forms.elements import FullNormals, Laplaces, Normals, Points, rule
from wellcal.closed_forms.exponentials import normal_exponential, normal_two_rates
from wellcal.kernels.base import Coordinates
from wellcal.kernels.targets import Gaussian


@rule(Gaussian, Normals, Normals)
@rule(Gaussian, Normals, Points)
def diagonal(ops: Ops, kernel: Gaussian, a: Normals, b: Normals | Points) -> Array:
    """``prod_c s_c^(-1/2) exp(-sum_c (m_c - m'_c)^2 / (2 l^2 s_c))`` with s_c = 1 + (v_c + v'_c) / l^2."""
    inverse = 1.0 / kernel.lengthscale**2
    exponent: Array = None
    spread: Array = None
    for c, (x, y) in enumerate(zip(a.x, b.x, strict=True)):
        variance = a.v[c] + b.v[c] if isinstance(b, Normals) else a.v[c]
        s = 1.0 + variance * inverse
        term = (x - y) ** 2 / s
        exponent = term if exponent is None else exponent + term
        spread = s if spread is None else spread * s
        if c % 16 == 15:  # a product of many factors would overflow: fold it into the exponent
            exponent = exponent + ops.log(spread) / inverse
            spread = None
    value = ops.exp(exponent * (-0.5 * inverse))
    return value if spread is None else value / ops.sqrt(spread)


@rule(Gaussian, FullNormals, FullNormals)
@rule(Gaussian, FullNormals, Normals)
@rule(Gaussian, FullNormals, Points)
def full(ops: Ops, kernel: Gaussian, a: FullNormals, b: FullNormals | Normals | Points) -> Array:
    """``|S|^(-1/2) exp(-(m - m')' S^-1 (m - m') / (2 l^2))`` with S = I + (C + C') / l^2."""
    inverse = 1.0 / kernel.lengthscale**2
    d = len(a.x)
    rows = [[a.cov[i][j] * inverse + (1.0 if i == j else 0.0) for j in range(i + 1)] for i in range(d)]
    for i in range(d):
        if isinstance(b, Normals):
            rows[i][i] = rows[i][i] + b.v[i] * inverse
        elif isinstance(b, FullNormals):
            rows[i] = [entry + b.cov[i][j] * inverse for j, entry in enumerate(rows[i])]
    difference = tuple(x - y for x, y in zip(a.x, b.x, strict=True))
    quadratic, log_determinant = _solve(ops, rows, difference)
    return ops.exp(-0.5 * (quadratic * inverse + log_determinant))


def _solve(ops: Ops, rows: list[list[Array]], difference: Coordinates) -> tuple[Array, Array]:
    """``x' S^-1 x`` and ``log |S|`` by an unrolled L D L' factorisation: elementwise, so it compiles."""
    d = len(rows)
    lower: list[list[Array]] = []
    pivots: list[Array] = []
    forward: list[Array] = []
    quadratic: Array = 0.0
    log_determinant: Array = 0.0
    for i in range(d):
        scaled: list[Array] = []  # entries L_ij D_j of row i
        row: list[Array] = []
        for j in range(i):
            entry = rows[i][j]
            for k in range(j):
                entry = entry - scaled[k] * lower[j][k]
            scaled.append(entry)
            row.append(entry / pivots[j])
        pivot = rows[i][i]
        right = difference[i]
        for k in range(i):
            pivot = pivot - scaled[k] * row[k]
            right = right - row[k] * forward[k]
        lower.append(row)
        pivots.append(pivot)
        forward.append(right)
        quadratic = quadratic + right**2 / pivot
        log_determinant = log_determinant + ops.log(pivot)
    return quadratic, log_determinant


@rule(Gaussian, Laplaces, Points, scalar=True)
@rule(Gaussian, Laplaces, Normals, scalar=True)
def laplace_normal(ops: Ops, kernel: Gaussian, a: Laplaces, b: Normals | Points) -> Array:
    """``sqrt(2 pi) l`` times the expected Laplace density at D ~ N(m - m', v' + l^2)."""
    variance = kernel.lengthscale**2 + (b.v[0] if isinstance(b, Normals) else 0.0 * b.x[0])
    rate = 1.0 / a.scale
    expected = normal_exponential(ops, ops.abs(a.x[0] - b.x[0]), variance, rate)
    return (math.sqrt(math.pi / 2.0) * kernel.lengthscale) * rate * expected


@rule(Gaussian, Laplaces, Laplaces, scalar=True)
def laplace_laplace(ops: Ops, kernel: Gaussian, a: Laplaces, b: Laplaces) -> Array:
    """``sqrt(2 pi) l`` times the expected density of a difference of Laplace variables at a normal D."""
    rate_a, rate_b = 1.0 / a.scale, 1.0 / b.scale
    z = ops.abs(a.x[0] - b.x[0])
    variance = kernel.lengthscale**2 + 0.0 * z
    expected = normal_two_rates(ops, z, variance, rate_a, rate_b)
    return (math.sqrt(math.pi / 2.0) * kernel.lengthscale) * (rate_a * rate_b / (rate_a + rate_b)) * expected
