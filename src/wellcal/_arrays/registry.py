"""Rules by class: what a family, a kernel or a metric knows is registered, here or in a user's own file."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Generic, TypeVar

Rule = TypeVar("Rule")
Key = tuple[type, ...]


class Rules(Generic[Rule]):
    """Functions, or other facts, looked up by one class, or by several together.

    A rule of a class serves the classes derived from it, unless they have a rule of their own. Where several
    classes are the key, the rule is taken that is nearest in the first, then in the second and so on.

    Parameters
    ----------
    what
        What the rules are for, in errors: "a temperature", "a distance".
    exact
        Whether a rule serves the very class only. A subclass of a kernel is another function of its
        arguments, so that what is proven of the one need not hold for the other.
    serves
        Whether a rule for the second class serves the first, which is derived from it; None says yes.

    Attributes
    ----------
    found
        The rule, or None, for each key that was asked for: ``found[Normal,]`` costs no more than a look
        into a dictionary.
    changes
        How often the rules have changed.

    Notes
    -----
    In the type of a rule, the arguments by whose classes it is found are `Any`: they are of the classes for
    which it is registered, and no type can say so.

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

    def __init__(
        self, what: str, *, exact: bool = False, serves: Callable[[type, type], bool] | None = None
    ) -> None:
        self.what = what
        self.exact = exact
        self.serves = serves
        self._rules: dict[Key, Rule] = {}
        self.found: dict[Key, Rule | None] = _Remembered(self._search)
        self.changes = 0

    def register(self, *key: type, replace: bool = False) -> Callable[[Rule], Rule]:
        """Decorator that registers a rule for these classes."""
        for part in key:
            if not isinstance(part, type):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"{self.what} is registered for classes, found {part!r}")

        def decorate(rule: Rule) -> Rule:
            if key in self._rules and not replace:
                names = ", ".join(part.__name__ for part in key)
                raise ValueError(
                    f"there is {self.what} of {names} already; replace it with register(..., replace=True)"
                )
            self._rules[key] = rule
            self._forget()
            return rule

        return decorate

    def find(self, *key: type) -> Rule | None:
        """The rule that serves these classes, or None."""
        return self.found[key]

    def _search(self, key: Key) -> Rule | None:
        if self.exact:
            return self._rules.get(key)
        nearest = product(*(c.__mro__ for c in key))
        return next((self._rules[k] for k in nearest if k in self._rules and self._may_serve(key, k)), None)

    def _may_serve(self, asked: Key, registered: Key) -> bool:
        return self.serves is None or all(map(self.serves, asked, registered))

    def __iter__(self) -> Iterator[Key]:
        """Classes, or tuples of them, that rules were registered for."""
        return iter(self._rules)

    @contextmanager
    def restored(self) -> Generator[None]:
        """Forget what is registered within a ``with`` block, when it ends: for tests and examples."""
        before = dict(self._rules)
        try:
            yield
        finally:
            self._rules = before
            self._forget()

    def _forget(self) -> None:
        self.found.clear()
        self.changes += 1


class _Remembered(dict[Key, Rule | None], Generic[Rule]):
    """Answers of a search, each looked for once."""

    def __init__(self, search: Callable[[Key], Rule | None]) -> None:
        self._search = search

    def __missing__(self, key: Key) -> Rule | None:
        return self.setdefault(key, self._search(key))
