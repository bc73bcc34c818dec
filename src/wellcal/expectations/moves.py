"""How far parameters of elementary distributions can be moved until a pairing notices.

A move is measured in units in which the pairing under a kernel changes by about itself, and which keep every
parameter in its domain. Kinds of elements without a rule here are not moved.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from wellcal._arrays.namespaces import Array
from wellcal._arrays.ops import Ops
from wellcal._arrays.registry import Rules
from wellcal.expectations.bilinear import Measure
from wellcal.expectations.rules.elements import FullNormals, Laplaces, Normals, Points, Poissons
from wellcal.expectations.rules.positive_definite import relative_size
from wellcal.kernels.algebra import Scaled, Sum
from wellcal.kernels.base import Kernel, Scale
from wellcal.kernels.targets import Gaussian, RationalQuadratic

MOVE = 0.035
"""Largest change of a parameter from which a polynomial leads back: subtraction keeps 13 digits there."""

_LEAST = 1e-30  # weights below are none

Change = Callable[[Ops, Any, Any, Any], list[Array]]
"""From operations, an element, its change and a kernel to relative changes ``(p, K)``."""

RELATIVE_CHANGES: Rules[Change] = Rules("a relative change", exact=True)
"""Changes of the parameters of an elementary distribution in units of their own, by kind."""


def summands(kernel: Kernel) -> list[Kernel]:
    """Kernels that a sum is made of, without their factors."""
    if isinstance(kernel, Sum):
        return [part for k in kernel.kernels for part in summands(k)]
    return summands(kernel.kernel) if isinstance(kernel, Scaled) else [kernel]


def is_smooth(kernel: Kernel) -> bool:
    """Whether a kernel has derivatives where its arguments are equal."""
    return type(kernel) in (Gaussian, RationalQuadratic)


def is_movable(kernel: Kernel, measure: Measure) -> bool:
    """Whether the parameters of all components have units; points do under smooth kernels only."""
    kinds = {part.kind for part in measure}
    if Points in kinds and not all(map(is_smooth, summands(kernel))):
        return False
    return all(RELATIVE_CHANGES.find(kind) is not None for kind in kinds)


def largest_move(ops: Ops, kernel: Kernel, middle: Measure, half: Measure) -> Array:
    """The largest relative change of any parameter, ``(p,)``."""
    xp = ops.xp
    ratios: list[Array] = []
    for own, change in zip(middle, half, strict=True):
        rule = RELATIVE_CHANGES.find(own.kind)
        assert rule is not None
        for part in summands(kernel):
            ratios += rule(ops, own.element, change.element, part)
        if not isinstance(own.weights, float):
            # What is linear in the weights can be taken further.
            step: Array = change.weights
            most = xp.max(ops.abs(own.weights), axis=1, keepdims=True)
            ratios.append(MOVE * ops.abs(step) / ops.maximum(most, _LEAST + 0.0 * most))
    return reduce(ops.maximum, [xp.max(ratio, axis=1) for ratio in ratios])


def _smoothing(kernel: Any) -> Scale:
    """Variance that a smooth kernel adds to that of predictions; a kernel with a kink adds none."""
    return kernel.lengthscale**2 if is_smooth(kernel) else 0.0


def _sum(parts: list[Array]) -> Array:
    return reduce(lambda total, part: total + part, parts)


@RELATIVE_CHANGES.register(Points)
def _of_points(ops: Ops, own: Points, change: Points, kernel: Kernel) -> list[Array]:
    return [ops.sqrt(_sum([x**2 for x in change.x]) / _smoothing(kernel))]


@RELATIVE_CHANGES.register(Normals)
def _of_normals(ops: Ops, own: Normals, change: Normals, kernel: Kernel) -> list[Array]:
    spread = [v + 0.5 * _smoothing(kernel) for v in own.v]
    relative = [v / s for v, s in zip(change.v, spread, strict=True)]
    distance = _sum([x**2 / (2.0 * s) for x, s in zip(change.x, spread, strict=True)])
    return [ops.sqrt(distance), ops.abs(_sum(relative)) + ops.sqrt(_sum([r**2 for r in relative]))]


@RELATIVE_CHANGES.register(FullNormals)
def _of_full_normals(ops: Ops, own: FullNormals, change: FullNormals, kernel: Kernel) -> list[Array]:
    d = range(len(own.x))
    ridge = 0.5 * _smoothing(kernel)
    spread = [[own.cov[i][j] + ridge if i == j else own.cov[i][j] for j in range(i + 1)] for i in d]
    moved = [[change.cov[max(i, j)][min(i, j)] for j in d] for i in d]
    distance, trace, square = relative_size(spread, change.x, moved)
    return [ops.sqrt(0.5 * distance), ops.abs(trace) + ops.sqrt(square)]


@RELATIVE_CHANGES.register(Laplaces)
def _of_laplaces(ops: Ops, own: Laplaces, change: Laplaces, kernel: Any) -> list[Array]:
    width = ops.minimum(own.scale, kernel.lengthscale + 0.0 * own.scale)
    return [ops.abs(change.x[0]) / width, ops.abs(change.scale) / own.scale]


@RELATIVE_CHANGES.register(Poissons)
def _of_poissons(ops: Ops, own: Poissons, change: Poissons, kernel: Kernel) -> list[Array]:
    # Two rates whose middle is zero are zero both; of tiny ones the larger may be twice the middle.
    possible = own.rate > 0
    rate = ops.where(possible, own.rate, ops.one(own.rate))
    ratio = ops.abs(change.rate) / ops.minimum(5.0 * rate, 1.0 + ops.sqrt(rate))
    return [ops.where(possible, ratio, 0.0 * ratio)]
