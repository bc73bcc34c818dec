"""Equality by value for objects that hold arrays: it never raises, and is consistent with the hash."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import is_array, is_traced, to_numpy


class ByValue:
    """Dataclass whose instances are equal if their fields are, arrays of any library included.

    The ``__eq__`` of dataclasses asks an array for its truth, which is an error for several numbers. Arrays
    may change, so that an instance that holds one has no hash: asking for it is an error that says so. A
    class that has an ``__eq__`` of its own keeps it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Curve(ByValue):
    ...     values: np.ndarray
    >>> Curve(np.ones(3)) == Curve(np.ones(3)), Curve(np.ones(3)) == Curve(np.ones(2))
    (True, False)
    >>> hash(Curve(np.ones(3)))
    Traceback (most recent call last):
    TypeError: Curve has no hash here: values is an array, which may change; give a number
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("__eq__", "__hash__"):
            if name not in vars(cls):  # the decorator of dataclasses leaves alone what stands in the class
                setattr(cls, name, getattr(cls, name))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self) or not _has_fields(self):
            # An array would answer for each of its entries.
            return False if is_array(other) else NotImplemented
        names = (field.name for field in fields(cast("Any", self)) if field.compare)
        return all(same(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        if not _has_fields(self):
            return object.__hash__(self)
        compared = (field.name for field in fields(cast("Any", self)) if field.compare)
        values = {name: getattr(self, name) for name in compared}
        for name, value in values.items():
            if is_array(value):
                raise TypeError(
                    f"{type(self).__name__} has no hash here: {name} is an array, which may change; "
                    "give a number"
                )
        return hash((type(self), *values.values()))


class ByState:
    """Mutable object: two of one class are equal if their states are, and have no hash.

    `compared` returns the state as plain values.

    Examples
    --------
    >>> class Counter(ByState):
    ...     def __init__(self, seen):
    ...         self.seen = seen
    ...
    ...     def compared(self):
    ...         return {"seen": self.seen}
    >>> Counter(np.ones(3)) == Counter(np.ones(3)), Counter(1) == Counter(2), Counter(1) == np.ones(2)
    (True, False, False)
    >>> hash(Counter(1))
    Traceback (most recent call last):
    TypeError: unhashable type: 'Counter'
    """

    def compared(self) -> Mapping[str, Any]:
        """Return the values that decide if two are equal."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self):
            return False if is_array(other) else NotImplemented
        try:
            return same(self.compared(), cast("ByState", other).compared())
        except Exception:  # a state without plain values is equal to itself alone
            return False

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # Python's way of saying that there is none


def _has_fields(x: object) -> bool:
    """True if the class itself is a dataclass; a plain class derived from one may hold more."""
    return "__dataclass_fields__" in vars(type(x))


def same(a: Any, b: Any) -> bool:
    """True if two values are equal. NaN is equal to itself, an array without dimensions to its number.

    Values that cannot be looked at, as under ``jax.jit``, are equal where they are the same object.

    Examples
    --------
    >>> same({"a": np.array([1.0, np.nan])}, {"a": np.array([1.0, np.nan])})
    True
    >>> same(np.array(0.5), 0.5), same([1, 2], (1, 2)), same(np.ones(2), "ones")
    (True, False, False)
    """
    if a is b:
        return True
    if is_traced(a, b):
        return False
    if is_array(a) or is_array(b):
        return _same_arrays(a, b)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        left, right = cast("Mapping[Any, Any]", a), cast("Mapping[Any, Any]", b)
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(a, (list, tuple)) and type(cast("object", a)) is type(cast("object", b)):
        left, right = cast("Sequence[Any]", a), cast("Sequence[Any]", b)
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    try:
        return bool(a == b)
    except Exception:  # a foreign object whose comparison fails
        return False


def _same_arrays(a: Any, b: Any) -> bool:
    try:
        left, right = (to_numpy(x) if is_array(x) else np.asarray(x) for x in (a, b))
    except Exception:  # values that are nowhere: tensors on PyTorch's device "meta"
        return False
    if left.shape != right.shape:
        return False
    if "f" in (left.dtype.kind, right.dtype.kind):
        kinds = {left.dtype.kind, right.dtype.kind}
        return kinds <= set("biuf") and bool(np.array_equal(left, right, equal_nan=True))
    return bool(np.array_equal(left, right))
