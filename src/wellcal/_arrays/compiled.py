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

_LONG = 64  # coordinates, from which a pair is a loop of its own


@lru_cache(maxsize=1)
def can_compile() -> bool:
    """Whether numba is there. It is imported only when something is compiled."""
    return importlib.util.find_spec("numba") is not None


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
    if a.shape[1] < _LONG:
        short(np.ascontiguousarray(a), np.ascontiguousarray(b.T), out)
    else:
        long(np.ascontiguousarray(a), np.ascontiguousarray(b), out)
    return out


@lru_cache(maxsize=1)
def _loops() -> tuple[Callable[..., None], Callable[..., None]]:
    numba: Any = importlib.import_module("numba")

    def short(a: Any, columns: Any, out: Any) -> None:
        for i in range(a.shape[0]):
            row = out[i]
            row[:] = 0
            for c in range(a.shape[1]):
                x, column = a[i, c], columns[c]
                for j in range(column.shape[0]):
                    row[j] += abs(x - column[j])

    def long(a: Any, b: Any, out: Any) -> None:
        for i in range(a.shape[0]):
            x = a[i]
            for j in range(b.shape[0]):
                y = b[j]
                total = abs(x[0] - y[0])
                for c in range(1, x.shape[0]):
                    total += abs(x[c] - y[c])
                out[i, j] = total

    # Sums in another order: vector instructions add several at a time.
    options: Any = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz"}}
    return numba.njit(**options)(short), numba.njit(**options)(long)
