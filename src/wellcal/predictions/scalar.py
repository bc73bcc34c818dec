"""Continuous predictions of a scalar: normal, Laplace, Student t, gamma, log-normal and beta."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from scipy import special

from wellcal._arrays.domains import Domain, logarithm, nonnegative, positive, spread, unit_interval
from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal._arrays.ops import Ops
from wellcal._arrays.special import (
    beta_quantile,
    beta_upper_quantile,
    betaln,
    elementwise,
    log_gamma_ratio,
    quiet,
    student_t_cdf,
    student_t_lower_quantile,
)
from wellcal.predictions.base import NORMAL_INTERQUARTILE_RANGE, Located, Predictions
from wellcal.predictions.fields import family, parameter

LOG_2PI = math.log(2.0 * math.pi)


class Symmetric(Located):
    """Families of a scalar that are symmetric about their locations."""

    scale: Array

    def standard_quantile(self, u: Array) -> Array:
        """Quantiles for location 0 and scale 1."""
        raise NotImplementedError

    def quantile(self, u: Array) -> Array:
        """Quantiles at levels `u`, for scalar targets."""
        self.require("quantile")
        return self.loc + self.scale * self.standard_quantile(self.argument(u, "u"))

    def upper_quantile(self, q: Array) -> Array:
        """Quantiles at levels ``1 - q``, accurate for tiny `q`."""
        self.require("upper_quantile")
        return self.loc - self.scale * self.standard_quantile(self.argument(q, "q"))


@family
class Normal(Located):
    """Normal distributions of a scalar target.

    Parameters
    ----------
    loc, scale
        Means and standard deviations, ``(n,)`` each; a number stands for all rows. A zero scale is a
        point prediction: its density is infinite at `loc` and zero elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Normal(loc=np.array([0.0, 1.0]), scale=np.array([1.0, 2.0]))
    >>> pred.quantile(0.5)
    array([0., 1.])
    """

    loc: Array = parameter(unit="scale", usual=("mu", "mean", "loc"))
    scale: Array = parameter(spread, usual=("sigma", "sd", "std", "scale"))

    def variance(self) -> Array:
        """Variances, ``(n,)``."""
        return self.scale**2

    def log_prob(self, y: Array) -> Array:
        """Log density at `y`."""
        return normal_log_density(self.ops, self.argument(y, "y"), self.loc, self.scale)

    def cdf(self, y: Array) -> Array:
        """Distribution function at `y`."""
        ops, deviation = self.ops, self.argument(y, "y") - self.loc
        certain = self.scale == 0
        z = deviation / ops.where(certain, ops.one(self.scale), self.scale)
        step = ops.where(deviation < 0, 0.0 * z, ops.one(z))
        return ops.where(certain, step, ops.ndtr(z))

    def interquartile_range(self) -> Array:
        """Interquartile ranges, ``(n,)``."""
        return NORMAL_INTERQUARTILE_RANGE * self.scale

    def quantile(self, u: Array) -> Array:
        """Quantiles at levels `u`."""
        return self._standard_quantile(u, 1.0)

    def upper_quantile(self, q: Array) -> Array:
        """Quantiles at levels ``1 - q``, accurate for tiny `q`."""
        return self._standard_quantile(q, -1.0)

    @quiet
    def _standard_quantile(self, u: Array, sign: float) -> Array:
        ops = self.ops
        z = sign * ops.ndtri(self.argument(u, "u"))
        certain = self.scale == 0  # 0 times the infinite quantiles at levels 0 and 1 is not a number
        return self.loc + ops.where(certain, ops.one(self.scale), self.scale) * ops.where(certain, 0.0, z)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        return normal_draws(rng, to_numpy(self.loc), to_numpy(self.scale), size)


def normal_draws(rng: np.random.Generator, loc: NDArray, scale: NDArray, size: int) -> NDArray:
    """Return the numbers of ``rng.normal``, which takes longer for arrays of parameters."""
    drawn = rng.standard_normal((size, *loc.shape))
    drawn *= scale
    drawn += loc
    return drawn


@quiet
def normal_log_density(ops: Ops, y: Array, loc: Array, scale: Array) -> Array:
    """Return the log density, infinite or minus infinity where the scale is zero."""
    certain = scale == 0
    safe = ops.where(certain, ops.one(scale), scale)
    z = (y - loc) / safe
    point = ops.where(z == 0, math.inf * ops.one(z), -math.inf * ops.one(z))
    return ops.where(certain, point, -0.5 * (z**2 + LOG_2PI) - ops.log(safe))


@family
class Laplace(Symmetric):
    """Laplace distributions of a scalar target, with density ``exp(-|y - loc| / scale) / (2 scale)``.

    Parameters
    ----------
    loc, scale
        Medians and scales, ``(n,)`` each; a number stands for all rows. The scale is that of
        scipy.stats: the standard deviation is ``sqrt(2) * scale``.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Laplace(loc=np.zeros(2), scale=np.array([1.0, 3.0]))
    >>> pred.variance()
    array([ 2., 18.])
    """

    loc: Array = parameter(unit="scale")
    scale: Array = parameter(positive)

    def variance(self) -> Array:
        """Variances, ``(n,)``."""
        return 2.0 * self.scale**2

    def log_prob(self, y: Array) -> Array:
        """Log density at `y`."""
        ops = self.ops
        return -ops.abs(self.argument(y, "y") - self.loc) / self.scale - ops.log(2.0 * self.scale)

    def cdf(self, y: Array) -> Array:
        """Distribution function at `y`."""
        ops = self.ops
        z = (self.argument(y, "y") - self.loc) / self.scale
        tail = 0.5 * ops.exp(-ops.abs(z))
        return ops.where(z < 0, tail, 1.0 - tail)

    def standard_quantile(self, u: Array) -> Array:
        """Quantiles for location 0 and scale 1."""
        return elementwise(_laplace_quantile, u)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        return rng.laplace(to_numpy(self.loc), to_numpy(self.scale), (size, len(self)))


def _laplace_quantile(u: NDArray) -> NDArray:
    side = np.minimum(u, 1.0 - u)
    size = -np.where(side > 0.25, np.log1p(2.0 * side - 1.0), np.log(2.0 * side))  # each where it is exact
    return np.where(u < 0.5, -size, size)


@family
class StudentT(Symmetric):
    """Student t distributions of a scalar target.

    Parameters
    ----------
    df
        Degrees of freedom, positive, ``(n,)`` or a number.
    loc, scale
        Medians and scales, ``(n,)`` each; a number stands for all rows. The scale is that of
        scipy.stats: the variance is ``scale**2 * df / (df - 2)`` for df > 2.

    Examples
    --------
    >>> import numpy as np
    >>> pred = StudentT(df=4.0, loc=np.zeros(2), scale=np.array([1.0, 2.0]))
    >>> pred.variance()
    array([2., 8.])
    """

    df: Array = parameter(positive, usual=("df", "nu"))
    loc: Array = parameter(unit="scale", usual=("mu", "mean", "loc"))
    scale: Array = parameter(positive, usual=("sigma", "sd", "std", "scale"))

    def mean(self) -> Array:
        """Means, ``(n,)``; NaN for df <= 1, where it does not exist."""
        ops = self.ops
        return ops.where(self.df > 1, self.loc, math.nan * ops.one(self.loc))

    def variance(self) -> Array:
        """Variances, ``(n,)``; infinite for 1 < df <= 2, NaN for df <= 1."""
        ops, df = self.ops, self.df
        exists = df > 2
        ratio = df / ops.where(exists, df - 2.0, ops.one(df))
        otherwise = ops.where(df > 1, math.inf * ops.one(df), math.nan * ops.one(df))
        return ops.where(exists, ratio * self.scale**2, otherwise)

    def log_prob(self, y: Array) -> Array:
        """Log density at `y`."""
        ops, df = self.ops, self.df
        z = ops.abs(self.argument(y, "y") - self.loc) / (self.scale * ops.sqrt(df))
        far = z > 1e8  # beyond, 1 + z^2 rounds to z^2, which may overflow
        square = ops.where(far, 0.0 * z, z) ** 2
        tail = ops.where(far, 2.0 * ops.log(ops.where(far, z, ops.one(z))), ops.log1p(square))
        constant = log_gamma_ratio(ops, 0.5 * df, 0.5 * ops.one(df)) - 0.5 * ops.log(math.pi * df)
        return constant - ops.log(self.scale) - 0.5 * (df + 1.0) * tail

    def cdf(self, y: Array) -> Array:
        """Distribution function at `y`."""
        z = (self.argument(y, "y") - self.loc) / self.scale
        return elementwise(student_t_cdf, self.df, z)

    def standard_quantile(self, u: Array) -> Array:
        """Quantiles for location 0 and scale 1."""
        return elementwise(student_t_lower_quantile, self.df, u)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        z = rng.standard_t(to_numpy(self.df), (size, len(self)))
        return to_numpy(self.loc) + to_numpy(self.scale) * z


@family
class Gamma(Predictions):
    """Gamma distributions of a non-negative target.

    Parameters
    ----------
    shape, scale
        Shapes and scales, positive, ``(n,)`` each; a number stands for all rows. The mean is
        ``shape * scale``.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Gamma(shape=np.array([1.0, 2.0]), scale=3.0)
    >>> pred.mean()
    array([3., 6.])
    """

    shape: Array = parameter(positive)
    scale: Array = parameter(positive)

    target_domain: ClassVar[Domain] = nonnegative

    def mean(self) -> Array:
        """Means, ``(n,)``."""
        return self.shape * self.scale

    def variance(self) -> Array:
        """Variances, ``(n,)``."""
        return self.shape * self.scale**2

    @quiet
    def log_prob(self, y: Array) -> Array:
        """Log density at `y`; minus infinity for negative `y`."""
        ops = self.ops
        z = self.argument(y, "y") / self.scale
        possible = z >= 0
        z = ops.where(possible, z, ops.one(z))
        found = ops.xlogy(self.shape - 1.0 + 0.0 * z, z) - z - ops.gammaln(self.shape) - ops.log(self.scale)
        return ops.where(possible, found, -math.inf * ops.one(found))

    def cdf(self, y: Array) -> Array:
        """Distribution function at `y`."""
        return elementwise(_gamma_cdf, self.shape, self.argument(y, "y") / self.scale)

    def quantile(self, u: Array) -> Array:
        """Quantiles at levels `u`."""
        return self.scale * elementwise(special.gammaincinv, self.shape, self.argument(u, "u"))

    def upper_quantile(self, q: Array) -> Array:
        """Quantiles at levels ``1 - q``, accurate for tiny `q`."""
        return self.scale * elementwise(special.gammainccinv, self.shape, self.argument(q, "q"))

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        return rng.gamma(to_numpy(self.shape), to_numpy(self.scale), (size, len(self)))


def _gamma_cdf(shape: NDArray, z: NDArray) -> NDArray:
    return special.gammainc(shape, np.maximum(z, 0.0))


@family
class LogNormal(Predictions):
    """Distributions of a positive target whose logarithm is normal.

    A target of zero is accepted; its density is zero.

    Parameters
    ----------
    mu, sigma
        Means and positive standard deviations of the logarithm, ``(n,)`` each; a number stands for
        all rows. In scipy.stats this is ``lognorm(s=sigma, scale=exp(mu))``.

    Examples
    --------
    >>> import numpy as np
    >>> pred = LogNormal(mu=np.zeros(2), sigma=np.array([0.5, 1.0]))
    >>> pred.quantile(0.5)
    array([1., 1.])
    """

    column_role: ClassVar[str] = "lognormal"

    mu: Array = parameter(logarithm, unit="sigma")
    sigma: Array = parameter(positive)

    target_domain: ClassVar[Domain] = nonnegative

    @quiet
    def mean(self) -> Array:
        """Means, ``(n,)``."""
        return self.ops.exp(self.mu + 0.5 * self.sigma**2)

    @quiet
    def variance(self) -> Array:
        """Variances, ``(n,)``."""
        ops, square = self.ops, self.sigma**2
        return ops.expm1(square) * ops.exp(2.0 * self.mu + square)

    @quiet
    def log_prob(self, y: Array) -> Array:
        """Log density at `y`; minus infinity for `y` <= 0."""
        ops, y = self.ops, self.argument(y, "y")
        possible = y > 0
        log_y = ops.log(ops.where(possible, y, ops.one(y)))
        z = (log_y - self.mu) / self.sigma
        found = -0.5 * (z * z + LOG_2PI) - ops.log(self.sigma) - log_y
        return ops.where(possible, found, -math.inf * ops.one(found))

    def cdf(self, y: Array) -> Array:
        """Distribution function at `y`."""
        return elementwise(_log_normal_cdf, self.argument(y, "y"), self.mu, self.sigma)

    @quiet
    def quantile(self, u: Array) -> Array:
        """Quantiles at levels `u`."""
        ops = self.ops
        return ops.exp(self.mu + self.sigma * ops.ndtri(self.argument(u, "u")))

    @quiet
    def upper_quantile(self, q: Array) -> Array:
        """Quantiles at levels ``1 - q``, accurate for tiny `q`."""
        ops = self.ops
        return ops.exp(self.mu - self.sigma * ops.ndtri(self.argument(q, "q")))

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        return rng.lognormal(to_numpy(self.mu), to_numpy(self.sigma), (size, len(self)))


def _log_normal_cdf(y: NDArray, mu: NDArray, sigma: NDArray) -> NDArray:
    return special.ndtr((np.log(np.maximum(y, 0.0)) - mu) / sigma)


@family
class Beta(Predictions):
    """Beta distributions of a target in [0, 1].

    Parameters
    ----------
    a, b
        Positive shape parameters, ``(n,)`` each; a number stands for all rows. The mean is
        ``a / (a + b)``.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Beta(a=np.array([1.0, 3.0]), b=np.array([1.0, 1.0]))
    >>> pred.mean()
    array([0.5 , 0.75])
    """

    a: Array = parameter(positive)
    b: Array = parameter(positive)

    target_domain: ClassVar[Domain] = unit_interval

    def mean(self) -> Array:
        """Means, ``(n,)``."""
        return self.a / (self.a + self.b)

    def variance(self) -> Array:
        """Variances, ``(n,)``."""
        total = self.a + self.b
        return (self.a / total) * (self.b / total) / (total + 1.0)

    @quiet
    def log_prob(self, y: Array) -> Array:
        """Log density at `y`; minus infinity outside [0, 1]."""
        ops, y = self.ops, self.argument(y, "y")
        possible = (y >= 0) & (y <= 1)
        y = ops.where(possible, y, 0.5 * ops.one(y))
        zero = 0.0 * y
        # Terms of order zero vanish at their end of the interval even where the logarithm is infinite.
        found = (
            ops.xlogy(self.a - 1.0 + zero, y)
            + _xlog1py(ops, self.b - 1.0 + zero, -y)
            - betaln(ops, self.a, self.b)
        )
        return ops.where(possible, found, -math.inf * ops.one(found))

    def cdf(self, y: Array) -> Array:
        """Distribution function at `y`."""
        return elementwise(_beta_cdf, self.argument(y, "y"), self.a, self.b)

    def quantile(self, u: Array) -> Array:
        """Quantiles at levels `u`."""
        return elementwise(beta_quantile, self.a, self.b, self.argument(u, "u"))

    def upper_quantile(self, q: Array) -> Array:
        """Quantiles at levels ``1 - q``, accurate for tiny `q`."""
        return elementwise(beta_upper_quantile, self.a, self.b, self.argument(q, "q"))

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        return rng.beta(to_numpy(self.a), to_numpy(self.b), (size, len(self)))


def _xlog1py(ops: Ops, x: Array, y: Array) -> Array:
    """``x * log1p(y)``, 0 where x is 0 and the logarithm infinite."""
    return x * ops.log1p(ops.where((x == 0) & (y <= -1), 0.0 * y, y))


def _beta_cdf(y: NDArray, a: NDArray, b: NDArray) -> NDArray:
    return special.betainc(a, b, np.clip(y, 0.0, 1.0))
