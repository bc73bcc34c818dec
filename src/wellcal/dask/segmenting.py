"""Segments of cases in partitions: the same groups of the same columns as in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.dask.building import is_array
from wellcal.dask.partitioned import Cases, Partition
from wellcal.dask.witness_sums import Column
from wellcal.witnesses.regions import Listed
from wellcal.witnesses.segments import (
    MEASURED,
    MOST_SEGMENTS,
    MOST_VALUES,
    argument_of,
    check_number,
    columns_of,
    cuts_between,
    ranges_in_words,
    segment_in_words,
)
from wellcal.witnesses.summaries import Cases as Members


def segment_columns(given: Any) -> list[tuple[str | None, Any]]:
    """Columns that a user gave, each with its name where it has one; arrays of Dask's have none."""
    if given is None:
        return []
    return [(None, given)] if is_array(given) else columns_of(given)


def labels_of(columns: Sequence[tuple[str | None, Any]]) -> dict[str, Any]:
    """The same by what they are called in errors."""
    return {argument_of(name): column for name, column in columns}


def labels_of_clusters(groups: Any) -> dict[str, Any]:
    """A column of labels of clusters by what it is called in errors; nothing where there is none."""
    return {} if groups is None else {"groups": groups}


@dataclass(frozen=True)
class Different:
    """Different labels of each column, in the order in which they come: as many as make a difference."""

    labels: tuple[NDArray, ...]

    def merged(self, other: Different) -> Different:
        """Of partitions that follow each other."""
        both = zip(self.labels, other.labels, strict=True)
        return Different(tuple(_different(np.concatenate(pair)) for pair in both))


def different(block: Partition) -> Different:
    """Of one partition."""
    return Different(tuple(map(_different, block.labels)))


def _different(values: NDArray) -> NDArray:
    _, first = np.unique(values, return_index=True)
    return values[np.sort(first)][: MOST_SEGMENTS + 1]


def segment_grids(
    columns: Sequence[tuple[str | None, Any]], cases: Cases, ranked: Sequence[NDArray]
) -> list[tuple[Listed, Column]]:
    """Groups of each column, in words, and how partitions tell them apart.

    Parameters
    ----------
    columns
        Names of columns.
    cases
        All cases, with their labels.
    ranked
        Columns of those cases at whose shares cuts are made.
    """
    if not columns:
        return []
    found = cases.total(different)
    return [
        _grid(number, name, labels, some, cases.n)
        for number, ((name, _), labels, some) in enumerate(zip(columns, found.labels, ranked, strict=True))
    ]


def _grid(number: int, name: str | None, labels: NDArray, ranked: NDArray, n: int) -> tuple[Listed, Column]:
    measured = labels.dtype.kind in MEASURED
    if measured and len(labels) > MOST_VALUES:
        cuts = cuts_between(argument_of(name), ranked)
        return _listed(ranges_in_words(name, cuts)), Column(number, cuts)
    check_number(name, len(labels), n)
    values = np.sort(labels)
    # Numbers and dates from small to large, texts in the order in which they come.
    order = values if measured else labels
    places = np.empty(len(values), dtype=np.intp)
    places[np.searchsorted(values, order)] = np.arange(len(order))
    return _listed([segment_in_words(name, label) for label in order]), Column(number, values, places)


def _listed(words: Sequence[str]) -> Listed:
    nobody = np.zeros(0, dtype=bool)  # which cases these are is asked of partitions
    return Listed([Members(where, nobody, "segment") for where in words])
