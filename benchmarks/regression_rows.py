"""A row of the regression table, and how far a value may move."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

EXACT = 1e-12
"""Rounding, and nothing else."""

BY_DISCREPANCY = 1e-9
"""Rows behind a maximum mean discrepancy, a root of differences: nearly equal predictions keep 9 digits."""

UNIT_TERMS = 0.01
"""Scale of what is left of terms of order one.

SKCE, its standard error and the witness are averages of four terms that are rounded to about 1e-16 each and
cancel. 1e-12 of this scale is 1e-14: a few dozen of such roundings, and still 1e-12 of the value for all that
are larger than 0.01, as most are.
"""


@dataclass(frozen=True)
class Row:
    """A named number: it may move by `tolerance` times the larger of its size and `scale`."""

    name: str
    value: float
    tolerance: float = EXACT
    scale: float = 0.0

    def deviation(self, value: float) -> float:
        """How far another value is away, relative to the size of this one; not a number is infinitely far."""
        if value == self.value:
            return 0.0
        size = max(abs(self.value), self.scale)
        found = abs(value - self.value) / size if size > 0.0 else math.inf
        return found if math.isfinite(found) else math.inf


Rows = Iterator[Row]
SectionFunction = Callable[[], Rows]


def row(name: str, value: Any, tolerance: float = EXACT, scale: float = 0.0) -> Row:
    return Row(name, float(value), tolerance, scale)


def tolerance_of(kernel: Any) -> float:
    """What a kernel on pairs allows: less precision where a maximum mean discrepancy is in it."""
    return BY_DISCREPANCY if "MaximumMeanDiscrepancy" in repr(kernel) else EXACT


def error_rows(name: str, estimate: Any, tolerance: float | None = None) -> Rows:
    """Value and standard error of an estimate of SKCE."""
    allowed = tolerance_of(estimate.kernel) if tolerance is None else tolerance
    yield row(name, estimate, allowed, UNIT_TERMS)
    if estimate.standard_error is not None:
        yield row(f"{name}, standard error", estimate.standard_error, allowed, UNIT_TERMS)


def score_rows(name: str, estimate: Any) -> Rows:
    """Mean and standard error of a score."""
    yield row(name, estimate)
    yield row(f"{name}, standard error", estimate.standard_error)


def checksum(values: Any) -> float:
    """Sum with unequal weights, between 1 and 2: entries that change places are noticed."""
    flat = np.asarray(values, dtype=float).ravel()
    return float(flat @ (1.0 + np.arange(len(flat)) / len(flat)))
