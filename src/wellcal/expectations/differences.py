"""Measures as features: the four terms of h cancel here, once, and what is left is a matrix product.

With features psi of the kernel on targets, ``k(z, z') = <psi(z), psi(z')>``, a prediction and its target
leave the difference ``phi_i = E psi(Z_i) - psi(y_i)``, and h_ij is ``k_P(P_i, P_j) <phi_i, phi_j>``. Numbers
of size one are subtracted n times instead of n^2 times, so that float32 is enough for the products.

A `FeatureSource` makes the features of some cases at a time; `compression.py` keeps the few directions in
which they differ from zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, cast

import numpy as np
from scipy import linalg

from wellcal._arrays.chunks import Chunk
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    concat_rows,
    from_numpy,
    is_numpy,
    is_tensor,
    namespace,
    stop_gradient,
    take_rows,
    to_numpy,
)
from wellcal._arrays.ops import ops_for
from wellcal._arrays.rows import Rows, arrays_of, map_rows, slice_rows
from wellcal.expectations.bilinear import ElementForm, FiniteForm, Form, Measure, WeightRows, evaluate
from wellcal.expectations.decompose import Components
from wellcal.expectations.gaussian_features import NORM, FeatureGrid, mean_features, step_of
from wellcal.expectations.laplace_features import LaplaceFeatures
from wellcal.expectations.rules.elements import Laplaces, Normals, Points
from wellcal.kernels.algebra import Scaled, Sum
from wellcal.kernels.base import Kernel
from wellcal.kernels.targets import Gaussian

MOST_FEATURES = 4096
"""Features of a source; more are not worth a look at what they span."""

FURTHEST = 2.0**16
"""Cells: further away from the origin centres are not exact to 1e-12 of a length scale."""

# Where there is no feature two measures are both small: of their product nothing is left.
_REACH = 4.3  # widths of an expected feature of a normal: exp(-4.3^2)^2 = 1e-16
_TAIL = 17.5  # scales of a Laplace distribution: exp(-17.5)^2 = 6e-16
_WIDTH = 6.1  # length scales: exp(-6.1^2) is rounding
_OUTERMOST, _NARROW = 256, 8  # cases at either end of a column, of arrays with few columns
_FEW_CELLS = 128  # of tensors, along a coordinate, that need not be looked at one by one
_SOON_MOVED = 2**15  # entries of tensors that are looked at in memory


@dataclass(frozen=True)
class FeatureSource:
    """Features of the measures of n cases, made for some of them at a time.

    Attributes
    ----------
    n, size
        Number of cases, and of features.
    of
        Features ``(len(cases), size)`` of a slice of cases, or of positions in NumPy.
    each
        What the features of one case cost, in evaluations.
    extremes
        Gives cases that stand out in one of the arrays that describe them: they point where others do not.
    rank
        How many coordinates they are likely to have in the end; None for as many as there are features.
    """

    n: int
    size: int
    of: Callable[[Chunk | NDArray], Array]
    each: float
    extremes: Callable[[], NDArray]
    rank: int | None = None


def source_of(form: Form, rows: Rows) -> FeatureSource | None:
    """Features of measures whose bilinear form is given; None where it has no finite ones.

    Rows are arrays of NumPy, or tensors, whose features are tensors on the same device.

    Examples
    --------
    >>> from wellcal.kernels import Gaussian
    >>> at = Components(Points((np.array([[0.0], [0.5]]),)), 1.0)
    >>> source = source_of(ElementForm.between(Gaussian(), 1, (at,), (at,)), (at,))
    >>> features = source.of(slice(0, 2))
    >>> bool(abs(features[0] @ features[1] - np.exp(-0.125)) < 1e-13)
    True
    """
    if isinstance(form, ElementForm):
        return _of_elements(form, rows)
    if isinstance(form, FiniteForm):
        return _of_weights(form, rows)
    return None


def may_have_features(form: Form) -> bool:
    """Whether `source_of` may find features, as far as the form tells without its rows."""
    if isinstance(form, ElementForm):
        return form.dimension <= 2 and gaussian_summands(form.kernel) is not None
    return isinstance(form, FiniteForm)


def extremes_of(rows: Rows) -> Callable[[], NDArray]:
    """Cases with the largest or least entry in a column, to be looked for when they are needed."""

    def find() -> NDArray:
        found: list[NDArray] = []
        for array in arrays_of(rows):
            if not is_numpy(namespace(array)):
                found.append(_outermost(array))
                continue
            columns = np.asarray(array).reshape(array.shape[0], -1)
            n, count = columns.shape
            if count > _NARROW or n <= 2 * _OUTERMOST:
                found += [columns.argmin(axis=0), columns.argmax(axis=0)]
                continue
            for c in range(count):
                order = np.argpartition(columns[:, c], (_OUTERMOST, n - _OUTERMOST))
                found += [order[:_OUTERMOST], order[-_OUTERMOST:]]
        return np.unique(np.concatenate(found))

    return find


def _outermost(array: Array) -> NDArray:
    """The same for a tensor, on its device."""
    columns = array.detach().reshape(array.shape[0], -1)
    n, count = columns.shape
    if count > _NARROW or n <= 2 * _OUTERMOST:
        return to_numpy(namespace(array).concat([columns.argmin(dim=0), columns.argmax(dim=0)]))
    ends = [columns.topk(_OUTERMOST, dim=0, largest=largest).indices for largest in (True, False)]
    return to_numpy(namespace(array).concat(ends)).reshape(-1)


# -- Gaussian kernels --------------------------------------------------------------------------


def _of_elements(form: ElementForm, rows: Measure) -> FeatureSource | None:
    """Features of points, normals and Laplace distributions under Gaussian kernels and their sums."""
    kinds = {part.kind for part in rows}
    summands = gaussian_summands(form.kernel)
    if summands is None or form.dimension > 2 or not kinds <= {Points, Normals, Laplaces}:
        return None
    if Laplaces in kinds and form.dimension > 1:
        return None
    grids: list[tuple[float, FeatureGrid]] = []
    for factor, kernel in summands:
        grid = _grid(float(cast("float", kernel.lengthscale)), rows, form.dimension)
        if grid is None:
            return None
        grids.append((math.sqrt(factor), grid))
    size = sum(grid.size for _, grid in grids)
    if size > MOST_FEATURES:
        return None

    components = sum(part.size for part in rows)
    dear = 8.0 if Laplaces in kinds else 2.0
    each = dear * components * size
    return FeatureSource(len(rows[0].leaf), size, features_on(grids, rows), each, extremes_of(rows))


def features_on(grids: list[tuple[float, FeatureGrid]], rows: Measure) -> Callable[[Chunk | NDArray], Array]:
    """Makes the features of some cases on grids, each with the root of what its kernel is multiplied by."""
    # Found when they are asked for, and once for all cases.
    known = [[cache(partial(_laplace_features, grid, part)) for part in rows] for _, grid in grids]

    def of(cases: Chunk | NDArray) -> Array:
        some: Measure = slice_rows(rows, cases)
        blocks: list[Array] = []
        for (root, grid), known_here in zip(grids, known, strict=True):
            total = _mean(grid, some[0], known_here[0])
            for part, laplace in zip(some[1:], known_here[1:], strict=True):
                # Of tensors, gradients may need what was there before.
                own = _mean(grid, part, laplace)
                total = total + own if is_tensor(total) else np.add(total, own, out=total)
            blocks.append(total if root == 1.0 else total * root)
        return blocks[0] if len(blocks) == 1 else namespace(*blocks).concat(blocks, axis=1)

    return of


def gaussian_summands(kernel: Kernel, factor: float = 1.0) -> list[tuple[float, Gaussian]] | None:
    """A kernel as a sum of Gaussian ones with fixed length scales; None where it is not."""
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


def _mean(grid: FeatureGrid, part: Components, laplace: Callable[[], LaplaceFeatures]) -> Array:
    """Weighted sum of the expected features of components, ``(n, M)``."""
    if part.kind is not Laplaces:
        return mean_features(grid, part)
    element: Any = part.element
    in_numpy = is_numpy(namespace(part.leaf))
    weights = part.weight_array()
    total: Array = 0.0
    for k in range(part.size):
        x, scale = element.x[0][:, k] - grid.origin[0], element.scale[:, k]
        factor = NORM * weights[:, k : k + 1]
        if in_numpy:  # in an array that nobody else has
            own = laplace().at(np.asarray(x), np.asarray(scale))
            own *= factor
            total = own if k == 0 else np.add(total, own, out=total)
        else:
            total = total + factor * _closed(grid, x, scale)
    return total


def _narrow(grid: FeatureGrid) -> Gaussian:
    """A feature is itself a Gaussian kernel, between its centre and the target."""
    return Gaussian(grid.lengthscale / math.sqrt(2.0))


def _closed(grid: FeatureGrid, x: Array, scale: Array) -> Array:
    """Expected features of Laplace distributions, each from its closed form, ``(n, M)``."""
    centres = Points((from_numpy(grid.centres[0][None, :], x),))
    return evaluate(ops_for(namespace(x)), _narrow(grid), Laplaces((x[:, None],), scale[:, None]), centres, 1)


def _laplace_features(grid: FeatureGrid, part: Components) -> LaplaceFeatures:
    """What is known of the expected features of all Laplace distributions of a batch."""
    element: Any = part.element
    ops, step = ops_for(namespace(part.leaf)), step_of(grid.lengthscale)
    narrow = _narrow(grid)
    origin = Points((np.zeros((1, 1)),))

    def closed(away: NDArray, scale: NDArray) -> NDArray:
        return np.asarray(evaluate(ops, narrow, Laplaces((away,), scale), origin, 1))

    x, scale = (np.asarray(values).reshape(-1) for values in (element.x[0], element.scale))
    cells = np.rint(grid.centres[0] / step)
    return LaplaceFeatures.of(x - grid.origin[0], scale, cells, step, _WIDTH * grid.lengthscale, closed)


def _grid(lengthscale: float, rows: Measure, dimension: int) -> FeatureGrid | None:
    """Features near everything that has mass along each coordinate; None for too many."""
    step = step_of(lengthscale)
    if not is_numpy(namespace(rows[0].leaf)):
        ends = _extents(lengthscale, rows, dimension)
        if bool(np.all(ends[:, 1] - ends[:, 0] < _FEW_CELLS * step)):
            # Where all of it is near there are no gaps worth a look.
            middles = 0.5 * (ends[:, 0] + ends[:, 1])
            sides = np.ceil((ends[:, 1] - middles) / step) + 1.0
            lines: list[NDArray] = [np.arange(-k, k + 1.0) * step for k in sides]
            return FeatureGrid(lengthscale, tuple(lines), tuple(map(float, middles)))
    origin: list[float] = []
    centres: list[NDArray] = []
    for c in range(dimension):
        middle = _median(cast("Any", rows[0].element).x[c])
        cells = _cells(rows, c, middle, lengthscale)
        if cells is None:
            return None
        origin.append(middle)
        centres.append(cells * step)
    return FeatureGrid(lengthscale, tuple(centres), tuple(origin))


def _extents(lengthscale: float, rows: Measure, dimension: int) -> NDArray:
    """Where components of tensors reach from and to along each coordinate, ``(d, 2)``, in one transfer.

    All of a kind are taken to be as wide as the widest, which is a few steps less.
    """
    coordinates = range(dimension)
    places = [cast("Any", part.element).x[c] for c in coordinates for part in rows]
    widths = [width_of(part.element, c) for c in coordinates for part in rows]
    ends = _ends_of_all([array.detach() for array in (*places, *widths) if array is not None])
    widest = iter(ends[len(places) :, 1])
    kinds = [part.kind for _ in coordinates for part in rows]
    reach = np.array(
        [
            reach_of(lengthscale, kind, 0.0 if width is None else next(widest))
            for kind, width in zip(kinds, widths, strict=True)
        ]
    )
    start, stop = ends[: len(places), 0] - reach, ends[: len(places), 1] + reach
    each = dimension, len(rows)
    return np.stack([start.reshape(each).min(axis=1), stop.reshape(each).max(axis=1)], axis=1)


def _ends_of_all(tensors: list[Array]) -> NDArray:
    """The least and the largest entry of each, ``(count, 2)``; few are looked at in memory."""
    torch = namespace(*tensors)
    sizes = [tensor.numel() for tensor in tensors]
    if sum(sizes) > _SOON_MOVED:
        return to_numpy(torch.stack([end for tensor in tensors for end in tensor.aminmax()])).reshape(-1, 2)
    values, starts = (
        to_numpy(torch.concat([tensor.reshape(-1) for tensor in tensors])),
        [0, *np.cumsum(sizes)[:-1]],
    )
    return np.stack([np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)], axis=1)


def width_of(element: Any, coordinate: int) -> Array | None:
    """What components of a kind differ in beside their place; None for points."""
    if isinstance(element, Normals):
        return element.v[coordinate]
    return element.scale if isinstance(element, Laplaces) else None


def reach_of(lengthscale: float, kind: type, width: Any) -> Any:
    """How far expected features reach from the centre of components of some `width_of`, in its shape."""
    if kind is Normals:
        return _REACH * namespace(width).sqrt(lengthscale**2 + 2.0 * width)
    if kind is Laplaces:
        return _REACH * lengthscale + _TAIL * width
    return _REACH * lengthscale


def _median(x: Array) -> float:
    # What is between the two values in the middle is of no importance here.
    return float(np.median(x)) if is_numpy(namespace(x)) else float(x.detach().median())


def _cells(rows: Measure, coordinate: int, origin: float, lengthscale: float) -> NDArray | None:
    """Numbers of the features that components reach, in ascending order; None for too many."""
    step = step_of(lengthscale)
    xp = namespace(rows[0].leaf)
    first: list[Array] = []
    last: list[Array] = []
    for part in rows:
        element: Any = map_rows(stop_gradient, part.element)
        x, reach = (
            element.x[coordinate] - origin,
            reach_of(lengthscale, part.kind, width_of(element, coordinate)),
        )
        first.append(xp.reshape(xp.floor((x - reach) / step), (-1,)))
        last.append(xp.reshape(xp.ceil((x + reach) / step), (-1,)))
    low, high = concat_rows(first), concat_rows(last)
    ends = to_numpy(xp.stack([xp.min(low), xp.max(high)]))
    if not max(-float(ends[0]), float(ends[1])) < FURTHEST:
        return None
    least, count = int(ends[0]), int(ends[1] - ends[0]) + 2
    # How many have begun by a cell, and have not ended before it.
    begun, ended = (_counted(cells - least, count) for cells in (low, high + 1.0))
    reached = np.flatnonzero(np.cumsum(begun - ended))
    return None if len(reached) > MOST_FEATURES else reached + float(least)


def _counted(numbers: Array, count: int) -> NDArray:
    """How often each of ``0 .. count - 1`` is there."""
    if is_numpy(namespace(numbers)):
        return np.bincount(numbers.astype(np.int64), minlength=count)
    return to_numpy(numbers.long().bincount(minlength=count))


# -- finite sets ---------------------------------------------------------------------------------


def _of_weights(form: FiniteForm, rows: WeightRows) -> FeatureSource | None:
    """Features of measures on a finite set: its kernel matrix is the product of a root with itself."""
    if form.size > MOST_FEATURES:
        return None
    weights: Array = rows.weights
    if form.gram is None:
        n = int(weights.shape[0])
        return FeatureSource(n, form.size, lambda some: take_rows(weights, some), 0.25, extremes_of(weights))
    root = from_numpy(_root(to_numpy(form.gram)), weights)

    def of(cases: Chunk | NDArray) -> Array:
        return take_rows(weights, cases) @ root

    return FeatureSource(
        len(weights), root.shape[1], of, form.size * root.shape[1] / 16.0, extremes_of(weights)
    )


def _root(gram: NDArray) -> NDArray:
    """A matrix ``(m, r)`` whose rows have the products of a kernel matrix, to rounding of its largest."""
    values, vectors = linalg.eigh(0.5 * (gram + gram.T))
    some = values > 1e-17 * values[-1]
    return np.asarray(vectors[:, some] * np.sqrt(values[some]))
