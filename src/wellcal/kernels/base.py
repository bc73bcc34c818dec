"""Kernels as frozen values with an algebra.

``k + l`` and ``k * l`` combine kernels on the same space, ``2.0 * k`` scales one, and ``k_P @ k_Y``
is the tensor product of a kernel on predictions with a kernel on targets. Kernels only say what they
are; :mod:`wellcal.expectations._pairing` and :mod:`wellcal.expectations.distances` evaluate them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wellcal._arrays.checks import positive_number
from wellcal._arrays.namespaces import Array, shown
from wellcal._arrays.ops import Ops

if TYPE_CHECKING:
    from wellcal.kernels.guarantees import Guarantees

Coordinates = tuple[Array, ...]
"""A point of R^d as d arrays that broadcast: a kernel is an elementwise expression in these."""


class Kernel:
    """A symmetric function of two arguments, as a frozen value."""

    # NumPy would otherwise try to multiply its scalars with a kernel elementwise.
    __array_ufunc__ = None

    def __add__(self, other: object) -> Kernel:
        if not isinstance(other, Kernel):
            return NotImplemented
        _check_same_space(self, other, "+")
        return Sum((*_summands(self), *_summands(other)))

    def __mul__(self, other: object) -> Kernel:
        if isinstance(other, Kernel):
            return multiply(self, other)
        if isinstance(other, (int, float)) or hasattr(other, "__float__"):
            return scale(self, other)
        return NotImplemented

    def __rmul__(self, other: object) -> Kernel:
        return self.__mul__(other)

    def __matmul__(self, other: object) -> Kernel:
        if not isinstance(other, Kernel):
            return NotImplemented
        return Tensor(self, other)

    def guarantees(self, predictions: object) -> Guarantees:
        """What is proven about this kernel for the family of `predictions`.

        Returns
        -------
        Guarantees
            Whether the kernel is positive definite, characteristic and bounded there (True: proven,
            False: refuted, None: not known), and what proves it.
        """
        from wellcal.kernels.guarantees import guarantees_of
        from wellcal.predictions.adapters import as_predictions

        return guarantees_of(self, as_predictions(predictions))


class TargetKernel(Kernel):
    """A kernel on targets, evaluated point by point."""

    def at(self, ops: Ops, x: Coordinates, y: Coordinates) -> Array:
        """Values k(x, y), elementwise over broadcast coordinates."""
        raise NotImplementedError

    def __call__(self, x: object, y: object) -> Array:
        """Kernel matrix k(x_i, y_j) for targets x ``(n,)`` or ``(n, d)`` and y ``(m,)`` or ``(m, d)``."""
        from wellcal.kernels.matrix import kernel_matrix

        return kernel_matrix(self, x, y)


def squared_distance(x: Coordinates, y: Coordinates) -> Array:
    """Squared Euclidean distance from differences: exact for points far from the origin."""
    total = (x[0] - y[0]) ** 2
    for a, b in zip(x[1:], y[1:], strict=True):
        total = total + (a - b) ** 2
    return total


class Radial(TargetKernel):
    """A function of the Euclidean distance that is 1 at distance 0."""

    def radial(self, ops: Ops, squared: Array) -> Array:
        """Value at a squared distance."""
        raise NotImplementedError

    def at(self, ops: Ops, x: Coordinates, y: Coordinates) -> Array:
        return self.radial(ops, squared_distance(x, y))


@dataclass(frozen=True)
class Sum(TargetKernel):
    """Sum of kernels on the same space."""

    kernels: tuple[Kernel, ...]

    def at(self, ops: Ops, x: Coordinates, y: Coordinates) -> Array:
        total = _on_targets(self.kernels[0]).at(ops, x, y)
        for kernel in self.kernels[1:]:
            total = total + _on_targets(kernel).at(ops, x, y)
        return total

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.kernels))


@dataclass(frozen=True)
class Scaled(TargetKernel):
    """A positive multiple of a kernel."""

    factor: Any
    kernel: Kernel

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", positive_number(self.factor, "the factor of a kernel"))

    def at(self, ops: Ops, x: Coordinates, y: Coordinates) -> Array:
        return self.factor * _on_targets(self.kernel).at(ops, x, y)

    def __repr__(self) -> str:
        inner = f"({self.kernel!r})" if isinstance(self.kernel, (Sum, Tensor)) else repr(self.kernel)
        return f"{shown(self.factor)} * {inner}"


@dataclass(frozen=True)
class Product(TargetKernel):
    """Product of kernels on the same space."""

    kernels: tuple[Kernel, ...]

    def at(self, ops: Ops, x: Coordinates, y: Coordinates) -> Array:
        total = _on_targets(self.kernels[0]).at(ops, x, y)
        for kernel in self.kernels[1:]:
            total = total * _on_targets(kernel).at(ops, x, y)
        return total

    def __repr__(self) -> str:
        return " * ".join(f"({k!r})" if isinstance(k, Sum) else repr(k) for k in self.kernels)


@dataclass(frozen=True)
class Tensor(Kernel):
    """Tensor product of a kernel on predictions and a kernel on targets, ``k_P @ k_Y``.

    Attributes
    ----------
    predictions, targets
        The two factors: k((p, y), (p', y')) = predictions(p, p') * targets(y, y').
    """

    predictions: Kernel
    targets: Kernel

    def __post_init__(self) -> None:
        for role, kernel in (("left", self.predictions), ("right", self.targets)):
            if space_of(kernel) == "pairs":
                raise TypeError(f"the {role} side of @ is already a kernel on pairs: {kernel!r}")
        if space_of(self.targets) == "predictions":
            raise TypeError(
                f"the right side of @ must be a kernel on targets, found {self.targets!r}; "
                "write kernel_on_predictions @ kernel_on_targets"
            )

    def __repr__(self) -> str:
        def side(kernel: Kernel) -> str:
            return f"({kernel!r})" if isinstance(kernel, (Sum, Product, Scaled)) else repr(kernel)

        return f"{side(self.predictions)} @ {side(self.targets)}"


def _on_targets(kernel: Kernel) -> TargetKernel:
    if not isinstance(kernel, TargetKernel):
        raise TypeError(f"{kernel!r} is not a kernel on targets")
    return kernel


def space_of(kernel: Kernel) -> str:
    """Where a kernel lives: "targets" (or parameters), "predictions" or "pairs"."""
    if isinstance(kernel, (Sum, Product)):
        spaces = {space_of(k) for k in kernel.kernels}
        return next((s for s in ("pairs", "predictions") if s in spaces), "targets")
    if isinstance(kernel, Scaled):
        return space_of(kernel.kernel)
    if isinstance(kernel, Tensor):
        return "pairs"
    return str(getattr(kernel, "space", "targets"))


def _check_same_space(left: Kernel, right: Kernel, operation: str) -> None:
    if (space_of(left) == "pairs") != (space_of(right) == "pairs"):
        raise TypeError(
            f"cannot form {left!r} {operation} {right!r}: one is a kernel on pairs of prediction and target, "
            "the other is not; combine the factors before @"
        )


def _summands(kernel: Kernel) -> tuple[Kernel, ...]:
    return kernel.kernels if isinstance(kernel, Sum) else (kernel,)


def scale(kernel: Kernel, factor: Any) -> Kernel:
    """``factor * kernel``, collecting nested factors."""
    factor = positive_number(factor, "the factor of a kernel")
    if isinstance(kernel, Scaled):
        return Scaled(factor * kernel.factor, kernel.kernel)
    return Scaled(factor, kernel)


def multiply(left: Kernel, right: Kernel) -> Kernel:
    """Product of two kernels in the simplest form, so that closed forms survive multiplication."""
    _check_same_space(left, right, "*")
    if isinstance(left, Scaled):
        return scale(multiply(left.kernel, right), left.factor)
    if isinstance(right, Scaled):
        return scale(multiply(left, right.kernel), right.factor)
    if isinstance(left, Sum) or isinstance(right, Sum):
        return Sum(tuple(multiply(a, b) for a in _summands(left) for b in _summands(right)))
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return Tensor(multiply(left.predictions, right.predictions), multiply(left.targets, right.targets))
    fused = _fuse(left, right)
    if fused is not None:
        return fused
    return Product((*_factors(left), *_factors(right)))


def _factors(kernel: Kernel) -> tuple[Kernel, ...]:
    return kernel.kernels if isinstance(kernel, Product) else (kernel,)


def _fuse(left: Kernel, right: Kernel) -> Kernel | None:
    """Products that are again a named kernel."""
    from wellcal.kernels.targets import Delta, Gaussian, Laplacian

    if isinstance(left, Gaussian) and isinstance(right, Gaussian):
        return Gaussian((left.lengthscale**-2 + right.lengthscale**-2) ** -0.5)
    if isinstance(left, Laplacian) and isinstance(right, Laplacian):
        return Laplacian(1.0 / (1.0 / left.lengthscale + 1.0 / right.lengthscale))
    pair = (left, right)
    if any(isinstance(k, Delta) for k in pair) and all(isinstance(k, (Delta, Radial)) for k in pair):
        return Delta()  # a radial kernel is 1 where Delta is not 0
    return None
