"""Rows of a sum over all pairs that are compared with exact ones: how far it is likely to be off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.progress import reporter
from wellcal.problem.deviations import NullDeviation, null_deviation
from wellcal.problem.problem import Problem
from wellcal.problem.telling_cases import uneven_chances

_CONTROLS = 128  # rows that are compared with exact ones


@dataclass(frozen=True)
class ExactRows:
    """Some cases, drawn at random, and their sums over all others, as far as these are added up.

    Attributes
    ----------
    cases, sums
        Positions, ascending, and sums.
    often
        For how many cases each stands, over their mean: less than one for those that were likelier.
    """

    cases: NDArray
    sums: NDArray
    often: NDArray

    @classmethod
    def of(cls, n: int, chances: NDArray | None = None) -> ExactRows:
        """Rows of zeros: of different cases, or of any that are drawn by their `chances`."""
        rng = np.random.default_rng(0)
        if chances is None or n <= _CONTROLS:
            cases = np.sort(rng.choice(n, min(n, _CONTROLS), replace=False))
            return cls(cases, np.zeros(len(cases)), np.ones(len(cases)))
        cases = np.sort(rng.choice(n, _CONTROLS, p=chances))
        return cls(cases, np.zeros(_CONTROLS), 1.0 / (n * chances[cases]))

    def add(self, problem: Problem, members: NDArray | None = None) -> None:
        """Add the sums of a problem: of all cases, or of some `members`, by their ascending positions."""
        places, within = np.arange(len(self.cases)), self.cases
        if members is not None:
            within = np.minimum(np.searchsorted(members, self.cases), len(members) - 1)
            places = np.flatnonzero(members[within] == self.cases)
            within = within[places]
        told = reporter()
        told("control rows", 0, problem.n)
        for some in in_chunks(problem.n, max(1, len(within)), within=budget.cache):
            with np.errstate(over="ignore", under="ignore"):
                h = np.asarray(problem.values(within, some))
            inside = np.flatnonzero((within >= some.start) & (within < some.stop))
            h[inside, within[inside] - some.start] = 0.0
            self.sums[places] += h.sum(axis=1)
            told("control rows", some.stop, problem.n)


@dataclass(frozen=True)
class Controls:
    """Some cases, their exact sums, and what errors of the sum over all pairs are measured in.

    Attributes
    ----------
    n
        How many cases there are in all.
    cases, rows, often
        Positions, sums over all other cases, and for how many cases each stands, over their mean.
    unit
        Standard deviation of the sum for calibrated predictions.
    """

    n: int
    cases: NDArray
    rows: NDArray
    often: NDArray
    unit: NullDeviation

    @classmethod
    def of(cls, exact: Problem, chances: NDArray | None = None) -> Controls:
        """Those of a problem whose values are quick to have; `chances` tell where errors may be."""
        rows = ExactRows.of(exact.n, uneven_chances(exact) if chances is None else chances)
        rows.add(exact)
        return cls.from_rows(rows, exact)

    @classmethod
    def from_rows(cls, rows: ExactRows, problem: Problem) -> Controls:
        """Those whose sums were added up elsewhere."""
        return cls(problem.n, rows.cases, rows.sums, rows.often, null_deviation(problem))

    @property
    def deviation(self) -> float:
        """Standard deviation of the sum, from the spread of its rows where that is more than the null's.

        With v the variance of rows, that of the sum is n v / 2 for calibrated predictions; for others it goes
        towards n v.
        """
        variance = float(np.mean(self.often * (self.rows - np.mean(self.often * self.rows)) ** 2))
        return max(self.unit.value, math.sqrt(0.5 * self.n * variance))

    def error(self, rows: NDArray) -> float:
        """How far the sum over all pairs is likely to be off.

        The mean difference of the control rows, and its standard error.
        """
        off = self.often * (rows[self.cases] - self.rows)
        size = len(off)
        mean = float(off.mean())
        spread = float(off.std(ddof=1)) / math.sqrt(size) if size < self.n else 0.0
        return 0.5 * self.n * math.hypot(mean, spread)

    def describe(self, error: float) -> dict[str, Any]:
        """For the provenance of a result."""
        out: dict[str, Any] = {
            "control_rows": len(self.cases),
            "control_error": error / max(self.unit.value, 1e-300),
            **self.unit.describe(),
        }
        # Rows of few controls spread by chance, and so do pairs of few drawn targets.
        if self.deviation > 1.5 * self.unit.value:
            out["control_error_observed"] = error / self.deviation
        return out
