"""Logarithms of Bhattacharyya coefficients, exact to rounding where predictions are close."""

from __future__ import annotations

from wellcal._arrays.namespaces import Array
from wellcal._arrays.ops import Ops

Pair = tuple[Array, Array]


def normal(ops: Ops, loc: Pair, scale: Pair) -> Array:
    """Normals with independent coordinates along the last axis.

    With t = s^2 + s'^2 each coordinate gives ``log(1 - (s - s')^2 / t) / 2 - (m - m')^2 / (4 t)``.
    """
    total = scale[0] ** 2 + scale[1] ** 2
    spread = 0.5 * ops.log1p(-((scale[0] - scale[1]) ** 2) / total)
    return ops.xp.sum(spread - 0.25 * (loc[0] - loc[1]) ** 2 / total, axis=-1)


def poisson(ops: Ops, rate: Pair) -> Array:
    """Return ``-(sqrt(a) - sqrt(b))^2 / 2``, summed over the last axis."""
    return -0.5 * ops.xp.sum((ops.root(rate[0]) - ops.root(rate[1])) ** 2, axis=-1)
