"""Short numbers, for people."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np

from wellcal._arrays.namespaces import NDArray

SURE = 1e-4
"""As near to nothing, or to all, as a share is told."""

_MOST_DIGITS = 6  # of a cut that is told as it is
_FEW_DIGITS = 4  # of one that is told as what it is about
_NEAR_ONE = 0.999
_ODDS = 1e-8  # probability below which one case in so many says more than percents

SAME = 1e-12
"""Values whose difference is a smaller share of them are the same number, computed in two ways."""


def distinct(values: NDArray) -> NDArray:
    """Different values in increasing order; of those that differ by rounding only, the smallest.

    Examples
    --------
    >>> distinct(np.array([0.3, 0.1 + 0.2, 1.0 - 0.9, 0.1]))
    array([0.1, 0.3])
    """
    ordered: NDArray = np.unique(np.asarray(values, dtype=np.float64))
    return ordered[np.concatenate([[True], np.diff(ordered) > SAME * np.abs(ordered[1:])])]


def cut_near(values: NDArray, low: float, high: float) -> float | None:
    """A short number between `low` and `high` that no case lies on: None where there is none between them.

    Where a value is that number, the cut is a round number between it and the next one: "above 4" and "below
    4" would leave out somebody.

    Examples
    --------
    >>> cut_near(np.array([1.0, 3.0, 4.0, 6.0]), 2.5, 4.5), cut_near(np.array([1.2, 3.9, 4.1]), 2.5, 4.5)
    (3.5, 3.0)
    """
    if not high - low > SAME * max(abs(low), abs(high)):
        return None
    cut = round_between(low, high)
    ordered = distinct(values)
    place = int(np.searchsorted(ordered, cut - SAME * abs(cut)))
    if place == len(ordered) or abs(ordered[place] - cut) > SAME * abs(cut):
        return cut
    return round_number(*ordered[place : place + 2].tolist()) if place + 1 < len(ordered) else None


def cut_text(cut: float) -> str:
    """A cut as it is told: all of its digits where these are few; next to 1, how much is missing from it.

    A number that stays long because no shorter one lies between two cases is told as what it is about.

    Examples
    --------
    >>> cut_text(4.0), cut_text(0.1 + 0.2), cut_text(1234567.5), cut_text(6.1e-06)
    ('4', '0.3', '1234567.5', '6.1e-06')
    >>> cut_text(0.999999999999), cut_text(0.99995), cut_text(0.123456789), cut_text(-1234.56789)
    ('1 - 1e-12', '0.99995', 'about 0.1235', 'about -1235')
    """
    text = f"{cut:.15g}"
    if not math.isfinite(cut) or _digits(text) <= _MOST_DIGITS:
        return text
    if _NEAR_ONE <= cut < 1.0:
        missing = f"{float(Decimal(1) - Decimal(text)):.15g}"  # of the number that is told: exact
        return f"{'' if _digits(missing) <= _FEW_DIGITS else 'about '}1 - {float(missing):.{_FEW_DIGITS}g}"
    whole, _, decimals = text.lstrip("-").partition(".")
    if "e" not in text and len(decimals) <= 1:
        return text
    digits = max(len(whole) if "e" not in text and whole != "0" else 0, _FEW_DIGITS)
    return f"about {cut:.{digits}g}"


def share_cut_text(cut: float) -> str:
    """The same of a probability, in percent; of what is nearer to nothing, one case in how many.

    What is nearer to all is told in percent, too, with as many nines as it takes.

    Examples
    --------
    >>> share_cut_text(0.745), share_cut_text(6.1e-06), share_cut_text(0.99995), share_cut_text(1 - 1e-06)
    ('74.5%', '0.00061%', '99.995%', '99.9999%')
    >>> share_cut_text(2.4e-11), share_cut_text(1.0 - 2.0**-40), share_cut_text(0.123456789)
    ('one in 42 billion', '99.99999999991%', 'about 12.35%')
    """
    rest = 1.0 - cut
    if 0.0 < cut < _ODDS:
        return f"one in {_large(float(f'{1.0 / cut:.2g}'), 2)}"
    if 0.0 < rest < _ODDS:
        return f"{100 - Decimal(f'{100.0 * rest:.1g}'):f}%"
    told = cut_text(cut)
    if not math.isfinite(cut):
        return told
    about, number = ("about ", told.removeprefix("about ")) if told.startswith("about ") else ("", told)
    exact = Decimal(number) if "-" not in number.lstrip("-") or "e" in number else None
    if exact is None:  # told as what is missing from 1
        exact = Decimal(1) - Decimal(number.rpartition(" ")[2])
    text = f"{exact * 100:f}"
    return f"{about}{text.rstrip('0').rstrip('.') if '.' in text else text}%"


def _digits(text: str) -> int:
    """How many digits a number has, without zeros that only say where its point is."""
    return len(text.partition("e")[0].replace(".", "").lstrip("-0"))


def short_number(value: float) -> str:
    """A number with three digits, and all of those before its point.

    Examples
    --------
    >>> [short_number(x) for x in (2.34567, 123456.7, -0.04567, 3.0, 1e-9, 5e12)]
    ['2.35', '123,457', '-0.0457', '3', '1e-09', '5e+12']
    """
    return f"{value:,.0f}" if 99.95 <= abs(value) < 1e9 else f"{value:.3g}"


def percent(share: float, small: float = 0.01, digits: int = 1) -> str:
    """A share in percent: whole ones, and so many digits below `small`.

    What is not all is not called 100%, and what is not nothing is not called 0%.

    Examples
    --------
    >>> percent(0.213), percent(0.004), percent(0.0), percent(1.0), percent(-0.3)
    ('21%', '0.4%', '0%', '100%', '-30%')
    >>> percent(0.997), percent(0.9996), percent(1.0 - 1e-9), percent(1e-9), percent(0.0072, 0.095, 2)
    ('99.7%', '99.96%', 'over 99.99%', 'under 0.01%', '0.72%')
    """
    if share < 0.0:
        return f"-{percent(-share, small, digits)}"
    if 0.0 < share < SURE:
        return f"under {100.0 * SURE:g}%"
    if 0.995 <= share < 1.0:
        if share > 1.0 - SURE:
            return f"over {100.0 * (1.0 - SURE):g}%"
        step = 1000.0 if share <= 0.999 else 10_000.0
        return f"{100.0 * math.floor(share * step + 1e-9) / step:.4g}%"
    return f"{100.0 * share:.0f}%" if share >= small or share == 0.0 else f"{100.0 * share:.{digits}g}%"


_POWERS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))


def large_numbers(*values: float) -> list[str]:
    """Numbers in words, with as many digits as tell those apart that differ.

    Examples
    --------
    >>> large_numbers(1.04e8, 1e8), large_numbers(100_400_000, 1e8), large_numbers(3.7e12, 2000)
    (['104 million', '100 million'], ['100.4 million', '100 million'], ['3.7 trillion', '2,000'])
    """
    tried = ([_large(value, digits) for value in values] for digits in range(3, 17))
    exact = [f"{value:,g}" for value in values]
    return next((found for found in tried if len(set(found)) == len(set(values))), exact)


def _large(value: float, digits: int) -> str:
    unit, name = next(((unit, f" {name}") for unit, name in _POWERS if value >= unit), (1.0, ""))
    rounded = float(f"{value / unit:.{digits}g}")
    return f"{rounded:,.10g}{name}"


def round_between(low: float, high: float) -> float:
    """The number with fewest decimal digits strictly between two others.

    A split between two neighbouring values is the same wherever it is made between them, so that a
    short number can name it.

    Examples
    --------
    >>> round_between(3.9871, 4.0213)
    4.0
    >>> round_between(-0.01235, -0.01228)
    -0.0123
    """
    if not (np.isfinite(low) and np.isfinite(high)):
        return low if np.isfinite(low) else high
    top = math.floor(math.log10(max(abs(low), abs(high), high - low))) + 1
    for exponent in range(top, max(top - 18, -300), -1):
        # Whole multiples of a power of ten, divided rather than multiplied where that is exact.
        whole = math.floor(low / 10.0**exponent) + 1
        found = whole * 10.0**exponent if exponent >= 0 else whole / 10.0**-exponent
        if low < found < high:
            return found
    return low + 0.5 * (high - low)


def round_number(low: float, high: float) -> float:
    """A round number between two others, the nearest to their middle: 40 or 35 rather than 34.

    Examples
    --------
    >>> (
    ...     round_number(32.0, 39.0),
    ...     round_number(0.131, 0.164),
    ...     round_number(-7.2, 4.0),
    ...     round_number(48.2, 48.7),
    ... )
    (35.0, 0.15, 0.0, 48.5)
    """
    middle = low + 0.5 * (high - low)
    largest = math.floor(math.log10(max(abs(low), abs(high), high - low))) + 1
    for exponent in range(largest, largest - 12, -1):
        for step in (10.0, 5.0, 2.0):
            per_unit = 10.0 ** (1 - exponent) / step
            found = round(middle * per_unit) / per_unit
            if low < found < high:
                return found
    return round_between(low, high)
