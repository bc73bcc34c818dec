"""What was promised and what happened in each bin: probabilities and frequencies of targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.equality import ByValue
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    device_of,
    from_numpy,
    is_numpy,
    is_traced,
    namespace,
    take_rows,
    to_numpy,
    widen,
)
from wellcal._arrays.progress import reporter
from wellcal._arrays.row_errors import Row, RowError
from wellcal._arrays.rows import add_at, can_add_at
from wellcal._arrays.special import integer_dtype
from wellcal.expectations.count_atoms import COUNT_TAIL
from wellcal.predictions.batches import in_numpy

_WIDEST = 2_000_000  # counts that a bin may span
_FEW_CLASSES, _FEW_BINS = 32, 4096  # where adding up one class after another is quickest


@dataclass(frozen=True)
class BinTable(ByValue):
    """Bins of similar predictions.

    Attributes
    ----------
    sizes
        Number of cases, ``(m,)``.
    predicted
        Mean predicted probabilities of the C targets, ``(m, C)``.
    observed
        Frequencies of the C targets, ``(m, C)``.
    squares
        Means of ``(1{y = c} - p_c) ** 2``, ``(m, C)``, where asked for.
    targets
        The C targets where these are counts, in NumPy; None for classes 0 .. C - 1.

    Examples
    --------
    >>> table = BinTable(np.array([2.0]), np.array([[0.4, 0.6]]), np.array([[0.5, 0.5]]))
    >>> table.observed - table.predicted
    array([[ 0.1, -0.1]])
    """

    sizes: Array
    predicted: Array
    observed: Array
    squares: Array | None = None
    targets: NDArray | None = None


def class_table(probs: Array, index: Array, bins: Array, count: int, *, squares: bool) -> BinTable:
    """Table of class probabilities ``(n, C)`` and observed classes ``(n,)`` in `count` bins."""
    probs = widen(probs)
    xp, classes = namespace(probs), int(probs.shape[1])
    seen = _frequencies(index, bins, count, classes, probs)
    sizes = xp.sum(seen, axis=1)
    divisor = xp.where(sizes > 0, sizes, xp.ones_like(sizes))[:, None]
    if is_numpy(xp) and classes <= _FEW_CLASSES and count <= _FEW_BINS:
        first, second = _sums_by_class(probs, index, bins, count, squares)
    else:
        first, second = segment_sums(probs, bins, count), None
        if squares:
            residual = _one_hot(index, classes, probs) - probs
            second = segment_sums(residual**2, bins, count)
    return BinTable(sizes, first / divisor, seen / divisor, None if second is None else second / divisor)


def _sums_by_class(
    probs: NDArray, index: NDArray, bins: NDArray, count: int, squares: bool
) -> tuple[NDArray, NDArray | None]:
    """Sums of probabilities, and of squared residuals, in each bin, class by class: nothing is sorted."""
    n, classes = probs.shape
    first = np.zeros((count, classes))
    second = np.zeros((count, classes)) if squares else None
    for rows in in_chunks(n, classes, within=budget.cache // 4):
        place, seen, columns = bins[rows], index[rows], np.ascontiguousarray(probs[rows].T)
        for c, column in enumerate(columns):
            first[:, c] += np.bincount(place, column, count)
            if second is not None:
                second[:, c] += np.bincount(place, (column - (seen == c)) ** 2, count)
    return first, second


def count_tables(
    predictions: Any, targets: Array, bins: NDArray, count: int, *, squares: bool
) -> list[BinTable]:
    """Tables of predicted counts, one for each bin, over counts that hold all but 1e-13 of its mass."""
    if is_traced(predictions.like, targets):
        raise TypeError("the counts that a bin spans cannot be found inside jax.jit; call this outside")
    plain: Any = in_numpy(predictions)
    low = plain.quantile(COUNT_TAIL)
    high = plain.quantile(1.0 - COUNT_TAIL) + 1.0
    observed = to_numpy(targets)
    tables: list[BinTable] = []
    tell, done = reporter(), 0

    def told(cases: int) -> None:
        nonlocal done
        done += cases
        tell("cases", done, len(observed))

    told(0)
    for number in range(count):
        rows = np.flatnonzero(bins == number)
        first, last = float(low[rows].min()), float(high[rows].max())
        if not last - first < _WIDEST:
            raise RowError(
                f"pred has counts from {first:g} to {last:g} in one bin (that of ",
                Row(int(rows[0])),
                "), too many to go through",
                argument="pred",
                remedy="take more bins",
            )
        grid = np.union1d(np.arange(first, last + 1.0), observed[rows])
        tables.append(_count_table(predictions, observed, rows, grid, squares, told))
    return tables


def _count_table(
    predictions: Any,
    observed: NDArray,
    rows: NDArray,
    grid: NDArray,
    squares: bool,
    told: Callable[[int], object],
) -> BinTable:
    like = widen(predictions.like)
    xp, place = namespace(like), {"xp": namespace(like), "device": device_of(like), "dtype": like.dtype}
    total: Any = 0.0
    second: Any = 0.0
    for chunk in in_chunks(len(rows), len(grid)):
        part = rows[chunk]
        shape = (len(grid), len(part))
        counts = asarray(np.ascontiguousarray(np.broadcast_to(grid[:, None], shape)), **place)
        probs = xp.exp(widen(predictions[part].log_prob(counts)))
        total = total + xp.sum(probs, axis=1)
        if squares:
            hit = asarray((grid[:, None] == observed[part][None, :]).astype(np.float64), **place)
            second = second + xp.sum((hit - probs) ** 2, axis=1)
        told(len(part))
    size = float(len(rows))
    seen = np.bincount(np.searchsorted(grid, observed[rows]), minlength=len(grid)) / size
    return BinTable(
        asarray(np.array([size]), **place),
        (total / size)[None, :],
        asarray(seen[None, :], **place),
        (second / size)[None, :] if squares else None,
        grid,
    )


def segment_sums(values: Array, bins: Array, count: int) -> Array:
    """Sums of the rows of `values` ``(n, C)`` in each of `count` bins, ``(count, C)``, with gradients."""
    xp = namespace(values)
    if is_numpy(xp):
        order = np.argsort(bins, kind="stable")
        starts = np.searchsorted(bins[order], np.arange(count))
        return np.add.reduceat(values[order], starts, axis=0)
    if can_add_at(xp):
        return add_at(values, from_numpy(bins, values), count)
    parts = [xp.sum(take_rows(values, np.flatnonzero(bins == number)), axis=0) for number in range(count)]
    return xp.stack(parts)


def _frequencies(index: Array, bins: Array, count: int, classes: int, like: Array) -> Array:
    """How often each class was observed in each bin, ``(count, C)``."""
    if is_traced(index, bins):
        return segment_sums(_one_hot(index, classes, like), bins, count)
    flat = to_numpy(bins) * classes + to_numpy(index)
    seen = np.bincount(flat, minlength=count * classes).reshape(count, classes)
    return asarray(seen.astype(np.float64), xp=namespace(like), device=device_of(like), dtype=like.dtype)


def _one_hot(index: Array, classes: int, like: Array) -> Array:
    xp = namespace(like)
    positions = asarray(np.arange(classes), xp=xp, device=device_of(like), dtype=integer_dtype(xp))
    return xp.astype(xp.astype(index, positions.dtype)[:, None] == positions[None, :], like.dtype)
