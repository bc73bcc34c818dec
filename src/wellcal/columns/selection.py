"""Columns chosen by name: single ones, globs such as ``p_*``, and ranges such as ``p_0:p_9``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from wellcal.columns.frames import shown_names

_SEPARATORS = "_-. "
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)
_ENTRY = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*|([^,]*))(?:,|\Z)')


@dataclass(frozen=True)
class Selection:
    """Names of columns, and what tells them apart.

    Parameters
    ----------
    names
        Names, in the order of the frame; in the given order where they were given one by one.
    parts
        What a glob or range stands for in each of them; the whole name where it was given as it is.
    by_pattern
        Whether all of them were found by globs or ranges.
    """

    names: tuple[str, ...]
    parts: tuple[str, ...]
    by_pattern: bool

    def in_order_of(self, other: Selection, what: str) -> Selection:
        """The same columns ordered as those of `other`, where both were found by patterns.

        ``mu_*`` and ``sigma_*`` belong together by what the star stands for, whatever the order of columns.
        """
        if not (self.by_pattern and other.by_pattern) or self.parts == other.parts:
            return self
        if set(self.parts) != set(other.parts) or len(self.parts) != len(other.parts):
            alone = sorted(set(self.parts) ^ set(other.parts))
            raise ValueError(
                f"{what} do not match: {alone[0]!r} occurs in one of them only (found "
                f"{shown_names(other.names)} "
                f"and {shown_names(self.names)}); name the columns one by one"
            )
        position = {part: k for k, part in enumerate(self.parts)}
        order = [position[part] for part in other.parts]
        return Selection(tuple(self.names[k] for k in order), other.parts, True)


def select(names: Sequence[str], wanted: object, role: str) -> Selection:
    """Columns among `names` that are `wanted`: a name, a glob, a range, or a list of these.

    Parameters
    ----------
    names
        Names of all columns. One that is equal to `wanted` is taken before it is read as a pattern.
    wanted
        ``"mu"``; ``"p_*"``, ``"p_?"``, ``"p_[abc]"``; ``"p_0:p_9"`` or ``"p_0..p_9"``, all of
        which must be there; ``"p"`` for all of ``p_0 .. p_9``, as an array is read; several with commas
        between them, as on a command line; or a list.
    role
        What errors call it, such as ``probs``.

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
        raise ValueError(f"{role}: no columns were named; the columns are {shown_names(names, 12)}")
    known = {name: k for k, name in enumerate(names)}
    found: dict[str, str] = {}
    by_pattern = True
    for item in items:
        if not isinstance(item, (str, int)) or isinstance(item, bool):
            raise TypeError(f"{role}: columns are given by name, found {type(item).__name__}")
    for text in (text for item in items for text in apart(names, str(item))):
        exact = text in known
        pairs = [(text, text)] if exact else _by_pattern(names, known, text, role)
        by_pattern = by_pattern and not exact
        for name, part in pairs:
            if name in found:
                raise ValueError(f"{role}: column {name!r} was named twice")
            found[name] = part
    return Selection(tuple(found), tuple(found.values()), by_pattern)


def apart(names: Sequence[str], text: str) -> list[str]:
    """The columns that a text names, one by one: a name or a pattern with a comma in it comes first.

    Examples
    --------
    >>> apart(["yield, kg", "mu"], "yield, kg"), apart(["y_1", "y_2"], "y_1, y_2")
    (['yield, kg'], ['y_1', 'y_2'])
    """
    if not ("," in text or '"' in text) or text in names:
        return [text]
    pattern = re.compile(_expression(text), re.DOTALL)
    return [text] if any(map(pattern.fullmatch, names)) else listed(text) or [text]


def listed(text: str) -> list[str]:
    """Entries with commas between them; one that has a comma itself stands in quotation marks, as in CSV.

    Examples
    --------
    >>> listed("y_1, y_2"), listed('"yield, kg",mu'), listed('3" pipe,5" pipe')
    (['y_1', 'y_2'], ['yield, kg', 'mu'], ['3" pipe', '5" pipe'])
    """
    found: list[str] = []
    position = 0
    while position < len(text):
        match = cast("re.Match[str]", _ENTRY.match(text, position))  # of anything up to a comma, at least
        quoted, plain = match.groups()
        found.append(plain.strip() if quoted is None else quoted.replace('""', '"'))
        position = match.end()
    return [entry for entry in found if entry]


def _by_pattern(names: Sequence[str], known: dict[str, int], text: str, role: str) -> list[tuple[str, str]]:
    first, between, last = text.partition(":" if ":" in text else "..")
    if between:
        return _by_range(names, known, first, last, role)
    if not any(sign in text for sign in "*?["):
        found = _of_array(known, text)
        if not found:
            raise unknown_column(names, text, role)
        return found
    pattern = re.compile(_expression(text), re.DOTALL)
    found = [(name, match) for name in names if (match := pattern.fullmatch(name))]
    if not found:
        raise ValueError(f"{role}: no column matches {text!r}; the columns are {shown_names(names, 12)}")
    parts = _without_separator(["_".join(match.groups()) for _, match in found])
    return [(name, part or name) for (name, _), part in zip(found, parts, strict=True)]


def _without_separator(parts: Sequence[str]) -> list[str]:
    """Parts of names without the sign that all of them begin with: ``p*`` means what ``p_*`` means.

    Examples
    --------
    >>> _without_separator(["_cat", "_dog"]), _without_separator(["_a", "b"]), _without_separator(["_", "_a"])
    (['cat', 'dog'], ['_a', 'b'], ['_', '_a'])
    """
    first = {part[:1] for part in parts}
    strip = len(first) == 1 and first <= set(_SEPARATORS) and all(len(part) > 1 for part in parts)
    return [part[1:] if strip else part for part in parts]


def _of_array(known: dict[str, int], name: str) -> list[tuple[str, str]]:
    """Columns ``name_0 .. name_{k-1}``, which an array of that name is read as; none where it is no array."""
    count = 0
    while f"{name}_{count}" in known:
        count += 1
    return [(f"{name}_{k}", str(k)) for k in range(count)] if count > 1 else []


def _expression(glob: str) -> str:
    """A glob as a regular expression with one group for each of its wild places."""
    found, position = "", 0
    while position < len(glob):
        sign = glob[position]
        end = glob.find("]", position + 2) if sign == "[" else -1
        if sign == "*":
            found += "(.*)"
        elif sign == "?":
            found += "(.)"
        elif end > 0:
            inside = glob[position + 1 : end]
            negated = inside.startswith("!")
            members = re.escape(inside[negated:]).replace(r"\-", "-")
            try:
                re.compile(f"[{members}]")
            except re.error:  # such as [z-a]: no letters at all
                members = re.escape(inside[negated:])
            found += f"([{'^' if negated else ''}{members}])"
            position = end
        else:
            found += re.escape(sign)
        position += 1
    return found


def _by_range(
    names: Sequence[str], known: dict[str, int], first: str, last: str, role: str
) -> list[tuple[str, str]]:
    for end in (first, last):
        if end not in known:
            raise unknown_column(names, end, role)
    ends = _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(last)
    if ends[0] is None or ends[1] is None or ends[0][1] != ends[1][1]:
        raise ValueError(
            f"{role}: a range goes from one number to another after the same beginning, such as p_0:p_9, "
            f"found {first}:{last}; name the columns in a list, or by a glob"
        )
    prefix, low, high = ends[0][1], int(ends[0][2]), int(ends[1][2])
    if low > high:
        raise ValueError(f"{role}: the range {first}:{last} goes backwards; write {last}:{first}")
    found: dict[int, str] = {}
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is not None and match[1] == prefix and low <= int(match[2]) <= high:
            if int(match[2]) in found:
                raise ValueError(
                    f"{role}: {found[int(match[2])]!r} and {name!r} are the same number of {first}:{last}"
                )
            found[int(match[2])] = name
    if len(found) < high - low + 1:
        absent = next(k for k in range(low, high + 1) if k not in found)
        raise ValueError(
            f"{role}: number {absent} of the range {first}:{last} is not among the columns; name those that "
            "there are"
        )
    return [(found[k], str(k)) for k in range(low, high + 1)]


def unknown_column(names: Sequence[str], wanted: str, role: str) -> ValueError:
    """The error about a column that is not there, with those that are spelt alike."""
    lowered = {name.lower(): name for name in reversed(names)}
    close = [lowered[name] for name in difflib.get_close_matches(wanted.lower(), list(lowered), n=3)]
    hint = (
        f"did you mean {' or '.join(map(repr, close))}?"
        if close
        else f"the columns are {shown_names(names, 12)}"
    )
    return ValueError(f"{role}: there is no column {wanted!r}; {hint}")
