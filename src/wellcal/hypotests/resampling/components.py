"""Statistics that enter an exact min-p test, evaluated on the same sets of targets.

A component is called with blocks of sets of targets and returns what it needs to remember of them; once
all sets have been seen it turns that into statistics, treating all sets alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg

from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal.hypotests.method import Outcome
from wellcal.hypotests.parts.part import Evaluated, Parts
from wellcal.hypotests.pvalues import EVIDENCE, MOST_EVIDENCE, Ranks, ranked, smallest_pvalue
from wellcal.hypotests.resampling.low_rank import low_rank_skce
from wellcal.hypotests.resampling.smooth_tails import smallest_near_first, smallest_of, smooth_pvalues
from wellcal.hypotests.resampling.statistics import skce_statistic
from wellcal.hypotests.resampling.targets import placed_draws, placed_sets
from wellcal.hypotests.setup import Setup
from wellcal.kernels.base import calls_user_function
from wellcal.measures.target_sets.resampled import has_terms
from wellcal.predictions import Quantiles
from wellcal.problem.locations import Locations, as_locations

LOCATIONS = 40
"""Locations that are drawn where none are given."""

TAIL_SETS = 999
"""Sets that tails of cheap statistics are fitted to, at least."""

MOST_TAIL_DRAWS = 10**6
"""Targets, or coordinates of targets, that are drawn for tails at most."""

_LEAST_PVALUE = 10.0**-MOST_EVIDENCE  # tails that underflow are as small as this

ETAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Strengths of regularisation, relative to the largest eigenvalue."""


@dataclass(frozen=True)
class Component:
    """One or several statistics of a min-p test.

    Attributes
    ----------
    remember
        From a block of sets of targets ``(r, n, ...)`` to an array ``(r, ...)``.
    in_tensors
        Whether these targets may be tensors on a device.
    statistics
        From what is remembered of all sets to statistics.
    cheap
        Whether more sets than a test asks for cost next to nothing.
    reduce
        What of it is kept until all sets have been seen, row by row.
    """

    remember: Callable[[Array], Array]
    statistics: Callable[[NDArray], Iterable[Evaluated]]
    cheap: bool = False
    in_tensors: bool = False
    reduce: Callable[[NDArray], NDArray] | None = None

    def of(self, targets: Array) -> NDArray:
        """What is kept of a block of sets of targets, wherever they are, in NumPy."""
        if not (isinstance(targets, np.ndarray) or self.in_tensors):
            return replace(self, in_tensors=True).of(to_numpy(targets))
        found = to_numpy(self.remember(targets))
        return found if self.reduce is None else self.reduce(found)


def evaluate_components(
    setup: Setup, components: Sequence[Component], *, tail_sets: int = 0, width: int = 1
) -> list[Evaluated]:
    """Statistics of all sets of targets for each component, on the same resamples.

    A tail that is fitted to few sets is rough, and what is compared by rough tails finds less. Where a test
    has fewer resamples than `tail_sets`, components that are cheap see more sets, which come last. They
    are drawn from the predictions alone, so that the sets that all components see stay exchangeable. A set
    makes `width` numbers, or as many as it has targets.
    """
    kept: list[list[NDArray]] = [[] for _ in components]
    for targets in placed_sets(setup):
        for memory, component in zip(kept, components, strict=True):
            memory.append(component.of(targets))
    more = missing_tail_sets(tail_sets, max(setup.targets.size, width), setup.n_resamples)
    if more > 0 and any(component.cheap for component in components):
        for targets in placed_draws(setup, more):
            for memory, component in zip(kept, components, strict=True):
                if component.cheap:
                    memory.append(component.of(targets))
    return [
        part
        for memory, component in zip(kept, components, strict=True)
        for part in component.statistics(np.concatenate(memory))
    ]


def missing_tail_sets(tail_sets: int, numbers: int, n_resamples: int) -> int:
    """Sets that tails want besides those of the test, where one set has so many numbers."""
    return max(min(tail_sets, MOST_TAIL_DRAWS // numbers) - n_resamples, 0)


def smallest_ranks(parts: Sequence[Evaluated]) -> Ranks:
    """p-values of the smallest weighted p-value over parts: exact, without a correction for their number.

    Smooth p-values are compared, since ranks tie, and what they give is ranked.
    """
    return ranked(_evidence(parts))


def _evidence(parts: Sequence[Evaluated]) -> NDArray:
    """Minus the logarithm, to base 10, of the smallest weighted p-value of each set that all parts saw."""
    sets = min(len(part.values) for part in parts)
    return _as_evidence(smallest_pvalue([(part.weight, p) for part, p in _smooth(parts, sets)]))


def _smooth(parts: Sequence[Evaluated], sets: int) -> Iterator[tuple[Evaluated, NDArray]]:
    """Parts with smooth p-values of the first sets; parts that saw as many sets are looked at together."""
    for count in dict.fromkeys(len(part.values) for part in parts):
        some = [part for part in parts if len(part.values) == count]
        yield from zip(some, smooth_pvalues(np.stack([part.values for part in some]), sets), strict=True)


def _as_evidence(least: NDArray) -> NDArray:
    return -np.log10(np.maximum(least, _LEAST_PVALUE))


def observed_rank(parts: Sequence[Evaluated]) -> tuple[float, float]:
    """p-value and floor of the observed set: those of `smallest_ranks`, for less where it is far off."""
    least = smallest_near_first([part.weight for part in parts], np.stack([part.values for part in parts]))
    found = ranked(_as_evidence(least))
    return float(found.pvalues[0]), found.floor


def smallest_outcome(count: int, parts: Sequence[Evaluated], *, null_alone: bool = False) -> Outcome:
    """The smallest p-value of several statistics, and its own exact p-value.

    `count` sets were drawn for all of them. What is reported of each part is its rank. With `null_alone` the
    values under calibration are those of drawn sets among themselves, as they would be for a calibrated
    model: an observed set far off changes the tails that all others are compared with, and the p-value, which
    is exact either way, is none of theirs.
    """
    evidence = _evidence(parts)[: count + 1]
    together = ranked(evidence)
    alone = {part.name: ranked(part.values) for part in parts}
    provenance: dict[str, Any] = {
        "n_resamples": count,
        "pvalues": {name: float(found.pvalues[0]) for name, found in alone.items()},
        "pvalue_floors": {name: found.floor for name, found in alone.items()},
        "weights": {part.name: part.weight for part in parts},
    }
    return Outcome(
        statistic=float(evidence[0]),
        pvalue=float(together.pvalues[0]),
        label=EVIDENCE,
        null=partial(_null_alone, parts, count) if null_alone else evidence[1:],
        provenance=provenance,
        floor=together.floor,
    )


def _null_alone(parts: Sequence[Evaluated], count: int) -> NDArray:
    """Evidence of drawn sets, which the observed one, the first, has no part in."""
    return _evidence([part._replace(values=part.values[1:]) for part in parts])[:count]


def skce_component(setup: Setup, weight: float = 1.0, *, pairs: bool = True) -> Component:
    """The SKCE: over all pairs, or with a kernel of low rank."""
    statistic = skce_statistic(setup) if pairs else low_rank_skce(setup)
    return Component(
        statistic, lambda values: [Evaluated("SKCE", weight, values)], in_tensors=not pairs and _plain(setup)
    )


def _plain(setup: Setup) -> bool:
    """Whether kernels at targets are evaluated number by number, as tensors can be."""
    bins = isinstance(setup.predictions, Quantiles)
    return has_terms(setup.kernel) and not bins and not calls_user_function(setup.kernel)


def location_component(setup: Setup, locations: Locations, weight: float = 1.0) -> Component:
    """Deviations at locations, regularised by their own covariance."""
    return Component(
        setup.at(locations).sums,
        lambda sums: [Evaluated("locations", weight, regularised_statistic(sums))],
        in_tensors=_plain(setup),
    )


def part_component(parts: Parts) -> Component:
    """Sums over cases, each made for one kind of error."""
    return Component(parts.sums, parts.of_remembered, cheap=True, in_tensors=True, reduce=parts.remembered)


def choose_locations(setup: Setup, given: object) -> Locations:
    """Locations as a user gave them, or as many as were asked for, drawn with the generator of the setup."""
    return as_locations(LOCATIONS if given is None else given, setup.predictions, setup.rng)


def regularised_statistic(
    z: NDArray, etas: Sequence[float] = ETAS, *, unit: NDArray | None = None
) -> NDArray:
    """A statistic of sets from deviations ``(R + 1, J)`` at J locations.

    ``t_r = z_r' (C + eta lmax I)^-1 z_r`` with C the covariance of the deviations over all sets, or over the
    sets `unit` where these are given, and lmax its largest eigenvalue: small eta see fine deviations, large
    eta and the plain ``|z_r|^2`` coarse ones.
    The smallest p-value over eta is taken.
    """
    z = z - z.mean(axis=0)
    of = z if unit is None else unit - unit.mean(axis=0)
    values, vectors = linalg.eigh(of.T @ of / len(of))
    values = np.maximum(values, 0.0)
    largest = values[-1]
    if largest == 0.0:
        return np.zeros(len(z))
    squares = (z @ vectors) ** 2
    parts = [squares @ (1.0 / (values + eta * largest)) for eta in etas]
    return smallest_of(smooth_pvalues(np.stack([*parts, squares.sum(axis=1)])))
