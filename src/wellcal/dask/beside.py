"""What a test tells beside its p-value, of all cases: the estimate, the effect size and the e-value.

The estimate is a mean over blocks of cases in a random order, as in memory. The place of a case in that order
is a function of its number, so that each partition knows which block a case of its own is in: cases travel
to their blocks, a few million of them at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.dask.functions import IN_MEMORY
from wellcal.dask.pairs import Moments
from wellcal.dask.partitioned import (
    Cases,
    Partition,
    computed_sum,
    itself,
    joined_blocks,
    on,
)
from wellcal.dask.sums import in_parts
from wellcal.engines.tiled import Tiled
from wellcal.hypotests.e_values import Evidence, mixed, summed_gains
from wellcal.hypotests.likelihood_bets import Bettor, fair_bets, why_no_bets
from wellcal.hypotests.setup import ENOUGH_BLOCKS, FEWEST_BLOCKS, Setup
from wellcal.hypotests.shuffling import random_places
from wellcal.kernels.base import Kernel
from wellcal.measures._skce import block_values
from wellcal.measures.estimate import Estimate
from wellcal.problem.problem import prepare_checked

MOST_NUMBERS = 50_000_000
"""Evaluations for a pair, times cases, up to which all cases are in a block: ten million normals."""

BUCKET = 5_000_000
"""The same of the blocks that one task has."""


# -- the estimate ------------------------------------------------------------------------------


def shuffled_estimate(cases: Cases, setup: Setup) -> Estimate:
    """The estimate over blocks in a random order, of all cases or of `MOST_NUMBERS`; `setup` has some.

    Of few cases, which are too wide for memory, blocks are smaller, and there are enough of them.
    """
    problem = setup.problem
    width, n = max(problem.cost.entries, 1), cases.n
    most = max(MOST_NUMBERS // width, 2 * max(setup.fewest_blocks, 1))
    size = setup.block_size(min(n, most))
    if n < FEWEST_BLOCKS * size:
        size = max(2, n // ENOUGH_BLOCKS)
    most = max(most, 2 * size)
    blocks = min(n, most) // size
    if blocks < 2:
        raise ValueError(f"an estimate over blocks needs at least 4 cases, found {n}; {IN_MEMORY}")
    tasks = buckets_of(blocks * size, width)
    ends = size * (np.arange(tasks + 1) * blocks // tasks)
    starts = cases.starts[:-1].tolist()
    pieces = cases.map(_scattered, starts, n=n, ends=ends)
    shared = {"kernel": problem.kernel, "expectations": setup.expectations, "size": size}
    found = [on(_in_blocks, *(piece[b] for piece in pieces), **shared) for b in range(tasks)]
    moments = computed_sum(found)
    provenance = {
        "precision": "float64",
        **problem.notes.as_dict(),
        "engine": "dask",
        "block_size": size,
        "blocks": blocks,
        "dropped": n - blocks * size if n <= most else 0,
        "shuffled": True,
    }
    error = math.sqrt(moments.squares / (moments.n - 1.0) / moments.n)
    known = n if n <= most else blocks * size
    return Estimate(moments.mean, error, "SKCE", "block", known, problem.kernel, provenance)


def buckets_of(cases: int, width: int) -> int:
    """Tasks that so many cases are given to, block by block."""
    return max(-(-cases * width // BUCKET), 1)


class _Piece(NamedTuple):
    """Cases of a partition that belong to the blocks of a task, and their places among all."""

    places: NDArray
    cases: Partition


def _scattered(block: Partition | None, start: int, *, n: int, ends: NDArray) -> list[_Piece | None]:
    """The cases of a partition by task; those whose place is beyond the last end are in no block."""
    count = len(ends) - 1
    if block is None:
        return [None] * count
    places = random_places(np.arange(start, start + len(block.targets)), n)
    task = np.searchsorted(ends, places, side="right") - 1
    found: list[_Piece | None] = []
    for b in range(count):
        own = np.flatnonzero(task == b)
        found.append(_Piece(places[own], block.rows(own)) if len(own) else None)
    return found


def _in_blocks(*pieces: _Piece | None, kernel: Kernel, expectations: Any, size: int) -> Moments:
    """Moments of the values of blocks."""
    known = [piece for piece in pieces if piece is not None]
    both = joined_blocks([piece.cases for piece in known])
    order = np.argsort(np.concatenate([piece.places for piece in known]))
    some = both.rows(order)
    problem = prepare_checked(some.targets, some.predictions, kernel, expectations=expectations)
    sums = Tiled(threads=1, precision="float64").blocks(problem, size)
    return Moments.of(np.asarray(block_values(np.asarray(sums.rows), size, problem.n // size)))


# -- sums over cases ---------------------------------------------------------------------------


@dataclass(frozen=True)
class SumsBeside:
    """Sums over cases.

    Attributes
    ----------
    diagonal
        Sum of h_ii.
    gains
        Logarithms of the gains of bets, by kind.
    reason
        Why there are none; or None.
    """

    diagonal: float
    gains: tuple[NDArray, ...]
    reason: str | None

    def merged(self, other: SumsBeside) -> SumsBeside:
        """Of both parts of the cases."""
        reason = self.reason or other.reason
        gains: Sequence[NDArray] = ()
        if reason is None:
            gains = [a + b for a, b in zip(self.gains, other.gains, strict=True)]
        return SumsBeside(self.diagonal + other.diagonal, tuple(gains), reason)


def told_of_all(cases: Cases, setup: Setup) -> tuple[float, Evidence]:
    """The mean of h_ii, and the evidence, of all cases as they were given; `setup` has some of them."""
    possible = why_no_bets(setup.targets, setup.given) is None
    bet = on(itself, fair_bets(setup.given, cases.n) if possible else None)
    found = cases.total(_told, kernel=setup.kernel, expectations=setup.expectations, bet=bet)
    mean = found.diagonal / cases.n
    if found.reason is None and possible:
        return mean, Evidence(mixed(list(found.gains)))
    return mean, Evidence(math.nan, found.reason or why_no_bets(setup.targets, setup.given))


def _told(
    block: Partition | None, *, kernel: Kernel, expectations: Any, bet: Bettor | None
) -> SumsBeside | None:
    if block is None:
        return None
    total: SumsBeside | None = None
    for _, some in in_parts(block):
        problem = prepare_checked(some.targets, some.predictions, kernel, expectations=expectations)
        diagonal = float(np.sum(to_numpy(problem.diagonal())))
        reason = why_no_bets(some.targets, some.predictions)
        gains: Sequence[NDArray] = ()
        if reason is None and bet is not None:
            gains = summed_gains(bet, some.targets, some.predictions)
        found = SumsBeside(diagonal, tuple(gains), reason)
        total = found if total is None else total.merged(found)
    return total
