"""Predictions of vectors: normal, power exponential (of scalars, too) and Dirichlet distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from scipy import special

from wellcal._arrays.checks import common_library_of, plain_array, real_array, same_dtype
from wellcal._arrays.domains import Domain, positive, simplex, spread
from wellcal._arrays.linalg import checked_cholesky, log_determinant, solve_lower
from wellcal._arrays.namespaces import Array, NDArray, attribute, namespace, to_numpy
from wellcal._arrays.special import beta_quantile, betaln, elementwise, positive_power, quiet
from wellcal.predictions.base import Located, Predictions, nonempty
from wellcal.predictions.fields import Parameter, checked_parameters, derived, family, parameter
from wellcal.predictions.scalar import LOG_2PI, Symmetric, normal_draws, normal_log_density


@family
class DiagonalNormal(Located):
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

    def variance(self) -> Array:
        """Variances of the coordinates, ``(n, d)``."""
        return self.scale**2

    @quiet
    def log_prob(self, y: Array) -> Array:
        """Log density at `y`, ``(n,)``."""
        xp = self.xp
        terms = normal_log_density(self.ops, self.argument(y, "y"), self.loc, self.scale)
        # One impossible coordinate makes a target impossible, even where others have infinite density.
        impossible = xp.any(terms == -math.inf, axis=-1)
        total = xp.sum(terms, axis=-1)
        return xp.where(impossible, -math.inf * xp.ones_like(total), total)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        return normal_draws(rng, to_numpy(self.loc), to_numpy(self.scale), size)


@family
class MultivariateNormal(Located):
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

    def variance(self) -> Array:
        """Variances of the coordinates, ``(n, d)``."""
        return self.xp.linalg.diagonal(self.cov)

    def log_prob(self, y: Array) -> Array:
        """Log density at `y`, ``(n,)``."""
        z = solve_lower(self.chol, self.argument(y, "y") - self.loc)
        return -0.5 * (
            self.xp.sum(z**2, axis=-1) + self.event_shape[0] * LOG_2PI + log_determinant(self.chol)
        )

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
        diagonal = "; coordinates that are independent are DiagonalNormal(loc, scale)"
        raise ValueError(
            f"cov must have shape ({n}, {d}, {d}), or ({d}, {d}) for all predictions, for loc of shape "
            f"({n}, {d}), found {shape}{'' if len(shape) == 2 else diagonal}"
        )
    one = real_array(cov, "cov", ndim=(2,), like=loc)
    xp = namespace(one)
    matrix, chol = (xp.broadcast_to(part, (n, d, d)) for part in checked_cholesky(one[None], "cov", loc[:1]))
    return matrix, chol


_OF_VECTORS = {"loc": Parameter(ndim=2), "shape": Parameter(positive)}
"""Parameters of the multivariate form besides its matrices."""


@family
class PowerExponential(Symmetric):
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

    def standard_quantile(self, u: Array) -> Array:
        """Quantiles of a scalar for location 0 and scale 1."""
        return elementwise(_scalar_quantile, u, self.shape)

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


@family
class Dirichlet(Predictions):
    """Dirichlet distributions of a probability vector (a composition).

    Parameters
    ----------
    concentration
        Positive concentrations, ``(n, d)`` with d >= 2. Targets ``(n, d)`` are non-negative and sum to
        one within 1e-6 in double precision and 1e-3 below.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Dirichlet(np.array([[1.0, 1.0, 2.0]]))
    >>> pred.mean()
    array([[0.25, 0.25, 0.5 ]])
    """

    concentration: Array = parameter(positive, ndim=2, columns=2)

    target_domain: ClassVar[Domain] = simplex

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one target, ``(d,)``."""
        return (int(self.concentration.shape[1]),)

    def _total(self) -> Array:
        return self.xp.sum(self.concentration, axis=1)[:, None]

    def mean(self) -> Array:
        """Means, ``(n, d)``."""
        return self.concentration / self._total()

    def variance(self) -> Array:
        """Variances of the coordinates, ``(n, d)``."""
        total = self._total()
        mean = self.concentration / total
        return mean * (1.0 - mean) / (total + 1.0)

    @quiet
    def log_prob(self, y: Array) -> Array:
        """Log density at `y` with respect to the first d - 1 coordinates, ``(n,)``.

        Minus infinity for vectors with a negative coordinate; that they sum to one is not
        checked here (`check_targets` does).
        """
        xp, ops, a = self.xp, self.ops, self.concentration
        y = self.argument(y, "y")
        possible = xp.all(y >= 0, axis=-1)
        y = ops.where(y >= 0, y, ops.one(y))
        # log B(a) as a chain of two-argument beta functions, which do not cancel for large `a`.
        before = xp.cumulative_sum(a, axis=1)[:, :-1]
        constant = xp.sum(betaln(ops, before, a[:, 1:]), axis=1)
        found = xp.sum(ops.xlogy(a - 1.0 + 0.0 * y, y), axis=-1) - constant
        return ops.where(possible, found, -math.inf * ops.one(found))

    def interquartile_range(self) -> Array:
        """Interquartile ranges of the coordinates, ``(n, d)``; their distributions are beta."""
        a = self.concentration
        return elementwise(_beta_interquartile_range, a, self._total() - a)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        a = to_numpy(self.concentration).astype(np.float64)
        # Logarithms of gamma draws: the draws themselves underflow for small concentrations.
        shape = (size, *a.shape)
        log_gamma = np.log(rng.standard_gamma(a + 1.0, shape)) - rng.standard_exponential(shape) / a
        drawn = np.exp(log_gamma - log_gamma.max(axis=-1, keepdims=True))
        return drawn / drawn.sum(axis=-1, keepdims=True)


def _beta_interquartile_range(a: NDArray, b: NDArray) -> NDArray:
    low, high = (beta_quantile(a, b, np.asarray(u)) for u in (0.25, 0.75))
    return high - low
