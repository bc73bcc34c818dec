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
    is_on_accelerator,
    is_tensor,
    namespace,
    stop_gradient,
    to_numpy,
)
from wellcal._arrays.rows import add_at, can_add_at
from wellcal.expectations.decompose import Components
from wellcal.expectations.even_features import even_sums
from wellcal.expectations.low_rank import LowRank
from wellcal.expectations.rules.elements import Points
from wellcal.expectations.tensor_features import line_features

_PER_SCALE = 2.5  # features in one length scale
FEATURES_OF_CASES = "features of cases"
"""What progress is told of."""

_REACH = 15  # features to either side of a point: exp(-6^2) = 2e-16 remains beyond
NORM = math.sqrt(1.0 / (_PER_SCALE * math.sqrt(0.5 * math.pi)))  # of a feature
_NEGLIGIBLE = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)  # weight that may go without features, least first
_LARGER = (3e-7, 6e-7, 1e-6, 1e-5, 1e-4, 1e-3)
_LEAST_MASS = 1e-10
_BLOCK = 6.0  # length scales: a point sees nothing beyond
_WHOLE = 2.0**50  # below, whole numbers and their neighbours are exact
_FOR_THE_MIDDLE, _FEWEST_ROWS = 65_536, 256  # numbers, and rows, that a median is taken of
MAX_FEATURES = 4096
_MAX_ENTRIES = 200_000_000  # of the array of all features: 1.6 GB
_MANY_FEATURES = 65_536  # where the array of all features stays small
_FEW_ENTRIES = 20_000_000
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
            if is_numpy(xp) and (features <= _FEW_FEATURES or meetings <= _REACH * (count + features)):
                return self._of_all_pairs_on_a_line(values[:, :, 0], weights)
            if is_numpy(xp):
                return self._of_points_on_a_line(values[:, :, 0], weights)
            if meetings > _MANY_MEETINGS and can_add_at(xp):
                return self._of_tensors_on_a_line(xp, values[:, :, 0], weights)
        parts: list[Array] = []
        entries = count * max(len(c) for c in self.centres) + self.size
        for rows in in_chunks(n, entries, within=entries_for(values)):
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
        position = self._nearest(x)[..., None] + np.arange(-_REACH, _REACH + 1)
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

    def _is_even(self) -> bool:
        """Whether no cell is left out between the first and the last."""
        cells = np.rint(self.centres[0] / step_of(self.lengthscale))
        return bool(cells[-1] - cells[0] == len(cells) - 1)

    def _of_points_on_a_line(self, x: NDArray, weights: NDArray | None) -> NDArray:
        """The same for scalars in NumPy, each atom reaching only the features near it."""
        n, count = x.shape
        size = len(self.centres[0])
        out = np.empty((n, size))
        for rows in in_chunks(n, max(count * (2 * _REACH + 1), size), within=4 * budget.cache):
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
        found = np.nonzero(np.abs(away, out=away) <= (_REACH + 1) * step_of(self.lengthscale))
        return found[0], found[1]

    def _of_tensors_on_a_line(self, xp: Namespace, x: Array, weights: Array | None) -> Array:
        """The same in a library with gradients, also where values cannot be looked at."""
        count, size = x.shape[1], len(self.centres[0])
        centres = asarray(self.centres[0], xp=xp, device=device_of(x), dtype=x.dtype)
        parts: list[Array] = []
        for rows in in_chunks(x.shape[0], max(count * (2 * _REACH + 1), size), within=entries_for(x)):
            own = x[rows, :] - self.origin[0]
            n = int(own.shape[0])
            nearest = xp.searchsorted(
                centres, xp.reshape(stop_gradient(own), (-1,)) - 0.5 * self.lengthscale / _PER_SCALE
            )
            reach = from_numpy(np.arange(-_REACH, _REACH + 1), x)
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
            if len(self.centres) == 1 and is_on_accelerator(loc):
                return line_features(loc - self.origin[0], variance, centres, self.lengthscale, NORM)
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


def feature_grid(
    lengthscale: float, points: list[tuple[Array, Array | None]], *, exact: bool = False
) -> tuple[FeatureGrid, float] | None:
    """Features near all points ``(n, S, d)`` that carry weight, and the weight of those left out.

    Far tails of wide predictions are left out until the features are few enough, unless all must be
    `exact`; None where too much weight would be.
    """
    d = points[0][0].shape[2]
    if d > 2:
        return None
    cases = max(values.shape[0] for values, _ in points)
    # Far from the origin centres are rounded: what must be exact may not be spread too far.
    most = _most_features(cases, 2 if exact else d)
    origin = tuple(_middle(to_numpy(points[0][0][:, :, c])) for c in range(d))
    extents = [(to_numpy(x), None if w is None else to_numpy(w)) for x, w in points]
    for negligible in (0.0,) if exact else _NEGLIGIBLE:
        cells = [
            _cells(lengthscale, [(x[:, :, c], w) for x, w in extents], negligible, origin[c], most)
            for c in range(d)
        ]
        if math.prod(map(len, cells)) <= most:
            step = step_of(lengthscale)
            return FeatureGrid(lengthscale, tuple(c * step for c in cells), origin), negligible
    return None


def _middle(x: NDArray) -> float:
    """The median of numbers ``(n, S)``, of many rows that of some: it is near the data in either case."""
    step = min(len(x) // _FEWEST_ROWS, x.size // _FOR_THE_MIDDLE)
    return float(np.median(x[:: max(1, step)]))


def _most_features(cases: int, dimension: int) -> int:
    most = min(MAX_FEATURES, max(256, _MAX_ENTRIES // cases))
    return most if dimension > 1 else max(most, min(_MANY_FEATURES, _FEW_ENTRIES // cases))


def step_of(lengthscale: float) -> float:
    """Distance of features."""
    return lengthscale / _PER_SCALE


def occupied_cells(
    lengthscale: float, points: list[tuple[NDArray, NDArray | None]], cases: int, origin: float
) -> tuple[NDArray, float] | None:
    """Cells of features near scalars ``(n, S)`` that carry weight, and what a point misses of those left out.

    Atoms are left out where few others lie near: however many such places there are, a point sees one.
    """
    most = _most_features(cases, 1)
    found = [_heaviest_in_cells(lengthscale, x, w, origin) for x, w in points]
    # Many features are worth their cost only for weight that would show in results.
    for negligible, enough in ((1e-9, 1), (1e-8, 1), (1e-7, 4), *((x, 16) for x in _LARGER)):
        # A point sees three blocks at most.
        counted = [mass > negligible / 3.0 for _, mass in found]
        room = min(most, enough * MAX_FEATURES)
        if max(map(np.count_nonzero, counted)) > room:
            continue
        occupied = np.unique(np.concatenate([cells[c] for (cells, _), c in zip(found, counted, strict=True)]))
        if len(occupied) <= room and len(cells := around(occupied)) <= room:
            return cells, negligible
    return None


def _heaviest_in_cells(
    lengthscale: float, x: NDArray, weights: NDArray | None, origin: float
) -> tuple[NDArray, NDArray]:
    """Cells with atoms ``(n, S)``, and the largest weight near one of them; infinite where all count."""
    cells = np.rint((x.reshape(-1) - origin) / step_of(lengthscale))
    if weights is None:
        occupied = different(cells)
        return occupied, np.full(len(occupied), np.inf)
    mass = _mass_nearby(x, weights, _BLOCK * lengthscale).reshape(-1)
    some = np.flatnonzero(mass > _LEAST_MASS)
    order = some[np.argsort(cells[some], kind="stable")]
    ordered = cells[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return ordered[starts], np.maximum.reduceat(mass[order], starts)


def _mass_nearby(x: NDArray, weights: NDArray, width: float) -> NDArray:
    """Weight of all atoms ``(n, S)`` of a row in the block of this width that an atom lies in."""
    order = np.argsort(x, axis=1, kind="stable")
    with np.errstate(over="ignore"):
        block = np.floor(np.take_along_axis(x, order, axis=1) / width)
    starts = np.ones(x.shape, dtype=bool)
    starts[:, 1:] = block[:, 1:] != block[:, :-1]
    number = np.cumsum(starts.reshape(-1)) - 1
    ordered = np.take_along_axis(np.broadcast_to(np.abs(weights), x.shape), order, axis=1)
    mass = np.bincount(number, ordered.reshape(-1))[number].reshape(x.shape)
    out = np.empty(x.shape)
    np.put_along_axis(out, order, mass, axis=1)
    return out


def _cells(
    lengthscale: float,
    points: list[tuple[NDArray, NDArray | None]],
    negligible: float,
    origin: float,
    most: int,
) -> NDArray:
    step = step_of(lengthscale)
    found: list[NDArray] = []
    for values, weights in points:
        x = values.reshape(-1) if weights is None else values[_weighty(weights, negligible)]
        found.append(different(np.rint((x - origin) / step)))
    occupied = np.unique(np.concatenate(found))
    return occupied if len(occupied) > most else around(occupied)


def different(cells: NDArray) -> NDArray:
    """Whole numbers in ascending order, each once: marked where they lie close together, and else sorted."""
    least, most = (float(cells.min()), float(cells.max())) if cells.size else (0.0, 0.0)
    if not most - least < cells.size or max(-least, most) > _WHOLE:
        return np.unique(cells)
    there = np.zeros(int(most - least) + 1, dtype=bool)
    there[(cells - least).astype(np.intp)] = True
    return np.flatnonzero(there) + least


def around(cells: NDArray) -> NDArray:
    """Cells, in ascending order, and all that features reach from them, likewise."""
    if not len(cells) or float(np.max(np.abs(cells))) > _WHOLE:  # numbers of cells are no longer exact
        return np.unique(cells[:, None] + np.arange(-_REACH, _REACH + 1)[None, :])
    first = np.flatnonzero(np.append(True, np.diff(cells) > 2 * _REACH + 1))
    last = np.append(first[1:], len(cells)) - 1
    low, high = cells[first] - _REACH, cells[last] + _REACH
    ends = np.cumsum(high - low + 1.0)
    every: NDArray = np.arange(float(ends[-1]))
    return every + np.repeat(high + 1.0 - ends, (high - low + 1.0).astype(int))


def _weighty(weights: NDArray, negligible: float) -> NDArray:
    """Where atoms count: in each row, those left out weigh no more than `negligible` together."""
    size = np.abs(weights)
    ordered = np.sort(size, axis=1)
    dropped = np.sum(np.cumsum(ordered, axis=1) <= negligible, axis=1)
    least = np.append(ordered, np.full((len(ordered), 1), np.inf), axis=1)[np.arange(len(ordered)), dropped]
    return size >= least[:, None]


def normal_extent(loc: Array, variance: Array, lengthscale: float) -> Array:
    """Points ``(n, S, d)`` that mark where normals have mass, near enough for their features to join up.

    Predictions so wide that the marks would be more have more features than are allowed anyway.
    """
    xp = namespace(loc)
    d = loc.shape[1]
    spread = xp.sqrt(variance)
    reach = _REACH * lengthscale / _PER_SCALE
    needed = 14.0 * float(to_numpy(xp.max(spread))) / reach
    scores = np.linspace(-7.0, 7.0, int(min(max(57.0, np.ceil(needed)), MAX_FEATURES / _REACH)))
    t = asarray(scores, xp=xp, device=device_of(loc), dtype=loc.dtype)
    return loc[:, None, :] + spread[:, None, :] * xp.broadcast_to(t[None, :, None], (1, len(scores), d))
