"""Which predictions of a batch are meant: positions and masks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wellcal._arrays.checks import check_same_length, described, plain_array
from wellcal._arrays.labels import labels_of
from wellcal._arrays.namespaces import Array, attribute, is_array, is_traced, namespace


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
        raise IndexError("predictions are indexed along one axis: give a slice, a mask or a list")
    xp = namespace(index)
    if xp.isdtype(index.dtype, "bool"):
        check_same_length(index.shape[0], "mask", n, "predictions")
        return index
    if not xp.isdtype(index.dtype, "integral"):
        raise IndexError(f"predictions are indexed by whole numbers or a mask, found dtype {index.dtype}")
    index = xp.where(index < 0, index + n, index)
    # Not every library notices: JAX returns the last row for an index beyond it.
    if not is_traced(index) and not bool(xp.all((index >= 0) & (index < n))):
        raise IndexError(f"an index is outside of a batch of {n} predictions")
    return index
