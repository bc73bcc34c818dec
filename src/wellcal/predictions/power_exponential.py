"""Power exponential predictions of scalars and vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import special

from wellcal._arrays.checks import check_ndim, positive, real_array
from wellcal._arrays.linalg import checked_cholesky, log_determinant, solve_lower
from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal._arrays.parameters import common_library, is_number, parameters, repeated, same_dtype
from wellcal._arrays.special import elementwise, positive_power, quiet
from wellcal.predictions.base import Predictions, nonempty
from wellcal.predictions.normal import NORMAL_INTERQUARTILE_RANGE, check_vectors


@dataclass(frozen=True, repr=False, eq=False)
class PowerExponential(Predictions):
    r"""Power exponential (generalised normal) distributions of scalars or vectors.

    For scalars, ``PowerExponential(loc, scale, shape)`` has density proportional to
    :math:`\exp(-|(y - \mathrm{loc}) / \mathrm{scale}|^{\mathrm{shape}})`: scipy.stats' ``gennorm``.
    Shape 1 is a Laplace distribution of the same scale; shape 2 is a normal distribution of standard
    deviation ``scale / sqrt(2)``.

    For vectors, ``PowerExponential(loc, shape=shape, cov=cov)`` is the multivariate form of Gómez,
    Gómez-Villegas and Marín (1998), with density proportional to

    .. math:: \exp(-\tfrac12 q^{\mathrm{shape} / 2}), \qquad
              q = (y - \mathrm{loc})^\top \mathrm{cov}^{-1} (y - \mathrm{loc})

    where ``shape`` is twice their kurtosis parameter. Shape 2 is the multivariate normal distribution.

    The two are parametrised differently, each as in its literature: for d = 1 the multivariate form is
    the scalar one with ``scale = sqrt(cov) * 2 ** (1 / shape)``.

    Parameters
    ----------
    loc
        Locations, ``(n,)`` or ``(n, d)``.
    scale
        Positive scales, ``(n,)`` or a number; for scalars only.
    shape
        Positive exponents, ``(n,)`` or a number.
    cov
        Scale matrices, ``(n, d, d)``, symmetric and positive definite; for vectors only. They are
        proportional, and except for shape 2 not equal, to the covariances.

    Attributes
    ----------
    chol
        Lower Cholesky factors of `cov`; None for scalars.

    References
    ----------
    E. Gómez, M. A. Gómez-Villegas and J. M. Marín (1998). A multivariate generalization of the power
    exponential family of distributions. Communications in Statistics - Theory and Methods 27.

    Examples
    --------
    >>> import numpy as np
    >>> PowerExponential(loc=np.zeros(1), scale=2.0, shape=1.0).variance()
    array([8.])
    >>> PowerExponential(loc=np.zeros((1, 2)), shape=2.0, cov=np.eye(2)[None]).variance()
    array([[1., 1.]])
    """

    loc: Array
    scale: Array = None
    shape: Array = None
    cov: Array = None
    chol: Array = field(init=False, default=None)

    array_fields: ClassVar[tuple[str, ...]] = ("loc", "scale", "shape", "cov", "chol")

    def __post_init__(self) -> None:
        if self.shape is None:
            raise TypeError("shape is missing: it is the exponent of the density (1 Laplace, 2 normal)")
        if (self.scale is None) == (self.cov is None):
            raise TypeError(
                "give either scale= for scalar targets, loc (n,), or cov= for vectors, loc (n, d)"
            )
        if self.cov is None:
            loc, scale, shape = parameters(loc=self.loc, scale=self.scale, shape=self.shape)
            positive(scale, "scale")
            self.store(loc=loc, scale=scale, shape=shape)
        else:
            loc = real_array(self.loc, "loc", ndim=(2,), like=common_library(self.loc, self.cov, self.shape))
            check_vectors(loc, "loc")
            cov, chol = checked_cholesky(self.cov, "cov", loc)
            shape = _shape_of_vectors(self.shape, loc)
            loc, shape, cov, chol = same_dtype([loc, shape, cov, chol])
            self.store(loc=loc, shape=shape, cov=cov, chol=chol)
        positive(self.shape, "shape")
        nonempty(self)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one target: () or ``(d,)``."""
        return tuple(int(k) for k in self.loc.shape[1:])

    def mean(self) -> Array:
        """Means, ``(n,)`` or ``(n, d)``."""
        return self.loc

    def variance(self) -> Array:
        """Variances, ``(n,)``, or of the coordinates, ``(n, d)``."""
        ops, shape = self.ops, self.shape
        if self.cov is None:
            return self.scale**2 * ops.exp(ops.gammaln(3.0 / shape) - ops.gammaln(1.0 / shape))
        d = self.event_shape[0]
        radial = ops.exp(
            2.0 / shape * math.log(2.0)
            + ops.gammaln((d + 2.0) / shape)
            - ops.gammaln(d / shape)
            - math.log(d)
        )
        return radial[:, None] * self.xp.linalg.diagonal(self.cov)

    def log_prob(self, y: Array) -> Array:
        """Log density at `y`, ``(n,)``."""
        ops, shape = self.ops, self.shape
        deviation = self.argument(y, "y") - self.loc
        if self.cov is None:
            z = ops.abs(deviation) / self.scale
            constant = ops.log(0.5 * shape) - ops.log(self.scale) - ops.gammaln(1.0 / shape)
            return constant - positive_power(ops, z, shape + 0.0 * z)
        d = self.event_shape[0]
        q = self.xp.sum(solve_lower(self.chol, deviation) ** 2, axis=-1)
        constant = (
            math.log(0.5 * d)
            + math.lgamma(0.5 * d)
            - 0.5 * d * math.log(math.pi)
            - ops.gammaln(1.0 + d / shape)
            - d / shape * math.log(2.0)
        )
        power = positive_power(ops, q, 0.5 * shape + 0.0 * q)
        return constant - 0.5 * (log_determinant(self.chol) + power)

    def cdf(self, y: Array) -> Array:
        """Distribution function at `y`, for scalar targets."""
        self._need_scalar("cdf")
        z = (self.argument(y, "y") - self.loc) / self.scale
        return elementwise(_scalar_cdf, z, self.shape)

    def quantile(self, u: Array) -> Array:
        """Quantiles at levels `u`, for scalar targets."""
        self._need_scalar("quantile")
        return self.loc + self.scale * elementwise(_scalar_quantile, self.argument(u, "u"), self.shape)

    def upper_quantile(self, q: Array) -> Array:
        """Quantiles at levels ``1 - q``, accurate for tiny `q`."""
        self._need_scalar("quantile")
        return self.loc - self.scale * elementwise(_scalar_quantile, self.argument(q, "q"), self.shape)

    def _need_scalar(self, what: str) -> None:
        if self.cov is not None:
            raise TypeError(f"PowerExponential of vectors has no {what}: only scalar targets have one")

    def interquartile_range(self) -> Array:
        """Interquartile ranges, ``(n,)``; for vectors those of normals of equal variance, ``(n, d)``."""
        if self.cov is None:
            return super().interquartile_range()
        return NORMAL_INTERQUARTILE_RANGE * self.xp.sqrt(self.variance())

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        loc, shape = to_numpy(self.loc), to_numpy(self.shape).astype(np.float64)
        n = len(self)
        if self.cov is None:
            z = rng.standard_gamma(1.0 / shape, (size, n)) ** (1.0 / shape)
            return loc + to_numpy(self.scale) * rng.choice([-1.0, 1.0], (size, n)) * z
        d = self.event_shape[0]
        direction = rng.standard_normal((size, n, d))
        direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
        radius = (2.0 * rng.standard_gamma(d / shape, (size, n))) ** (1.0 / shape)
        return loc + (to_numpy(self.chol) @ (radius[..., None] * direction)[..., None])[..., 0]


def _shape_of_vectors(shape: Any, loc: Array) -> Array:
    n = int(loc.shape[0])
    if is_number(shape):
        return repeated(shape, "shape", (n,), loc[:, 0])
    array = real_array(shape, "shape", like=loc)
    check_ndim(array, "shape", (1,))
    if tuple(array.shape) != (n,):
        raise ValueError(f"shape and loc must have the same length, found {array.shape[0]} and {n}")
    return array


@quiet
def _scalar_cdf(z: NDArray, shape: NDArray) -> NDArray:
    tail = 0.5 * special.gammaincc(1.0 / shape, np.abs(z) ** shape)
    return np.where(z < 0, tail, 1.0 - tail)


@quiet
def _scalar_quantile(u: NDArray, shape: NDArray) -> NDArray:
    side = np.minimum(u, 1.0 - u)
    size = special.gammainccinv(1.0 / shape, 2.0 * side) ** (1.0 / shape)
    return np.where(u < 0.5, -size, size)
