"""Distances between frequencies and predicted probabilities, and what chance adds to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wellcal._arrays.checks import call_given, described, one_of, real_number
from wellcal._arrays.namespaces import Array, is_traced, namespace
from wellcal._arrays.ops import Ops, ops_for
from wellcal.measures.binned.tables import BinTable

DistanceOption = str | float | Callable[[Array, Array], Array]

NAMES = ("total_variation", "euclidean", "squared_euclidean")

_OR_ELSE = (
    "or a number q >= 1 for the q-th power of the l_q norm, or a function of frequencies and probabilities"
)


@dataclass(frozen=True)
class Discrepancy:
    r"""A distance between frequencies and probabilities ``(m, C)``, as a function of their difference.

    `power` is q for :math:`\sum_c |.|^q`; `factor` multiplies it, and `root` takes the square root of it.
    """

    name: str
    power: float = 1.0
    factor: float = 1.0
    root: bool = False
    function: Callable[[Array, Array], Array] | None = None

    def plug_in(self, table: BinTable) -> Array:
        """Distance between frequencies and mean probabilities of each bin, ``(m,)``."""
        xp, ops = namespace(table.predicted), ops_for(namespace(table.predicted))
        if self.function is not None:
            return _called(self.function, table)
        gap = xp.abs(table.observed - table.predicted)
        if math.isinf(self.power):
            return xp.max(gap, axis=1)
        total = self.factor * xp.sum(ops.power(gap, self.power), axis=1)
        return ops.root(total) if self.root else total

    def debiased(self, table: BinTable) -> Array:
        """The distance less what chance adds to it on average, ``(m,)``, for bins of at least two cases."""
        ops = ops_for(namespace(table.predicted))
        assert table.squares is not None
        gap = table.observed - table.predicted
        sizes = table.sizes[:, None]
        safe = ops.where(sizes > 1, sizes - 1.0, ops.one(sizes))
        # Variances of the mean difference, from those of single ones.
        spread = table.squares - gap**2
        variance = ops.where(spread > 0, spread, 0.0 * spread) / safe
        terms = gap**2 - variance if self.power == 2.0 else _less_folded(ops, ops.abs(gap), variance)
        return self.factor * namespace(terms).sum(terms, axis=1)

    @property
    def can_be_debiased(self) -> bool:
        """Whether the bias is known: a sum of squares, or of absolute values."""
        return self.function is None and not self.root and self.power in (1.0, 2.0)


def _less_folded(ops: Ops, gap: Array, variance: Array) -> Array:
    """``2 gap - E|N(gap, variance)|``: the bias of an absolute value, estimated at the value itself."""
    random = variance > 0
    scale = ops.sqrt(ops.where(random, variance, ops.one(variance)))
    z = gap / scale
    mean = scale * (math.sqrt(2.0 / math.pi) * ops.exp(-0.5 * z * z) + z * (2.0 * ops.ndtr(z) - 1.0))
    return ops.where(random, 2.0 * gap - mean, gap)


def as_discrepancy(distance: Any) -> Discrepancy:
    """What a user gave as `distance`: a name, a number q, or a function."""
    if callable(distance):
        name = getattr(distance, "__name__", type(distance).__name__)
        return Discrepancy(str(name), function=distance)
    if isinstance(distance, str):
        one_of(distance, "distance", NAMES, or_else=_OR_ELSE)
        if distance == "total_variation":
            return Discrepancy(distance, 1.0, 0.5)
        return Discrepancy(distance, 2.0, root=distance == "euclidean")
    q = real_number(distance, "distance", f"one of {', '.join(NAMES)} {_OR_ELSE}")
    if not q >= 1.0:
        raise ValueError(f"distance must be a number q >= 1 for the l_q norm, found {described(distance)}")
    return Discrepancy("l_inf" if math.isinf(q) else f"l_{q:g}^{q:g}" if q != 1.0 else "l_1", q)


def _called(function: Callable[[Array, Array], Array], table: BinTable) -> Array:
    values = call_given(function, "distance", table.observed, table.predicted)
    shape = (int(table.predicted.shape[0]),)
    found = tuple(getattr(values, "shape", ()))
    if found != shape:
        raise ValueError(
            f"distance must return one number for each bin: shape {shape} for frequencies and probabilities "
            f"of shape {tuple(table.predicted.shape)}, found shape {found}"
        )
    xp = namespace(values)
    if not is_traced(values) and bool(xp.any(xp.isnan(values))):
        raise ValueError("distance returned NaN for a bin; frequencies may be 0 where probabilities are not")
    return values
