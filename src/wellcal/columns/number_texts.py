"""Texts that say numbers, as readers of files define them, and remedies for those that do not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

SAYS_MISSING = frozenset(
    (
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
        *("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
    )
)
"""Entries that stand for a missing value among numbers of a text file; among texts NA may be a name."""

_OWN_MISSING = frozenset((".", "-", "--", "?", "*", "None", "none", "NONE", "<NA>", "NaT", "missing"))
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)
_NOT_FINITE = re.compile(r"\s*[-+]?(inf|infinity|nan)\s*", re.ASCII | re.IGNORECASE)
_WITH_COMMA = re.compile(r"\s*[-+]?\d[\d.]*(,\d+)+(\.\d*)?([eE][-+]?\d+)?\s*", re.ASCII)


def number_of(text: str, decimal: str = ".") -> float | None:
    """Read the finite number that a text of a file says; None if it says none.

    Python also reads ``1_000`` and digits of other scripts as numbers.

    Examples
    --------
    >>> number_of("+1"), number_of("0,5", ","), number_of("V27"), number_of("nan")
    (1.0, 0.5, None, None)
    >>> number_of("1_000"), number_of("0.5", ",")
    (None, None)
    """
    if decimal != ".":
        text = text.replace(".", "_").replace(decimal, ".")
    return float(text) if _NUMBER.fullmatch(text) else None


def says_number(item: Any, decimal: str = ".") -> bool:
    """True if an entry is a number, or a text that says one, infinity and NaN included.

    Examples
    --------
    >>> says_number(1.5), says_number("1.5"), says_number("-inf"), says_number("1,5"), says_number("1_000")
    (True, True, True, False, False)
    """
    if isinstance(item, str):
        return number_of(item, decimal) is not None or _NOT_FINITE.fullmatch(item) is not None
    try:
        float(item)
    except (TypeError, ValueError):
        return False
    return not isinstance(item, (bytes, np.datetime64, np.timedelta64))


def first_strange(entries: Sequence[Any], decimal: str = ".") -> int | None:
    """Return the position of the first entry that is no number; None if all are.

    Texts for missing values come last.

    Examples
    --------
    >>> first_strange(["0.5", "NA", "1_000"]), first_strange(["0.5", "NA"]), first_strange(["0,5"], ",")
    (2, 1, None)
    """
    strange = [k for k, item in enumerate(entries) if not says_number(item, decimal)]
    other = (k for k in strange if not (isinstance(entries[k], str) and entries[k].strip() in SAYS_MISSING))
    return next(other, strange[0] if strange else None)


def about_entry(text: str, column: Sequence[Any], decimal: str = ".") -> str:
    """Return the remedy for a text that says no number, given the other entries of its column.

    Examples
    --------
    >>> about_entry("25%", ["25%"]), about_entry("abc", ["0.5", "abc"]), about_entry("abc", ["abc"])
    ('write shares without the sign, such as 0.25 for 25%', 'mend that entry, or name another column', '')
    >>> about_entry("0,5", ["0,5"])
    "read the file with decimal=',' if the comma is decimal; write thousands without commas"
    >>> about_entry(".", ["0.5", "."])
    "if '.' says that a value is missing, leave the entry empty"
    """
    if decimal == "." and _WITH_COMMA.fullmatch(text):
        return "read the file with decimal=',' if the comma is decimal; write thousands without commas"
    if decimal == "," and _NUMBER.fullmatch(text):
        return "that has a point, and the file is read with decimal=',': write all numbers in one way"
    if text.rstrip().endswith("%") and says_number(text.rstrip()[:-1], decimal):
        return "write shares without the sign, such as 0.25 for 25%"
    if text.strip() in _OWN_MISSING:
        return f"if {text.strip()!r} says that a value is missing, leave the entry empty"
    known = any(says_number(other, decimal) for other in column)
    return "mend that entry, or name another column" if known else ""
