"""L1 distances of all pairs of rows, by a loop that numba compiles (the extra ``fast``) when it pays.

SciPy uses no vector instructions for them. Everything else that takes time is a matrix product or an
exponential, for which NumPy does.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from wellcal._arrays.namespaces import NDArray

LOADING = 3e9
"""Differences that take SciPy .7 s, as long as numba takes to load the loop: 10,000 cases of 60 classes."""

_APART = 8  # numbers; columns a power of two apart would share few places of the cache
_by_scipy = [0.0]  # differences so far in this process


def l1_distances(a: NDArray, b: NDArray) -> NDArray:
    """Sums of absolute differences between all rows of two arrays of one type, ``(len(a), len(b))``.

    SciPy and the loop add up in the same order, in double precision: no digit depends on which one is used.

    Examples
    --------
    >>> l1_distances(np.array([[0.0, 1.0], [2.0, 2.0]]), np.array([[1.0, 1.0]]))
    array([[1.],
           [2.]])
    """
    loop = _loop() if _by_scipy[0] >= LOADING else None
    if loop is None:
        _by_scipy[0] += float(a.size) * len(b)
        return cdist(a, b, "cityblock").astype(a.dtype, copy=False)
    size = a.shape[1] + a.shape[1] % 2
    rows, columns = np.zeros((len(a), size)), np.zeros((size, len(b) + _APART))
    rows[:, : a.shape[1]], columns[: a.shape[1], : len(b)] = a, b.T
    out = np.zeros((len(a), len(b)))
    loop(rows, columns, out)
    return out.astype(a.dtype, copy=False)


@lru_cache(maxsize=1)
def _loop() -> Callable[[NDArray, NDArray, NDArray], None] | None:
    """Compile the loop, or load it from numba's cache; None without numba."""
    if importlib.util.find_spec("numba") is None:
        return None
    numba: Any = importlib.import_module("numba")
    try:
        return numba.njit(nogil=True, cache=True)(_add_differences)
    except RuntimeError:  # no folder for the cache
        return numba.njit(nogil=True)(_add_differences)


def _add_differences(rows: Any, columns: Any, out: Any) -> None:
    """Add up two coordinates of two rows at a time: each number that is read serves two pairs."""
    for i in range(0, rows.shape[0], 2):
        after = min(i + 1, rows.shape[0] - 1)  # an odd last row is its own partner, with equal sums
        first, second = out[i], out[after]
        for c in range(0, rows.shape[1], 2):
            x0, x1, z0, z1 = rows[i, c], rows[i, c + 1], rows[after, c], rows[after, c + 1]
            y0, y1 = columns[c], columns[c + 1]
            for j in range(out.shape[1]):
                one = (first[j] + abs(x0 - y0[j])) + abs(x1 - y1[j])
                other = (second[j] + abs(z0 - y0[j])) + abs(z1 - y1[j])
                first[j], second[j] = one, other
