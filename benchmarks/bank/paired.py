"""Two tests on the same data sets: how much more one of them rejects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

Array = Any


@dataclass(frozen=True)
class Loss:
    """Share of data sets on which a rival rejects and ours does not, minus the opposite.

    Attributes
    ----------
    value, standard_error
        The difference of two powers, and its standard error from the data sets on which the tests disagree.
    """

    value: float
    standard_error: float

    @classmethod
    def of(cls, ours: Array, rival: Array) -> Loss:
        """From rejections, as booleans, on the same data sets.

        >>> Loss.of(np.array([True, False, False, True]), np.array([True, True, True, False])).value
        0.25
        """
        differences = np.asarray(rival, dtype=np.float64) - np.asarray(ours, dtype=np.float64)
        return cls(float(np.mean(differences)), float(np.std(differences) / np.sqrt(len(differences))))

    def lower(self, confidence: float) -> float:
        """A bound that the loss is above with this confidence."""
        return self.value - float(stats.norm.ppf(confidence)) * self.standard_error


def standard_error(power: float, sets: int) -> float:
    """Binomial standard error of a power."""
    return float(np.sqrt(power * (1.0 - power) / sets))
