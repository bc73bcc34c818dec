"""Features of Gaussian kernels: measures become vectors whose products are pairings.

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
from typing import Any, cast

import numpy as np

from wellcal._arrays.chunks import Chunk, budget, entries_for, told_chunks
from wellcal._arrays.memo import on_device
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    concat_rows,
    from_numpy,
    is_numpy,
    is_tensor,
    namespace,
    stop_gradient,
    to_numpy,
)
from wellcal._arrays.ops import ops_for
from wellcal._arrays.rows import add_at, can_add_at, map_rows, slice_rows
from wellcal.expectations.bilinear import Measure
from wellcal.expectations.rules.elements import Laplaces, Normals, Points
from wellcal.expectations.signed_measures import Components
from wellcal.kernels.algebra import Scaled, Sum
from wellcal.kernels.base import Kernel
from wellcal.kernels.targets import Gaussian

PER_SCALE = 2.5
"""Features in one length scale."""

NORM = math.sqrt(1.0 / (PER_SCALE * math.sqrt(0.5 * math.pi)))
"""Largest value of a feature."""

_LOG_NORM = math.log(NORM)

REACH = 15
"""Features to either side of a point: exp(-6^2) = 2e-16 remains beyond."""

MOST_FEATURES = 4096
"""Features that are worth a look at the directions that they span."""

# Where there is no feature two measures are both small: of their product nothing is left.
_REACH = 4.3  # widths of an expected feature of a normal: exp(-4.3^2)^2 = 1e-16
_TAIL = 17.5  # scales of a Laplace distribution: exp(-17.5)^2 = 6e-16
FURTHEST = 2.0**16  # features: further away from the origin centres are not exact to 1e-12 of a length scale
_WHAT = "features of cases"
_FAR = 6.1  # length scales: beyond, exp(-6.1^2) is rounding
_NARROW = 1e8  # length scales over scales of Laplace distributions
_DENSE = 192  # features that an atom meets in less time than it takes to find those near it


def step_of(lengthscale: float) -> float:
    """Return the distance of features."""
    return lengthscale / PER_SCALE


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
        """Return mean features ``(n, M)`` of atoms ``(n, S, d)`` with weights ``(n, S)``; None is uniform."""
        xp, (n, count, d) = namespace(values), values.shape
        near = d == 1 and self.size > _DENSE and (is_numpy(xp) or can_add_at(xp))
        entries = count * (2 * REACH + 1 if near else max(map(len, self.centres))) + self.size
        parts: list[Array] = []
        within = entries_for(values) if near else _within(values)
        for rows in told_chunks(n, entries, within=within, what=_WHAT):
            own = None if weights is None else weights[rows, :]
            parts.append((self._of_near if near else self._of_all)(values[rows, ...], own))
        return concat_rows(parts)

    @np.errstate(over="ignore", under="ignore")  # of squared distances: their exponentials are zero
    def _of_all(self, values: Array, weights: Array | None) -> Array:
        xp, (n, count, _) = namespace(values), values.shape
        first, *others = (_bells(self._away(values[:, :, c], c), _LOG_NORM) for c in range(len(self.centres)))
        share = xp.ones_like(values[:, :, 0]) / count if weights is None else weights
        if others:
            product = xp.matmul(xp.matrix_transpose(first * share[:, :, None]), others[0])
            return xp.reshape(product, (n, -1))
        if count == 1 and weights is None:
            return first[:, 0, :]
        return xp.matmul(share[:, None, :], first)[:, 0, :]

    def _of_near(self, values: Array, weights: Array | None) -> Array:
        """Let each atom on a line meet the features near it only."""
        xp, (n, count, _) = namespace(values), values.shape
        position, near = self.near(values[:, :, 0])
        near = near / count if weights is None else near * weights[:, :, None]
        starts = np.arange(int(n)) * self.size
        place = position + from_numpy(starts, values)[:, None, None]
        sums = add_at(xp.reshape(near, (-1,)), xp.reshape(place, (-1,)), n * self.size)
        return xp.reshape(sums, (n, self.size))

    @np.errstate(over="ignore", under="ignore")
    def near(self, x: Array) -> tuple[Array, Array]:
        """Return positions and values of the features of scalars that are not negligible, one axis more."""
        xp, last = namespace(x), self.size - 1
        centres, x = xp.astype(on_device(self.centres[0], x), x.dtype), x - self.origin[0]
        flat = xp.reshape(stop_gradient(x), (-1,)) - 0.5 * step_of(self.lengthscale)
        nearest = xp.reshape(xp.searchsorted(centres, flat), x.shape)
        nearest = xp.where(nearest < last, nearest, xp.full_like(nearest, last))
        position = nearest[..., None] + from_numpy(np.arange(-REACH, REACH + 1), x)
        inside = (position >= 0) & (position <= last)
        position = xp.where(inside, position, xp.zeros_like(position))
        at = xp.reshape(xp.take(centres, xp.reshape(position, (-1,)), axis=0), position.shape)
        values = _bells((x[..., None] - at) / self.lengthscale, _LOG_NORM)
        return position, xp.where(inside, values, xp.zeros_like(values))

    def of_normals(self, loc: Array, variance: Array) -> Array:
        """Return expected features of normals with independent coordinates, ``(n, d)`` each."""
        product: Array = None
        for c in range(len(self.centres)):
            spread = variance[:, c, None] * (2.0 / self.lengthscale**2) + 1.0
            away = self._away(loc[:, c], c)
            away /= spread**0.5
            factor = _bells(away, _LOG_NORM - 0.5 * namespace(loc).log(spread))
            product = factor if product is None else product[:, :, None] * factor[:, None, :]
        return product if product.ndim == 2 else namespace(loc).reshape(product, (loc.shape[0], -1))

    def of_laplaces(self, loc: Array, scale: Array) -> Array:
        """Return expected features of Laplace distributions on a line, ``(n,)`` each.

        At a distance of t length scales, with a half of the length scale over the scale, that is a times
        ``exp(-t^2) (erfcx(a + t) + erfcx(a - t))``, and ``erfcx(-x) = 2 exp(x^2) - erfcx(x)``.
        """
        chunks = told_chunks(loc.shape[0], self.size, within=_within(loc), what=_WHAT)
        return concat_rows([self._of_laplaces(loc[cases], scale[cases]) for cases in chunks])

    def _of_laplaces(self, loc: Array, scale: Array) -> Array:
        xp = namespace(loc)
        ops = ops_for(xp)
        half = 0.5 * self.lengthscale * scale[:, None] ** -1.0
        half = ops.minimum(half, 0.0 * half + _NARROW)  # differs from a point by rounding only
        t = ops.abs(self._away(loc, 0))
        half = half + 0.0 * t

        def near(half: Array, t: Array, far: Array) -> Array:
            inside, rest = half - t, ops.erfcx(ops.abs(half - t))
            rest = xp.where(inside < 0.0, -rest, rest)
            value = (ops.erfcx(half + t) + rest) * ops.exp(-(t**2))
            return value + xp.where(inside < 0.0, far, xp.zeros_like(far))

        far = 2.0 * ops.exp(ops.minimum(half * (half - 2.0 * t), 0.0 * t))
        value = ops.amend(far, t < half + _FAR, (half, t, far), near)
        return (0.5 * math.sqrt(math.pi) * NORM) * half * value

    def _away(self, x: Array, coordinate: int) -> Array:
        """Return how far scalars are from the centres, in length scales."""
        xp, scale = namespace(x), 1.0 / self.lengthscale
        centres = xp.astype(on_device(self.centres[coordinate], x), x.dtype)
        return ((x - self.origin[coordinate]) * scale)[..., None] - centres * scale


def _within(like: Array) -> int:
    """Return the entries of arrays that are read several times: the cache holds them in NumPy."""
    return budget.cache if isinstance(like, np.ndarray) else entries_for(like)


def _bells(away: Array, exponent: Any) -> Array:
    """Return ``exp(exponent - away^2)``, in the place of `away` where no gradients need it."""
    if isinstance(away, np.ndarray):
        values = cast("NDArray", away)
        values *= values
        np.subtract(exponent, values, out=values)
        return np.exp(values, out=values)
    if is_tensor(away) and not away.requires_grad:
        return (exponent - away.square_()).exp_()
    return namespace(away).exp(exponent - away**2)


def mean_features(grid: Any, part: Components) -> Array:
    """Return the weighted sum of the mean features of components, ``(n, M)``."""
    element: Any = part.element
    if isinstance(element, Points):
        values = _side_by_side(element.x)
        if isinstance(part.weights, float):
            own, factor = grid.of_points(values, None), part.weights * part.size
            return own if factor == 1.0 else own * factor
        return grid.of_points(values, part.weight_array())
    total: Array = None
    for k in range(part.size):
        if isinstance(element, Laplaces):
            own = grid.of_laplaces(element.x[0][:, k], element.scale[:, k])
        else:
            loc, variance = (_side_by_side([c[:, k] for c in of]) for of in (element.x, element.v))
            own = grid.of_normals(loc, variance)
        weights: Any = part.weights
        if not (isinstance(weights, float) and weights == 1.0):
            own = own * (weights if isinstance(weights, float) else weights[:, k, None])
        total = own if total is None else total + own
    return total


def _side_by_side(arrays: Sequence[Array]) -> Array:
    """Return arrays along a new last axis; where there is one, a view of it."""
    return arrays[0][..., None] if len(arrays) == 1 else namespace(*arrays).stack(list(arrays), axis=-1)


def features_on(grids: list[tuple[float, FeatureGrid]], rows: Measure, cases: Chunk | NDArray) -> Array:
    """Return features of some cases on grids, each with the root of what its kernel is multiplied by."""
    some: Measure = slice_rows(rows, cases)
    blocks: list[Array] = []
    for root, grid in grids:
        total = mean_features(grid, some[0])
        for part in some[1:]:
            total = total + mean_features(grid, part)
        blocks.append(total if root == 1.0 else total * root)
    return blocks[0] if len(blocks) == 1 else namespace(*blocks).concat(blocks, axis=1)


def gaussian_summands(kernel: Kernel, factor: float = 1.0) -> list[tuple[float, Gaussian]] | None:
    """Return a kernel as a sum of Gaussian ones with fixed length scales; None where it is not."""
    if isinstance(kernel, Sum):
        parts = [gaussian_summands(part, factor) for part in kernel.kernels]
        return None if any(part is None for part in parts) else [s for part in parts for s in part or ()]
    if isinstance(kernel, Scaled):
        if not isinstance(kernel.factor, float):
            return None
        return gaussian_summands(kernel.kernel, factor * kernel.factor)
    if type(kernel) is Gaussian and isinstance(kernel.lengthscale, float):
        return [(factor, kernel)]
    return None


# -- needed features ---------------------------------------------------------------------------

# Weight that may go without features, and how many times the usual number of them may avoid that: many
# features are worth their cost only for weight that would show in results.
_LARGER = (3e-7, 6e-7, 1e-6, 1e-5, 1e-4, 1e-3)
_NEGLIGIBLE = ((1e-9, 1), (1e-8, 1), (1e-7, 4), *((weight, 16) for weight in _LARGER))
_BLOCK = 6.0  # length scales: a point sees nothing beyond


def needed_features(
    lengthscale: float,
    parts: Sequence[Components],
    most: int = MOST_FEATURES,
    *,
    exact: bool = True,
    furthest: float = FURTHEST,
) -> tuple[FeatureGrid, float] | None:
    """Return features near all components that carry weight, and the weight of those left out.

    Far tails of wide predictions are left out until the features are few enough, unless all must be
    `exact`; None where too much weight would be.

    Examples
    --------
    >>> atoms = Components(Points((np.array([[0.0, 1.0]]),)), 0.5)
    >>> grid, left_out = needed_features(1.0, [atoms])
    >>> psi = mean_features(grid, atoms)
    >>> bool(abs(psi @ psi.T - (1.0 + np.exp(-0.5)) / 2.0) < 1e-13), left_out
    (True, 0.0)
    """
    dimension = len(cast("Any", parts[0].element).x)
    mass = [
        None if exact else [_mass_nearby(part, c, lengthscale) for part in parts] for c in range(dimension)
    ]
    for negligible, times in ((0.0, 1),) if exact else _NEGLIGIBLE:
        room = min(times * MOST_FEATURES, most)
        lines = [_line(lengthscale, parts, c, mass[c], negligible, furthest) for c in range(dimension)]
        if math.prod(math.inf if line is None else len(line[1]) for line in lines) <= room:
            step, found = step_of(lengthscale), cast("list[tuple[float, NDArray]]", lines)
            centres = tuple(cells * step for _, cells in found)
            return FeatureGrid(lengthscale, centres, tuple(origin for origin, _ in found)), negligible
    return None


def _line(
    lengthscale: float,
    parts: Sequence[Components],
    coordinate: int,
    mass: list[NDArray | None] | None,
    negligible: float,
    furthest: float,
) -> tuple[float, NDArray] | None:
    """Return an origin, and numbers of the features that components reach from there, in ascending order."""
    step = step_of(lengthscale)
    origin = _middle(cast("Any", parts[0].element).x[coordinate])
    # Of many entries of tensors only what is counted leaves the device.
    tensors = [part.leaf for part in parts if mass is None and is_tensor(part.leaf)]
    stays = len(tensors) == len(parts) and sum(x.numel() for x in tensors) > _SOON_MOVED
    low: list[Array] = []
    high: list[Array] = []
    for part, weight in zip(parts, mass or [None] * len(parts), strict=True):
        element = map_rows(stop_gradient if stays else _in_numpy, part.element)
        x, xp = element.x[coordinate], namespace(element.x[coordinate])
        reach = reach_of(lengthscale, part.kind, width_of(element, coordinate))
        if weight is not None:
            x = x[weight > negligible / 3.0]  # a point sees three blocks at most
        low.append(xp.reshape(xp.floor((x - origin - reach) / step), (-1,)))
        high.append(xp.reshape(xp.ceil((x - origin + reach) / step), (-1,)))
    first, last = concat_rows(low), concat_rows(high)
    if not first.shape[0]:
        return origin, np.zeros(1)
    ends = to_numpy(namespace(first).stack([namespace(first).min(first), namespace(first).max(last)]))
    size = max(-float(ends[0]), float(ends[1]))
    if not size < furthest:
        return None
    if size >= FURTHEST:
        cells = _union(to_numpy(first), to_numpy(last))
        return None if cells is None else (origin, cells)
    least, count = int(ends[0]), int(ends[1] - ends[0]) + 2
    # How many have begun by a cell, and have not ended before it.
    begun, ended = (_counted(cells - least, count) for cells in (first, last + 1.0))
    return origin, np.flatnonzero(np.cumsum(begun - ended)) + float(least)


_MOST_CELLS = 2**17
_SOON_MOVED = 2**15  # entries of tensors, for which a transfer takes less time than a few launches


def _in_numpy(x: Array) -> NDArray:
    return to_numpy(stop_gradient(x))


def _union(first: NDArray, last: NDArray) -> NDArray | None:
    """Return the whole numbers of all intervals, which may lie far apart; None for too many."""
    order = np.argsort(first)
    low, high = first[order], np.maximum.accumulate(last[order])
    new = np.append(True, low[1:] > high[:-1] + 1.0)
    starts, stops = low[new], high[np.append(new[1:], True)] + 1.0
    if np.sum(stops - starts) > _MOST_CELLS:
        return None
    runs: list[NDArray] = [np.arange(*run) for run in zip(starts, stops, strict=True)]
    return np.concatenate(runs)


def _counted(numbers: Array, count: int) -> NDArray:
    """Count how often each of ``0 .. count - 1`` occurs."""
    if is_tensor(numbers):
        return to_numpy(numbers.long().bincount(minlength=count))
    return np.bincount(numbers.astype(np.int64), minlength=count)


_FOR_THE_MIDDLE = 65_536  # numbers that a median is taken of


def _middle(x: Array) -> float:
    """Return about the median, of many rows that of some: it is near the data in either case."""
    return float(np.median(_in_numpy(x[:: max(1, x.shape[0] * x.shape[1] // _FOR_THE_MIDDLE), :])))


def width_of(element: Any, coordinate: int) -> Array | None:
    """Return parameters other than the place of components of a kind; None for points."""
    if isinstance(element, Normals):
        return element.v[coordinate]
    return element.scale if isinstance(element, Laplaces) else None


def reach_of(lengthscale: float, kind: type, width: Any) -> Any:
    """Return how far expected features reach from the centre of components of some `width_of`."""
    if kind is Normals:
        return _REACH * namespace(width).sqrt(lengthscale**2 + 2.0 * width)
    if kind is Laplaces:
        return _REACH * lengthscale + _TAIL * width
    return _REACH * lengthscale


def _mass_nearby(part: Components, coordinate: int, lengthscale: float) -> NDArray | None:
    """Return the weight of all atoms ``(n, S)`` of a row in the block that an atom lies in; None for all."""
    element: Any = part.element
    if isinstance(part.weights, float) or not isinstance(element, Points):
        return None
    x, weights = _in_numpy(element.x[coordinate]), np.abs(_in_numpy(part.weights))
    order = np.argsort(x, axis=1, kind="stable")
    with np.errstate(over="ignore"):
        block = np.floor(np.take_along_axis(x, order, axis=1) / (_BLOCK * lengthscale))
    starts = np.ones(x.shape, dtype=bool)
    starts[:, 1:] = block[:, 1:] != block[:, :-1]
    number = np.cumsum(starts.reshape(-1)) - 1
    ordered = np.take_along_axis(np.broadcast_to(weights, x.shape), order, axis=1)
    mass = np.bincount(number, ordered.reshape(-1))[number].reshape(x.shape)
    out = np.empty(x.shape)
    np.put_along_axis(out, order, mass, axis=1)
    return out
