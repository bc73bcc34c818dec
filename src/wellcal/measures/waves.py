"""Sums of cosines of many waves over many points, without a table of points and waves."""

from __future__ import annotations

import math

import numpy as np
from scipy import fft

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.namespaces import NDArray

_CELLS = 16
"""Cells for each wave: within one, the phase of the fastest wave moves by at most pi / 32 either way."""

_TERMS = 10
"""Terms of Taylor's series: what is left out is at most (pi / 32)^10 / 10! = 3e-17."""


def cosine_sums(weights: NDArray, points: NDArray, waves: int) -> NDArray:
    r"""Sums :math:`\sum_i w_i \cos(\pi k x_i)` for k = 0 .. `waves`, for points of [0, 1].

    The interval is cut into cells. Within a cell, cosines are polynomials in the distance from its middle, so
    that all a cell needs to know are a few moments of its points; cosine and sine transforms of the moments
    then give all waves at once.

    Examples
    --------
    >>> w, x = np.array([1.0, 2.0]), np.array([0.25, 1.0])
    >>> cosine_sums(w, x, 2).round(12)
    array([ 3.        , -1.29289322,  2.        ])
    """
    cells: int = fft.next_fast_len(_CELLS * max(waves, 4), real=True)
    moments = np.zeros((_TERMS, cells))
    for rows in in_chunks(len(points), within=max(budget.cache // 8, 4 * cells)):
        place = points[rows] * cells
        cell = np.minimum(place.astype(np.intp), cells - 1)
        place -= cell
        place -= 0.5  # from the middle, in units of a cell
        weighted = weights[rows].copy()
        for moment in moments:
            moment += np.bincount(cell, weighted, cells)
            weighted *= place
    k = np.arange(waves + 1)
    even = np.asarray(fft.dct(moments[0::2], type=2, axis=1))[:, : waves + 1]
    odd = np.zeros((len(moments[1::2]), waves + 1))
    odd[:, 1:] = np.asarray(fft.dst(moments[1::2], type=2, axis=1))[:, :waves]
    step = math.pi * k / cells
    total, power = np.zeros(waves + 1), np.full(waves + 1, 0.5)  # SciPy's transforms are doubled
    for term in range(_TERMS):
        # The derivatives of the cosine, one after the other: cos, -sin, -cos, sin.
        part = even[term // 2] if term % 2 == 0 else odd[term // 2]
        total += (power if term % 4 in (0, 3) else -power) * part
        power = power * step / (term + 1.0)
    return total
