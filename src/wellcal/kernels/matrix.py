"""Kernel matrices between two lists of targets."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import described, real_array, same_library
from wellcal._arrays.namespaces import Array, NDArray, from_numpy, has, is_array, namespace
from wellcal._arrays.ops import Ops, ops_for
from wellcal.kernels.base import Kernel, TargetKernel, as_objects, is_real, on_targets

__all__ = ["as_objects", "contains_callable", "kernel_matrix", "label_matrix", "values_matrix"]


def kernel_matrix(kernel: Kernel, x: object, y: object) -> Array:
    """``(n, m)`` array of k(x_i, y_j) for targets given as arrays, or as lists of objects."""
    x, y = _listed(x, "x"), _listed(y, "y")
    if _are_objects(kernel, x):
        return values_matrix(ops_for(namespace()), kernel, as_objects(x), as_objects(y))
    left = real_array(x, "x", ndim=(1, 2))
    right = real_array(y, "y", ndim=(1, 2), like=left)
    same_library(x=left, y=right)
    if left.ndim != right.ndim or tuple(left.shape[1:]) != tuple(right.shape[1:]):
        raise ValueError(
            "x and y must have targets of one shape, "
            f"found {tuple(left.shape[1:])} and {tuple(right.shape[1:])}"
        )
    return values_matrix(ops_for(namespace(left, right)), kernel, left, right)


def values_matrix(ops: Ops, kernel: Kernel, x: Array, y: Array) -> Array:
    """The same for arrays ``(n,)`` or ``(n, d)`` of one library, or NumPy object arrays ``(n,)``."""
    return on_targets(kernel).matrix(ops, x, y)


def label_matrix(
    ops: Ops, kernel: Kernel, labels: NDArray, like: Array, rows: NDArray | None = None
) -> Array:
    """Kernel matrix between the labels of a finite support, on the same device as the array `like`.

    With `rows`, the indices of some of them, it is the matrix between these and all.
    """
    some = labels if rows is None else labels[rows]
    if is_real(labels):
        left, right = (from_numpy(side.astype(np.float64), like) for side in (some, labels))
        return values_matrix(ops, kernel, left, right)
    return from_numpy(np.asarray(values_matrix(ops_for(namespace()), kernel, some, labels)), like)


def contains_callable(kernel: Kernel) -> bool:
    """Whether values cannot be computed coordinate by coordinate, since a user's function takes part."""
    return isinstance(kernel, TargetKernel) and not kernel.elementwise


def _are_objects(kernel: Kernel, x: object) -> bool:
    """Whether targets `x` are labels or objects rather than numbers."""
    if is_array(x):
        return not is_real(x)
    return contains_callable(kernel) and not is_real(np.asarray(x, dtype=object if _is_ragged(x) else None))


def _listed(x: Any, name: str) -> Any:
    """Targets as a list or array, of which there are several."""
    several = x.ndim > 0 if is_array(x) else has(x, "__len__") and not isinstance(x, (str, bytes, dict))
    if not several:
        raise TypeError(f"{name} must be a list or array of targets, found {described(x)}")
    return cast("Any", x)


def _is_ragged(x: object) -> bool:
    try:
        np.asarray(x)
    except ValueError:
        return True
    return False
