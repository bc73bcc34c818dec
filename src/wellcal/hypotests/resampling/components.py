"""Statistics that enter an exact min-p test: each gives a p-value to every set of targets.

A component is called with blocks of sets of targets and returns what it needs to remember of them; once
all sets have been seen it turns that into p-values, treating all sets alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.method import Outcome
from wellcal.hypotests.pvalues import Ranks, combined, ranked, smallest_pvalue
from wellcal.hypotests.resampling.moments import centre_pvalues, moments_of, surprise_pvalues
from wellcal.hypotests.resampling.statistics import skce_statistic
from wellcal.hypotests.resampling.targets import target_sets
from wellcal.hypotests.setup import Setup
from wellcal.problem.locations import Locations, as_locations

LOCATIONS = 40
"""Locations that are drawn where none are given."""

MOMENT_WEIGHTS = {"centre": 1.0, "surprise": 1.0}
"""Weights of the parts that need no kernel."""

ETAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Strengths of regularisation, relative to the largest eigenvalue."""


@dataclass(frozen=True)
class Component:
    """One statistic of a min-p test.

    Attributes
    ----------
    name
        What a result calls it.
    weight
        p-values are divided by it before the smallest is taken.
    remember
        From a block of sets of targets ``(r, n, ...)`` to an array ``(r, ...)``.
    pvalues
        From what is remembered of all sets to their p-values.
    """

    name: str
    weight: float
    remember: Callable[[NDArray], NDArray]
    pvalues: Callable[[NDArray], Ranks]


class Evaluated(NamedTuple):
    """Name, weight and p-values of a component."""

    name: str
    weight: float
    ranks: Ranks


def evaluate_components(setup: Setup, components: Sequence[Component]) -> list[Evaluated]:
    """p-values of all sets of targets for each component, on the same resamples."""
    kept: list[list[NDArray]] = [[] for _ in components]
    for targets in target_sets(setup):
        for memory, component in zip(kept, components, strict=True):
            memory.append(component.remember(targets))
    return [
        Evaluated(component.name, component.weight, component.pvalues(np.concatenate(memory)))
        for memory, component in zip(kept, components, strict=True)
    ]


def smallest_outcome(setup: Setup, parts: Sequence[Evaluated]) -> Outcome:
    """The smallest p-value of several statistics, and its own exact p-value."""
    least = smallest_pvalue([(part.weight, part.ranks.pvalues) for part in parts])
    together = combined([(part.weight, part.ranks) for part in parts])
    provenance: dict[str, Any] = {
        "n_resamples": setup.n_resamples,
        "pvalues": {part.name: float(part.ranks.pvalues[0]) for part in parts},
        "pvalue_floors": {part.name: part.ranks.floor for part in parts},
        "weights": {part.name: part.weight for part in parts},
    }
    return Outcome(
        statistic=float(least[0]),
        pvalue=float(together.pvalues[0]),
        label="smallest weighted p-value",
        null=least[1:],
        provenance=provenance,
        floor=together.floor,
    )


def skce_component(setup: Setup, weight: float = 1.0) -> Component:
    """The SKCE."""
    return Component("SKCE", weight, skce_statistic(setup), ranked)


def location_component(setup: Setup, locations: Locations, weight: float = 1.0) -> Component:
    """Deviations at locations, regularised by their own covariance."""
    return Component("locations", weight, setup.at(locations).sums, regularised_pvalues)


def choose_locations(setup: Setup, given: object) -> Locations:
    """Locations as a user gave them, or as many as were asked for, drawn with the generator of the setup."""
    return as_locations(LOCATIONS if given is None else given, setup.predictions, setup.rng)


def moment_components(setup: Setup) -> list[Component]:
    """Centre and surprise, where targets have them."""
    moments = moments_of(setup.predictions)
    if moments is None:
        return []
    return [
        Component("centre", MOMENT_WEIGHTS["centre"], moments.residuals, centre_pvalues),
        Component("surprise", MOMENT_WEIGHTS["surprise"], moments.surprise, surprise_pvalues),
    ]


def regularised_pvalues(z: NDArray, etas: Sequence[float] = ETAS) -> Ranks:
    """p-values of sets from deviations ``(R + 1, J)`` at J locations.

    ``t_r = z_r' (C + eta lmax I)^-1 z_r`` with C the covariance of the deviations over all sets and lmax
    its largest eigenvalue: small eta see fine deviations, large eta and the plain ``|z_r|^2`` coarse ones.
    The smallest p-value over eta is taken.
    """
    z = z - z.mean(axis=0)
    values, vectors = linalg.eigh(z.T @ z / len(z))
    values = np.maximum(values, 0.0)
    largest = values[-1]
    if largest == 0.0:
        return Ranks(np.ones(len(z)), 1.0 / len(z))
    squares = (z @ vectors) ** 2
    parts = [(1.0, ranked(squares @ (1.0 / (values + eta * largest)))) for eta in etas]
    return combined([*parts, (1.0, ranked(squares.sum(axis=1)))])
