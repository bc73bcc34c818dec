"""Texts that say numbers, as the readers of files have it, and what to do about those that do not."""

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
"""What says, among numbers of a text file, that a value is missing; among texts NA may be North America."""

_MAY_SAY_MISSING = frozenset((".", "-", "--", "?", "*", "None", "none", "NONE", "<NA>", "NaT", "missing"))

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)
_NOT_FINITE = re.compile(r"\s*[-+]?(inf|infinity|nan)\s*", re.ASCII | re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+(\.\d{3})*,\d+([eE][-+]?\d+)?\s*", re.ASCII)
_THOUSANDS = re.compile(r"\s*[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?\s*", re.ASCII)
_DECIMAL_POINT = re.compile(r"\s*[-+]?\d+\.\d*([eE][-+]?\d+)?\s*", re.ASCII)
_NO_NUMBERS = (bytes, np.datetime64, np.timedelta64)  # though float() makes some of them


def number_of(text: str, decimal: str = ".") -> float | None:
    """The finite number that a text says, as files of numbers have them; None where it says none.

    Python takes more for a number, such as ``1_000`` and the digits of other scripts.

    Examples
    --------
    >>> number_of("+1"), number_of("0,5", ","), number_of("V27"), number_of("nan")
    (1.0, 0.5, None, None)
    >>> number_of("1_000"), number_of("0.5", ",")
    (None, None)
    """
    if decimal != ".":
        if "." in text:
            return None
        text = text.replace(decimal, ".")
    return float(text) if _NUMBER.fullmatch(text) else None


def says_number(item: Any, decimal: str = ".") -> bool:
    """Whether an entry is a number, or a text that says one; infinity and NaN count.

    Examples
    --------
    >>> says_number(1.5), says_number("1.5"), says_number("-inf"), says_number("1,5"), says_number("1_000")
    (True, True, True, False, False)
    """
    if isinstance(item, str):
        return number_of(item, decimal) is not None or _NOT_FINITE.fullmatch(item) is not None
    if isinstance(item, _NO_NUMBERS):
        return False
    try:
        float(item)
    except (TypeError, ValueError):
        return False
    return True


def first_strange(entries: Sequence[Any], decimal: str = ".") -> int | None:
    """Where the first entry is because of which a column holds no numbers; None where all say numbers.

    Texts that say that a value is missing are passed over, where there is another.

    Examples
    --------
    >>> first_strange(["0.5", "NA", "1_000"]), first_strange(["0.5", "NA"]), first_strange(["0,5"], ",")
    (2, 1, None)
    """
    first = None
    for k, item in enumerate(entries):
        if not says_number(item, decimal):
            if not isinstance(item, str) or item.strip() not in SAYS_MISSING:
                return k
            first = k if first is None else first
    return first


def about_entry(text: str, column: Sequence[Any], decimal: str = ".") -> str:
    """What to do about a text that says no number, by the others in its `column`; empty if nothing is known.

    Examples
    --------
    >>> about_entry("25%", ["25%"]), about_entry("abc", ["0.5", "abc"]), about_entry("abc", ["abc"])
    ('write shares without the sign, such as 0.25 for 25%', 'mend that entry, or name another column', '')
    >>> about_entry(".", ["0.5", "."])
    "if '.' says that a value is missing, leave the entry empty"
    """
    if remedy := about_comma(text, column) if decimal == "." else _about_point(text):
        return remedy
    if text.rstrip().endswith("%") and says_number(text.rstrip()[:-1], decimal):
        return "write shares without the sign, such as 0.25 for 25%"
    if text.strip() in _MAY_SAY_MISSING:
        return f"if {text.strip()!r} says that a value is missing, leave the entry empty"
    known = any(says_number(other, decimal) for other in column)
    return "mend that entry, or name another column" if known else ""


def about_comma(text: str, column: Sequence[Any]) -> str:
    """What to do about the comma in a text, by the others in its `column`; empty if it is in no number.

    A comma before three digits may separate thousands: it is called a decimal comma only where another text
    cannot be read otherwise, since numbers that are read wrongly would be wrong by a factor of 1000. Nor is
    one that cannot separate thousands said to do so because others have points.

    Examples
    --------
    >>> about_comma("0,5", ["0,5", "1,037"]), about_comma("a", ["a"])
    ("that looks like a decimal comma: read the file with decimal=','", '')
    >>> about_comma("1,037", ["1,037", "12,500.5"])
    'the comma separates thousands: write numbers without it'
    >>> about_comma("1,037", ["1,037", "950"])
    "if '1,037' is about 1, read the file with decimal=','; if it is about 1000, write numbers without commas"
    >>> about_comma("1,5", ["0.71", "1,5"])
    "that looks like a decimal comma, and '0.71' has a point: write all numbers with decimal points"
    """
    if not (_DECIMAL_COMMA.fullmatch(text) or _THOUSANDS.fullmatch(text)):
        return ""
    commas, separated, pointed = False, False, ""
    for other in (text, *(other for other in column if isinstance(other, str))):
        as_decimal, as_thousands = _DECIMAL_COMMA.fullmatch(other), _THOUSANDS.fullmatch(other)
        commas = commas or bool(as_decimal and not as_thousands)
        separated = separated or bool(as_thousands and not as_decimal)
        pointed = pointed or (other.strip() if _DECIMAL_POINT.fullmatch(other) else "")
    if commas and separated:
        return "some commas separate thousands and others decimals: write all numbers in one way"
    if separated or (pointed and not commas):
        return "the comma separates thousands: write numbers without it"
    if pointed:
        return (
            f"that looks like a decimal comma, and {pointed[:40]!r} has a point: write all numbers with "
            "decimal points"
        )
    if commas:
        return "that looks like a decimal comma: read the file with decimal=','"
    first = text.strip().lstrip("+-").partition(",")[0]
    return (
        f"if {text.strip()!r} is about {first}, read the file with decimal=','; if it is about {first}000, "
        "write numbers without commas"
    )


def _about_point(text: str) -> str:
    """What to do about a point in a number of a file that is read with decimal commas."""
    if not _DECIMAL_POINT.fullmatch(text):
        return ""
    return "that has a point, and the file is read with decimal=',': write all numbers in one way"


def commas_in(column: Sequence[Any]) -> str:
    """The first text with a comma, where all texts of a column look like numbers; empty where some do not.

    Examples
    --------
    >>> commas_in(["0", "0,99", "1e-5"]), commas_in(["0,99", "barolo"]), commas_in(["0.5"])
    ('0,99', '', '')
    """
    first = ""
    for text in column:
        comma = isinstance(text, str) and (_DECIMAL_COMMA.fullmatch(text) or _THOUSANDS.fullmatch(text))
        if not comma and not says_number(text):
            return ""
        first = first or (str(text) if comma else "")
    return first
