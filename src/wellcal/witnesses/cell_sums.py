"""Sums of deviations over the cells of a grid: for many sets of targets at a time, or few of many cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from wellcal._arrays.namespaces import NDArray

FEW_SETS = 8
"""Sets of targets up to which they are summed one by one: of very many cases there is room for few."""


@dataclass(frozen=True, eq=False)
class Members:
    """Which cases are in the cells of a grid.

    Attributes
    ----------
    weights
        Those of cases in cells, ``(n, C)``: an array, or a sparse one with one entry for each case.
    alike
        Whether all of them are one.
    """

    weights: Any
    alike: bool

    @property
    def size(self) -> int:
        """Number of cells."""
        return int(self.weights.shape[1])

    @cached_property
    def cell(self) -> NDArray | None:
        """The cell of each case, ``(n,)``; None where cells may overlap, or are few."""
        if isinstance(self.weights, np.ndarray):
            return None
        return np.asarray(self.weights.indices, dtype=np.intp)


Sums: TypeAlias = Callable[[Members], NDArray]
"""Gives sums ``(r, C)`` over cells for r sets of targets."""


def many_sets(deviation: NDArray) -> Sums:
    """Of deviations ``(r, n)``.

    Sparse products take them case by case, and are given them so: once, and not for each grid.
    """
    by_case: list[NDArray] = []

    def sums(members: Members) -> NDArray:
        if members.cell is None:
            return np.asarray(deviation @ members.weights)
        if not by_case:
            by_case.append(np.ascontiguousarray(deviation.T))
        return np.asarray(members.weights.T @ by_case[0]).T

    return sums


def few_sets(deviation: NDArray) -> Sums:
    """The same, set by set."""

    def sums(members: Members) -> NDArray:
        cell = members.cell
        if cell is None:
            return np.asarray(deviation @ members.weights)
        rows = deviation if members.alike else deviation * members.weights.data
        return np.stack([np.bincount(cell, row, members.size) for row in rows])

    return sums


@dataclass(frozen=True)
class Events:
    """Where something happens in sets of targets, few of them and of very many cases that all count alike.

    Attributes
    ----------
    cases
        Cases in which it does, for each set.
    probability
        That of each case, ``(n,)``.
    known
        Numbers that are expected of this event, the same for all sets: in cells, by the identity of their
        members, and in all, by that of the probabilities.
    """

    cases: list[NDArray]
    probability: NDArray
    known: dict[int, NDArray]

    @property
    def total(self) -> NDArray:
        """How often it happens, less how often that is expected, ``(r,)``."""
        key = id(self.probability)
        if key not in self.known:
            self.known[key] = np.sum(self.probability, keepdims=True)
        return np.array([len(cases) for cases in self.cases]) - self.known[key]

    def sums(self, members: Members) -> NDArray:
        """The same in each cell, ``(r, C)``."""
        cell = members.cell
        if id(members) not in self.known:
            self.known[id(members)] = np.asarray(self.probability @ members.weights)
        found = [
            np.sum(members.weights[cases], axis=0)
            if cell is None
            else np.bincount(cell[cases], minlength=members.size)
            for cases in self.cases
        ]
        return np.stack(found) - self.known[id(members)]
