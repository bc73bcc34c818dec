"""Targets that are classes: texts of a file become the names of these, whatever they look like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

from wellcal.columns.column_names import TRUTH, only_texts
from wellcal.columns.number_texts import SAYS_MISSING, number_of
from wellcal.columns.selection import Selection
from wellcal.predictions.column_roles import ColumnReading
from wellcal.reading.errors import library
from wellcal.reading.spellings import in_codes

_EXACT = 1 << 53  # up to which numbers hold all whole ones


def class_targets(targets: Selection, found: ColumnReading) -> dict[str, tuple[str, ...]]:
    """The column of targets that are classes, which a text file reads as texts, with the names of these.

    Examples
    --------
    >>> from wellcal.columns.selection import select
    >>> from wellcal.predictions.column_roles import resolve
    >>> names = ["y", "p_250", "p_V27"]
    >>> class_targets(select(names, "y", "target"), resolve(names, "probs", "p_*"))
    {'y': ('250', 'V27')}
    """
    names = _class_names(found)
    return {targets.names[0]: names} if len(targets.names) == 1 and names else {}


def _class_names(found: ColumnReading) -> tuple[str, ...]:
    """Names of classes as columns have them, or as they were given."""
    if found.parts:
        return _class_names(found.parts[0])
    if found.labels_from is not None:
        columns = cast("Selection", found.sources[found.labels_from])
        return columns.parts if len(columns.names) > 1 else ()  # one column holds lists, without names
    return tuple(str(name) for name in found.options.get("classes") or ())


def as_labels(texts: Any, names: Sequence[str], decimal: str = ".") -> Any:
    """A column of texts as labels of classes, by how these are written, else by the number that they are.

    Codes 250, 428 and V27 are texts, also where no V27 occurs, and 1 is the class 01 if there is no other 1.
    Where all names are written as numbers are, labels are numbers; so are targets that are all numbers and no
    classes, of which an error then says what to do. What becomes of a target does not depend on the others,
    unless one of them is no class.

    Parameters
    ----------
    texts
        A chunked array of pyarrow.
    names
        Names of the classes.
    decimal
        The sign before decimals.

    Examples
    --------
    >>> import pyarrow as pa
    >>> def labels(names, *texts):
    ...     return as_labels(pa.chunked_array([list(texts)]), names).to_pylist()
    >>> labels(["250", "V27"], "250", "250.0", "NA"), labels(["01", "10"], "1", "10")
    (['250', '250', None], ['01', '10'])
    >>> labels(["0", "1"], "1", "+1"), labels(["True", "False"], "TRUE")
    ([1, 1], [True])
    """
    pyarrow = library("pyarrow")
    distinct, codes = in_codes(texts)
    known, missing = set(names), SAYS_MISSING - set(names)
    given = [None if text.strip() in missing else text for text in distinct.to_pylist()]
    there = [text for text in given if text is not None]
    numbers = {text: number_of(text, decimal) for text in there}
    truths = {text: TRUTH.get(text.strip().lower()) for text in there}
    of_truth = all(name.lower() in TRUTH for name in names)
    otherwise = _by_value({name: TRUTH[name.lower()] if of_truth else number_of(name) for name in names})
    classes = {
        text: text if text in known else otherwise.get((truths if of_truth else numbers)[text])
        for text in there
    }
    are_numbers, are_classes = None not in numbers.values(), None not in classes.values()
    labels: dict[str, Any] = {text: text if name is None else name for text, name in classes.items()}
    kind = pyarrow.string()
    if of_truth and are_classes:
        labels, kind = truths, pyarrow.bool_()
    elif are_numbers and (not any(classes.values()) or not only_texts(names)):
        whole = all(
            number is not None and number.is_integer() and abs(number) <= _EXACT
            for number in numbers.values()
        )
        labels, kind = numbers, pyarrow.int64() if whole else pyarrow.float64()
    values = [None if text is None else labels[text] for text in given]
    return pyarrow.chunked_array([pyarrow.array(values, kind).take(codes)])


def _by_value(values: dict[str, Any]) -> dict[Any, str]:
    """Names by what they say, where no other says the same."""
    counts = Counter(values.values())
    return {value: name for name, value in values.items() if value is not None and counts[value] == 1}
