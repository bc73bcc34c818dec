"""Finitely many features that reproduce a Gaussian kernel to rounding.

A Gaussian kernel is an integral of products of Gaussians of half its squared length scale,

    exp(-|x - y|^2 / (2 l^2)) = (pi / 2)^(-1/2) / l * int exp(-(x - t)^2 / l^2) exp(-(y - t)^2 / l^2) dt,

and the trapezoidal rule of spacing h has a relative error of 2 exp(-(pi l / h)^2 / 2): 8e-14 for
h = l / 2.5. On the part of the line that the data occupy a few dozen features remain, so that predictions
made of many atoms meet in a matrix product instead of atom by atom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.chunks import budget, entries_for, in_chunks, told_chunks
from wellcal._arrays.namespaces import (
    Array,
    Namespace,
    NDArray,
    asarray,
    concat_rows,
    device_of,
    from_numpy,
    is_numpy,
    is_tensor,
    namespace,
    stop_gradient,
)
from wellcal._arrays.rows import add_at, can_add_at
from wellcal.expectations.decompose import Components
from wellcal.expectations.even_features import even_sums
from wellcal.expectations.low_rank import LowRank
from wellcal.expectations.rules.elements import Points

PER_SCALE = 2.5
"""Features in one length scale."""

FEATURES_OF_CASES = "features of cases"
"""What progress is told of."""

REACH = 15
"""Features to either side of a point: exp(-6^2) = 2e-16 remains beyond."""

NORM = math.sqrt(1.0 / (PER_SCALE * math.sqrt(0.5 * math.pi)))  # of a feature
_FEW_FEATURES = 192  # up to here an atom meets all of them in less time than it takes to find those near it
_SEVERAL_ATOMS = 16  # of a row, from which products take less time than exponentials
_MANY_MEETINGS = 2**17  # of a row's atoms with features: below, tensors meet all of them at once


@dataclass(frozen=True)
class FeatureGrid:
    """Centres of features along each coordinate; features of vectors are products.

    Centres are relative to an origin within the data: they are spaced evenly to rounding of the spread.
    """

    lengthscale: float
    centres: tuple[NDArray, ...]
    origin: tuple[float, ...]

    @property
    def size(self) -> int:
        """Number of features."""
        return math.prod(len(c) for c in self.centres)

    @np.errstate(over="ignore", under="ignore")  # of squared distances: their exponentials are zero
    def of_points(self, values: Array, weights: Array | None) -> Array:
        """Mean features ``(n, M)`` of atoms ``(n, S, d)`` with weights ``(n, S)``, uniform where None."""
        xp = namespace(values)
        n, count = values.shape[0], values.shape[1]
        if len(self.centres) == 1:
            features = len(self.centres[0])
            meetings = count * features
            if is_numpy(xp) and count == 1 and weights is None and features > _FEW_FEATURES:
                return self._of_single_points_on_a_line(values[:, 0, 0])
            if is_numpy(xp) and (features <= _FEW_FEATURES or meetings <= REACH * (count + features)):
                return self._of_all_pairs_on_a_line(values[:, :, 0], weights)
            if is_numpy(xp):
                return self._of_points_on_a_line(values[:, :, 0], weights)
            if meetings > _MANY_MEETINGS and can_add_at(xp):
                return self._of_tensors_on_a_line(xp, values[:, :, 0], weights)
        parts: list[Array] = []
        entries = count * max(len(c) for c in self.centres) + self.size
        for rows in told_chunks(n, entries, within=entries_for(values), what=FEATURES_OF_CASES):
            chunk = None if weights is None else weights[rows, :]
            parts.append(self._mean(xp, values[rows, ...], chunk, count))
        return concat_rows(parts)

    def _mean(self, xp: Namespace, values: Array, weights: Array | None, count: int) -> Array:
        if count == 1 and weights is None and len(self.centres) == 1 and is_tensor(values):
            return self._along(xp, values[:, :, 0] - self.origin[0], 0)[:, 0, :]
        factors = [self._along(xp, values[:, :, c] - self.origin[c], c) for c in range(len(self.centres))]
        first = factors[0] / count if weights is None else factors[0] * weights[:, :, None]
        if len(factors) == 1:
            return xp.sum(first, axis=1)
        product = xp.matmul(xp.permute_dims(first, (0, 2, 1)), factors[1])
        return xp.reshape(product, (values.shape[0], -1))

    def near(self, x: NDArray) -> tuple[NDArray, NDArray]:
        """Features of scalars in NumPy that are not negligible: positions and values, with one axis more."""
        centres = self.centres[0]
        x = x - self.origin[0]
        position = self._nearest(x)[..., None] + np.arange(-REACH, REACH + 1)
        inside = (position >= 0) & (position < len(centres))
        position = np.where(inside, position, 0)
        values = np.exp(-(((x[..., None] - centres[position]) / self.lengthscale) ** 2))
        return position, values * (NORM * inside)

    def _nearest(self, x: NDArray) -> NDArray:
        """Positions of the centres next to scalars, which are relative to the origin."""
        found = np.searchsorted(self.centres[0], x - 0.5 * step_of(self.lengthscale))
        return np.minimum(found, len(self.centres[0]) - 1)

    def _of_all_pairs_on_a_line(self, x: NDArray, weights: NDArray | None) -> NDArray:
        """The same for scalars in NumPy and few features: each atom meets all of them, in one array."""
        n, count = x.shape
        centres = self.centres[0]
        if count >= _SEVERAL_ATOMS and self._is_even():
            step = step_of(self.lengthscale)
            first = float(centres[0])
            found = even_sums(x, weights, self.origin[0], first, len(centres), step, self.lengthscale)
            return np.multiply(found, NORM, out=found)
        out = np.empty((n, len(centres)))
        for rows in told_chunks(n, count * len(centres), within=budget.cache, what=FEATURES_OF_CASES):
            table = np.subtract((x[rows] - self.origin[0])[:, :, None], centres)
            table *= table
            table *= -1.0 / self.lengthscale**2
            np.exp(table, out=table)
            if count == 1 and weights is None:
                out[rows] = table[:, 0]
            elif weights is None:
                np.mean(table, axis=1, out=out[rows])
            else:
                np.matmul(np.asarray(weights)[rows, None, :], table, out=out[rows, None, :])
        out *= NORM
        return out

    def _of_single_points_on_a_line(self, x: NDArray) -> NDArray:
        """The same for one atom a row: it meets the features near it, which stand side by side."""
        size, steps = len(self.centres[0]), np.arange(2 * REACH + 1)
        centres = np.pad(self.centres[0], REACH, constant_values=np.inf)  # so that all have neighbours
        out = np.empty((len(x), size))
        for rows in told_chunks(len(x), len(centres), within=budget.cache, what=FEATURES_OF_CASES):
            own = x[rows] - self.origin[0]
            position = self._nearest(own)[:, None] + steps
            table = own[:, None] - centres[position]
            table *= table
            table *= -1.0 / self.lengthscale**2
            wide = np.zeros((len(own), len(centres)))
            np.put_along_axis(wide, position, np.exp(table, out=table), axis=1)
            np.multiply(wide[:, REACH:-REACH], NORM, out=out[rows])
        return out

    def _is_even(self) -> bool:
        """Whether no cell is left out between the first and the last."""
        cells = np.rint(self.centres[0] / step_of(self.lengthscale))
        return bool(cells[-1] - cells[0] == len(cells) - 1)

    def _of_points_on_a_line(self, x: NDArray, weights: NDArray | None) -> NDArray:
        """The same for scalars in NumPy, each atom reaching only the features near it."""
        n, count = x.shape
        size = len(self.centres[0])
        out = np.empty((n, size))
        for rows in told_chunks(
            n, max(count * (2 * REACH + 1), size), within=4 * budget.cache, what=FEATURES_OF_CASES
        ):
            row, column = self._within_reach(x[rows])
            position, values = self.near(x[rows][row, column])
            values *= 1.0 / count if weights is None else np.asarray(weights)[rows][row, column, None]
            position += (row * size)[:, None]
            sums = np.bincount(position.reshape(-1), values.reshape(-1), len(x[rows]) * size)
            out[rows] = sums.reshape(-1, size)
        return out

    def _within_reach(self, x: NDArray) -> tuple[NDArray, NDArray]:
        """Rows and columns of the atoms ``(n, S)`` that have features: few, where many cells are left out."""
        away = x - self.origin[0]
        away -= self.centres[0][self._nearest(away)]
        found = np.nonzero(np.abs(away, out=away) <= (REACH + 1) * step_of(self.lengthscale))
        return found[0], found[1]

    def _of_tensors_on_a_line(self, xp: Namespace, x: Array, weights: Array | None) -> Array:
        """The same in a library with gradients, also where values cannot be looked at."""
        count, size = x.shape[1], len(self.centres[0])
        centres = asarray(self.centres[0], xp=xp, device=device_of(x), dtype=x.dtype)
        parts: list[Array] = []
        for rows in in_chunks(x.shape[0], max(count * (2 * REACH + 1), size), within=entries_for(x)):
            own = x[rows, :] - self.origin[0]
            n = int(own.shape[0])
            nearest = xp.searchsorted(
                centres, xp.reshape(stop_gradient(own), (-1,)) - 0.5 * self.lengthscale / PER_SCALE
            )
            reach = from_numpy(np.arange(-REACH, REACH + 1), x)
            position = xp.reshape(xp.clip(nearest, max=size - 1)[:, None] + reach, (n, count, -1))
            inside = (position >= 0) & (position < size)
            position = xp.where(inside, position, xp.zeros_like(position))
            near = xp.reshape(xp.take(centres, xp.reshape(position, (-1,))), position.shape)
            values = NORM * xp.exp(-(((own[:, :, None] - near) / self.lengthscale) ** 2))
            values = values / count if weights is None else values * weights[rows, :][:, :, None]
            values = xp.where(inside, values, xp.zeros_like(values))
            row = from_numpy(np.arange(n) * size, x)
            place = xp.reshape(position + row[:, None, None], (-1,))
            parts.append(xp.reshape(add_at(xp.reshape(values, (-1,)), place, n * size), (n, size)))
        return concat_rows(parts)

    def _along(self, xp: Namespace, x: Array, coordinate: int) -> Array:
        centres = asarray(self.centres[coordinate], xp=xp, device=device_of(x), dtype=x.dtype)
        away = (x[:, :, None] - centres[None, None, :]) / self.lengthscale
        if is_tensor(x) and not x.requires_grad:  # in one array
            return away.square_().neg_().exp_().mul_(NORM)
        return NORM * xp.exp(-(away**2))

    def of_normals(self, loc: Array, variance: Array) -> Array:
        """Expected features of normals with independent coordinates, ``(n, d)`` each."""
        xp = namespace(loc)
        if is_numpy(xp) and len(self.centres) == 1:
            return self._of_normals_on_a_line(loc, variance)
        product: Array = None
        for c, line in enumerate(self.centres):
            centres = asarray(line, xp=xp, device=device_of(loc), dtype=loc.dtype)
            spread = 1.0 + 2.0 * variance[:, c, None] / self.lengthscale**2
            from_origin = loc[:, c, None] - self.origin[c]
            squared = ((from_origin - centres[None, :]) / self.lengthscale) ** 2
            factor = NORM * xp.exp(-squared / spread) / xp.sqrt(spread)
            product = factor if product is None else product[:, :, None] * factor[:, None, :]
        return xp.reshape(product, (loc.shape[0], -1))

    def _of_normals_on_a_line(self, loc: NDArray, variance: NDArray) -> NDArray:
        """The same for scalars in NumPy, in one array."""
        out = np.empty((len(loc), len(self.centres[0])))
        for rows in told_chunks(len(loc), out.shape[1], within=budget.cache, what=FEATURES_OF_CASES):
            spread = 1.0 + 2.0 * variance[rows] / self.lengthscale**2
            own = np.subtract(loc[rows] - self.origin[0], self.centres[0], out=out[rows])
            own *= own
            own *= -1.0 / (self.lengthscale**2 * spread)
            np.exp(own, out=own)
            own *= NORM / np.sqrt(spread)
        return out


def step_of(lengthscale: float) -> float:
    """Distance of features."""
    return lengthscale / PER_SCALE


def mean_features(grid: FeatureGrid | LowRank, part: Components) -> Array:
    """Weighted sum of the mean features of points or normals, ``(n, M)``."""
    element: Any = part.element
    if isinstance(element, Points):
        values = _side_by_side(element.x)
        if isinstance(part.weights, float):
            own = grid.of_points(values, None)
            factor = part.weights * part.size
            return np.multiply(own, factor, out=own) if is_numpy(namespace(own)) else factor * own
        return grid.of_points(values, part.weight_array())
    assert isinstance(grid, FeatureGrid)
    total: Array = None
    for k in range(part.size):
        loc, variance = (_side_by_side([c[:, k] for c in of]) for of in (element.x, element.v))
        own = grid.of_normals(loc, variance)
        weights: Any = part.weights
        if not isinstance(weights, float):
            own = own * weights[:, k, None]
        elif weights != 1.0:
            own = own * weights
        total = own if total is None else total + own
    return total


def _side_by_side(arrays: Sequence[Array]) -> Array:
    """Arrays along a new last axis; where there is one, a view of it."""
    return arrays[0][..., None] if len(arrays) == 1 else namespace(*arrays).stack(list(arrays), axis=-1)
