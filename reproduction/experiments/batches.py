"""Sums of h over all pairs for many small data sets of the paper's synthetic models at once.

Two hundred repeats of an experiment with 500 data sets in each cell are 10 million data sets: too many for
one call of :func:`wellcal.skce` each. All predictions are N(c 1_d, s^2 I) with one s, which makes h cheap.
Every cell holds some of these sums to the library (`estimators.estimate`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from reproduction.tasks import FloatArray

_TILE = 128
_ELEMENTS = 1 << 15  # of a block of pairs that stays in the cache
_FEATURES = 24
_ACROSS = 32  # more data sets in a chunk than this make passes longer than the cache
_CENTRE = 0.5


@dataclass(frozen=True)
class PairSums:
    """Sums of h over pairs of different cases, and of cases with themselves, ``(B,)`` each."""

    different: FloatArray
    same: FloatArray


def pair_sums(centres: FloatArray, y: FloatArray, spread: float, lengthscale: float) -> PairSums:
    """Sums for B data sets of n cases: centres ``(B, n)``, targets ``(B, n, d)``."""
    n = y.shape[1]
    by_features = y.shape[2] == 1 and n > _TILE
    sums = _sums_by_features if by_features else _sums_by_tiles
    chunk = max(1, _ELEMENTS // (_FEATURES * _ACROSS if by_features else min(n, _TILE) ** 2))
    parts = [
        sums(centres[at : at + chunk], y[at : at + chunk], spread, lengthscale)
        for at in range(0, len(y), chunk)
    ]
    return PairSums(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("different", "same")))


# -- any dimension ---------------------------------------------------------------------------


def _sums_by_tiles(centres: FloatArray, y: FloatArray, spread: float, lengthscale: float) -> PairSums:
    d, n = y.shape[2], y.shape[1]
    different, same = np.zeros(len(y)), np.zeros(len(y))
    left, right = _exponents(centres, y, spread)
    weights = ((1.0 + spread**2) ** (-0.5 * d), (1.0 + 2.0 * spread**2) ** (-0.5 * d))
    rate = math.sqrt(d) / lengthscale
    for i in range(0, n, _TILE):
        rows = slice(i, i + _TILE)
        for j in range(0, i + 1, _TILE):
            columns = slice(j, j + _TILE)
            tiles = [a[:, rows] @ np.swapaxes(b[:, columns], 1, 2) for a, b in zip(left, right, strict=True)]
            h = _combine(tiles, weights)
            gaps = np.abs(centres[:, rows, None] - centres[:, None, columns])
            gaps *= -rate
            h *= np.exp(gaps, out=gaps)
            total = h.sum(axis=(1, 2))
            if i == j:
                trace = np.einsum("bii->b", h)
                same += trace
                different += total - trace
            else:
                different += 2.0 * total
    return PairSums(different, same)


def _combine(tiles: list[FloatArray], weights: tuple[float, float]) -> FloatArray:
    """k(y, y') - E k(Z, y') - E k(y, Z') + E k(Z, Z') from the exponents of each."""
    observed, left, right, both = (np.exp(tile, out=tile) for tile in tiles)
    left += right
    left *= weights[0]
    observed -= left
    both *= weights[1]
    observed += both
    return observed


def _exponents(
    centres: FloatArray, y: FloatArray, spread: float
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Exponents of the four terms of h as products of two matrices: left and right factors."""
    d, one = y.shape[2], np.ones_like(centres)
    total, squared = y.sum(axis=2), np.einsum("bnd,bnd->bn", y, y)
    half = 0.5 / (1.0 + spread**2)
    quarter = 0.5 / (1.0 + 2.0 * spread**2)
    observed = [np.dstack([y, -0.5 * squared, one]), np.dstack([y, one, -0.5 * squared])]
    predicted = np.dstack([-half * d * centres**2, 2.0 * half * centres, -half * one])
    target = np.dstack([one, total, squared])
    both = [
        np.dstack([-quarter * d * centres**2, 2.0 * quarter * d * centres, -quarter * d * one]),
        np.dstack([one, centres, centres**2]),
    ]
    return [observed[0], predicted, target, both[0]], [observed[1], target, predicted, both[1]]


# -- one dimension ---------------------------------------------------------------------------


def _sums_by_features(centres: FloatArray, y: FloatArray, spread: float, lengthscale: float) -> PairSums:
    """In one dimension k_Y is a sum of products of features, and k_P decays along sorted predictions.

    With f_k(x) = exp(-x^2 / 2) x^k / sqrt(k!) the Gaussian kernel is the sum of f_k(x) f_k(x'); centred at
    0.5, 24 of them leave out less than 1e-16 for targets within 1 of it. exp(-|c - c'| / l) along sorted c
    is a product over the gaps between, so that one pass over the cases, in their order, gives the sum over
    all pairs.
    """
    order = np.argsort(centres, axis=1)
    centres, y = (np.take_along_axis(a, order, axis=1) for a in (centres, y[:, :, 0]))
    features = _point_features(y - _CENTRE) - _normal_features(centres - _CENTRE, spread)  # (K, B, n)
    features = np.ascontiguousarray(np.moveaxis(features, 2, 0))  # (n, K, B)
    decay = np.exp(-np.diff(centres, axis=1) / lengthscale)
    before = np.zeros_like(features[0])
    different = np.zeros(len(y))
    for i in range(1, len(features)):
        before += features[i - 1]
        before *= decay[:, i - 1]
        different += np.einsum("kb,kb->b", features[i], before)
    return PairSums(2.0 * different, cast("FloatArray", np.einsum("nkb,nkb->b", features, features)))


def _point_features(x: FloatArray) -> FloatArray:
    found = [np.exp(-0.5 * x**2)]
    for k in range(1, _FEATURES):
        found.append(found[-1] * x / math.sqrt(k))
    return np.stack(found)


def _normal_features(mean: FloatArray, spread: float) -> FloatArray:
    """Expectations of the features under N(mean, spread^2).

    exp(-x^2 / 2) times the density is that of another normal distribution, up to a factor: its moments follow
    from each other.
    """
    wide = 1.0 + spread**2
    shifted, variance = mean / wide, spread**2 / wide
    found = [np.exp(-0.5 * mean**2 / wide) / math.sqrt(wide)]
    found.append(found[0] * shifted)
    for k in range(2, _FEATURES):
        found.append((shifted * found[-1] + math.sqrt(k - 1.0) * variance * found[-2]) / math.sqrt(k))
    return np.stack(found)


# -- the true value --------------------------------------------------------------------------


def true_skce(d: int, spread: float, lengthscale: float, *, noise: float = 0.1, mean: float = 0.1) -> float:
    """SKCE of predictions N(c 1_d, spread^2 I) for targets whose first coordinate has `mean`, by quadrature.

    Examples
    --------
    >>> round(true_skce(1, 0.1, 1.0), 5), round(true_skce(10, 0.1, 1.0), 5)
    (0.11077, 0.0596)
    """
    nodes, weights = np.polynomial.legendre.leggauss(60)
    u, w = 0.5 * (nodes + 1.0), 0.5 * weights
    # Over the triangle c' < c, where the kernel on predictions is smooth, and twice that.
    c, other = u[:, None], u[:, None] * u[None, :]
    area = w[:, None] * w[None, :] * u[:, None]

    def mean_kernel(first: FloatArray, second: FloatArray, rest: FloatArray, variance: float) -> FloatArray:
        squared = (first - second) ** 2 + (d - 1.0) * rest**2
        return (1.0 + variance) ** (-0.5 * d) * np.exp(-0.5 * squared / (1.0 + variance))

    rest = c - other
    fixed = np.full_like(c, mean)
    values = (
        mean_kernel(c, other, rest, 2.0 * spread**2)
        - mean_kernel(c, fixed, rest, spread**2 + noise**2)
        - mean_kernel(fixed, other, rest, spread**2 + noise**2)
        + mean_kernel(fixed, fixed, rest, 2.0 * noise**2)
    )
    return float(2.0 * np.sum(area * values * np.exp(-math.sqrt(d) * rest / lengthscale)))
