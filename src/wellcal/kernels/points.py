"""Targets as arrays: numbers by coordinates, labels and objects as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, namespace

Coordinates: TypeAlias = tuple[Array, ...]
"""A point of R^d as d arrays that broadcast: a kernel is an elementwise expression in these."""


def coordinates(values: Array, *, first: bool) -> Coordinates:
    """Coordinates of n targets, shaped (n, 1) or (1, n) for an outer evaluation."""
    shape = (-1, 1) if first else (1, -1)
    xp = namespace(values)
    if values.ndim == 1:
        return (xp.reshape(values, shape),)
    return tuple(xp.reshape(values[:, c], shape) for c in range(values.shape[1]))


def squared_distance(x: Coordinates, y: Coordinates) -> Array:
    """Squared Euclidean distance from differences: exact for points far from the origin."""
    total = (x[0] - y[0]) ** 2
    for a, b in zip(x[1:], y[1:], strict=True):
        total = total + (a - b) ** 2
    return total


def is_real(x: Array) -> bool:
    """Whether an array holds numbers, not labels or objects."""
    if isinstance(x, np.ndarray):
        return cast("NDArray", x).dtype.kind in "fiub"
    return bool(namespace(x).isdtype(x.dtype, ("real floating", "integral", "bool")))


def as_objects(x: Any) -> NDArray:
    """A one-dimensional array of Python objects, never unpacking a sequence that is one target."""
    given = cast("NDArray | Sequence[object]", x)
    if isinstance(given, np.ndarray) and given.ndim == 1:
        return given
    out = np.empty(len(given), dtype=object)
    for i, item in enumerate(given):
        out[i] = item
    return out
