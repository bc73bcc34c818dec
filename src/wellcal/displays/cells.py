"""Axes that a user gave: what is written around them must fit into their part of the figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray

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
    arranged = root_of(ax).get_layout_engine() is not None
    return not arranged and isinstance(ax.get_axes_locator(), (Inside, type(None)))


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
    root, to_pixels = root_of(ax), ax.figure.transSubfigure
    right = to_pixels.transform_bbox(cell_of(ax)).x1 - _EDGE * root.dpi / 72.0
    return _HINTED * float(right - _drawn_box(ax)[0]) / root.dpi


class Inside:
    """Where axes are drawn: in their box, less what is written around them where the cell ends.

    It is asked whenever they are drawn, so that it holds after the figure has changed, too; the box itself
    stays what the user, or a layout that is asked for later, made it.

    Parameters
    ----------
    margins
        Inches that are needed to the left of the axes, below, to the right and above them.
    """

    def __init__(self, ax: Any, margins: Any) -> None:
        self.ax, self.margins = ax, np.asarray(margins, dtype=np.float64)

    def get_subplotspec(self) -> Any:
        """Layouts ask for it."""
        return self.ax.get_subplotspec()

    def __call__(self, ax: Any, renderer: Any) -> Any:
        """The box in fractions of the figure."""
        from matplotlib.transforms import Bbox

        given, root = ax.get_position(original=True), root_of(ax)
        if root.get_layout_engine() is not None:
            return given
        to_pixels = ax.figure.transSubfigure
        low, high = _pixels(to_pixels, given), _pixels(to_pixels, cell_of(ax))
        needed = self.margins * root.dpi + _EDGE * root.dpi / 72.0
        first = np.maximum(low[:2], high[:2] + needed[:2])
        last = np.minimum(low[2:], high[2:] - needed[2:])
        least = _SMALLEST * (high[2:] - high[:2])
        short = last - first < least  # however much is written: in the middle of what there is
        middle = 0.5 * (first + last)
        first = np.where(short, middle - 0.5 * least, first)
        last = np.where(short, middle + 0.5 * least, last)
        return to_pixels.inverted().transform_bbox(Bbox([first.tolist(), last.tolist()]))


def _pixels(transform: Any, box: Any) -> NDArray:
    return np.array(transform.transform_bbox(box).extents)


def _drawn_box(ax: Any) -> NDArray:
    """Where axes are drawn, in pixels: left, low, right, high."""
    locator = ax.get_axes_locator()
    ax.apply_aspect(None if locator is None else locator(ax, None))
    return _pixels(ax.figure.transSubfigure, ax.get_position())


def fit_into_cell(ax: Any, write: Callable[[], None]) -> None:
    """Make axes smaller until they and what is written around them are inside of their cell.

    Parameters
    ----------
    ax
        matplotlib's axes.
    write
        Writes the lines around them anew, which are as wide as the axes leave room for.
    """
    root = root_of(ax)
    known = np.zeros(4)
    for _ in range(_ROUNDS):
        ax.set_axes_locator(Inside(ax, known))
        write()
        drawn, box = np.array(ax.get_tightbbox().extents), _drawn_box(ax)
        found = np.concatenate([box[:2] - drawn[:2], drawn[2:] - box[2:]]) / root.dpi
        if np.all(np.abs(found - known) * root.dpi < _STILL):
            break
        known = found
    ax.set_axes_locator(Inside(ax, known))
