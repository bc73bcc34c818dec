"""Labels of cases: index labels, by which rows belong together, and columns of group labels.

Objects of pandas have an index, and so has an xarray along its first dimension if that has a coordinate.
Neither library is imported here. Arrays, lists and other frames have no index, and are taken by position.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias, cast

import numpy as np

from wellcal._arrays.checks import check_same_length, label_array
from wellcal._arrays.namespaces import NDArray, is_array, to_numpy
from wellcal._arrays.row_errors import Row, RowError

Labels: TypeAlias = Any
"""An index of pandas: one label for each case."""


def labels_of(x: Any) -> Labels | None:
    """Return the index of `x`; None without one.

    Examples
    --------
    >>> labels_of(np.zeros(3)) is None, labels_of([1.0, 2.0]) is None
    (True, True)
    """
    if type(x) is np.ndarray or x is None:
        return None
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(x, (pandas.Series, pandas.DataFrame)):
        return x.index
    xarray = sys.modules.get("xarray")
    if xarray is not None and isinstance(x, xarray.DataArray):
        return x.indexes.get(x.dims[0]) if x.dims else None
    return getattr(x, "case_index", None) if hasattr(cast("Any", type(x)), "case_index") else None


def in_order_of(labels: Labels | None, x: Any, name: str, other: str) -> Any:
    """Return `x` with its rows in the order of `labels`; unchanged if either has no labels.

    Parameters
    ----------
    labels
        Labels of the cases that `x` belongs to.
    x
        Anything with a row for each case.
    name, other
        Names of `x` and of the owner of `labels` in errors.

    Raises
    ------
    ValueError
        If the labels differ, or are not distinct and in another order.
    """
    own: Any = None if labels is None else labels_of(x)
    if labels is None or own is None or same_labels(own, labels):
        return x
    plain = "with_index(None)" if hasattr(x, "with_index") else "to_numpy()"
    remedy = f"give {name}.{plain} if its rows are in the order of {other}, or both the same index"
    for index, owner in ((own, name), (labels, other)):
        if not index.is_unique:
            raise ValueError(
                f"the indexes of {name} and {other} differ, and that of {owner} has the label "
                f"{label_text(index[index.duplicated()][0])} twice, so that rows cannot be matched; {remedy}"
            )
    lengths = "" if len(own) == len(labels) else f" (they have {len(own)} and {len(labels)} rows)"
    for index, wanted, owner in ((own, labels, name), (labels, own, other)):
        absent = np.flatnonzero(np.asarray(index.get_indexer(wanted)) < 0)
        if len(absent):
            count = f", nor are {len(absent) - 1} more" if len(absent) > 1 else ""
            raise ValueError(
                f"the indexes of {name} and {other} do not hold the same labels{lengths}: "
                f"{label_text(wanted[int(absent[0])])} is not in that of {owner}{count}; {remedy}"
            )
    return take_cases(x, np.asarray(own.get_indexer(labels)))


def same_labels(a: Labels, b: Labels) -> bool:
    """True if two indexes hold the same labels in the same order."""
    return a is b or bool(a.equals(b))


def take_cases(x: Any, positions: NDArray) -> Any:
    """Take rows of an object that has labels."""
    if hasattr(x, "iloc"):
        return x.iloc[positions]
    return x.isel({x.dims[0]: positions}) if hasattr(x, "isel") else x[positions]


def labelled_rows(rows: NDArray, labels: Labels) -> Any:
    """Make a data frame of pandas from rows of numbers and their labels."""
    return sys.modules["pandas"].DataFrame(rows, index=labels)


def label_text(label: Any) -> str:
    """Write a label for an error."""
    return repr(cast("Any", label).item() if isinstance(label, np.generic) else label)


def common_labels(named: dict[str, Any]) -> tuple[Labels | None, dict[str, Any]]:
    """Return labels that several objects share, and the objects in the order of the first that has any."""
    first = next((name for name, x in named.items() if labels_of(x) is not None), "")
    labels = labels_of(named.get(first))
    return labels, {name: in_order_of(labels, x, name, first) for name, x in named.items()}


def label_of_each(column: Any, argument: str, n: int, remedy: str) -> NDArray:
    """Return labels or numbers ``(n,)``, and raise if one is missing.

    Parameters
    ----------
    column
        Labels as a user gave them.
    argument
        Their name in errors.
    n
        Number of predictions.
    remedy
        Advice for cases without a value.

    Examples
    --------
    >>> label_of_each(["a", None], "groups", 2, "leave them out")
    Traceback (most recent call last):
    wellcal.RowError: groups has no value in row 1 (1 in all); leave them out
    """
    labels: NDArray = to_numpy(label_array(column, argument))
    if labels.dtype.kind in "US" and not is_array(column):
        labels = np.asarray(column, dtype=object)  # a list of texts may have gaps, which are not texts
    if labels.ndim != 1:
        raise ValueError(
            f"{argument} must be 1-dimensional, one value for each case, found shape {labels.shape}"
        )
    check_same_length(len(labels), argument, n, "predictions")
    absent = labels != labels if labels.dtype.kind != "O" else np.array([is_missing(x) for x in labels], bool)
    rows = np.flatnonzero(absent)
    if len(rows):
        parts = (f"{argument} has no value in ", Row(int(rows[0])), f" ({len(rows)} in all)")
        raise RowError(*parts, argument=argument, remedy=remedy)
    return labels


def sortable(labels: NDArray) -> NDArray:
    """Return labels that have an order: texts if they are of several types.

    Examples
    --------
    >>> sortable(np.array(["a", 1], dtype=object))
    array(['a', '1'], dtype='<U1')
    """
    if labels.dtype.kind != "O":
        return labels
    kinds: set[type] = {type(label) for label in labels.tolist()}
    return labels.astype(str) if len(kinds) > 1 or kinds <= {str} else np.asarray(labels.tolist())


def is_missing(label: Any) -> bool:
    """True if a label is None, or a value that does not equal itself."""
    same = label == label
    return label is None or not (isinstance(same, (bool, np.bool_)) and bool(cast("bool", same)))
