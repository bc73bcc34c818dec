"""What was found out about an object: kept as long as it lives, and if it is large, until a task is done."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Any, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

Value = TypeVar("Value")

_large: ContextVar[dict[Hashable, tuple[Any, Any]] | None] = ContextVar("_large", default=None)


class OneTask:
    """Keep large findings as well, within a ``with`` block: one task asks for the same more than once.

    A block within another belongs to the larger task.
    """

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = None if _large.get() is not None else _large.set({})

    def __exit__(self, *error: object) -> None:
        if self._token is not None:
            _large.reset(self._token)


class Remembered(Generic[Value]):
    """Findings about objects.

    Parameters
    ----------
    most
        Entries of arrays up to which a finding is small.

    Examples
    --------
    >>> class Batch: ...
    >>> batch, known = Batch(), Remembered(most=10)
    >>> def find(size):
    ...     print("looking")
    ...     return size
    >>> def ask(size):
    ...     return known.of(batch, size, lambda: find(size), lambda found: found)
    >>> ask(5), ask(5)
    looking
    (5, 5)
    >>> with OneTask():
    ...     ask(50), ask(50)
    looking
    (50, 50)
    >>> ask(50)
    looking
    50
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._small: WeakKeyDictionary[Any, dict[Hashable, Value]] = WeakKeyDictionary()

    def of(self, about: object, key: Any, find: Callable[[], Value], size: Callable[[Value], int]) -> Value:
        """What is known about an object under a key, or is found now; `size` counts its entries.

        A key without a hash, such as that of a kernel that holds arrays, is no key: nothing is kept.
        """
        small, large = self._small.setdefault(about, {}), _large.get()
        try:
            if key in small:
                return small[key]
        except TypeError:
            return find()
        place = (id(self), id(about), key)
        if large is not None and place in large:
            return cast("Value", large[place][1])
        found = find()
        if self.is_small(size(found)):
            small[key] = found
        elif large is not None:
            large[place] = about, found  # with the object, whose number must not be taken by another
        return found

    def is_small(self, size: int) -> bool:
        """Whether a finding with so many entries is kept as long as its object lives."""
        return size <= self._most
