"""Numerical helpers that families share: special functions, quantiles of tables, search on integers."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.checks import same_dtype
from wellcal._arrays.chunks import budget, told_chunks
from wellcal._arrays.namespaces import (
    Array,
    Namespace,
    NDArray,
    is_jax,
    is_numpy,
    namespace,
    through_numpy,
)
from wellcal._arrays.ops import Ops

quiet = np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore")
"""For expressions whose infinities are meant: NumPy's warnings about them are not for the user."""

# Stirling's series of log Gamma: coefficients of 1/x, 1/x^3, ... (Bernoulli numbers B_2k / (2k (2k - 1))).
_STIRLING = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
)
STIRLING_FROM = 12.0
"""From here on the first term of the series that is left out is below 1e-16."""

_HALF_LOG_2PI = 0.9189385332046727
_SADDLE_FROM = 64.0  # below, the terms of a negative binomial stay small by themselves


def integer_dtype(xp: Namespace) -> Any:
    """The integer dtype of indices: int64, or int32 in JAX without ``jax_enable_x64``."""
    if is_jax(xp) and not sys.modules["jax"].config.jax_enable_x64:
        return xp.int32
    return xp.int64


def elementwise(function: Callable[..., Any], *arrays: Array) -> Array:
    """A NumPy function of broadcast `arrays` of any library, without warnings and without derivative.

    Examples
    --------
    >>> from scipy import special
    >>> elementwise(special.erfcx, np.array([0.0, 1.0])).round(6)
    array([1.      , 0.427584])
    """
    arrays = tuple(same_dtype(list(arrays)))
    if is_numpy(namespace(*arrays)) and (many := np.broadcast(*arrays)).size > _at_a_time():
        result = _in_parts(quiet(function), np.broadcast_arrays(*arrays), many.shape)
    else:
        result = through_numpy(quiet(function), *arrays)
    return namespace(result).astype(result, arrays[0].dtype, copy=False)


def _at_a_time() -> int:
    """Numbers of which special functions take a tenth of a second."""
    return budget.work // 10


def _in_parts(function: Callable[..., Any], arrays: Sequence[NDArray], shape: tuple[int, ...]) -> NDArray:
    """Apply a function to many numbers, some at a time, and report progress."""
    axis = int(np.argmax(shape))
    before = (slice(None),) * axis
    parts = [
        np.asarray(function(*(array[(*before, some)] for array in arrays)))
        for some in told_chunks(
            shape[axis], math.prod(shape) / shape[axis], within=_at_a_time(), what="numbers"
        )
    ]
    return np.concatenate(parts, axis=axis)


def on_numpy(function: Callable[..., Any], *arrays: Array, shape: tuple[int, ...]) -> Array:
    """A NumPy function of whole `arrays` of one library whose result has `shape`, also under ``jit``."""
    xp = namespace(*arrays)
    result = through_numpy(quiet(function), *arrays, shape=shape)
    return xp.astype(xp.asarray(result), xp.result_type(*arrays), copy=False)


# -- special functions, differentiable where the library is ----------------------------------------


def nowhere(ops: Ops, condition: Array) -> bool:
    """True if NumPy shows that no entry needs a branch, which is then not computed."""
    return is_numpy(ops.xp) and not np.any(condition)


def log_gamma_ratio(ops: Ops, x: Array, step: Array) -> Array:
    """``log Gamma(x + step) - log Gamma(x)`` for x, step > 0, without cancellation for large x.

    Both terms grow like x log x; Stirling's series takes their difference analytically.
    """
    large = x >= STIRLING_FROM
    if nowhere(ops, large):
        return ops.gammaln(x + step) - ops.gammaln(x)
    far = ops.where(large, x, STIRLING_FROM * ops.one(x))
    total = far + step
    series = (
        (far - 0.5) * ops.log1p(step / far)
        + step * (ops.log(total) - 1.0)
        + _stirling_remainder(ops, total)
        - _stirling_remainder(ops, far)
    )
    if nowhere(ops, ~large):
        return series
    near = ops.where(large, ops.one(x), x)
    return ops.where(large, series, ops.gammaln(near + step) - ops.gammaln(near))


def betaln(ops: Ops, a: Array, b: Array) -> Array:
    """Logarithm of the beta function, a, b > 0, to the precision of its value for large arguments."""
    if is_numpy(ops.xp) and np.size(a) and np.size(b) and np.max(a) <= np.min(b):
        small, big = a, b  # each in its own shape: what depends on one alone is computed for that alone
    else:
        small, big = ops.minimum(a, b), ops.maximum(a, b)
    large = small >= STIRLING_FROM
    if nowhere(ops, large):
        return ops.gammaln(small) - log_gamma_ratio(ops, big, small)
    p = ops.where(large, small, STIRLING_FROM * ops.one(small))
    q = ops.where(large, big, STIRLING_FROM * ops.one(big))
    series = (
        _HALF_LOG_2PI
        - 0.5 * ops.log(q)
        - (p - 0.5) * ops.log1p(q / p)
        - q * ops.log1p(p / q)
        + _stirling_remainder(ops, p)
        + _stirling_remainder(ops, q)
        - _stirling_remainder(ops, p + q)
    )
    return ops.where(large, series, ops.gammaln(small) - log_gamma_ratio(ops, big, small))


def _stirling_remainder(ops: Ops, x: Array) -> Array:
    """``log Gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2)`` for x >= 12."""
    inverse = 1.0 / x
    square = inverse * inverse
    total = _STIRLING[-2] + _STIRLING[-1] * square
    for coefficient in reversed(_STIRLING[:-2]):
        total = coefficient + square * total
    return inverse * total


def _deviance(ops: Ops, x: Array, m: Array, gap: Array) -> Array:
    """``x log(x / m) - (x - m)`` for x, m > 0 with ``gap = x - m``, to rounding errors of the gap.

    With v = (x - m) / (x + m) it is ``(x - m) v + 2 x (atanh(v) - v)`` (Loader, 2000), where nothing
    of the size of x cancels.
    """
    v = gap / (x + m)
    near = ops.abs(v) < 0.5
    small = ops.where(near, v, 0.0 * v)
    ratio = ops.where(near, ops.one(v), x / m)
    by_atanh = gap * small + 2.0 * x * (ops.atanh(small) - small)
    return ops.where(near, by_atanh, x * ops.log(ratio) - gap)


def poisson_log_prob(ops: Ops, k: Array, rate: Array) -> Array:
    """Log probability of counts k = 0, 1, 2, ... for rates > 0.

    ``k log(rate) - rate - log k!`` has terms of size k log k that cancel to the log of sqrt(k): large
    counts take Loader's saddle-point form, minus the deviance of k from the rate.
    """
    large = k >= STIRLING_FROM
    if nowhere(ops, large):
        return k * ops.log(rate) - rate - ops.gammaln(k + 1.0)
    few = ops.where(large, 0.0 * k, k)
    many = ops.where(large, k, STIRLING_FROM * ops.one(k))
    norm = _HALF_LOG_2PI + 0.5 * ops.log(many) + _stirling_remainder(ops, many)
    central = -_deviance(ops, many, rate + 0.0 * many, many - rate) - norm
    if nowhere(ops, ~large):
        return central
    return ops.where(large, central, few * ops.log(rate) - rate - ops.gammaln(few + 1.0))


def negative_binomial_log_prob(ops: Ops, k: Array, mean: Array, size: Array) -> Array:
    """Log probability of counts k = 1, 2, ... for means > 0 and sizes (1 / dispersion) > 0.

    ``1 / (k B(size, k))`` times powers of the two probabilities; where both arguments of the beta
    function are large those cancel it, and the difference of two deviances replaces them.
    """
    central = (k >= STIRLING_FROM) & (size >= _SADDLE_FROM)
    if nowhere(ops, central):
        return _negative_binomial_directly(ops, k, mean, size)
    many = ops.where(central, k, STIRLING_FROM * ops.one(k))
    large = ops.where(central, size, _SADDLE_FROM * ops.one(size))
    total, gap = large + many, many - mean
    deviance = _deviance(ops, many, mean + 0.0 * many, gap) - _deviance(ops, total, large + mean, gap)
    norm = _HALF_LOG_2PI + 0.5 * (ops.log(many) + ops.log1p(many / large))
    remainder = _stirling_remainder(ops, total) - _stirling_remainder(ops, large)
    found = remainder - _stirling_remainder(ops, many) - norm - deviance
    if nowhere(ops, ~central):
        return found
    return ops.where(central, found, _negative_binomial_directly(ops, k, mean, size))


def _negative_binomial_directly(ops: Ops, k: Array, mean: Array, size: Array) -> Array:
    odds = mean / size
    small = odds < 1.0  # not by minimum and maximum: each would take half of the derivative at 1
    long_odds = ops.log1p(odds) - ops.log(ops.where(small, odds, ops.one(odds)))
    minus_log_odds = ops.where(small, long_odds, ops.log1p(1.0 / ops.where(small, ops.one(odds), odds)))
    direct = -betaln(ops, size, k) - ops.log(k)
    return direct - k * minus_log_odds - size * ops.log1p(odds)


def positive_power(ops: Ops, x: Array, exponent: Array) -> Array:
    """``x ** exponent`` for x >= 0 and positive `exponent`, with derivative 0 at x = 0."""
    positive = x > 0
    return ops.where(positive, ops.where(positive, x, ops.one(x)) ** exponent, 0.0 * x)


def log_or_minus_infinity(ops: Ops, x: Array) -> Array:
    """``log(x)`` for x >= 0, minus infinity at 0 with derivative 0 there."""
    positive = x > 0
    return ops.where(positive, ops.log(ops.where(positive, x, ops.one(x))), -np.inf * ops.one(x))


LEAST_PROBABILITY = 1e-12
"""Of classes where logarithms are taken: what is impossible is far off, and not infinitely so."""


def bounded_probability(p: NDArray) -> NDArray:
    """Probabilities, none of them nearer to 0 or 1 than `LEAST_PROBABILITY`."""
    return np.clip(p, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)


def bounded_log_odds(p: NDArray) -> NDArray:
    """Log odds of bounded probabilities.

    Examples
    --------
    >>> bounded_log_odds(np.array([0.0, 0.5, 1.0])).round(2)
    array([-27.63,   0.  ,  27.63])
    """
    return special.logit(bounded_probability(p))


# -- tables -----------------------------------------------------------------------------------------


def gather(table: Array, index: Array) -> Array:
    """``table[i, index[..., i]]`` for `table` (n, S) and `index` (..., n)."""
    xp = namespace(table)
    if is_numpy(xp):
        return table[np.arange(len(table)), index]
    wide = xp.broadcast_to(table, (*index.shape, table.shape[-1]))
    return xp.take_along_axis(wide, index[..., None], axis=-1)[..., 0]


def look_up(table: Array, index: Array) -> Array:
    """``table[index]`` for `table` (m,) and an index of any shape.

    Examples
    --------
    >>> look_up(np.array([0.5, 2.0]), np.array([[0, 1], [1, 1]]))
    array([[0.5, 2. ],
           [2. , 2. ]])
    """
    xp = namespace(table)
    return xp.reshape(xp.take(table, xp.reshape(index, (-1,))), index.shape)


def first_reaching(weights: Array, u: Array) -> Array:
    """Index of the first atom at which the cumulated `weights` (n, S) reach level `u` (..., n).

    A level counts as reached up to rounding of the sum. Atoms of weight zero are never chosen, not
    even at the levels 0 and 1.
    """
    xp = namespace(weights)
    cumulated = xp.cumulative_sum(weights, axis=-1)
    limits = xp.finfo(weights.dtype)
    slack = float(limits.eps) * weights.shape[-1]
    level = xp.where(u - slack > 0, u - slack, float(limits.smallest_normal) * xp.ones_like(u))
    last = cumulated[..., -1]
    level = xp.where(level < last, level, last)[..., None]
    return xp.sum(xp.astype(cumulated < level, integer_dtype(xp)), axis=-1)


def table_quantile(values: Array, weights: Array, u: Array) -> Array:
    """Quantile of weighted atoms `values` (n, S): the smallest whose cumulated weight reaches `u`."""
    xp = namespace(values)
    order = xp.argsort(values, axis=-1)
    chosen = first_reaching(xp.take_along_axis(weights, order, axis=-1), u)
    chosen = xp.broadcast_to(chosen, np.broadcast_shapes(tuple(chosen.shape), (values.shape[0],)))
    found = gather(xp.take_along_axis(values, order, axis=-1), chosen)
    return xp.where((u >= 0) & (u <= 1), found, xp.nan * xp.ones_like(found))


FEW_CLASSES = 8
"""Classes up to which products with zeros and ones are quicker than a search: for two, 1 ms instead of 11."""


def draw_index(probs: Array, rng: np.random.Generator, size: int) -> NDArray:
    """Indices (size, n) drawn from the rows of `probs` (n, C); entries of probability zero never occur."""
    n, classes = (int(k) for k in probs.shape)
    cumulated = np.cumsum(probs, axis=1, dtype=np.float64)
    level = rng.random((size, n)) * cumulated[:, -1]
    if classes <= FEW_CLASSES:
        found = np.sum([level >= cumulated[:, c] for c in range(classes)], axis=0)
    else:
        rows: NDArray = np.arange(n)
        # One sorted table of all rows: row i occupies the interval [2 i, 2 i + 1].
        table = (cumulated + 2.0 * rows[:, None]).ravel()
        found = np.searchsorted(table, level + 2.0 * rows, side="right") - classes * rows
    last = classes - 1 - np.argmax(probs[:, ::-1] > 0, axis=1)
    return np.clip(found, 0, last)


_TABLE = 4096  # entries, beyond which a look for equal ones is worth its time
_FAR = 1e-17  # below, I_x(a, b) is its first term to rounding


@quiet
def student_t_cdf(df: NDArray, z: NDArray) -> NDArray:
    """Standard Student t distribution function, accurate near the median and for all finite `z`.

    With r = |z| / sqrt(df) and x = 1 / (1 + r^2), the tail beyond |z| is I_x(df/2, 1/2) / 2, and what lies
    between the median and z is I_(1-x)(1/2, df/2) / 2. Far out I_x(a, b) = x^a / (a B(a, b)) (1 + O(x)).
    """
    r = np.abs(z) / np.sqrt(df)
    x = 1.0 / (1.0 + r * r)
    a = 0.5 * df
    beyond = 0.5 * np.exp(-df * np.log(r) - np.log(a) - special.betaln(a, 0.5))
    tail = np.where(x < _FAR, beyond, special.stdtr(df, -np.abs(z)))
    centre = 0.5 * special.betainc(0.5, a, r * r * x)
    inside = np.abs(z) < 0.5
    return np.where(inside, 0.5 + np.sign(z) * centre, np.where(z < 0, tail, 1.0 - tail))


_NEARLY_NORMAL = 1e10  # from here on SciPy's inverses lose digits (1.17), or do not end (1.13)


def beta_quantile(a: NDArray, b: NDArray, u: NDArray) -> NDArray:
    """Beta quantile; for two large parameters by Cornish and Fisher, to 1 / min(a, b) standard deviations.

    Examples
    --------
    >>> beta_quantile(np.array([2.0, 1e20]), np.array([3.0, 1e20]), 0.75)
    array([0.54367829, 0.5       ])
    """
    return _beta_quantile(special.betaincinv, a, b, u, 1.0)


def beta_upper_quantile(a: NDArray, b: NDArray, q: NDArray) -> NDArray:
    """Beta quantile at level ``1 - q``, accurate for tiny `q`."""
    return _beta_quantile(special.betainccinv, a, b, q, -1.0)


def _beta_quantile(inverse: Any, a: NDArray, b: NDArray, level: NDArray, side: float) -> NDArray:
    large = np.minimum(a, b) > _NEARLY_NORMAL
    if not np.any(large):
        return inverse(a, b, level)
    p, q, z = a / (a + b), b / (a + b), side * special.ndtri(level)
    normal = p + (z * np.sqrt(p * q) + (z * z - 1.0) * (q - p) / (3.0 * np.sqrt(a + b))) / np.sqrt(a + b)
    return np.where(large, normal, inverse(np.where(large, 1.0, a), np.where(large, 1.0, b), level))


@quiet
def student_t_lower_quantile(df: NDArray | float, u: NDArray | float) -> NDArray:
    """Standard Student t quantile, accurate for tiny `u` and near the median; infinite beyond all numbers.

    In the terms of :func:`student_t_cdf`, x and 1 - x are found by inversion, each where it is the smaller.
    Tables of few levels under one `df` are made of these levels.
    """
    if np.size(u) > _TABLE and np.min(df) == np.max(df):
        levels, place = np.unique(u, return_inverse=True)
        if 2 * len(levels) < np.size(u):
            return student_t_lower_quantile(np.min(df), levels)[place].reshape(np.shape(u))
    a = 0.5 * df
    side = np.minimum(u, 1.0 - u)
    log_x = (np.log(2.0 * side) + np.log(a) + special.betaln(a, 0.5)) / a
    x = special.betaincinv(a, 0.5, 2.0 * side)
    rest = np.where(
        side > 0.25, special.betaincinv(0.5, a, 1.0 - 2.0 * side), special.betainccinv(0.5, a, 2.0 * side)
    )
    beyond = np.exp(0.5 * (np.log(df) - log_x))
    body = np.sqrt(df * np.where(rest < 0.5, rest / (1.0 - rest), (1.0 - x) / x))
    size = np.where(log_x < np.log(_FAR), beyond, body)
    return np.where(u < 0.5, -size, size)
