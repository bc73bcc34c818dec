"""Sums of each number of one array with each of another, in NumPy."""

from __future__ import annotations

import numpy as np

from wellcal._arrays.namespaces import NDArray


def outer_sum(x: NDArray, y: NDArray, out: NDArray) -> NDArray:
    """``x_i + y_j`` of arrays ``(n,)`` and ``(m,)``, to the last digit that of a sum, in `out` ``(n, m)``.

    It is the product ``[x, 1] [1, y]'``, whose two terms are rounded once when they are added. A matrix
    product makes it in half the time of a broadcast sum.

    Examples
    --------
    >>> outer_sum(np.array([1.0, 2.0]), -np.array([0.5, 3.0]), np.empty((2, 2)))
    array([[ 0.5, -2. ],
           [ 1.5, -1. ]])
    """
    left, right = np.ones((len(x), 2), dtype=out.dtype), np.ones((2, len(y)), dtype=out.dtype)
    left[:, 0], right[1] = x, y
    return np.matmul(left, right, out=out)
