"""Quadratic forms of inverse matrices, entry by entry over arrays of matrices.

The factorization is unrolled over the entries, so that it is an elementwise expression like any other rule.
Its rounding errors reach a quadratic form q multiplied by the condition number, and exp(-q / 2) by q
once more: where q is large, NumPy repeats it in its widest type.
"""

from __future__ import annotations

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, is_numpy
from wellcal._arrays.ops import Ops

Terms = tuple[Array, ...]
"""An entry of a matrix as a sum of terms, so that nothing is lost before it is needed."""

_WIDER_ABOVE = 8.0  # below, rounding of q is less than eight times that of its factors
_WIDER_BELOW = 3000.0  # from here on exp(-q / 2) is 0


def quadratic_form(ops: Ops, matrix: list[list[Terms]], x: tuple[Array, ...]) -> tuple[Array, Array]:
    """Return ``x' S^-1 x`` and ``log |S|`` for positive definite S, given by its lower triangle."""
    quadratic, pivots = _solved(_summed(matrix), x)
    log_determinant: Array = sum(map(ops.log, pivots))
    if is_numpy(ops.xp):
        quadratic = _in_widest_type(ops, matrix, x, quadratic)
    return quadratic, log_determinant


def _in_widest_type(ops: Ops, matrix: list[list[Terms]], x: tuple[NDArray, ...], quadratic: NDArray) -> Array:
    """Repeat large quadratic forms in extended precision, where the machine has it."""
    terms = [term for row in matrix for entry in row for term in entry]

    def again(_: NDArray, *values: NDArray) -> NDArray:
        wide = (value.astype(np.longdouble) for value in values)
        right = tuple(next(wide) for _ in x)
        rows = _summed([[tuple(next(wide) for _ in entry) for entry in row] for row in matrix])
        return _solved(rows, right)[0].astype(np.float64)

    needed = (quadratic > _WIDER_ABOVE) & (quadratic < _WIDER_BELOW)
    return ops.amend(quadratic, needed, (quadratic, *x, *terms), again)


def _summed(matrix: list[list[Terms]]) -> list[list[Array]]:
    return [[sum(entry[1:], start=entry[0]) for entry in row] for row in matrix]


def _solved(rows: list[list[Array]], x: tuple[Array, ...]) -> tuple[Array, list[Array]]:
    """Return ``x' S^-1 x`` and the pivots of S."""
    lower, pivots = _factorize(rows)
    quadratic: Array = 0.0
    for pivot, entry in zip(pivots, _forward(lower, x), strict=True):
        quadratic = quadratic + entry**2 / pivot
    return quadratic, pivots


def _factorize(rows: list[list[Array]]) -> tuple[list[list[Array]], list[Array]]:
    """L (strictly lower, unit diagonal) and D of ``S = L D L'``."""
    lower: list[list[Array]] = []
    pivots: list[Array] = []
    for i, entries in enumerate(rows):
        scaled: list[Array] = []  # L_ij D_j
        row: list[Array] = []
        for j in range(i):
            entry = entries[j]
            for k in range(j):
                entry = entry - scaled[k] * lower[j][k]
            scaled.append(entry)
            row.append(entry / pivots[j])
        pivot = entries[i]
        for k in range(i):
            pivot = pivot - scaled[k] * row[k]
        lower.append(row)
        pivots.append(pivot)
    return lower, pivots


def _forward(lower: list[list[Array]], x: tuple[Array, ...]) -> list[Array]:
    """Solve L f = x."""
    out: list[Array] = []
    for i, right in enumerate(x):
        for k in range(i):
            right = right - lower[i][k] * out[k]
        out.append(right)
    return out
