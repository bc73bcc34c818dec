"""Normal predictions of scalars and vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wellcal._arrays.checks import plain_array, real_array
from wellcal._arrays.domains import spread
from wellcal._arrays.linalg import checked_cholesky, log_determinant, solve_lower
from wellcal._arrays.namespaces import Array, NDArray, attribute, namespace, to_numpy
from wellcal._arrays.ops import Ops
from wellcal._arrays.parameters import common_library_of, same_dtype
from wellcal._arrays.special import quiet
from wellcal.predictions.base import Predictions, nonempty
from wellcal.predictions.fields import checked_parameters, derived, family, parameter

LOG_2PI = math.log(2.0 * math.pi)
NORMAL_INTERQUARTILE_RANGE = 1.3489795003921634
"""Interquartile range of the standard normal distribution."""


@family
class Normal(Predictions):
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

    def mean(self) -> Array:
        """Means, ``(n,)``."""
        return self.loc

    def variance(self) -> Array:
        """Variances, ``(n,)``."""
        return self.scale**2

    def log_prob(self, y: Array) -> Array:
        """Log density at `y`."""
        return _log_density(self.ops, self.argument(y, "y"), self.loc, self.scale)

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

    @quiet
    def quantile(self, u: Array) -> Array:
        """Quantiles at levels `u`."""
        return self._standard_quantile(u, 1.0)

    @quiet
    def upper_quantile(self, q: Array) -> Array:
        """Quantiles at levels ``1 - q``, accurate for tiny `q`."""
        return self._standard_quantile(q, -1.0)

    def _standard_quantile(self, u: Array, sign: float) -> Array:
        ops = self.ops
        z = sign * ops.ndtri(self.argument(u, "u"))
        certain = self.scale == 0  # 0 times the infinite quantiles at levels 0 and 1 is not a number
        return self.loc + ops.where(certain, ops.one(self.scale), self.scale) * ops.where(certain, 0.0, z)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        return _drawn(rng, to_numpy(self.loc), to_numpy(self.scale), size)


def _drawn(rng: np.random.Generator, loc: NDArray, scale: NDArray, size: int) -> NDArray:
    """The numbers of ``rng.normal``, which takes longer for arrays of parameters."""
    drawn = rng.standard_normal((size, *loc.shape))
    drawn *= scale
    drawn += loc
    return drawn


@quiet
def _log_density(ops: Ops, y: Array, loc: Array, scale: Array) -> Array:
    certain = scale == 0
    safe = ops.where(certain, ops.one(scale), scale)
    z = (y - loc) / safe
    point = ops.where(z == 0, math.inf * ops.one(z), -math.inf * ops.one(z))
    return ops.where(certain, point, -0.5 * (z**2 + LOG_2PI) - ops.log(safe))


@family
class DiagonalNormal(Predictions):
    """Normal distributions of vectors with independent coordinates.

    Parameters
    ----------
    loc, scale
        Means and standard deviations, ``(n, d)`` each; a number stands for all entries. Zero scales
        are point predictions of a coordinate.

    Examples
    --------
    >>> import numpy as np
    >>> pred = DiagonalNormal(loc=np.zeros((3, 2)), scale=np.ones((3, 2)))
    >>> pred.log_prob(np.zeros((3, 2))).round(6)
    array([-1.837877, -1.837877, -1.837877])
    """

    loc: Array = parameter(ndim=2, unit="scale", usual=("mu_*", "mean_*", "loc_*"))
    scale: Array = parameter(spread, ndim=2, usual=("sigma_*", "sd_*", "std_*", "scale_*"))

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one target, ``(d,)``."""
        return (int(self.loc.shape[1]),)

    def mean(self) -> Array:
        """Means, ``(n, d)``."""
        return self.loc

    def variance(self) -> Array:
        """Variances of the coordinates, ``(n, d)``."""
        return self.scale**2

    @quiet
    def log_prob(self, y: Array) -> Array:
        """Log density at `y`, ``(n,)``."""
        xp = self.xp
        terms = _log_density(self.ops, self.argument(y, "y"), self.loc, self.scale)
        # One impossible coordinate makes a target impossible, even where others have infinite density.
        impossible = xp.any(terms == -math.inf, axis=-1)
        total = xp.sum(terms, axis=-1)
        return xp.where(impossible, -math.inf * xp.ones_like(total), total)

    def interquartile_range(self) -> Array:
        """Interquartile ranges of the coordinates, ``(n, d)``."""
        return NORMAL_INTERQUARTILE_RANGE * self.scale

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        return _drawn(rng, to_numpy(self.loc), to_numpy(self.scale), size)


@family
class MultivariateNormal(Predictions):
    """Normal distributions of vectors with full covariances.

    Each covariance is factored once, at construction.

    Parameters
    ----------
    loc
        Means, ``(n, d)``.
    cov
        Covariances, ``(n, d, d)``, or one that all predictions share, ``(d, d)``: symmetric to 1e-8 of the
        largest entry (1e-4 in single precision) and positive definite beyond rounding.

    Attributes
    ----------
    chol
        Lower Cholesky factors of `cov`, ``(n, d, d)``.

    Examples
    --------
    >>> import numpy as np
    >>> pred = MultivariateNormal(loc=np.zeros((1, 2)), cov=np.array([[[4.0, 2.0], [2.0, 5.0]]]))
    >>> pred.chol
    array([[[2., 0.],
            [1., 2.]]])
    >>> pred.log_prob(np.zeros((1, 2))).round(6)
    array([-3.224171])
    """

    loc: Array = parameter(ndim=2, usual=("mu_*", "mean_*", "loc_*"))
    cov: Array = parameter(ndim=3, usual=("cov_*",))
    chol: Array = derived()

    def __post_init__(self) -> None:
        like = common_library_of(loc=self.loc, cov=self.cov)
        loc = checked_parameters({"loc": self.loc}, self.parameter_fields, like=like)["loc"]
        cov, chol = _factored(self.cov, loc)
        loc, cov, chol = same_dtype([loc, cov, chol])
        self.store(loc=loc, cov=cov, chol=chol)
        nonempty(self)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one target, ``(d,)``."""
        return (int(self.loc.shape[1]),)

    def mean(self) -> Array:
        """Means, ``(n, d)``."""
        return self.loc

    def variance(self) -> Array:
        """Variances of the coordinates, ``(n, d)``."""
        return self.xp.linalg.diagonal(self.cov)

    def log_prob(self, y: Array) -> Array:
        """Log density at `y`, ``(n,)``."""
        z = solve_lower(self.chol, self.argument(y, "y") - self.loc)
        return -0.5 * (
            self.xp.sum(z**2, axis=-1) + self.event_shape[0] * LOG_2PI + log_determinant(self.chol)
        )

    def interquartile_range(self) -> Array:
        """Interquartile ranges of the coordinates, ``(n, d)``."""
        return NORMAL_INTERQUARTILE_RANGE * self.xp.sqrt(self.variance())

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        z = rng.standard_normal((size, *self.loc.shape))
        return to_numpy(self.loc) + (to_numpy(self.chol) @ z[..., None])[..., 0]


def _factored(cov: Any, loc: Array) -> tuple[Array, Array]:
    """Covariances and their factors, ``(n, d, d)``; one for all is factored once."""
    given = plain_array(cov, "cov") if issubclass(type(cov), (list, tuple)) else cov
    shape = tuple(attribute(given, "shape", ()))
    n, d = (int(k) for k in loc.shape)
    if len(shape) == 3 or n == 0:
        return checked_cholesky(cov, "cov", loc)
    if shape != (d, d):
        remedy = (
            "" if len(shape) == 2 else "; coordinates that are independent are DiagonalNormal(loc, scale)"
        )
        raise ValueError(
            f"cov must have shape ({n}, {d}, {d}), or ({d}, {d}) for all predictions, for loc of shape "
            f"({n}, {d}), found {shape}{remedy}"
        )
    one = real_array(cov, "cov", ndim=(2,), like=loc)
    xp = namespace(one)
    matrix, chol = (xp.broadcast_to(part, (n, d, d)) for part in checked_cholesky(one[None], "cov", loc[:1]))
    return matrix, chol
