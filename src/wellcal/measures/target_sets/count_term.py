"""Counts: what predictions and targets have in common is looked up, and only targets meet pair by pair.

For each case j the sum over all other cases of k_P(P_i, P_j) <P_i, d(y)> is a function of the count y alone,
the same for all sets of targets. It is tabulated once; a set of targets then costs one look into the table
for each case, and the kernel between its targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from wellcal._arrays.chunks import Chunk, budget, in_chunks, tile_shape
from wellcal._arrays.namespaces import NDArray, namespace
from wellcal._arrays.ops import ops_for
from wellcal.expectations.bilinear import ElementForm, Measure
from wellcal.expectations.count_plan import CountPlan
from wellcal.expectations.decompose import Components
from wellcal.expectations.plans import GridPlan, Plan
from wellcal.expectations.rules.elements import Points
from wellcal.kernels.base import Kernel, TargetKernel
from wellcal.predictions import Predictions

_ops = ops_for(namespace())


class CountSets(NamedTuple):
    """Sets of targets ``(r, n)``: the counts that occur, which of them each is, and all of them as points."""

    counts: NDArray
    codes: NDArray
    points: Measure


class Tables(NamedTuple):
    """What sets of targets do not change, for each of q kernels on predictions.

    Attributes
    ----------
    constant
        Sums of k_P(P_i, P_j) <P_i, P_j> over i < j, ``(q,)``.
    sums
        For each case the sum over all others of k_P times their expectations, ``(q, n, D)``.
    """

    constant: NDArray
    sums: NDArray


@dataclass(frozen=True)
class CountTerm:
    """A kernel on counts, as far as sets of targets change it.

    Attributes
    ----------
    form
        The kernel between targets.
    left, right
        Predictions, ``(n, D)`` each, whose products are <P_i, P_j>.
    at
        From counts in ascending order ``(U,)`` to ``(U, D)``, whose products with `left` are <P_i, d(y)>.
    """

    form: ElementForm
    left: NDArray
    right: NDArray
    at: Callable[[NDArray], NDArray]

    small_products: ClassVar[bool] = True

    @classmethod
    def prepare(cls, kernel: Kernel, predictions: Predictions, scheme: Plan) -> CountTerm | None:
        """What depends on the predictions alone; None for other targets, and for users' functions."""
        if (
            predictions.target_kind != "counts"
            or not isinstance(kernel, TargetKernel)
            or not kernel.elementwise
        ):
            return None
        form = ElementForm(kernel, 1, 1)
        if isinstance(scheme, GridPlan):
            weights, image = scheme.rows([(1.0, predictions)])
            grid = scheme.grid

            def on_grid(counts: NDArray) -> NDArray:
                # Counts beyond the grid have a probability below 1e-13.
                place = np.minimum(np.searchsorted(grid, counts), len(grid) - 1)
                return (place[:, None] == np.arange(len(grid))[None, :]).astype(np.float64)

            return cls(form, weights if image is None else image, weights, on_grid)
        if isinstance(scheme, CountPlan):
            if scheme.centres is not None:
                mean = scheme.mean(predictions)
                return cls(form, mean, mean, scheme.at)
            return cls(form, scheme.probabilities(predictions), scheme.image(predictions), scheme.at)
        return None

    @property
    def entries(self) -> int:
        """Numbers that encode one target."""
        return 2

    @property
    def cost(self) -> float:
        """The kernel between two targets, and its product with that on predictions."""
        return 2.0 + self.form.cost.evaluations

    def tile_shape(self, n: int) -> tuple[int, int]:
        """Tiles that fit the cache."""
        return tile_shape(self.form.cost.entries, budget.cache // 2)

    def encode(self, targets: NDArray) -> CountSets:
        """Counts, and which of them each target is."""
        counts, codes = np.unique(targets, return_inverse=True)
        points = Components(Points((targets[:, :, None].astype(np.float64),)), 1.0)
        return CountSets(counts.astype(np.float64), codes.reshape(targets.shape), (points,))

    def tile(self, kps: NDArray, i: Chunk, j: Chunk, encoded: CountSets) -> NDArray:
        """Sums of the kernel between targets over a tile of pairs, ``(r, q)``."""
        weights = kps.reshape(len(kps), -1).T
        x = encoded.points[0].element[0][0]
        parts: list[NDArray] = []
        with np.errstate(under="ignore", over="ignore"):
            for sets in in_chunks(len(x), len(weights), within=budget.cache):
                left, right = ((Components(Points((x[sets, cases],)), 1.0),) for cases in (i, j))
                values = self.form(_ops, left, right)
                parts.append(values.reshape(len(values), -1) @ weights)
        return np.concatenate(parts)

    def tables(self, rows_of: Callable[[Chunk], NDArray]) -> Tables:
        """Tables for kernels on predictions, given by rows: ``(q, len(i), n)``, zero at (i, i)."""
        chunks = list(in_chunks(len(self.left), len(self.left)))
        sums = np.concatenate([rows_of(i) @ self.left for i in chunks], axis=1)
        return Tables(0.5 * np.einsum("qnd,nd->q", sums, self.right), sums)

    def looked_up(self, tables: Tables, encoded: CountSets) -> NDArray:
        """All but the kernel between targets, ``(r, q)``."""
        at = self.at(encoded.counts)
        total = np.repeat(tables.constant[None, :], len(encoded.codes), axis=0)
        for cases in in_chunks(len(self.left), len(at)):
            row = np.arange(cases.stop - cases.start)
            for q, sums in enumerate(tables.sums):
                found = sums[cases] @ at.T
                total[:, q] -= found[row, encoded.codes[:, cases]].sum(axis=1)
        return total
