"""Segments: groups of cases that a user names, by labels, or by numbers that are cut into groups.

Reports and witnesses make the same groups of the same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from wellcal._arrays.frames import Table, is_frame
from wellcal._arrays.group_labels import label_of_each, sortable
from wellcal._arrays.namespaces import NDArray, attribute, has
from wellcal._arrays.round_numbers import cut_text, round_number
from wellcal._arrays.row_errors import Row, RowError
from wellcal.witnesses.axes import ranked_rows
from wellcal.witnesses.summaries import Cases

PARTS = 4
"""Groups that numbers are cut into, of about equally many cases."""

MOST_VALUES = 10
"""Different numbers up to which each is a group of its own."""

MOST_SEGMENTS = 1000
"""Different labels at most."""


class Group(NamedTuple):
    """Cases of one segment, in words, and which they are."""

    where: str
    rows: NDArray


def segments_of(
    segments: Any, n: int, in_order: Callable[[Any, str], Any] = lambda column, name: column
) -> list[Cases]:
    """Segments that a user gave, as groups of cases: see :func:`groups_by_column`."""
    if segments is None:
        return []
    found: list[Cases] = []
    for name, groups in groups_by_column(segments, n, in_order):
        check_number(name, len(groups), n)
        for where, rows in groups:
            inside = np.zeros(n, dtype=bool)
            inside[rows] = True
            found.append(Cases(where, inside, "segment"))
    return found


def check_number(name: str | None, count: int, n: int) -> None:
    """Refuse labels of which there are too many."""
    if count > MOST_SEGMENTS:
        raise ValueError(
            f"{argument_of(name)} has {count} different labels for {n} cases; give at most {MOST_SEGMENTS}"
        )


def groups_by_column(
    given: Any, n: int, in_order: Callable[[Any, str], Any]
) -> list[tuple[str | None, list[Group]]]:
    """Groups of cases for each column that a user gave, with its name where it has one.

    Parameters
    ----------
    given
        Labels or numbers, one for each case, by the name of the variable: a dictionary, a data frame of
        pandas, polars or pyarrow, or a single column.
    n
        Number of cases.
    in_order
        Brings a column, with its name in errors, into the order of the cases.
    """
    found: list[tuple[str | None, list[Group]]] = []
    for name, column in columns_of(given):
        argument = argument_of(name)
        values = segment_labels(in_order(column, argument), argument, n)
        groups = _cut(name, argument, values) if _is_measured(values) else _by_label(name, values)
        found.append((name, groups))
    return found


def argument_of(name: str | None) -> str:
    """What a column is called in errors."""
    return "segments" if name is None else f"segments[{name!r}]"


def columns_of(given: Any) -> list[tuple[str | None, Any]]:
    """Columns that a user gave, each with its name where it has one."""
    columns = _columns(given)
    if not columns:
        raise ValueError("segments has no columns: give one at least, or None")
    return columns


def _columns(given: Any) -> list[tuple[str | None, Any]]:
    if isinstance(given, str):
        raise TypeError(f"segments must be one label or number for each case, found the one string {given!r}")
    if isinstance(given, Mapping):
        return [(str(name), column) for name, column in cast("Mapping[Any, Any]", given).items()]
    if is_frame(given):
        table = Table(given)
        if attribute(given, "iloc") is not None:  # columns of pandas keep their index
            return [(name, given.iloc[:, k]) for k, name in enumerate(table.names)]
        return [(name, table.labels(name)) for name in table.names]
    names: Any = attribute(given, "columns")
    if names is not None and has(given, "__getitem__"):  # a data frame of another library
        return [(str(name), given[name]) for name in names]
    name = attribute(given, "name")  # of a column of a data frame
    return [(name if isinstance(name, str) and name else None, given)]


def _is_measured(values: NDArray) -> bool:
    """Whether values are numbers of which there are too many for groups of their own."""
    return values.dtype.kind in "iuf" and len(np.unique(values)) > MOST_VALUES


def _by_label(name: str | None, values: NDArray) -> list[Group]:
    distinct, first, codes = np.unique(values, return_index=True, return_inverse=True)
    # Numbers from small to large, texts in the order in which they come.
    order = range(len(distinct)) if values.dtype.kind in "iuf" else np.argsort(first).tolist()
    by_code = np.argsort(codes, kind="stable")
    rows = np.split(by_code, np.cumsum(np.bincount(codes, minlength=len(distinct)))[:-1])
    return [Group(segment_in_words(name, values[first[k]]), rows[k]) for k in order]


def _cut(name: str | None, argument: str, values: NDArray) -> list[Group]:
    """Numbers in groups of about equally many cases, with short numbers between them."""
    edges = [-np.inf, *cuts_between(argument, values), np.inf]
    found: list[Group] = []
    for low, high in pairwise(edges):
        rows = np.flatnonzero((values >= low) & (values < high))
        if len(rows):
            found.append(Group(range_in_words(name, low, high), rows))
    return found


def cuts_between(argument: str, values: NDArray) -> list[float]:
    """Short numbers between groups of about equally many cases: of many cases, always the same of them."""
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise RowError(
            f"{argument} must hold finite numbers: found {values[row]} in ",
            Row(row),
            argument=argument,
            remedy="leave such cases out, or give labels",
        )
    ordered = np.sort(values[ranked_rows(len(values))].astype(np.float64))
    n = len(ordered)
    cuts: list[float] = []
    for k in range(1, PARTS):
        # Within a tenth of the cases around the share, wherever the number is shortest.
        low, high = (ordered[int(np.clip(n * (k / PARTS + side), 0, n - 1))] for side in (-0.05, 0.05))
        cut = round_number(float(low), float(high)) if low < high else float(low)
        if ordered[0] < cut <= ordered[-1] and (not cuts or cut > cuts[-1]):
            cuts.append(cut)
    return cuts


def range_in_words(name: str | None, low: float, high: float) -> str:
    """A range of numbers, in words.

    Examples
    --------
    >>> range_in_words("age", 30.0, 45.0), range_in_words("age", -np.inf, 30.0)
    ('where age is between 30 and 45', 'where age is below 30')
    >>> range_in_words(None, 60.0, np.inf)
    'where the segment is 60 or above'
    """
    name = "the segment" if name is None else name
    if np.isinf(low):
        return f"where {name} is below {cut_text(high)}"
    if np.isinf(high):
        return f"where {name} is {cut_text(low)} or above"
    return f"where {name} is between {cut_text(low)} and {cut_text(high)}"


def segment_labels(column: Any, argument: str, n: int) -> NDArray:
    """Labels or numbers ``(n,)`` that can be sorted."""
    remedy = 'give such cases a label of their own, such as "unknown", or leave them out'
    return sortable(label_of_each(column, argument, n, remedy))


def segment_in_words(name: Any, label: Any) -> str:
    """Cases of a segment, as a person would name them.

    Examples
    --------
    >>> segment_in_words("region", "North"), segment_in_words("late", np.False_), segment_in_words(None, "b")
    ('for region = North', 'where not late', "in segment 'b'")
    """
    plain = cast("Any", label).item() if isinstance(label, np.generic) else label
    if name is None:
        return f"in segment {plain!r}"
    if isinstance(plain, bool):
        return f"where {name}" if plain else f"where not {name}"
    return f"for {name} = {plain:g}" if isinstance(plain, float) else f"for {name} = {plain}"
