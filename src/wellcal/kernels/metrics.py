"""Distances between predicted distributions, and the kernel built on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from wellcal._arrays.checks import described, one_of, positive_number, whole_number
from wellcal._arrays.namespaces import shown
from wellcal._arrays.registry import Rules
from wellcal.kernels.base import Kernel, Part, Scale, check_kernel
from wellcal.kernels.proofs import Hilbertian, NegativeType, Proof
from wellcal.predictions.base import keeps_distribution


class Metric(Part):
    """A distance between predictions, as a frozen value.

    A metric of your own is a frozen dataclass derived from `Metric`, with a :func:`wellcal.extend.distance`
    for each family that it is available for. What is known about it stands in the body of its class.

    Attributes
    ----------
    max_power
        Largest power for which ``exp(-d^power)`` can be positive definite.
    proof
        What is proven about ``exp(-d^power)`` for powers up to that, a :class:`Proof`; None says that nothing
        is known. It holds for the very class in whose body it stands, not for classes derived from it.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.extend import distance
    >>> @dataclass(frozen=True)
    ... class OfMeans(Metric):
    ...     "Distance of the means, which does not see spread."
    >>> @distance(OfMeans, wc.Normal)
    ... def means(metric, predictions):
    ...     return predictions.loc
    >>> pred = wc.Normal(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    >>> print((ExpDistance(OfMeans()) @ wc.kernels.Gaussian()).guarantees(pred).positive_definite)
    None
    """

    max_power: ClassVar[float] = 2.0
    instead: ClassVar[str] = "MaximumMeanDiscrepancy(kernel)"
    """What to take for families that it does not serve."""


DISTANCES: Rules[Callable[..., Any]] = Rules("a distance", serves=keeps_distribution)
"""How each metric is evaluated for each family: rules by ``(metric class, family)``.

They take a metric and predictions of these classes and a `Context`, and return a `PreparedDistance`: both
belong to a room above this one.
"""


class UnavailableError(TypeError):
    """A metric that says nothing about a family."""


_OF_PARAMETERS = "the Euclidean distance of what it takes from the parameters, which are told apart by it"


@dataclass(frozen=True)
class Euclidean(Metric):
    """Distance of the parameters as they are given.

    ``|p - p'|`` for Bernoulli, between probability vectors for Categorical, between (loc, scale) for
    Normal, DiagonalNormal and Laplace, between rates for Poisson, between values for Quantiles.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> pred = wc.Bernoulli(np.array([0.2, 0.7]))
    >>> kernel = ExpDistance(Euclidean()) @ wc.kernels.Delta()
    >>> round(float(wc.skce([1, 1], pred, kernel=kernel)), 6)  # 0.48 exp(-0.5)
    0.291135
    """

    proof: ClassVar[Proof | None] = Hilbertian(_OF_PARAMETERS)
    pure: ClassVar[bool] = True


@dataclass(frozen=True)
class TotalVariation(Metric):
    """Total variation distance, half the sum of ``|p_c - p'_c|`` over classes.

    It is an L1 distance, so exp(-d^power) is a kernel for power <= 1 and indefinite beyond.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> pred = wc.Categorical(np.array([[0.2, 0.8], [0.5, 0.5]]))
    >>> kernel = ExpDistance(TotalVariation()) @ wc.kernels.Delta()
    >>> round(float(wc.skce([0, 0], pred, kernel=kernel)), 6)  # 0.8 exp(-0.3)
    0.592655
    """

    max_power: ClassVar[float] = 1.0
    instead: ClassVar[str] = "Hellinger() or MaximumMeanDiscrepancy(kernel)"
    proof: ClassVar[Proof | None] = NegativeType("it is an L1 distance of probabilities")
    pure: ClassVar[bool] = True


@dataclass(frozen=True)
class Hellinger(Metric):
    """Hellinger distance, sqrt(1 - sum_c sqrt(p_c p'_c)), likewise with densities.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> pred = wc.Normal(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    >>> kernel = ExpDistance(Hellinger()) @ wc.kernels.Gaussian()
    >>> round(float(wc.skce([1.0, 2.0], pred, kernel=kernel)), 6)
    0.186749
    """

    proof: ClassVar[Proof | None] = Hilbertian("the L2 distance of square roots of densities")
    pure: ClassVar[bool] = True


@dataclass(frozen=True)
class Wasserstein(Metric):
    """Wasserstein distance of order 1 or 2 with Euclidean ground distance.

    Order 2 is exact for normals and Laplace distributions (paper, appendices on normal and Laplace
    distributions) and is the L2 distance of quantile functions for other scalar predictions.
    Between normals with covariances that do not commute it is not Hilbertian: see
    :class:`RootCovariance` for a proven alternative.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> pred = wc.Normal(np.array([0.0, 3.0]), np.array([1.0, 5.0]))
    >>> kernel = ExpDistance(Wasserstein()) @ wc.kernels.Gaussian()
    >>> round(float(wc.skce([1.0, 4.0], pred, kernel=kernel)), 6)
    -0.000138
    """

    order: int = 2

    pure: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", whole_number(self.order, "order", least=1, most=2))

    # A property, since it follows from the order: it is a constant of other metrics.
    @property
    def max_power(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """2 for order 2; 1 for order 1, which is an L1 distance."""
        return float(self.order)


@dataclass(frozen=True)
class RootCovariance(Metric):
    """``sqrt(||m - m'||^2 + ||S^(1/2) - S'^(1/2)||_F^2)`` for multivariate normals.

    A Hilbertian metric for all covariances, equal to the 2-Wasserstein distance where they commute.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> pred = wc.MultivariateNormal(np.zeros((2, 2)), np.stack([np.eye(2), 4.0 * np.eye(2)]))
    >>> kernel = ExpDistance(RootCovariance()) @ wc.kernels.Gaussian()
    >>> round(float(wc.skce(np.ones((2, 2)), pred, kernel=kernel)), 6)
    0.170098
    """

    proof: ClassVar[Proof | None] = Hilbertian(_OF_PARAMETERS)
    pure: ClassVar[bool] = True


@dataclass(frozen=True)
class MixtureWasserstein(Metric):
    """Optimal transport between the components of two mixtures (Delon and Desolneux, 2020).

    ``inf_w (sum_kl w_kl d(p_k, p'_l)^order)^(1/order)`` over couplings w of the weights. The paper's
    theorem that it is Hilbertian does not hold: six two-point mixtures on the vertices of a square
    are a counterexample. It is offered to reproduce the paper and is never a default.

    Parameters
    ----------
    order
        Any number >= 1.
    components
        Metric between components.
    solver
        "exact" (assignment for uniform weights, network simplex otherwise) or "sinkhorn".
    regularisation
        Entropic regularisation of the Sinkhorn solver, relative to the largest cost.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> members = [wc.Normal(np.zeros(2), 1.0), wc.Normal(np.array([1.0, 2.0]), 1.0)]
    >>> kernel = ExpDistance(MixtureWasserstein()) @ wc.kernels.Gaussian()
    >>> print(kernel.guarantees(wc.Mixture(members)).positive_definite)
    False
    """

    order: float = 2.0
    components: Metric = Wasserstein()
    solver: str = "exact"
    regularisation: float = 0.01

    pure: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not positive_number(self.order, "order") >= 1:
            raise ValueError(f"order must be at least 1, found {self.order}")
        if not isinstance(self.components, Metric):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"components must be a metric such as Wasserstein(), found {described(self.components)}"
            )
        one_of(self.solver, "solver", ("exact", "sinkhorn"))
        positive_number(self.regularisation, "regularisation")


@dataclass(frozen=True)
class MaximumMeanDiscrepancy(Metric):
    """``d^2 = <P - Q, P - Q>_k`` for a kernel k on targets: Hilbertian for every family.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.kernels import Gaussian
    >>> pred = wc.StudentT(np.full(2, 3.0), np.array([0.0, 1.0]), 1.0)
    >>> kernel = ExpDistance(MaximumMeanDiscrepancy(Gaussian()), power=2.0) @ Gaussian()
    >>> kernel.guarantees(pred).characteristic
    True
    """

    kernel: Kernel

    pure: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_kernel(self.kernel, "kernel")


@dataclass(frozen=True)
class ExpDistance(Kernel):
    """``exp(-(d(p, p') / lengthscale)^power)`` on predictions, for a metric d.

    Parameters
    ----------
    metric
        Distance between predictions.
    lengthscale
        Distance at which the kernel has fallen to 1/e.
    power
        0 < power <= 2; at most 1 for total variation and the Wasserstein distance of order 1.

    Examples
    --------
    >>> ExpDistance(Wasserstein(), lengthscale=0.5)
    ExpDistance(Wasserstein(order=2), lengthscale=0.5, power=1)
    """

    metric: Metric
    lengthscale: Scale = 1.0
    power: float = 1.0

    space: ClassVar[str] = "predictions"
    supremum: ClassVar[float | None] = 1.0
    pure: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Metric):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"metric must be a metric such as Wasserstein(), found {described(self.metric)}")
        object.__setattr__(self, "lengthscale", positive_number(self.lengthscale, "lengthscale"))
        power = float(positive_number(self.power, "power"))
        if power > self.metric.max_power:
            raise ValueError(
                f"exp(-d**power) with {self.metric!r} is a kernel only for "
                f"power <= {self.metric.max_power:g}, found {power:g}"
            )
        object.__setattr__(self, "power", power)

    def __repr__(self) -> str:
        return f"ExpDistance({self.metric!r}, lengthscale={shown(self.lengthscale)}, power={self.power:g})"
