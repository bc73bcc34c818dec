"""One look for all figures: colours that colour-blind readers can tell apart, markers that print in grey."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

COLOURS = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "vermilion": "#D55E00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "black": "#000000",
    "grey": "#7F7F7F",
}
"""Colours of Okabe and Ito (2008), with grey for what is in the background."""

CYCLE = tuple(COLOURS[name] for name in ("blue", "orange", "green", "vermilion", "purple", "sky", "black"))
"""Colours for curves, in order."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Markers for curves, in order: curves differ in shape as well as in colour."""

COLOUR_MAP = "cividis"
"""For densities: it grows in lightness, and looks the same with and without colour vision."""

_SETTINGS: dict[str, Any] = {
    "font.size": 10.0,
    "axes.titlesize": 10.0,
    "axes.labelsize": 10.0,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "legend.fontsize": 9.0,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.0,
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "savefig.bbox": "tight",
    "svg.fonttype": "path",
    "svg.hashsalt": "wellcal",  # the same figure is the same file
    "image.cmap": COLOUR_MAP,
}


def import_pyplot() -> Any:
    """matplotlib.pyplot, imported when the first figure is drawn."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'wellcal[plot]'") from None
    return pyplot


@contextmanager
def style() -> Generator[Any]:
    """The common look within a ``with`` block; global settings are left as they were.

    Examples
    --------
    >>> with style() as pyplot:
    ...     figure, ax = pyplot.subplots()
    >>> pyplot.close(figure)
    """
    pyplot = import_pyplot()
    with pyplot.rc_context(_SETTINGS):
        yield pyplot


def axes_or_new(ax: Any, figsize: tuple[float, float] = (4.5, 3.5)) -> Any:
    """`ax`, or the axes of a new figure in the common look, for displays of your own.

    Parameters
    ----------
    ax
        matplotlib's axes, or None for a new figure.
    figsize
        Width and height of a new figure in inches.

    Examples
    --------
    >>> ax = axes_or_new(None, figsize=(4.0, 4.0))
    >>> axes_or_new(ax) is ax
    True
    """
    if ax is not None:
        return ax
    with style() as pyplot:
        return pyplot.subplots(figsize=figsize, layout="constrained")[1]
