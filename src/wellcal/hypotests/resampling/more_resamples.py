"""More resamples for parts that are cheap, where the case is clear.

A test whose observed targets are beyond all R resamples says p <= 1 / (R + 1) and no more. Sums over cases
cost next to nothing, so that many more sets of targets can be drawn for them alone: ten times as many, then
ten times as many again while the observed targets stay beyond all of them. Whoever asks for a number of
resamples gets that number.

The p-value stays exact (sequential, as in Besag and Clifford, 1991). Let p_1 be that of the first stage, p_2
that of the second, and so on, each valid by itself, and f_k = 1 / (R_k + 1). Stage k + 1 is run where
p_k = f_k, and min(p_{k+1}, f_k) is reported. For f_k <= a < f_{k-1} the event that the report is at most a is
contained in {p_k <= a}: whatever a is, its probability is a at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.method import Outcome
from wellcal.hypotests.parts.part import Evaluated
from wellcal.hypotests.resampling.components import Component, observed_rank
from wellcal.hypotests.resampling.targets import placed_draws
from wellcal.hypotests.setup import Setup
from wellcal.measures.presentation import at_floor

MOST_RESAMPLES = 99_999
MOST_DRAWS = 6 * 10**6
"""Numbers that are drawn at most, of all coordinates of vectors: some tenths of a second of one core."""

_FACTOR = 10


def most_drawn(numbers: int, most: int) -> int:
    """Resamples at most, of the `most` that are allowed: so many that drawing them is quick.

    `numbers` are those of one set: its targets, or what is made of them where that is more.
    """
    return min(most, MOST_DRAWS // max(numbers, 1))


def with_more_resamples(setup: Setup, component: Component, found: Outcome, most: int) -> Outcome:
    """What a test found, with a smaller p-value where one component is beyond many more resamples.

    Parameters
    ----------
    setup
        The case.
    component
        The one that is cheap.
    found
        What all components together gave on `setup.n_resamples` sets.
    most
        Resamples at most.
    """

    def draw(count: int) -> list[NDArray]:
        return [component.of(targets) for targets in placed_draws(setup, count)]

    observed = component.of(setup.targets[None])
    return drawn_on(found, setup.n_resamples, most, observed, draw, component.statistics)


def drawn_on(
    found: Outcome,
    first: int,
    most: int,
    observed: NDArray,
    draw: Callable[[int], list[NDArray]],
    statistics: Callable[[NDArray], Iterable[Evaluated]],
) -> Outcome:
    """The same for sums that are remembered of the observed set, ``(1, K)``, and drawn so many at a time.

    Parameters
    ----------
    found, most
        As in :func:`with_more_resamples`.
    first
        Resamples that all components have seen.
    observed
        What is remembered of the observed targets.
    draw
        Remembers so many drawn sets.
    statistics
        Makes statistics of what is remembered.
    """
    pvalue, floor, count = found.pvalue, found.floor or 0.0, first
    memory = [observed]
    while at_floor(pvalue, floor) and 2 * count <= most:
        count = min(_FACTOR * (count + 1) - 1, most)
        memory += draw(count + 1 - sum(map(len, memory)))
        rank, lowest = observed_rank(list(statistics(np.concatenate(memory))))
        pvalue, floor = min(rank, floor), lowest
    more: dict[str, int] = {}
    if count > first:
        more = {"n_resamples": count, "resamples_of_all_parts": first}
    return replace(found, pvalue=pvalue, floor=floor, provenance={**found.provenance, **more})
