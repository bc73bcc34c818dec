"""Rows left out because a value is missing in them, and how many these are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.columns.frames import Table
from wellcal.columns.selection import select


class NothingLeftError(ValueError):
    """A value is missing in every row."""


@dataclass(frozen=True)
class Kept:
    """What :func:`drop_missing` kept of a data frame.

    Parameters
    ----------
    frame
        The frame without the rows that were dropped.
    dropped, total
        How many rows were dropped, and how many there were.
    by_column
        How many values were missing in each column that misses any.
    rows
        Positions of the rows that were kept; None where none was dropped.

    Examples
    --------
    >>> import pandas as pd
    >>> kept = drop_missing(pd.DataFrame({"y": [1.0, None], "mu": [0.0, None]}), ["y"])
    >>> kept.dropped, kept.total, kept.by_column
    (1, 2, {'y': 1})
    """

    frame: Any
    dropped: int
    total: int
    by_column: dict[str, int]
    rows: NDArray | None = None

    def words(self) -> str:
        """How many rows were dropped, and why, as a sentence."""
        if not self.dropped:
            return f"No values are missing: all {self.total} rows are used."
        where = ", ".join(f"{name} ({count})" for name, count in list(self.by_column.items())[:6])
        more = f" and {len(self.by_column) - 6} columns more" if len(self.by_column) > 6 else ""
        return f"{self.dropped} of {self.total} rows dropped: values are missing in {where}{more}."

    def __str__(self) -> str:
        return self.words()


def drop_missing(frame: Any, columns: Sequence[str] | str | None = None) -> Kept:
    """Leave out the rows of a data frame in which a value is missing: null, NaN, or an empty text.

    Parameters
    ----------
    frame
        A data frame of pandas, polars or pyarrow.
    columns
        The columns that count: names, globs or ranges; None for all.

    Raises
    ------
    ValueError
        No row is left.

    Examples
    --------
    >>> import pandas as pd
    >>> kept = drop_missing(pd.DataFrame({"y": [1.0, None, 3.0], "mu": [0.0, 1.0, 2.0]}))
    >>> print(kept)
    1 of 3 rows dropped: values are missing in y (1).
    """
    table = Table(frame)
    names = table.names if columns is None else select(table.names, columns, "columns").names
    missing = np.zeros(len(table), dtype=np.bool_)
    by_column: dict[str, int] = {}
    for name in names:
        here = table.missing(name)
        if here.any():
            by_column[name] = int(here.sum())
            missing |= here
    dropped = int(missing.sum())
    kept = Kept(table.native, dropped, len(table), by_column)
    if not dropped:
        return kept
    if dropped == len(table):
        raise NothingLeftError(
            f"no row is left: {kept.words()} Fill values in, or name the columns that are needed"
        )
    return Kept(table.rows_where(~missing), dropped, len(table), by_column, np.flatnonzero(~missing))
