"""One look for all figures: colours that colour-blind readers can tell apart, lines that print in grey."""

from __future__ import annotations

import re
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from io import StringIO
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np

from wellcal._arrays.characters import writable
from wellcal._arrays.checks import described, one_of
from wellcal._arrays.namespaces import attribute

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

DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1.5, 1.5)),
    (0, (7, 2, 1.5, 2)),
    (0, (3, 1.5)),
    (0, (7, 2, 1.5, 2, 1.5, 2)),
    (0, (10, 3)),
)
"""Dashes for curves, in order."""

COLOUR_MAP = "cividis"
"""For densities: it grows in lightness, and looks the same with and without colour vision."""


@dataclass(frozen=True)
class Theme:
    """Colours of everything that is not a model."""

    ink: str
    quiet: str
    ideal: str
    band: str
    paper: str
    instead: dict[str, str] = field(default_factory=lambda: {})

    def colour(self, index: int) -> str:
        """Of the model with this number: on dark paper white stands for black, and light blue for blue."""
        found = CYCLE[index % len(CYCLE)]
        return {**self.instead, COLOURS["black"]: self.ink}.get(found, found)

    def in_words(self, colour: str) -> str:
        """A colour for words: the same where it can be read on this paper, else as much nearer to ink.

        Examples
        --------
        >>> THEMES["light"].in_words("#0072B2"), THEMES["light"].in_words("#E69F00")
        ('#0072B2', '#956b0d')
        """
        for share in range(0, 100, 5):
            mixed = _mixed(colour, self.ink, share / 100.0) if share else colour
            if _contrast(mixed, self.paper) >= _READABLE:
                return mixed
        return self.ink


_READABLE = 4.5  # contrast of small text with its paper: WCAG 2, level AA


def _channels(colour: str) -> list[float]:
    return [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]


def _mixed(colour: str, other: str, share: float) -> str:
    pairs = zip(_channels(colour), _channels(other), strict=True)
    return "#" + "".join(f"{round(255 * ((1.0 - share) * a + share * b)):02x}" for a, b in pairs)


def _contrast(one: str, other: str) -> float:
    """How far apart two colours are in lightness, from 1 to 21."""
    levels = [
        [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(x)]
        for x in (one, other)
    ]
    low, high = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in levels)
    return (high + 0.05) / (low + 0.05)


THEMES = {
    "light": Theme(ink="#1c1e21", quiet="#5d6269", ideal="#8b9097", band="#d5d8dc", paper="#ffffff"),
    "dark": Theme(
        ink="#e8eaed",
        quiet="#a9aeb6",
        ideal="#7d838c",
        band="#3c4149",
        paper="#16181c",
        instead={COLOURS["blue"]: COLOURS["sky"], COLOURS["sky"]: COLOURS["blue"]},
    ),
}

_TAG, _COLOUR = re.compile("<[^>]*>"), re.compile("#[0-9a-f]{6}")

OWN_HEIGHTS: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
"""Heights that figures were made with, in inches: those that may grow with what is written on them."""

_theme: ContextVar[tuple[str, Theme] | None] = ContextVar("theme", default=None)

_SETTINGS: dict[str, Any] = {
    "font.size": 10.0,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
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
    "svg.fonttype": "none",  # text stays text: it can be read aloud, found and copied
    "svg.hashsalt": "wellcal",  # the same figure is the same file
    "image.cmap": COLOUR_MAP,
    "text.parse_math": False,  # names are what they are, whatever signs of dollars are in them
}


def import_pyplot() -> Any:
    """matplotlib.pyplot, imported when the first figure is drawn."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'wellcal[plot]'") from None
    return pyplot


@contextmanager
def style(theme: str | None = None) -> Generator[Any]:
    """The common look within a ``with`` block; global settings are left as they were.

    Parameters
    ----------
    theme
        "light" or "dark", for all figures that are made within the block; None takes that of the block around
        this one, and where there is none the one that goes with the colour of figures in matplotlib's style,
        which is kept.

    Examples
    --------
    >>> with style("dark") as pyplot:
    ...     figure, ax = pyplot.subplots()
    >>> pyplot.close(figure)
    """
    pyplot = import_pyplot()
    if theme is not None:
        found = theme, THEMES[one_of(theme, "theme", THEMES)]
    else:
        found = _theme.get() or _of_style(pyplot.rcParams["figure.facecolor"])
    token = _theme.set(found)
    try:
        with pyplot.rc_context({**_SETTINGS, **_colours(found[1])}):
            yield pyplot
    finally:
        _theme.reset(token)


@contextmanager
def letters_stay() -> Generator[None]:
    """No warning of letters that matplotlib has no font for: in pages they are text."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield


def _of_style(paper: Any) -> tuple[str, Theme]:
    """The theme that goes with a colour of figures, on that colour."""
    from matplotlib.colors import to_hex, to_rgba

    if to_rgba(paper)[3] == 0:
        return "light", THEMES["light"]
    name = _on(paper)
    return name, replace(THEMES[name], paper=to_hex(paper))


def _on(paper: Any) -> str:
    """Whether light or dark is the name of a colour of paper."""
    from matplotlib.colors import to_rgba

    red, green, blue, _ = to_rgba(paper)
    return "dark" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.4 else "light"


def _colours(theme: Theme) -> dict[str, Any]:
    inked = ("text.color", "axes.labelcolor", "axes.titlecolor")
    quiet = ("axes.edgecolor", "xtick.color", "ytick.color")
    paper = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
    return {
        **dict.fromkeys(inked, theme.ink),
        **dict.fromkeys(quiet, theme.quiet),
        **dict.fromkeys(paper, theme.paper),
    }


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
        return checked_axes(ax)
    with style() as pyplot:
        figure, ax = pyplot.subplots(figsize=figsize, layout="constrained")
    OWN_HEIGHTS[figure] = figsize[1]
    return ax


def checked_axes(ax: Any) -> Any:
    """`ax`, or an error where it is something else than axes of matplotlib.

    Examples
    --------
    >>> checked_axes(3)
    Traceback (most recent call last):
    TypeError: ax must be axes of matplotlib, or None for a new figure, found 3; give axes, ...
    """
    from matplotlib.axes import Axes

    if isinstance(ax, Axes):
        return ax
    found, remedy = described(ax), "as plt.subplots() makes them"
    if attribute(ax, "subplots") is not None:
        found, remedy = "a figure", "as figure.subplots() makes them"
    elif isinstance(ax, np.ndarray):
        found, remedy = f"an array of {cast('Any', ax).size}", "one of them"
    raise TypeError(
        f"ax must be axes of matplotlib, or None for a new figure, found {found}; give axes, {remedy}"
    )


def theme_of(ax: Any) -> Theme:
    """The theme that goes with the paper that axes are drawn on.

    Examples
    --------
    >>> theme_of(axes_or_new(None)) == THEMES["light"]
    True
    """
    from matplotlib.colors import to_rgba

    papers = [paper for paper in (ax.get_facecolor(), ax.figure.get_facecolor()) if to_rgba(paper)[3] > 0]
    if papers:
        return _of_style(papers[0])[1]
    return (_theme.get() or ("", THEMES["light"]))[1]


TITLE = "wellcal-title"
"""What the titles of our figures are called, so that a page with a caption can do without them."""


def to_svg(figure: Any, *, title: bool = True) -> str:
    """A figure as SVG to be set into a page, in the colours of that page.

    Ink becomes ``currentColor``, paper is left out, and all other colours are variables of CSS with what they
    are on white paper where a page has none: the greys of the background, ``--wc-quiet``, ``--wc-ideal`` and
    ``--wc-band``, the inside of hollow markers, ``--wc-paper``, the colours of models, ``--wc-blue`` and so
    on (`COLOURS`), of which a dark page may want lighter ones, and those of their names, ``--wc-blue-words``.
    One figure serves light, dark and print.
    Draw it in the light theme.

    Parameters
    ----------
    figure
        matplotlib's figure.
    title
        Whether the title of a display is part of it; a page may say it in its own words.

    Examples
    --------
    >>> picture = to_svg(axes_or_new(None).figure)
    >>> picture.startswith("<svg"), "var(--wc-quiet" in picture, "#ffffff" in picture
    (True, True, False)
    >>> css_variables("dark")["blue"], css_variables("light")["blue"]
    ('#56b4e9', '#0072b2')
    """
    found = StringIO()
    left_out = [] if title else [text for text in figure.findobj(_is_title) if text.get_visible()]
    for text in left_out:
        text.set_visible(False)
    try:
        with style("light"), letters_stay():
            figure.savefig(found, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    finally:
        for text in left_out:
            text.set_visible(True)
    text = writable(found.getvalue())
    text = text[text.index("<svg") :]
    written = {colour: f"var(--wc-{name}, {colour})" for name, colour in css_variables("light").items()}
    written[THEMES["light"].ink] = "currentColor"
    # In tags only: a class may have the name of a colour.
    return _TAG.sub(lambda tag: _COLOUR.sub(lambda found: written.get(found[0], found[0]), tag[0]), text)


def lay_out(figure: Any) -> None:
    """Give all axes the place that they will be drawn at: what drawing begins with, and no more."""
    engine = figure.get_layout_engine()
    if engine is not None:
        with suppress(ValueError):  # no room, which drawing passes over as well
            engine.execute(figure)
    for ax in figure.axes:
        ax.get_xlim()  # limits that are to follow what is shown do so when they are asked for
        locator = ax.get_axes_locator()
        ax.apply_aspect(None if locator is None else locator(ax, None))


def _is_title(artist: Any) -> bool:
    return artist.get_gid() == TITLE


def css_variables(theme: str) -> dict[str, str]:
    """What the variables of `to_svg` are in a theme, by their names after ``--wc-``."""
    found = THEMES[theme]
    shades = {name: getattr(found, name) for name in ("ink", "quiet", "ideal", "band", "paper")}
    models = {name: found.instead.get(colour, colour) for name, colour in COLOURS.items()}
    if theme == "dark":
        models["black"] = found.ink
    words = {f"{name}-words": found.in_words(colour) for name, colour in models.items()}
    # Where words have the colour itself, the shorter name is the one that is written.
    return {name: colour.lower() for name, colour in {**words, **models, **shades}.items()}
