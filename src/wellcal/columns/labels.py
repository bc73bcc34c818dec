"""Labels of cases: the index of a column or data frame, by which it is known what belongs together.

Objects of pandas have an index, and so has an xarray along its first dimension where that has a coordinate.
Neither library is imported here: an object that is one of theirs brings it along. Arrays, lists and other
data frames have no labels, and are taken by position.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray

Labels: TypeAlias = Any
"""An index of pandas: one label for each case."""


def labels_of(x: Any) -> Labels | None:
    """The index of `x`; None where it has none.

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
    """`x` with its rows in the order of `labels`; as it is where one of the two has none.

    Parameters
    ----------
    labels
        Labels of the cases that `x` belongs to.
    x
        Anything with a row for each case.
    name, other
        What errors call `x`, and whoever has the `labels`.

    Raises
    ------
    ValueError
        Where the labels are not the same, or are not distinct and in another order.
    """
    own = None if labels is None else labels_of(x)
    if own is None or same_labels(own, labels):
        return x
    by_position = (
        f"give {name}.{_without_index(x)} if its rows are in the order of {other}, or both the same index"
    )
    return take_cases(x, _positions(own, name, labels, other, by_position))


def _without_index(x: Any) -> str:
    return "with_index(None)" if hasattr(x, "with_index") else "to_numpy()"


def same_labels(a: Labels, b: Labels) -> bool:
    """Whether two indexes hold the same labels in the same order."""
    return a is b or bool(a.equals(b))


def take_cases(x: Any, positions: NDArray) -> Any:
    """Rows of an object that has labels."""
    if hasattr(x, "iloc"):
        return x.iloc[positions]
    return x.isel({x.dims[0]: positions}) if hasattr(x, "isel") else x[positions]


def labelled_rows(rows: NDArray, labels: Labels) -> Any:
    """Rows of numbers as a data frame of pandas with these labels."""
    return sys.modules["pandas"].DataFrame(rows, index=labels)


def _positions(own: Labels, name: str, labels: Labels, other: str, by_position: str) -> NDArray:
    for index, who in ((own, name), (labels, other)):
        if not index.is_unique:
            twice = index[index.duplicated()][0]
            raise ValueError(
                f"the indexes of {name} and {other} differ, and that of {who} has the label "
                f"{shown_label(twice)} twice, so that rows cannot be matched; {by_position}"
            )
    lengths = "" if len(own) == len(labels) else f" (they have {len(own)} and {len(labels)} rows)"
    for index, missing, where in ((own, labels, name), (labels, own, other)):
        absent = np.flatnonzero(np.asarray(index.get_indexer(missing)) < 0)
        if len(absent):
            count = f", nor are {len(absent) - 1} more" if len(absent) > 1 else ""
            raise ValueError(
                f"the indexes of {name} and {other} do not hold the same labels{lengths}: "
                f"{shown_label(missing[int(absent[0])])} is not in that of {where}{count}; {by_position}"
            )
    return np.asarray(own.get_indexer(labels))


def shown_label(label: Any) -> str:
    """A label as errors show it."""
    return repr(cast("Any", label).item() if isinstance(label, np.generic) else label)


def common_labels(named: dict[str, Any]) -> tuple[Labels | None, dict[str, Any]]:
    """Labels that several objects share, and the objects in their order: that of the first that has any."""
    labels, first = None, ""
    found: dict[str, Any] = {}
    for name, x in named.items():
        own = labels_of(x)
        if labels is None and own is not None:
            labels, first = own, name
        found[name] = in_order_of(labels, x, name, first)
    return labels, found
