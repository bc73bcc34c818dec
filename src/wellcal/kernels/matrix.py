"""Kernel matrices between two lists of targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import real_array
from wellcal._arrays.namespaces import Array, NDArray, from_numpy, is_array, namespace, to_numpy
from wellcal._arrays.ops import Ops, ops_for
from wellcal.kernels.base import Coordinates, Kernel, Product, Scaled, Sum, TargetKernel
from wellcal.kernels.targets import Callable, Delta


def kernel_matrix(kernel: Kernel, x: object, y: object) -> Array:
    """``(n, m)`` array of k(x_i, y_j) for targets given as arrays, or as lists of objects."""
    if needs_objects(kernel, x):
        return values_matrix(ops_for(namespace()), kernel, as_objects(x), as_objects(y))
    left = real_array(x, "x", ndim=(1, 2))
    right = real_array(y, "y", ndim=(1, 2), like=left)
    if left.ndim != right.ndim or tuple(left.shape[1:]) != tuple(right.shape[1:]):
        raise ValueError(
            "x and y must have targets of one shape, "
            f"found {tuple(left.shape[1:])} and {tuple(right.shape[1:])}"
        )
    return values_matrix(ops_for(namespace(left, right)), kernel, left, right)


def values_matrix(ops: Ops, kernel: Kernel, x: Array, y: Array) -> Array:
    """The same for arrays ``(n,)`` or ``(n, d)`` of one library, or NumPy object arrays ``(n,)``."""
    if isinstance(kernel, Sum):
        parts = [values_matrix(ops, k, x, y) for k in kernel.kernels]
        return sum(parts[1:], start=parts[0])
    if isinstance(kernel, Product):
        total = values_matrix(ops, kernel.kernels[0], x, y)
        for factor in kernel.kernels[1:]:
            total = total * values_matrix(ops, factor, x, y)
        return total
    if isinstance(kernel, Scaled):
        return kernel.factor * values_matrix(ops, kernel.kernel, x, y)
    if isinstance(kernel, Callable):
        return _call(kernel, x, y)
    if isinstance(kernel, Delta) and not _is_real(x):
        return 1.0 * (np.asarray(x)[:, None] == np.asarray(y)[None, :])
    if not isinstance(kernel, TargetKernel):
        raise TypeError(f"{kernel!r} is not a kernel on targets")
    if not _is_real(x):
        raise TypeError(
            f"{kernel!r} needs numeric targets; take Delta() or Callable(function) for labels or objects"
        )
    return kernel.at(ops, coordinates(x, first=True), coordinates(y, first=False))


def coordinates(values: Array, *, first: bool) -> Coordinates:
    """Coordinates of n targets, shaped (n, 1) or (1, n) for an outer evaluation."""
    shape = (-1, 1) if first else (1, -1)
    xp = namespace(values)
    if values.ndim == 1:
        return (xp.reshape(values, shape),)
    return tuple(xp.reshape(values[:, c], shape) for c in range(values.shape[1]))


def _call(kernel: Callable, x: Array, y: Array) -> Array:
    shape = (len(x), len(y))
    if kernel.vectorized:
        value = kernel.function(x, y)
        if tuple(np.shape(value)) != shape:
            raise ValueError(
                f"{kernel!r} returned shape {np.shape(value)} for batches of {shape[0]} and {shape[1]}"
            )
        return value
    left, right = (to_numpy(v) if is_array(v) else v for v in (x, y))
    value = np.empty(shape)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            value[i, j] = kernel.function(a, b)
    return from_numpy(value, x) if is_array(x) else value


def contains_callable(kernel: Kernel) -> bool:
    """Whether a user's function takes part, so that values cannot be had coordinate by coordinate."""
    if isinstance(kernel, (Sum, Product)):
        return any(contains_callable(k) for k in kernel.kernels)
    return contains_callable(kernel.kernel) if isinstance(kernel, Scaled) else isinstance(kernel, Callable)


def needs_objects(kernel: Kernel, x: object) -> bool:
    """Whether targets `x` are labels or objects rather than numbers."""
    if is_array(x):
        return not _is_real(x)
    return contains_callable(kernel) and not _is_real(np.asarray(x, dtype=object if _ragged(x) else None))


def _ragged(x: Any) -> bool:
    try:
        np.asarray(x)
    except ValueError:
        return True
    return False


def as_objects(x: Any) -> NDArray:
    """A one-dimensional array of Python objects, never unpacking a sequence that is one target."""
    if isinstance(x, np.ndarray) and x.ndim == 1:
        return x
    out = np.empty(len(x), dtype=object)
    for i, item in enumerate(x):
        out[i] = item
    return out


def _is_real(x: Any) -> bool:
    xp = namespace(x)
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "fiub"
    return bool(xp.isdtype(x.dtype, ("real floating", "integral", "bool")))


def label_matrix(ops: Ops, kernel: Kernel, labels: NDArray, like: Array) -> Array:
    """Kernel matrix between the labels of a finite support, beside the array `like`."""
    if labels.dtype.kind in "fiub":
        values = from_numpy(labels.astype(np.float64), like)
        return values_matrix(ops, kernel, values, values)
    return from_numpy(np.asarray(values_matrix(ops_for(namespace()), kernel, labels, labels)), like)
