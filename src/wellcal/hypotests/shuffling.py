"""A random order of n things in which the place of each is known by itself.

A generator shuffles all of them at once, in memory. Here the place of a thing is a function of its number: a
Feistel network (Luby, Rackoff, 1988) over pairs of digits to the base ``ceil(sqrt(n))``, which is one to one
whatever its round function is; what leaves the n numbers goes through it again until it is back.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray

_KEYS = tuple(range(1, 7))  # one for each round: four make a random order, two more cost little
_WORDS = 4  # arrays that a round fills


def random_places(numbers: NDArray, n: int) -> NDArray:
    """Places of some of n things in their random order, between 0 and n - 1: always the same ones.

    Parameters
    ----------
    numbers
        Of the things, ``(m,)``, from 0 to n - 1.
    n
        How many there are.

    Examples
    --------
    >>> random_places(np.arange(7), 7)
    array([6, 1, 0, 2, 4, 3, 5])
    >>> random_places(np.array([5, 2]), 7)
    array([3, 0])
    """
    base = max(math.isqrt(n - 1) + 1, 2)
    out = np.empty(len(numbers), dtype=np.int64)
    for some in in_chunks(len(numbers), _WORDS):
        places = _once(numbers[some].astype(np.uint64), base)
        beyond = np.flatnonzero(places >= n)
        while len(beyond):
            places[beyond] = _once(places[beyond], base)
            beyond = beyond[places[beyond] >= n]
        out[some] = places
    return out


def random_order(n: int) -> NDArray:
    """All of n things in their random order: which of them comes first, and so on.

    Examples
    --------
    >>> random_order(7)
    array([2, 1, 3, 5, 4, 6, 0])
    """
    numbers = np.arange(n)
    order = np.empty(n, dtype=np.int64)
    order[random_places(numbers, n)] = numbers
    return order


def _once(numbers: NDArray, base: int) -> NDArray:
    digits = np.uint64(base)
    left, right = np.divmod(numbers, digits)
    for key in _KEYS:
        left, right = right, (left + _mixed(right, key) % digits) % digits
    return left * digits + right


def _mixed(x: NDArray, key: int) -> Any:
    """All bits of a number and a key in each other (the last steps of SplitMix64; Steele et al., 2014)."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(key * 0x9E3779B97F4A7C15 % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
