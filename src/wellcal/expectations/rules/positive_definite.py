"""Quadratic forms of inverse matrices, entry by entry over arrays of matrices.

The factorisation is unrolled over the entries, so that it is an elementwise expression like any other rule.
Its rounding errors reach a quadratic form q multiplied by the condition number, and exp(-q / 2) by q
once more; where q is large one step of refinement with residuals in doubled precision takes them back.
"""

from __future__ import annotations

from wellcal._arrays.namespaces import Array, stop_gradient
from wellcal._arrays.ops import Ops

Terms = tuple[Array, ...]
"""An entry of a matrix as a sum of terms, so that nothing is lost before it is needed."""

_REFINE_ABOVE = 8.0
_REFINE_BELOW = 3000.0  # from here on exp(-q / 2) is 0
_SPLITTABLE = 1e298  # halves of larger entries overflow
_SPLITTER = 134217729.0  # 2^27 + 1: halves of a product of two halves are exact


def quadratic_form(ops: Ops, matrix: list[list[Terms]], x: tuple[Array, ...]) -> tuple[Array, Array]:
    """``x' S^-1 x`` and ``log |S|`` for positive definite S, given by its lower triangle."""
    rounded = [[sum(entry[1:], start=entry[0]) for entry in row] for row in matrix]
    lower, pivots = _factorise(rounded)
    forward = _forward(lower, x)
    quadratic: Array = 0.0
    log_determinant: Array = 0.0
    for pivot, entry in zip(pivots, forward, strict=True):
        quadratic = quadratic + entry**2 / pivot
        log_determinant = log_determinant + ops.log(pivot)
    return quadratic + _correction(ops, matrix, x, quadratic), log_determinant


def relative_size(
    matrix: list[list[Array]], x: tuple[Array, ...], change: list[list[Array]]
) -> tuple[Array, Array, Array]:
    """``x' S^-1 x``, and the traces of ``S^-1 E`` and of its square, to a few digits.

    S is given by its lower triangle, the symmetric E in full. Entry by entry as above: a solver that is
    called for each pair of cases would be slow, and slower still where it is differentiated.
    """
    d = range(len(matrix))
    lower, pivots = _factorise(matrix)
    columns = [_forward(lower, tuple(change[i][j] for i in d)) for j in d]
    whitened = [_forward(lower, tuple(columns[j][i] for j in d)) for i in d]  # L^-1 E L^-T
    quadratic: Array = 0.0
    trace: Array = 0.0
    square: Array = 0.0
    for i, entry in enumerate(_forward(lower, x)):
        quadratic = quadratic + entry**2 / pivots[i]
        trace = trace + whitened[i][i] / pivots[i]
        for j in d:
            square = square + whitened[i][j] ** 2 / (pivots[i] * pivots[j])
    return quadratic, trace, square


def _factorise(rows: list[list[Array]]) -> tuple[list[list[Array]], list[Array]]:
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


def _correction(ops: Ops, matrix: list[list[Terms]], x: tuple[Array, ...], quadratic: Array) -> Array:
    """What refinement adds to a large quadratic form; a constant for differentiation."""
    d = len(x)
    sizes = [len(entry) for row in matrix for entry in row]
    flat = [term for row in matrix for entry in row for term in entry]
    arguments = tuple(map(stop_gradient, (quadratic, *x, *flat)))

    def refined(value: Array, *rest: Array) -> Array:
        terms = iter(rest[d:])
        entries = iter([tuple(next(terms) for _ in range(size)) for size in sizes])
        pairs = [[_sum_exactly(next(entries)) for _ in range(i + 1)] for i in range(d)]
        return _refined(pairs, rest[:d]) - value

    largest = stop_gradient(sum(entry for row in matrix for entry in row[-1]))
    needed = (arguments[0] > _REFINE_ABOVE) & (arguments[0] < _REFINE_BELOW) & (largest < _SPLITTABLE)
    return ops.amend(ops.xp.zeros_like(arguments[0]), needed, arguments, refined)


def _refined(pairs: list[list[tuple[Array, Array]]], x: tuple[Array, ...]) -> Array:
    """``z' (x + r)`` with S z = x solved in working precision and r = x - S z in doubled precision.

    It differs from x' S^-1 x by r' S^-1 r only.
    """
    d = len(x)
    lower, pivots = _factorise([[high for high, _ in row] for row in pairs])
    z = [f / p for f, p in zip(_forward(lower, x), pivots, strict=True)]
    for i in range(d - 1, -1, -1):
        for k in range(i + 1, d):
            z[i] = z[i] - lower[k][i] * z[k]
    total, lost = _product(z[0], x[0])
    for i in range(1, d):
        total, lost = _accumulate(total, lost, z[i], x[i])
    for i in range(d):
        high, low = x[i], 0.0 * x[i]
        for j in range(d):
            entry, rest = pairs[max(i, j)][min(i, j)]
            high, low = _accumulate(high, low, -entry, z[j])
            low = low - rest * z[j]
        lost = lost + z[i] * (high + low)
    return total + lost


def _sum_exactly(terms: Terms) -> tuple[Array, Array]:
    high, low = terms[0], 0.0 * terms[0]
    for term in terms[1:]:
        high, error = _two_sum(high, term)
        low = low + error
    return high, low


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Sum and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """Product and its rounding error (Dekker)."""
    total = a * b
    a_high, b_high = (_SPLITTER * t - (_SPLITTER * t - t) for t in (a, b))
    a_low, b_low = a - a_high, b - b_high
    return total, ((a_high * b_high - total) + a_high * b_low + a_low * b_high) + a_low * b_low


def _accumulate(total: Array, lost: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """Add a product to a sum in doubled precision."""
    product, product_error = _product(a, b)
    total, sum_error = _two_sum(total, product)
    return total, lost + (product_error + sum_error)
