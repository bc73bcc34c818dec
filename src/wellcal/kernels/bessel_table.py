"""Bessel functions of Matérn kernels from a table of polynomials, for many values at a time.

``f(s) = 2^(1-nu) / Gamma(nu) s^nu K_nu(s) e^s`` changes slowly: on an eighth of an octave a polynomial of
degree 11 reproduces it to rounding, at a tenth of the cost of the Bessel function.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray

SMALLEST_NU, LARGEST_NU = 0.75, 6.0
"""Where the table is as good as the Bessel function."""

FEWEST = 20_000
"""Values from which a table pays."""

_DEGREE = 11
_CELLS = 8  # in an octave
_LOWEST, _HIGHEST = -30, 11  # octaves: below the kernel is 1, above it is 0
_CHUNK = 16_384


@lru_cache(maxsize=16)
def _coefficients(nu: float) -> NDArray:
    """Coefficients ``(degree + 1, cells)`` of polynomials on [-1, 1], the highest power first."""
    octave, cell = np.divmod(np.arange((_HIGHEST - _LOWEST) * _CELLS), _CELLS)
    nodes = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    mantissa = 0.5 + (cell[None, :] + 0.5 * (nodes[:, None] + 1.0)) / (2 * _CELLS)
    s = np.ldexp(mantissa, octave + _LOWEST)
    log_value = nu * np.log(s) + math.log(2.0) * (1.0 - nu) - math.lgamma(nu)
    values = np.exp(log_value + np.log(special.kve(nu, s)))
    fitted = np.linalg.solve(_in_powers(nodes), values)
    return np.ascontiguousarray(fitted[::-1])


def _in_powers(nodes: NDArray) -> NDArray:
    """Powers ``(m, degree + 1)`` of nodes on [-1, 1]."""
    return nodes[:, None] ** np.arange(_DEGREE + 1)[None, :]


def matern(nu: float, s: NDArray) -> NDArray:
    """``2^(1-nu) / Gamma(nu) s^nu K_nu(s)``."""
    table = _coefficients(nu)
    flat = s.reshape(-1)
    out = np.empty(flat.shape)
    for some in in_chunks(len(flat), within=_CHUNK):
        x = np.minimum(flat[some], 2.0 ** (_HIGHEST - 1) * 0.99)
        mantissa, octave = np.frexp(x)
        place = (mantissa - 0.5) * (2 * _CELLS)
        cell = place.astype(np.intp)
        z = 2.0 * (place - cell) - 1.0
        index = np.maximum(octave - _LOWEST, 0) * _CELLS + cell
        total = table[0].take(index)
        for row in table[1:]:
            total *= z
            total += row.take(index)
        total *= np.exp(-x)
        out[some] = np.where(x < 2.0**_LOWEST, 1.0, total)
    return out.reshape(s.shape)
