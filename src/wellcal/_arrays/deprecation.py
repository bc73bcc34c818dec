"""Old names that keep working for one version, with a warning that names the new ones."""

from __future__ import annotations

import functools
import pkgutil
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def warn_renamed(old: str, new: str, *, stacklevel: int = 2) -> None:
    """Say that `old` is called `new` now, to whoever called the caller of this function.

    A `stacklevel` of 3 speaks to the next one further out, and so on.
    """
    warnings.warn(
        f"{old} is deprecated and will be removed in the next version; use {new}",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )


def renamed_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module whose functions or classes have other names now, here or elsewhere.

    Parameters
    ----------
    module
        ``__name__`` of the module.
    names
        Old names, and the new ones with the path by which users reach them.

    Examples
    --------
    In a module, ``__getattr__ = renamed_names(__name__, {...})``; then

    >>> import warnings
    >>> find = renamed_names("shapes", {"Oblong": "fractions.Fraction"})
    >>> with warnings.catch_warnings(record=True, action="always") as seen:
    ...     find("Oblong").__name__
    'Fraction'
    >>> print(seen[0].message)
    shapes.Oblong is deprecated and will be removed in the next version; use fractions.Fraction
    >>> find("Square")
    Traceback (most recent call last):
    AttributeError: module 'shapes' has no attribute 'Square'
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_renamed(f"{module}.{name}", names[name])
        return pkgutil.resolve_name(names[name])

    return find


def renamed_arguments(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator of a function, or of an ``__init__``, whose keyword arguments have other names now.

    Parameters
    ----------
    names
        New names by old ones: ``at="locations"``.

    Examples
    --------
    >>> import warnings
    >>> @renamed_arguments(at="locations")
    ... def look(*, locations=None):
    ...     return locations
    >>> with warnings.catch_warnings(record=True, action="always") as seen:
    ...     look(at=3)
    3
    >>> print(seen[0].message)
    look(at=...) is deprecated and will be removed in the next version; use look(locations=...)
    >>> look(locations=1, at=3)
    Traceback (most recent call last):
    TypeError: look() takes locations, which was called at before, and not both of them
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        path = function.__qualname__.removesuffix(".__init__")
        called = path if path != function.__qualname__ else function.__name__

        @functools.wraps(function)
        def renamed(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in kwargs.keys() & names.keys():
                new = names[old]
                if new in kwargs:
                    raise TypeError(
                        f"{called}() takes {new}, which was called {old} before, and not both of them"
                    )
                warn_renamed(f"{called}({old}=...)", f"{called}({new}=...)")
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return renamed

    return decorate


def renamed_attribute(old: str, new: str) -> Any:
    """A property of a class under its old name, for attributes that have another name now.

    Examples
    --------
    >>> import warnings
    >>> class Result:
    ...     n_samples = 12
    ...     n_cases = renamed_attribute("n_cases", "n_samples")
    >>> with warnings.catch_warnings(record=True, action="always") as seen:
    ...     Result().n_cases
    12
    >>> print(seen[0].message)
    Result.n_cases is deprecated and will be removed in the next version; use Result.n_samples
    """

    def get(self: object) -> Any:
        kind = type(self).__name__
        warn_renamed(f"{kind}.{old}", f"{kind}.{new}")
        return getattr(self, new)

    return property(get, doc=f"Deprecated: `{new}`.")
