"""Predictions of counts: Poisson and negative binomial distributions."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import special

from wellcal._arrays.domains import Domain, positive, spread, whole_numbers
from wellcal._arrays.inversion import count_quantile
from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal._arrays.special import elementwise, negative_binomial_log_prob, poisson_log_prob, quiet
from wellcal.predictions.base import Predictions
from wellcal.predictions.fields import family, parameter


class _Counts(Predictions):
    """Families on 0, 1, 2, ...."""

    target_domain: ClassVar[Domain] = whole_numbers

    def _whole(self, y: Array) -> tuple[Array, Array]:
        """Return `y`, and where it is a possible count."""
        array = self.argument(y, "y")
        return array, (array >= 0) & (self.xp.floor(array) == array)


@family
class Poisson(_Counts):
    """Poisson distributions of a count.

    Parameters
    ----------
    rate
        Means, ``(n,)``; zero is allowed and predicts 0 with certainty.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Poisson(rate=np.array([0.0, 2.0]))
    >>> pred.quantile(0.5)
    array([0., 2.])
    """

    rate: Array = parameter(spread, usual=("rate", "lambda"))

    def mean(self) -> Array:
        """Means, ``(n,)``."""
        return self.rate

    def variance(self) -> Array:
        """Variances, ``(n,)``: equal to the means."""
        return self.rate

    @quiet
    def log_prob(self, y: Array) -> Array:
        """Log probability of `y`; minus infinity for what is not a count."""
        ops = self.ops
        y, possible = self._whole(y)
        certain = self.rate == 0
        k = ops.where(possible, y, 0.0 * y)
        found = poisson_log_prob(ops, k, ops.where(certain, ops.one(self.rate), self.rate))
        # At rate 0 the only possible count is 0; minus the rate keeps the derivative there.
        found = ops.where(certain & (k == 0), -self.rate + 0.0 * k, found)
        return ops.where(possible & ~(certain & (k > 0)), found, -np.inf * ops.one(found))

    def cdf(self, y: Array) -> Array:
        """Distribution function at `y`."""
        return elementwise(_poisson_cdf, self.argument(y, "y"), self.rate)

    def quantile(self, u: Array) -> Array:
        """Quantiles at levels `u`: the smallest count whose distribution function reaches it, 0 for u = 0."""
        return elementwise(_poisson_quantile, self.argument(u, "u"), self.rate)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        return rng.poisson(to_numpy(self.rate), (size, len(self))).astype(np.float64)


def _poisson_cdf(y: NDArray, rate: NDArray) -> NDArray:
    k = np.floor(y)
    return np.where(k < 0, 0.0, special.pdtr(np.maximum(k, 0.0), rate))


def _poisson_quantile(u: NDArray, rate: NDArray) -> NDArray:
    wide = rate.astype(np.float64)
    return count_quantile(_poisson_cdf, u, wide, wide, wide)


@family
class NegativeBinomial(_Counts):
    """Negative binomial distributions of a count: Poisson with a gamma distributed rate.

    Parameters
    ----------
    mean
        Means, ``(n,)``; zero is allowed and predicts 0 with certainty.
    dispersion
        Positive excess of the variance over that of a Poisson distribution, ``(n,)`` or a number: the
        variance is ``mean + dispersion * mean**2``. In scipy.stats this is ``nbinom(n, p)`` with
        ``n = 1 / dispersion`` and ``p = 1 / (1 + dispersion * mean)``.

    Examples
    --------
    >>> import numpy as np
    >>> pred = NegativeBinomial(mean=np.array([2.0, 4.0]), dispersion=0.5)
    >>> pred.variance()
    array([ 4., 12.])
    """

    # The constructor's `mean` is stored under another name: `mean()` is the method of every family.
    _mean: Array = parameter(spread, called="mean", usual=("mu", "mean"))
    dispersion: Array = parameter(
        positive,
        usual=("dispersion",),
        remedy="a dispersion of zero is Poisson(mean); there is no smaller variance in this family",
    )

    def __init__(self, mean: Array, dispersion: Array) -> None:
        self.store(_mean=mean, dispersion=dispersion)
        self.__post_init__()

    def mean(self) -> Array:
        """Means, ``(n,)``."""
        return self._mean

    def variance(self) -> Array:
        """Variances, ``(n,)``."""
        return self._mean + self.dispersion * self._mean**2

    @quiet
    def log_prob(self, y: Array) -> Array:
        """Log probability of `y`; minus infinity for what is not a count."""
        ops = self.ops
        y, possible = self._whole(y)
        k = ops.where(possible, y, 0.0 * y)
        size, mean = 1.0 / self.dispersion, self._mean
        certain, none = mean == 0, k == 0
        at_zero = -size * ops.log1p(self.dispersion * mean) + 0.0 * k
        positive = ops.where(certain, ops.one(mean), mean)
        found = negative_binomial_log_prob(ops, ops.where(none, ops.one(k), k), positive, size)
        found = ops.where(none, at_zero, found)
        return ops.where(possible & ~(certain & ~none), found, -np.inf * ops.one(found))

    def cdf(self, y: Array) -> Array:
        """Distribution function at `y`."""
        return elementwise(_negative_binomial_cdf, self.argument(y, "y"), self._mean, self.dispersion)

    def quantile(self, u: Array) -> Array:
        """Quantiles at levels `u`: the smallest count whose distribution function reaches it, 0 for u = 0."""
        return elementwise(_negative_binomial_quantile, self.argument(u, "u"), self._mean, self.dispersion)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        mean = to_numpy(self._mean).astype(np.float64)
        dispersion = to_numpy(self.dispersion).astype(np.float64)
        rate = rng.gamma(1.0 / dispersion, dispersion * mean, (size, len(self)))
        return rng.poisson(rate).astype(np.float64)


def _negative_binomial_cdf(y: NDArray, mean: NDArray, dispersion: NDArray) -> NDArray:
    k = np.floor(y)
    odds, size = dispersion * mean, 1.0 / dispersion
    more = np.maximum(k, 0.0) + 1.0
    # Two forms of one value: each keeps the digits of the smaller of p = 1 / (1 + odds) and 1 - p.
    by_failures = special.betaincc(more, size, odds / (1.0 + odds))
    by_successes = special.betainc(size, more, 1.0 / (1.0 + odds))
    found = np.where(odds < 1.0, by_failures, by_successes)
    return np.where(k < 0, 0.0, np.where(k == np.inf, 1.0, found))


def _negative_binomial_quantile(u: NDArray, mean: NDArray, dispersion: NDArray) -> NDArray:
    mean, dispersion = mean.astype(np.float64), dispersion.astype(np.float64)
    variance = mean + dispersion * mean**2
    return count_quantile(_negative_binomial_cdf, u, mean, variance, mean, dispersion)
