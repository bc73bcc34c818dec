"""Segments: groups of cases that a user names, by labels, or by numbers and dates that are cut into groups.

Reports and witnesses make the same groups of the same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray, attribute, has
from wellcal._arrays.row_errors import Row, RowError
from wellcal.columns.dates import by_its_clocks, date_text, dates_in_words, read_dates, round_date, with_dates
from wellcal.columns.frames import Table, is_frame
from wellcal.columns.labels import label_of_each, sortable
from wellcal.measures.round_numbers import cut_text, round_number
from wellcal.witnesses.axes import ranked_rows
from wellcal.witnesses.summaries import Cases

PARTS = 4
"""Groups that numbers and dates are cut into, of about equally many cases."""

MOST_VALUES = 10
"""Different numbers or dates up to which each is a group of its own."""

MEASURED = "iufM"
"""Kinds of values that have an order from small to large: numbers and dates."""

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
        # Partitions are read one by one, and would not agree on texts of which some are dates.
        values = read_dates(segment_labels(in_order(column, argument), argument, n))
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
    """Whether values are numbers or dates of which there are too many for groups of their own."""
    return values.dtype.kind in MEASURED and len(np.unique(values)) > MOST_VALUES


def _by_label(name: str | None, values: NDArray) -> list[Group]:
    distinct, first, codes = np.unique(values, return_index=True, return_inverse=True)
    # Numbers and dates from small to large, texts in the order in which they come.
    order = range(len(distinct)) if values.dtype.kind in MEASURED else np.argsort(first).tolist()
    by_code = np.argsort(codes, kind="stable")
    rows = np.split(by_code, np.cumsum(np.bincount(codes, minlength=len(distinct)))[:-1])
    return [Group(segment_in_words(name, values[first[k]]), rows[k]) for k in order]


def _cut(name: str | None, argument: str, values: NDArray) -> list[Group]:
    """Numbers or dates in groups of about equally many cases, with short ones between them."""
    cuts = cuts_between(argument, values)
    cells = np.searchsorted(cuts, values, side="right")
    members = (np.flatnonzero(cells == k) for k in range(len(cuts) + 1))
    groups = zip(ranges_in_words(name, cuts), members, strict=True)
    return [Group(where, rows) for where, rows in groups if len(rows)]


def cuts_between(argument: str, values: NDArray) -> NDArray:
    """Short numbers, or round dates, between groups of about equally many cases.

    Of many cases, always the same of them are looked at.
    """
    dates = values.dtype.kind == "M"
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise RowError(
            f"{argument} must hold finite numbers: found {values[row]} in ",
            Row(row),
            argument=argument,
            remedy="leave such cases out, or give labels",
        )
    ranked: NDArray = values[ranked_rows(len(values))]
    ordered: NDArray = np.sort(ranked if dates else ranked.astype(np.float64))
    n = len(ordered)
    cuts: list[Any] = []
    for k in range(1, PARTS):
        # Within a tenth of the cases around the share, wherever the number is shortest.
        low, high = (ordered[int(np.clip(n * (k / PARTS + side), 0, n - 1))] for side in (-0.05, 0.05))
        cut: Any = low if dates else float(low)
        if low < high:
            cut = round_date(low, high) if dates else round_number(float(low), float(high))
        if ordered[0] < cut <= ordered[-1] and (not cuts or cut > cuts[-1]):
            cuts.append(cut)
    return np.array(cuts, dtype=ordered.dtype)


def ranges_in_words(name: str | None, cuts: NDArray) -> list[str]:
    """Ranges of numbers or dates below, between and above cuts, in words.

    Examples
    --------
    >>> ranges_in_words("age", np.array([30.0, 45.0]))
    ['where age is below 30', 'where age is between 30 and 45', 'where age is 45 or above']
    >>> ranges_in_words(None, np.array(["2020-04-01"], dtype="M8[us]"))
    ['where the segment is before 2020-04-01', 'where the segment is 2020-04-01 or later']
    """
    name = "the segment" if name is None else name
    ends = pairwise([None, *cuts, None])
    if cuts.dtype.kind == "M":
        return [dates_in_words(name, low, high) for low, high in ends]
    return [_range_in_words(name, low, high) for low, high in ends]


def _range_in_words(name: str, low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"where {name} is between {cut_text(low)} and {cut_text(high)}"
    if high is not None:
        return f"where {name} is below {cut_text(high)}"
    return f"where {name} is {'any number' if low is None else f'{cut_text(low)} or above'}"


def segment_labels(column: Any, argument: str, n: int) -> NDArray:
    """Labels, numbers or dates ``(n,)`` that can be sorted."""
    remedy = 'give such cases a label of their own, such as "unknown", or leave them out'
    return sortable(with_dates(label_of_each(by_its_clocks(column), argument, n, remedy)))


def segment_in_words(name: Any, label: Any) -> str:
    """Cases of a segment, as a person would name them.

    Examples
    --------
    >>> segment_in_words("region", "North"), segment_in_words("late", np.False_), segment_in_words(None, "b")
    ('for region = North', 'where not late', "in segment 'b'")
    >>> segment_in_words("day", np.datetime64("2020-03-01", "us"))
    'for day = 2020-03-01'
    """
    if isinstance(label, np.datetime64):
        label = date_text(cast("Any", label))
    plain = cast("Any", label).item() if isinstance(label, np.generic) else label
    if name is None:
        return f"in segment {plain!r}" if isinstance(plain, str) else f"in segment {plain}"
    if isinstance(plain, bool):
        return f"where {name}" if plain else f"where not {name}"
    return f"for {name} = {plain:g}" if isinstance(plain, float) else f"for {name} = {plain}"
