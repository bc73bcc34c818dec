"""Folders of Parquet files as cases in partitions, which are read when they are needed and not kept."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from dask.utils import natural_sort_key

from wellcal._arrays.row_errors import retell
from wellcal.columns.frames import Table, names_text
from wellcal.columns.selection import select
from wellcal.dask.building import MadeOfColumns, Parts, Unmade
from wellcal.dask.partitioned import Partitioned
from wellcal.predictions.class_names import ordered_categories
from wellcal.predictions.column_roles import only_role, resolve


@dataclass(frozen=True)
class RowGroups:
    """Consecutive row groups of a Parquet file: a description, small enough to travel.

    Attributes
    ----------
    path
        The file, as workers find it.
    groups
        Numbers of the row groups.
    columns
        What is read, in this order: columns of the targets, or those of predictions.
    roles
        What the columns of predictions are; None for targets.
    """

    path: str
    groups: tuple[int, ...]
    columns: tuple[str, ...]
    roles: Mapping[str, Any] | None = None

    def load(self) -> Any:
        """Targets, or predictions that are yet to be made, in memory."""
        file = _parquet().ParquetFile(self.path)
        columns = list(self.columns)
        table = file.read_row_groups(list(self.groups), columns=columns).select(columns)
        if self.roles is None:
            return _targets(Table(table))
        return Unmade(MadeOfColumns(self.roles), (table,), int(table.num_rows))


def read_parquet(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    y: str | Sequence[str],
    rows: int = 1_000_000,
    **roles: Any,
) -> tuple[Parts, Partitioned]:
    """Targets and predictions of a folder of Parquet files, in partitions that are read when needed.

    Only the footers of the files are read at once. A partition consists of row groups of one file. It is
    described, not kept: whatever computes with it reads it, so that memory for two partitions a thread is
    enough, however large the folder is.

    Parameters
    ----------
    path
        A folder, with the files of all folders in it, in the order of their names, in which numbers count
        as numbers: ``part.2`` before ``part.10``, as Dask's own reader has them; a file; or a list of files,
        in its order. Workers must find them under the same names.
    y
        The column of the targets; several, a glob, or a column of lists, for vectors.
    rows
        Rows of a partition, about: row groups are joined until there are so many.
    roles
        Which columns predictions are made of, as in :func:`wellcal.as_predictions`:
        ``normal=("mu", "sigma")``.

    Returns
    -------
    y, pred
        As :func:`wellcal.skce` and the other functions take them.

    Examples
    --------
    >>> import tempfile, pandas as pd, wellcal as wc, wellcal.dask
    >>> frame = pd.DataFrame({"y": [0.3, 1.0, 2.2], "mu": [0.0, 1.0, 2.0], "sigma": [1.0, 1.0, 1.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_parquet(folder + "/part-0.parquet")
    ...     y, pred = wellcal.dask.read_parquet(folder, y="y", normal=("mu", "sigma"))
    ...     print(pred, wc.mse(y, pred))
    <Partitioned: 1 partition, 3 cases> MSE = 0.0433333 +- 0.02603  (mean, 3 cases)
    """
    only_role(roles)
    if rows < 1:
        raise ValueError(f"rows must be at least 1, found {rows}")
    targets: list[RowGroups] = []
    predictions: list[RowGroups] = []
    sizes: list[int] = []
    read: _Columns | None = None
    for file in _files(path):
        known = _opened(file)
        read = _columns(file, known, y, roles, read)
        for groups, size in _partitions(known, rows):
            targets.append(RowGroups(str(file), groups, read.targets))
            predictions.append(RowGroups(str(file), groups, read.predictions, dict(roles)))
            sizes.append(size)
    if not sizes:
        raise ValueError(f"{path}: the files have no rows")
    return Parts(tuple(targets)), Partitioned(tuple(predictions), tuple(sizes))


def _files(path: Any) -> list[Path]:
    if not isinstance(path, (str, os.PathLike)):
        found = [Path(one) for one in cast("Sequence[Any]", path)]
    else:
        folder = Path(cast("Any", path))
        found = sorted(folder.rglob("*.parquet"), key=_place) if folder.is_dir() else [folder]
        if not found:
            raise FileNotFoundError(f"{folder} has no files that end in .parquet; check the folder")
    for file in found:
        if not file.is_file():
            raise FileNotFoundError(f"{file} is not there; check its name")
    return found


def _place(file: Path) -> list[str | int]:
    """Where a file comes among others: by the rule that Dask reads and writes folders by."""
    return natural_sort_key(str(file))


def _opened(file: Path) -> Any:
    """A file, of which the footer is read."""
    try:
        known = _parquet().ParquetFile(str(file))
        _ = known.schema_arrow
    except Exception as error:  # pyarrow's errors share no class of their own
        raise ValueError(f"{file} is not a Parquet file that can be read: {error}") from error
    return known


class _Columns(NamedTuple):
    """Columns of targets and of predictions, no others are read; and the file in which they were found."""

    targets: tuple[str, ...]
    predictions: tuple[str, ...]
    file: Path


def _columns(file: Path, known: Any, y: Any, roles: Mapping[str, Any], before: _Columns | None) -> _Columns:
    """Columns of a file: those of the file `before`, in their order, which is that of classes and vectors."""
    names = list(known.schema_arrow.names)
    try:
        found = resolve(names, *only_role(roles))
        targets = select(names, y, "y")
        if found.vectors is not None:
            targets = targets.in_order_of(found.vectors, "the columns of targets and predictions")
    except (TypeError, ValueError) as error:
        retell(error, f"{file}: ")
    if before is None:
        return _Columns(targets.names, found.columns, file)
    odd = {*targets.names, *found.columns} ^ {*before.targets, *before.predictions}
    if odd:
        raise ValueError(
            f"{file} and {before.file} differ in the columns of targets and predictions: only one has "
            f"{names_text(sorted(odd))}; name columns that all files have, or read others by themselves"
        )
    return before


def _targets(table: Table) -> Any:
    """Targets as in memory: numbers, vectors, labels, or a column that says how its labels are ordered."""
    if len(table.names) > 1:
        return table.numbers(table.names)
    name = table.names[0]
    if table.holds_lists(name):
        return table.vectors(name)
    labels, column = table.labels(name), table.column(name)
    return labels if ordered_categories(column) is None else column.combine_chunks()


def _partitions(known: Any, rows: int) -> list[tuple[tuple[int, ...], int]]:
    """Row groups that make a partition, and how many rows they have."""
    found: list[tuple[tuple[int, ...], int]] = []
    groups: list[int] = []
    size = 0
    for k in range(known.num_row_groups):
        count = int(known.metadata.row_group(k).num_rows)
        if groups and size + count > rows:
            found.append((tuple(groups), size))
            groups, size = [], 0
        groups.append(k)
        size += count
    if size:
        found.append((tuple(groups), size))
    return found


def _parquet() -> Any:
    return importlib.import_module("pyarrow.parquet")
