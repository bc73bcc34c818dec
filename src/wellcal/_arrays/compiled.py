"""Loops that NumPy has no single call for, compiled where numba is installed (the extra ``fast``).

Sums of absolute differences take NumPy three passes for each coordinate, and SciPy does not use vector
instructions for them. Everything else that takes time is a matrix product or an exponential, which NumPy has.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray

_LONG = 128  # coordinates, from which a pair is a loop of its own
_IN_CACHE = 32  # long rows


@lru_cache(maxsize=1)
def can_compile() -> bool:
    """Whether numba is there. It is imported only when something is compiled."""
    return importlib.util.find_spec("numba") is not None


def is_compiled() -> bool:
    """Whether the loops are there already, so that they cost nothing but their own time."""
    return _loops.cache_info().currsize > 0


def same_digits(size: int) -> bool:
    """Whether distances in float64 of so many coordinates are SciPy's to the last digit."""
    return size < _LONG


def l1_distances(a: NDArray, b: NDArray) -> NDArray:
    """Sums of absolute differences between all rows of two arrays of one type, ``(len(a), len(b))``.

    Examples
    --------
    >>> a, b = np.array([[0.0, 1.0], [2.0, 2.0]]), np.array([[1.0, 1.0]])
    >>> l1_distances(a, b)
    array([[1.],
           [2.]])
    """
    out = np.empty((len(a), len(b)), dtype=a.dtype)
    short, long = _loops()
    # Copies, since loops are compiled once more for arrays that may not be written to.
    if a.shape[1] < _LONG:
        short(np.array(a, order="C"), np.array(b.T, order="C"), out)
    else:
        long(np.array(a, order="C"), np.array(b, order="C"), out)
    return out


@lru_cache(maxsize=1)
def _loops() -> tuple[Callable[..., None], Callable[..., None]]:
    numba: Any = importlib.import_module("numba")

    def short(a: Any, columns: Any, out: Any) -> None:
        # Four coordinates at a time, so that sums are written a quarter as often; added up in order.
        size = a.shape[1]
        for i in range(a.shape[0]):
            row = out[i]
            row[:] = 0
            for c in range(0, size - 3, 4):
                x0, x1, x2, x3 = a[i, c], a[i, c + 1], a[i, c + 2], a[i, c + 3]
                y0, y1, y2, y3 = columns[c], columns[c + 1], columns[c + 2], columns[c + 3]
                for j in range(row.shape[0]):
                    first = (row[j] + abs(x0 - y0[j])) + abs(x1 - y1[j])
                    row[j] = (first + abs(x2 - y2[j])) + abs(x3 - y3[j])
            for c in range(size - size % 4, size):
                x0, y0 = a[i, c], columns[c]
                for j in range(row.shape[0]):
                    row[j] += abs(x0 - y0[j])

    def long(a: Any, b: Any, out: Any) -> None:
        # Two rows by two: each number that is read serves two pairs. An odd last one meets itself twice.
        # Some rows of one side stay in the cache while those of the other go by.
        for start in range(0, b.shape[0], _IN_CACHE):
            stop = min(start + _IN_CACHE, b.shape[0])
            for i in range(0, a.shape[0], 2):
                after = min(i + 1, a.shape[0] - 1)
                x0, x1 = a[i], a[after]
                for j in range(start, stop, 2):
                    behind = min(j + 1, stop - 1)
                    y0, y1 = b[j], b[behind]
                    s00, s01 = abs(x0[0] - y0[0]), abs(x0[0] - y1[0])
                    s10, s11 = abs(x1[0] - y0[0]), abs(x1[0] - y1[0])
                    for c in range(1, x0.shape[0]):
                        s00 += abs(x0[c] - y0[c])
                        s01 += abs(x0[c] - y1[c])
                        s10 += abs(x1[c] - y0[c])
                        s11 += abs(x1[c] - y1[c])
                    out[i, j], out[i, behind], out[after, j], out[after, behind] = s00, s01, s10, s11

    # Long sums in another order: vector instructions add several at a time.
    options: Any = {"nogil": True}
    return numba.njit(**options)(short), numba.njit(**options, fastmath={"reassoc", "contract", "nsz"})(long)
