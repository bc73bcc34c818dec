"""The standard deviation that a sum over all pairs would have if predictions were calibrated.

Errors of sums are measured in it. Observed h is no measure of it: predictions that are too sure make h large,
predictions that are not sure enough make it small, and an error would look small or large beside it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal.problem.problem import Problem

_CASES = 512  # whose targets are drawn; each of one half meets each of the other


class NullDeviation(NamedTuple):
    """A standard deviation of the sum of h over all pairs i < j.

    Attributes
    ----------
    value
        The standard deviation.
    drawn
        Whether it is that of calibrated predictions, from targets that were drawn; otherwise these cannot be
        drawn, and observed h stands in for theirs.
    """

    value: float
    drawn: bool

    def describe(self) -> dict[str, str]:
        """For the provenance of a result, where it is not what it should be."""
        return {} if self.drawn else {"error_unit": "observed h: targets cannot be drawn from predictions"}


def null_deviation(problem: Problem) -> NullDeviation:
    """From the pairs of some cases whose targets are drawn from the predictions, with a fixed seed.

    Of calibrated predictions h has mean zero and pairs are uncorrelated, so that the variance of the sum is
    the sum of the means of h^2. The first answer is remembered with the problem.

    Examples
    --------
    >>> import wellcal as wc
    >>> from wellcal.problem.problem import prepare
    >>> pred = wc.Normal(np.zeros(100), np.ones(100))
    >>> kernel = wc.default_kernel(pred)
    >>> far, near = (prepare(np.full(100, y), pred, kernel) for y in (9.0, 0.0))
    >>> null_deviation(far) == null_deviation(near)
    True
    """
    if "null deviation" not in problem.kept:
        n = problem.n
        some = np.random.default_rng(0).choice(n, min(n, _CASES), replace=False)
        drawn = None if problem.redrawn is None else problem.redrawn(some)
        square = _mean_square(problem, some) if drawn is None else _mean_square(drawn, np.arange(drawn.n))
        value = math.sqrt(0.5 * n * (n - 1) * square)
        problem.kept["null deviation"] = NullDeviation(value, drawn is not None)
    return problem.kept["null deviation"]


def _mean_square(problem: Problem, cases: NDArray) -> float:
    """Mean of h^2 over the pairs of one half of the cases with the other."""
    first, second = np.array_split(cases, 2)
    total = 0.0
    for some in in_chunks(len(first), len(second) * problem.cost.entries):
        with np.errstate(over="ignore", under="ignore"):
            h = np.asarray(problem.values(first[some], second), dtype=np.float64)
        total += float(np.vdot(h, h))
    return total / max(1, len(first) * len(second))
