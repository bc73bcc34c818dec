"""Data frames of any library (pandas, polars, pyarrow) as columns of numbers and labels.

Narwhals reads them, and is imported when there is a frame to read.
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
from wellcal.columns.number_texts import about_entry, first_strange

_SHOWN = 6


def is_frame(obj: object) -> bool:
    """True if an object is a data frame with named columns.

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
        The frame: of pandas, polars or pyarrow, or another that narwhals reads.
    decimal
        Decimal sign in the texts of the file that was read, for errors.

    Attributes
    ----------
    names
        Names of the columns, as distinct texts.
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
        try:
            narwhals: Any = importlib.import_module("narwhals")
        except ImportError:
            raise ImportError(
                "narwhals, which reads data frames, is not installed: pip install 'wellcal[cli]'"
            ) from None
        if type(native).__name__ == "LazyFrame":
            raise TypeError("a LazyFrame has no values yet: collect it into a data frame first")
        given = getattr(native, "column_names", None)  # of pyarrow, whose columns are the data
        self.names = [str(name) for name in list(native.columns if given is None else given)]
        if twice := [name for name, count in Counter(self.names).items() if count > 1]:
            raise ValueError(
                f"names of columns must be distinct: found {names_text(twice)} more than once; rename"
            )
        if type(native).__name__ == "RecordBatch":
            native = importlib.import_module("pyarrow").Table.from_batches([native])
        self._frame: Any = narwhals.from_native(native, eager_only=True)
        self.native: Any = self._frame.to_native()
        self.index: Labels | None = labels_of(self.native)
        schema: Any = self._frame.schema  # once: narwhals looks at all columns for each question
        self._columns = dict(zip(self.names, schema.items(), strict=True))

    def __len__(self) -> int:
        return len(self._frame)

    def is_numeric(self, name: str) -> bool:
        """True if a column holds numbers, by its type; truth values are none."""
        return bool(self._columns[name][1].is_numeric())

    def holds_lists(self, name: str) -> bool:
        """True if a column holds a list of numbers in each row, by its type or its first value."""
        kind = str(self._columns[name][1]).partition("(")[0]
        if kind != "Object" or not len(self):
            return kind in ("List", "Array")
        first = self._column(name)[0]
        return isinstance(first, (list, tuple)) or (isinstance(first, np.ndarray) and first.ndim == 1)

    def column(self, name: str) -> Any:
        """Return a column in its own library."""
        return self._column(name).to_native()

    def _column(self, name: str) -> Any:
        return self._frame.get_column(self._columns[name][0])

    # -- values ------------------------------------------------------------------------------

    def numbers_or_nan(self, names: Sequence[str]) -> NDArray:
        """Return columns as floating numbers ``(n, k)``, with NaN for missing values."""
        values: NDArray = np.empty(0, dtype=object)
        if all(map(self.is_numeric, names)):
            places = {name: k for k, name in enumerate(self.names)}
            values = self._frame[:, [places[name] for name in names]].to_numpy()
        if values.dtype.kind not in "iuf":
            values = np.column_stack([self._numbers_of(name) for name in names])
        single = values.dtype.kind == "f" and values.dtype.itemsize >= 4
        return values if single else values.astype(np.float64)

    def numbers(self, names: Sequence[str]) -> NDArray:
        """Return columns as finite floating numbers ``(n, k)``, or raise with the first bad row."""
        values = self.numbers_or_nan(names)
        self._refuse_missing(names, np.isnan(values))
        for name, column in zip(names, values.T, strict=True):
            _refuse_infinite(column[:, None], name, "finite numbers")
        return values

    def vectors(self, name: str) -> NDArray:
        """Return a column of lists of one length as finite floating numbers ``(n, k)``."""
        column = self._column(name).to_arrow()
        column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        self._refuse_missing([name], np.asarray(column.is_null())[:, None])
        lengths = np.asarray(importlib.import_module("pyarrow.compute").list_value_length(column))
        other = np.flatnonzero(lengths != lengths[0])
        if len(other) or lengths[0] == 0:
            row = int(other[0]) if len(other) else 0
            wanted = f"column {name!r} must hold lists of one length, with a number at least: "
            counts = f"found {int(lengths[row])} numbers in ", Row(row), f" and {int(lengths[0])} in ", Row(0)
            raise RowError(wanted, *counts, argument=name, remedy="give all rows equally many")
        try:
            values = column.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"column {name!r} must hold lists of numbers; name another column") from None
        values = values.reshape(len(self), -1)
        self._refuse_missing([name], np.isnan(values).any(axis=1)[:, None])
        _refuse_infinite(values, name, "lists of finite numbers")
        return values

    def _numbers_of(self, name: str) -> NDArray:
        missing = self.missing(name)
        values: NDArray = self._column(name).to_numpy()
        entries: list[Any] = values[~missing].tolist()
        numbers = np.full(len(self), np.nan)
        try:
            if values.dtype.kind in "mMSU" or any(isinstance(entry, (str, bytes)) for entry in entries):
                raise TypeError
            numbers[~missing] = np.asarray(entries, dtype=np.float64)
        except (TypeError, ValueError):
            raise self._not_numbers(name, entries, np.flatnonzero(~missing)) from None
        return numbers

    def _not_numbers(self, name: str, entries: list[Any], rows: NDArray) -> TypeError:
        problem, remedy = f"column {name!r} must hold numbers, found text or objects", "name another column"
        place = first_strange(entries, self.decimal)
        if place is None:
            return TypeError(f"{problem}; convert it to numbers first")
        entry = entries[place]
        shown = f" (of type {type(entry).__name__} in "
        if isinstance(entry, str):
            remedy = about_entry(entry, entries, self.decimal) or remedy
            shown = f" ({entry[:40]!r} in "
        return RowTypeError(problem, shown, Row(int(rows[place])), ")", argument=name, remedy=remedy)

    def labels(self, name: str) -> NDArray:
        """Return a column as labels: numbers and truth values as they are, texts and categories by name."""
        self._refuse_missing([name], self.missing(name)[:, None])
        values: NDArray = by_its_clocks(self._column(name)).to_numpy()
        if values.dtype.kind in "biufmM":
            return values
        items: list[Any] = values.tolist()
        kinds_of = {np.str_: str, np.bool_: (bool, np.bool_), np.float64: (int, float, np.number)}
        for dtype, kinds in kinds_of.items():
            if all(isinstance(item, kinds) for item in items):
                return np.asarray(items, dtype=dtype)
        if self.is_numeric(name):
            return values.astype(np.float64)
        kinds = sorted({type(item).__name__ for item in items})
        raise TypeError(
            f"column {name!r} must hold numbers, truth values or texts, found {', '.join(kinds[:_SHOWN])}; "
            "name another column, or convert it first"
        )

    # -- missing values ------------------------------------------------------------------------

    def missing(self, name: str) -> NDArray:
        """Mark rows without a value, ``(n,)``: null, NaN, a list with one of them, or an empty text."""
        column = self._column(name)
        null = np.asarray(column.is_null().to_numpy(), dtype=np.bool_)
        if column.dtype.is_float():
            return null | np.isnan(column.to_numpy().astype(np.float64))
        if column.dtype.is_numeric():
            return null
        return null | np.asarray([_no_value(x) for x in column.to_numpy().tolist()], dtype=np.bool_)

    def _refuse_missing(self, names: Sequence[str], missing: NDArray) -> None:
        rows = np.flatnonzero(missing.any(axis=1))
        if len(rows):
            counts = dict(zip(names, missing.sum(axis=0).tolist(), strict=True))
            by_column = {name: count for name, count in counts.items() if count}
            raise missing_values(by_column, len(rows), len(missing), int(rows[0]))

    def refuse_missing(self, names: Sequence[str]) -> None:
        """Raise if columns have rows without a value, with their number and the first."""
        self._refuse_missing(names, np.column_stack([self.missing(name) for name in names]))

    def rows_where(self, rows: NDArray) -> Any:
        """Return the frame with the rows for which `rows` holds, in its own library."""
        mask: Any = rows.tolist()
        return self._frame.filter(mask).to_native()


def missing_values(
    by_column: Mapping[str, int], rows: int, total: int, first: int, *, so_far: bool = False
) -> MissingValuesError:
    """Make the error about rows without a value: their number, columns, and the first row.

    With `so_far`, more rows may follow the `total` that were read.
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


def _refuse_infinite(values: NDArray, name: str, what: str) -> None:
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        raise RowError(
            f"column {name!r} must hold {what}: found {values[tuple(bad[0])]} in ",
            Row(int(bad[0, 0])),
            argument=name,
            remedy="check the model's output",
        )


def _no_value(x: Any) -> bool:
    if isinstance(x, str):
        return not x.strip()
    if isinstance(x, (list, tuple, np.ndarray)):
        return any(item is None or item != item for item in np.asarray(x, dtype=object).ravel().tolist())
    return isinstance(x, float) and x != x


def names_text(names: Sequence[str], most: int = _SHOWN) -> str:
    """Write the first names for an error, and the number of further ones.

    Examples
    --------
    >>> names_text(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more
