"""Where in a file a row of a message is: rows of files are counted from 1, as lines are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.row_errors import RowError
from wellcal.reading.errors import ReadError
from wellcal.reading.sources import source_file


@contextlib.contextmanager
def among_kept(rows: NDArray | None) -> Generator[None]:
    """Let errors about some rows of a table count all of its rows.

    Parameters
    ----------
    rows
        Positions in the table of the rows that were kept; None where all of them were.
    """
    try:
        yield
    except RowError as error:
        if rows is None:
            raise
        raise error.counted(lambda row: _at(rows, row)) from error


@contextlib.contextmanager
def naming_file(
    path: str | os.PathLike[str],
    start: int = 0,
    rows: NDArray | None = None,
    format: str | None = None,
) -> Generator[None]:
    """Let errors about columns name the file that they are in, and count rows as a reader of the file does.

    Parameters
    ----------
    path, format
        The file, as in :func:`wellcal.reading.read_table`.
    start
        Rows of the file before those that the errors are about.
    rows
        Which of the rows from there on were kept; None where all of them were.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        if isinstance(error, ReadError):
            raise
        name = "standard input" if os.fspath(path) == "-" else os.fspath(path)
        told = str(error)
        if isinstance(error, RowError):
            told = error.told(lambda row: _place(path, start + _at(rows, row), format))
        raise ReadError(f"{name}: {told}") from error


def called_by_row(rows: NDArray | None) -> Callable[[int], str]:
    """What cases of a file are called, given which of its rows were kept; None where all were.

    Examples
    --------
    >>> called_by_row(None)(0), called_by_row(np.array([3, 1234]))(1)
    ('row 1', 'row 1,235')
    """
    return lambda case: f"row {_at(rows, case) + 1:,}"


class RowsSeen:
    """Which rows of a file the cases of its parts are; only those that were dropped are remembered.

    Examples
    --------
    >>> seen = RowsSeen()
    >>> seen.add(2, np.array([1, 2]), dropped=1)
    >>> seen.add(2)
    >>> seen.rows, [seen.row(case) for case in range(4)]
    (5, [1, 2, 3, 4])
    """

    def __init__(self) -> None:
        self.rows = 0
        self._dropped: list[NDArray] = []

    def add(self, cases: int, kept: NDArray | None = None, dropped: int = 0) -> None:
        """Take in a part: its cases, their positions in it where not all rows are cases, and the others."""
        if dropped:
            where = np.arange(cases) if kept is None else kept
            others = np.setdiff1d(np.arange(cases + dropped), where, assume_unique=True)
            self._dropped.append(self.rows + others)
        self.rows += cases + dropped

    def row(self, case: int) -> int:
        """The row of a case, both counted from 0."""
        dropped = np.concatenate([np.empty(0, dtype=np.int64), *self._dropped])
        return case + int(np.searchsorted(dropped - np.arange(len(dropped)), case, side="right"))


def _at(rows: NDArray | None, row: int) -> int:
    return row if rows is None or row >= len(rows) else int(rows[row])


def _place(path: str | os.PathLike[str], row: int, format: str | None) -> str:
    line = _line(path, row, format)
    return f"row {row + 1}" if line is None else f"row {row + 1} (line {line})"


def _line(path: str | os.PathLike[str], row: int, format: str | None) -> int | None:
    """The line of a row of a text; None where each row does not have a line of its own, or it is no text."""
    if os.fspath(path) == "-":
        return None
    try:
        source = source_file(path, format)
        if source.format not in ("csv", "tsv", "jsonl") or source.compression is not None:
            return None
        wanted = row + (1 if source.format == "jsonl" else 2) + source.skipped.count(b"\n")
        with open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                quoted = source.format != "jsonl" and line.count(b'"') % 2 == 1
                if not line.strip() or quoted or b"\0" in line:
                    return None
                if number == wanted:
                    return number
    except (OSError, ValueError):  # the message is worth more than the line
        pass
    return None
