"""How pairs of cases are cut into tiles."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """Cases start <= i < stop."""

    start: int
    stop: int

    @property
    def index(self) -> slice:
        """As a slice."""
        return slice(self.start, self.stop)


def tile_shape(width: int, elements: int) -> tuple[int, int]:
    """Height and width of a tile whose arrays have about `elements` entries.

    `width` counts elementary evaluations for one pair. They are spread over several arrays, about
    four of which are alive at a time.
    """
    pairs = max(64, 4 * elements // max(4, width))
    height = max(8, 1 << (int(pairs**0.5).bit_length() - 1))
    return height, max(8, pairs // height)


def triangle_tiles(start: int, stop: int, height: int, width: int) -> list[tuple[Interval, Interval]]:
    """Tiles that cover the pairs i < j of an interval; those on the diagonal hold other pairs too."""
    tiles: list[tuple[Interval, Interval]] = []
    for i in range(start, stop, height):
        rows = Interval(i, min(i + height, stop))
        tiles.extend((rows, Interval(j, min(j + width, stop))) for j in range(i, stop, width))
    return tiles
