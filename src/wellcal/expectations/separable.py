"""Normals of two coordinates or more and points under a Gaussian kernel: exponents by matrix products.

In many coordinates a Gaussian kernel has no features to speak of, and in two it has hundreds, whose products
take longer. But the exponent between a normal and a point is a sum of products, coordinate by coordinate:
``(m - y)^2 w = m^2 w - 2 m w y + w y^2`` with ``w = 1 / (l^2 + v)``. So is that between two points. Only two
normals, whose variances meet in a denominator, are left to be visited one coordinate after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray
from wellcal._arrays.ops import Ops
from wellcal.expectations.bilinear import Cost, ElementForm, Measure
from wellcal.expectations.rules.elements import Normals, Points
from wellcal.expectations.rules.gaussian import FURTHEST
from wellcal.kernels.targets import Gaussian

_FEWEST = 2  # coordinates
_FOLDED = 16  # factors after which a product of spreads goes into the exponent: more might overflow


class SeparableRows(NamedTuple):
    """Rows of a normal less a point, with coordinates relative to the middle of all.

    Attributes
    ----------
    loc, variance
        Of the normals, ``(n, d)``, in length scales and their squares.
    of_normals, of_points
        What a normal, and a point, brings to their exponents, ``(n, 2 d + 1)``.
    points, partners
        What a point brings to its exponent with another, and what that brings, ``(n, d + 2)``.
    """

    loc: NDArray
    variance: NDArray
    of_normals: NDArray
    of_points: NDArray
    points: NDArray
    partners: NDArray


@dataclass(frozen=True)
class SeparableForm:
    """Bilinear form between normals less points, with a factor for each."""

    dimension: int
    normals: float
    targets: float

    @property
    def cost(self) -> Cost:
        """Two normals coordinate by coordinate, and three exponentials."""
        return Cost(2.0 * self.dimension + 8.0, entries=4)

    def __call__(self, ops: Ops, a: SeparableRows, b: SeparableRows) -> Array:
        """Return values of all pairs of rows."""
        total = self._between_normals(a, b)
        total *= self.normals**2
        for factor, left, right in (
            (self.normals * self.targets, a.of_normals, b.of_points),
            (self.normals * self.targets, a.of_points, b.of_normals),
            (self.targets**2, a.points, b.partners),
        ):
            part = left @ np.swapaxes(right, -1, -2)
            np.exp(part, out=part)
            total = np.add(total, part, out=total) if factor == 1.0 else total + factor * part
        return total

    def _between_normals(self, a: SeparableRows, b: SeparableRows) -> NDArray:
        left, right = (np.moveaxis(z, -1, 0)[..., :, None] for z in (a.loc, 1.0 + a.variance))
        others, variances = (np.moveaxis(z, -1, 0)[..., None, :] for z in (b.loc, b.variance))
        shape = np.broadcast_shapes(left.shape[1:], others.shape[1:])
        exponent = np.zeros(shape)
        product = np.ones(shape)
        difference, spread = np.empty(shape), np.empty(shape)
        for c in range(self.dimension):
            np.subtract(left[c], others[c], out=difference)
            difference *= difference
            np.add(right[c], variances[c], out=spread)
            product *= spread
            difference /= spread
            exponent += difference
            if c % _FOLDED == _FOLDED - 1:
                exponent += np.log(product)
                product.fill(1.0)
        exponent *= -0.5
        np.exp(exponent, out=exponent)
        exponent /= np.sqrt(product, out=product)
        return exponent


def by_products(form: ElementForm, measure: Measure) -> tuple[SeparableForm, SeparableRows] | None:
    """One normal and one point for each case in NumPy, by products in the exponent; None for others."""
    kernel = form.kernel
    if type(kernel) is not Gaussian or not isinstance(kernel.lengthscale, float):
        return None
    kinds = {part.kind: part for part in measure}
    if form.dimension < _FEWEST or len(measure) != 2 or set(kinds) != {Normals, Points}:
        return None
    one, other = kinds[Normals], kinds[Points]
    if not (
        one.size == other.size == 1 and isinstance(one.weights, float) and isinstance(other.weights, float)
    ):
        return None
    length = kernel.lengthscale
    normals, points = cast("Any", one.element), cast("Any", other.element)
    loc, variance, y = (np.concatenate(columns, axis=1) for columns in (normals.x, normals.v, points.x))
    middle = np.median(loc, axis=0)
    loc, y, variance = (loc - middle) / length, (y - middle) / length, variance / length**2
    if not max(float(np.max(np.sum(z * z, axis=1))) for z in (loc, y)) < FURTHEST:
        return None
    weight = 1.0 / (1.0 + variance)
    constant = -0.5 * np.sum(loc**2 * weight + np.log1p(variance), axis=1, keepdims=True)
    ones, square = np.ones((len(y), 1)), -0.5 * np.sum(y * y, axis=1, keepdims=True)
    rows = SeparableRows(
        loc,
        variance,
        np.concatenate([constant, weight, loc * weight], axis=1),
        np.concatenate([ones, -0.5 * y * y, y], axis=1),
        np.concatenate([square, ones, y], axis=1),
        np.concatenate([ones, square, y], axis=1),
    )
    return SeparableForm(form.dimension, one.weights, other.weights), rows
