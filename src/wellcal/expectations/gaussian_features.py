"""Finitely many features that reproduce a Gaussian kernel to rounding.

A Gaussian kernel is an integral of products of Gaussians of half its squared length scale,

    exp(-|x - y|^2 / (2 l^2)) = (pi / 2)^(-1/2) / l * int exp(-(x - t)^2 / l^2) exp(-(y - t)^2 / l^2) dt,

and the trapezoidal rule of spacing h has a relative error of 2 exp(-(pi l / h)^2 / 2): 8e-14 for
h = l / 2.5. On the part of the line that the data occupy a few dozen features remain, so that predictions
made of many atoms meet in a matrix product instead of atom by atom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import (
    Array,
    Namespace,
    NDArray,
    asarray,
    concat_rows,
    device_of,
    is_numpy,
    namespace,
    to_numpy,
)
from wellcal.expectations.decompose import Components
from wellcal.expectations.rules.elements import Points

PER_SCALE = 2.5
"""Features in one length scale."""

REACH = 15
"""Features to either side of a point: exp(-6^2) = 2e-16 remains beyond."""

_NEGLIGIBLE = (1e-9, 1e-7, 1e-5, 1e-4, 1e-3)  # weight that may go without features, least first
MAX_FEATURES = 4096
_MAX_ENTRIES = 200_000_000  # of the array of all features: 1.6 GB


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

    def of_points(self, values: Array, weights: Array | None) -> Array:
        """Mean features ``(n, M)`` of atoms ``(n, S, d)`` with weights ``(n, S)``, uniform where None."""
        xp = namespace(values)
        sparse = values.shape[1] * len(self.centres[0]) > REACH * (values.shape[1] + len(self.centres[0]))
        if is_numpy(xp) and len(self.centres) == 1 and sparse:
            return self._of_points_on_a_line(values[:, :, 0] - self.origin[0], weights)
        n, count = values.shape[0], values.shape[1]
        parts: list[Array] = []
        for rows in in_chunks(n, count * max(len(c) for c in self.centres) + self.size):
            chunk = None if weights is None else weights[rows, :]
            parts.append(self._mean(xp, values[rows, ...], chunk, count))
        return concat_rows(parts)

    def _mean(self, xp: Namespace, values: Array, weights: Array | None, count: int) -> Array:
        factors = [self._along(xp, values[:, :, c] - self.origin[c], c) for c in range(len(self.centres))]
        first = factors[0] / count if weights is None else factors[0] * weights[:, :, None]
        if len(factors) == 1:
            return xp.sum(first, axis=1)
        product = xp.matmul(xp.permute_dims(first, (0, 2, 1)), factors[1])
        return xp.reshape(product, (values.shape[0], -1))

    def _of_points_on_a_line(self, x: NDArray, weights: NDArray | None) -> NDArray:
        """The same for scalars in NumPy, each atom reaching only the features near it."""
        n, count = x.shape
        centres = self.centres[0]
        step = self.lengthscale / PER_SCALE
        nearest = np.searchsorted(centres, x - 0.5 * step)
        nearest = np.minimum(nearest, len(centres) - 1)
        norm = math.sqrt(1.0 / (PER_SCALE * math.sqrt(0.5 * math.pi)))
        scaled = np.full(x.shape, norm / count) if weights is None else norm * np.asarray(weights)
        out = np.zeros(n * len(centres))
        row = np.arange(n)[:, None] * len(centres)
        for offset in range(-REACH, REACH + 1):
            position = np.clip(nearest + offset, 0, len(centres) - 1)
            inside = position == nearest + offset
            value = np.exp(-(((x - centres[position]) / self.lengthscale) ** 2)) * scaled * inside
            out += np.bincount((row + position).reshape(-1), value.reshape(-1), len(out))
        return out.reshape(n, len(centres))

    def _along(self, xp: Namespace, x: Array, coordinate: int) -> Array:
        centres = asarray(self.centres[coordinate], xp=xp, device=device_of(x), dtype=x.dtype)
        norm = math.sqrt(1.0 / (PER_SCALE * math.sqrt(0.5 * math.pi)))
        return norm * xp.exp(-(((x[:, :, None] - centres[None, None, :]) / self.lengthscale) ** 2))

    def of_normals(self, loc: Array, variance: Array) -> Array:
        """Expected features of normals with independent coordinates, ``(n, d)`` each."""
        xp = namespace(loc)
        product: Array = None
        for c, line in enumerate(self.centres):
            centres = asarray(line, xp=xp, device=device_of(loc), dtype=loc.dtype)
            norm = math.sqrt(1.0 / (PER_SCALE * math.sqrt(0.5 * math.pi)))
            spread = 1.0 + 2.0 * variance[:, c, None] / self.lengthscale**2
            from_origin = loc[:, c, None] - self.origin[c]
            squared = ((from_origin - centres[None, :]) / self.lengthscale) ** 2
            factor = norm * xp.exp(-squared / spread) / xp.sqrt(spread)
            product = factor if product is None else product[:, :, None] * factor[:, None, :]
        return xp.reshape(product, (loc.shape[0], -1))


def mean_features(grid: FeatureGrid, part: Components) -> Array:
    """Weighted sum of the mean features of points or normals, ``(n, M)``."""
    element: Any = part.element
    xp = namespace(*element.x)
    if isinstance(element, Points):
        values = xp.stack(element.x, axis=-1)
        if isinstance(part.weights, float):
            return (part.weights * part.size) * grid.of_points(values, None)
        return grid.of_points(values, part.weights)
    weights = part.weight_array()
    total: Array = None
    for k in range(part.size):
        loc, variance = (xp.stack([c[:, k] for c in of], axis=-1) for of in (element.x, element.v))
        own = grid.of_normals(loc, variance) * weights[:, k, None]
        total = own if total is None else total + own
    return total


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
    most = min(MAX_FEATURES, max(256, _MAX_ENTRIES // cases))
    origin = tuple(float(np.median(to_numpy(points[0][0][:, :, c]))) for c in range(d))
    for negligible in (0.0,) if exact else _NEGLIGIBLE:
        centres = [_centres(lengthscale, points, c, negligible, origin[c]) for c in range(d)]
        if math.prod(map(len, centres)) <= most:
            return FeatureGrid(lengthscale, tuple(centres), origin), negligible
    return None


def _centres(
    lengthscale: float,
    points: list[tuple[Array, Array | None]],
    coordinate: int,
    negligible: float,
    origin: float,
) -> NDArray:
    step = lengthscale / PER_SCALE
    cells: list[NDArray] = []
    for values, weights in points:
        x = to_numpy(values[:, :, coordinate]) - origin
        x = x.reshape(-1) if weights is None else x[_weighty(to_numpy(weights), negligible)]
        cells.append(np.unique(np.rint(x / step)))
    occupied = np.unique(np.concatenate(cells))
    if len(occupied) > MAX_FEATURES:
        return occupied
    return np.unique(occupied[:, None] + np.arange(-REACH, REACH + 1)[None, :]) * step


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
    reach = REACH * lengthscale / PER_SCALE
    needed = 14.0 * float(to_numpy(xp.max(spread))) / reach
    scores = np.linspace(-7.0, 7.0, int(min(max(57.0, np.ceil(needed)), MAX_FEATURES / REACH)))
    t = asarray(scores, xp=xp, device=device_of(loc), dtype=loc.dtype)
    return loc[:, None, :] + spread[:, None, :] * xp.broadcast_to(t[None, :, None], (1, len(scores), d))
