"""Short numbers, for people."""

from __future__ import annotations

import math

import numpy as np


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
