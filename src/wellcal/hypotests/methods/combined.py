"""Exact tests that take the smallest p-value of several statistics on the same resamples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.base import Outcome, Setup
from wellcal.hypotests.resampling.components import (
    evaluate_components,
    location_component,
    moment_components,
    skce_component,
)
from wellcal.hypotests.resampling.kernel_families import kernel_family
from wellcal.hypotests.resampling.monte_carlo import rank_pvalues, smallest_pvalue
from wellcal.hypotests.resampling.nulls import check_resampled, target_sets
from wellcal.hypotests.resampling.resampled import ResampledSKCE, has_terms
from wellcal.kernels.base import Kernel

_PAIRS_WEIGHT = 0.5
_LOCATIONS_WEIGHT = 0.5
_LOCATIONS = 40


def smallest(setup: Setup, parts: Sequence[tuple[str, float, NDArray]]) -> Outcome:
    """Exact p-value of the smallest p-value, from names, weights and p-values of all sets of targets."""
    least = smallest_pvalue([(weight, pvalues) for _, weight, pvalues in parts])
    provenance: dict[str, Any] = {
        "n_resamples": setup.n_resamples,
        "pvalues": {name: float(pvalues[0]) for name, _, pvalues in parts},
        "weights": {name: weight for name, weight, _ in parts},
    }
    return Outcome(
        statistic=float(least[0]),
        pvalue=float(rank_pvalues(-least)[0]),
        label="smallest weighted p-value",
        null=least[1:],
        provenance=provenance,
    )


@dataclass(frozen=True)
class Aggregated:
    """Exact test over a family of kernels: the smallest of their p-values, on the same resamples.

    The p-value of the smallest p-value is found by treating each set of resampled targets in turn as if
    it were the observed one: no correction for the number of kernels is needed, and none is conservative.

    Parameters
    ----------
    kernels
        Kernels on pairs; None takes the kernel of the test with its length scales halved, doubled and so
        on.
    """

    kernels: Sequence[Kernel] | None = None

    name: ClassVar[str] = "aggregated"
    exchanges_draws: ClassVar[bool] = True
    resamples: ClassVar[bool] = True
    clusters: ClassVar[bool] = False
    fewest: ClassVar[int] = 2

    def run(self, setup: Setup) -> Outcome:
        """The exact p-value of the smallest p-value over kernels."""
        check_resampled(setup.predictions)
        kernels = kernel_family(setup.problem.kernel) if self.kernels is None else tuple(self.kernels)
        if not kernels:
            raise ValueError("kernels is empty: at least one kernel is needed")
        _need_terms(kernels)
        statistics = ResampledSKCE(setup, kernels)
        values = np.concatenate([statistics(targets) for targets in target_sets(setup)])
        return smallest(
            setup, [(repr(k), 1.0, rank_pvalues(column)) for k, column in zip(kernels, values.T, strict=True)]
        )


@dataclass(frozen=True)
class Regularised:
    """Exact test with deviations at locations, each direction in units of its own spread.

    The deviations of the calibration mean embedding at J locations are weighed by a regularised inverse
    of their covariance over all sets of targets, at several strengths, which sees fine deviations such as
    over-confidence that the plain SKCE hardly notices. Linear in the number of cases.

    Parameters
    ----------
    locations
        Number of locations drawn from the predictions, or ``(predictions, targets)``.
    """

    locations: Any = _LOCATIONS

    name: ClassVar[str] = "regularised"
    exchanges_draws: ClassVar[bool] = True
    resamples: ClassVar[bool] = True
    clusters: ClassVar[bool] = False
    fewest: ClassVar[int] = 2

    def run(self, setup: Setup) -> Outcome:
        """The exact p-value of the smallest p-value over strengths of regularisation."""
        check_resampled(setup.predictions)
        _need_terms([setup.problem.kernel])
        locations = _LOCATIONS if self.locations is None else self.locations
        found = smallest(setup, evaluate_components(setup, [location_component(setup, locations)]))
        count = locations if isinstance(locations, (int, np.integer)) else len(locations[0])
        found.provenance["locations"] = int(count)
        return found


@dataclass(frozen=True)
class Omnibus:
    """Exact test that looks for all kinds of miscalibration at once.

    The smallest p-value, on the same resamples, of

    - the SKCE (weight 1/2): any dependence of the error on the prediction,
    - regularised deviations at locations (weight 1/2): fine deviations,
    - centre (weight 1): targets off the centre of their predictions,
    - surprise (weight 1): targets less, or more, probable than promised.

    Parameters
    ----------
    pairs
        Whether the SKCE, the only part whose cost grows with the square of the number of cases, takes
        part.
    locations
        Number of locations drawn from the predictions, or ``(predictions, targets)``.

    Notes
    -----
    docs/tests.md tells what was tried for the choice of statistics and weights, and what each was worth.
    """

    pairs: bool = True
    locations: Any = _LOCATIONS

    name: ClassVar[str] = "omnibus"
    exchanges_draws: ClassVar[bool] = True
    resamples: ClassVar[bool] = True
    clusters: ClassVar[bool] = False
    fewest: ClassVar[int] = 2

    def run(self, setup: Setup) -> Outcome:
        """The exact p-value of the smallest weighted p-value."""
        check_resampled(setup.predictions)
        locations = _LOCATIONS if self.locations is None else self.locations
        components = moment_components(setup)
        if has_terms(setup.problem.kernel):
            components.append(location_component(setup, locations, _LOCATIONS_WEIGHT))
        if self.pairs or not components:
            components.append(skce_component(setup, weight=_PAIRS_WEIGHT))
        return smallest(setup, evaluate_components(setup, components))


def _need_terms(kernels: Sequence[Kernel]) -> None:
    for kernel in kernels:
        if not has_terms(kernel):
            raise TypeError(
                f"{kernel!r} does not separate predictions from targets, which this method needs; "
                'take a sum of products such as ExpDistance(metric) @ Gaussian(), or method="exact"'
            )
