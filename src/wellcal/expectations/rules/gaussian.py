"""Closed forms of the Gaussian kernel.

A Gaussian kernel of length scale l is sqrt(2 pi) l times a normal density, so its expectation is a
density of Z - Z' + N(0, l^2) at zero. For normals this is the paper's formula (appendix "Normal
distributions"); a point is a normal without variance.
"""

from __future__ import annotations

import math

from wellcal._arrays.namespaces import Array
from wellcal._arrays.ops import Ops
from wellcal.expectations.rules import positive_definite
from wellcal.expectations.rules.elements import FullNormals, Laplaces, Normals, Points, rule
from wellcal.expectations.rules.exponentials import (
    distance,
    normal_exponential,
    normal_two_rates,
    signed_distance,
)
from wellcal.kernels.targets import Gaussian


@rule(Gaussian, Normals, Normals)
@rule(Gaussian, Normals, Points)
@rule(Gaussian, Points, Points)
def diagonal(ops: Ops, kernel: Gaussian, a: Normals | Points, b: Normals | Points) -> Array:
    """``prod_c s_c^(-1/2) exp(-sum_c (m_c - m'_c)^2 / (2 l^2 s_c))`` with s_c = 1 + (v_c + v'_c) / l^2."""
    square = kernel.lengthscale**2
    exponent: Array = None
    spread: Array = None
    for c, (x, y) in enumerate(zip(a.x, b.x, strict=True)):
        # An infinite square is harmless in a value, and not in a derivative.
        difference = signed_distance(ops, x, y) if ops.differentiable else x - y
        # What depends on one side is worked out on that side, where it costs nothing.
        total, s = -2.0 * square, None
        if isinstance(a, Normals):
            s = 1.0 + a.v[c] / square
            total = -2.0 * (a.v[c] + square)
        if isinstance(b, Normals):
            total = total + -2.0 * b.v[c]
            s = s + b.v[c] / square
        term = difference * difference / total
        exponent = term if exponent is None else exponent + term
        spread = s if spread is None else spread * s
        if c % 16 == 15 and spread is not None:
            # A product of many factors would overflow: fold it into the exponent.
            exponent = exponent - 0.5 * ops.log(spread)
            spread = None
    value = ops.exp(exponent)
    return value if spread is None else value / ops.sqrt(spread)


@rule(Gaussian, FullNormals, FullNormals)
@rule(Gaussian, FullNormals, Normals)
@rule(Gaussian, FullNormals, Points)
def full(ops: Ops, kernel: Gaussian, a: FullNormals, b: FullNormals | Normals | Points) -> Array:
    """``l^d |S|^(-1/2) exp(-(m - m')' S^-1 (m - m') / 2)`` with S = l^2 I + C + C'."""
    total = _total_covariance(kernel.lengthscale**2, a, b)
    difference = tuple(signed_distance(ops, x, y) for x, y in zip(a.x, b.x, strict=True))
    quadratic, log_determinant = positive_definite.quadratic_form(ops, total, difference)
    log_scale = len(a.x) * ops.log(ops.one(quadratic) * kernel.lengthscale)
    return ops.exp(log_scale - 0.5 * (quadratic + log_determinant))


def _total_covariance(
    ridge: Array, a: FullNormals, b: FullNormals | Normals | Points
) -> list[list[tuple[Array, ...]]]:
    """Lower triangle of l^2 I + C + C', each entry as the terms of its sum."""
    rows: list[list[tuple[Array, ...]]] = []
    for i in range(len(a.x)):
        row: list[tuple[Array, ...]] = [(a.cov[i][j],) for j in range(i + 1)]
        if isinstance(b, FullNormals):
            row = [(*entry, b.cov[i][j]) for j, entry in enumerate(row)]
        elif isinstance(b, Normals):
            row[i] = (*row[i], b.v[i])
        row[i] = (*row[i], ridge + 0.0 * a.cov[i][i])
        rows.append(row)
    return rows


@rule(Gaussian, Laplaces, Points, scalar=True)
@rule(Gaussian, Laplaces, Normals, scalar=True)
def laplace_normal(ops: Ops, kernel: Gaussian, a: Laplaces, b: Normals | Points) -> Array:
    """``sqrt(2 pi) l`` times the expected Laplace density at D ~ N(m - m', v' + l^2)."""
    variance = kernel.lengthscale**2 + (b.v[0] if isinstance(b, Normals) else 0.0 * b.x[0])
    rate = _rate(ops, a, variance)
    expected = normal_exponential(ops, distance(ops, a.x[0], b.x[0]), variance, rate)
    return (math.sqrt(math.pi / 2.0) * kernel.lengthscale) * rate * expected


@rule(Gaussian, Laplaces, Laplaces, scalar=True)
def laplace_laplace(ops: Ops, kernel: Gaussian, a: Laplaces, b: Laplaces) -> Array:
    """``sqrt(2 pi) l`` times the expected density of a difference of Laplace variables at a normal D."""
    z = distance(ops, a.x[0], b.x[0])
    variance = kernel.lengthscale**2 + 0.0 * z
    rate_a, rate_b = _rate(ops, a, variance), _rate(ops, b, variance)
    expected = normal_two_rates(ops, z, variance, rate_a, rate_b)
    return (math.sqrt(math.pi / 2.0) * kernel.lengthscale) * (rate_a * rate_b / (rate_a + rate_b)) * expected


_NARROW = 1e-30


def _rate(ops: Ops, a: Laplaces, variance: Array) -> Array:
    """One over the scale; a Laplace distribution that is narrower differs from a point by rounding only."""
    return ops.minimum(1.0 / (a.scale + 0.0 * variance), (1.0 / _NARROW) / ops.sqrt(variance))
