"""p-values of statistics over exchangeable sets, smooth where ranks are coarse.

With R drawn sets, ranks know no p-value below ``1 / (R + 1)``, and in the smallest of several p-values each
statistic has a set that is the first in it: all of these tie, and an error that one statistic sees clearly
is lost among them. A tail that is fitted to the values tells them apart. It need not be right: the rank of
what is made from it is an exact p-value whatever the tail, as long as all sets are treated alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.pvalues import check_numbers, tie_width
from wellcal.hypotests.tails import standard_gamma_tails

_SYMMETRIC = 1e-3  # skewness up to which a gamma distribution is a normal one, for these purposes
_NO_SPREAD = 1e-12  # variance of the others, in units of that of all
_LEAST_SKEWNESS = -0.5  # below zero a gamma distribution ends somewhere, and sets beyond that end would tie
_SHARES = (0.01, 0.1)  # of sets, the largest in a statistic, that are looked at where that will do


def smooth_pvalues(values: NDArray, count: int | None = None) -> NDArray:
    """For each set the upper tail beyond its value, of a distribution that is fitted to all other sets.

    A gamma distribution with three parameters (Pearson's type III) of the same mean, variance and skewness:
    exact for sums of squares of independent normal variates, and close for weighted ones. Each set is left
    out of the fit that it is compared with: a set far off would otherwise widen the tail that it is held
    against.

    Parameters
    ----------
    values
        A statistic over sets, ``(R + 1,)``, large where a model is miscalibrated, or several of them, ``(K,
        R + 1)``. Infinite values are beyond all others.
    count
        How many sets are asked about, the first ones: the others are there to be compared with. Default: all.

    Returns
    -------
    array
        Numbers between 0 and 1, for each of these sets: 1 for all where the values are equal to rounding.

    Examples
    --------
    >>> values = np.array([9.0, 1.0, 2.0, 0.5, 1.5, 0.2])
    >>> smooth_pvalues(values).round(3)
    array([0.   , 0.635, 0.458, 0.734, 0.543, 0.798])
    """
    check_numbers(values)
    if np.isfinite(values).all():
        return _of_finite(np.atleast_2d(values), count).reshape(*values.shape[:-1], -1)
    if values.ndim > 1:
        return np.stack([smooth_pvalues(row, count) for row in values])
    out = np.where(values > 0, 0.0, 1.0)  # where infinite
    finite = np.isfinite(values)
    if finite.any():
        out[finite] = smooth_pvalues(values[finite])
    return out[:count]


def _of_finite(values: NDArray, count: int | None) -> NDArray:
    """p-values of the first sets: tails take most of the time, and are not evaluated for the others."""
    out = np.ones(values[:, :count].shape)
    vary = _vary(values)
    if vary.any():
        first = LeftOut(*(part[:, :count] for part in left_out(values[vary])))
        out[vary] = first.tails(pearson_tail(first.x, first.skewness))
    return out


def _vary(values: NDArray) -> NDArray:
    """Which statistics of several differ between sets, by more than rounding."""
    if values.shape[1] < 3:
        return np.zeros(len(values), dtype=bool)
    return np.ptp(values, axis=1) > np.array([tie_width(row) for row in values])


class LeftOut(NamedTuple):
    """Where sets stand in the distributions of all others: each ``(K, R + 1)``.

    Attributes
    ----------
    x, skewness
        Values in standard deviations from the mean of the others, and the skewness of these.
    known, above
        Whether the others differ at all; where they do not, whether a set is beyond them.
    """

    x: NDArray
    skewness: NDArray
    known: NDArray
    above: NDArray

    def tails(self, fitted: NDArray) -> NDArray:
        """Tails as fitted, or 0 and 1 where there is nothing to fit."""
        return np.where(self.known, fitted, np.where(self.above, 0.0, 1.0))


def left_out(values: NDArray) -> LeftOut:
    """Compare each set with all others, for statistics ``(K, R + 1)`` that vary."""
    # Divided by powers of two, which rounds nothing: squares of values as small as 1e-192 are zero.
    values = np.ldexp(values, -np.frexp(np.ptp(values, axis=1, keepdims=True))[1])
    t = values - values.mean(axis=1, keepdims=True)
    t /= np.std(values, axis=1, keepdims=True)
    square = t * t
    mean, second, third = (
        (power.sum(axis=1, keepdims=True) - power) / (values.shape[1] - 1.0)
        for power in (t, square, square * t)
    )
    variance = second - mean * mean
    known = variance > _NO_SPREAD
    scale = np.sqrt(np.where(known, variance, 1.0))
    skewness = (third - mean * (3.0 * second - 2.0 * mean * mean)) / (scale * scale * scale)
    skewness = np.where(known, np.maximum(skewness, _LEAST_SKEWNESS), 0.0)
    return LeftOut((t - mean) / scale, skewness, known, t > mean)


def pearson_tail(x: NDArray, skewness: NDArray) -> NDArray:
    """P(X >= x) of standardised gamma variates of a given skewness, of either sign.

    Examples
    --------
    A squared standard normal variate has skewness sqrt(8):

    >>> square = 1.96**2
    >>> x, skewness = np.array([(square - 1.0) / np.sqrt(2.0)]), np.array([np.sqrt(8.0)])
    >>> pearson_tail(x, skewness).round(4)
    array([0.05])
    """
    return standard_gamma_tails(x, skewness, _SYMMETRIC)


def two_sided(values: NDArray) -> NDArray:
    """A statistic that is large where `values` are far off to either side, ``(R + 1,)``.

    Examples
    --------
    >>> np.argmax(two_sided(np.array([-9.0, 1.0, 2.0, 0.5, 1.5, 0.2])))
    np.int64(0)
    """
    return smallest_of(smooth_pvalues(np.stack([values, -values])))


def smallest_of(pvalues: NDArray) -> NDArray:
    """A statistic made of the smallest of several p-values ``(K, R + 1)``: minus its logarithm."""
    with np.errstate(divide="ignore"):
        return -np.log(np.min(pvalues, axis=0))


# -- where only the first set matters --------------------------------------------------------


def first_pvalues(values: NDArray) -> NDArray:
    """The first column of ``smooth_pvalues(values)``, ``(K,)``, of finite statistics ``(K, R + 1)``.

    Examples
    --------
    >>> first_pvalues(np.array([[9.0, 1.0, 2.0, 0.5, 1.5], [1.0, 9.0, 2.0, 0.5, 1.5]])).round(3)
    array([0.   , 0.721])
    """
    return _of_finite(values, 1)[:, 0]


def _first(fit: LeftOut) -> NDArray:
    first = LeftOut(*(part[:, 0] for part in fit))
    return first.tails(pearson_tail(first.x, first.skewness))


def smallest_near_first(weights: Sequence[float], values: NDArray) -> NDArray:
    """Smallest weighted p-values of sets ``(R + 1,)``, exact for those that compete with the first.

    As ``(smooth_pvalues(values) / weights).min(axis=0)`` where that is at most twice that of set 0;
    elsewhere it may be larger. Tails are evaluated only where they may be so small: where set 0 is far off,
    for one set of a hundred.

    Parameters
    ----------
    weights, values
        Of statistics over sets, ``(K,)`` and ``(K, R + 1)``.

    Examples
    --------
    >>> values = np.random.default_rng(0).gamma(2.0, size=(2, 1000))
    >>> values[1, 0] = 11.0
    >>> near = smallest_near_first([1.0, 0.5], values)
    >>> full = (smooth_pvalues(values).T / [1.0, 0.5]).min(axis=1)
    >>> int(np.sum(near <= near[0])), int(np.sum(full <= full[0]))
    (1, 1)
    """
    by_weight = np.asarray(weights)[:, None]
    check_numbers(values)
    if not np.isfinite(values).all():
        return (smooth_pvalues(values) / by_weight).min(axis=0)
    found, vary = np.ones(values.shape), _vary(values)
    if vary.any():
        fit = left_out(values[vary])
        bounds = 2.0 * np.min(_first(fit) / by_weight[vary, 0]) * by_weight[vary, 0]
        needed = np.stack([_may_be_below(*row) for row in zip(fit.x, fit.skewness, bounds, strict=True)])
        fitted = np.ones(fit.x.shape)
        fitted[needed] = pearson_tail(fit.x[needed], fit.skewness[needed])
        found[vary] = fit.tails(fitted)
    return (found / by_weight).min(axis=0)


def _may_be_below(x: NDArray, skewness: NDArray, bound: float) -> NDArray:
    """Sets whose tail may be at most `bound`, without looking at all of them.

    A tail falls with x. Beyond the mean, as a function of the skewness, it rises, falls, or does first one
    and then the other: over an interval it is smallest at an end.
    """
    for share in _SHARES:
        place = int((1.0 - share) * len(x))
        cut = np.partition(x, place)[place]
        near = x <= cut
        ends = np.array([skewness[near].min(), skewness[near].max()])
        if cut >= 0.0 and pearson_tail(np.full(2, cut), ends).min() > bound:
            return ~near
    return np.ones(len(x), dtype=bool)
