"""Which predictions of a batch are meant: positions and masks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from wellcal._arrays.checks import check_same_length, described, plain_array
from wellcal._arrays.namespaces import Array, attribute, is_array, is_traced, namespace, to_numpy
from wellcal.columns.labels import labels_of


def is_mask(index: Any) -> bool:
    """Whether an index with labels of its own says of each case whether it is chosen."""
    return labels_of(index) is not None and str(attribute(index, "dtype", "")) in ("bool", "boolean")


def checked_index(index: Any, n: int) -> Array:
    """A list, integer array or mask as an array without negative entries."""
    if not is_array(index):
        if not isinstance(index, Iterable) or isinstance(index, (str, bytes)):
            raise TypeError(
                f"predictions are indexed by numbers, a slice, a mask or a list, found {described(index)}"
            )
        index = plain_array(index, "index of predictions")
        index = index if index.size else index.astype(int)
    index = plain_array(index, "index of predictions")
    if index.ndim != 1:
        raise IndexError(
            f"index of {n} predictions must have one axis, found shape {tuple(index.shape)}; "
            "give a slice, a mask or a list"
        )
    xp = namespace(index)
    if xp.isdtype(index.dtype, "bool"):
        check_same_length(index.shape[0], "mask", n, "predictions")
        return index
    if not xp.isdtype(index.dtype, "integral"):
        raise IndexError(
            f"index of {n} predictions must be whole numbers or a mask, found dtype {index.dtype}"
        )
    positions = xp.where(index < 0, index + n, index)
    # Not every library notices: JAX returns the last row for an index beyond it.
    if not is_traced(index) and not bool(xp.all((positions >= 0) & (positions < n))):
        outside = to_numpy((positions < 0) | (positions >= n))
        entry = int(np.flatnonzero(outside)[0])
        raise outside_of_batch(to_numpy(index)[entry], n, f", entry {entry} of the index,")
    return positions


def outside_of_batch(index: Any, n: int, entry: str = "") -> IndexError:
    """The error of an index beyond a batch, which is what Python expects of sequences."""
    return IndexError(f"index {index}{entry} is outside of a batch of {n} predictions")
