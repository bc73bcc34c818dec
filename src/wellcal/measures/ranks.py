"""Ranks of values, ties sharing the mean of theirs."""

from __future__ import annotations

import numpy as np

from wellcal._arrays.namespaces import NDArray


def middle_ranks(values: NDArray) -> NDArray:
    """Ranks along the last axis as levels between 0 and 1; equal values share the middle of theirs.

    Examples
    --------
    >>> middle_ranks(np.array([3.0, 1.0, 3.0, 9.0]))
    array([0.5  , 0.125, 0.5  , 0.875])
    """
    return (average_ranks(values) - 0.5) / values.shape[-1]


def average_ranks(values: NDArray) -> NDArray:
    """Ranks along the last axis, from 1 to n; equal values share the mean of theirs.

    As `scipy.stats.rankdata` has them, which takes half a second to load.

    Examples
    --------
    >>> average_ranks(np.array([[3.0, 1.0, 3.0], [0.0, 2.0, 1.0]]))
    array([[2.5, 1. , 2.5],
           [1. , 3. , 2. ]])
    """
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    first = np.ones(values.shape, dtype=bool)  # of equal values
    first[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    starts = np.flatnonzero(first)
    counts = np.diff(starts, append=first.size)
    each = starts % max(values.shape[-1], 1) + 0.5 * (counts + 1.0)
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, np.repeat(each, counts).reshape(values.shape), axis=-1)
    return ranks
