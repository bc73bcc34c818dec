"""Targets that are texts, though they may begin as numbers do: names of classes say which."""

from __future__ import annotations

from typing import cast

from wellcal._arrays.selecting import Selection
from wellcal.predictions.column_names import only_texts
from wellcal.predictions.roles import ColumnReading


def text_labels(targets: Selection, found: ColumnReading) -> dict[str, tuple[str, ...]]:
    """The column of targets that a text file must not read as numbers, with the names of its classes.

    Codes 250, 428 and V27 are texts, also where the first V27 comes late, and 01 is not 1.

    Examples
    --------
    >>> from wellcal._arrays.selecting import select
    >>> from wellcal.predictions.roles import resolve
    >>> names = ["y", "p_250", "p_V27"]
    >>> text_labels(select(names, "y", "target"), resolve(names, "probs", "p_*"))
    {'y': ('250', 'V27')}
    """
    names = _class_names(found)
    return {targets.names[0]: names} if len(targets.names) == 1 and names and only_texts(names) else {}


def _class_names(found: ColumnReading) -> tuple[str, ...]:
    """Names of classes as columns have them, or as they were given."""
    if found.parts:
        return _class_names(found.parts[0])
    if found.labels_from is not None:
        columns = cast("Selection", found.sources[found.labels_from])
        return columns.parts if len(columns.names) > 1 else ()  # one column holds lists, without names
    return tuple(str(name) for name in found.options.get("classes") or ())
