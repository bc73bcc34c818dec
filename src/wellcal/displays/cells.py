"""Axes that a user gave: what is written around them must fit into their part of the figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_EDGE = 4.0  # points that stay free at the edges of a cell
_SMALLEST = 0.3  # of a cell that axes keep, however much is written around them
_ROUNDS = 5
_HINTED = 0.97  # of a line that words take: in few pixels letters are a little wider
_STILL = 0.5  # pixels by which nothing has to move any more


def root_of(ax: Any) -> Any:
    """The whole figure that axes are on, also those of a part of a figure."""
    figure = ax.figure
    while figure.figure is not figure:
        figure = figure.figure
    return figure


def to_be_fitted(ax: Any) -> bool:
    """Whether nobody else arranges these axes: neither matplotlib nor what they are set into."""
    return root_of(ax).get_layout_engine() is None and ax.get_axes_locator() is None


def cell_of(ax: Any) -> Any:
    """The part of the figure, in its fractions, that axes share with no others: a box of matplotlib.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> left, right = Figure().subplots(1, 2)
    >>> [float(x) for x in (cell_of(left).x0, cell_of(left).x1 - cell_of(right).x0, cell_of(right).x1)]
    [0.0, 0.0, 1.0]
    """
    from matplotlib.transforms import Bbox

    place = ax.get_subplotspec()
    return Bbox.unit() if place is None else _cell(place, ax.figure)


def _cell(place: Any, figure: Any) -> Any:
    """Half of the way to its neighbours, and all of it where there are none."""
    from matplotlib.transforms import Bbox

    outer = place.get_topmost_subplotspec()
    around = Bbox.unit() if outer is place else _cell(outer, figure)
    low, high, left, right = place.get_gridspec().get_grid_positions(figure)
    columns, rows = place.colspan, place.rowspan
    x0 = around.x0 if columns.start == 0 else 0.5 * (right[columns.start - 1] + left[columns.start])
    x1 = around.x1 if columns.stop == len(left) else 0.5 * (right[columns.stop - 1] + left[columns.stop])
    y1 = around.y1 if rows.start == 0 else 0.5 * (low[rows.start - 1] + high[rows.start])
    y0 = around.y0 if rows.stop == len(low) else 0.5 * (low[rows.stop - 1] + high[rows.stop])
    return Bbox.from_extents(x0, y0, x1, y1)


def room_for_lines(ax: Any) -> float:
    """Inches from the left of axes to the right of their cell."""
    root = root_of(ax)
    to_pixels = ax.figure.transSubfigure
    right = to_pixels.transform_bbox(cell_of(ax)).x1 - _EDGE * root.dpi / 72.0
    ax.apply_aspect()
    return _HINTED * float(right - to_pixels.transform_bbox(ax.get_position()).x0) / root.dpi


def fit_into_cell(ax: Any, given: Any, write: Callable[[], None]) -> Any:
    """Make axes smaller until they and what is written around them are inside of their cell.

    Parameters
    ----------
    ax
        matplotlib's axes.
    given
        Their box as the user gave it, which they have again where there is room.
    write
        Writes the lines around them anew, which are as wide as the axes leave room for.

    Returns
    -------
    box
        The box that they have now.
    """
    from matplotlib.transforms import Bbox

    root, to_pixels = root_of(ax), ax.figure.transSubfigure
    free = _EDGE * root.dpi / 72.0
    cell = to_pixels.transform_bbox(cell_of(ax)).extents + free * np.array([1.0, 1.0, -1.0, -1.0])
    least = _SMALLEST * np.array([cell[2] - cell[0], cell[3] - cell[1]])
    box = np.array(to_pixels.transform_bbox(given).extents)
    _place(ax, given)
    for _ in range(_ROUNDS):
        write()
        drawn = np.array(ax.get_tightbbox().extents)
        over = np.concatenate([np.maximum(cell[:2] - drawn[:2], 0.0), np.minimum(cell[2:] - drawn[2:], 0.0)])
        if np.all(np.abs(over) < _STILL):
            break
        moved = box + over
        for k in (0, 1):  # no smaller than it may be, in the middle of what there is
            if moved[k + 2] - moved[k] < least[k]:
                middle = 0.5 * (moved[k] + moved[k + 2])
                moved[[k, k + 2]] = middle - 0.5 * least[k], middle + 0.5 * least[k]
        box = moved
        _place(ax, to_pixels.inverted().transform_bbox(Bbox.from_extents(*box)))
    return ax.get_position(original=True)


def _place(ax: Any, box: Any) -> None:
    arranged = ax.get_in_layout()
    ax.set_position(box)
    ax.set_in_layout(arranged)  # a layout that is asked for later still sees these axes
