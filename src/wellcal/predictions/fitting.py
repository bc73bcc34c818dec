"""Which readings of columns fit the targets, and columns that are called as these are."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.columns.column_names import class_labels, only_texts
from wellcal.columns.frames import Table
from wellcal.columns.number_texts import says_number
from wellcal.columns.selection import Selection
from wellcal.predictions.discrete import Bernoulli
from wellcal.predictions.roles import ColumnReading
from wellcal.predictions.rounded_sums import rounding_bias

Reading = tuple[dict[str, Any], ColumnReading]
"""A role as it is given, and what it stands for."""

EXACT = 1e-6  # how far sums of probabilities are from one that were not rounded
_FEW_OTHERS = 6  # columns that are tried in all combinations
_BEGINS_AS_NUMBER = re.compile(r"\s*[-+]?[.,]?[0-9]")


def fitting_readings(table: Table, targets: Sequence[str], found: list[Reading]) -> list[Reading]:
    """Readings that the targets fit: texts are classes, and many numbers that are not whole are no events.

    Where none fits and some of the texts begin as numbers do, all are left: an entry is to be mended, and
    who reads the targets says which.

    Examples
    --------
    >>> import pandas as pd
    >>> from wellcal.predictions.roles import resolve
    >>> table = Table(pd.DataFrame({"y": ["a", "b"], "rate": [1, 2], "p_a": [0.5, 0.4], "p_b": [0.5, 0.6]}))
    >>> both = [({k: v}, resolve(table.names, k, v)) for k, v in {"poisson": "rate", "probs": "p_*"}.items()]
    >>> [roles for roles, _ in fitting_readings(table, ["y"], both)]
    [{'probs': 'p_*'}]
    """
    y = _labels(table, targets) if found else None
    if y is None:
        return found
    fitting = [each for each in found if _fits(y, each[1])]
    mistyped = y.dtype.kind == "U" and any(map(_BEGINS_AS_NUMBER.match, y.tolist()))
    return found if mistyped and not fitting else fitting


def misfit(table: Table, targets: Sequence[str], found: Sequence[Reading], remedy: str = "") -> ValueError:
    """The error about targets that fit none of the readings which the names of columns have."""
    y = cast("NDArray", _labels(table, targets))
    readings = " or ".join(f"[{reading.words()}]" for _, reading in found[:4])
    if y.dtype.kind == "U":
        kind, such, example = "texts", repr(str(y[0])[:40]), "probs='p_*'"
    else:
        kind, such = "numbers that are not whole", f"{_broken(y)[0]:g}"
        example = "normal=('mu', 'sigma')"
    usual = f"say which columns hold what was predicted, e.g. {example}, or the targets, with target="
    return ValueError(
        f"the columns can be read as {readings}, but the targets in {targets[0]!r} are {kind}, such as "
        f"{such}; {remedy or usual}"
    )


def _broken(y: NDArray) -> NDArray:
    """Numbers that are not whole, each once."""
    return np.unique(y[y != np.floor(y)])


def _labels(table: Table, targets: Sequence[str]) -> NDArray | None:
    """Targets that are there, as labels; None where there are none, or they are vectors or objects."""
    if len(targets) != 1 or table.holds_lists(targets[0]):
        return None
    there = Table(table.kept(~table.missing(targets[0])))  # rows without a target may be left out later
    try:
        return there.labels(targets[0]) if len(there) else None
    except TypeError:
        return None


def _fits(y: NDArray, reading: ColumnReading) -> bool:
    if y.dtype.kind == "U":
        return "classes" in reading.role.options
    if y.dtype.kind == "f" and issubclass(reading.role.family, Bernoulli):
        return len(_broken(y)) <= 2  # two may be classes, and one may be mistyped
    return True


def called_in_full(table: Table, targets: Sequence[str], reading: ColumnReading) -> ColumnReading:
    """A reading whose classes are called by the whole names of their columns, where all targets are.

    What the star of ``class_*`` stands for, or a range, has the names of classes otherwise.

    Examples
    --------
    >>> import pandas as pd
    >>> from wellcal.predictions.roles import resolve
    >>> table = Table(pd.DataFrame({"y": ["class_1"], "class_0": [0.3], "class_1": [0.7]}))
    >>> called_in_full(table, ["y"], resolve(table.names, "probs", "class_*")).batch(table).labels().tolist()
    ['class_0', 'class_1']
    """
    parts = tuple(called_in_full(table, targets, part) for part in reading.parts)
    source = None if reading.labels_from is None else reading.sources[reading.labels_from]
    if not isinstance(source, Selection) or source.parts == source.names:
        return replace(reading, parts=parts)
    known: set[str] = table.texts(targets[0]) if len(targets) == 1 else set()
    if not known or not known.issubset(source.names) or not known.isdisjoint(source.parts):
        return replace(reading, parts=parts)
    whole = replace(source, parts=source.names)
    return replace(reading, parts=parts, sources={**reading.sources, str(reading.labels_from): whole})


def _may_be_labels(y: NDArray) -> bool:
    return y.dtype.kind in "Ubiu" or (y.dtype.kind == "f" and bool(np.all(y == np.floor(y))))


def _are_among(y: NDArray, columns: Selection) -> bool:
    """Whether all targets are names of columns, as numbers or as texts.

    Numbers may be texts that a file has begun with: the next target may be V27.
    """
    if y.dtype.kind in "iuf" and only_texts(columns.parts):
        return bool(np.all(np.isin(y, [float(name) for name in columns.parts if says_number(name)])))
    known = class_labels(columns.parts, y)
    alike = (y.dtype.kind == "U") == isinstance(known[0], str)
    return alike and bool(np.all(np.isin(y, known)))


def columns_of_probabilities(table: Table, targets: Sequence[str]) -> list[str]:
    """Columns from 0 to 1 whose sum is about one in every row; none where targets cannot be classes.

    Where some are called as the targets are, or by numbers as these, they are among them, and others only if
    the sum needs them: folds and weights may be from 0 to 1, too. Values that are missing say nothing: rows
    without them may be left out later.

    Examples
    --------
    >>> import pandas as pd
    >>> columns_of_probabilities(Table(pd.DataFrame({"y": [1], "id": [7], "0": [0.3], "1": [0.7]})), ["y"])
    ['0', '1']
    >>> columns_of_probabilities(Table(pd.DataFrame({"y": [1], "fold": [1], "0": [0.3], "1": [0.7]})), ["y"])
    ['0', '1']
    """
    names = [name for name in table.names if name not in targets and table.is_numeric(name)]
    y = _labels(table, targets)
    if y is None or not _may_be_labels(y) or not names:
        return []
    values = table.numbers_or_nan(names)
    absent = np.isnan(values)
    inside = np.all(absent | ((values >= 0.0) & (values <= 1.0)), axis=0) & ~absent.all(axis=0)
    by_number = y.dtype.kind != "U"
    labels = set(map(str, y.tolist()))
    called = [name in labels or (by_number and says_number(name)) for name in names]
    core = [k for k in np.flatnonzero(inside).tolist() if called[k]]
    rest = [k for k in np.flatnonzero(inside).tolist() if not called[k]]
    chosen = _adding_up(values, core, rest) if core else _adding_up(values, [], rest, all_of_them=True)
    return [names[k] for k in sorted(chosen)] if len(chosen) > 1 else []


def _adding_up(values: NDArray, core: list[int], rest: list[int], *, all_of_them: bool = False) -> list[int]:
    """Columns whose sum is one in every row that is whole: the core, with as few of the others as it takes.

    Sums of probabilities that were rounded are about one, on average too: else a column is lacking. Of two
    choices the one is taken whose sums are nearer to one on average.
    """
    if all_of_them:
        exact = [rest]
    elif len(rest) <= _FEW_OTHERS:
        sizes = range(len(rest) + 1)
        exact = [[*core, *some] for size in sizes for some in itertools.combinations(rest, size)]
    else:
        exact = [core, [*core, *rest]]
    for some in exact:
        gaps = np.abs(_whole(values[:, some]).sum(axis=1) - 1.0)
        if len(gaps) and gaps.max() <= EXACT:
            return some
    used = [k for k in rest if np.nanmax(values[:, k]) > 0.0]
    biases = {tuple(some): rounding_bias(_whole(values[:, some])) for some in ([*core, *used], core)}
    known = {some: bias for some, bias in biases.items() if bias is not None}
    return list(min(known, key=known.__getitem__)) if known else []


def _whole(rows: NDArray) -> NDArray:
    """The rows in which nothing is missing."""
    return rows[~np.isnan(rows).any(axis=1)]


def called_by_classes(table: Table, targets: Sequence[str]) -> list[str]:
    """Columns of probabilities that are called as the targets are; none where one target is not among them.

    That is what ``pd.DataFrame(classifier.predict_proba(X), columns=classifier.classes_)`` has, or numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> called_by_classes(Table(pd.DataFrame({"y": [1], "0": [0.3], "1": [0.7]})), ["y"])
    ['0', '1']
    >>> called_by_classes(Table(pd.DataFrame({"y": [2], "0": [0.3], "1": [0.7]})), ["y"])
    []
    """
    names = tuple(columns_of_probabilities(table, targets))
    y = _labels(table, targets)
    known = bool(names) and y is not None and _are_among(y, Selection(names, names, False))
    return list(names) if known else []
