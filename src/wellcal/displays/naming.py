"""Where the names of curves stand: at the curves themselves, where there is room, and else in a legend.

All lengths are in points, from the lower left corner of the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray

_STEP = 3.0  # between points of a curve that words must not touch
_APART = 3.0  # of words from curves and from each other
_OWN = 9.0  # of words from curves of others, so that nobody takes them for theirs
_CLEAR = 30.0  # beyond which a curve of others does not matter
_EVERY = 4  # points of a curve is a place for its name
_EDGE = 2.0  # of words from the edge of the axes


class Box(NamedTuple):
    """A rectangle: its left, lower, right and upper side."""

    left: float
    low: float
    right: float
    high: float

    def grown(self, by: float) -> Box:
        """The same, larger on all sides."""
        return Box(self.left - by, self.low - by, self.right + by, self.high + by)

    def meets(self, other: Box) -> bool:
        """Whether both share any place.

        Examples
        --------
        >>> Box(0, 0, 2, 2).meets(Box(1, 1, 3, 3)), Box(0, 0, 2, 2).meets(Box(3, 0, 4, 2))
        (True, False)
        """
        return (
            self.left < other.right
            and other.left < self.right
            and self.low < other.high
            and other.low < self.high
        )

    def distances(self, points: NDArray) -> NDArray:
        """Of points ``(m, 2)`` from the rectangle, 0 within."""
        across = np.maximum(np.maximum(self.left - points[:, 0], points[:, 0] - self.right), 0.0)
        along = np.maximum(np.maximum(self.low - points[:, 1], points[:, 1] - self.high), 0.0)
        return np.hypot(across, along)


@dataclass(frozen=True)
class Placed:
    """A name: the point of the curve that it belongs to, and its lower left corner."""

    anchor: tuple[float, float]
    corner: tuple[float, float]


def along(points: NDArray) -> NDArray:
    """Points ``(m, 2)`` of a curve at equal small steps; gaps, which are NaN, stay gaps.

    Examples
    --------
    >>> along(np.array([[0.0, 0.0], [6.0, 0.0], [np.nan, 0.0], [9.0, 0.0]])).tolist()
    [[0.0, 0.0], [3.0, 0.0], [6.0, 0.0], [9.0, 0.0]]
    """
    found: list[NDArray] = []
    known = np.asarray(np.isfinite(points).all(axis=1))
    for k in np.flatnonzero(known).tolist():
        if k and known[k - 1]:
            steps = max(1, int(np.ceil(np.hypot(*(points[k] - points[k - 1])) / _STEP)))
            shares = np.arange(1, steps + 1)[:, None] / steps
            found.append(points[k - 1] + shares * (points[k] - points[k - 1]))
        else:
            found.append(points[[k]])
    return np.concatenate(found) if found else np.zeros((0, 2))


def placed(
    sizes: Sequence[tuple[float, float]],
    curves: Sequence[NDArray],
    extent: tuple[float, float],
    taken: Sequence[Box],
    dots: NDArray,
) -> list[Placed] | None:
    """Places for the names of curves; None where one of them has none.

    A name stands at the end of its curve, or beside it where it is farthest from all others: within the axes,
    off all curves, words and dots, and nearer to its own curve than to any other.

    Parameters
    ----------
    sizes
        Width and height of each name.
    curves
        Points of each curve, ``(m, 2)``, from `along`.
    extent
        Width and height of the axes.
    taken
        Where there are words already.
    dots
        Other things that are drawn, ``(m, 2)``.

    Examples
    --------
    >>> low = along(np.array([[0.0, 20.0], [60.0, 20.0]]))
    >>> found = placed([(30.0, 9.0)] * 2, [low, low + [0.0, 50.0]], (100.0, 100.0), [], np.zeros((0, 2)))
    >>> [place.corner for place in found]
    [(65.0, 15.5), (65.0, 65.5)]
    >>> placed([(30.0, 9.0)] * 2, [low, low + [0.0, 1.0]], (100.0, 100.0), [], np.zeros((0, 2))) is None
    True
    """
    found: list[Placed] = []
    boxes = list(taken)
    for k, (size, curve) in enumerate(zip(sizes, curves, strict=True)):
        others = np.concatenate([dots[:0], *(other for j, other in enumerate(curves) if j != k)])
        best = _best(size, curve, others, dots, extent, boxes)
        if best is None:
            return None
        found.append(best)
        boxes.append(_box(best.corner, size))
    return found


def _box(corner: tuple[float, float], size: tuple[float, float]) -> Box:
    return Box(corner[0], corner[1], corner[0] + size[0], corner[1] + size[1])


def _best(
    size: tuple[float, float],
    curve: NDArray,
    others: NDArray,
    dots: NDArray,
    extent: tuple[float, float],
    boxes: Sequence[Box],
) -> Placed | None:
    if not len(curve):
        return None
    chosen: Placed | None = None
    farthest = 0.0
    order = [len(curve) - 1, 0, *range(len(curve) - 1 - _EVERY, 0, -_EVERY)]
    for index in dict.fromkeys(order):
        x, y = curve[index].tolist()
        for corner in _corners(x, y, *size):
            box = _box(corner, size)
            if box.left < _EDGE or box.low < _EDGE:
                continue
            if box.right > extent[0] - _EDGE or box.high > extent[1] - _EDGE:
                continue
            if any(box.grown(_APART).meets(other) for other in boxes):
                continue
            if np.any(box.distances(curve) < _APART - 1.0) or np.any(box.distances(dots) < _APART):
                continue
            clear = float(np.min(box.distances(others), initial=_CLEAR))
            if clear < _OWN:
                continue
            if index == len(curve) - 1:  # the end of the line is where one looks
                return Placed((x, y), corner)
            if clear > farthest:
                chosen, farthest = Placed((x, y), corner), clear
    return chosen


def _corners(x: float, y: float, width: float, height: float) -> list[tuple[float, float]]:
    """Lower left corners of a name beside a point: to its right, above, below, and to its left."""
    near, off = 5.0, 4.0
    return [
        (x + near, y - 0.5 * height),
        (x - 0.5 * width, y + off),
        (x - 0.5 * width, y - off - height),
        (x - width, y + off),
        (x, y - off - height),
        (x, y + off),
        (x - width, y - off - height),
        (x - near - width, y - 0.5 * height),
    ]


CORNERS = ("upper left", "lower right", "upper right", "lower left")


def free_corner(
    size: tuple[float, float], extent: tuple[float, float], taken: Sequence[Box], points: NDArray
) -> str | None:
    """A corner of the axes in which a legend hides nothing; None where there is none.

    Examples
    --------
    >>> free_corner((30.0, 20.0), (100.0, 100.0), [], np.array([[10.0, 90.0]]))
    'lower right'
    """
    for corner in CORNERS:
        x = extent[0] - size[0] if corner.endswith("right") else 0.0
        y = extent[1] - size[1] if corner.startswith("upper") else 0.0
        box = _box((x, y), size)
        if not any(box.meets(other) for other in taken) and not np.any(box.distances(points) < _APART):
            return corner
    return None
