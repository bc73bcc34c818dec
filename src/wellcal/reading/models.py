"""Cases of a file with the predictions of one or more models."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wellcal._arrays.checks import one_of
from wellcal._arrays.namespaces import NDArray
from wellcal.columns.frames import Table
from wellcal.predictions import Predictions
from wellcal.predictions.column_roles import ColumnReading
from wellcal.reading.cases import OTHER_COLUMNS, found_columns, further_columns, kinds_of, taken_cases
from wellcal.reading.missing import drop_missing as without_missing
from wellcal.reading.places import among_kept, naming_file
from wellcal.reading.tables import read_labelled


@dataclass(frozen=True)
class ModelCases:
    r"""Targets, and what each of some models predicted for them, that were taken from columns.

    Parameters
    ----------
    y
        Targets, as in :class:`Cases`.
    models
        Predictions by the name of the model.
    others
        Further columns that were asked for, by name.
    taken
        What was taken from which columns, in words, by the name of the model; and of the target.
    dropped
        How many rows were dropped because a value was missing in one of the columns.
    frame
        The rows that were kept, with all columns.
    readings
        Which columns hold the predictions of each model.
    rows
        Positions in the file of the rows that were kept; None where none was dropped.
    written
        Targets as they are written in a text file, by column, where `other_columns` are not "inferred".

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "predictions.jsonl"
    ...     _ = path.write_text('{"y": 1, "p": 0.7}\n{"y": 0, "p": null}\n')
    ...     cases = read_models(path, models={"a": {"bernoulli": "p"}}, drop_missing=True)
    >>> cases.taken, cases.dropped
    ({'a': 'target: y; bernoulli: probs = p'}, 1)
    """

    y: NDArray
    models: dict[str, Predictions]
    others: dict[str, NDArray]
    taken: dict[str, str]
    dropped: int
    frame: Any
    readings: dict[str, ColumnReading]
    rows: NDArray | None = None
    written: dict[str, NDArray] = field(default_factory=dict[str, NDArray])


def read_models(
    path: str | os.PathLike[str],
    target: str | Sequence[str] | None = None,
    *,
    models: Mapping[str, Mapping[str, Any]],
    others: Sequence[str] | Mapping[str, str] = (),
    drop_missing: bool = False,
    normalise: bool = False,
    other_columns: str = "inferred",
    options: Mapping[str, Any] | None = None,
) -> ModelCases:
    r"""Targets and predictions of several models from columns of one file, all for the same rows.

    Parameters
    ----------
    path, target, others, drop_missing, normalise, options
        As in :func:`read_cases`; a row is dropped where any model misses a value.
    models
        The role of the columns of each model, such as ``{"forest": {"normal": ("mu", "sigma")}}``; an empty
        role is guessed.
    other_columns
        What columns of CSV and TSV files are in the `frame` that hold neither targets nor predictions:
        "inferred", numbers, dates and truth values where all entries can be read as such; "spelled", the same
        unless something would be lost (02602, TRUE, 1.10 beside 1.9, 20 digits), where they are texts; or
        "written", texts, as they are written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "predictions.csv"
    ...     _ = path.write_text("y,p,q\n0,0.2,0.3\n1,0.7,0.6\n")
    ...     cases = read_models(path, models={"a": {"bernoulli": "p"}, "b": {"bernoulli": "q"}})
    >>> cases.models
    {'a': <Bernoulli: 2 predictions>, 'b': <Bernoulli: 2 predictions>}
    """
    one_of(other_columns, "other_columns", OTHER_COLUMNS)
    given = dict(options or {})
    format, decimal = given.get("format"), given.get("decimal", ".")
    wanted = kinds_of(path, target, models.values(), others, other_columns, format=format, decimal=decimal)
    frame, kinds = read_labelled(path, wanted, **given)
    with naming_file(path, format=format):
        table = Table(frame, decimal)
        found = {name: found_columns(table, target, role, normalise) for name, role in models.items()}
        further = list(further_columns(table, others).values())
        dropped, rows = 0, None
        columns = [list(targets.names) + list(reading.columns) for targets, reading in found.values()]
        used = list(dict.fromkeys(name for part in (*columns, further) for name in part))
        if drop_missing:
            kept = without_missing(table.native, used)
            table, dropped, rows = Table(kept.frame, decimal), kept.dropped, kept.rows
        with among_kept(rows):
            cases = {
                name: taken_cases(table, targets, reading, others, False, used)
                for name, (targets, reading) in found.items()
            }
    first = next(iter(cases.values()))
    return ModelCases(
        first.y,
        {name: part.pred for name, part in cases.items()},
        first.others,
        {name: part.taken for name, part in cases.items()},
        dropped,
        table.native,
        {name: reading for name, (_, reading) in found.items()},
        rows,
        {name: texts.to_numpy()[... if rows is None else rows] for name, texts in kinds.kept.items()},
    )
