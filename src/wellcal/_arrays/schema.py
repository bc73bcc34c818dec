"""Schemas of stored results, which are checked like input: the keys, and a check for each.

A check is a function of a value and its name, like those of :mod:`wellcal._arrays.checks`: it returns the
value as it is used, or raises an error with the name in it. A schema is a check of a dictionary.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import math
import os
import reprlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from wellcal._arrays.checks import limits_text, one_of, whole_number
from wellcal._arrays.namespaces import NDArray

Check: TypeAlias = Callable[[Any, str], Any]
"""Takes a value and its name, returns the value as it is used."""

NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""How numbers are written that JSON does not know."""

short = reprlib.repr
"""A value for a message, however large it is and however deeply nested."""

_COUNTABLE = 2**53
_LONGEST = 400  # of a message: what was found may be a whole file


@dataclass(frozen=True)
class Schema:
    """The keys of a stored dictionary, each with its check.

    Parameters
    ----------
    keys
        Checks by key. Every other key is an error.
    defaults
        Values of keys that may be missing.

    Examples
    --------
    >>> schema = Schema({"alpha": number(least=0.0, most=1.0), "n_samples": whole(least=0)})
    >>> schema({"alpha": 0.05, "n_samples": 3})
    {'alpha': 0.05, 'n_samples': 3}
    >>> schema({"alpha": 0.05, "n_samples": -7}, "monitor")
    Traceback (most recent call last):
    ValueError: monitor.n_samples must be a whole number of at least 0, found -7
    >>> schema({"alhpa": 0.05})
    Traceback (most recent call last):
    ValueError: alhpa is unknown; did you mean alpha?
    """

    keys: Mapping[str, Check]
    defaults: Mapping[str, Any] = field(default_factory=lambda: {})

    def __call__(self, plain: Any, name: str = "") -> dict[str, Any]:
        given = mapping(plain, name or "it")
        for key in given:
            if key not in self.keys:
                close = difflib.get_close_matches(key, self.keys, n=1)
                hint = f"; did you mean {close[0]}?" if close else ""
                raise ValueError(f"{_path(name, key)} is unknown{hint}")
        for key in self.keys:
            if key not in given and key not in self.defaults:
                raise ValueError(f"{_path(name, key)} is missing")
        return {
            key: checked(check, given[key], _path(name, key)) if key in given else self.defaults[key]
            for key, check in self.keys.items()
        }


def checked(check: Check, plain: Any, path: str) -> Any:
    """Return the result of a check; values nested too deeply are an error that names the key."""
    try:
        return check(plain, path)
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply") from None


def _path(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


# -- checks ----------------------------------------------------------------------------------------


def mapping(plain: Any, name: str) -> dict[str, Any]:
    """A dictionary with texts for keys."""
    if not isinstance(plain, dict):
        raise ValueError(f"{name} must be a dictionary, found {short(plain)}")
    for key in cast("dict[Any, Any]", plain):
        if not isinstance(key, str):
            raise ValueError(f"keys of {name} must be texts, found {key!r}")
    return cast("dict[str, Any]", plain)


def as_it_is(plain: Any, name: str) -> Any:
    """Any value: others check it."""
    return plain


def anything(plain: Any, name: str) -> Any:
    """Any value; numbers that JSON does not know come back from their texts.

    Examples
    --------
    >>> anything({"error": "nan", "parts": ["inf", "all"]}, "provenance")
    {'error': nan, 'parts': [inf, 'all']}
    """
    if isinstance(plain, dict):
        members = cast("dict[Any, Any]", plain)
        return {key: anything(value, name) for key, value in members.items()}
    if isinstance(plain, (list, tuple)):
        return [anything(item, name) for item in cast("list[Any]", plain)]
    return NOT_FINITE.get(plain, plain) if isinstance(plain, str) else plain


def described(known: Mapping[str, Check]) -> Check:
    """A dictionary of anything, in which some keys, where they are there, are known to be something."""

    def check(plain: Any, name: str) -> dict[str, Any]:
        members = cast("dict[str, Any]", anything(mapping(plain, name), name))
        return {
            key: known[key](value, _path(name, key)) if key in known else value
            for key, value in members.items()
        }

    return check


def text(plain: Any, name: str) -> str:
    """A text."""
    if not isinstance(plain, str):
        raise ValueError(f"{name} must be a text, found {short(plain)}")
    return plain


def word(*known: str) -> Check:
    """One of some texts."""
    return lambda plain, name: one_of(plain, name, known)


def whole(least: int | None = None, most: int | None = None) -> Check:
    """A whole number within limits, which floats can count to."""

    def check(plain: Any, name: str) -> int:
        found = whole_number(plain, name, least=least, most=most)
        if abs(found) > _COUNTABLE:
            raise ValueError(f"{name} is too large for a number of things: found {short(plain)}")
        return found

    return check


def number(
    *, least: float = -math.inf, most: float = math.inf, infinite: bool = False, nan: bool = False
) -> Check:
    """A number within limits; `infinite` and `nan` say what else may be, as numbers or as texts.

    Examples
    --------
    >>> number(infinite=True)("-inf", "value")
    -inf
    >>> number(least=0.0, most=1.0)(float("nan"), "pvalue")
    Traceback (most recent call last):
    ValueError: pvalue must be a number between 0 and 1, found nan
    """
    limits = limits_text(*(limit if math.isfinite(limit) else None for limit in (least, most)))

    def check(plain: Any, name: str) -> float:
        given = NOT_FINITE.get(plain, plain) if isinstance(plain, str) else plain
        if isinstance(given, (int, float, np.floating, np.integer)) and not isinstance(given, bool):
            with contextlib.suppress(OverflowError):  # whole numbers may be larger than any float
                value = float(cast("float", given))
                fits = nan if math.isnan(value) else least <= value <= most
                if fits and (infinite or not math.isinf(value)):
                    return value
        raise ValueError(f"{name} must be a number{limits}, found {short(plain)}")

    return check


def optional(check: Check) -> Check:
    """None, or what passes the check."""
    return lambda plain, name: None if plain is None else check(plain, name)


def listed(check: Check, *, length: int | None = None) -> Check:
    """A list of what passes the check, as a tuple."""

    def of_all(plain: Any, name: str) -> tuple[Any, ...]:
        if not isinstance(plain, (list, tuple)):
            raise ValueError(f"{name} must be a list, found {short(plain)}")
        items = cast("list[Any]", plain)
        if length is not None and len(items) != length:
            raise ValueError(f"{name} must have {length} entries, found {len(items)}")
        return tuple(check(item, f"{name}[{i}]") for i, item in enumerate(items))

    return of_all


def numbers(*, infinite: bool = True, nan: bool = True, whole_ones: bool = False) -> Check:
    """Nested lists of numbers as a NumPy array, of integers if they are `whole_ones`."""
    entry = whole() if whole_ones else number(infinite=infinite, nan=nan)

    def nested(plain: Any, name: str) -> Any:
        return listed(nested)(plain, name) if isinstance(plain, (list, tuple)) else entry(plain, name)

    def check(plain: Any, name: str) -> NDArray:
        values = listed(nested)(plain, name)
        try:
            return np.array(values, dtype=np.int64 if whole_ones else np.float64)
        except (ValueError, OverflowError):
            raise ValueError(f"{name} is ragged: its rows have different lengths") from None

    return check


# -- errors that name the file ---------------------------------------------------------------------


@contextlib.contextmanager
def reading(what: str, where: str = "this") -> Generator[None]:
    """Let errors say what was read, and from where.

    Examples
    --------
    >>> with reading("the state of a monitor", "state.json"):
    ...     whole(least=0)(-7, "n_samples")
    Traceback (most recent call last):
    ValueError: state.json is not the state of a monitor: n_samples must be a whole number of at least 0, ...
    """
    try:
        yield
    except RecursionError:
        raise ValueError(f"{where} is not {what}: it is nested too deeply") from None
    except (ValueError, TypeError) as error:
        problem = str(error)
        shown = problem if len(problem) <= _LONGEST else f"{problem[:_LONGEST]} ..."
        raise ValueError(f"{where} is not {what}: {shown}") from error


def parse_json(given: str | bytes) -> Any:
    """The values that a text in JSON stands for; every way of not being JSON is a ValueError.

    Examples
    --------
    >>> parse_json('{"n_samples": 3')
    Traceback (most recent call last):
    ValueError: it is not JSON: Expecting ',' delimiter: line 1 column 16 (char 15)
    """
    if not isinstance(given, (str, bytes)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"it must be a text, found {type(given).__name__}")
    try:
        return json.loads(given.decode("utf-8") if isinstance(given, bytes) else given)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: {error}") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None


def read_json(path: str | os.PathLike[str]) -> Any:
    """The values in a JSON file."""
    return parse_json(Path(path).read_bytes())
