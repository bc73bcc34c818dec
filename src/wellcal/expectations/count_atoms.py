"""Counts as atoms: whole numbers with their probabilities, in a wide window some for all.

A window that holds all but 1e-13 of the mass is cut into panels, which are short where probabilities or the
kernel change fast. In a short panel every count is an atom. In a long one a few counts stand for all, with
weights that sum polynomials over all of its counts exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    device_of,
    is_traced,
    namespace,
    stop_gradient,
    through_numpy,
    to_numpy,
    widen,
)
from wellcal.expectations.atoms import Atoms
from wellcal.predictions import Predictions
from wellcal.predictions.batches import in_numpy

COUNT_TAIL = 5e-14  # mass left out at each end
_ORDER, _ROUGH_ORDER = 16, 12  # atoms of a panel, and those of the rule that errors are measured by
_MAX_GRID = 4096
_SUMMED = 4096  # counts of a panel whose powers are summed one by one
_FAR = 8.0  # standard deviations above the mean from which panels grow
_LOST = 1e-3  # mass that rounding may take

MOST_ATOMS = 1024


def whole_numbers(
    predictions: Predictions, longest: float = np.inf, most: int = MOST_ATOMS, order: int = _ORDER
) -> Atoms:
    """Replace counts by at most about `most` whole numbers each.

    Parameters
    ----------
    predictions
        Predictions of counts.
    longest
        Counts over which the kernel is a polynomial to rounding.
    most
        Atoms of one prediction, at most.
    order
        Atoms of a panel.
    """
    xp, like = predictions.xp, widen(predictions.like)
    traced = is_traced(like)
    place: Any = {"xp": xp, "device": device_of(like), "dtype": like.dtype}
    # Where values are traced levels are as exact as these: the quantile at 1 is infinite.
    rest = max(COUNT_TAIL, 0.5 * float(xp.finfo(like.dtype).eps)) if traced else COUNT_TAIL
    batch = predictions.map_arrays(widen) if traced else in_numpy(predictions)
    low, high = batch.quantile(COUNT_TAIL), batch.quantile(1.0 - rest)
    moments = batch.supports("mean") and batch.supports("variance")
    centre, spread = (batch.mean(), batch.variance() ** 0.5) if moments else (low, (high - low) / 16.0)
    bounds = namespace(low).stack([low, high + 1.0, centre, spread])
    rule = partial(_rule, longest, most, order)
    if traced:  # the number of atoms must not depend on the counts
        shape = (2, len(predictions), most)
        rule = through_numpy(partial(_filled, rule, most), stop_gradient(bounds), shape=shape)
    else:
        rule = rule(to_numpy(bounds))
    values, factors = asarray(rule[0, ...], **place), asarray(rule[1, ...], **place)
    log_mass = xp.permute_dims(widen(predictions.log_prob(xp.permute_dims(values, (1, 0)))), (1, 0))
    weights = factors * xp.exp(log_mass)
    # Where rounding leaves nothing between a count and the next, all of the mass is at one number.
    lost = ~(xp.abs(xp.sum(stop_gradient(weights), axis=1) - 1.0) < _LOST)[:, None]
    size, exact = values.shape[1], False
    if traced or bool(xp.any(lost)):
        weights = xp.where(lost, xp.full_like(weights, 1.0 / size), weights)
        values = xp.where(lost, values[:, :1], values)
    else:
        exact = bool(np.isin(rule[1], (0.0, 1.0)).all())
    # A view: what is kept for a batch must not keep the batch itself alive.
    again = predictions[:]
    return Atoms(
        values,
        weights,
        f"up to {size} counts",
        exact=exact,
        rougher=lambda: whole_numbers(again, longest, most, _ROUGH_ORDER),
    )


def _rule(longest: float, most: int, order: int, bounds: NDArray) -> NDArray:
    """Counts and the factors of their probabilities, ``(2, n, S)``."""
    low, stop, centre, spread = (np.where(np.isfinite(b), b, 0.0) for b in bounds)
    limit = np.maximum(np.minimum(2.0 * spread, longest), order)
    tail = centre, np.maximum(_FAR * spread, 1.0)
    factor = np.maximum((stop - low) / limit * (order / most), 1.0)
    while True:
        starts, lengths = _panels((low, stop), tail, limit, factor, order, most // order)
        crowded = starts[-1] + lengths[-1] < stop
        if not crowded.any():
            break
        factor[crowded] *= 2.0
    kinds, index = np.unique(lengths, return_inverse=True)
    rules = np.stack([_sum_rule(float(length), order) for length in kinds], axis=1)
    offsets, weights = rules[:, index.reshape(lengths.shape)]
    rows = (starts[:, :, None] + offsets, weights)
    return np.stack([np.moveaxis(row, 0, 1).reshape(len(low), -1) for row in rows])


def _panels(
    window: tuple[NDArray, NDArray],
    tail: tuple[NDArray, NDArray],
    limit: NDArray,
    factor: NDArray,
    order: int,
    most: int,
) -> tuple[NDArray, NDArray]:
    """First counts of the panels of each row, and their lengths, ``(p, n)``: at most so many."""
    low, stop = window
    starts, lengths = [low], [np.zeros(len(low))]
    while len(starts) <= most:
        start = starts[-1] + lengths[-1]
        if (start >= stop).all():
            break
        # Probabilities may have a pole at zero: panels are no longer than their distance from it.
        longest = limit * np.maximum((start - tail[0]) / tail[1], 1.0)  # there is little mass in the tail
        length = np.minimum(factor * np.minimum(longest, start + 1.0), np.maximum(stop - start, 0.0))
        short = np.minimum(np.maximum(length, order), np.maximum(stop - start, 0.0))
        ladder = order * np.exp2(np.floor(4.0 * np.log2(np.maximum(length, order) / order)) / 4.0)
        starts.append(start)
        lengths.append(np.where(length <= order, np.ceil(short), np.floor(ladder)))
    return np.stack(starts[1:] or starts), np.stack(lengths[1:] or lengths)


@lru_cache(maxsize=4096)
def _sum_rule(length: float, order: int) -> NDArray:
    """Counts ``0 <= k < length`` and weights that sum polynomials of degree below `order`, ``(2, order)``."""
    index = np.arange(order)
    if length <= order:
        return np.stack([np.minimum(index, max(length - 1, 0)), 1.0 * (index < length)])
    offsets = np.round(0.5 * (length - 1) * (1.0 - np.cos(np.pi * (index + 0.5) / order)))
    offsets = index + np.maximum.accumulate(offsets - index)
    offsets = np.minimum(offsets, length - order + index)
    basis = np.polynomial.chebyshev.chebvander
    if length <= _SUMMED:
        sums = basis((2.0 * np.arange(length) + 1.0) / length - 1.0, order - 1).sum(axis=0)
    else:  # Euler and Maclaurin
        sums = length / (1.0 - index**2.0 + index % 2) - index**2 / (6.0 * length)
        sums[1::2] = 0.0
    points = (2.0 * offsets + 1.0) / length - 1.0
    return np.stack([offsets, np.linalg.solve(basis(points, order - 1).T, sums)])


def _filled(rule: Callable[[NDArray], NDArray], most: int, bounds: NDArray) -> NDArray:
    values, factors = rule(bounds)
    missing = ((0, 0), (0, most - values.shape[1]))
    return np.stack([np.pad(values, missing, mode="edge"), np.pad(factors, missing)])


def count_grid(predictions: list[Predictions], targets: list[Array]) -> NDArray | None:
    """Return counts that carry all but 1e-13 of every prediction's mass, and the observed targets.

    None where no such grid of moderate size exists, or where values are traced.
    """
    if is_traced(*(p.like for p in predictions), *targets):
        return None
    low, high = np.inf, 0.0
    for p in predictions:
        batch = in_numpy(p)
        low = min(low, float(batch.quantile(COUNT_TAIL).min()))
        high = max(high, float(batch.quantile(1.0 - COUNT_TAIL).max()) + 1.0)
    if not np.isfinite(high) or high - low >= _MAX_GRID:
        return None
    grid = np.arange(max(low, 0.0), high + 1.0)
    for observed in targets:
        grid = np.union1d(grid, to_numpy(observed).astype(np.float64))
    return grid if len(grid) <= 2 * _MAX_GRID else None
