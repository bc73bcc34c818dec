"""Short numbers, for people."""

from __future__ import annotations

import math

import numpy as np

from wellcal._arrays.namespaces import NDArray

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
    """A cut as it is told: all of its digits, of which it has few.

    Examples
    --------
    >>> cut_text(4.0), cut_text(0.1 + 0.2), cut_text(1234567.5)
    ('4', '0.3', '1234567.5')
    """
    return f"{cut:.15g}"


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
