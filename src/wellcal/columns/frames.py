"""Columns of data frames of any library (pandas, polars, pyarrow): numbers, labels, and what is missing.

Frames are looked at through narwhals, which is imported when there is a frame to look at.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.row_errors import Row, RowError, RowTypeError
from wellcal.columns.dates import by_its_clocks
from wellcal.columns.labels import Labels, labels_of
from wellcal.columns.number_texts import about_comma, about_entry, commas_in, first_strange

_SHOWN = 6


def is_frame(obj: object) -> bool:
    """Whether an object is a data frame whose columns have names.

    Examples
    --------
    >>> is_frame(np.zeros((3, 2)))
    False
    """
    known = type(obj).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow", "narwhals")
    return known and (hasattr(type(obj), "columns") or hasattr(type(obj), "column_names"))


class MissingValuesError(RowError):
    """Columns have rows without a value."""


class Table:
    """A data frame of any library, as columns that are asked for by name.

    Parameters
    ----------
    native
        The frame: of pandas, polars or pyarrow, or what else narwhals knows.
    decimal
        The sign before decimals in texts, which a file was read with; errors tell of entries by it.

    Attributes
    ----------
    names
        Names of the columns, as texts, each once.
    index
        Labels of the rows, an index of pandas, or None.
    """

    def __init__(self, native: Any, decimal: str = ".") -> None:
        self.decimal = decimal
        if isinstance(native, Table):
            native, self.decimal = native.native, native.decimal
        if not is_frame(native):
            raise TypeError(
                f"columns are chosen by name from a data frame of pandas, polars or pyarrow, found "
                f"{type(native).__name__}; wellcal.reading.read_table reads one from a file"
            )
        self.names = _distinct_names(native)
        if type(native).__name__ == "RecordBatch":
            native = importlib.import_module("pyarrow").Table.from_batches([native])
        try:
            self._frame: Any = _narwhals().from_native(native, eager_only=True)
        except TypeError as error:
            raise TypeError(
                f"a {type(native).__name__} cannot be asked for its values: collect it into a data frame "
                "first"
            ) from error
        self.native: Any = self._frame.to_native()
        self.index: Labels | None = labels_of(self.native)
        self._position = {name: k for k, name in enumerate(self.names)}
        # Asked once: narwhals looks at all columns whenever it is asked for one of them by its place.
        schema: Any = self._frame.schema
        self._own_names, self._kinds = list(schema.names()), list(schema.dtypes())

    def __len__(self) -> int:
        return len(self._frame)

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers, by its type; truth values are none."""
        return bool(self._kinds[self._position[name]].is_numeric())

    def holds_lists(self, name: str) -> bool:
        """Whether a column holds a list of numbers in each row, by its type or by its first value."""
        kind = self._kinds[self._position[name]]
        if str(kind).partition("(")[0] in ("List", "Array"):
            return True
        if str(kind) != "Object" or not len(self):
            return False
        first = self._column(name)[0]
        return isinstance(first, (list, tuple)) or (isinstance(first, np.ndarray) and first.ndim == 1)

    def column(self, name: str) -> Any:
        """A column in its own library."""
        return self._column(name).to_native()

    def _column(self, name: str) -> Any:
        return self._frame.get_column(self._own_names[self._position[name]])

    # -- values ------------------------------------------------------------------------------

    def numbers_or_nan(self, names: Sequence[str]) -> NDArray:
        """Columns as floating numbers, ``(n, k)``, with NaN where a value is missing."""
        columns = [self._position[name] for name in names]
        chosen = self._frame[:, columns]
        values: NDArray = (
            chosen.to_numpy()
            if all(kind.is_numeric() for kind in chosen.schema.dtypes())
            else np.empty(0, dtype=object)
        )
        if values.dtype.kind not in "iuf":
            values = np.column_stack([self._numbers_of(name) for name in names])
        if values.dtype.kind != "f" or values.dtype.itemsize < 4:
            values = values.astype(np.float64)
        return values

    def numbers(self, names: Sequence[str]) -> NDArray:
        """Columns as finite floating numbers, ``(n, k)``; an error names the column and the first bad row."""
        values = self.numbers_or_nan(names)
        self._refuse_missing(names, np.isnan(values))
        if not np.all(np.isfinite(values)):
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise RowError(
                f"column {names[column]!r} must hold finite numbers: found {values[row, column]} in ",
                Row(int(row)),
                argument=names[int(column)],
                remedy="check the model's output",
            )
        return values

    def vectors(self, name: str) -> NDArray:
        """A column of lists as floating numbers, ``(n, k)``: the lists are equally long and hold no gaps."""
        column = self._column(name).to_arrow()
        column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        self._refuse_missing([name], np.asarray(column.is_null())[:, None])
        inner = column.flatten()
        n, size = len(self), len(inner)
        known = hasattr(column, "value_lengths")  # fixed lists have one length
        lengths = np.asarray(column.value_lengths()) if known else np.full(n, size // n)
        other = np.flatnonzero(lengths != lengths[0])
        if len(other) or lengths[0] == 0:
            row = int(other[0]) if len(other) else 0
            raise RowError(
                f"column {name!r} must hold lists of one length, with a number at least: found "
                f"{int(lengths[row])} numbers in ",
                Row(row),
                *((f" and {int(lengths[0])} in ", Row(0)) if row else ()),
                argument=name,
                remedy="give all rows equally many",
            )
        try:
            values = inner.to_numpy(zero_copy_only=False).astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"column {name!r} must hold lists of numbers; name another column") from None
        values = values.reshape(n, -1)
        self._refuse_missing([name], np.isnan(values).any(axis=1)[:, None])
        if not np.isfinite(values).all():
            row, place = np.argwhere(~np.isfinite(values))[0]
            raise RowError(
                f"column {name!r} must hold lists of finite numbers: found {values[row, place]} in ",
                Row(int(row)),
                argument=name,
                remedy="check the model's output",
            )
        return values

    def _numbers_of(self, name: str) -> NDArray:
        column = self._column(name)
        missing = self.missing(name)
        values: NDArray = column.to_numpy()
        found = np.full(len(self), np.nan)
        try:
            kept: NDArray = values[~missing]
            if kept.dtype.kind in "mMSU" or any(isinstance(x, (str, bytes)) for x in kept.tolist()):
                raise TypeError
            found[~missing] = kept.astype(np.float64)
        except (TypeError, ValueError):
            raise self._not_numbers(name, values, missing) from None
        return found

    def _not_numbers(self, name: str, values: NDArray, missing: NDArray) -> TypeError:
        told = f"column {name!r} must hold numbers, found text or objects"
        rows = np.flatnonzero(~missing)
        entries: list[Any] = [values[row] for row in rows.tolist()]
        place = first_strange(entries, self.decimal)
        if place is None:
            return TypeError(f"{told}; convert it to numbers first")
        item, remedy = entries[place], "name another column"
        shown = f" (of type {type(item).__name__} in "
        if isinstance(item, str):
            remedy = about_entry(item, entries, self.decimal) or remedy
            shown = f" ({item[:40]!r} in "
        return RowTypeError(told, shown, Row(int(rows[place])), ")", argument=name, remedy=remedy)

    def about_commas(self, names: Sequence[str]) -> str:
        """Which columns hold texts that look like numbers with commas, and what to do; empty if none does."""
        found: dict[str, str] = {}
        entries: list[Any] = []
        for name in names:
            if self.decimal == "." and not self.is_numeric(name) and not self.holds_lists(name):
                column: list[Any] = self._column(name).to_numpy()[~self.missing(name)].tolist()
                if text := commas_in(column):
                    found[name] = text
                    entries.extend(column)
        if not found:
            return ""
        first = next(iter(found.values()))
        hold = f"hold{'s' if len(found) == 1 else ''} texts, such as {first[:40]!r}"
        return f"{shown_names(list(found))} {hold}: {about_comma(first, entries)}"

    def labels(self, name: str) -> NDArray:
        """A column as labels: numbers and truth values as they are, texts and categories by their names."""
        self._refuse_missing([name], self.missing(name)[:, None])
        column = by_its_clocks(self._column(name))
        values: NDArray = column.to_numpy()
        if values.dtype.kind in "biufmM":
            return values
        items: list[Any] = values.tolist()
        if all(isinstance(item, str) for item in items):
            return np.asarray(items, dtype=np.str_)
        if all(isinstance(item, (bool, np.bool_)) for item in items):
            return np.asarray(items, dtype=np.bool_)
        if column.dtype.is_numeric() or all(isinstance(x, (int, float, np.number)) for x in items):
            return values.astype(np.float64)
        kinds = sorted({type(item).__name__ for item in items})
        raise TypeError(
            f"column {name!r} must hold numbers, truth values or texts, found {', '.join(kinds[:_SHOWN])}; "
            "name another column, or convert it first"
        )

    def texts(self, name: str) -> set[str]:
        """All different texts of a column; none where it holds something else."""
        if self.is_numeric(name) or self.holds_lists(name):
            return set()
        found: list[Any] = self._column(name).unique().to_list()
        return {item for item in found if isinstance(item, str) and not _no_value(item)}

    # -- what is missing -----------------------------------------------------------------------

    def missing(self, name: str) -> NDArray:
        """Where a column has no value, ``(n,)``: null, NaN, a list with one of them, or an empty text."""
        column = self._column(name)
        found = np.asarray(column.is_null().to_numpy(), dtype=np.bool_)
        if column.dtype.is_float():
            return found | np.isnan(column.to_numpy().astype(np.float64))
        if column.dtype.is_numeric():
            return found
        items: list[Any] = column.to_numpy().tolist()
        return found | np.asarray([_no_value(x) for x in items], dtype=np.bool_)

    def _refuse_missing(self, names: Sequence[str], missing: NDArray) -> None:
        if not missing.any():
            return
        counts = missing.sum(axis=0)
        columns = np.flatnonzero(counts)
        rows = np.flatnonzero(missing.any(axis=1))
        found = {names[k]: int(counts[k]) for k in columns.tolist()}
        raise missing_values(found, len(rows), len(missing), int(rows[0]))

    def refuse_missing(self, names: Sequence[str]) -> None:
        """Refuse rows in which one of some columns has no value, with how many there are, and where."""
        self._refuse_missing(names, np.column_stack([self.missing(name) for name in names]))

    def kept(self, rows: NDArray) -> Any:
        """The frame with the rows where `rows` holds, in its own library."""
        mask: Any = rows.tolist()
        return self._frame.filter(mask).to_native()


def missing_values(
    by_column: Mapping[str, int], rows: int, total: int, first: int, *, so_far: bool = False
) -> MissingValuesError:
    """The error about rows without a value: how many there are, in which columns, and where the first is.

    `so_far` says that more rows may follow the `total` that were looked at.
    """
    looked = f"the first {total}" if so_far else str(total)
    where = ", ".join(f"{name!r} ({count})" for name, count in list(by_column.items())[:_SHOWN])
    more = f" and {len(by_column) - _SHOWN} columns more" if len(by_column) > _SHOWN else ""
    return MissingValuesError(
        f"values are missing in {rows} of {looked} rows: {where}{more}, the first in ",
        Row(first),
        argument=next(iter(by_column)),
        remedy="fill them in, or leave such rows out (wellcal.reading.drop_missing)",
    )


def _no_value(x: Any) -> bool:
    if isinstance(x, str):
        return not x.strip()
    if isinstance(x, (list, tuple, np.ndarray)):
        return any(item is None or item != item for item in np.asarray(x, dtype=object).ravel().tolist())
    return isinstance(x, float) and x != x


def shown_names(names: Sequence[str], most: int = _SHOWN) -> str:
    """A few names for an error, and how many there are more.

    Examples
    --------
    >>> shown_names(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def _distinct_names(native: Any) -> list[str]:
    given = getattr(native, "column_names", None)
    if type(native).__name__ == "LazyFrame":
        raise TypeError("a LazyFrame cannot be asked for its values: collect it into a data frame first")
    names = [str(name) for name in list(native.columns if given is None else given)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(
            f"the name of a column must occur once: found {shown_names(twice)} more than once; rename columns"
        )
    return names


def _narwhals() -> Any:
    try:
        return importlib.import_module("narwhals")
    except ImportError:
        raise ImportError(
            "data frames are looked at through narwhals, which is not installed: pip install 'wellcal[cli]'"
        ) from None
