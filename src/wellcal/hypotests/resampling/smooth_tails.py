"""p-values of statistics over exchangeable sets, smooth where ranks are coarse.

With R drawn sets, ranks know no p-value below ``1 / (R + 1)``, and in the smallest of several p-values each
statistic has a set that is the first in it: all of these tie, and an error that one statistic sees clearly
is lost among them. A tail that is fitted to the values tells them apart. It need not be right: the rank of
what is made from it is an exact p-value whatever the tail, as long as all sets are treated alike.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.pvalues import check_numbers, tie_width

_SYMMETRIC = 1e-3  # skewness up to which a gamma distribution is a normal one, for these purposes
_NO_SPREAD = 1e-12  # variance of the others, in units of that of all
_LEAST_SKEWNESS = -0.5  # below zero a gamma distribution ends somewhere, and sets beyond that end would tie


def smooth_pvalues(values: NDArray) -> NDArray:
    """For each set the upper tail beyond its value, of a distribution that is fitted to all other sets.

    A gamma distribution with three parameters (Pearson's type III) of the same mean, variance and skewness:
    exact for sums of squares of independent normal variates, and close for weighted ones. Each set is left
    out of the fit that it is compared with: a set far off would otherwise widen the tail that it is held
    against.

    Parameters
    ----------
    values
        A statistic over sets, ``(R + 1,)``, large where a model is miscalibrated. Infinite values are beyond
        all others.

    Returns
    -------
    array
        Numbers between 0 and 1, ``(R + 1,)``: 1 for all where the values are equal to rounding.

    Examples
    --------
    >>> values = np.array([9.0, 1.0, 2.0, 0.5, 1.5, 0.2])
    >>> smooth_pvalues(values).round(3)
    array([0.   , 0.635, 0.458, 0.734, 0.543, 0.798])
    """
    check_numbers(values)
    out = np.where(values > 0, 0.0, 1.0)  # where infinite
    finite = np.isfinite(values)
    if finite.any():
        out[finite] = _of_finite(values[finite])
    return out


def _of_finite(values: NDArray) -> NDArray:
    count, spread = len(values), float(np.std(values))
    if count < 3 or np.ptp(values) <= tie_width(values):
        return np.ones(count)
    t = (values - values.mean()) / spread
    mean, second, third = ((np.sum(t**k) - t**k) / (count - 1.0) for k in (1, 2, 3))
    variance = second - mean**2
    known = variance > _NO_SPREAD
    scale = np.sqrt(np.where(known, variance, 1.0))
    skewness = (third - 3.0 * mean * second + 2.0 * mean**3) / scale**3
    skewness = np.where(known, np.maximum(skewness, _LEAST_SKEWNESS), 0.0)
    tail = pearson_tail((t - mean) / scale, skewness)
    return np.where(known, tail, np.where(t > mean, 0.0, 1.0))


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
    bent = np.abs(skewness) > _SYMMETRIC
    shape = 4.0 / np.where(bent, skewness, 1.0) ** 2
    turned = np.where(skewness < 0, -x, x)
    y = np.maximum(shape + turned * np.sqrt(shape), 0.0)
    upper, lower = special.gammaincc(shape, y), special.gammainc(shape, y)
    return np.where(bent, np.where(skewness < 0, lower, upper), special.ndtr(-x))


def two_sided(values: NDArray) -> NDArray:
    """A statistic that is large where `values` are far off to either side, ``(R + 1,)``.

    Examples
    --------
    >>> np.argmax(two_sided(np.array([-9.0, 1.0, 2.0, 0.5, 1.5, 0.2])))
    np.int64(0)
    """
    return smallest_of([smooth_pvalues(values), smooth_pvalues(-values)])


def smallest_of(pvalues: list[NDArray]) -> NDArray:
    """A statistic made of the smallest of several p-values: minus its logarithm."""
    with np.errstate(divide="ignore"):
        return -np.log(np.min(pvalues, axis=0))
