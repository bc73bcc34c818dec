"""The default kernel of a batch of predictions: its kind by family, its scales from the predictions.

Scales come from the predictions alone, never from targets, so that exact tests stay exact; and they
follow the unit of the targets, so that metres and millimetres give the same result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeAlias

import numpy as np

from wellcal._arrays.checks import LEAST, MOST
from wellcal._arrays.chunks import budget, in_chunks, pairs_above, tile_shape, triangle_tiles
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    concat_rows,
    from_numpy,
    handed_over,
    is_jax,
    is_numpy,
    is_on_accelerator,
    is_torch,
    is_traced,
    namespace,
    stop_gradient,
    take_rows,
    to_numpy,
)
from wellcal._arrays.ops import ops_for
from wellcal._arrays.registry import Rules
from wellcal._arrays.rows import Rows, arrays_of, first_array, map_rows, slice_rows
from wellcal._arrays.threads import MANY_CASES, one_blas_thread
from wellcal.expectations.bilinear import Distance, matching
from wellcal.expectations.decompose import components_of
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
from wellcal.predictions.batches import host_copies, in_numpy

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
    like = sample.like
    # Of few predictions, all but their distances is had sooner in NumPy than in so many small steps on a
    # device; distances by expectations are not.
    near = is_on_accelerator(like) and METRICS.find(type(sample)) is not _mean_discrepancy
    sample = in_numpy(sample) if near else sample
    on_targets = _target_kernel(sample)
    metric, power = _metric(sample, on_targets)
    lengthscale = median_distance(metric, sample, expectations=expectations, like=like if near else None)
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
    families = [component for component, _ in components_of(predictions)]
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


def _metric(predictions: Predictions, on_targets: Kernel) -> MetricAndPower:
    rule = METRICS.find(type(predictions))
    assert rule is not None
    return rule(on_targets)


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
        return 0.5 * np.sum(middle_values(values, low, high))
    ordered = xp.sort(values)
    if is_torch(xp):  # the middle goes to NumPy anyway
        return np.mean(to_numpy(ordered[low : high + 1]))
    return 0.5 * (ordered[low] + ordered[high])


def middle_values(values: NDArray, low: int, high: int) -> NDArray:
    """The values at two places next to the middle of their order.

    Of many values a sample tells between which two of them the middle is, and only those in between are put
    in order, which is most of the work; where the sample is wrong, all are.

    Examples
    --------
    >>> middle_values(np.arange(200_000.0)[::-1], 99_999, 100_000)
    array([ 99999., 100000.])
    """
    size = len(values)
    if size > _MANY_VALUES:
        some = np.sort(values[:: size // _SAMPLED])
        left, right = (some[int(share * len(some))] for share in (0.45, 0.55))
        before = int(np.count_nonzero(values < left))
        between = values[(values >= left) & (values <= right)]
        if before <= low and high < before + len(between):
            values, low, high = between, low - before, high - before
    return np.partition(values, (low, high))[[low, high]]


def _as_scale(value: Array) -> Scale:
    """A plain number where that is possible: kernels then print and compare as values."""
    return stop_gradient(value) if is_traced(value) else float(to_numpy(value))


@np.errstate(over="ignore")  # a distance may be infinite, as long as the median is not
def median_distance(
    metric: Metric,
    predictions: Predictions,
    *,
    expectations: str | Lowering = "auto",
    like: Array | None = None,
) -> Scale:
    """Median of d(P_i, P_j) over i < j; 1 where it is zero up to rounding, or for one prediction only.

    Pairs meet on the device of the tensor `like`, where one is given.
    """
    n = len(predictions)
    if n < 2:
        return 1.0
    prepared, rows = without_repetition(*distance(metric, predictions, expectations=expectations))
    xp = predictions.xp
    if like is not None and isinstance(prepared, EmbeddingDistance):
        median = _median_of_points(from_numpy(rows, like), prepared.degree)
    else:
        median = _median_over_pairs(prepared, rows, predictions)
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


def _median_over_pairs(prepared: Distance, rows: Rows, predictions: Predictions) -> Array:
    """Median of a prepared distance, raised to its degree, over i < j."""
    xp, n = predictions.xp, len(predictions)
    ops = ops_for(xp)
    parts: list[Array] = []
    if is_on_accelerator(first_array(rows)):
        return _median_on_device(prepared, rows, predictions)
    shape = tile_shape(prepared.cost.entries, 2 * budget.cache)
    if is_jax(xp) and n > min(shape) and any(map(is_traced, arrays_of(rows))):
        return _median_in_a_loop(prepared, rows, predictions, shape)
    with (
        one_blas_thread() if n > MANY_CASES else nullcontext()
    ):  # tiles fit the cache, and are too small for more
        for i, j in triangle_tiles(0, n, *shape):
            block = prepared(ops, slice_rows(rows, i.index), slice_rows(rows, j.index))
            block = xp.reshape(block, (-1,))
            if i.stop > j.start:
                block = take_rows(block, np.flatnonzero(pairs_above(i, j)))
            parts.append(block)
    return _median(xp.concat(parts) if len(parts) > 1 else parts[0])


def _median_in_a_loop(
    prepared: Distance, rows: Rows, predictions: Predictions, shape: tuple[int, int]
) -> Array:
    """The same where JAX traces: one tile is compiled, and not each of them by itself."""
    jax = sys.modules["jax"]
    xp, n = predictions.xp, len(predictions)
    ops, fixed = ops_for(xp), map_rows(stop_gradient, rows)
    height, width = (min(side, n) for side in shape)

    def values(corner: Array) -> Array:
        left, right = corner[0] + xp.arange(height), corner[1] + xp.arange(width)
        a, b = (slice_rows(fixed, xp.minimum(cases, n - 1)) for cases in (left, right))
        counts = (left[:, None] < right) & (right < n)
        return xp.where(counts, prepared(ops, a, b), np.inf)

    corners = [(i.start, j.start) for i, j in triangle_tiles(0, n, height, width)]
    found = jax.lax.map(values, xp.asarray(corners))
    return _median(xp.reshape(found, (-1,)), n * (n - 1) // 2)


def _median_on_device(prepared: Distance, rows: Rows, predictions: Predictions) -> Array:
    """The same in few calls: all pairs at a time, and those that do not count at infinity."""
    n, ops = len(predictions), predictions.ops
    parts: list[Array] = []
    width = n * (1 if isinstance(prepared, EmbeddingDistance) else prepared.cost.entries)
    for i in in_chunks(n, width, within=budget.device):
        block = prepared(ops, slice_rows(rows, i), rows)
        later = block.new_ones(block.shape, dtype=block.bool().dtype).triu_(i.start + 1)
        parts.append(block.masked_fill(~later, np.inf).reshape(-1))
    return _median(concat_rows(parts), n * (n - 1) // 2)


def _median_of_points(points: Array, degree: float) -> Array:
    """Median of the distances of points ``(n, D)``, raised to their degree, over i < j, in NumPy.

    Around a circle of all cases, each pair is once among those that are one step apart, two, ... and half of
    the circle: to put them in order is most of the work, and of the square half of it would be for nothing.
    """
    torch = sys.modules["torch"]
    n, size = points.shape
    pairs, steps = n * (n - 1) // 2, n // 2
    around: Array = torch.cat([points, points]).unfold(0, n, 1)[1 : steps + 1]
    parts: list[Array] = [
        torch.linalg.vector_norm(around[k] - points.mT, ord=degree, dim=1).reshape(-1)
        for k in in_chunks(steps, n * size, within=budget.device)
    ]
    ordered: Array = torch.sort(concat_rows(parts)[:pairs]).values
    low, high = (pairs - 1) // 2, pairs // 2
    return np.mean(to_numpy(ordered[low : high + 1])[[0, -1]] ** degree)


def _rounded_otherwise(array: Array) -> Array:
    """Numbers that differ from those of `array` by a few units in their last place; others as they are."""
    xp = namespace(array)
    if not xp.isdtype(array.dtype, "real floating"):
        return array
    return array * (1.0 + _ROUNDING * float(xp.finfo(array.dtype).eps))


_ROUNDING = 16.0  # units in the last place
_MANY_VALUES = 2**15  # of which some are looked at first
_SAMPLED = 2**11
_LOOKED_AT = 256  # predictions whose rounding is looked at, at most
