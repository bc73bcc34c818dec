"""Upper tails of the distributions that asymptotic p-values are read from; none of them is ever zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray

SMALLEST = float(np.finfo(float).tiny)
"""A p-value is at least this."""

_SYMMETRIC = 1e-8  # skewness up to which a gamma distribution is a normal one to eight digits


def positive(tail: Any) -> float:
    """A tail that has not underflowed to zero."""
    return max(float(tail), SMALLEST)


def normal_tail(z: float) -> float:
    """P(Z >= z) for a standard normal variate."""
    return positive(special.ndtr(-z))


def student_tail(t: float, degrees: int) -> float:
    """P(T >= t) for a Student t variate."""
    return positive(special.stdtr(degrees, -t))


def chi_square_tail(statistic: float, degrees: int) -> float:
    """P(Z >= statistic) for a chi-square variate.

    Examples
    --------
    >>> round(chi_square_tail(3.841458820694124, 1), 6)
    0.05
    """
    return positive(special.chdtrc(degrees, statistic))


def f_tail(statistic: float, numerator: int, denominator: int) -> float:
    """P(F >= statistic) for an F variate with these degrees of freedom.

    Examples
    --------
    >>> round(f_tail(4.964602743730711, 1, 10), 6)
    0.05
    """
    return positive(special.fdtrc(numerator, denominator, statistic))


def pearson_tail(statistic: float, k2: float, k3: float) -> float:
    """Upper tail of a Pearson type III distribution with mean 0 and cumulants k2 > 0 and k3.

    It is a shifted gamma distribution; for k3 <= 0 the normal distribution is taken.

    Examples
    --------
    A chi-square variate with one degree of freedom, less its mean, has the cumulants 2 and 8:

    >>> round(pearson_tail(3.841458820694124 - 1.0, 2.0, 8.0), 6)
    0.05
    """
    x, skewness = np.array([statistic / math.sqrt(k2)]), np.array([max(k3, 0.0) / k2**1.5])
    return positive(standard_gamma_tails(x, skewness, _SYMMETRIC)[0])


def standard_gamma_tails(x: NDArray, skewness: NDArray, symmetric: float) -> NDArray:
    """P(X >= x) of gamma variates, shifted and scaled to mean 0 and variance 1, of a skewness of either sign.

    Up to the skewness `symmetric` they are taken for normal ones. Left of a curve's first point all of it is
    still to come.
    """
    out = np.empty(x.shape)
    right, left = skewness > symmetric, skewness < -symmetric
    for some, tail, sign in ((right, special.gammaincc, 1.0), (left, special.gammainc, -1.0)):
        if some.any():
            root = 2.0 / (sign * skewness[some])  # of the shape
            out[some] = tail(root**2, np.maximum(root * (root + sign * x[some]), 0.0))
    rest = ~(right | left)
    if rest.any():
        out[rest] = special.ndtr(-x[rest])
    return out


def gamma_tail(statistic: float, mean: float, variance: float) -> float:
    """Upper tail of a gamma distribution with this mean and variance, both positive.

    Examples
    --------
    >>> round(gamma_tail(3.841458820694124, 1.0, 2.0), 6)
    0.05
    """
    return positive(special.gammaincc(mean**2 / variance, max(statistic, 0.0) * mean / variance))
