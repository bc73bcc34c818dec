"""Bilinear form between predictions and targets that are counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from wellcal._arrays.namespaces import Array
from wellcal._arrays.ops import Ops
from wellcal.expectations.bilinear import Cost, ElementForm, Measure, WeightRows


class CountRows(NamedTuple):
    """Rows of a measure with targets in it: its products with another are those of `left` and `right`.

    Attributes
    ----------
    left
        The kernel between the whole measure and the nodes, ``(n, G)``; with predictions in the measure,
        also their probabilities at the nodes: ``(n, 2 G)``.
    right
        The probabilities, and the kernel between the targets and the nodes; without predictions the latter.
    targets
        The targets as points.
    """

    left: Array
    right: Array
    targets: Measure


@dataclass(frozen=True)
class CountForm:
    """Bilinear form between measures on counts by their nodes; targets meet pair by pair.

    Attributes
    ----------
    points
        The form between targets.
    size
        Number of nodes.
    gram
        Kernel matrix between the nodes, in NumPy.
    """

    points: ElementForm
    size: int
    gram: Array | None = field(default=None, compare=False, repr=False)

    @property
    def cost(self) -> Cost:
        """The products, and the targets."""
        return Cost(self.size / 8.0) + self.points.cost

    def __call__(self, ops: Ops, a: CountRows | WeightRows, b: CountRows | WeightRows) -> Array:
        """Return values of all pairs of rows."""
        xp = ops.xp
        factors = self._factors(a, b)
        total: Array = None if factors is None else xp.matmul(factors[0], xp.matrix_transpose(factors[1]))
        if isinstance(a, CountRows) and isinstance(b, CountRows):
            between = self.points(ops, a.targets, b.targets)
            total = between if total is None else total + between
        return total

    def _factors(self, a: CountRows | WeightRows, b: CountRows | WeightRows) -> tuple[Array, Array] | None:
        """Arrays whose products are all but the kernel between targets; None where that is all."""
        size = self.size
        if not isinstance(a, CountRows):
            assert isinstance(b, CountRows)  # without targets there is a FiniteForm
            return a.weights, b.left[..., :size]
        if isinstance(b, CountRows):
            full = a.left.shape[-1] > size, b.left.shape[-1] > size
            if full == (True, True):
                return a.left, b.right
            if full == (False, False):
                return None
            return (a.left[..., size:], b.right) if full[0] else (a.right, b.right[..., :size])
        return a.left[..., :size], b.weights
