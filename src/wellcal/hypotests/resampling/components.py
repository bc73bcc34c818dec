"""Statistics that enter an exact min-p test: each gives a p-value to every set of targets.

A component is called with blocks of sets of targets and returns what it needs to remember of them; once
all sets have been seen it turns that into p-values, treating all sets alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.base import Setup
from wellcal.hypotests.methods.exact import skce_statistic
from wellcal.hypotests.resampling.moments import centre_pvalues, moments_of, surprise_pvalues
from wellcal.hypotests.resampling.monte_carlo import combined_pvalues, rank_pvalues
from wellcal.hypotests.resampling.nulls import target_sets
from wellcal.problem.location_kernel import location_kernel
from wellcal.problem.locations import as_locations

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
        From what is remembered of all sets to their p-values ``(R + 1,)``.
    """

    name: str
    weight: float
    remember: Callable[[NDArray], NDArray]
    pvalues: Callable[[NDArray], NDArray]


def evaluate_components(setup: Setup, components: Sequence[Component]) -> list[tuple[str, float, NDArray]]:
    """Name, weight and p-values of all sets for each component, on the same resamples."""
    kept: list[list[NDArray]] = [[] for _ in components]
    for targets in target_sets(setup):
        for memory, component in zip(kept, components, strict=True):
            memory.append(component.remember(targets))
    return [
        (component.name, component.weight, component.pvalues(np.concatenate(memory)))
        for memory, component in zip(kept, components, strict=True)
    ]


def skce_component(setup: Setup, weight: float = 1.0) -> Component:
    """The SKCE."""
    return Component("SKCE", weight, skce_statistic(setup), rank_pvalues)


def location_component(setup: Setup, locations: Any = 40, weight: float = 1.0) -> Component:
    """Deviations at locations, regularised by their own covariance."""
    where = as_locations(locations, setup.predictions, setup.rng)
    prepared = location_kernel(
        setup.problem.kernel,
        setup.predictions,
        where,
        engine=setup.engine,
        expectations=setup.expectations,
    )
    return Component("locations", weight, prepared.sums, regularised_pvalues)


def moment_components(setup: Setup) -> list[Component]:
    """Centre and surprise, where targets have them."""
    moments = moments_of(setup.predictions)
    if moments is None:
        return []
    return [
        Component("centre", 1.0, moments.residuals, centre_pvalues),
        Component("surprise", 1.0, moments.surprise, surprise_pvalues),
    ]


def regularised_pvalues(z: NDArray, etas: Sequence[float] = ETAS) -> NDArray:
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
        return np.ones(len(z))
    squares = (z @ vectors) ** 2
    parts = [(1.0, rank_pvalues(squares @ (1.0 / (values + eta * largest)))) for eta in etas]
    return combined_pvalues([*parts, (1.0, rank_pvalues(squares.sum(axis=1)))])
