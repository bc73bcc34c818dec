"""Generators of random numbers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import described

_GENERATORS = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence, np.random.RandomState)


def _is_seed(x: Any) -> bool:
    whole = isinstance(x, (int, np.integer)) and not isinstance(x, (bool, np.timedelta64))
    return whole and cast("int", x) >= 0


def as_generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """A NumPy generator from a seed, a generator (shared, not copied) or None (fresh entropy)."""
    if rng is None or isinstance(rng, _GENERATORS) or _is_seed(rng):
        return np.random.default_rng(rng)
    if isinstance(rng, (list, tuple)) and rng and all(map(_is_seed, cast("list[Any]", rng))):
        return np.random.default_rng(rng)
    raise TypeError(
        "rng must be a seed (a whole number, not negative), a Generator of NumPy or None, "
        f"found {described(rng)}"
    )
