"""Sums of many Gaussian bells at centres that are evenly spaced, with two exponentials for sixteen of them.

With `u` the way from the middle of a block of centres to an atom, and `k` steps from there to a centre,

    exp(-(u - k s)^2 / l^2) = exp(-u^2 / l^2) exp(2 u s / l^2)^k exp(-(k s)^2 / l^2),

so that the values at one centre after another are products with the same number. The last factor is the same
for all atoms, and waits until these are summed.
"""

from __future__ import annotations

import numpy as np

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.namespaces import NDArray

_BLOCK = 16  # centres: the least and the largest of a block's values are within what numbers hold
_HALF = _BLOCK // 2
_FURTHEST = 250.0  # steps, from where nothing of an atom is left, and below what overflows


def even_sums(
    x: NDArray,
    weights: NDArray | None,
    origin: float,
    first: float,
    count: int,
    step: float,
    lengthscale: float,
) -> NDArray:
    """``sum_s w_is exp(-(x_is - c_m)^2 / l^2)`` for atoms ``(n, S)`` and `count` centres, ``(n, count)``.

    Parameters
    ----------
    x, weights
        Atoms and their weights, means where None.
    origin, first, count, step
        Centres ``origin + (first + m step)``, the origin being amid the data, however far that is from
        zero; a step is a good part of the length scale.
    lengthscale
        Of the bells, l.

    Examples
    --------
    >>> x, centres = np.array([[0.3, 1.0]]), -1.0 + 0.4 * np.arange(20)
    >>> exact = np.exp(-((x[:, :, None] - centres) ** 2)).mean(axis=1)
    >>> bool(np.abs(even_sums(x, None, 0.0, -1.0, 20, 0.4, 1.0) - exact).max() < 1e-15)
    True
    """
    n, atoms = x.shape
    blocks = -(-count // _BLOCK)
    rate = lengthscale**-2.0
    middles = first + step * (_BLOCK * np.arange(blocks) + _HALF)
    out = np.empty((n, blocks, _BLOCK))
    mean = np.full((1, 1, atoms), 1.0 / atoms)
    for rows in in_chunks(n, atoms * blocks, within=budget.cache // 2):
        ratio = np.subtract((x[rows] - origin)[:, :, None], middles)
        np.clip(ratio, -_FURTHEST * step, _FURTHEST * step, out=ratio)
        value = ratio * ratio
        value *= -rate
        ratio *= 2.0 * rate * step
        own = mean if weights is None else weights[rows][:, None, :]
        with np.errstate(under="ignore"):
            np.exp(value, out=value)
            np.exp(ratio, out=ratio)
            back = 1.0 / ratio
            before = value * back
            # From the middle to both ends, so that no exponent is much larger than that of the result.
            for k in range(_HALF, _BLOCK):
                out[rows, :, k] = (own @ value)[:, 0]
                value *= ratio
            for k in range(_HALF - 1, -1, -1):
                out[rows, :, k] = (own @ before)[:, 0]
                before *= back
    out *= np.exp(-rate * (step * (np.arange(_BLOCK) - _HALF)) ** 2)
    return np.ascontiguousarray(out.reshape(n, -1)[:, :count])
