"""Which features a Gaussian kernel needs: those near everything that carries weight.

Features stand in cells of one width, and those are needed where data lie. Where they are too many, the far
tails of wide predictions are left out, and what these weigh is told.
"""

from __future__ import annotations

import math

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, asarray, device_of, namespace, to_numpy
from wellcal.expectations.gaussian_features import PER_SCALE, REACH, FeatureGrid, step_of

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
        return np.unique(cells[:, None] + np.arange(-REACH, REACH + 1)[None, :])
    first = np.flatnonzero(np.append(True, np.diff(cells) > 2 * REACH + 1))
    last = np.append(first[1:], len(cells)) - 1
    low, high = cells[first] - REACH, cells[last] + REACH
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
    reach = REACH * lengthscale / PER_SCALE
    needed = 14.0 * float(to_numpy(xp.max(spread))) / reach
    scores = np.linspace(-7.0, 7.0, int(min(max(57.0, np.ceil(needed)), MAX_FEATURES / REACH)))
    t = asarray(scores, xp=xp, device=device_of(loc), dtype=loc.dtype)
    return loc[:, None, :] + spread[:, None, :] * xp.broadcast_to(t[None, :, None], (1, len(scores), d))
