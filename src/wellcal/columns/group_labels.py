"""Columns that say of each case which group it belongs to."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import check_same_length, is_missing, label_array
from wellcal._arrays.namespaces import NDArray, is_array, to_numpy
from wellcal._arrays.row_errors import Row, RowError


def label_of_each(column: Any, argument: str, n: int, remedy: str) -> NDArray:
    """Labels or numbers ``(n,)``, none of them missing.

    Parameters
    ----------
    column
        What the user gave.
    argument
        How errors call it.
    n
        Number of predictions.
    remedy
        What to do about cases without a value.

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
    missing = np.flatnonzero(absent)
    if len(missing):
        raise RowError(
            f"{argument} has no value in ",
            Row(int(missing[0])),
            f" ({len(missing)} in all)",
            argument=argument,
            remedy=remedy,
        )
    return labels


def sortable(labels: NDArray) -> NDArray:
    """Labels with an order: texts where they are of several types.

    Examples
    --------
    >>> sortable(np.array(["a", 1], dtype=object))
    array(['a', '1'], dtype='<U1')
    """
    if labels.dtype.kind != "O":
        return labels
    kinds: set[type] = {type(label) for label in labels.tolist()}
    return labels.astype(str) if len(kinds) > 1 or kinds <= {str} else np.asarray(labels.tolist())
