"""Ranks among all cases, of values that lie in partitions.

Values are sorted into buckets by cuts from a sample, each of which holds neighbours of all partitions; there
they are counted, and what lies below each of them goes back. Equal values of a partition travel once. Ranks
are those of all values in one array, to the last digit, however the cases are cut and wherever the cuts are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.dask.partitioned import Task, on
from wellcal.dask.watching import kept

BUCKET = 20_000_000
"""Values that are sorted in one place, about: up to 1.2 GB of memory."""

Piece = tuple[NDArray, NDArray]
"""Distinct values of a partition in a bucket, and how often each occurs; or what goes back of them."""


def levels_of(values: Sequence[Task], n: int, sample: NDArray, bucket: int | None = None) -> list[Task]:
    """Middle ranks of columns among all cases, between 0 and 1, in the partitions of the values.

    Parameters
    ----------
    values
        An array ``(n_p, k)`` for each partition.
    n
        Number of all cases.
    sample
        Some of the values, ``(m, k)``, from which cuts between buckets are taken.
    bucket
        Values of a bucket, about.

    Returns
    -------
    list
        Levels ``(n_p, k)`` for each partition, which are kept where they are.
    """
    count = -(-n // (BUCKET if bucket is None else bucket))
    cuts = (
        np.quantile(sample, np.arange(1, count) / count, axis=0)
        if count > 1
        else np.zeros((0, sample.shape[1]))
    )
    split = [on(_split, own, cuts) for own in values]
    tables = [on(_counted, *(pieces[b] for pieces in split)) for b in range(count)]
    totals = [table[1] for table in tables]
    levels = [on(_levels, own, n, totals, [table[0][p] for table in tables]) for p, own in enumerate(values)]
    return kept(levels)


def _split(values: NDArray, cuts: NDArray) -> list[list[Piece]]:
    """Distinct values by bucket, then by column."""
    columns = [_distinct(column, own) for column, own in zip(values.T, cuts.T, strict=True)]
    return [[column[b] for column in columns] for b in range(len(cuts) + 1)]


def _distinct(values: NDArray, cuts: NDArray) -> list[Piece]:
    found, counts = np.unique(values, return_counts=True)
    ends = [0, *np.searchsorted(found, cuts, side="left").tolist(), len(found)]
    return [(found[a:b], counts[a:b]) for a, b in pairwise(ends)]


def _counted(*pieces: list[Piece]) -> tuple[list[list[Piece]], list[int]]:
    """For each partition and column, how many cases of the bucket lie below its values, and are equal.

    And how many cases of each column are in the bucket.
    """
    back: list[list[Piece]] = [[] for _ in pieces]
    totals: list[int] = []
    for column in zip(*pieces, strict=True):
        every, places = np.unique(np.concatenate([found for found, _ in column]), return_inverse=True)
        counts = np.bincount(
            places, weights=np.concatenate([count for _, count in column]), minlength=len(every)
        ).astype(np.int64)
        below = np.cumsum(counts) - counts
        totals.append(int(counts.sum()))
        first = 0
        for own, (found, _) in zip(back, column, strict=True):
            mine = places[first : first + len(found)]
            own.append((below[mine], counts[mine]))
            first += len(found)
    return back, totals


def _levels(values: NDArray, n: int, totals: list[list[int]], pieces: list[list[Piece]]) -> NDArray:
    """Middle ranks of the values of a partition, from what came back of each bucket."""
    out = np.empty(values.shape)
    before: Any = np.concatenate([np.zeros((1, values.shape[1]), dtype=np.int64), np.cumsum(totals, axis=0)])
    for c, column in enumerate(values.T):
        _, places = np.unique(column, return_inverse=True)
        below = np.concatenate([own[c][0] + before[b, c] for b, own in enumerate(pieces)])
        equal = np.concatenate([own[c][1] for own in pieces])
        ranks = below + 0.5 * (
            equal + 1.0
        )  # as scipy.stats.rankdata has them, so that levels agree to the bit
        out[:, c] = ((ranks - 0.5) / n)[places]
    return out
