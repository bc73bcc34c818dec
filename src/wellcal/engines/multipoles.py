"""Kernel sums of points in the plane in linear time: a balanced tree of boxes, and Chebyshev interpolation.

Boxes that are further apart than half their width see each other through p^2 Chebyshev nodes (the black-box
fast multipole method of Fong and Darve, 2009): features of a box are gathered at its nodes, nodes meet nodes,
and sums are interpolated back to the points. Boxes side by side meet point by point. All right-hand sides,
the features, go through the same products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.progress import reporter

OnSquares: TypeAlias = Callable[[NDArray], NDArray]
"""A kernel as a function of squared distances, which may write into them."""

Kind: TypeAlias = Any
"""Type of numbers: float32 or float64."""

_LEAF = 128  # points in a box that is not cut any more
_APART = 1.0  # boxes are far from each other if the gap is so many half widths


class _Boxes(NamedTuple):
    """Boxes of one level: their lower and upper corners, ``(2^level, 2)``."""

    low: NDArray
    high: NDArray

    @property
    def centre(self) -> NDArray:
        return 0.5 * (self.low + self.high)

    @property
    def half(self) -> NDArray:
        return 0.5 * (self.high - self.low)


@dataclass(frozen=True)
class Tree:
    """Points in the plane, sorted into boxes of equally many.

    Attributes
    ----------
    order
        Positions of the points, box by box; those from n on stand for no point.
    points
        ``(boxes, m, 2)``, in that order.
    levels
        Boxes of each level, the whole first.
    far, near
        Pairs of boxes that see each other through nodes, for each level, and of last boxes that do not.
    """

    order: NDArray
    points: NDArray
    levels: list[_Boxes]
    far: list[tuple[NDArray, NDArray]]
    near: tuple[NDArray, NDArray]

    @classmethod
    def of(cls, points: NDArray, reach: float) -> Tree:
        """The tree of points ``(n, 2)``, whose kernel is zero beyond a distance of `reach`."""
        n = len(points)
        depth = max(0, int(np.ceil(np.log2(n / _LEAF))))
        boxes = int(2**depth)
        size = -(-n // boxes)
        order: NDArray = np.arange(size * boxes)
        lines = [np.append(points[:, c], np.repeat(points[-1, c], len(order) - n)) for c in (0, 1)]
        for level in range(depth):
            _halved([line.reshape(1 << level, -1) for line in lines], order.reshape(1 << level, -1))
        sorted_points = np.stack(lines, axis=1).reshape(boxes, size, 2)
        levels = [_Boxes(sorted_points.min(axis=1), sorted_points.max(axis=1))]
        for _ in range(depth):
            low, high = (corner.reshape(-1, 2, 2) for corner in levels[0])
            levels.insert(0, _Boxes(low.min(axis=1), high.max(axis=1)))
        return cls(order, sorted_points, levels, *_meetings(levels, reach))

    def by_boxes(self, features: NDArray, kind: Kind, columns: NDArray | None = None) -> NDArray:
        """Features ``(n, M)`` of the points, box by box: ``(boxes, m, M)``, zero where there is no point.

        All of them, or those in some `columns`.
        """
        count, members = self.points.shape[:2]
        n, size = len(features), features.shape[1] if columns is None else len(columns)
        out = np.empty((count * members, size), dtype=kind)
        for some in in_chunks(len(out), 2 * features.shape[1]):
            order = self.order[some]
            own = features[np.minimum(order, n - 1)]
            out[some] = own if columns is None else own.take(columns, axis=1)
            out[some][order >= n] = 0.0
        return out.reshape(count, members, size)

    def by_points(self, values: NDArray, n: int) -> NDArray:
        """Values ``(boxes, m, ...)`` of n points in their own order, ``(n, ...)``."""
        flat = values.reshape(-1, *values.shape[2:])
        out = np.empty((n, *values.shape[2:]), dtype=values.dtype)
        some = self.order < n
        out[self.order[some]] = flat[some]
        return out


def _halved(lines: list[NDArray], order: NDArray) -> None:
    """Cut each box into halves of equally many points, across its longer side: coordinates and their order.

    Arrays ``(boxes, m)`` are sorted in their place.
    """
    half = order.shape[1] // 2
    for some in in_chunks(len(order), 4 * order.shape[1]):
        x, y = (line[some] for line in lines)
        along_y = np.ptp(y, axis=1) > np.ptp(x, axis=1)
        places = np.argpartition(np.where(along_y[:, None], y, x), half, axis=1)
        for array in (*lines, order):
            array[some] = np.take_along_axis(array[some], places, axis=1)


def _meetings(
    levels: list[_Boxes], reach: float
) -> tuple[list[tuple[NDArray, NDArray]], tuple[NDArray, NDArray]]:
    """Pairs a <= b of boxes that are far from each other while those around them are not; and the rest."""
    a: NDArray = np.zeros(1, dtype=np.int64)
    b = a
    far: list[tuple[NDArray, NDArray]] = []
    for level, boxes in enumerate(levels):
        gap = np.maximum(np.maximum(boxes.low[a] - boxes.high[b], boxes.low[b] - boxes.high[a]), 0.0)
        distance = np.hypot(gap[:, 0], gap[:, 1])
        width = np.maximum(boxes.half[a], boxes.half[b]).max(axis=1)
        seen = distance <= reach
        apart = (distance >= _APART * width) & ((a != b) | (width == 0.0))
        far.append((a[apart & seen], b[apart & seen]))
        a, b = a[~apart & seen], b[~apart & seen]
        if level == len(levels) - 1:
            break
        same, other = a[a == b], a != b
        a, b = a[other], b[other]
        children = [(2 * a + i, 2 * b + j) for i in (0, 1) for j in (0, 1)]
        children += [(2 * same, 2 * same), (2 * same, 2 * same + 1), (2 * same + 1, 2 * same + 1)]
        a, b = (np.concatenate([pair[side] for pair in children]) for side in (0, 1))
    return far, (a, b)


# -- Chebyshev nodes ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Nodes:
    """Chebyshev nodes of order p on [-1, 1], and polynomials that are one at one of them."""

    order: int

    @property
    def at(self) -> NDArray:
        return np.cos(np.pi * (np.arange(self.order) + 0.5) / self.order)

    def on(self, boxes: _Boxes) -> NDArray:
        """The nodes of boxes, ``(boxes, p^2, 2)``."""
        along = boxes.centre[:, None, :] + boxes.half[:, None, :] * self.at[None, :, None]
        first = np.repeat(along[:, :, 0], self.order, axis=1)
        second = np.tile(along[:, :, 1], (1, self.order))
        return np.stack([first, second], axis=2)

    def weights(self, boxes: _Boxes, points: NDArray, kind: Kind) -> NDArray:
        """Weights ``(boxes, m, p^2)`` of nodes that interpolate at points ``(boxes, m, 2)``."""
        half = boxes.half[:, None, :]
        away = points - boxes.centre[:, None, :]
        within = np.divide(away, half, out=np.zeros_like(away), where=half > 0.0).astype(kind)
        first, second = (self._along(np.ascontiguousarray(within[:, :, c])) for c in (0, 1))
        table = first[:, :, :, None] * second[:, :, None, :]
        return table.reshape(*table.shape[:2], -1)

    def _along(self, s: NDArray) -> NDArray:
        """Values ``(..., p)`` at points of [-1, 1] of the polynomials that are one at one node."""
        rises = [np.ones_like(s), s]
        for _ in range(2, self.order):
            rises.append(2.0 * s * rises[-1] - rises[-2])
        powers = np.stack(rises[: self.order], axis=-1)
        degrees = np.arange(self.order)
        table = np.cos(np.outer(degrees, np.pi * (degrees + 0.5) / self.order)) * (2.0 / self.order)
        table[0] *= 0.5
        return powers @ table.astype(s.dtype)


# -- sums --------------------------------------------------------------------------------------------


def plane_sums(tree: Tree, phi: NDArray, kernel: OnSquares, order: int) -> NDArray:
    """Sums over all points, each point itself included: K phi, box by box.

    Parameters
    ----------
    tree
        The points.
    phi
        Features of the points in the order of the boxes, ``(boxes, m, M)``; sums are numbers of their type.
    kernel
        Of squared distances.
    order
        Nodes along a side of a box.
    """
    out = np.zeros_like(phi)
    _meet_nearby(tree, phi, kernel, out)
    if any(len(a) for a, _ in tree.far):
        _meet_far(tree, phi, kernel, _Nodes(order), out)
    return out


def _grouped(a: NDArray, b: NDArray) -> list[tuple[int, NDArray]]:
    """Partners of each first box."""
    if not len(a):
        return []
    order = np.argsort(a, kind="stable")
    a, b = a[order], b[order]
    starts = np.flatnonzero(np.append(True, a[1:] != a[:-1]))
    return [(int(a[i]), b[i:j]) for i, j in pairwise([*starts.tolist(), len(a)])]


def _told(what: str, groups: list[tuple[int, NDArray]]) -> Iterator[tuple[int, NDArray]]:
    """The groups, one after another; progress is told on the way."""
    told, total = reporter(), len(groups)
    for k, group in enumerate(groups):
        told(what, k, total)
        yield group
    if total:
        told(what, total, total)


def _meet_nearby(tree: Tree, phi: NDArray, kernel: OnSquares, out: NDArray) -> None:
    """Add what points of boxes side by side add to each other."""
    most = max(1, budget.cache // tree.points.shape[1] ** 2)
    for a, partners in _told("boxes side by side", _grouped(*tree.near)):
        for start in range(0, len(partners), most):
            some = partners[start : start + most]
            _add(_between(kernel, tree.points, a, some, phi.dtype), phi, a, some, out)


def _between(kernel: OnSquares, points: NDArray, a: int, others: NDArray, kind: Kind) -> NDArray:
    """Kernel between the m points of a box and all those of k others: ``(m, k m)``.

    Points are rounded where they are small, about the first of the box.
    """
    own, rest = points[a], points[others].reshape(-1, 2)
    squared: NDArray | None = None
    for c in (0, 1):
        origin = own[0, c]
        difference = (own[:, c] - origin).astype(kind)[:, None] - (rest[:, c] - origin).astype(kind)
        difference *= difference
        squared = difference if squared is None else np.add(squared, difference, out=squared)
    assert squared is not None
    return kernel(squared)


def _add(values: NDArray, phi: NDArray, a: int, others: NDArray, out: NDArray) -> None:
    """Add products of the kernel with the other side to both sides, those of a box with itself once."""
    size = phi.shape[2]
    out[a] += values @ phi[others].reshape(-1, size)
    back = (values.T @ phi[a]).reshape(len(others), -1, size)
    back[others == a] = 0.0
    out[others] += back


def _meet_far(tree: Tree, phi: NDArray, kernel: OnSquares, nodes: _Nodes, out: NDArray) -> None:
    """Add what boxes add to each other through their nodes."""
    last, kind = tree.levels[-1], phi.dtype
    moments = np.empty((len(phi), nodes.order**2, phi.shape[2]), dtype=kind)
    entries = phi.shape[1] * nodes.order**2
    for some in in_chunks(len(phi), 4 * entries):
        table = _table(nodes, last, some, tree.points[some], kind)
        np.matmul(table.transpose(0, 2, 1), phi[some], out=moments[some])
    found = _by_levels(tree, moments, kernel, nodes)
    for some in in_chunks(len(phi), 4 * entries):
        out[some] += np.matmul(_table(nodes, last, some, tree.points[some], kind), found[some])


def _table(nodes: _Nodes, boxes: _Boxes, some: slice, points: NDArray, kind: Kind) -> NDArray:
    return nodes.weights(_Boxes(boxes.low[some], boxes.high[some]), points, kind)


def _tables(nodes: _Nodes, boxes: _Boxes, parts: _Boxes, kind: Kind) -> Iterator[tuple[slice, NDArray]]:
    """Chunks of boxes, and the weights of their nodes at those of their parts, ``(boxes, k p^2, p^2)``.

    They are made twice: those of all boxes would take more memory than everything else.
    """
    each = len(parts.low) // len(boxes.low)
    for some in in_chunks(len(boxes.low), 4 * each * nodes.order**4):
        own = slice(each * some.start, each * some.stop)
        at = nodes.on(_Boxes(parts.low[own], parts.high[own]))
        yield some, _table(nodes, boxes, some, at.reshape(some.stop - some.start, -1, 2), kind)


def _by_levels(tree: Tree, moments: NDArray, kernel: OnSquares, nodes: _Nodes) -> NDArray:
    """From features at the nodes of the last boxes to sums at the same nodes."""
    kind, size = moments.dtype, moments.shape[2]
    up: list[NDArray] = [moments]
    for level in range(len(tree.levels) - 2, -1, -1):
        boxes = tree.levels[level]
        own = up[0].reshape(len(boxes.low), -1, size)
        above = np.empty((len(own), nodes.order**2, size), dtype=kind)
        for some, table in _tables(nodes, boxes, tree.levels[level + 1], kind):
            np.matmul(table.transpose(0, 2, 1), own[some], out=above[some])
        up.insert(0, above)
    down = np.zeros_like(up[0])
    for level, boxes in enumerate(tree.levels):
        if level:
            below = np.empty((len(down), up[level].size // (len(down) * size), size), dtype=kind)
            for some, table in _tables(nodes, tree.levels[level - 1], boxes, kind):
                np.matmul(table, down[some], out=below[some])
            down = below.reshape(up[level].shape)
        at = nodes.on(boxes)
        for a, partners in _told(f"boxes far apart, level {level}", _grouped(*tree.far[level])):
            _add(_between(kernel, at, a, partners, kind), up[level], a, partners, down)
    return down
