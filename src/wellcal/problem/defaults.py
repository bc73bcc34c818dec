"""The default kernel of a batch of predictions: its kind by family, its scales from the predictions.

Scales come from the predictions alone, never from targets, so that exact tests stay exact; and they
follow the unit of the targets, so that metres and millimetres give the same result.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeAlias

import numpy as np

from wellcal._arrays.checks import LEAST, MOST
from wellcal._arrays.chunks import budget, pairs_above, tile_shape, triangle_tiles
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    device_of,
    handed_over,
    is_jax,
    is_numpy,
    is_torch,
    is_traced,
    namespace,
    stop_gradient,
    to_numpy,
)
from wellcal._arrays.ops import ops_for
from wellcal._arrays.registry import Rules
from wellcal._arrays.rows import Rows, map_rows, slice_rows
from wellcal._arrays.threads import MANY_CASES, one_blas_thread
from wellcal.expectations.bilinear import Distance, matching
from wellcal.expectations.distances import EmbeddingDistance, distance, without_repetition
from wellcal.expectations.lowering import Lowering
from wellcal.kernels import (
    Delta,
    ExpDistance,
    Gaussian,
    Kernel,
    Laplacian,
    MaximumMeanDiscrepancy,
    Metric,
    RootCovariance,
    TotalVariation,
    Wasserstein,
)
from wellcal.kernels.base import Scale
from wellcal.predictions import (
    Bernoulli,
    Categorical,
    DiagonalNormal,
    Laplace,
    MultivariateNormal,
    Normal,
    Predictions,
    Quantiles,
)
from wellcal.predictions.adapters import converted_argument
from wellcal.predictions.batches import host_copies

SUBSAMPLE = 2000
"""Predictions from which scales are taken: all of them up to this number."""

_SEED = 0


@handed_over
def default_kernel(pred: object, *, expectations: str | Lowering = "auto") -> Kernel:
    """A sensible kernel for a batch of predictions.

    ==============================  ==================================================
    family                          kernel
    ==============================  ==================================================
    Bernoulli, Categorical          ``ExpDistance(TotalVariation()) @ Delta()``
    Categorical with a support      ``ExpDistance(TotalVariation()) @ Gaussian(s)``
    Normal, DiagonalNormal          ``ExpDistance(Wasserstein()) @ Gaussian(s)``
    Laplace                         ``ExpDistance(Wasserstein()) @ Laplacian(s)``
    MultivariateNormal              ``ExpDistance(RootCovariance()) @ Gaussian(s)``
    Quantiles                       ``ExpDistance(Wasserstein()) @ Delta()``
    all others                      ``ExpDistance(MaximumMeanDiscrepancy(k), power=2) @ k``
    ==============================  ==================================================

    The scale of the kernel on predictions is the median distance between two of them (1 if that is
    zero); the scale s of the kernel on targets is the median interquartile range of the
    predictions, times the square root of the number of coordinates. Of more than 2000 predictions a
    subsample is taken, with a fixed seed.

    Parameters
    ----------
    pred
        Predictions: a batch, or anything that :func:`wellcal.as_predictions` understands.
    expectations
        How distances without a closed form are computed: as for :func:`wellcal.skce`.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> default_kernel(wc.Categorical(np.array([[0.2, 0.8], [0.4, 0.6]])))
    ExpDistance(TotalVariation(), lengthscale=0.2, power=1) @ Delta()
    """
    sample = subsample(converted_argument(pred, "pred"))
    on_targets = _target_kernel(sample)
    rule = METRICS.find(type(sample))
    assert rule is not None
    metric, power = rule(on_targets)
    lengthscale = median_distance(metric, sample, expectations=expectations)
    return ExpDistance(metric, lengthscale=lengthscale, power=power) @ on_targets


def subsample(predictions: Predictions) -> Predictions:
    """At most `SUBSAMPLE` of the predictions, without gradients, always the same ones."""
    (fixed,) = host_copies(predictions) if is_jax(predictions.xp) else (predictions,)
    if not is_numpy(fixed.xp):
        fixed = fixed.map_arrays(stop_gradient)
    n = len(fixed)
    return fixed if n <= SUBSAMPLE else fixed[sampled_rows(n)]


def sampled_rows(n: int, most: int = SUBSAMPLE) -> NDArray:
    """Which of n predictions scales are taken from: all, or the `most` of them, always the same.

    Examples
    --------
    >>> sampled_rows(3), len(sampled_rows(10**9))
    (array([0, 1, 2]), 2000)
    """
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(_SEED).choice(n, most, replace=False))


def _target_kernel(predictions: Predictions) -> Kernel:
    families = list(predictions.parts)
    if all(map(_is_nominal, families)):
        return Delta()
    if any(family.target_kind == "objects" for family in families):
        raise ValueError(
            "pred: Samples of objects have no default kernel; give ExpDistance(metric) @ Callable(function)"
        )
    kernels = {TARGET_KERNELS.find(type(family)) for family in families}
    kernel = kernels.pop() if len(kernels) == 1 else None
    return (kernel or Gaussian)(target_scale(predictions))


def _is_nominal(predictions: Predictions) -> bool:
    """Whether targets are names rather than numbers: classes without support, and bins."""
    if isinstance(predictions, Categorical):
        return predictions.support is None
    return predictions.target_kind in ("labels", "bins")


TARGET_KERNELS: Rules[Callable[[Scale], Kernel]] = Rules("a default kernel on targets")
"""The kernel on targets, from its length scale, by family; Gaussian where there is none."""

TARGET_KERNELS.register(Laplace)(Laplacian)

MetricAndPower: TypeAlias = tuple[Metric, float]

METRICS: Rules[Callable[[Kernel], MetricAndPower]] = Rules("a default metric")
"""The metric on predictions and its power, from the kernel on targets, by family."""


@METRICS.register(Predictions)
def _mean_discrepancy(on_targets: Kernel) -> MetricAndPower:
    return MaximumMeanDiscrepancy(on_targets), 2.0


@METRICS.register(Bernoulli)
@METRICS.register(Categorical)
def _total_variation(on_targets: Kernel) -> MetricAndPower:
    return TotalVariation(), 1.0


@METRICS.register(Normal)
@METRICS.register(DiagonalNormal)
@METRICS.register(Laplace)
@METRICS.register(Quantiles)
def _wasserstein(on_targets: Kernel) -> MetricAndPower:
    return Wasserstein(), 1.0


@METRICS.register(MultivariateNormal)
def _root_covariance(on_targets: Kernel) -> MetricAndPower:
    return RootCovariance(), 1.0


def target_scale(predictions: Predictions) -> Scale:
    """Median over cases of the interquartile range, times sqrt(d); from spreads where that is zero."""
    scale = _median_over_cases(predictions.interquartile_range())
    traced = is_traced(scale)
    if traced or float(scale) < LEAST:
        # Counts with small rates have quartiles that coincide: 1.349 standard deviations is their stand-in.
        spread = 1.0
        if predictions.supports("variance"):
            spread = 1.349 * _median_over_cases(predictions.variance() ** 0.5)
        if not traced:
            if LEAST <= float(spread) <= MOST:
                return _as_scale(spread)
            _check_unit(predictions)
            return 1.0
        xp = namespace(scale)
        spread = spread * xp.ones_like(scale)
        scale = xp.where(scale > LEAST, scale, xp.where(spread > LEAST, spread, xp.ones_like(spread)))
    return _as_scale(scale)


def _check_unit(predictions: Predictions) -> None:
    """Refuse predictions that all lie nearer to zero than any length scale: 1 would not see them."""
    parts = [predictions.interquartile_range()]
    if predictions.supports("mean"):
        parts.append(predictions.mean())
    spread, *_ = sizes = [float(np.max(np.abs(to_numpy(part)), initial=0.0)) for part in parts]
    if spread > 0.0 and max(sizes) < LEAST:  # counts have no unit, and no spread below 1
        raise ValueError(
            f"pred: no prediction has a centre or a spread above {max(sizes):.3g}, and length scales start "
            f"at {LEAST:g}; change the unit"
        )


def _median_over_cases(spread: Array) -> Array:
    """Median of ``(n,)``, or of the root mean square over coordinates of ``(n, d)`` times sqrt(d)."""
    xp = namespace(spread)
    if spread.ndim == 2:
        spread = xp.sqrt(xp.sum(spread**2, axis=1))
    return _median(spread)


def _median(values: Array, count: int | None = None) -> Array:
    """Median of a vector, in any library and under tracing; of its smallest `count` values where given."""
    size = values.shape[0] if count is None else count
    low, high = (size - 1) // 2, size // 2
    xp = namespace(values)
    if is_numpy(xp):
        return 0.5 * np.sum(np.partition(values, (low, high))[[low, high]])
    ordered = xp.sort(values)
    if is_torch(xp):  # the middle goes to NumPy anyway
        return np.mean(to_numpy(ordered[low : high + 1]))
    return 0.5 * (ordered[low] + ordered[high])


def _as_scale(value: Array) -> Scale:
    """A plain number where that is possible: kernels then print and compare as values."""
    return stop_gradient(value) if is_traced(value) else float(to_numpy(value))


@np.errstate(over="ignore")  # a distance may be infinite, as long as the median is not
def median_distance(
    metric: Metric, predictions: Predictions, *, expectations: str | Lowering = "auto"
) -> Scale:
    """Median of d(P_i, P_j) over i < j; 1 where it is zero up to rounding, or for one prediction only."""
    n, xp = len(predictions), predictions.xp
    if n < 2:
        return 1.0
    prepared, rows = without_repetition(*distance(metric, predictions, expectations=expectations))
    if is_numpy(xp):
        median = _median_over_tiles(prepared, rows, n)
    else:
        median = _median_over_rows(prepared, map_rows(stop_gradient, rows), predictions)
    # Predictions that agree to rounding count as equal: a scale made of rounding errors would magnify them.
    if isinstance(prepared, EmbeddingDistance) and _beyond_rounding(median, rows, prepared.degree):
        return float(median) ** (1.0 / prepared.degree)
    some = slice_rows(rows, slice(None, None, -(-n // _LOOKED_AT)))
    least = _median(matching(prepared, ops_for(xp), some, map_rows(_rounded_otherwise, some)))
    if is_traced(median):
        return xp.where(median > least, median, xp.ones_like(median)) ** (1.0 / prepared.degree)
    value, rounding = (float(to_numpy(found)) for found in (median, least))
    scale = value ** (1.0 / prepared.degree)
    return scale if value > rounding and LEAST <= scale <= MOST else 1.0


def _beyond_rounding(median: Array, points: Array, degree: float) -> bool:
    """Whether a median distance of points in NumPy, to its degree, is surely more than their rounding."""
    if type(points) is not np.ndarray:
        return False
    own: NDArray = points
    scale, root = float(median) ** (1.0 / degree), float(own.shape[1]) ** (1.0 / degree)
    rounding = root * _ROUNDING * float(np.finfo(own.dtype).eps) * float(np.abs(own).max())
    return rounding < scale and LEAST <= scale <= MOST


def _median_over_tiles(prepared: Distance, rows: Rows, n: int) -> Array:
    """Median of a prepared distance in NumPy, raised to its degree, over i < j."""
    ops, parts = ops_for(namespace()), list[NDArray]()
    # Tiles fit the cache, and are too small for more than one thread.
    with one_blas_thread() if n > MANY_CASES else nullcontext():
        for i, j in triangle_tiles(0, n, *tile_shape(prepared.cost.entries, 2 * budget.cache)):
            block = np.ravel(prepared(ops, slice_rows(rows, i.index), slice_rows(rows, j.index)))
            parts.append(block[np.flatnonzero(pairs_above(i, j))] if i.stop > j.start else block)
    return _median(np.concatenate(parts) if len(parts) > 1 else parts[0])


def _median_over_rows(prepared: Distance, rows: Rows, predictions: Predictions) -> Array:
    """Median in other libraries: some rows at a time with all, and infinity for pairs that do not count."""
    xp, n, ops = predictions.xp, len(predictions), predictions.ops
    height = min(n, max(1, budget.device // (n * prepared.cost.entries)))
    columns = asarray(np.arange(n), xp=xp, device=device_of(predictions.like))

    def values(start: Array) -> Array:
        cases = start + columns[:height]
        block = prepared(ops, slice_rows(rows, xp.minimum(cases, columns[-1])), rows)
        counts = (cases[:, None] < columns) & (cases < n)[:, None]
        return xp.where(counts, block, math.inf + xp.zeros_like(block))

    starts = columns[::height]
    if is_jax(xp):  # one program for all of them
        blocks = sys.modules["jax"].lax.map(values, starts)
    else:
        blocks = xp.concat([values(starts[k]) for k in range(starts.shape[0])])
    return _median(xp.reshape(blocks, (-1,)), n * (n - 1) // 2)


def _rounded_otherwise(array: Array) -> Array:
    """Numbers that differ from those of `array` by a few units in their last place; others as they are."""
    xp = namespace(array)
    if not xp.isdtype(array.dtype, "real floating"):
        return array
    return array * (1.0 + _ROUNDING * float(xp.finfo(array.dtype).eps))


_ROUNDING = 16.0  # units in the last place
_LOOKED_AT = 256  # predictions whose rounding is looked at, at most
