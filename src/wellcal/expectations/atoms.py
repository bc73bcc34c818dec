"""Atoms: weighted sums of points in place of predictions, and the rules by which families become some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wellcal._arrays.equality import ByValue
from wellcal._arrays.namespaces import Array, namespace
from wellcal._arrays.registry import Rules
from wellcal.predictions.base import keeps_distribution

LOWERINGS: Rules[Callable[[Any, int, int], Atoms]] = Rules("a lowering", serves=keeps_distribution)
"""How families become atoms, ``f(predictions, nodes, points)``: `nodes` for scalars, `points` for vectors."""


@dataclass(frozen=True)
class Atoms(ByValue):
    """Weighted atoms in place of predictions.

    Attributes
    ----------
    values
        S atoms of each prediction, ``(n, S)`` or ``(n, S, d)``.
    weights
        Their weights ``(n, S)``; each row sums to one.
    scheme
        A few words on how they were chosen, for the provenance of results.
    nested
        Whether every second atom makes a coarser rule; otherwise the first half of them does. The error is
        estimated from the coarser rule.
    exact
        Whether the atoms are the whole distribution, so that there is no error.
    merged
        Where, ``(n,)``, weights are masses of cells, which a coarser rule merges.
    rougher
        Makes the coarser rule, where it is no part of this one.

    Examples
    --------
    >>> import numpy as np
    >>> coin = Atoms(np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]]), "both sides", exact=True)
    >>> float((coin.values * coin.weights).sum())
    0.5
    """

    values: Array
    weights: Array
    scheme: str
    nested: bool = False
    exact: bool = False
    merged: Array | None = None
    rougher: Callable[[], Atoms] | None = field(default=None, repr=False, compare=False)

    def coarser(self) -> Atoms:
        """Half of the atoms, as the rule that an error estimate compares with.

        Every second node of a trapezoidal rule; the first half of a Sobol' sequence or of draws.
        """
        if self.rougher is not None:
            return self.rougher()
        xp = namespace(self.weights)
        half = slice(1, None, 2) if self.nested else slice(None, self.weights.shape[1] // 2)
        weights = self.weights[:, half]
        weights, values = weights / xp.sum(weights, axis=1, keepdims=True), self.values[:, half, ...]
        if self.merged is not None:
            pair = slice(0, None, 2)
            weights = xp.where(self.merged[:, None], self.weights[:, pair] + self.weights[:, half], weights)
            middle = 0.5 * (self.values[:, pair] + self.values[:, half])
            values = xp.where(self.merged[:, None], middle, values)
        return Atoms(values, weights, self.scheme, self.nested)
