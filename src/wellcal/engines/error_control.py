"""Error control of sums over all pairs: some of their rows are compared with exact ones.

The error is reported in the standard deviation that the sum would have if predictions were calibrated, or, if
that is larger, in its own. One criterion decides whether a sum is used (`TOLERANCE`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.memo import Memo
from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal._arrays.progress import reporter
from wellcal.problem.problem import Problem

TOLERANCE = 1e-2
"""Largest error: it moves a p-value of .05 by .001."""

_CASES = 512  # whose targets are drawn; each of one half meets each of the other
_ROWS = 64  # that are compared


class NullScale(NamedTuple):
    """Standard deviation of the sum of h over all pairs i < j.

    Attributes
    ----------
    value
        The standard deviation.
    drawn
        True if it is that of calibrated predictions, whose targets were drawn; else it is that of observed h.
    """

    value: float
    drawn: bool


def null_scale(problem: Problem) -> NullScale:
    """Estimate the null standard deviation from pairs of some cases with targets drawn by a fixed seed.

    Of calibrated predictions h has mean zero and pairs are uncorrelated, so that the variance of the sum is
    the sum of the means of h^2. Observed h is no measure of it: predictions that are too sure make h large.

    Examples
    --------
    >>> import wellcal as wc
    >>> from wellcal.problem.problem import prepare
    >>> pred = wc.Normal(np.zeros(100), np.ones(100))
    >>> kernel = wc.default_kernel(pred)
    >>> far, near = (prepare(np.full(100, y), pred, kernel) for y in (9.0, 0.0))
    >>> null_scale(far) == null_scale(near)
    True
    """

    def compute() -> NullScale:
        n = problem.n
        some = np.random.default_rng(0).choice(n, min(n, _CASES), replace=False)
        drawn = None if problem.redrawn is None else problem.redrawn(some)
        source, cases = (problem, some) if drawn is None else (drawn, np.arange(drawn.n))
        first, second = np.array_split(cases, 2)
        chunks = in_chunks(len(first), len(second) * problem.cost.entries)
        with np.errstate(over="ignore", under="ignore"):
            squares = [float(np.sum(to_numpy(source.values(first[c], second)) ** 2)) for c in chunks]
        mean = math.fsum(squares) / max(1, len(first) * len(second))
        return NullScale(math.sqrt(0.5 * n * (n - 1) * mean), drawn is not None)

    return _null_scales.get(problem, None, compute)


_null_scales: Memo[NullScale] = Memo()


def sampling_weights(*sizes: Array) -> NDArray:
    """Return probabilities of cases: as many parts as there are `sizes`, each in proportion to one of them.

    A few cases may dominate a sum, so random rows must not miss them. Sizes that are negative, or no numbers,
    count as zero.

    Examples
    --------
    >>> sampling_weights(np.ones(4), np.array([2.0, 0.0, 0.0, 0.0]))
    array([0.625, 0.125, 0.125, 0.125])
    """
    total = np.zeros(len(sizes[0]))
    for given in sizes:
        size = np.asarray(to_numpy(given), dtype=np.float64)
        size = np.where(np.isfinite(size), np.maximum(size, 0.0), 0.0)
        if (largest := float(size.max())) > 0.0:
            size = size / largest
            total += size / size.sum()
    return total / total.sum()


@dataclass(frozen=True)
class ErrorControl:
    """Exact rows of a sum over all pairs.

    Attributes
    ----------
    cases, rows
        Positions, and sums of h over all other cases.
    weight
        Importance weights, with mean one, of cases that were drawn with unequal probabilities.
    null
        The null standard deviation.
    """

    cases: NDArray
    rows: NDArray
    weight: NDArray
    null: NullScale

    @classmethod
    def of(cls, problem: Problem) -> ErrorControl:
        """Draw cases, half of them in proportion to h_ii, and sum their rows of a problem."""
        n, rng, report = problem.n, np.random.default_rng(0), reporter()
        if n <= _ROWS:
            cases, weight = np.arange(n), np.ones(n)
        else:
            chances = sampling_weights(np.ones(n), problem.own_values())
            cases = rng.choice(n, _ROWS, p=chances)
            weight = 1.0 / (n * chances[cases])
        rows = np.zeros(len(cases))
        for some in in_chunks(n, len(cases), within=budget.cache):
            with np.errstate(over="ignore", under="ignore"):
                h = np.array(to_numpy(problem.values(cases, some)))
            h[cases[:, None] == np.arange(some.start, some.stop)] = 0.0
            rows += h.sum(axis=1)
            report("control rows", some.stop, n)
        return cls(cases, rows, weight, null_scale(problem))

    def error(self, rows: NDArray, bias: float | None = None) -> ControlError:
        """Estimate how far the sum of `rows` over all pairs is off, of which `bias` is an estimate, if any.

        Errors of pairs that do not line up add to the sum as they add to rows. What lines up cannot be seen
        in a few rows of many: it is given, or it is the mean of the differences with two standard errors.
        """
        off, n = rows[self.cases] - self.rows, len(rows)
        noise = math.sqrt(0.5 * n * float(np.mean(self.weight * off**2)))
        if bias is None:
            weighted = self.weight * off
            bias = 0.5 * n * math.hypot(np.mean(weighted), 2.0 * np.std(weighted) / math.sqrt(len(off)))
        own = math.sqrt(0.5 * n * float(np.var(rows)))
        unit = "" if self.null.drawn else "observed h: targets cannot be drawn from predictions"
        if own > 1.5 * self.null.value:
            unit = "standard deviation of the sum itself, which is more than that of calibrated predictions"
        value = math.hypot(noise, bias) / max(own, self.null.value, 1e-300)
        return ControlError(value, unit, len(self.cases))


class ControlError(NamedTuple):
    """Reported error of a sum, in its null standard deviation or the unit that is named."""

    value: float
    unit: str
    rows: int

    def describe(self) -> dict[str, Any]:
        """Describe the error, for the provenance of a result."""
        unit = {"error_unit": self.unit} if self.unit else {}
        return {"control_rows": self.rows, "control_error": self.value, **unit}
