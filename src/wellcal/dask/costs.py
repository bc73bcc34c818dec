"""What a computation in partitions takes: counts of what is done, times what each of it costs.

Counts follow from the number of cases and partitions, and are what happens (the tests count along). Costs are
those of univariate normal predictions, measured on one core of a server; other families differ by a factor.
"""

from __future__ import annotations

from dataclasses import dataclass

from wellcal._arrays.checks import one_of, whole_number
from wellcal.dask.beside import MOST_NUMBERS, buckets_of
from wellcal.dask.partitioned import FAN_IN
from wellcal.dask.ranks import BUCKET
from wellcal.dask.sampling import AT_HAND, NUMBERS_AT_HAND
from wellcal.hypotests.resampling.components import LOCATIONS, TAIL_SETS, missing_tail_sets
from wellcal.hypotests.resampling.low_rank import ANCHORS
from wellcal.problem.defaults import SUBSAMPLE

COSTS = {
    "read": 5.5e-8,
    "prepare": 3.7e-6,
    "set": 3e-7,
    "bet": 5e-7,
    "block": 6e-6,
    "pair": 7e-9,
    "task": 1e-3,
}
"""Seconds of one core: to read a case and score it, to prepare it for a test, for each case and set of
targets, for its part of the e-value, for its pairs in a block, for each pair of cases, and for each task in
the scheduler, which is one process."""

COMPUTATIONS = ("score", "test", "skce")

_COLUMNS = 2  # that are ranked of a number: centre and spread
_SUMS = 10 * 5  # of parts of numbers: polynomials times columns
_WIDTH = 5  # evaluations for a pair
_NUMBERS = 3  # of a case: target, centre, spread


@dataclass(frozen=True)
class Effort:
    """What a computation takes.

    Attributes
    ----------
    reads
        How often a partition is read, over all tasks.
    tasks
        Tasks of the scheduler.
    moved
        Bytes that travel between workers, at most.
    kept
        Bytes that stay in the memory of all workers together until the end, at most.
    cpu_seconds
        Of all cores together.
    seconds
        On the clock, with `threads` that do nothing else.

    Examples
    --------
    >>> found = effort(10**6, partitions=4, threads=4, computation="score")
    >>> found.reads, found.tasks, round(found.cpu_seconds, 3)
    (4, 5, 0.055)
    """

    reads: int
    tasks: int
    moved: float
    kept: float
    cpu_seconds: float
    seconds: float


def effort(
    n: int, *, partitions: int, threads: int, computation: str = "test", n_resamples: int = 999
) -> Effort:
    """What a computation on n univariate normal predictions takes, in partitions of equal size.

    Parameters
    ----------
    n, partitions
        Number of cases, and of partitions, which are files.
    threads
        Cores of all machines together, of which each has one task at a time.
    computation
        "score": any that adds up; "test": :func:`wellcal.calibration_test`; "skce": over all pairs.
    n_resamples
        For "test".

    Examples
    --------
    >>> found = effort(10**9, partitions=1600, threads=1600)
    >>> round(found.cpu_seconds / 3600), round(found.seconds / 60)
    (84, 7)
    """
    one_of(computation, "computation", COMPUTATIONS)
    n, parts, cores = (
        whole_number(value, name, least=1)
        for value, name in ((n, "n"), (partitions, "partitions"), (threads, "threads"))
    )
    size = n / parts
    if computation == "score":
        return _timed(parts, parts + _additions(parts), 0.0, 0.0, [(parts, size * COSTS["read"])], cores)
    if computation == "skce":
        return _of_pairs(n, parts, cores)
    return _of_test(n, parts, cores, n_resamples)


def _of_pairs(n: int, parts: int, threads: int) -> Effort:
    """Each pair of partitions is a task that reads both; its row sums travel."""
    size, pairs = n / parts, parts * (parts - 1) // 2
    rows = min(SUBSAMPLE, parts)
    tasks = rows + 2 * parts + pairs  # and what comes apart: totals, row sums, traces
    tasks += (parts + pairs) + (2 * pairs + parts) + parts + 1
    tasks += _additions(parts + pairs) + 2 * _additions(parts)
    moved = 8.0 * size * (2 * pairs + parts)
    steps = [(parts, 0.5 * size**2 * COSTS["pair"]), (pairs, size**2 * COSTS["pair"])]
    # Row sums of a partition wait for those with all others.
    return _timed(rows + parts + 2 * pairs, tasks, moved, moved, steps, threads)


def _of_test(n: int, parts: int, threads: int, n_resamples: int) -> Effort:
    """Rows at hand and for scales, ranks, three sums for orthogonal columns, and a pass for all sets."""
    size, buckets = n / parts, -(-n // BUCKET)
    at_hand = min(n, AT_HAND, NUMBERS_AT_HAND // _NUMBERS)
    rows = sum(min(count, parts) for count in (1, at_hand, SUBSAMPLE, LOCATIONS, ANCHORS))
    passes = 1 + (missing_tail_sets(TAIL_SETS, n, n_resamples) > 0)
    tasks = rows + 3 * parts + buckets * (2 * parts + 3)  # what is split comes apart, and back
    tasks += 3 * (2 * parts + _additions(parts)) + passes * (1 + 2 * parts + _additions(parts))
    by_case = 2 * 16.0 * _COLUMNS * n  # values and how often they occur, there and back
    sums = 8.0 * (n_resamples + 1) * (_SUMS + LOCATIONS + ANCHORS**2 + 1) * parts
    each = size * (COSTS["prepare"] + n_resamples * COSTS["set"])
    steps = [(rows, size * COSTS["read"]), (parts, each)]
    reads = rows + (1 + passes) * parts
    moved = by_case + sums
    if at_hand < n:  # what is told beside the p-value is a pass of its own, and cases travel to their blocks
        blocked = min(n, MOST_NUMBERS // _WIDTH)
        buckets = buckets_of(blocked, _WIDTH)
        tasks += 1 + parts + _additions(parts) + parts + buckets * (parts + 1) + _additions(buckets)
        steps += [(parts, size * COSTS["bet"]), (buckets, blocked / buckets * COSTS["block"])]
        reads, moved = reads + 2 * parts, moved + 8.0 * (_NUMBERS + 2) * blocked
    return _timed(reads, tasks, moved, 8.0 * _COLUMNS * n, steps, threads)


def _additions(count: int) -> int:
    """Tasks that add up so many results, a few at a time."""
    total = 0
    while count > 1:
        whole, rest = divmod(count, FAN_IN)
        total += whole + (rest > 1)
        count = whole + (rest > 0)
    return total


def _timed(
    reads: int, tasks: int, moved: float, kept: float, steps: list[tuple[int, float]], threads: int
) -> Effort:
    """With seconds: whole rounds of tasks of each kind, and what the scheduler takes, one after the other."""
    cpu = sum(count * cost for count, cost in steps)
    clock = sum(-(-count // threads) * cost for count, cost in steps)
    return Effort(reads, tasks, moved, kept, cpu, clock + COSTS["task"] * tasks)
