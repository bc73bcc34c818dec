"""Upper tails of the distributions that asymptotic p-values are read from; none of them is ever zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

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
    z = statistic / math.sqrt(k2)
    skewness = k3 / k2**1.5
    if skewness <= _SYMMETRIC:
        return normal_tail(z)
    shape = 4.0 / skewness**2
    # Left of the curve's first point all of it is still to come.
    return positive(special.gammaincc(shape, max(shape + math.sqrt(shape) * z, 0.0)))


def gamma_tail(statistic: float, mean: float, variance: float) -> float:
    """Upper tail of a gamma distribution with this mean and variance, both positive.

    Examples
    --------
    >>> round(gamma_tail(3.841458820694124, 1.0, 2.0), 6)
    0.05
    """
    return positive(special.gammaincc(mean**2 / variance, max(statistic, 0.0) * mean / variance))
