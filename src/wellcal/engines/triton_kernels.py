"""Kernels in Triton for sums over pairs whose tiles never leave the registers.

A pair is ``exp2(-(sum_c |x_ic - x_jc|^degree)^exponent) <f_i, f_j>``. Points are stored by coordinate,
``(D, n)``. All arrays are padded with zeros: cases to whole blocks, where features that are zero make pairs
that are; coordinates and features to whole chunks. There are two ways of multiplying features:

- SPLIT: f = high + low in float16, ``high high' + high low' + low high'`` on tensor cores, accumulated in
  float32; both halves ``(n, M)``. That is float32 but for its last bits.
- otherwise one feature after another, in the type of the points, ``(M, n)``: float64 where nothing may be
  lost, which has no other way everywhere.

Sums of tiles are added up in float64. Each program owns some rows, and no two of them write to one place:
results do not depend on the order in which programs run.
"""
# Triton has no types, and its language only looks like Python.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false

from __future__ import annotations

import triton
import triton.language as tl

TRIANGLE, SQUARE, COUPLES = 0, 1, 2
"""Which pairs of blocks: those above the diagonal, all, or the first with the second, the third with ..."""


@triton.jit
def _raised(difference, DEGREE: tl.constexpr):
    if DEGREE == 2:
        return difference * difference
    else:
        return tl.abs(difference)


@triton.jit
def _distances(x, n, i, j, first, second, D, DEGREE: tl.constexpr, FEW: tl.constexpr, BLOCK: tl.constexpr):
    """``sum_c |x_ic - x_jc|^degree``: of one or two coordinates (FEW), `first` and `second`, or in fours."""
    if FEW > 0:
        total = _raised(first[:, None] - tl.load(x + j)[None, :], DEGREE)
        if FEW > 1:
            total += _raised(second[:, None] - tl.load(x + n + j)[None, :], DEGREE)
    else:
        total = tl.zeros((BLOCK, BLOCK), dtype=x.dtype.element_ty)
        for c in range(0, D, 4):
            for k in tl.static_range(4):
                row = x + (c + k) * n
                total += _raised(tl.load(row + i)[:, None] - tl.load(row + j)[None, :], DEGREE)
    return total


@triton.jit
def _kernel(total, EXPONENT: tl.constexpr, ROOT: tl.constexpr):
    """The kernel at a distance: ROOT 1 for exponent 1, 2 for 1/2, 0 for others."""
    if ROOT == 2:
        total = tl.sqrt(total)
    elif ROOT == 0:
        # The logarithm of zero is -inf, and two to that power is zero.
        total = tl.exp2(EXPONENT * tl.log2(total))
    return tl.exp2(-total)


@triton.jit
def _half(f, cases, k, M, BK: tl.constexpr):
    return tl.load(f + cases[:, None] * M + (k + tl.arange(0, BK))[None, :])


@triton.jit
def _products(
    high, low, n, i, j, own_high, own_low, M,
    SPLIT: tl.constexpr, ONE: tl.constexpr, BLOCK: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """``<f_i, f_j>``: of one chunk (ONE), whose rows are `own_high` and `own_low`, or chunk by chunk."""
    if SPLIT:
        total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        if ONE:
            a, b = _half(high, j, 0, M, BK), _half(low, j, 0, M, BK)
            # What is small comes first.
            total = tl.dot(own_low, tl.trans(a), total)
            total = tl.dot(own_high, tl.trans(b), total)
            total = tl.dot(own_high, tl.trans(a), total)
        else:
            for k in range(0, M, BK):
                a, b = _half(high, j, k, M, BK), _half(low, j, k, M, BK)
                own = _half(high, i, k, M, BK)
                total = tl.dot(_half(low, i, k, M, BK), tl.trans(a), total)
                total = tl.dot(own, tl.trans(b), total)
                total = tl.dot(own, tl.trans(a), total)
    else:
        total = tl.zeros((BLOCK, BLOCK), dtype=high.dtype.element_ty)
        for k in range(0, M, 4):
            for c in tl.static_range(4):
                row = high + (k + c) * n
                total += tl.load(row + i)[:, None] * tl.load(row + j)[None, :]
    return total


@triton.jit(do_not_specialize=["blocks", "strips", "offset", "stride"])
def row_sums(
    x, high, low, out, n, D, M, blocks, strips, offset, stride,
    PAIRS: tl.constexpr, DEGREE: tl.constexpr, FEW: tl.constexpr, ROOT: tl.constexpr, EXPONENT: tl.constexpr,
    SPLIT: tl.constexpr, ONE: tl.constexpr, BLOCK: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Sums of rows over some of the blocks of columns, ``out (strips, n)``, in float64.

    The block of rows ``offset + stride * (program 0)`` meets every `strips`-th block of columns from
    (program 1) on.
    """
    block, strip = offset + stride * tl.program_id(0).to(tl.int64), tl.program_id(1)
    n = n.to(tl.int64)
    place = tl.arange(0, BLOCK)
    i = block * BLOCK + place
    if PAIRS == 2:
        i += block * BLOCK
    first, second = tl.load(x + i), tl.load(x + i)
    if FEW > 1:
        second = tl.load(x + n + i)
    a, b = first, first  # not read
    if SPLIT and ONE:
        a, b = _half(high, i, 0, M, BK), _half(low, i, 0, M, BK)
    sums = tl.zeros((BLOCK,), dtype=tl.float64)
    start, stop, step = strip.to(tl.int64), blocks.to(tl.int64), strips
    if PAIRS == 0:
        start = block + 1 + strip
    elif PAIRS == 1:
        stop = stop - 1
    else:
        start, stop = 2 * block + 1, 2 * block + 2
    for number in range(start, stop, step):
        other = number
        if PAIRS == 1:
            other = tl.where(number < block, number, number + 1)  # all but its own
        j = other * BLOCK + place
        near = _kernel(_distances(x, n, i, j, first, second, D, DEGREE, FEW, BLOCK), EXPONENT, ROOT)
        h = near * _products(high, low, n, i, j, a, b, M, SPLIT, ONE, BLOCK, BK)
        sums += tl.sum(h, axis=1).to(tl.float64)
    if PAIRS == 2:
        tl.store(out + block * BLOCK + place, sums)
    else:
        # The block of columns that holds the rows themselves.
        if strip == 0:
            near = _kernel(_distances(x, n, i, i, first, second, D, DEGREE, FEW, BLOCK), EXPONENT, ROOT)
            h = near * _products(high, low, n, i, i, a, b, M, SPLIT, ONE, BLOCK, BK)
            if PAIRS == 0:
                h = tl.where(place[:, None] < place[None, :], h, 0.0)
            else:
                h = tl.where(place[:, None] == place[None, :], 0.0, h)
            sums += tl.sum(h, axis=1).to(tl.float64)
        tl.store(out + strip * n + i, sums)


@triton.jit(do_not_specialize=["blocks"])
def products(
    x, high, low, vectors, out, n, D, M, R, blocks,
    DEGREE: tl.constexpr, FEW: tl.constexpr, ROOT: tl.constexpr, EXPONENT: tl.constexpr,
    SPLIT: tl.constexpr, ONE: tl.constexpr, BLOCK: tl.constexpr, BK: tl.constexpr, BR: tl.constexpr,
):  # fmt: skip
    """``sum_{j != i} h_ij v_jr`` of vectors ``(n, R)``, BR of them (program 1): ``out (n, R)`` in float64."""
    block, of = tl.program_id(0).to(tl.int64), tl.program_id(1)
    n = n.to(tl.int64)
    place, columns = tl.arange(0, BLOCK), of * BR + tl.arange(0, BR)
    i = block * BLOCK + place
    first, second = tl.load(x + i), tl.load(x + i)
    if FEW > 1:
        second = tl.load(x + n + i)
    a, b = first, first  # not read
    if SPLIT and ONE:
        a, b = _half(high, i, 0, M, BK), _half(low, i, 0, M, BK)
    sums = tl.zeros((BLOCK, BR), dtype=tl.float64)
    for other in range(blocks):
        j = (block * 0 + other) * BLOCK + place  # of 64 bits, as the number of the block
        near = _kernel(_distances(x, n, i, j, first, second, D, DEGREE, FEW, BLOCK), EXPONENT, ROOT)
        h = near * _products(high, low, n, i, j, a, b, M, SPLIT, ONE, BLOCK, BK)
        h = tl.where(i[:, None] == j[None, :], 0.0, h)
        if SPLIT:
            v = tl.load(vectors + j[:, None] * R + columns[None, :])
            sums += tl.dot(h, v, input_precision="tf32x3").to(tl.float64)
        else:
            for r in tl.static_range(BR):
                v = tl.load(vectors + j * R + of * BR + r)
                one = tl.sum(h * v[None, :], axis=1)
                sums += tl.where(tl.arange(0, BR)[None, :] == r, one[:, None], 0.0)
    tl.store(out + i[:, None] * R + columns[None, :], sums)


@triton.jit(do_not_specialize=["n", "m"])
def l1_tile(x, y, out, n, m, D, BLOCK: tl.constexpr):
    """L1 distances of points ``(D, n)`` and ``(D, m)``: ``out (n, m)``."""
    place = tl.arange(0, BLOCK)
    i = tl.program_id(0).to(tl.int64) * BLOCK + place
    j = tl.program_id(1).to(tl.int64) * BLOCK + place
    total = tl.zeros((BLOCK, BLOCK), dtype=x.dtype.element_ty)
    for c in range(D):
        a = tl.load(x + c * n + i, mask=i < n, other=0.0)
        b = tl.load(y + c * m + j, mask=j < m, other=0.0)
        total += tl.abs(a[:, None] - b[None, :])
    tl.store(out + i[:, None] * m + j[None, :], total, mask=(i < n)[:, None] & (j < m)[None, :])


@triton.jit(do_not_specialize=["n", "m"])
def signed_sums(x, y, weights, out, n, m, row, column, BLOCK: tl.constexpr):
    """``sum_j w_ij sign(x_ci - y_cj)`` of one coordinate c (program 1): ``out (D, n)``.

    Weights ``(n, m)`` lie `row` and `column` apart. Each program owns some rows of one coordinate.
    """
    place = tl.arange(0, BLOCK)
    i = tl.program_id(0).to(tl.int64) * BLOCK + place
    c = tl.program_id(1).to(tl.int64)
    a = tl.load(x + c * n + i, mask=i < n, other=0.0)
    sums = tl.zeros((BLOCK,), dtype=x.dtype.element_ty)
    for start in range(0, m, BLOCK):
        j = start + place.to(tl.int64)
        b = tl.load(y + c * m + j, mask=j < m, other=0.0)
        inside = (i < n)[:, None] & (j < m)[None, :]
        w = tl.load(weights + i[:, None] * row + j[None, :] * column, mask=inside, other=0.0)
        difference = a[:, None] - b[None, :]
        sums += tl.sum(tl.where(difference > 0.0, w, tl.where(difference < 0.0, -w, 0.0)), axis=1)
    tl.store(out + c * n + i, sums, mask=i < n)


@triton.jit(do_not_specialize=["n"])
def pair_slopes(
    x, products, rows, by_points, n,
    D: tl.constexpr, DEGREE: tl.constexpr, ROOT: tl.constexpr, EXPONENT: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Sums of cases ``(n,)``, and derivatives of the sum over pairs by points ``(n, D)``, D at most 2.

    Where products of features ``(n, n)`` stood, the kernel is written, for the derivatives by features. For
    so few cases that starting kernels is what takes time: this one is twenty. Powers are those of e here.
    """
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    first = tl.load(x + i * D, mask=i < n, other=0.0)
    second = first
    if D > 1:
        second = tl.load(x + i * D + 1, mask=i < n, other=0.0)
    by_first = tl.zeros((ROWS,), dtype=x.dtype.element_ty)
    by_second = tl.zeros((ROWS,), dtype=x.dtype.element_ty)
    sums = tl.zeros((ROWS,), dtype=x.dtype.element_ty)
    for start in range(0, n, COLUMNS):
        j = start + tl.arange(0, COLUMNS).to(tl.int64)
        inside = (i < n)[:, None] & (j < n)[None, :]
        away = first[:, None] - tl.load(x + j * D, mask=j < n, other=0.0)[None, :]
        aside = away
        distance = _raised(away, DEGREE)
        if D > 1:
            aside = second[:, None] - tl.load(x + j * D + 1, mask=j < n, other=0.0)[None, :]
            distance += _raised(aside, DEGREE)
        raised = distance
        if ROOT == 2:
            raised = tl.sqrt(distance)
        elif ROOT == 0:
            raised = tl.exp2(EXPONENT * tl.log2(distance))
        # Pairs of a case with itself do not count.
        near = tl.where(i[:, None] == j[None, :], 0.0, tl.exp(-raised))
        place = products + i[:, None] * n + j[None, :]
        slope = near * tl.load(place, mask=inside, other=0.0)
        tl.store(place, near, mask=inside)
        sums += tl.sum(slope, axis=1)
        if ROOT == 2:
            slope = tl.where(raised == 0.0, 0.0, slope / tl.where(raised == 0.0, 1.0, raised))
        elif ROOT == 0:
            slope = tl.where(distance == 0.0, 0.0, slope * raised / tl.where(distance == 0.0, 1.0, distance))
        by_first += tl.sum(slope * _turned(away, DEGREE), axis=1)
        if D > 1:
            by_second += tl.sum(slope * _turned(aside, DEGREE), axis=1)
    tl.store(rows + i, sums, mask=i < n)
    tl.store(by_points + i * D, -EXPONENT * DEGREE * by_first, mask=i < n)
    if D > 1:
        tl.store(by_points + i * D + 1, -EXPONENT * DEGREE * by_second, mask=i < n)


@triton.jit
def _turned(difference, DEGREE: tl.constexpr):
    """Derivative of ``|difference|^degree``, over the degree."""
    if DEGREE == 2:
        return difference
    else:
        return tl.where(difference > 0.0, 1.0, tl.where(difference < 0.0, -1.0, 0.0))


@triton.jit
def _on_a_line(loc, variance, numbers, i, n, M, BK: tl.constexpr):
    """Expected features of normals at centres ``numbers[3:]``, their distances z and ``1 / (l^2 s)``.

    First come the length scale l, the origin of the centres and the factor; s is ``1 + 2 variance / l^2``.
    """
    m = tl.arange(0, BK)
    centres = tl.load(numbers + 3 + m, mask=m < M, other=0.0)
    scale, origin, factor = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    spread = 1.0 + 2.0 * tl.load(variance + i, mask=i < n, other=1.0) / (scale * scale)
    inverse = 1.0 / (scale * scale * spread)
    away = (tl.load(loc + i, mask=i < n, other=0.0) - origin)[:, None] - centres[None, :]
    features = tl.exp(-away * away * inverse[:, None]) * (factor / tl.sqrt(spread))[:, None]
    return features, away, inverse


@triton.jit(do_not_specialize=["n"])
def line_differences(
    loc, variance, targets, numbers, out, n, M, ROWS: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Expected features of normals less those of targets, ``out (n, M)``."""
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    m = tl.arange(0, BK)
    features, _, _ = _on_a_line(loc, variance, numbers, i, n, M, BK)
    scale, origin, factor = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    centres = tl.load(numbers + 3 + m, mask=m < M, other=0.0)
    z = ((tl.load(targets + i, mask=i < n, other=0.0) - origin)[:, None] - centres[None, :]) / scale
    inside = (i < n)[:, None] & (m < M)[None, :]
    tl.store(out + i[:, None] * M + m[None, :], features - factor * tl.exp(-z * z), mask=inside)


@triton.jit(do_not_specialize=["n"])
def line_slopes(
    loc, variance, numbers, by_features, by_loc, by_variance, n, M, ROWS: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Derivatives by locations and variances, from those by features ``(n, M)``."""
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    m = tl.arange(0, BK)
    features, away, inverse = _on_a_line(loc, variance, numbers, i, n, M, BK)
    inside = (i < n)[:, None] & (m < M)[None, :]
    weights = features * tl.load(by_features + i[:, None] * M + m[None, :], mask=inside, other=0.0)
    first, second = tl.sum(weights * away, axis=1), tl.sum(weights * away * away, axis=1)
    tl.store(by_loc + i, -2.0 * inverse * first, mask=i < n)
    own = inverse * (2.0 * inverse * second - tl.sum(weights, axis=1))
    tl.store(by_variance + i, own, mask=i < n)
