"""What each case adds to the squared kernel calibration error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.engines import Engine
from wellcal.measures._skce import estimate_from_sums, estimate_from_weighted_sums, weighted_error
from wellcal.measures.estimate import Estimate
from wellcal.problem.problem import Problem
from wellcal.problem.weights import WeightSums, weighted_problem


@dataclass(frozen=True)
class Contributions:
    """The unbiased estimate, and the sums over pairs that it is made of, case by case.

    Attributes
    ----------
    estimate
        The unbiased estimate.
    rows
        ``w_i sum_{j != i} w_j h_ij`` for each case, ``(n,)``.
    weights
        Weights of the cases, ``(n,)``, relative to the largest.
    """

    estimate: Estimate
    rows: NDArray
    weights: NDArray

    @property
    def scores(self) -> NDArray:
        """Mean of h over the partners of each case, ``(n,)``; zero for cases that do not count."""
        others = self.weights * WeightSums.of(self.weights).others
        return np.divide(self.rows, others, out=np.zeros(len(self.rows)), where=self.weights > 0)

    @property
    def parts(self) -> NDArray:
        """Parts of the estimate, ``(n,)``, which add up to it."""
        return self.rows / (2.0 * float(WeightSums.of(self.weights).pairs))

    def minus(self, other: Contributions, name: str, provenance: dict[str, Any]) -> Estimate:
        """Difference of two estimates from the same cases; what their errors have in common cancels."""
        value = float(self.estimate) - float(other.estimate)
        error = weighted_error(self.rows - other.rows, self.weights, value)
        kernel, n = self.estimate.kernel, len(self.rows)
        return Estimate(value, error, name, "unbiased", n, kernel, provenance)


def contributions(problem: Problem, engine: Engine, weights: NDArray | None = None) -> Contributions:
    """Estimate and contributions of a problem that was prepared in NumPy.

    Parameters
    ----------
    problem, engine
        The prepared problem, and who visits its pairs.
    weights
        As `check_weights` returns them; None counts all cases alike.

    Examples
    --------
    >>> import wellcal as wc
    >>> from wellcal.engines import choose_engine
    >>> from wellcal.problem.problem import prepare
    >>> problem = prepare(np.array([0.5, 1.0, 3.0]), wc.Normal(np.zeros(3), np.ones(3)))
    >>> found = contributions(problem, choose_engine("auto", problem))
    >>> bool(abs(found.parts.sum() - float(found.estimate)) < 1e-15)
    True
    """
    if weights is None:
        sums = engine.triangle(problem)
        estimate = estimate_from_sums(problem, engine, sums)
        return Contributions(estimate, to_numpy(sums.rows), np.ones(problem.n))
    weighted = weighted_problem(problem, weights)
    sums = engine.triangle(weighted)
    estimate = estimate_from_weighted_sums(weighted, engine, sums, weights)
    return Contributions(estimate, to_numpy(sums.rows), weights)
