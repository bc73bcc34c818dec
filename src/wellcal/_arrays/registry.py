"""Rules by class: what a family, a kernel or a metric knows is registered, here or in a user's own file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Generic, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class Rules(Generic[Function]):
    """Functions looked up by one class, or by several together.

    A rule of a class serves the classes derived from it, unless they have a rule of their own. Where several
    classes are the key, the rule is taken that is nearest in the first, then in the second and so on.

    Parameters
    ----------
    what
        What the rules are for, in errors: "a temperature", "a distance".
    exact
        Whether a rule serves the very class only. A subclass of a kernel is another function of its
        arguments, so that what is proven of the one need not hold for the other.

    Examples
    --------
    >>> sizes = Rules("a size")
    >>> @sizes.register(list)
    ... def size_of_list(x):
    ...     return len(x)
    >>> sizes.find(list) is size_of_list, sizes.find(str) is None
    (True, True)
    >>> @sizes.register(list)
    ... def again(x):
    ...     return 0
    Traceback (most recent call last):
    ValueError: there is a size of list already; replace it with register(..., replace=True)
    """

    def __init__(self, what: str, *, exact: bool = False) -> None:
        self.what = what
        self.exact = exact
        self._rules: dict[tuple[type, ...], Function] = {}
        self._found: dict[tuple[type, ...], Function | None] = {}

    def register(self, *key: type, replace: bool = False) -> Callable[[Function], Function]:
        """Decorator that registers a function for these classes."""
        for part in key:
            if not isinstance(part, type):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"{self.what} is registered for classes, found {part!r}")

        def decorate(function: Function) -> Function:
            if key in self._rules and not replace:
                names = ", ".join(part.__name__ for part in key)
                raise ValueError(
                    f"there is {self.what} of {names} already; replace it with register(..., replace=True)"
                )
            self._rules[key] = function
            self._found.clear()
            return function

        return decorate

    def find(self, *key: type) -> Function | None:
        """The rule that serves these classes, or None."""
        try:
            return self._found[key]
        except KeyError:
            return self._found.setdefault(key, self._search(key))

    def _search(self, key: tuple[type, ...]) -> Function | None:
        if self.exact:
            return self._rules.get(key)
        return next((self._rules[k] for k in product(*(c.__mro__ for c in key)) if k in self._rules), None)

    def __iter__(self) -> Iterator[tuple[type, ...]]:
        """Classes, or tuples of them, that rules were registered for."""
        return iter(self._rules)
