"""Columns chosen by name: single ones, globs such as ``p_*``, and ranges such as ``p_0:p_9``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from wellcal.columns.frames import names_text

_SEPARATORS = "_-. "
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)
_ENTRY = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*(?=,|\Z)|([^,]*))(?:,|\Z)')


@dataclass(frozen=True)
class Selection:
    """Names of columns, and the parts that tell them apart.

    Parameters
    ----------
    names
        Names, in the order of the frame; in the given order if they were given one by one.
    parts
        Text that the star or the range stands for in each name; the whole name if it was given as it is.
    by_pattern
        True if all of them were selected by globs or ranges.
    """

    names: tuple[str, ...]
    parts: tuple[str, ...]
    by_pattern: bool

    def in_order_of(self, other: Selection, what: str) -> Selection:
        """Order the columns as those of `other`, if both were selected by patterns.

        The star says which columns of ``mu_*`` and ``sigma_*`` belong together, in any order.
        """
        if not (self.by_pattern and other.by_pattern):
            return self
        alone = sorted(set(self.parts) ^ set(other.parts))
        if alone or len(self.parts) != len(other.parts):
            raise ValueError(
                f"{what} do not match: {(alone or self.parts)[0]!r} occurs in one of them only (found "
                f"{names_text(other.names)} and {names_text(self.names)}); name the columns one by one"
            )
        name_of = dict(zip(self.parts, self.names, strict=True))
        return replace(self, names=tuple(name_of[part] for part in other.parts), parts=other.parts)


def select(names: Sequence[str], wanted: object, role: str) -> Selection:
    """Select columns by name, glob or range, or by a list of these.

    Parameters
    ----------
    names
        Names of all columns. One that equals `wanted` is taken before it is read as a pattern.
    wanted
        ``"mu"``; ``"p_*"``; ``"p_0:p_9"`` or ``"p_0..p_9"``, all of which must be there; ``"p"`` for all of
        ``p_0 .. p_9``, as an array is read; several with commas between them; or a list.
    role
        Name of the argument in errors, such as ``probs``.

    Examples
    --------
    >>> columns = ["y", "p_cat", "p_dog", "q_1", "q_2", "q_10"]
    >>> select(columns, "p_*", "probs").parts
    ('cat', 'dog')
    >>> select(columns, "q_1:q_2", "samples").names
    ('q_1', 'q_2')
    >>> select(["y", "draws_0", "draws_1"], "draws", "samples").names
    ('draws_0', 'draws_1')
    >>> select(columns, "p_kat", "bernoulli")
    Traceback (most recent call last):
    ValueError: bernoulli: there is no column 'p_kat'; did you mean 'p_cat'?
    """
    items = cast("Sequence[Any]", wanted) if isinstance(wanted, (list, tuple)) else [wanted]
    if not items:
        raise ValueError(f"{role}: no columns were named; the columns are {names_text(names, 12)}")
    known = dict.fromkeys(names)
    selected: dict[str, str] = {}
    by_pattern = True
    for item in items:
        if not isinstance(item, (str, int)) or isinstance(item, bool):
            raise TypeError(f"{role}: columns are given by name, found {type(item).__name__}")
        for text in apart(known, str(item)):
            pairs = {text: text} if text in known else _by_pattern(known, text, role)
            by_pattern = by_pattern and text not in known
            if twice := pairs.keys() & selected:
                raise ValueError(f"{role}: column {min(twice)!r} was named twice")
            selected |= pairs
    return Selection(tuple(selected), tuple(selected.values()), by_pattern)


def apart(names: Collection[str], text: str) -> list[str]:
    """Split a text into names of columns; a name or glob that itself has a comma comes first.

    Examples
    --------
    >>> apart(["yield, kg", "mu"], "yield, kg"), apart(["y_1", "y_2"], "y_1, y_2")
    (['yield, kg'], ['y_1', 'y_2'])
    """
    if not any(sign in text for sign in ',"') or text in names or any(map(_glob(text).fullmatch, names)):
        return [text]
    return listed(text) or [text]


def listed(text: str) -> list[str]:
    """Split a text at commas; an entry that has a comma itself stands in quotation marks, as in CSV.

    Examples
    --------
    >>> listed("y_1, y_2"), listed('"yield, kg",mu'), listed('3" pipe,5" pipe')
    (['y_1', 'y_2'], ['yield, kg', 'mu'], ['3" pipe', '5" pipe'])
    """
    entries = [quoted.replace('""', '"') or plain.strip() for quoted, plain in _ENTRY.findall(text)]
    return [entry for entry in entries if entry]


def _glob(text: str) -> re.Pattern[str]:
    return re.compile("(.*)".join(map(re.escape, text.split("*"))), re.DOTALL)


def _by_pattern(names: Collection[str], text: str, role: str) -> dict[str, str]:
    first, between, last = text.partition(":" if ":" in text else "..")
    if between:
        return _by_range(names, first, last, role)
    if "*" not in text:
        count = next(k for k in range(len(names) + 1) if f"{text}_{k}" not in names)
        if count < 2:
            raise unknown_column(names, text, role)
        return {f"{text}_{k}": str(k) for k in range(count)}  # an array of that name
    matches = {name: "_".join(match.groups()) for name in names if (match := _glob(text).fullmatch(name))}
    if not matches:
        raise ValueError(f"{role}: no column matches {text!r}; the columns are {names_text(list(names), 12)}")
    begin = {part[:1] for part in matches.values()}
    strip = len(begin) == 1 and begin <= set(_SEPARATORS) and all(len(part) > 1 for part in matches.values())
    return {name: part[strip:] or name for name, part in matches.items()}  # p* means what p_* means


def _by_range(names: Collection[str], first: str, last: str, role: str) -> dict[str, str]:
    for end in (first, last):
        if end not in names:
            raise unknown_column(names, end, role)
    ends = _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(last)
    if ends[0] is None or ends[1] is None or ends[0][1] != ends[1][1]:
        raise ValueError(
            f"{role}: a range goes from one number to another, such as p_0:p_9, found {first}:{last}; name "
            "the columns in a list"
        )
    prefix, low, high = ends[0][1], int(ends[0][2]), int(ends[1][2])
    if low > high:
        raise ValueError(f"{role}: the range {first}:{last} goes backwards; write {last}:{first}")
    numbers = [f"{k:0{len(ends[0][2])}}" for k in range(low, high + 1)]
    if absent := [k for k in numbers if prefix + k not in names]:
        missing = f"number {absent[0]} of the range {first}:{last}"
        raise ValueError(f"{role}: {missing} is not among the columns; name those that there are")
    return {prefix + k: str(int(k)) for k in numbers}


def unknown_column(names: Iterable[str], wanted: str, role: str) -> ValueError:
    """Make the error about a column that is not there, with names that are spelt alike."""
    names = list(names)
    lowered = {name.lower(): name for name in reversed(names)}
    close = [lowered[name] for name in difflib.get_close_matches(wanted.lower(), list(lowered), n=3)]
    similar = f"did you mean {' or '.join(map(repr, close))}?"
    hint = similar if close else f"the columns are {names_text(names, 12)}"
    return ValueError(f"{role}: there is no column {wanted!r}; {hint}")
