"""What experiments are made of: tasks with a name, random numbers of their own, and an expected cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

FloatArray = np.ndarray[Any, Any]
"""Any NumPy array."""

Record = dict[str, Any]
"""What a task finds: numbers, strings, and lists and dictionaries of these."""


@dataclass(frozen=True)
class Settings:
    """What a run depends on.

    Attributes
    ----------
    seed
        Seed of all random numbers.
    quick
        Whether to run a small version of each experiment.
    """

    seed: int = 0
    quick: bool = False


@dataclass(frozen=True)
class Task:
    """A piece of work that another process can do.

    Attributes
    ----------
    key
        Name under which its record is stored; unique within an experiment.
    function, arguments
        A function of a module, and what it is called with.
    cost
        Expected seconds, for the order of tasks and the remaining time.
    """

    key: str
    function: Callable[..., Record]
    arguments: tuple[Any, ...]
    cost: float = 1.0


def generator(seed: int, *path: int) -> np.random.Generator:
    """Random numbers for one place of an experiment: experiment, cell, data set.

    They depend on the place alone, not on what was computed before or by which process.

    Examples
    --------
    >>> bool(generator(0, 2, 1).random() == generator(0, 2, 1).random() != generator(0, 2, 2).random())
    True
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=path))


def pieces(count: int, size: int) -> Iterator[range]:
    """0 .. count - 1 in pieces of at most `size`.

    Examples
    --------
    >>> list(pieces(5, 2))
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    for start in range(0, count, size):
        yield range(start, min(start + size, count))
