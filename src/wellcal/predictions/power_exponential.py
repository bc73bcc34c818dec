"""Power exponential predictions of scalars and vectors."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from wellcal._arrays.domains import positive
from wellcal._arrays.linalg import checked_cholesky, log_determinant, solve_lower
from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal._arrays.parameters import common_library_of, same_dtype
from wellcal._arrays.special import elementwise, positive_power, quiet
from wellcal.predictions.base import Predictions, nonempty
from wellcal.predictions.fields import Parameter, checked_parameters, derived, family, parameter
from wellcal.predictions.normal import NORMAL_INTERQUARTILE_RANGE

_OF_VECTORS = {"loc": Parameter(ndim=2), "shape": Parameter(positive)}
"""Parameters of the multivariate form besides its matrices."""


@family
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

    column_parameters = ("loc", "scale", "shape")  # those of scalars

    loc: Array = parameter(unit="scale")
    scale: Array = parameter(positive, default=None)
    shape: Array = parameter(positive, default=None)
    cov: Array = parameter(ndim=3, default=None)
    chol: Array = derived()

    def __post_init__(self) -> None:
        if self.shape is None:
            raise TypeError("shape is missing: it is the exponent of the density (1 Laplace, 2 normal)")
        if (self.scale is None) == (self.cov is None):
            raise TypeError(
                "give either scale= for scalar targets, loc (n,), or cov= for vectors, loc (n, d)"
            )
        if self.cov is None:
            self.check_parameters("loc", "scale", "shape")
        else:
            like = common_library_of(loc=self.loc, cov=self.cov, shape=self.shape)
            given = {"loc": self.loc, "shape": self.shape}
            loc, shape = checked_parameters(given, _OF_VECTORS, like=like).values()
            cov, chol = checked_cholesky(self.cov, "cov", loc)
            loc, shape, cov, chol = same_dtype([loc, shape, cov, chol])
            self.store(loc=loc, shape=shape, cov=cov, chol=chol)
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
        self.require("cdf")
        z = (self.argument(y, "y") - self.loc) / self.scale
        return elementwise(_scalar_cdf, z, self.shape)

    def quantile(self, u: Array) -> Array:
        """Quantiles at levels `u`, for scalar targets."""
        self.require("quantile")
        return self.loc + self.scale * elementwise(_scalar_quantile, self.argument(u, "u"), self.shape)

    def upper_quantile(self, q: Array) -> Array:
        """Quantiles at levels ``1 - q``, accurate for tiny `q`."""
        self.require("upper_quantile")
        return self.loc - self.scale * elementwise(_scalar_quantile, self.argument(q, "q"), self.shape)

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


@quiet
def _scalar_cdf(z: NDArray, shape: NDArray) -> NDArray:
    tail = 0.5 * special.gammaincc(1.0 / shape, np.abs(z) ** shape)
    return np.where(z < 0, tail, 1.0 - tail)


@quiet
def _scalar_quantile(u: NDArray, shape: NDArray) -> NDArray:
    side, order = np.minimum(u, 1.0 - u), 1.0 / shape
    # From the tail, or from the median, whichever is nearer.
    inside = special.gammaincinv(order, 1.0 - 2.0 * side)
    size = np.where(side > 0.25, inside, special.gammainccinv(order, 2.0 * side)) ** order
    return np.where(u < 0.5, -size, size)
