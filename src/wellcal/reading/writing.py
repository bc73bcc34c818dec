"""Tables into files that are there in full, or not at all."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wellcal._arrays.files import check_suffix, naming, write_whole
from wellcal._arrays.namespaces import NDArray
from wellcal.columns.selection import Selection
from wellcal.predictions.base import Predictions
from wellcal.predictions.column_roles import ColumnReading
from wellcal.reading.errors import library
from wellcal.reading.sources import SUFFIXES

WRITTEN = {suffix: kind for suffix, kind in SUFFIXES.items() if suffix not in (".json", ".npy")}
"""Formats that are written, by the end of the name: lines of JSON are not JSON, and NPY holds no columns."""


def written_format(path: str | os.PathLike[str]) -> str:
    """The format that a name asks for, or an error that says which there are.

    Examples
    --------
    >>> written_format("recalibrated.parquet")
    'parquet'
    """
    return WRITTEN[check_suffix(path, "a table", *WRITTEN)]


def write_table(table: Any, path: str | os.PathLike[str]) -> None:
    """Write a table of pyarrow under a temporary name, and move it into place.

    Parameters
    ----------
    table
        A table of pyarrow.
    path
        Where it goes; the end of its name says the format.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> from wellcal.reading import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(pa.table({"y": [1.5, 2.0]}), Path(folder) / "y.csv")
    ...     read_table(Path(folder) / "y.csv").to_pydict()
    {'y': [1.5, 2.0]}
    """
    kind = written_format(path)
    if kind in ("csv", "tsv", "npz"):
        _refuse_lists(table, path)
    if kind in ("jsonl", "npz"):
        table = _without_decimals(table)
    if kind == "jsonl":
        import json

        lines = (json.dumps(row, default=str) for row in table.to_pylist())
        write_whole(path, "".join(f"{line}\n" for line in lines))
        return
    with naming(path):
        sink = io.BytesIO()
        if kind == "parquet":
            library("pyarrow.parquet").write_table(table, sink)
        elif kind == "arrow":
            library("pyarrow.feather").write_feather(table, sink, compression="uncompressed")
        elif kind == "npz":
            np.savez(sink, **{name: _array(table[name]) for name in table.column_names})
        else:
            _write_lines(table, sink, "\t" if kind == "tsv" else ",")
    write_whole(path, sink.getvalue())


def _write_lines(table: Any, sink: io.BytesIO, delimiter: str) -> None:
    """Write a table as text, with quotation marks around texts only where one of them needs them."""
    arrow, pyarrow = library("pyarrow.csv"), library("pyarrow")
    for style in ("none", "needed"):
        sink.seek(0)
        sink.truncate()
        options = arrow.WriteOptions(delimiter=delimiter, quoting_style=style)
        try:
            return arrow.write_csv(table, sink, write_options=options)
        except pyarrow.ArrowInvalid:  # a delimiter or a line break in a text
            if style == "needed":
                raise
    return None


def _refuse_lists(table: Any, path: str | os.PathLike[str]) -> None:
    lists = [field.name for field in table.schema if "list" in str(field.type)]
    if lists:
        raise ValueError(
            f"{os.fspath(path)}: column {lists[0]!r} holds lists, which such a file has no place for; write "
            ".parquet, .arrow or .jsonl"
        )


def _without_decimals(table: Any) -> Any:
    """Decimal numbers as floating ones, where a file would have them as texts."""
    pyarrow, types = library("pyarrow"), library("pyarrow.types")
    fields = [
        field.with_type(pyarrow.float64()) if types.is_decimal(field.type) else field
        for field in table.schema
    ]
    return table.cast(pyarrow.schema(fields, metadata=table.schema.metadata))


def _lists(pyarrow: Any, values: NDArray) -> Any:
    """Rows of an array as lists, one in each row of a column."""
    ends = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    return pyarrow.ListArray.from_arrays(ends, pyarrow.array(np.ascontiguousarray(values).ravel()))


def _array(column: Any) -> Any:
    values: Any = column.to_numpy()
    return values.astype(np.str_) if values.dtype.kind == "O" else values


def with_columns(table: Any, columns: Mapping[str, NDArray]) -> Any:
    """The table with other values in some columns, and with new ones at its end.

    Examples
    --------
    >>> import pyarrow as pa
    >>> with_columns(
    ...     pa.table({"y": [1], "s": [2.0]}), {"s": np.array([3.0]), "t": np.array([4.0])}
    ... ).to_pydict()
    {'y': [1], 's': [3.0], 't': [4.0]}
    """
    pyarrow = library("pyarrow")
    # One new table: to set thousands of columns one by one would copy the list of them as often.
    fields: list[Any] = list(table.schema)
    arrays: list[Any] = list(table.columns)
    names: list[str] = table.column_names
    places = {name: k for k, name in reversed(list(enumerate(names)))}
    for name, values in columns.items():
        plain = np.ascontiguousarray(values)
        array = _lists(pyarrow, values) if np.ndim(values) == 2 else pyarrow.array(plain)
        place = places.setdefault(name, len(fields))
        fields[place : place + 1] = [pyarrow.field(name, array.type)]
        arrays[place : place + 1] = [array]
    return pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields, metadata=table.schema.metadata))


def prediction_columns(
    reading: ColumnReading, pred: Predictions, taken: Sequence[str] = ()
) -> dict[str, NDArray]:
    """Return columns that hold `pred`, by name, from which `reading` would read these predictions.

    A parameter that was one number for all rows becomes a column of its own name, with a number after it if
    that is `taken` by a column that holds something else.

    Examples
    --------
    >>> import wellcal as wc
    >>> from wellcal.predictions.column_roles import resolve
    >>> reading = resolve(["y", "m"], "normal", ("m", 2.0))
    >>> {name: x.tolist() for name, x in prediction_columns(reading, wc.Normal([0.5], [3.0])).items()}
    {'m': [0.5], 'scale': [3.0]}
    >>> list(prediction_columns(reading, wc.Normal([0.5], [3.0]), ["y", "m", "scale"]))
    ['m', 'scale_2']
    """
    columns: dict[str, NDArray] = {}
    batch: Any = pred
    for part, component in zip(reading.parts, getattr(batch, "components", ()), strict=bool(reading.parts)):
        columns |= prediction_columns(part, component, [*taken, *columns])
    fields_of = {spec.called or name: name for name, spec in reading.role.family.parameter_fields.items()}
    for name, source in reading.sources.items():
        values = np.asarray(getattr(batch, fields_of[name]), dtype=np.float64)
        if isinstance(source, Selection):
            names = source.names
        elif values.ndim == 1 or reading.vectors is None:
            names = (_free_name(name, taken),)
        else:
            names = tuple(_free_name(f"{name}_{part}", taken) for part in reading.vectors.parts)
        if values.ndim == 3 and len(names) < values.shape[1] ** 2:
            low = np.tril_indices(values.shape[1])
            values = values[:, low[0], low[1]]
        flat = values.reshape(len(values), -1)
        each = zip(names, flat.T, strict=True) if len(names) == flat.shape[1] else [(names[0], values)]
        columns |= dict(each)
    return columns


def _free_name(name: str, taken: Sequence[str]) -> str:
    numbered = (f"{name}_{k}" for k in itertools.count(2))
    return next(free for free in itertools.chain([name], numbered) if free not in taken)
