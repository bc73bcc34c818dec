"""A term of h in the plane: features at its points, and their sums by multipoles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.powers import quick_exponential
from wellcal.engines.mixed import large_coordinates
from wellcal.engines.multipoles import Kind, Tree, plane_sums
from wellcal.expectations.bilinear import WeightRows
from wellcal.expectations.on_predictions import ExpDistanceForm
from wellcal.problem.problem import Term, TermRows

_FAR = 44.0  # of the exponent: exp(-44) is 1e-19
_LOOKED_AT = 4096  # cases among which equal predictions are looked for


@dataclass(frozen=True)
class Planar:
    """One term.

    Attributes
    ----------
    tree
        Different points.
    phi
        Features at each, summed over the cases that are there, box by box.
    ties
        Features of the cases, and at which of the points they are; None where each has its own.
    n
        Number of cases.
    rate, power, factor
        Of the kernel.
    """

    tree: Tree
    phi: NDArray
    ties: tuple[NDArray, NDArray] | None
    n: int
    rate: float
    power: float
    factor: float

    @classmethod
    def of(cls, term: Term, rows: TermRows, kind: Kind) -> Planar:
        form = cast("ExpDistanceForm", term.on_predictions)
        points = np.asarray(rows.on_predictions)
        if points.shape[1] == 1:
            points = np.concatenate([points, np.zeros_like(points)], axis=1)
        weights = cast("WeightRows", rows.on_targets).weights
        columns = None if kind is np.float64 else large_coordinates(weights)
        length = cast("float", form.lengthscale)
        different, at = _without_ties(points)
        tree = Tree.of(different, length * _FAR ** (1.0 / form.power))
        if at is None:
            phi, ties = tree.by_boxes(weights, kind, columns), None
        else:
            features = weights if columns is None else weights[:, columns].astype(kind)
            phi = tree.by_boxes(_merged(features, at, len(different)), kind)
            ties = features, at
        rate = -(length**-form.power)
        return cls(tree, phi, ties, len(points), rate, form.power, cast("float", term.factor))

    def kernel(self, squared: NDArray) -> NDArray:
        """Of squared distances, in their place."""
        if self.power == 1.0:
            np.sqrt(squared, out=squared)
        elif self.power != 2.0:
            np.power(squared, 0.5 * self.power, out=squared)
        exp = quick_exponential(squared.dtype)
        squared *= exp.scale * self.rate
        return exp.in_place(squared)

    def row_sums(self, order: int) -> NDArray:
        """Sums of the term over all other cases."""
        with np.errstate(under="ignore"):
            sums = plane_sums(self.tree, self.phi, self.kernel, order)
        if self.ties is None:
            flat = (array.reshape(-1, array.shape[2]) for array in (self.phi, sums))
            rows = _with_others(*flat)
            return self.factor * self.tree.by_points(rows.reshape(sums.shape[:2]), self.n)
        features, at = self.ties
        found = self.tree.by_points(sums, int(at.max()) + 1)
        return self.factor * _with_others(features, found, at)


def _with_others(features: NDArray, sums: NDArray, at: NDArray | None = None) -> NDArray:
    """Products of features with sums, less those with themselves, ``(n,)``."""
    out = np.empty(len(features))
    for cases in in_chunks(len(out), 3 * features.shape[1]):
        own = features[cases].astype(np.float64)
        out[cases] = np.einsum("nm,nm->n", own, (sums[cases] if at is None else sums[at[cases]]) - own)
    return out


def _without_ties(points: NDArray) -> tuple[NDArray, NDArray | None]:
    """Different points, and which of them each case is; None where there are hardly any ties."""
    n = len(points)
    some = points[np.random.default_rng(0).integers(0, n, min(n, _LOOKED_AT))]
    drawn = np.unique(some.view(np.complex128).reshape(-1))
    if n > _LOOKED_AT and len(drawn) > 0.9 * len(some):
        return points, None
    values, at = np.unique(np.ascontiguousarray(points).view(np.complex128).reshape(-1), return_inverse=True)
    if len(values) == n:
        return points, None
    return np.stack([values.real, values.imag], axis=1), at


def _merged(features: NDArray, at: NDArray, count: int) -> NDArray:
    """Sums of the features of cases with equal predictions."""
    columns = [np.bincount(at, features[:, c], count) for c in range(features.shape[1])]
    return np.stack(columns, axis=1).astype(features.dtype)
