"""How large a file is before it is read: rows, columns, and the memory that it would take."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wellcal.reading.errors import ReadError, library, reading
from wellcal.reading.sources import SourceFile, source_file

_NUMBER = 8  # bytes
_COMPRESSED = 4.0  # how much longer a text is than its compressed file
_COPIES, _CASE = 6.0, 2600.0
"""Peak memory of a test above that of libraries, as measured for up to a million cases: copies of the table,
and bytes that are computed of each case that is tested."""

_OF_ROLES = {
    "poisson": (_COPIES, 14_000.0),
    "samples": (20.0, 3_000.0),
    "mixture": (15.0, 7_000.0),
}
"""The same of families that need more: tables of counts, draws that are pooled with targets, parts."""

_CHUNKS, _SEARCH, _FEW = 130e6, 250e6, 30_000.0
"""What temporary arrays take once they are as large as they get, of a test and of a search for groups; and
what a case takes as long as they are not."""

_TABLES = {"negative_binomial": 0.75e9}
"""Tables of counts of a model, once they are as large as they get."""

_SEARCHED = {"probs": 90.0}
"""Copies of the table that a search for groups has beside those of a test: directions for each class."""

_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)
_FREE = Path("/proc/meminfo")
_GROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current"))


@dataclass(frozen=True)
class FileSize:
    """What is known of a file without reading it.

    Parameters
    ----------
    rows
        Number of rows: exact for Parquet, an estimate for texts, None where nothing is known.
    columns
        Number of columns, or None.
    table
        Bytes of all columns in memory.
    """

    rows: int | None
    columns: int | None
    table: int

    def needed(
        self, role: str | None = None, tested: int | None = None, models: int = 1, searched: bool = False
    ) -> int:
        """Bytes that a test needs, about, above what the program takes by itself.

        Parameters
        ----------
        role
            The role of the columns, such as "poisson"; None where it is not known.
        tested
            Cases that are tested at most, of all that are read; None for all.
        models
            How many are tested, each of them on all these cases.
        searched
            Whether groups of cases are looked for.
        """
        rows = self.table / (_NUMBER * (self.columns or 3)) if self.rows is None else self.rows
        share = 1.0 if tested is None or rows <= tested else tested / rows
        copies, case = _OF_ROLES.get(role or "", (_COPIES, _CASE))
        copies += _SEARCHED.get(role or "", 0.0) * searched
        read = min(copies, 2.5 * _COPIES)  # what is not tested is scored
        chunks = min(_FEW * share * rows, _SEARCH if searched else _CHUNKS)
        chunks += models * min(_FEW * share * rows, _TABLES.get(role or "", 0.0))
        return int(self.table * (read + share * (copies - read)) + models * case * share * rows + chunks)


def file_size(path: str | os.PathLike[str], format: str | None = None) -> FileSize | None:
    r"""Rows, columns and memory of a file, by its metadata and first lines; None for standard input.

    Parameters
    ----------
    path, format
        As in :func:`wellcal.reading.read_table`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "predictions.csv"
    ...     _ = path.write_text("y,mu,sigma\n" + "0.3,0.0,1.0\n" * 100)
    ...     file_size(path)
    FileSize(rows=100, columns=3, table=2400)
    """
    if os.fspath(path) == "-":
        return None
    source = source_file(path, format)
    with reading(source.name, source.format):
        if source.format == "parquet" and source.compression is None:
            metadata = library("pyarrow.parquet").read_metadata(source.whole())
            stored = sum(metadata.row_group(k).total_byte_size for k in range(metadata.num_row_groups))
            rows, columns = int(metadata.num_rows), int(metadata.num_columns)
            return FileSize(rows, columns, max(int(_NUMBER * rows * row_values(metadata)), int(stored)))
        size = os.path.getsize(path) * (1.0 if source.compression is None else _COMPRESSED)
        if source.format in ("csv", "tsv", "jsonl"):
            return _of_text(source, size)
        return FileSize(None, None, int(size))


def row_values(metadata: Any, names: Collection[str] | None = None) -> float:
    """Numbers in a row of a Parquet file, those in lists too, as its first rows have them.

    `names` are the columns that count; None for all.
    """
    groups = (metadata.row_group(k) for k in range(metadata.num_row_groups))
    first = next((group for group in groups if group.num_rows), None)
    found = 0.0
    for k in range(metadata.num_columns):
        column = metadata.schema.column(k)
        if names is None or column.path.partition(".")[0] in names or column.path in names:
            listed = column.max_repetition_level > 0
            found += (
                1.0 if first is None or not listed else max(first.column(k).num_values / first.num_rows, 1.0)
            )
    return found


def _of_text(source: SourceFile, size: float) -> FileSize:
    lines = source.head.split(b"\n")[:-1] or [source.head]
    header, rest = (b"", lines) if source.format == "jsonl" else (lines[0], lines[1:] or lines)
    length = sum(len(line) + 1 for line in rest) / len(rest)
    rows = max(round((size - (len(header) + 1 if header else 0)) / length), 1)
    if source.format == "jsonl":
        return FileSize(rows, None, int(size))
    columns = max(header.count(sign) for sign in (b",", b"\t", b";", b"|")) + 1
    return FileSize(rows, columns, _NUMBER * rows * columns)


def free_memory() -> int | None:
    """Bytes that are free, also where the process is confined to a part of the machine; None if unknown."""
    found: list[int] = []
    try:
        lines = dict(line.split(":", 1) for line in _FREE.read_text().splitlines())
        found.append(int(lines["MemAvailable"].split()[0]) * 1024)
    except (OSError, KeyError, ValueError):
        pass
    try:
        limit, used = (int(path.read_text()) for path in _GROUPS)
        found.append(max(limit - used, 0))
    except (OSError, ValueError):  # "max" where there is no limit
        pass
    return min(found) if found else None


def memory_size(text: str) -> int:
    """Bytes that a text such as 4GB says.

    Examples
    --------
    >>> memory_size("4GB"), memory_size("512 MiB"), memory_size("1000")
    (4000000000, 536870912, 1000)
    """
    match = _SIZE.fullmatch(text)
    if match is None or float(match[1]) <= 0.0:
        raise ValueError(f"memory must be a size such as 4GB or 512MB, found {text!r}")
    power = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}[match[2].upper()]
    unit = 1024.0**power if match[3] else _UNITS[match[2].upper()]
    return int(float(match[1]) * unit)


def shown_size(size: float) -> str:
    """A number of bytes for people.

    Examples
    --------
    >>> shown_size(1.234e9), shown_size(56e6), shown_size(412e6), shown_size(999e6)
    ('1.2 GB', '56 MB', '410 MB', '1 GB')
    """
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if size >= 0.995 * unit:
            return f"{float(f'{size / unit:.2g}'):g} {name}"
    return f"{max(size / 1e3, 1.0):.0f} kB"


def refuse_too_large(
    path: str | os.PathLike[str],
    format: str | None = None,
    limit: int | None = None,
    role: str | None = None,
    tested: int | None = None,
    models: int = 1,
    searched: bool = False,
) -> None:
    """Refuse a file that needs more memory than there is, before it is read.

    Parameters
    ----------
    path, format
        As in :func:`wellcal.reading.read_table`.
    limit
        Bytes that may be used; None takes what is free.
    role, tested, models, searched
        As in `FileSize.needed`.

    Raises
    ------
    ReadError
        It says how much would be needed, and what can be done.
    """
    size = file_size(path, format)
    have = free_memory() if limit is None else limit
    if size is None or have is None or (needed := size.needed(role, tested, models, searched)) <= have:
        return
    known = "" if size.rows is None else f" ({size.rows:,} rows"
    known += "" if not known else (")" if size.columns is None else f" of {size.columns:,} columns)")
    allowed = "are free" if limit is None else "may be used"
    raise ReadError(
        f"{os.fspath(path)}: to look at all cases at once{known} about {shown_size(needed)} of memory "
        f"are needed, and {shown_size(have)} {allowed}; scores and monitor read a file of any size in parts, "
        "or write some of the rows, drawn at random, into a file of their own"
    )
