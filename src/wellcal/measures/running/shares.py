"""Shares of cases: inside of intervals, and below levels of their predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.measures.quantiles import IntervalCoverage, QuantileCalibration, interval_coverage, pit
from wellcal.measures.quantiles.coverage import coverage_from
from wellcal.measures.running.accumulator import Accumulator, refuse_weights
from wellcal.predictions import Quantiles

PIT_LEVELS = np.linspace(0.0, 1.0, 101)


@dataclass(frozen=True)
class RunningCoverage(Accumulator):
    """Coverage of central intervals, as :func:`wellcal.interval_coverage` has it.

    Parameters
    ----------
    levels
        Of the intervals; None takes what the first predictions suggest.
    """

    levels: Sequence[float] | None = None
    n: int = 0
    sums: NDArray = field(default_factory=lambda: np.zeros((3, 0)))
    note: str | None = None

    def updated(self, y: Any, pred: Any, weights: NDArray | None) -> Self:
        refuse_weights(weights, "coverage", "its limits are those of hits among cases that count alike")
        found = interval_coverage(y, pred, levels=self.levels)
        n = found.n_samples
        sums = n * np.array([found.coverage, found.expected, found.widths])
        sums[0] = np.rint(sums[0])
        note = found.provenance.get("levels") if self.n == 0 else self.note
        new = replace(self, levels=tuple(map(float, found.levels)), n=n, sums=sums, note=note)
        return new if self.n == 0 else self.merged(new)

    def merged(self, other: Self) -> Self:
        if self.n == 0 or other.n == 0:
            return other if self.n == 0 else self
        if self.levels != other.levels:
            raise ValueError(f"levels of coverage must be the same, found {self.levels} and {other.levels}")
        return replace(self, n=self.n + other.n, sums=self.sums + other.sums)

    def result(self) -> IntervalCoverage:
        coverage, expected, widths = self.sums / self.n
        return coverage_from(np.asarray(self.levels), coverage, expected, widths, self.n, self.note)


@dataclass(frozen=True)
class RunningPIT(Accumulator):
    """Count the values of :func:`wellcal.pit` below 0, 0.01 .. 1, or below the levels of `Quantiles`.

    Parameters
    ----------
    generator
        Which spreads the values of discrete predictions. It is that of all updates: in turn they draw what a
        single call draws.
    """

    generator: np.random.Generator
    n: int = 0
    levels: NDArray = field(default_factory=lambda: PIT_LEVELS)
    below: NDArray | int = 0

    def updated(self, y: Any, pred: Any, weights: NDArray | None) -> Self:
        refuse_weights(weights, "PIT values", "their band is that of cases that count alike")
        values = np.sort(np.asarray(to_numpy(pit(y, pred, rng=self.generator)), dtype=np.float64))
        levels = np.asarray(pred.levels) if isinstance(pred, Quantiles) else PIT_LEVELS
        below = np.searchsorted(values, levels, side="right")
        return self.merged(replace(self, n=len(values), levels=levels, below=below))

    def merged(self, other: Self) -> Self:
        if self.n == 0 or other.n == 0:
            return other if self.n == 0 else self
        if not np.array_equal(self.levels, other.levels):
            raise ValueError(f"levels of pred must be the same, found {self.levels} and {other.levels}")
        return replace(self, n=self.n + other.n, below=self.below + other.below)

    def result(self) -> QuantileCalibration:
        frequencies = self.below / self.n
        largest = float(np.max(np.abs(frequencies - self.levels)))
        return QuantileCalibration(
            largest,
            None,
            "PIT",
            "largest deviation at levels",
            self.n,
            levels=self.levels,
            frequencies=frequencies,
        )
