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
_APART = 8  # numbers


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


def l1_distances(a: NDArray, b: NDArray, factor: float = 1.0) -> NDArray:
    """Sums of absolute differences between all rows of two arrays of one type, ``(len(a), len(b))``.

    Sums are multiplied by `factor` where they are made, which takes no time there.

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
        short(*_in_twos(a, b), a.dtype.type(factor), out)
    else:
        long(np.array(a, order="C"), np.array(b, order="C"), out)
        if factor != 1.0:
            out *= factor
    return out


def _in_twos(a: NDArray, b: NDArray) -> tuple[NDArray, NDArray]:
    """Rows, and columns of others, with two pairs of coordinates or more: those that are added are zero.

    Columns are a little longer than they have to be. If they began a power of two apart, all of them would
    have to share the same few places of the cache.
    """
    size = a.shape[1]
    even = max(4, size + size % 2)
    rows = np.zeros((len(a), even), dtype=a.dtype)
    columns = np.zeros((even, len(b) + _APART), dtype=a.dtype)
    rows[:, :size], columns[:size, : len(b)] = a, b.T
    return rows, columns


@lru_cache(maxsize=1)
def _loops() -> tuple[Callable[..., None], Callable[..., None]]:
    numba: Any = importlib.import_module("numba")

    def short(a: Any, columns: Any, factor: Any, out: Any) -> None:
        # Two rows by two coordinates: each number that is read serves two pairs, and sums are read and
        # written half as often; added up in order. An odd last row is done twice, at the same place.
        width, last = out.shape[1], a.shape[1] - 2
        for i in range(0, a.shape[0], 2):
            after = min(i + 1, a.shape[0] - 1)
            first, second = out[i], out[after]
            x0, x1, z0, z1 = a[i, 0], a[i, 1], a[after, 0], a[after, 1]
            y0, y1 = columns[0], columns[1]
            for j in range(width):
                first[j] = abs(x0 - y0[j]) + abs(x1 - y1[j])
                second[j] = abs(z0 - y0[j]) + abs(z1 - y1[j])
            for c in range(2, last, 2):
                x0, x1, z0, z1 = a[i, c], a[i, c + 1], a[after, c], a[after, c + 1]
                y0, y1 = columns[c], columns[c + 1]
                for j in range(width):
                    one = (first[j] + abs(x0 - y0[j])) + abs(x1 - y1[j])
                    other = (second[j] + abs(z0 - y0[j])) + abs(z1 - y1[j])
                    first[j], second[j] = one, other
            x0, x1, z0, z1 = a[i, last], a[i, last + 1], a[after, last], a[after, last + 1]
            y0, y1 = columns[last], columns[last + 1]
            for j in range(width):
                one = factor * ((first[j] + abs(x0 - y0[j])) + abs(x1 - y1[j]))
                other = factor * ((second[j] + abs(z0 - y0[j])) + abs(z1 - y1[j]))
                first[j], second[j] = one, other

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
