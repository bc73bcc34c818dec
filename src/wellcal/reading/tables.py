"""Tables from files and from standard input, whole or in batches."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wellcal._arrays.checks import whole_number
from wellcal._arrays.row_errors import RowError
from wellcal.columns.frames import names_text
from wellcal.columns.selection import unknown_column
from wellcal.reading.arrays import array_table
from wellcal.reading.errors import ReadError, library, no_rows, reading
from wellcal.reading.kinds import Kinds
from wellcal.reading.sizes import row_values
from wellcal.reading.sources import FORMATS, TEXTS, SourceFile, source_file
from wellcal.reading.texts import TextFile

__all__ = ["FORMATS", "read_batches", "read_table"]

_ROWS, _NUMBERS = 1 << 17, 1 << 22
"""The most rows of a batch if nothing is said, and about the most numbers that are read at a time."""


@dataclass(frozen=True)
class Chosen:
    """Columns to read, and those among them that a text file reads as texts."""

    columns: Sequence[str]
    kinds: Kinds


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    format: str | None = None,
    decimal: str = ".",
    delimiter: str | None = None,
    encoding: str = "utf8",
) -> Any:
    r"""Read a file as a table of pyarrow, which :func:`wellcal.as_predictions` takes columns from.

    Parameters
    ----------
    path
        The file, or ``"-"`` for standard input. CSV, TSV and JSON lines may be compressed (.gz, .bz2, .zst).
    columns
        Names of the columns to read; None for all of them.
    format
        One of csv, tsv, parquet, arrow (also Feather), jsonl, npz, npy. None goes by the end of the name,
        and by the first bytes where that says nothing. Arrays ``(n, k)`` called p of an NPZ file are columns
        p_0, p_1 ...
    decimal, delimiter, encoding
        How numbers are written in CSV and TSV, what separates columns (None looks at the first line), and how
        letters are encoded.

    Raises
    ------
    ReadError
        The file cannot be read; the message says why, where, and what to do.

    Examples
    --------
    >>> import tempfile, wellcal as wc
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "predictions.csv"
    ...     _ = path.write_text("y,mu,sigma\n0.3,0.0,1.0\n1.2,1.0,2.0\n")
    ...     table = read_table(path)
    >>> wc.as_predictions(table, normal=("mu", "sigma"))
    <Normal: 2 predictions>
    """
    table, _ = read_labelled(
        path, None, columns, format=format, decimal=decimal, delimiter=delimiter, encoding=encoding
    )
    return table


def read_labelled(
    path: str | os.PathLike[str],
    kinds: Callable[[Any], Kinds] | None,
    columns: Sequence[str] | None = None,
    *,
    format: str | None = None,
    decimal: str = ".",
    delimiter: str | None = None,
    encoding: str = "utf8",
) -> tuple[Any, Kinds]:
    """:func:`read_table`, where `kinds` says, given rows of a text, which columns stay texts; and those.

    The first rows are asked. Where these say too little, all of them are, and the file is read again: an
    error of `kinds` is one about the whole file.
    """
    source = source_file(path, format)
    wanted = None if columns is None else [str(name) for name in columns]
    found = Kinds()
    if source.format in TEXTS:
        text = TextFile(source, wanted, decimal, delimiter, encoding)
        if kinds is not None and source.format != "jsonl":
            found = _asked(text, kinds)
            text.keep(found)
        table = text.table()
    elif source.format in ("npz", "npy"):
        table = array_table(source)
    else:
        with reading(source.name, source.format):
            table = _parquet(source, wanted) if source.format == "parquet" else _arrow(source)
    with reading(source.name, source.format):
        return _checked(table, source, wanted), found


def _asked(text: TextFile, kinds: Callable[[Any], Kinds]) -> Kinds:
    first = text.first_rows()
    if first is not None:
        with contextlib.suppress(TypeError, ValueError):  # all rows may say more, or have the same error
            return kinds(first)
    text.source = text.source.in_hand()
    rows = text.table()
    if rows.num_rows == 0:
        raise no_rows(text.source.name)
    return kinds(rows)


def read_batches(
    path: str | os.PathLike[str],
    columns: Sequence[str] | Callable[[Any], Sequence[str] | Chosen] | None = None,
    *,
    format: str | None = None,
    rows: int = _ROWS,
    decimal: str = ".",
    delimiter: str | None = None,
    encoding: str = "utf8",
) -> Generator[Any]:
    r"""Read a file in batches, each a table of pyarrow, so that it may be larger than memory.

    Parquet, Arrow, CSV, TSV and JSON lines are read a part at a time; NPZ and NPY are read whole, and handed
    out in
    parts. In batches of CSV all numbers are floating, and a column has the kind that it begins with.

    Parameters
    ----------
    path, format, decimal, delimiter, encoding
        As in :func:`read_table`.
    columns
        Names of the columns to read, or a function that says them, given the first rows; None for all.
    rows
        The most rows of a batch; it has fewer where rows are long, such as those of lists.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "stream.csv"
    ...     _ = path.write_text("y\n" + "0.5\n" * 5)
    ...     [batch.num_rows for batch in read_batches(path, rows=2)]
    [2, 2, 1]
    """
    whole_number(rows, "rows", least=1)
    source = source_file(path, format)
    text = TextFile(source, None, decimal, delimiter, encoding) if source.format in TEXTS else None
    parts: Iterator[Any] | None = None
    if callable(columns):
        first = None if text is None else text.first_rows()
        if first is None:
            parts = (part for part in _parts(source, text, None, rows) if part.num_rows)
            first = next(parts, None)
            if first is None:
                raise no_rows(source.name)
        chosen, first = _chosen(columns, first, text)
        # Only Parquet gains by being read again, without columns that nobody wants.
        if parts is not None:
            again = source.format == "parquet" and source.path is not None
            parts = None if again else itertools.chain([first], parts)
        if text is not None and parts is None:
            text.keep(chosen.kinds)
        columns = chosen.columns
    wanted = None if columns is None else [str(name) for name in columns]
    if text is not None:
        text.columns = wanted
    count = 0
    for part in _parts(source, text, wanted, rows) if parts is None else parts:
        with reading(source.name, source.format):
            table = _checked(part, source, wanted, least=0)
            pieces = _pieces(table, rows)
        count += table.num_rows
        yield from pieces
    if count == 0:
        raise no_rows(source.name)


def _chosen(
    columns: Callable[[Any], Sequence[str] | Chosen], first: Any, text: TextFile | None
) -> tuple[Chosen, Any]:
    """What is wanted, given the first rows; with columns that only later blocks of JSON have, if need be."""

    def asked(rows: Any) -> Chosen:
        said = columns(rows)
        return said if isinstance(said, Chosen) else Chosen([str(name) for name in said], Kinds())

    if text is None or text.source.format != "jsonl":
        return asked(first), first
    with contextlib.suppress(ValueError):  # of a name that is not there
        chosen = asked(first)
        if set(chosen.columns) <= set(first.column_names):
            return chosen, first
    first = text.with_later_columns(first)
    try:
        return asked(first), first
    except ValueError as error:
        about_rows = isinstance(error.__cause__ or error, (RowError, TypeError))
        if about_rows or not (remedy := text.is_unknown_after(first.num_rows)):
            raise
        raise ReadError(f"{error}; {remedy}") from error


def _parts(source: SourceFile, text: TextFile | None, wanted: list[str] | None, rows: int) -> Generator[Any]:
    if text is not None:
        yield from text.batches()
        return
    if source.format in ("npz", "npy"):
        yield array_table(source)
        return
    pyarrow = library("pyarrow")
    with reading(source.name, source.format):
        if source.format == "parquet":
            with _parquet_file(source) as file:
                _check_names(file.schema_arrow.names, source, wanted)
                step = _rows_at_once(rows, row_values(file.metadata, wanted))
                for batch in file.iter_batches(batch_size=step, columns=wanted, use_threads=False):
                    yield pyarrow.Table.from_batches([batch])
        else:
            for batch in _arrow_batches(source):
                yield pyarrow.Table.from_batches([batch])


def _pieces(table: Any, rows: int) -> list[Any]:
    """Parts of about the same size, of so many rows at most, and of as many numbers as are read at a time."""
    count = table.num_rows
    at_once = _rows_at_once(rows, table.nbytes / (8 * max(count, 1)))
    step = math.ceil(count / max(math.ceil(count / rows), math.ceil(0.9 * count / at_once), 1))
    return [table.slice(start, step) for start in range(0, count, max(step, 1))]


def _rows_at_once(rows: int, numbers: float) -> int:
    """So many rows, and fewer where each has many numbers."""
    return max(min(rows, int(_NUMBERS / max(numbers, 1.0))), 1)


def _parquet_file(source: SourceFile) -> Any:
    return library("pyarrow.parquet").ParquetFile(source.whole(), page_checksum_verification=True)


def _parquet(source: SourceFile, wanted: list[str] | None) -> Any:
    with _parquet_file(source) as file:
        _check_names(file.schema_arrow.names, source, wanted)
        return file.read(columns=wanted, use_threads=False)


def _arrow_batches(source: SourceFile) -> Generator[Any]:
    ipc, pyarrow = library("pyarrow.ipc"), library("pyarrow")
    whole = source.whole()
    opened: Any = (
        pyarrow.memory_map(whole) if isinstance(whole, str) else pyarrow.BufferReader(whole.getvalue())
    )
    with opened as file:
        if source.head.startswith(b"ARROW1"):
            reader = ipc.open_file(file)
            for k in range(reader.num_record_batches):
                yield _valid(reader.get_batch(k))
        else:
            for batch in ipc.open_stream(file):
                yield _valid(batch)


def _arrow(source: SourceFile) -> Any:
    batches = list(_arrow_batches(source))
    if not batches:
        raise no_rows(source.name)
    return library("pyarrow").Table.from_batches(batches)


def _valid(batch: Any) -> Any:
    batch.validate(full=True)  # the file is mapped, not parsed: what it claims may lead out of its memory
    return batch


def _check_names(names: Sequence[str], source: SourceFile, wanted: list[str] | None) -> None:
    if len(set(names)) < len(names):
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        raise ReadError(
            f"{source.name}: {names_text(twice)} is the name of several columns; rename them, so that each "
            "has a name of its own"
        )
    there = set(names)
    for name in wanted or ():
        if name not in there:
            raise ReadError(f"{source.name}: {unknown_column(names, name, 'columns')}")


def _checked(table: Any, source: SourceFile, wanted: list[str] | None, *, least: int = 1) -> Any:
    _check_names(table.column_names, source, wanted)
    if wanted is not None:
        table = table.select(wanted)
    if table.num_rows < least:
        raise no_rows(source.name)
    return table
