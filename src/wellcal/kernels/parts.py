"""What kernels and metrics share: facts that belong to one class, a name, and one walk over their parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, ClassVar, cast
from weakref import WeakValueDictionary

from wellcal._arrays.equality import ByValue
from wellcal.kernels.proofs import Proof


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
