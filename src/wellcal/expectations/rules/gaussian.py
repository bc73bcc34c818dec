"""Closed forms of the Gaussian kernel.

A Gaussian kernel of length scale l is sqrt(2 pi) l times a normal density, so its expectation is a
density of Z - Z' + N(0, l^2) at zero. For normals this is the paper's formula (appendix "Normal
distributions"); a point is a normal without variance.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from wellcal._arrays.namespaces import Array, NDArray, is_numpy
from wellcal._arrays.ops import Ops
from wellcal.expectations.rules.elements import FullNormals, Laplaces, Normals, Points, rule
from wellcal.expectations.rules.exponentials import (
    distance,
    normal_exponential,
    normal_two_rates,
    signed_distance,
)
from wellcal.expectations.rules.positive_definite import quadratic_form
from wellcal.kernels.targets import Gaussian

_MANY_OF_A_BATCH = 200  # pairs, beyond which one call for each batch is quicker than one for each coordinate
_SEVERAL = 4  # coordinates from which the same look saves more calls than it takes
FURTHEST = 1000.0
"""Squared length scales from the middle up to which exponents by products are right to 1e-13."""
_MANY = 2000  # pairs, beyond which a look at all variances costs nothing


@rule(Gaussian, Normals, Normals)
@rule(Gaussian, Normals, Points)
@rule(Gaussian, Points, Points)
def diagonal(ops: Ops, kernel: Gaussian, a: Normals | Points, b: Normals | Points) -> Array:
    """``prod_c s_c^(-1/2) exp(-sum_c (m_c - m'_c)^2 / (2 l^2 s_c))`` with s_c = 1 + (v_c + v'_c) / l^2."""
    if is_numpy(ops.xp):
        return _diagonal_in_place(kernel, a, b)
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


def _diagonal_in_place(kernel: Gaussian, a: Normals | Points, b: Normals | Points) -> NDArray:
    """The same in NumPy, with few arrays of all pairs."""
    square = float(kernel.lengthscale) ** 2
    d = len(a.x)
    if d >= _SEVERAL or (d > 1 and a.x[0].size * b.x[0].size > _MANY):
        left = a.v if isinstance(a, Normals) else None
        right = b.v if isinstance(b, Normals) else None
        if _alike(left) and _alike(right):
            return _spherical(square, a, b, left, right)
    exponent = a.x[0] - b.x[0]
    spread = _divided(exponent, square, a, b, 0)
    difference = np.empty_like(exponent) if d > 1 else exponent
    for c in range(1, d):
        np.subtract(a.x[c], b.x[c], out=difference)
        s = _divided(difference, square, a, b, c)
        exponent += difference
        if s is not None:
            spread = s if spread is None else spread * s
        if c % 16 == 15 and spread is not None:
            # A product of many factors would overflow: fold it into the exponent.
            exponent -= 0.5 * np.log(spread)
            spread = None
    value = np.exp(exponent, out=exponent)
    if spread is not None:
        value /= np.sqrt(spread)
    return value


def _divided(
    difference: NDArray, square: float, a: Normals | Points, b: Normals | Points, c: int
) -> NDArray | None:
    """Make of differences in a coordinate terms of the exponent, in place; s_c, or None for points."""
    difference *= difference
    if not isinstance(a, Normals):
        difference /= -2.0 * square
        return None
    own = -2.0 * (a.v[c] + square)
    s = 1.0 + a.v[c] / square
    if isinstance(b, Normals):
        own = own + -2.0 * b.v[c]
        s = s + b.v[c] / square
    difference /= own
    return s


def _alike(variances: tuple[NDArray, ...] | None) -> bool:
    """Whether each case has the same variance in all coordinates."""
    if variances is None or all(v is variances[0] for v in variances):
        return True
    # One coordinate after another, as they stand.
    together = np.concatenate(variances).reshape(len(variances), -1)
    return bool((together == together[0]).all())


def _spherical(
    square: float,
    a: Normals | Points,
    b: Normals | Points,
    left: tuple[NDArray, ...] | None,
    right: tuple[NDArray, ...] | None,
) -> NDArray:
    """The same where the variances of a case are all alike: they are divided by once, after the sum."""
    total = _squared_distances(a.x, b.x, FURTHEST * square)
    total *= -0.5 / square
    s: NDArray | None = None
    if left is not None:
        s = 1.0 + left[0] / square
    if right is not None:
        s = 1.0 + right[0] / square if s is None else s + right[0] / square
    if s is None:
        return np.exp(total, out=total)
    total /= s
    np.exp(total, out=total)
    total *= _raised(1.0 / s, len(a.x))
    return total


def _raised(x: NDArray, d: int) -> NDArray:
    """``x ** (d / 2)`` by squares and products, which are many times quicker than a power."""
    result = np.sqrt(x) if d % 2 else None
    rest = d // 2
    while rest:
        if rest % 2:
            result = x if result is None else result * x
        rest //= 2
        x = x * x if rest else x
    assert result is not None
    return result


_FEW_PAIRS = 2048


def _squared_distances(x: tuple[NDArray, ...], y: tuple[NDArray, ...], furthest: float) -> NDArray:
    """Of vectors whose coordinates broadcast to all pairs: columns and rows, or batches of these.

    Those of batches that are not further from the middle than `furthest`, squared, come from products.
    """
    first, second = x[0].shape, y[0].shape
    if first[-1] == second[-2] == 1:
        if len(first) == 2:
            return cdist(np.concatenate(x, axis=1), np.concatenate(y).T, "sqeuclidean")
        if len(first) == 3 and first[0] == second[0] and first[1] * second[2] >= _MANY_OF_A_BATCH:
            left, right = np.concatenate(x, axis=2), np.concatenate(y, axis=1).transpose(0, 2, 1)
            return _within_batches(left, right, furthest)
    pairs = np.broadcast_shapes(first, second)
    if len(first) == len(second) == 3 and math.prod(pairs) <= _FEW_PAIRS:
        # A call for all coordinates costs less than one for each.
        away = np.concatenate(x).reshape(-1, *first) - np.concatenate(y).reshape(-1, *second)
        flat = away.reshape(len(x), -1)
        return np.einsum("cp,cp->p", flat, flat).reshape(pairs)
    total = np.subtract(x[0], y[0])
    total *= total
    difference = np.empty_like(total)
    for one, other in zip(x[1:], y[1:], strict=True):
        np.subtract(one, other, out=difference)
        difference *= difference
        total += difference
    return total


def _within_batches(x: NDArray, y: NDArray, furthest: float) -> NDArray:
    """Squared distances ``(r, n, m)`` of points ``(r, n, d)`` and ``(r, m, d)``."""
    middle = x[:, :1]
    left, right = x - middle, y - middle
    norms, others = (np.einsum("rnd,rnd->rn", z, z) for z in (left, right))
    if max(norms.max(), others.max()) < furthest:
        left *= -2.0
        distances: Any = left @ right.transpose(0, 2, 1)
        distances += norms[:, :, None]
        distances += others[:, None, :]
        return distances
    distances = np.empty((len(x), x.shape[1], y.shape[1]))
    for one, other, out in zip(x, np.ascontiguousarray(y), distances, strict=True):
        cdist(one, other, "sqeuclidean", out=out)
    return distances


@rule(Gaussian, FullNormals, FullNormals)
@rule(Gaussian, FullNormals, Normals)
@rule(Gaussian, FullNormals, Points)
def full(ops: Ops, kernel: Gaussian, a: FullNormals, b: FullNormals | Normals | Points) -> Array:
    """``l^d |S|^(-1/2) exp(-(m - m')' S^-1 (m - m') / 2)`` with S = l^2 I + C + C'."""
    total = _total_covariance(kernel.lengthscale**2, a, b)
    difference = tuple(signed_distance(ops, x, y) for x, y in zip(a.x, b.x, strict=True))
    quadratic, log_determinant = quadratic_form(ops, total, difference)
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
