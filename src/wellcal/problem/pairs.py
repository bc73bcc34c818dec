"""How pairs of cases are cut into tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from wellcal._arrays.namespaces import NDArray


@dataclass(frozen=True, slots=True)
class Interval:
    """Cases start <= i < stop."""

    start: int
    stop: int

    @property
    def index(self) -> slice:
        """As a slice."""
        return slice(self.start, self.stop)

    def numbers(self) -> NDArray:
        """The cases themselves."""
        return np.arange(self.start, self.stop)


def tile_shape(width: int, elements: int) -> tuple[int, int]:
    """Height and width of a tile whose arrays have about `elements` entries.

    `width` counts elementary evaluations for one pair. They are spread over several arrays, about
    four of which are alive at a time.

    Examples
    --------
    >>> tile_shape(width=4, elements=65_536)
    (256, 256)
    >>> tile_shape(width=100, elements=65_536)
    (32, 81)
    """
    pairs = max(64, 4 * elements // max(4, width))
    height = max(8, 1 << (int(pairs**0.5).bit_length() - 1))
    return height, max(8, pairs // height)


def triangle_tiles(start: int, stop: int, height: int, width: int) -> Iterator[tuple[Interval, Interval]]:
    """Tiles that cover the pairs i < j of an interval; those on the diagonal hold other pairs too.

    Examples
    --------
    >>> for rows, columns in triangle_tiles(0, 5, 2, 3):
    ...     print(rows.start, rows.stop, columns.start, columns.stop)
    0 2 1 4
    0 2 4 5
    2 4 3 5
    """
    for i in range(start, stop - 1, height):
        rows = Interval(i, min(i + height, stop - 1))  # the last case has no partner after it
        for j in range(i + 1, stop, width):
            yield rows, Interval(j, min(j + width, stop))
