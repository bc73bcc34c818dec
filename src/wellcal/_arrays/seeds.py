"""Generators of random numbers: one rule for all functions that draw any.

The same data and the same call have the same answer: without `rng` all functions take one seed.
Two functions that test the same cases then draw the same targets, and cannot contradict each other.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from wellcal._arrays import DEFAULT_SEED
from wellcal._arrays.checks import described

__all__ = [
    "DEFAULT_SEED",
    "as_generator",
    "fresh_generator",
    "generator_aside",
    "known_seed",
]

_GENERATORS = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence, np.random.RandomState)
_ASIDE = 1  # tells a stream of the default seed from its first one


def _is_seed(x: Any) -> bool:
    whole = isinstance(x, (int, np.integer)) and not isinstance(x, (bool, np.timedelta64))
    return whole and cast("int", x) >= 0


def as_generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """Return a NumPy generator from a seed, a generator (shared, not copied) or None (the default seed).

    Examples
    --------
    >>> bool(as_generator(None).random() == as_generator(DEFAULT_SEED).random())
    True
    """
    return fresh_generator(DEFAULT_SEED if rng is None else rng)


def fresh_generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """Return a generator for simulations, in which None means new numbers each time."""
    if rng is None or isinstance(rng, _GENERATORS) or _is_seed(rng):
        return np.random.default_rng(rng)
    if isinstance(rng, (list, tuple)) and rng and all(map(_is_seed, cast("list[Any]", rng))):
        return np.random.default_rng(rng)
    raise TypeError(
        "rng must be a seed (a whole number, not negative), a Generator of NumPy or None, "
        f"found {described(rng)}"
    )


def generator_aside(rng: int | np.random.Generator | None) -> np.random.Generator:
    """Return a generator for numbers that meet the targets one by one, such as those that randomise ranks.

    Targets are often simulated with the seed 0. Numbers of the default seed itself would then be those that
    the targets were made of, and ranks randomised with them would not be uniform.

    Examples
    --------
    >>> bool(generator_aside(None).random() == as_generator(None).random())
    False
    >>> bool(generator_aside(3).random() == as_generator(3).random())
    True
    """
    return np.random.default_rng([DEFAULT_SEED, _ASIDE]) if rng is None else as_generator(rng)


def known_seed(rng: object) -> int | None:
    """Return the seed that `rng` is or stands for; None for generators, whose seed is lost.

    Examples
    --------
    >>> known_seed(None), known_seed(7), known_seed(np.random.default_rng(7))
    (0, 7, None)
    """
    if rng is None:
        return DEFAULT_SEED
    return int(cast("int", rng)) if _is_seed(rng) else None
