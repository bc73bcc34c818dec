"""Kernels on targets (and, through Euclidean distance, on parameters of predictions)."""

from __future__ import annotations

import math
from collections.abc import Callable as Function
from dataclasses import dataclass
from typing import Any, ClassVar

from scipy import special

from wellcal._arrays.checks import positive_number
from wellcal._arrays.namespaces import Array, is_numpy, shown
from wellcal._arrays.ops import Ops
from wellcal.kernels.base import Coordinates, Kernel, Radial, TargetKernel


@dataclass(frozen=True)
class Gaussian(Radial):
    """``exp(-||x - y||^2 / (2 lengthscale^2))``.

    Examples
    --------
    >>> Gaussian(2.0)([0.0], [2.0]).round(6)
    array([[0.606531]])
    """

    lengthscale: Any = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", positive_number(self.lengthscale, "lengthscale"))

    def __repr__(self) -> str:
        return f"Gaussian(lengthscale={shown(self.lengthscale)})"

    def radial(self, ops: Ops, squared: Array) -> Array:
        return ops.exp(squared * (-0.5 / self.lengthscale**2))


@dataclass(frozen=True)
class Laplacian(Radial):
    """``exp(-||x - y||_2 / lengthscale)``."""

    lengthscale: Any = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", positive_number(self.lengthscale, "lengthscale"))

    def __repr__(self) -> str:
        return f"Laplacian(lengthscale={shown(self.lengthscale)})"

    def radial(self, ops: Ops, squared: Array) -> Array:
        return ops.exp(-ops.root(squared) / self.lengthscale)


_MAX_NU = 60.0


@dataclass(frozen=True)
class Matern(Radial):
    """Matérn kernel of smoothness `nu`.

    With s = sqrt(2 nu) ||x - y|| / lengthscale it is ``2^(1-nu) / Gamma(nu) s^nu K_nu(s)``; for
    half-integer `nu` this is exp(-s) times a polynomial, on every array library. Other values of
    `nu`, at most 60, need a Bessel function that only NumPy input has.
    """

    nu: float
    lengthscale: Any = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "nu", positive_number(self.nu, "nu"))
        if self.nu > _MAX_NU:
            raise ValueError(
                f"nu must be at most {_MAX_NU:g}, found {self.nu:g}; "
                "from there on Gaussian(lengthscale) differs by less than 0.004"
            )
        object.__setattr__(self, "lengthscale", positive_number(self.lengthscale, "lengthscale"))

    def __repr__(self) -> str:
        return f"Matern(nu={self.nu:g}, lengthscale={shown(self.lengthscale)})"

    def radial(self, ops: Ops, squared: Array) -> Array:
        s = ops.root(squared) * (math.sqrt(2.0 * self.nu) / self.lengthscale)
        order = self.nu - 0.5
        if order == int(order) and order <= 20:
            return ops.exp(-s) * self._polynomial(int(order), s)
        if not is_numpy(ops.xp):
            raise ValueError(
                f"Matern(nu={self.nu}) is available for NumPy arrays only; "
                "elsewhere take nu = 0.5, 1.5, 2.5, ..."
            )
        bessel = special.kve(self.nu, s)
        tiny = bessel == math.inf  # s is 0, or so small that s^6 is below rounding
        safe = ops.where(tiny, ops.one(s), s)
        log_value = self.nu * ops.log(safe) + math.log(2.0) * (1.0 - self.nu) - math.lgamma(self.nu)
        value = ops.exp(log_value - safe + ops.log(ops.where(tiny, ops.one(s), bessel)))
        return ops.where(tiny, self._near_zero(s), value)

    def _near_zero(self, s: Array) -> Array:
        """First terms of the series in s^2; for small `nu` only s = 0 and its neighbours come here."""
        if self.nu < 3.0:
            return 0.0 * s + 1.0
        quarter = 0.25 * s**2
        return 1.0 - quarter / (self.nu - 1.0) * (1.0 - quarter / (2.0 * (self.nu - 2.0)))

    @staticmethod
    def _polynomial(p: int, s: Array) -> Array:
        """``p! / (2p)! * sum_i (p+i)! / (i! (p-i)!) * (2s)^(p-i)``, by Horner's rule."""
        lead = math.factorial(p) / math.factorial(2 * p)
        total = 0.0 * s + lead * 2.0**p
        for i in range(1, p + 1):
            factor = math.factorial(p + i) / (math.factorial(i) * math.factorial(p - i))
            total = total * s + lead * factor * 2.0 ** (p - i)
        return total


@dataclass(frozen=True)
class RationalQuadratic(Radial):
    """``(1 + ||x - y||^2 / (2 alpha lengthscale^2))^(-alpha)``."""

    alpha: float = 1.0
    lengthscale: Any = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", positive_number(self.alpha, "alpha"))
        object.__setattr__(self, "lengthscale", positive_number(self.lengthscale, "lengthscale"))

    def __repr__(self) -> str:
        return f"RationalQuadratic(alpha={self.alpha:g}, lengthscale={shown(self.lengthscale)})"

    def radial(self, ops: Ops, squared: Array) -> Array:
        return ops.exp(-self.alpha * ops.log1p(squared / (2.0 * self.alpha * self.lengthscale**2)))


@dataclass(frozen=True)
class Delta(TargetKernel):
    """1 where the arguments are equal, else 0: the kernel of unordered classes."""

    def at(self, ops: Ops, x: Coordinates, y: Coordinates) -> Array:
        equal = x[0] == y[0]
        for a, b in zip(x[1:], y[1:], strict=True):
            equal = equal & (a == b)
        return ops.where(equal, ops.one(x[0] + y[0]), 0.0 * (x[0] + y[0]))


@dataclass(frozen=True)
class Callable(TargetKernel):
    """A user's own kernel on targets.

    Parameters
    ----------
    function
        ``function(x, y)`` of two targets, a number. With ``vectorized=True`` it takes two batches of
        targets, of lengths n and m, and returns the ``(n, m)`` array of all values.
    vectorized
        See `function`. A vectorised function keeps gradients and is much faster.
    positive_definite, characteristic, bounded
        What you know about the kernel; repeated by `guarantees`. None means not known.

    Examples
    --------
    >>> edit = Callable(lambda a, b: float(a[0] == b[0]))
    >>> edit(["ab", "cd"], ["ax"])
    array([[1.],
           [0.]])
    """

    function: Function[[Any, Any], Any]
    vectorized: bool = False
    positive_definite: bool | None = None
    characteristic: bool | None = None
    bounded: bool | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function must be callable, found {self.function!r}")

    def __repr__(self) -> str:
        return f"Callable({getattr(self.function, '__name__', repr(self.function))})"


@dataclass(frozen=True)
class Joint(Kernel):
    """A kernel on pairs of prediction and target that does not factor.

    Parameters
    ----------
    function
        ``function(P, y, Q, z)`` of a batch P of n predictions with targets y, and a batch Q of m
        predictions with targets z: the ``(n, m)`` array of k((P_i, y_i), (Q_j, z_j)). Targets come
        as the family stores them: class labels, support values or atoms.
    positive_definite, characteristic, bounded
        What you know about the kernel; repeated by `guarantees`. None means not known.

    Notes
    -----
    Expectations over a joint kernel are sums over atoms, so it serves predictions with a finite
    support (Bernoulli, Categorical), Samples, and whatever can be lowered to atoms.
    """

    function: Function[..., Any]
    positive_definite: bool | None = None
    characteristic: bool | None = None
    bounded: bool | None = None
    space: ClassVar[str] = "pairs"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function must be callable, found {self.function!r}")

    def __repr__(self) -> str:
        return f"Joint({getattr(self.function, '__name__', repr(self.function))})"
