r"""Integrals of :math:`|f|` over [0, 1] for a sum of cosines f that the heat kernel has smoothed.

With bandwidth s, :math:`f(t) = \sum_k d_k \cos(\pi k t)` and :math:`d_k = c_k \exp(-(s \pi k)^2 / 2)`,
doubled for k > 0. A cosine transform knows f on a fine grid. Zeros lie where its sign changes; there f and
its primitive are polynomials through ten neighbours on the grid, exact to rounding since fast waves are
damped.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import fft

from wellcal._arrays.namespaces import NDArray

_ENOUGH = 2.8  # waves times bandwidth: exp(-(pi * 2.8)^2 / 2) is below 1e-16
_GRID = 16  # points for each half wave of the fastest
_OFFSETS = np.arange(-4, 6)  # neighbours of a cell of the grid, from its left end


def _polynomials_through(places: NDArray) -> NDArray:
    """Coefficients, by powers, of the polynomials that are 1 at one of the places and 0 at the others."""
    rows: list[NDArray] = []
    for k in range(len(places)):
        others = np.delete(places, k)
        powers: NDArray = np.asarray(np.poly(others))[::-1]
        rows.append(powers / math.prod((places[k] - others).tolist()))  # of halves of whole numbers: exact
    return np.array(rows)


_FITTED = _polynomials_through(_OFFSETS - 0.5)
"""Values at neighbours to coefficients of powers of u - 1/2, where u is the place in the cell."""


def waves_at(bandwidth: float) -> int:
    """Number of waves that a kernel of this bandwidth lets through."""
    return math.ceil(_ENOUGH / bandwidth) + 1


def damping(waves: int, bandwidth: float) -> NDArray:
    """Factors of the coefficients, ``(waves + 1,)``."""
    k = np.arange(waves + 1)
    return np.where(k == 0, 1.0, 2.0) * np.exp(-0.5 * (bandwidth * math.pi * k) ** 2)


def primitive(t: NDArray, waves: int) -> NDArray:
    """Integrals of ``cos(pi k x)`` from 0 to t, ``(len(t), waves + 1)``."""
    k = np.arange(1, waves + 1) * math.pi
    return np.concatenate([t[:, None], np.sin(t[:, None] * k) / k], axis=1)


def uniform_cuts(waves: int) -> NDArray:
    """The points of the grid, for those who cannot look for zeros."""
    return np.linspace(0.0, 1.0, _GRID * waves + 1)


class Integral(NamedTuple):
    """The integral of the absolute value, its derivative by the bandwidth, and where the sign changes."""

    value: float
    slope: float
    cuts: NDArray
    """0, the zeros in between, and 1."""
    signs: NDArray
    """Between cuts."""


def absolute_integral(coefficients: NDArray, bandwidth: float) -> Integral:
    """Integral of |f| for the coefficients c, of which those of damped waves do not count.

    Examples
    --------
    >>> found = absolute_integral(np.array([0.0, 1.0]), 0.1)  # 2 exp(-0.005 pi^2) cos(pi t)
    >>> found.cuts, found.signs
    (array([0. , 0.5, 1. ]), array([ 1., -1.]))
    >>> abs(found.value - 4.0 * math.exp(-0.005 * math.pi**2) / math.pi) < 1e-15
    True
    """
    waves = min(len(coefficients) - 1, waves_at(bandwidth))
    damped = damping(waves, bandwidth) * coefficients[: waves + 1]
    size: int = fft.next_fast_len(_GRID * max(waves, 16), real=True)
    padded = np.zeros(size + 1)
    padded[: waves + 1] = 0.5 * damped
    padded[0] = damped[0]
    values: NDArray = np.asarray(fft.dct(padded, type=1))
    if not np.any(values):
        return Integral(0.0, 0.0, np.array([0.0, 1.0]), np.zeros(1))
    left, inside = _sign_changes(values)
    place, slopes = _zeros(values, left)
    cuts = np.concatenate([[0.0], (left + place) / size, [1.0]])
    below = np.concatenate(
        [[0.0], damped[0] * cuts[1:-1] + _integrated(damped, size, left, place), damped[:1]]
    )
    value = float(np.sum(inside * np.diff(below)))
    # Kernels obey the heat equation: df/ds = s f'', whose integrals are differences of f'.
    inclines = np.concatenate([[0.0], slopes * size, [0.0]])
    slope = bandwidth * float(np.sum(inside * np.diff(inclines)))
    return Integral(value, slope, cuts, inside)


def _sign_changes(values: NDArray) -> tuple[NDArray, NDArray]:
    """Points of the grid after which the sign changes, and the signs in between."""
    # A value that is zero up to rounding takes the sign of what comes before it, or after it at the start.
    signs = np.sign(np.where(np.abs(values) > 1e-15 * np.max(np.abs(values)), values, 0.0))
    if not signs.all():
        known = np.flatnonzero(signs)
        signs = signs[
            known[np.clip(np.searchsorted(known, np.arange(len(signs)), side="right") - 1, 0, None)]
        ]
    left = np.flatnonzero(signs[1:] != signs[:-1])
    return left, signs[np.concatenate([[0], left + 1])]


def _zeros(values: NDArray, left: NDArray) -> tuple[NDArray, NDArray]:
    """Zeros in cells of the grid, as parts of a cell, and derivatives there, for one cell as the unit.

    By false position with halved weights (Illinois).
    """
    last = len(values) - 1
    index = np.abs(left[:, None] + _OFFSETS)
    powers = values[np.where(index > last, 2 * last - index, index)] @ _FITTED  # even about both ends
    low, high = np.zeros(len(left)), np.ones(len(left))
    at_low, at_high = values[left], values[left + 1]
    middle = low
    for _ in range(8):
        width = at_high - at_low
        middle = low - at_low * (high - low) / np.where(width == 0, 1.0, width)
        middle = np.clip(middle, low, high)
        found = _polynomial(powers, middle)
        same = np.sign(found) == np.sign(at_low)
        at_high, at_low = np.where(same, 0.5 * at_high, found), np.where(same, found, 0.5 * at_low)
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return middle, _polynomial(powers[:, 1:] * np.arange(1, 10), middle)


def _integrated(damped: NDArray, size: int, left: NDArray, place: NDArray) -> NDArray:
    """Integrals of f without its mean from 0 to places in cells of the grid."""
    k = np.arange(1, len(damped))
    padded = np.zeros(size - 1)
    padded[: len(k)] = damped[1:] / (2.0 * math.pi * k)
    values = np.zeros(size + 1)
    values[1:-1] = np.asarray(fft.dst(padded, type=1))
    index = left[:, None] + _OFFSETS
    sign = np.where((index < 0) | (index > size), -1.0, 1.0)  # odd about both ends
    index = np.abs(index)
    around = values[np.where(index > size, 2 * size - index, index)] * sign
    return _polynomial(around @ _FITTED, place)


def _polynomial(powers: NDArray, place: NDArray) -> NDArray:
    """Polynomials in ``place - 1/2``, one for each row of coefficients."""
    x, total = place - 0.5, np.zeros(len(place))
    for column in powers.T[::-1]:
        total = total * x + column
    return total
