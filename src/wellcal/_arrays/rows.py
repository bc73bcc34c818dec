"""Rows: a small tree of arrays whose first axis is the batch.

Nodes are tuples, most of them named; leaves are arrays, or facts that all rows share (None, numbers). Engines
slice, gather and differentiate the arrays without knowing what they mean, and forms read them by name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from wellcal._arrays.namespaces import Array, Namespace, is_jax, is_numpy, is_torch, namespace, take_rows

Rows: TypeAlias = Any
"""A tree of arrays: an array, a tuple of trees, or a fact that all rows share.

The type of an array is open, and with it that of a tree; where a form knows its tree, it names a class of it.
"""

NODE: Any = tuple
"""The class of nodes, as `Any`: what their parts are is open, and a type checker would call them unknown."""


def map_rows(function: Callable[[Array], Array], rows: Rows) -> Rows:
    """Apply `function` to every array of a tree.

    Examples
    --------
    >>> import numpy as np
    >>> map_rows(lambda x: x + 1, (np.zeros(2), None, (np.ones(1), -1.0)))
    (array([1., 1.]), None, (array([2.]), -1.0))
    """
    if isinstance(rows, NODE):
        # Vectors have an array for each coordinate: calls for them would take longer than what is done.
        parts = [function(p) if type(p) is np.ndarray else map_rows(function, p) for p in rows]
        return rows.__class__(*parts) if hasattr(rows, "_fields") else tuple(parts)
    return rows if rows is None or isinstance(rows, (float, int)) else function(rows)


def once_each(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Wrap a function so that it returns its last result for an array that follows itself in a tree.

    A case that has one variance in all coordinates has it in one array, and keeps it so.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(2)
    >>> found = map_rows(once_each(lambda x: x[:1]), (one, one, np.ones(2)))
    >>> found[0] is found[1], found[1] is found[2]
    (True, False)
    """
    before: Array = None
    result: Array = None

    def call(array: Array) -> Array:
        nonlocal before, result
        if array is not before:
            before, result = array, function(array)
        return result

    return call


def slice_rows(rows: Rows, index: Any) -> Rows:
    """Select cases of a tree by a slice or by integer positions."""
    if isinstance(index, slice):
        return map_rows(once_each(lambda array: array[index, ...]), rows)
    return map_rows(lambda array: take_rows(array, index), rows)


def arrays_of(rows: Rows) -> list[Array]:
    """Return all arrays of the tree, in order.

    Examples
    --------
    >>> import numpy as np
    >>> arrays_of((np.zeros(1), (None, np.ones(1), 2.0)))
    [array([0.]), array([1.])]
    """
    found: list[Array] = []
    map_rows(lambda array: found.append(array), rows)
    return found


def with_arrays(rows: Rows, arrays: Sequence[Array]) -> Rows:
    """Replace the arrays of a tree, in the order of :func:`arrays_of`."""
    rest: Iterator[Array] = iter(arrays)
    return map_rows(lambda _: next(rest), rows)


def first_array(rows: Rows) -> Array:
    """The first array of the tree, with its library, device and number of rows; None if there is none."""
    if not isinstance(rows, NODE):
        return None if isinstance(rows, (float, int)) else rows
    for part in rows:
        found = first_array(part)
        if found is not None:
            return found
    return None


def can_add_at(xp: Namespace) -> bool:
    """True if `add_at` works on arrays of `xp`."""
    return is_torch(xp) or is_jax(xp)


def add_at(values: Array, index: Array, count: int) -> Array:
    """Sum the rows of a tensor, or numbers in NumPy, at each of `count` positions, with gradients.

    Examples
    --------
    >>> import torch
    >>> add_at(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([2, 0, 2]), 3)
    tensor([2., 0., 5.])
    """
    xp = namespace(values)
    shape = (count, *values.shape[1:])
    if is_numpy(xp):
        return np.bincount(index, values, count)
    if is_torch(xp):
        zeros = xp.zeros(shape, dtype=values.dtype, device=values.device)
        return zeros.index_add(0, index, values)
    return sys.modules["jax"].numpy.zeros(shape, dtype=values.dtype).at[index].add(values)
