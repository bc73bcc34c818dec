"""Values computed about objects, kept as long as these live."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import is_dataclass
from typing import Any, Generic, TypeVar, cast

from wellcal._arrays.namespaces import Array, NDArray, device_of, from_numpy, is_torch, namespace

Value = TypeVar("Value")

_large: ContextVar[dict[Hashable, tuple[Any, Any]] | None] = ContextVar("_large", default=None)


@contextmanager
def keeping_large_values() -> Generator[None]:
    """Keep large values as well until a ``with`` block ends: one task asks for the same more than once.

    A block within another belongs to the outer one.
    """
    if _large.get() is not None:
        yield
        return
    token = _large.set({})
    try:
        yield
    finally:
        _large.reset(token)


class Memo(Generic[Value]):
    """A function's values by object and key; a value must not refer to its object, which would never die.

    Parameters
    ----------
    most
        Array entries up to which a value is small and kept as long as its object lives. Larger ones are kept
        within :func:`keeping_large_values` only.
    keys
        Values of one object that are kept; the oldest goes first.

    Examples
    --------
    >>> class Batch: ...
    >>> batch, squares = Batch(), Memo()
    >>> def square(x):
    ...     print("computing")
    ...     return x * x
    >>> squares.get(batch, 5, lambda: square(5)), squares.get(batch, 5, lambda: square(5))
    computing
    (25, 25)
    """

    def __init__(self, most: int = 8_000_000, keys: int = 64) -> None:
        self._most, self._keys = most, keys
        self._values: dict[int, dict[Hashable, Value]] = {}

    def get(self, owner: object, key: Any, compute: Callable[[], Value]) -> Value:
        """Return the value of `owner` under `key`, computed on the first call.

        A key without a hash, such as a kernel that holds arrays, is no key: nothing is kept.
        """
        place, large = id(owner), _large.get()
        values = self._values.get(place)
        if values is None:
            values = self._values[place] = {}
            weakref.finalize(owner, self._values.pop, place, None).atexit = False
        try:
            if key in values:
                return values[key]
        except TypeError:
            return compute()
        if large is not None and (id(self), place, key) in large:
            return cast("Value", large[id(self), place, key][1])
        value = compute()
        if entries_of(value) <= self._most:
            while len(values) >= self._keys:
                del values[next(iter(values))]
            values[key] = value
        elif large is not None:
            large[id(self), place, key] = owner, value  # the owner too, so that no other object takes its id
        return value


def entries_of(value: Any) -> int:
    """Count the entries of all arrays in a tree of tuples, lists and dataclasses."""
    if hasattr(value, "shape"):
        return math.prod(value.shape)
    if isinstance(value, (tuple, list)):
        return sum(map(entries_of, cast("Any", value)))
    return sum(map(entries_of, vars(value).values())) if is_dataclass(value) else 0


_on_devices: Memo[Array] = Memo()


def on_device(array: NDArray, like: Array) -> Array:
    """Copy a constant `array` to the library and device of `like`, once for PyTorch.

    Examples
    --------
    >>> import numpy as np, torch
    >>> ones = np.ones(2)
    >>> on_device(ones, torch.zeros(1)) is on_device(ones, torch.zeros(3))
    True
    """
    if not is_torch(namespace(like)):  # JAX compiles constants into its programs
        return from_numpy(array, like)
    return _on_devices.get(array, str(device_of(like)), lambda: from_numpy(array, like))
