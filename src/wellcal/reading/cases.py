"""Cases of a data frame or a file: targets, predictions, and what else there is for each of them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.columns.frames import MissingValuesError, Table, missing_values, names_text
from wellcal.columns.selection import Selection, apart, select
from wellcal.predictions import Bernoulli, Predictions
from wellcal.predictions.column_roles import ColumnReading, only_role, resolve, roles_by_keyword
from wellcal.predictions.role_inference import guess_roles, target_columns
from wellcal.predictions.target_leakage import GROUPS, SEGMENTS
from wellcal.reading.kinds import Kinds
from wellcal.reading.label_kinds import class_targets
from wellcal.reading.missing import NothingLeftError
from wellcal.reading.missing import drop_missing as without_missing
from wellcal.reading.places import among_kept, naming_file
from wellcal.reading.tables import Chosen, read_batches, read_labelled

OTHER_COLUMNS = ("inferred", "spelled", "written")
"""What columns of a text may be that hold neither targets nor predictions; see :func:`read_models`."""


@dataclass(frozen=True)
class Cases:
    """Targets and predictions that were taken from columns.

    Parameters
    ----------
    y
        Targets, ``(n,)`` or ``(n, d)``; labels keep their names.
    pred
        Predictions.
    others
        Further columns that were asked for, by name: groups, segments, weights.
    taken
        What was taken from which columns, in words.
    dropped
        How many rows were dropped because a value was missing in them.
    rows
        Positions of the rows that were kept; None where none was dropped.

    Examples
    --------
    >>> import pandas as pd
    >>> cases = as_cases(pd.DataFrame({"y": [2, 3], "rate": [1.5, 2.5]}))
    >>> cases.taken, cases.pred
    ('target: y; poisson: rate = rate', <Poisson: 2 predictions>)
    """

    y: NDArray
    pred: Predictions
    others: dict[str, NDArray]
    taken: str
    dropped: int = 0
    rows: NDArray | None = None


def as_cases(
    frame: Any,
    target: str | Sequence[str] | None = None,
    *,
    others: Sequence[str] | Mapping[str, str] = (),
    drop_missing: bool = False,
    normalise: bool = False,
    **roles: Any,
) -> Cases:
    """Targets and predictions from columns of a data frame.

    Parameters
    ----------
    frame
        A data frame of pandas, polars or pyarrow.
    target
        The column of targets; several, a glob, or a column of lists, for vectors. None takes the one that
        :func:`wellcal.guess_roles` finds.
    others
        Names of further columns with something for each case; a mapping has, for each, what errors call it.
    drop_missing
        Whether rows are dropped in which one of these columns has no value, rather than refused.
    normalise
        Whether probabilities of classes are divided by their sum, which rounding to a few digits has moved
        from 1; sums that are further off than 0.01, and than rounding of so many classes to two decimals can
        take them (0.005 for each, 0.1 at most), are refused all the same.
    roles
        One role of columns, as in :func:`wellcal.as_predictions`, with options of its family; where there is
        none it is guessed.

    Examples
    --------
    >>> import pandas as pd, wellcal as wc
    >>> frame = pd.DataFrame({"y": ["a", "b"], "p_a": [0.7, 0.4], "p_b": [0.3, 0.6], "region": ["N", "S"]})
    >>> cases = as_cases(frame, "y", probs="p_*", others=["region"])
    >>> cases.y, cases.pred.labels()
    (array(['a', 'b'], dtype='<U1'), array(['a', 'b'], dtype='<U1'))
    >>> wc.brier(cases.y, cases.pred).value
    0.125
    """
    table = Table(frame)
    targets, found = found_columns(table, target, roles, normalise)
    return taken_cases(table, targets, found, others, drop_missing)


def taken_cases(
    table: Table,
    targets: Selection,
    found: ColumnReading,
    others: Sequence[str] | Mapping[str, str],
    drop_missing: bool,
    beside: Sequence[str] = (),
) -> Cases:
    """Cases from columns that were found; rows without a value are counted in those `beside` them too."""
    further = further_columns(table, others, targets.names)
    used = list(dict.fromkeys([*targets.names, *found.columns, *further.values(), *beside]))
    words: Mapping[str, str] = others if isinstance(others, Mapping) else {}
    weights = [column for name, column in further.items() if words.get(name, "").lstrip("-") == "weights"]
    if weights:
        table.numbers_or_nan(weights)  # an error that says where, and what the entry looks like
    if not drop_missing:
        try:
            return _taken(table, targets, found, further)
        except MissingValuesError:  # of the column that was read first: all of them count
            table.refuse_missing(used)
            raise
    kept = without_missing(table.native, used)
    with among_kept(kept.rows):
        cases = _taken(Table(kept.frame, table.decimal), targets, found, further)
    return replace(cases, dropped=kept.dropped, rows=kept.rows)


_CUT = {"segments": SEGMENTS, "groups": GROUPS}  # why that cannot be


def further_columns(
    table: Table, others: Sequence[str] | Mapping[str, str], targets: Sequence[str] = ()
) -> dict[str, str]:
    """Columns beside targets and predictions, by the names under which they were asked for.

    A mapping also has what each of them is for, which an error then names; `targets` are refused as such.
    Segments may be several, with commas between their names, each of which is then one that was asked for.
    """
    words: Mapping[str, str] = others if isinstance(others, Mapping) else {}
    found: dict[str, str] = {}
    for given in others:
        word = words.get(given, "others")
        kind = word.lstrip("-")
        for name in apart(table.names, given) if kind == "segments" else [given]:
            column, *more = select(table.names, name, word).names
            if more:
                raise ValueError(
                    f"{word}: {name!r} stands for {1 + len(more)} columns, {names_text([column, *more])}; "
                    "name one"
                )
            if column in targets and given in words:
                why = _CUT.get(kind, "name another column")
                raise ValueError(f"column {column!r} is both the target and {word}: {why}")
            found[name] = column
    return found


def _taken(table: Table, targets: Selection, found: ColumnReading, further: Mapping[str, str]) -> Cases:
    lists = len(targets.names) == 1 and table.holds_lists(targets.names[0])  # of vectors
    single = table.labels(targets.names[0]) if len(targets.names) == 1 and not lists else None
    pred = found.batch(table, single)
    if single is not None:
        pred = pred.ordered_like(table.column(targets.names[0])) or pred
    if single is not None and _is_text(single) and isinstance(pred, Bernoulli) and pred.classes is None:
        names = [str(name) for name in np.unique(single)]
        example = names if len(names) == 2 else ["no", "yes"]
        raise ValueError(
            f"the targets in {targets.names[0]!r} are texts ({names_text(names, 3)}): say which of two is "
            f"predicted by naming it last, e.g. classes={example!r}"
        )
    if pred.event_shape and found.vectors is not None and not lists:
        targets = targets.in_order_of(found.vectors, "the columns of targets and predictions")
    if lists:
        y = table.vectors(targets.names[0])
        if not pred.event_shape:
            raise ValueError(
                f"target {targets.names[0]!r} must hold a single value in each row, found lists of "
                f"{y.shape[1]}; "
                + ("write the values without lists" if y.shape[1] == 1 else "name another column")
            )
    elif pred.event_shape or (_is_text(single) and pred.target_kind not in ("labels", "objects")):
        y = table.numbers(targets.names)  # of a text an error that says where, and what it looks like
    elif single is None:
        raise ValueError(
            f"target is one column where numbers or classes are predicted, found {len(targets.names)}: "
            f"{names_text(targets.names)}"
        )
    else:
        y = single
    columns = ", ".join(targets.names)
    pred.check_targets(y, f"target {columns!r}")
    taken = f"target: {columns}; {found.words()}"
    return Cases(y, pred, {name: table.labels(column) for name, column in further.items()}, taken)


def read_cases(
    path: str | os.PathLike[str],
    target: str | Sequence[str] | None = None,
    *,
    others: Sequence[str] | Mapping[str, str] = (),
    drop_missing: bool = False,
    normalise: bool = False,
    options: Mapping[str, Any] | None = None,
    **roles: Any,
) -> Cases:
    r"""Targets and predictions from columns of a file: :func:`read_table` and :func:`as_cases`.

    Parameters
    ----------
    path
        The file, or ``"-"`` for standard input.
    target, others, drop_missing, normalise, roles
        As in :func:`as_cases`.
    options
        Further arguments of :func:`read_table`, such as ``{"decimal": ","}``.

    Raises
    ------
    ReadError
        The file, or a column in it, cannot be used; the message says which, where, and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "predictions.csv"
    ...     _ = path.write_text("y,mu,sigma\n0.3,0.0,1.0\n1.2,1.0,2.0\n")
    ...     cases = read_cases(path)
    >>> cases.taken
    'target: y; normal: loc = mu, scale = sigma'
    """
    given = dict(options or {})
    format, decimal = given.get("format"), given.get("decimal", ".")
    kinds = kinds_of(path, target, [roles], others, format=format, decimal=decimal)
    frame, _ = read_labelled(path, kinds, **given)
    with naming_file(path, format=format):
        table = Table(frame, decimal)
        return as_cases(table, target, others=others, drop_missing=drop_missing, normalise=normalise, **roles)


def case_batches(
    path: str | os.PathLike[str],
    target: str | Sequence[str] | None = None,
    *,
    others: Sequence[str] | Mapping[str, str] = (),
    drop_missing: bool = False,
    normalise: bool = False,
    options: Mapping[str, Any] | None = None,
    **roles: Any,
) -> Generator[Cases]:
    r"""Targets and predictions from columns of a file, a batch at a time: it may be larger than memory.

    Which columns are taken is said, or guessed, by the first batch; no others are read from a file.

    Parameters
    ----------
    path, target, others, drop_missing, normalise, roles
        As in :func:`read_cases`.
    options
        Further arguments of :func:`read_batches`, such as ``{"rows": 10_000}``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "stream.csv"
    ...     _ = path.write_text("y,mu,sigma\n" + "0.5,0.0,1.0\n" * 5)
    ...     [len(cases.y) for cases in case_batches(path, options={"rows": 2})]
    [2, 2, 1]
    """
    given = {name: x for name, x in dict(options or {}).items() if name != "columns"}
    decimal = given.get("decimal", ".")
    chosen: list[tuple[Selection, ColumnReading]] = []
    used: list[str] = []

    def choose(first: Any) -> Chosen:
        with naming_file(path):
            table = Table(first, decimal)
            targets, found = found_columns(table, target, roles, normalise)
            further = further_columns(table, others, targets.names)
            kinds = Kinds(class_targets(targets, found), _labels(table, others))
        chosen.append((targets, found))
        used.extend(dict.fromkeys([*targets.names, *found.columns, *further.values()]))
        return Chosen(used, kinds)

    parts = read_batches(path, choose, **given)
    start, dropped = 0, 0
    ready: Cases | None = None  # of a batch without a whole row only the number of rows is left
    for part in parts:
        with naming_file(path, start, format=given.get("format")):
            try:
                cases = taken_cases(Table(part, decimal), *chosen[0], others, drop_missing)
            except NothingLeftError:
                dropped += part.num_rows
            except MissingValuesError as error:
                endless = os.fspath(path) == "-"  # whose end may be far
                rest = [part] if endless else itertools.chain([part], parts)
                raise _missing_from_here(rest, used, start, so_far=endless) from error
            else:
                if ready is not None:
                    yield replace(ready, dropped=ready.dropped + dropped)
                    dropped = 0
                elif dropped:  # before its own rows
                    own = np.arange(len(cases.y)) if cases.rows is None else cases.rows
                    cases = replace(cases, rows=dropped + own)
                ready = cases
        start += part.num_rows
    if ready is None:
        with naming_file(path):
            raise NothingLeftError(f"no row is left: a value is missing in all {start} rows; fill values in")
    else:
        yield replace(ready, dropped=ready.dropped + dropped)


def _missing_from_here(
    parts: Iterable[Any], used: Sequence[str], start: int, *, so_far: bool
) -> MissingValuesError:
    """The error about values that are missing, from a batch that misses one on: all before it have theirs."""
    by_column, rows, total, first = dict.fromkeys(used, 0), 0, start, -1
    for part in parts:
        table = Table(part)
        missing = np.column_stack([table.missing(name) for name in used])
        for name, count in zip(used, missing.sum(axis=0).tolist(), strict=True):
            by_column[name] += count
        here = np.flatnonzero(missing.any(axis=1))
        if first < 0 and len(here):
            first = total - start + int(here[0])
        rows, total = rows + len(here), total + len(table)
    found = {name: count for name, count in by_column.items() if count}
    return missing_values(found, rows, total, first, so_far=so_far)


def found_columns(
    table: Table, target: object, roles: Mapping[str, Any], normalise: bool = False
) -> tuple[Selection, ColumnReading]:
    """Columns of targets and predictions, as they were named, or as names suggest where they were not."""
    given = {keyword: value for keyword, value in roles.items() if value is not None}
    wanted: Any = target_columns(table) if target is None else target
    if not roles_by_keyword().keys() & given.keys():
        given |= guess_roles(table, wanted).roles
    targets = select(table.names, wanted, "target")
    found = resolve(table.names, *only_role(given))
    both = next((name for name in targets.names if name in found.columns), None)
    if both is not None:
        raise ValueError(
            f"column {both!r} is both the target and part of the predictions; name other columns"
        )
    return targets, found.normalised() if normalise else found


def kinds_of(
    path: str | os.PathLike[str],
    target: object,
    models: Iterable[Mapping[str, Any]],
    others: Sequence[str] | Mapping[str, str] = (),
    other_columns: str = "inferred",
    *,
    format: str | None = None,
    decimal: str = ".",
) -> Callable[[Any], Kinds] | None:
    """Which columns of a text are read as texts, given rows of it, for the roles of some models.

    `other_columns` says what those are that hold neither targets nor predictions. Errors are those of who
    takes the columns, about the file.
    """
    known, models = roles_by_keyword(), list(models)
    given = [[known[keyword] for keyword in roles if keyword in known] for roles in models]
    of_numbers = all(
        roles and all("classes" not in role.options and not role.of_roles for role in roles)
        for roles in given
    )
    if of_numbers and other_columns == "inferred" and not _said_labels(others):
        return None

    def kinds(rows: Any) -> Kinds:
        table = Table(rows, decimal)
        with naming_file(path, format=format):
            found = [found_columns(table, target, roles) for roles in models]
            labels = _labels(table, others)
        classes: dict[str, tuple[str, ...]] = {}
        for part in found:  # of several models all classes count
            for column, names in class_targets(*part).items():
                classes[column] = tuple(dict.fromkeys([*classes.get(column, ()), *names]))
        used = {name for targets, reading in found for name in (*targets.names, *reading.columns)}
        rest = [name for name in table.names if name not in used]
        spelled = list(dict.fromkeys([*labels, *(rest if other_columns == "spelled" else ())]))
        passed_on = [] if other_columns == "inferred" else [name for part in found for name in part[0].names]
        return Kinds(classes, spelled, rest if other_columns == "written" else (), passed_on)

    return kinds


def _said_labels(others: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Further columns that are said to hold segments or groups, with which nothing is computed."""
    words: Mapping[str, str] = others if isinstance(others, Mapping) else {}
    return {name: word for name, word in words.items() if word.lstrip("-") in _CUT}


def _labels(table: Table, others: Sequence[str] | Mapping[str, str]) -> list[str]:
    return list(further_columns(table, _said_labels(others)).values())


def _is_text(values: NDArray | None) -> bool:
    return values is not None and values.dtype.kind == "U"
