"""Kernels on targets (and, through Euclidean distance, on parameters of predictions)."""

from __future__ import annotations

import math
from collections.abc import Callable as Function
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from scipy import special

from wellcal._arrays.checks import described, numeric_array, positive_number, real_number
from wellcal._arrays.namespaces import Array, NDArray, from_numpy, is_array, is_numpy, shown, to_numpy
from wellcal._arrays.ops import Ops
from wellcal.kernels.base import Coordinates, Kernel, Part, Radial, Scale, TargetKernel, is_real, walk
from wellcal.kernels.proofs import Proof, UniversalOnReals


@dataclass(frozen=True)
class Gaussian(Radial):
    """``exp(-||x - y||^2 / (2 lengthscale^2))``.

    Examples
    --------
    >>> Gaussian(2.0)([0.0], [2.0]).round(6)
    array([[0.606531]])
    """

    lengthscale: Scale = 1.0

    proof: ClassVar[Proof | None] = UniversalOnReals()
    supremum: ClassVar[float | None] = 1.0
    pure: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", positive_number(self.lengthscale, "lengthscale"))

    def __repr__(self) -> str:
        return f"Gaussian(lengthscale={shown(self.lengthscale)})"

    def radial(self, ops: Ops, squared: Array) -> Array:
        return ops.exp(squared * (-0.5 / self.lengthscale**2))

    def fuse(self, other: Kernel) -> Kernel | None:
        if type(self) is Gaussian and type(other) is Gaussian:
            return Gaussian((self.lengthscale**-2 + other.lengthscale**-2) ** -0.5)
        return None


@dataclass(frozen=True)
class Laplacian(Radial):
    """``exp(-||x - y||_2 / lengthscale)``.

    Examples
    --------
    >>> Laplacian(2.0)([0.0], [2.0]).round(6)
    array([[0.367879]])
    """

    lengthscale: Scale = 1.0

    proof: ClassVar[Proof | None] = UniversalOnReals()
    supremum: ClassVar[float | None] = 1.0
    pure: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", positive_number(self.lengthscale, "lengthscale"))

    def __repr__(self) -> str:
        return f"Laplacian(lengthscale={shown(self.lengthscale)})"

    def radial(self, ops: Ops, squared: Array) -> Array:
        return ops.exp(-ops.root(squared) / self.lengthscale)

    def fuse(self, other: Kernel) -> Kernel | None:
        if type(self) is Laplacian and type(other) is Laplacian:
            return Laplacian(1.0 / (1.0 / self.lengthscale + 1.0 / other.lengthscale))
        return None


_MAX_NU = 60.0
_BEYOND = 3000.0


@dataclass(frozen=True)
class Matern(Radial):
    """Matérn kernel of smoothness `nu`.

    With s = sqrt(2 nu) ||x - y|| / lengthscale it is ``2^(1-nu) / Gamma(nu) s^nu K_nu(s)``; for
    half-integer `nu` this is exp(-s) times a polynomial, on every array library. Other values of
    `nu`, at most 60, need a Bessel function that exists for NumPy arrays only.

    Examples
    --------
    >>> Matern(0.5)([0.0], [1.0]).round(6), Matern(2.5)([0.0], [1.0]).round(6)
    (array([[0.367879]]), array([[0.523994]]))
    """

    nu: float
    lengthscale: Scale = 1.0

    proof: ClassVar[Proof | None] = UniversalOnReals()
    supremum: ClassVar[float | None] = 1.0
    pure: ClassVar[bool] = True

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
        s = ops.minimum(s, _BEYOND * ops.one(s))  # there exp(-s) is 0, and a polynomial of s is finite
        order = self.nu - 0.5
        if order == int(order) and order <= 20:
            return ops.exp(-s) * self._polynomial(int(order), s)
        if not is_numpy(ops.xp):
            raise ValueError(
                f"Matern(nu={self.nu}) is available for NumPy arrays only; "
                "elsewhere take nu = 0.5, 1.5, 2.5, ..."
            )
        bessel = cast("NDArray", special.kve(self.nu, s))
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
    """``(1 + ||x - y||^2 / (2 alpha lengthscale^2))^(-alpha)``.

    Examples
    --------
    >>> RationalQuadratic(alpha=1.0)([0.0], [0.0, 1.0, 2.0]).round(6)
    array([[1.      , 0.666667, 0.333333]])
    """

    alpha: float = 1.0
    lengthscale: Scale = 1.0

    proof: ClassVar[Proof | None] = UniversalOnReals()
    supremum: ClassVar[float | None] = 1.0
    pure: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", positive_number(self.alpha, "alpha"))
        object.__setattr__(self, "lengthscale", positive_number(self.lengthscale, "lengthscale"))

    def __repr__(self) -> str:
        return f"RationalQuadratic(alpha={self.alpha:g}, lengthscale={shown(self.lengthscale)})"

    def radial(self, ops: Ops, squared: Array) -> Array:
        return ops.exp(-self.alpha * ops.log1p(squared / (2.0 * self.alpha * self.lengthscale**2)))


@dataclass(frozen=True)
class Delta(TargetKernel):
    """1 where the arguments are equal, else 0: the kernel of unordered classes.

    Examples
    --------
    >>> Delta()([0, 1, 2], [1, 2])
    array([[0., 0.],
           [1., 0.],
           [0., 1.]])
    """

    supremum: ClassVar[float | None] = 1.0
    pure: ClassVar[bool] = True
    needs_numbers: ClassVar[bool] = False
    tests_equality: ClassVar[bool] = True

    def at(self, ops: Ops, x: Coordinates, y: Coordinates) -> Array:
        equal = x[0] == y[0]
        for a, b in zip(x[1:], y[1:], strict=True):
            equal = equal & (a == b)
        return ops.where(equal, ops.one(x[0] + y[0]), 0.0 * (x[0] + y[0]))

    def matrix(self, ops: Ops, x: Array, y: Array) -> Array:
        if is_real(x):
            return super().matrix(ops, x, y)
        return 1.0 * (np.asarray(x)[:, None] == np.asarray(y)[None, :])

    def fuse(self, other: Kernel) -> Kernel | None:
        """Delta again: a radial kernel is 1 where Delta is not 0."""
        return self if type(self) is Delta and (type(other) is Delta or isinstance(other, Radial)) else None


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

    calls_user_function: ClassVar[bool] = True
    elementwise: ClassVar[bool] = False
    needs_numbers: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function must be callable, found {described(self.function)}")

    def __repr__(self) -> str:
        return f"Callable({getattr(self.function, '__name__', repr(self.function))})"

    def _number(self, value: Any) -> float:
        if isinstance(value, float):  # NumPy's float64 is one
            return float(value)
        return real_number(value, f"what the function of the kernel {self!r} returns")

    def matrix(self, ops: Ops, x: Array, y: Array) -> Array:
        shape = (len(x), len(y))
        if self.vectorized:
            return check_returned(self, self.function(x, y), shape)
        left, right = (to_numpy(v) if is_array(v) else v for v in (x, y))
        value = np.empty(shape)
        for i, a in enumerate(left):
            for j, b in enumerate(right):
                value[i, j] = self._number(self.function(a, b))
        return from_numpy(value, x) if is_array(x) else value


def calls_for_each_pair(kernel: Part) -> bool:
    """Whether a user's function is called for one pair of targets at a time somewhere in a kernel.

    Examples
    --------
    >>> outer = Callable(np.minimum.outer, vectorized=True)
    >>> calls_for_each_pair(2.0 * Callable(min)), calls_for_each_pair(outer)
    (True, False)
    """
    return any(isinstance(part, Callable) and not part.vectorized for part in walk(kernel))


def check_returned(kernel: Kernel, values: Any, shape: tuple[int, int]) -> Array:
    """What a user's function of two batches returned, if it is an array of numbers of the right shape."""
    array = numeric_array(values, f"what the function of the kernel {kernel!r} returns")
    if tuple(array.shape) != shape:
        raise ValueError(
            f"kernel {kernel!r} returned shape {tuple(array.shape)} for batches of {shape[0]} and "
            f"{shape[1]}, expected {shape}"
        )
    return array


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

    Examples
    --------
    >>> import wellcal as wc
    >>> def both(P, y, Q, z):
    ...     alike = np.exp(-np.abs(P.probs[:, None] - Q.probs[None, :]))
    ...     return alike * (y[:, None] == z[None, :])
    >>> pred = wc.Bernoulli(np.array([0.2, 0.5, 0.9]))
    >>> same = wc.skce([0, 1, 1], pred, kernel=wc.kernels.ExpDistance(wc.kernels.Euclidean()) @ Delta())
    >>> bool(np.isclose(float(wc.skce([0, 1, 1], pred, kernel=Joint(both))), float(same)))
    True
    """

    function: Function[..., Any]
    positive_definite: bool | None = None
    characteristic: bool | None = None
    bounded: bool | None = None

    space: ClassVar[str] = "pairs"
    calls_user_function: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function must be callable, found {described(self.function)}")

    def __repr__(self) -> str:
        return f"Joint({getattr(self.function, '__name__', repr(self.function))})"
