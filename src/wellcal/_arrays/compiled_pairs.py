"""Sums over pairs of points whose kernel decays with their L1 distance, in one compiled loop.

A distance, an exponential and a product for each pair, and nothing of it is written to memory but sums. NumPy
takes five passes over a tile for that. Compiled by numba (the extra ``fast``).
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray

MOST = 128
"""Coordinates, or features, from which tiles are as quick: long sums are matrix products."""

_LINE, _ODD = 512, 256  # numbers: lines of a table are an odd multiple of half of the first long
_ROOM = 5, 192  # lines, and numbers beside them, that the loop has for itself


def pair_sums(
    a: NDArray, b: NDArray, left: NDArray, right: NDArray, rate: float, first: NDArray | None = None
) -> tuple[NDArray, NDArray]:
    """Sums over columns and over rows of ``exp(rate * |a_i - b_j|_1) <left_i, right_j>``, in float64.

    Parameters
    ----------
    a, b
        Points ``(r, D)`` and ``(m, D)``.
    left, right
        Features ``(r, M)`` and ``(m, M)``.
    rate
        A negative number.
    first
        For each row the first column that counts; None where all of them do.

    Examples
    --------
    >>> a, b = np.array([[0.0, 1.0]]), np.array([[0.0, 1.0], [2.0, 2.0]])
    >>> across, down = pair_sums(a, b, np.ones((1, 1)), np.array([[3.0], [0.0]]), -1.0)
    >>> across, down
    (array([3.]), array([3., 0.]))
    """
    r, m = len(a), len(b)
    begins: NDArray = np.zeros(r + r % 2, dtype=np.intp)
    if first is not None:
        begins[:r] = np.clip(first, 0, m)
    rows, features = _rows(a), _rows(left)
    size = rows.shape[1]
    line = m + _ROOM[1]
    line += (_ODD - line) % _LINE
    table = np.zeros((size + features.shape[1] + _ROOM[0], line))
    table[: b.shape[1], :m] = b.T
    table[size : size + right.shape[1], :m] = right.T
    across = np.zeros(len(rows))
    down: NDArray = _loops().pair_sums(rows, features, table, m, float(rate), begins, across)
    return across[:r], down


def exponentials(x: NDArray) -> NDArray:
    """exp of numbers ``(n,)`` that are not positive, as the loop has it.

    Within 2e-16 of the truth, relatively, down to exp(-708), and zero below.

    Examples
    --------
    >>> exponentials(np.array([0.0, -1.0, -800.0])).round(4)
    array([1.    , 0.3679, 0.    ])
    """
    out = np.empty(len(x))
    _loops().exponentials(np.array(x, dtype=np.float64), out)
    return out


@lru_cache(maxsize=1)  # to look up a version takes as long as a tile
def compiled_by() -> str:
    """For the provenance of a result."""
    return f"numba {version('numba')}"


@lru_cache(maxsize=1)
def _loops() -> Any:
    return importlib.import_module("wellcal._arrays.machine_loops")


def _rows(values: NDArray) -> NDArray:
    """An even number of rows and columns: what is added is zero."""
    r, size = values.shape
    out = np.zeros((r + r % 2, size + size % 2))
    out[:r, :size] = values
    return out
