"""Counts as atoms: a window of whole numbers that holds all but 1e-13 of the mass."""

from __future__ import annotations

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
    to_numpy,
    widen,
)
from wellcal.expectations.atoms import Atoms
from wellcal.predictions import Predictions
from wellcal.predictions.batches import in_numpy

COUNT_TAIL = 5e-14  # mass left out at each end
_MAX_GRID = 4096
_LATTICE = 1024  # atoms of a count, at most; under tracing their number must not depend on the counts
_TRACED_LATTICE = 128
_LOST = 1e-3  # mass that cells of a window may miss


def by_lattice(predictions: Predictions) -> Atoms:
    """Whole numbers with their probabilities, with a stride where the window is wide."""
    xp, like = predictions.xp, widen(predictions.like)
    traced = is_traced(like)
    place: Any = {"xp": xp, "device": device_of(like), "dtype": like.dtype}
    # Where values are traced levels are as exact as these: the quantile at 1 is infinite.
    rest = max(COUNT_TAIL, 0.5 * float(xp.finfo(like.dtype).eps)) if traced else COUNT_TAIL
    batch = predictions.map_arrays(widen) if traced else in_numpy(predictions)
    low, high = (batch.quantile(level) for level in (COUNT_TAIL, 1.0 - rest))
    low, high = (stop_gradient(asarray(bound, **place)) for bound in (low, high))
    span = high - low + 2.0
    size = _TRACED_LATTICE if traced else int(min(_LATTICE, to_numpy(span).max()))
    size += size % 2  # so that neighbours can be merged in pairs
    stride = xp.ceil(span / size)
    exact = not traced and float(to_numpy(stride).max()) == 1.0
    steps = asarray(np.arange(size), **place)
    values = low[:, None] + stride[:, None] * steps[None, :]
    log_mass = xp.permute_dims(widen(predictions.log_prob(xp.permute_dims(values, (1, 0)))), (1, 0))
    sampled = xp.exp(log_mass) * stride[:, None]
    # A strongly dispersed count piles up at zero, which a stride misses: masses of cells are then used.
    smooth = xp.abs(xp.sum(stop_gradient(sampled), axis=1) - 1.0) < 1e-8
    score = xp.where(xp.isfinite(log_mass), log_mass, xp.zeros_like(log_mass))
    cells = _cell_masses(predictions, values, stride) * xp.exp(score - stop_gradient(score))
    weights = sampled if exact else xp.where(smooth[:, None], sampled, cells)
    centred = values + xp.where(smooth, xp.zeros_like(stride), 0.5 * (stride - 1.0))[:, None]
    values = values if exact else centred
    if not exact:
        # Where rounding leaves nothing between a count and the next, all of the mass is at one number.
        lost = ~(xp.abs(xp.sum(stop_gradient(weights), axis=1) - 1.0) < _LOST)[:, None]
        weights = xp.where(lost, xp.full_like(weights, 1.0 / size), weights)
        values = xp.where(lost, low[:, None], values)
    return Atoms(values, weights, f"lattice of {size} counts", nested=True, exact=exact, merged=~smooth)


def _cell_masses(predictions: Predictions, values: Array, stride: Array) -> Array:
    """Probability of ``values <= count < values + stride``."""
    xp = namespace(values)
    below = xp.permute_dims(values - 1.0, (1, 0))
    upper = predictions.cdf(below + stride[None, :])
    return stop_gradient(xp.permute_dims(widen(upper) - widen(predictions.cdf(below)), (1, 0)))


def count_grid(predictions: list[Predictions], targets: list[Array]) -> NDArray | None:
    """Counts that carry all but 1e-13 of every prediction's mass, and the observed targets.

    None where no such grid of moderate size exists, or where values cannot be looked at.
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
