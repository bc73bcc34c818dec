"""Loops in machine code: this module needs numba, and only `compiled_pairs.py` imports it, when they pay.

Each loop over columns is a function of its own, of few arrays: a compiler that cannot prove that arrays are
apart looks at their addresses, which it does for a few of them only, and else makes no vector instructions.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

numba: Any = importlib.import_module("numba")

_LEAST = -708.0  # exponentials below are zero: they are less than 4e-308
_LOG2E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""log 2 in two parts; products of the first with an exponent are exact."""

_ROUNDING = 6755399441055744.0  # 1.5 * 2^52: what is added to it is rounded to a whole number
_BIAS, _PLACES = np.int64(1023), np.int64(52)  # of an exponent in float64

_SERIES = (
    2.5100377619606372e-08,
    2.7620078203806394e-07,
    2.7557268476553695e-06,
    2.4801521317484083e-05,
    0.00019841269863042963,
    0.0013888888917199863,
    0.008333333333330063,
    0.04166666666662416,
    0.16666666666666669,
    0.5000000000000001,
)
"""``(exp(r) - 1 - r) / r^2`` for ``|r| <= log(2) / 2``, highest power first: its Chebyshev interpolant."""

_IN_ORDER = {"contract", "nsz"}
"""What a compiler may do with sums. To reorder them would remove `_ROUNDING`."""

_ANY_ORDER = {"reassoc", "contract", "nsz"}


def _compiled(order: set[str]) -> Any:
    """A decorator, with what was compiled stored beside the module where that can be written to."""

    def decorate(function: Any) -> Any:
        options: dict[str, Any] = {"nogil": True, "fastmath": order}
        try:
            return numba.njit(**options, cache=True)(function)
        except RuntimeError:  # nowhere to store it
            return numba.njit(**options)(function)

    return decorate


@_compiled(_IN_ORDER)
def exponential(x: Any) -> Any:
    """exp of a number that is not positive, to the last digit but one; zero where it has not all digits."""
    inside = max(x, _LEAST)
    shifted = inside * _LOG2E + _ROUNDING
    whole = shifted - _ROUNDING
    r = (inside - whole * _LN2_HIGH) - whole * _LN2_LOW
    p = _SERIES[0]
    for coefficient in _SERIES[1:]:
        p = p * r + coefficient
    p = (p * (r * r) + r) + 1.0
    power = np.int64((np.float64(shifted).view(np.int64) + _BIAS) << _PLACES).view(np.float64)
    return p * power if x >= _LEAST else 0.0


@_compiled(_IN_ORDER)
def exponentials(x: Any, out: Any) -> None:
    """Of an array ``(n,)``."""
    for j in range(out.shape[0]):
        out[j] = exponential(x[j])


@_compiled(_IN_ORDER)
def _distances(a: Any, i: Any, table: Any, first: Any, second: Any) -> None:
    """Sums of absolute differences of rows i and i + 1 with all columns, two coordinates at a time."""
    m = first.shape[0]
    for c in range(0, a.shape[1], 2):
        x0, x1, z0, z1 = a[i, c], a[i, c + 1], a[i + 1, c], a[i + 1, c + 1]
        y0, y1 = table[c, :m], table[c + 1, :m]
        if c == 0:
            for j in range(m):
                first[j] = abs(x0 - y0[j]) + abs(x1 - y1[j])
                second[j] = abs(z0 - y0[j]) + abs(z1 - y1[j])
        else:
            for j in range(m):
                one = (first[j] + abs(x0 - y0[j])) + abs(x1 - y1[j])
                other = (second[j] + abs(z0 - y0[j])) + abs(z1 - y1[j])
                first[j], second[j] = one, other


@_compiled(_IN_ORDER)
def _products(a: Any, i: Any, table: Any, begin: Any, first: Any, second: Any) -> None:
    """The same with sums of products, whose columns begin at a line of the table."""
    m = first.shape[0]
    for c in range(0, a.shape[1], 2):
        x0, x1, z0, z1 = a[i, c], a[i, c + 1], a[i + 1, c], a[i + 1, c + 1]
        y0, y1 = table[begin + c, :m], table[begin + c + 1, :m]
        if c == 0:
            for j in range(m):
                first[j] = x0 * y0[j] + x1 * y1[j]
                second[j] = z0 * y0[j] + z1 * y1[j]
        else:
            for j in range(m):
                one = (first[j] + x0 * y0[j]) + x1 * y1[j]
                other = (second[j] + z0 * y0[j]) + z1 * y1[j]
                first[j], second[j] = one, other


@_compiled(_IN_ORDER)
def _joined(exponents: Any, products: Any, rate: Any, down: Any) -> None:
    """h in the place of products, added to the sums of columns."""
    for j in range(products.shape[0]):
        value = exponential(rate * exponents[j]) * products[j]
        products[j] = value
        down[j] += value


@_compiled(_ANY_ORDER)
def _total(values: Any) -> Any:
    total = 0.0
    for j in range(values.shape[0]):
        total += values[j]
    return total


@_compiled(_IN_ORDER)
def pair_sums(a: Any, left: Any, table: Any, m: Any, rate: Any, first: Any, across: Any) -> Any:
    """Sums along rows and columns of ``exp(rate * |a_i - b_j|_1) <left_i, right_j>``.

    Rows ``(r, D)`` and ``(r, M)``; r, D and M are even. Row i begins at column ``first[i]``. The `table`
    holds the D coordinates of m columns, their M features, and room for five lines more. Sums along rows are
    added to `across`, those along columns are returned.

    A processor takes addresses for the same whose last twelve bits are, and waits: lines are so long that two
    of them are half of 4096 bytes apart, and in the room each begins elsewhere.
    """
    begin = a.shape[1]
    room = begin + left.shape[1]
    down = table[room, 64 : 64 + m]
    d0, d1 = table[room + 1, 128 : 128 + m], table[room + 2, 128 : 128 + m]
    g0, g1 = table[room + 3, 192 : 192 + m], table[room + 4, 192 : 192 + m]
    down[:] = 0.0
    for i in range(0, a.shape[0], 2):
        _distances(a, i, table, d0, d1)
        _products(left, i, table, begin, g0, g1)
        g0[: first[i]] = 0.0
        g1[: first[i + 1]] = 0.0
        _joined(d0, g0, rate, down)
        _joined(d1, g1, rate, down)
        across[i] += _total(g0)
        across[i + 1] += _total(g1)
    return down
