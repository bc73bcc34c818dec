"""What tests share: a prepared case, the form of a method, and what a method finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.engines import Engine
from wellcal.hypotests.progress import Progress
from wellcal.measures._skce import estimate_blocks, estimate_unbiased
from wellcal.measures.estimate import Estimate
from wellcal.predictions import Predictions
from wellcal.problem.problem import Problem, prepare_checked

TRIANGLE_BUDGET = 4e9
"""Elementary evaluations up to which the estimate beside a p-value is taken over all pairs."""


@dataclass(frozen=True)
class Setup:
    """What a method works on, all of it in NumPy.

    Attributes
    ----------
    targets
        Observed targets as `check_targets` of the predictions returned them.
    predictions
        The predictions. For methods that exchange a target with draws, the pooled draws as atoms.
    given
        The predictions as they were given.
    problem
        Both prepared under the kernel.
    pooled
        Number of draws S where target and draws were pooled, else None.
    groups
        Number of the cluster of each case, or None.
    """

    targets: NDArray
    predictions: Predictions
    given: Predictions
    problem: Problem
    engine: Engine
    rng: np.random.Generator
    n_resamples: int
    expectations: Any = "auto"
    pooled: int | None = None
    groups: NDArray | None = None
    progress: Progress = field(default_factory=Progress)

    @property
    def n(self) -> int:
        """Number of cases."""
        return self.problem.n

    @property
    def factor(self) -> float:
        """What h of a pooled problem is to be multiplied by: P - d(y) is (S + 1) / S of pool - d(y)."""
        return 1.0 if self.pooled is None else (1.0 + 1.0 / self.pooled) ** 2

    @cached_property
    def estimate(self) -> Estimate:
        """Unbiased SKCE over all pairs, or over blocks where these are too many."""
        n = self.n
        if 0.5 * n * (n - 1.0) * self.problem.width <= TRIANGLE_BUDGET:
            found = estimate_unbiased(self.problem, self.engine)
        else:
            found = estimate_blocks(self.problem, self.engine, None, None)
        return self.scaled(found)

    def scaled(self, estimate: Estimate) -> Estimate:
        """An estimate from a pooled problem in the scale of the predictions as given."""
        if self.pooled is None:
            return estimate
        error = estimate.standard_error
        return Estimate(
            self.factor * estimate.value,
            None if error is None else self.factor * error,
            estimate.name,
            estimate.estimator,
            estimate.n_samples,
            estimate.kernel,
            {**estimate.provenance, "pooled": "kernel on predictions sees targets pooled with draws"},
        )

    @cached_property
    def diagonal(self) -> NDArray:
        """h_ii, ``(n,)``, of the predictions as they were given."""
        problem = self.problem
        if self.pooled is not None:
            problem = prepare_checked(
                self.targets, self.given, problem.kernel, expectations=self.expectations
            )
        return np.asarray(to_numpy(problem.diagonal()))


@dataclass(frozen=True)
class Outcome:
    """What a method found.

    Attributes
    ----------
    statistic, pvalue
        Value of the statistic, and its p-value.
    label
        What the statistic is, such as "n SKCE_u".
    estimate
        Calibration error beside it; None takes the setup's.
    null
        Values of the statistic under calibration, where they were drawn.
    provenance
        Choices that were made.
    """

    statistic: float
    pvalue: float
    label: str
    estimate: Estimate | None = None
    null: NDArray | None = None
    provenance: dict[str, Any] = field(default_factory=lambda: {})


class Method(Protocol):
    """A way to a p-value, with its options as fields.

    Attributes
    ----------
    name
        What `calibration_test` calls it.
    exchanges_draws
        Whether predictions that are draws are pooled with their target.
    resamples
        Whether `n_resamples` matters.
    clusters
        Whether dependent cases within `groups` are honoured.
    fewest
        Cases needed at least.
    """

    name: ClassVar[str]
    exchanges_draws: ClassVar[bool]
    resamples: ClassVar[bool]
    clusters: ClassVar[bool]
    fewest: ClassVar[int]

    def run(self, setup: Setup) -> Outcome:
        """The p-value of a prepared case."""
        ...


def monte_carlo_pvalue(statistic: float, null: NDArray) -> float:
    """``(1 + #{null >= statistic}) / (1 + R)``: never zero, and ties count against the model.

    Values that differ by rounding only are ties.

    Examples
    --------
    >>> monte_carlo_pvalue(2.0, np.array([1.0, 2.0, 3.0]))
    0.75
    """
    check_numbers(np.append(null, statistic))
    exceed = int(np.count_nonzero(null >= statistic - tie_width(statistic, null)))
    return (1.0 + exceed) / (1.0 + len(null))


def check_numbers(values: NDArray) -> None:
    """An error where a statistic is nan, which would compare as neither large nor small."""
    if np.any(np.isnan(values)):
        raise ValueError(
            "the statistic is nan for some targets: h is not finite under this kernel, or a function of "
            "yours returned nan; check what they return"
        )


def tie_width(*values: Any) -> float:
    """Differences up to this are rounding: 1e-10 of the largest finite value."""
    together = np.abs(np.concatenate([np.ravel(v) for v in values]))
    finite = together[np.isfinite(together)]
    return 1e-10 * float(finite.max(initial=0.0))
