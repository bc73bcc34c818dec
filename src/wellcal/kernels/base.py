"""Kernels as frozen values: what a kernel is, one on targets, and one of the distance between them.

Kernels only say what they are; :mod:`wellcal.expectations._pairing` and
:mod:`wellcal.expectations.distances` evaluate them. What operators make of them is in
:mod:`wellcal.kernels.algebra`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast
from weakref import WeakValueDictionary

import numpy as np

from wellcal._arrays.checks import described
from wellcal._arrays.equality import ByValue
from wellcal._arrays.namespaces import Array, NDArray, has, namespace
from wellcal._arrays.ops import Ops
from wellcal.kernels.proofs import Proof

if TYPE_CHECKING:
    from wellcal.kernels.proofs import Guarantees

Scale: TypeAlias = Any
"""A positive number, or a zero-dimensional array of one: a length scale or factor that is learned."""

Coordinates: TypeAlias = tuple[Array, ...]
"""A point of R^d as d arrays that broadcast: a kernel is an elementwise expression in these."""


# -- parts ---------------------------------------------------------------------------------------------


class Part(ByValue):
    """A kernel or a metric: a frozen value that may be made of others.

    Attributes
    ----------
    proof
        What is proven about the class, and by whom.
    pure
        Whether values depend on the fields alone, so that these tell whether anything in it is learned.
    calls_user_function
        Whether a function that a user gave takes part, which may be neither compiled nor called by several
        threads at a time.

    Notes
    -----
    `proof` and `pure` (and `supremum` of kernels) hold for the very class in whose body they stand. A class
    derived from it is another function: it declares its own, or nothing is known about it.

    Parts of one class are equal where their fields are. One that holds an array, such as a length scale that
    is learned, has no hash.
    """

    proof: ClassVar[Proof | None] = None
    pure: ClassVar[bool] = False
    calls_user_function: ClassVar[bool] = False

    _not_inherited: ClassVar[dict[str, Any]] = {"proof": None, "pure": False}
    """Facts of one class, and what they are where its body does not say."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        for fact, unknown in cls._not_inherited.items():
            if fact not in own and fact not in own.get("__annotations__", ()):
                setattr(cls, fact, unknown)
        proof = own.get("proof")
        if not (proof is None or isinstance(proof, (Proof, property))):
            raise TypeError(f"proof of {cls.__name__} must be Proof(citation, ...), found {proof!r}")
        CLASSES[name_of(cls)] = cls

    @property
    def parts(self) -> tuple[Part, ...]:
        """Kernels and metrics that this one is made of."""
        return tuple(found for _, value in own_values(self) for found in _parts_in(value))


CLASSES: WeakValueDictionary[str, type[Part]] = WeakValueDictionary()
"""Every class of kernels and metrics by its full name; the latest one where it was defined again."""


def name_of(cls: type) -> str:
    """Module and name of a class.

    Examples
    --------
    >>> from wellcal.kernels import Gaussian
    >>> name_of(Gaussian)
    'wellcal.kernels.targets.Gaussian'
    """
    return f"{cls.__module__}.{cls.__qualname__}"


@lru_cache(maxsize=256)
def field_names(cls: type) -> tuple[str, ...]:
    """Names of what an instance is made from; none for a class that is no dataclass."""
    return tuple(field.name for field in fields(cls) if field.init) if is_dataclass(cls) else ()


def own_values(part: Part) -> Iterator[tuple[str, Any]]:
    """Fields of a kernel or metric, by name."""
    return ((name, getattr(part, name)) for name in field_names(type(part)))


def _parts_in(value: Any) -> tuple[Part, ...]:
    items = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
    return tuple(item for item in items if isinstance(item, Part))


def walk(part: Part) -> Iterator[Part]:
    """A kernel or metric and everything that it is made of, also the kernels inside of its metrics.

    Examples
    --------
    >>> from wellcal.kernels import ExpDistance, Gaussian, MaximumMeanDiscrepancy
    >>> kernel = ExpDistance(MaximumMeanDiscrepancy(Gaussian())) @ (2.0 * Gaussian())
    >>> [type(part).__name__ for part in walk(kernel)]
    ['Tensor', 'ExpDistance', 'MaximumMeanDiscrepancy', 'Gaussian', 'Scaled', 'Gaussian']
    """
    yield part
    for inner in part.parts:
        yield from walk(inner)


def calls_user_function(part: Part) -> bool:
    """Whether a user's function is called somewhere in a kernel.

    Examples
    --------
    >>> from wellcal.kernels import Callable, Gaussian
    >>> calls_user_function(Gaussian()), calls_user_function(2.0 * Gaussian() + Callable(min))
    (False, True)
    """
    return any(inner.calls_user_function for inner in walk(part))


def is_constant(part: Part) -> bool:
    """Whether a kernel is made of numbers and nothing else, so that nothing in it can have a gradient.

    A class that does not say that it is `pure` may hold a tensor that its fields do not show.

    Examples
    --------
    >>> from wellcal.kernels import Callable, Gaussian
    >>> is_constant(2.0 * Gaussian(0.5)), is_constant(Callable(min))
    (True, False)
    """
    return all(inner.pure and all(_is_plain(value) for _, value in own_values(inner)) for inner in walk(part))


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, cast("tuple[Any, ...]", value)))
    return value is None or isinstance(value, (float, int, str, Part))


# -- kernels -------------------------------------------------------------------------------------------


class Kernel(Part):
    """A symmetric function of two arguments, as a frozen value.

    A kernel of your own is a frozen dataclass derived from `Kernel`, from :class:`TargetKernel` or from
    :class:`Radial`. What is known about it stands in the body of its class.

    Attributes
    ----------
    space
        Where the kernel lives: "targets" (or parameters), "predictions" or "pairs".
    proof
        What is proven about the class, a :class:`Proof`; None says that nothing is known.
    supremum
        Largest value of a kernel that is never negative; None where it is not known.
    pure
        Whether values depend on the fields of the class alone, not on a tensor that it holds elsewhere.
    calls_user_function
        Whether a function that a user gave takes part, which may be neither compiled nor called by several
        threads at a time.

    Notes
    -----
    `proof`, `supremum` and `pure` hold for the very class in whose body they stand: a class derived from
    it is another function, about which nothing is known until it says so.

    Examples
    --------
    >>> from wellcal.kernels import Delta, ExpDistance, Gaussian, TotalVariation
    >>> kernel = ExpDistance(TotalVariation()) @ (0.5 * Gaussian() + 0.5 * Delta())
    >>> kernel.space, kernel.supremum
    ('pairs', 1.0)
    >>> kernel == ExpDistance(TotalVariation()) @ (0.5 * Gaussian() + 0.5 * Delta())
    True
    """

    space: ClassVar[str] = "targets"
    supremum: ClassVar[float | None] = None

    _not_inherited: ClassVar[dict[str, Any]] = {**Part._not_inherited, "supremum": None}

    # NumPy would otherwise try to multiply its scalars with a kernel elementwise.
    __array_ufunc__ = None

    def __add__(self, other: object) -> Kernel:
        if not isinstance(other, Kernel):
            return NotImplemented
        from wellcal.kernels.algebra import add

        return add(self, other)

    def __mul__(self, other: object) -> Kernel:
        from wellcal.kernels.algebra import multiply, scale

        if isinstance(other, Kernel):
            return multiply(self, other)
        if isinstance(other, (int, float)) or has(other, "__float__"):
            return scale(self, other)
        return NotImplemented

    def __rmul__(self, other: object) -> Kernel:
        return self.__mul__(other)

    def __matmul__(self, other: object) -> Kernel:
        if not isinstance(other, Kernel):
            return NotImplemented
        from wellcal.kernels.algebra import Tensor

        return Tensor(self, other)

    def fuse(self, other: Kernel) -> Kernel | None:
        """The product with `other` as one kernel that closed forms know, or None.

        Both factors are asked. A class derived from this one is another function: compare exact types.
        """
        return None

    def rescaled(self, factor: Scale) -> Kernel:
        """The kernel with its length scales multiplied by `factor`; those inside of a metric stay.

        Length scales are fields with the name `lengthscale`; where yours have another one, override this.

        Examples
        --------
        >>> from wellcal.kernels import Delta, Gaussian
        >>> (2.0 * Gaussian(0.5) + Delta()).rescaled(4.0)
        2 * Gaussian(lengthscale=2) + Delta()
        """
        if "lengthscale" not in field_names(type(self)):
            return self
        own = cast("Any", self)
        return replace(own, lengthscale=own.lengthscale * factor)

    def guarantees(self, predictions: object) -> Guarantees:
        """What is proven about this kernel for the family of `predictions`.

        Returns
        -------
        Guarantees
            Whether the kernel is positive definite, characteristic and bounded there (True: proven,
            False: refuted, None: not known), and what proves it.
        """
        from wellcal.kernels.guarantees import guarantees_of
        from wellcal.predictions.adapters import converted_argument

        return guarantees_of(self, converted_argument(predictions, "predictions"))


class TargetKernel(Kernel):
    """A kernel on targets.

    Attributes
    ----------
    elementwise
        Whether `at` gives all values. Where it does not, `matrix` does.
    needs_numbers
        Whether targets must be numbers, not labels or objects.
    tests_equality
        Whether equality of targets takes part: atoms that stand for a density equal no target.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Product(TargetKernel):
    ...     def at(self, ops, x, y):
    ...         return x[0] * y[0]
    >>> Product()([1.0, 2.0], [3.0])
    array([[3.],
           [6.]])
    """

    elementwise: ClassVar[bool] = True
    needs_numbers: ClassVar[bool] = True
    tests_equality: ClassVar[bool] = False

    def at(self, ops: Ops, x: Coordinates, y: Coordinates) -> Array:
        """Values k(x, y), elementwise over broadcast coordinates."""
        raise NotImplementedError

    def matrix(self, ops: Ops, x: Array, y: Array) -> Array:
        """Values k(x_i, y_j) for arrays ``(n,)`` or ``(n, d)`` of one library, or object arrays ``(n,)``."""
        if not is_real(x):
            raise TypeError(
                f"x and y: the kernel {self!r} needs numeric targets; take Delta() or Callable(function) for "
                "labels or objects"
            )
        return self.at(ops, coordinates(x, first=True), coordinates(y, first=False))

    def __call__(self, x: object, y: object) -> Array:
        """Kernel matrix k(x_i, y_j) for targets x ``(n,)`` or ``(n, d)`` and y ``(m,)`` or ``(m, d)``."""
        from wellcal.kernels.matrix import kernel_matrix

        return kernel_matrix(self, x, y)


class Radial(TargetKernel):
    """A function of the Euclidean distance that is 1 at distance 0.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Cauchy(Radial):
    ...     def radial(self, ops, squared):
    ...         return 1.0 / (1.0 + squared)
    >>> Cauchy()([0.0], [0.0, 1.0, 3.0])
    array([[1. , 0.5, 0.1]])
    """

    def radial(self, ops: Ops, squared: Array) -> Array:
        """Value at a squared distance."""
        raise NotImplementedError

    def at(self, ops: Ops, x: Coordinates, y: Coordinates) -> Array:
        return self.radial(ops, squared_distance(x, y))


def on_targets(kernel: Kernel) -> TargetKernel:
    """`kernel` if it is one on targets, else an error."""
    if not isinstance(kernel, TargetKernel):
        raise TypeError(f"{kernel!r} is not a kernel on targets")
    return kernel


def space_of(kernel: Kernel) -> str:
    """Where a kernel lives: "targets" (or parameters), "predictions" or "pairs"."""
    return kernel.space


def check_kernel(kernel: Any, name: str) -> Kernel:
    """`kernel` if it is one, else an error."""
    if not isinstance(kernel, Kernel):
        raise TypeError(f"{name} must be a kernel such as Gaussian(), found {described(kernel)}")
    return kernel


# -- targets as arrays -----------------------------------------------------------------------------------


def coordinates(values: Array, *, first: bool) -> Coordinates:
    """Coordinates of n targets, shaped (n, 1) or (1, n) for an outer evaluation."""
    shape = (-1, 1) if first else (1, -1)
    xp = namespace(values)
    if values.ndim == 1:
        return (xp.reshape(values, shape),)
    return tuple(xp.reshape(values[:, c], shape) for c in range(values.shape[1]))


def squared_distance(x: Coordinates, y: Coordinates) -> Array:
    """Squared Euclidean distance from differences: exact for points far from the origin."""
    total = (x[0] - y[0]) ** 2
    for a, b in zip(x[1:], y[1:], strict=True):
        total = total + (a - b) ** 2
    return total


def is_real(x: Array) -> bool:
    """Whether an array holds numbers, not labels or objects."""
    if isinstance(x, np.ndarray):
        return cast("NDArray", x).dtype.kind in "fiub"
    return bool(namespace(x).isdtype(x.dtype, ("real floating", "integral", "bool")))


def as_objects(x: Any) -> NDArray:
    """A one-dimensional array of Python objects, never unpacking a sequence that is one target."""
    given = cast("NDArray | Sequence[object]", x)
    if isinstance(given, np.ndarray) and given.ndim == 1:
        return given
    out = np.empty(len(given), dtype=object)
    for i, item in enumerate(given):
        out[i] = item
    return out
