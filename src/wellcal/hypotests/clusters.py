"""Labels of clusters of dependent cases."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import check_same_length, is_missing, label_array
from wellcal._arrays.namespaces import NDArray, is_array, to_numpy


def number_clusters(groups: Any, n_samples: int) -> NDArray | None:
    """Clusters numbered 0 .. G - 1 from a label for each case; None where there are none.

    Examples
    --------
    >>> number_clusters(["b", "a", "b"], 3)
    array([1, 0, 1])
    """
    if groups is None:
        return None
    labels = to_numpy(label_array(groups, "groups"))
    if labels.dtype.kind in "US" and not is_array(groups):
        labels = np.asarray(groups, dtype=object)  # a list of texts may have gaps, which are not texts
    if labels.ndim != 1:
        raise ValueError(f"groups must be 1-dimensional, one label for each case, found shape {labels.shape}")
    check_same_length(len(labels), "groups", n_samples, "predictions")
    absent = labels != labels if labels.dtype.kind != "O" else np.array([is_missing(x) for x in labels])
    missing = np.flatnonzero(absent)
    if len(missing):
        raise ValueError(
            f"groups has no label in row {missing[0]}; give cases that stand alone a label of their own"
        )
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError:  # labels of several types have no order
        numbers: dict[Any, int] = {}
        return np.array([numbers.setdefault(label, len(numbers)) for label in labels])
