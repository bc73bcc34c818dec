"""Sums over cases in partitions, for sets of targets that are drawn where the predictions are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.dask.partitioned import Cases, Partition, added, computed_sum, itself, on
from wellcal.hypotests.resampling.components import LOCATIONS
from wellcal.hypotests.resampling.low_rank import LowRank, skce_of
from wellcal.kernels.base import Kernel
from wellcal.predictions import Predictions
from wellcal.problem import target_resampling
from wellcal.problem.at_locations import location_kernel
from wellcal.problem.locations import Locations, as_locations, drawn_rows, locations_at
from wellcal.problem.target_resampling import TargetStream

AT_A_TIME = 4 * target_resampling.BLOCK
"""Cases whose kernels at locations are in memory at a time: some 250 MB."""


MOST_KEPT = 4_000_000
"""Sums, of all sets, that one task returns at most."""


@dataclass(frozen=True)
class Looked:
    """What is looked at in each partition: small, and the same for all of them.

    Attributes
    ----------
    kernel
        Between cases and locations.
    expectations
        How expectations without a closed form are computed.
    locations
        Where deviations are taken.
    anchors, roots
        Predictions and targets that stand for all in the kernel of low rank, and what makes features of k_P;
        None without the SKCE.
    make
        Makes the parts of a partition; None without parts.
    n
        Number of all cases.
    """

    kernel: Kernel
    expectations: Any
    locations: Locations
    anchors: Locations | None
    roots: list[NDArray] | None
    make: Any
    n: int


def drawn_locations(cases: Cases, count: int, rng: np.random.Generator) -> Locations:
    """So many predictions of all cases, each with a target drawn from it."""
    if count < 1:
        raise ValueError(f"locations must be at least one, found {count}")
    rows = drawn_rows(cases.n, count, rng)
    return locations_at(cases.rows(rows).predictions, rng)


def locations_among(given: object, cases: Cases, some: Predictions, rng: np.random.Generator) -> Locations:
    """Locations as a user gave them, or so many of all cases; `some` are predictions of the family."""
    number = LOCATIONS if given is None else given
    if isinstance(number, (int, np.integer)) and not isinstance(number, bool):
        return drawn_locations(cases, int(cast("int", number)), rng)
    return as_locations(number, some, rng)


@dataclass(frozen=True)
class SumsOfAll:
    """Sums over all cases for sets of targets.

    Attributes
    ----------
    cases, own
        Partitions, and what parts need of each.
    looked
        What is looked at.
    at_a_time
        Sets that are gone through in one round over the partitions.
    of_parts_at_a_time
        The same where no more than sums of parts is wanted.
    reduce
        What is kept of the sums of parts once these are over all cases, row by row.
    """

    cases: Cases
    own: Sequence[Any]
    looked: Looked
    at_a_time: int
    of_parts_at_a_time: int = MOST_KEPT
    reduce: Callable[[NDArray], NDArray] = np.asarray

    def all(self, stream: TargetStream, count: int) -> tuple[NDArray, NDArray, NDArray]:
        """Of parts ``(R + 1, k)``, at locations ``(R + 1, J)``, and n SKCE_u ``(R + 1,)``; observed first."""
        found: list[tuple[NDArray, NDArray, NDArray]] = []
        for first in range(0, count, self.at_a_time):
            sets = min(self.at_a_time, count - first)
            of_parts, at, features = self._total(stream, sets, first=first, observed=first == 0)
            values = skce_of(features, self.cases.n) if features else np.zeros(0)
            found.append((self.reduce(of_parts), at, values))
        of_parts, at, values = (np.concatenate(rows) for rows in zip(*found, strict=True))
        return of_parts, at, values

    def drawn(self, stream: TargetStream, count: int) -> tuple[NDArray, NDArray, Any]:
        """The same for drawn sets alone, in one round, with sums of features in the place of SKCE."""
        return self._total(stream, count)

    def of_parts(self, stream: TargetStream, count: int) -> NDArray:
        """Of parts alone, ``(count, k)``, for drawn sets: more of them in one round."""
        found: list[NDArray] = []
        for first in range(0, count, self.of_parts_at_a_time):
            sets = min(self.of_parts_at_a_time, count - first)
            found.append(self.reduce(self._total(stream, sets, first=first, parts_alone=True)[0]))
        return np.concatenate(found)

    def _total(self, stream: TargetStream, count: int, **options: Any) -> Any:
        starts = self.cases.starts[:-1].tolist()
        shared = on(itself, self.looked)  # sent once, not with every task
        tasks = [
            on(sums_of, block, own, start, shared, stream, count, **options)
            for block, own, start in zip(self.cases.blocks, self.own, starts, strict=True)
        ]
        return computed_sum(tasks)


def in_parts(block: Partition) -> Iterator[tuple[int, Partition]]:
    """Some cases of a partition at a time, and where they begin."""
    for low in range(0, len(block.targets), AT_A_TIME):
        yield low, block.rows(slice(low, low + AT_A_TIME))


def sums_of(
    block: Partition,
    own: NDArray | None,
    start: int,
    looked: Looked,
    stream: TargetStream,
    count: int,
    *,
    first: int = 0,
    observed: bool = False,
    parts_alone: bool = False,
) -> Any:
    """Sums over the cases of a partition, some of them at a time, for sets of targets."""
    total: Any = None
    for low, some in in_parts(block):
        mine = None if own is None else own[low : low + AT_A_TIME]
        rows = _Rows(some, mine, looked, parts_alone)
        sets = stream.sets(
            rows.block.predictions,
            rows.block.targets,
            count,
            start=start + low,
            total=looked.n,
            first=first,
        )
        found = rows.sums(sets, observed)
        total = found if total is None else added(total, found)
    return total


class _Rows:
    """Some cases, prepared for any number of sets of targets."""

    def __init__(self, block: Partition, own: NDArray | None, looked: Looked, parts_alone: bool) -> None:
        self.block = block
        predictions = block.predictions
        self.parts = None if looked.make is None else looked.make(predictions, own)
        self.at = self.features = None
        if not parts_alone:
            options = {"expectations": looked.expectations}
            self.at = location_kernel(looked.kernel, predictions, looked.locations, **options)
            if looked.anchors is not None and looked.roots is not None:
                at = location_kernel(looked.kernel, predictions, looked.anchors, **options)
                self.features = LowRank.of(at, looked.roots)

    def sums(self, sets: Any, observed: bool) -> Any:
        """Sums of parts, at locations, and of features by term; the observed set first where it is wanted."""
        found: list[Any] = []
        for drawn in sets:
            targets = drawn
            if observed and not found:
                targets = np.concatenate([self.block.targets[None], drawn])
            found.append(
                (
                    np.zeros((len(targets), 0)) if self.parts is None else self.parts.sums(targets),
                    np.zeros((len(targets), 0)) if self.at is None else self.at.sums(targets),
                    () if self.features is None else self.features.sums(targets),
                )
            )
        of_parts, at, features = zip(*found, strict=True)
        by_term = tuple(
            (np.concatenate([sums for sums, _ in term], axis=1), np.concatenate([own for _, own in term]))
            for term in zip(*features, strict=True)
        )
        return np.concatenate(of_parts), np.concatenate(at), by_term
