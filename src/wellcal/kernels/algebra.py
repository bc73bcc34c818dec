"""The algebra of kernels: what operators make of them.

``k + l`` and ``k * l`` combine kernels on the same space, ``2.0 * k`` scales one, and ``k_P @ k_Y``
is the tensor product of a kernel on predictions with a kernel on targets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, cast, final

from wellcal._arrays.checks import described, positive_number
from wellcal._arrays.namespaces import Array, shown, to_numpy
from wellcal._arrays.ops import Ops
from wellcal.kernels.base import Coordinates, Kernel, Scale, TargetKernel, check_kernel, on_targets, space_of

Value = TypeVar("Value")


class Combination(TargetKernel):
    """Kernels on one space, put together by arithmetic: a sum, a multiple or a product.

    What holds for these follows from their parts, and nobody derives from them.
    """

    pure: ClassVar[bool] = True
    _not_inherited: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if any(vars(base).get("__final__") for base in cls.__mro__[1:]):
            raise TypeError(
                f"{cls.__name__} cannot be derived from {cls.__bases__[0].__name__}: "
                "derive your own kernel from Kernel, TargetKernel or Radial"
            )
        super().__init_subclass__(**kwargs)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """Kernels that are put together."""
        raise NotImplementedError

    def combine(self, values: Sequence[Any]) -> Any:
        """Value of the whole from values of the parts."""
        raise NotImplementedError

    def with_parts(self, parts: Sequence[Kernel]) -> Kernel:
        """The same arithmetic with other kernels."""
        raise NotImplementedError

    # A property, since it follows from the parts: what is a constant elsewhere is found here.
    @property
    def space(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """That of the parts; a radial kernel, which serves targets and parameters, follows the others."""
        spaces = {part.space for part in self.parts}
        return next((space for space in ("pairs", "predictions") if space in spaces), "targets")

    @property
    def elementwise(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether all parts are."""
        return all(part.elementwise for part in self.parts if isinstance(part, TargetKernel))

    @property
    def supremum(self) -> float | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The same arithmetic with the largest values of the parts."""
        largest = [part.supremum for part in self.parts]
        return None if None in largest else float(to_numpy(self.combine(largest)))

    def at(self, ops: Ops, x: Coordinates, y: Coordinates) -> Array:
        return self.combine([on_targets(part).at(ops, x, y) for part in self.parts])

    def matrix(self, ops: Ops, x: Array, y: Array) -> Array:
        return self.combine([on_targets(part).matrix(ops, x, y) for part in self.parts])

    def rescaled(self, factor: Scale) -> Kernel:
        return self.with_parts([part.rescaled(factor) for part in self.parts])


@dataclass(frozen=True)
class _OfSeveral(Combination):
    """What combines any number of kernels on the same space."""

    kernels: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", _check_kernels(self.kernels))

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that are combined."""
        return self.kernels

    def with_parts(self, parts: Sequence[Kernel]) -> Kernel:
        return type(self)(tuple(parts))


@final
@dataclass(frozen=True)
class Sum(_OfSeveral):
    """Sum of kernels on the same space.

    Examples
    --------
    >>> from wellcal.kernels import Delta, Gaussian
    >>> (Gaussian() + Delta()).kernels
    (Gaussian(lengthscale=1), Delta())
    """

    def combine(self, values: Sequence[Any]) -> Any:
        return sum(values[1:], start=values[0])

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.kernels))


@final
@dataclass(frozen=True)
class Scaled(Combination):
    """A positive multiple of a kernel: `factor` times `kernel`.

    Examples
    --------
    >>> from wellcal.kernels import Gaussian
    >>> 2.0 * (3.0 * Gaussian())
    6 * Gaussian(lengthscale=1)
    """

    factor: Scale
    kernel: Kernel

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", positive_number(self.factor, "the factor of a kernel"))
        check_kernel(self.kernel, "kernel")

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernel that is multiplied."""
        return (self.kernel,)

    def combine(self, values: Sequence[Any]) -> Any:
        return self.factor * values[0]

    def with_parts(self, parts: Sequence[Kernel]) -> Kernel:
        return Scaled(self.factor, parts[0])

    def __repr__(self) -> str:
        inner = f"({self.kernel!r})" if isinstance(self.kernel, (Sum, Tensor)) else repr(self.kernel)
        return f"{shown(self.factor)} * {inner}"


@final
@dataclass(frozen=True)
class Product(_OfSeveral):
    """Product of kernels on the same space.

    Examples
    --------
    >>> from wellcal.kernels import Gaussian, Laplacian
    >>> Gaussian() * Laplacian()
    Gaussian(lengthscale=1) * Laplacian(lengthscale=1)
    >>> (Gaussian(3.0) * Gaussian(4.0)).lengthscale  # one kernel, so that closed forms survive
    2.4
    """

    def combine(self, values: Sequence[Any]) -> Any:
        return math.prod(values[1:], start=values[0])

    def __repr__(self) -> str:
        return " * ".join(f"({k!r})" if isinstance(k, Sum) else repr(k) for k in self.kernels)


@final
@dataclass(frozen=True)
class Tensor(Kernel):
    """Tensor product of a kernel on predictions and a kernel on targets, ``k_P @ k_Y``.

    Attributes
    ----------
    predictions, targets
        The two factors: k((p, y), (p', y')) = predictions(p, p') * targets(y, y').

    Examples
    --------
    >>> from wellcal.kernels import ExpDistance, Gaussian, Wasserstein
    >>> kernel = ExpDistance(Wasserstein()) @ Gaussian(2.0)
    >>> kernel.targets
    Gaussian(lengthscale=2)
    """

    predictions: Kernel
    targets: Kernel

    space: ClassVar[str] = "pairs"
    pure: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        raise TypeError(f"{cls.__name__} cannot be derived from Tensor: derive your own kernel from Kernel")

    def __post_init__(self) -> None:
        check_kernel(self.predictions, "predictions, the left side of @,")
        check_kernel(self.targets, "targets, the right side of @,")
        for name, role, kernel in (
            ("predictions", "left", self.predictions),
            ("targets", "right", self.targets),
        ):
            if space_of(kernel) == "pairs":
                raise TypeError(f"{name}: the {role} side of @ is already a kernel on pairs: {kernel!r}")
        if space_of(self.targets) == "predictions":
            raise TypeError(
                f"the right side of @ must be a kernel on targets, found {self.targets!r}; "
                "write kernel_on_predictions @ kernel_on_targets"
            )

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The two factors."""
        return (self.predictions, self.targets)

    @property
    def supremum(self) -> float | None:  # pyright: ignore[reportIncompatibleVariableOverride]  # as above
        """Product of those of the factors."""
        left, right = self.predictions.supremum, self.targets.supremum
        return None if left is None or right is None else left * right

    def rescaled(self, factor: Scale) -> Kernel:
        return Tensor(self.predictions.rescaled(factor), self.targets.rescaled(factor))

    def __repr__(self) -> str:
        def side(kernel: Kernel) -> str:
            return f"({kernel!r})" if isinstance(kernel, Combination) else repr(kernel)

        return f"{side(self.predictions)} @ {side(self.targets)}"


def fold(
    kernel: Kernel,
    leaf: Callable[[Kernel], Value],
    combine: Callable[[Combination, list[Value]], Value],
) -> Value:
    """A value for a kernel from values of those that its sums, multiples and products are made of.

    Parameters
    ----------
    kernel
        Any kernel; the factors of a tensor product are not its parts here, since they live on other spaces.
    leaf
        Value of a kernel that is no sum, multiple or product.
    combine
        Value of one that is, from those of its parts.

    Examples
    --------
    >>> from wellcal.kernels import Delta, Gaussian
    >>> fold(2.0 * Gaussian() + Delta(), lambda leaf: 1, lambda _, counts: sum(counts))
    2
    """
    if isinstance(kernel, Combination):
        return combine(kernel, [fold(part, leaf, combine) for part in kernel.parts])
    return leaf(kernel)


def _check_kernels(kernels: Any) -> tuple[Kernel, ...]:
    if not isinstance(kernels, (tuple, list)) or not kernels:
        raise TypeError(f"kernels must be a tuple of at least one kernel, found {described(kernels)}")
    return tuple(check_kernel(kernel, f"kernels[{k}]") for k, kernel in enumerate(cast("list[Any]", kernels)))


def _check_same_space(left: Kernel, right: Kernel, operation: str) -> None:
    if (space_of(left) == "pairs") != (space_of(right) == "pairs"):
        raise TypeError(
            f"cannot form {left!r} {operation} {right!r}: one is a kernel on pairs of prediction and target, "
            "the other is not; combine the factors before @"
        )


def _summands(kernel: Kernel) -> tuple[Kernel, ...]:
    return kernel.kernels if isinstance(kernel, Sum) else (kernel,)


def _factors(kernel: Kernel) -> tuple[Kernel, ...]:
    return kernel.kernels if isinstance(kernel, Product) else (kernel,)


def add(left: Kernel, right: Kernel) -> Kernel:
    """``left + right``, collecting nested sums."""
    _check_same_space(left, right, "+")
    return Sum((*_summands(left), *_summands(right)))


def scale(kernel: Kernel, factor: Scale) -> Kernel:
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
    fused = left.fuse(right)
    if fused is None:
        fused = right.fuse(left)
    return Product((*_factors(left), *_factors(right))) if fused is None else fused
