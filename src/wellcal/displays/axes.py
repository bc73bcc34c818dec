"""What axes remember: the models that they show, so that the next one looks different, and one legend."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from wellcal._arrays.characters import writable
from wellcal._arrays.namespaces import NDArray
from wellcal.displays._style import (
    CYCLE,
    DASHES,
    MARKERS,
    OWN_HEIGHTS,
    TITLE,
    Theme,
    checked_axes,
    lay_out,
    theme_of,
)
from wellcal.displays.cells import fit_into_cell, room_for_lines, root_of, to_be_fitted
from wellcal.displays.naming import Box, along, free_corner, placed
from wellcal.displays.wrapping import wrapped_lines

SMALL = 8.0
"""Size of small print, in points."""

SQUARE, TALL, WIDE = (4.4, 4.6), (4.4, 5.45), (6.0, 4.0)
"""Sizes of figures in inches, with one line above and below: square axes, the same with counts, and 3:2."""

_LEADING = 1.25 / 72.0  # height of a line in inches, in units of the size of its font

_UNBROKEN = "\N{NO-BREAK SPACE}"
_NARROWEST = 72.0  # lines of words, in points
_LONGER = 1.2  # than axes of a user is what is written along them, at most
_ROW = 0.36  # height of a row of words and its line, in inches
_NAMES = 9.0  # size of names of models
_OUT = 5.0  # of a legend from the axes that it stands above, in points
_PAD = 6.0  # of a title from what is below it

NAME = "_name of a model"
"""Label of names of models that stand at their curves."""


@dataclass
class Look:
    """How one model is drawn."""

    colour: str
    dash: Any
    marker: str

    @property
    def line(self) -> dict[str, Any]:
        """For a line."""
        return {"color": self.colour, "linestyle": self.dash}

    @property
    def points(self) -> dict[str, Any]:
        """For markers."""
        return {"color": self.colour, "marker": self.marker, "linestyle": "none"}


@dataclass
class Shown:
    """What one pair of axes shows."""

    anchor: Any
    names: list[str] = field(default_factory=lambda: [])
    handles: list[Any] = field(default_factory=lambda: [])
    curves: list[NDArray] = field(default_factory=lambda: [])
    dots: list[NDArray] = field(default_factory=lambda: [])
    said: list[tuple[str, str]] = field(default_factory=lambda: [])
    parts: dict[str, Any] = field(default_factory=lambda: {})


_shown: WeakKeyDictionary[Any, Shown] = WeakKeyDictionary()


class Canvas:
    """Axes in the common look, which know how many models they show.

    Parameters
    ----------
    ax
        matplotlib's axes.
    """

    def __init__(self, ax: Any) -> None:
        self.ax = checked_axes(ax)
        self.margin = 1.0  # inches beside the axes, which lines of text do not take
        self.theme: Theme = theme_of(ax)
        found = _shown.get(ax)
        if found is None or found.anchor not in ax.lines:  # new, or cleared since
            (anchor,) = ax.plot([], [], visible=False)
            found = _shown[ax] = Shown(anchor)
            self._dress()
        self.shown = found

    def _dress(self) -> None:
        ax, theme = self.ax, self.theme
        for side, spine in ax.spines.items():
            spine.set(visible=side in ("left", "bottom"), edgecolor=theme.quiet, linewidth=0.8)
        ax.tick_params(colors=theme.quiet, labelsize=9.0)

    # -- models --------------------------------------------------------------------------------

    @property
    def first(self) -> bool:
        """Whether no model is shown yet."""
        return not self.shown.names

    @property
    def look(self) -> Look:
        """How the next model is drawn."""
        return self.look_of(len(self.shown.names))

    def look_of(self, index: int) -> Look:
        """How the model with this number is drawn."""
        again = index // len(CYCLE)  # colours come again with other dashes and markers
        dash, marker = DASHES[(index + again) % len(DASHES)], MARKERS[(index + 2 * again) % len(MARKERS)]
        return Look(self.theme.colour(index), dash, marker)

    def add(self, name: str | None, handle: Any, curve: Any = None, dots: Any = None) -> None:
        """Remember a model: what stands for it in a legend, and what is drawn of it, in data coordinates.

        `curve` is the line ``(x, y)`` that its name may stand at, `dots` are other things that no name hides.
        """
        self.shown.names.append(writable(name or f"model {len(self.shown.names) + 1}"))
        self.shown.handles.append(handle)
        self.shown.curves.append(_columns(curve))
        self.shown.dots.append(_columns(dots))

    def say(self, name: str | None, statement: str) -> None:
        """Remember what is said of a model in the title."""
        self.shown.said.append((name or f"model {len(self.shown.said) + 1}", statement))

    def name_models(self) -> None:
        """Names at the curves where there is room for all, else one legend in an empty corner or above.

        None for a single model, whose name is in the small print. To be called last: where there is room is
        a matter of all that is drawn.
        """
        names, parts = self.shown.names, self.shown.parts
        if len(names) < 2:
            return
        for artist in parts.pop("naming", []):
            artist.remove()
        if parts.pop("strip", None) is not None:
            self._write_title()
        self.settle()
        lay_out(root_of(self.ax))  # it decides how large the axes are
        corner, unit = self.ax.get_window_extent(), 72.0 / root_of(self.ax).dpi
        extent = (corner.width * unit, corner.height * unit)
        origin = np.array([corner.x0, corner.y0])
        curves = [along(self._in_points(curve, origin, unit)) for curve in self.shown.curves]
        taken, leaders = self._words(origin, unit)
        dots = np.concatenate([leaders, *(self._in_points(some, origin, unit) for some in self.shown.dots)])
        found = None
        if all(map(len, curves)):
            sizes = [self._size(name, unit) for name in names]
            found = placed(sizes, curves, extent, taken, dots)
        if found is None:
            self._legend(extent, taken, np.concatenate([dots, *curves]), unit)
            return
        for index, (name, place) in enumerate(zip(names, found, strict=True)):
            offset = tuple(np.subtract(place.corner, place.anchor))
            at = self.ax.transData.inverted().transform(np.array(place.anchor) / unit + origin)
            parts.setdefault("naming", []).append(
                self.ax.annotate(
                    name,
                    at,
                    xytext=offset,
                    textcoords="offset points",
                    fontsize=_NAMES,
                    color=self.theme.in_words(self.shown.handles[index].get_color()),
                    zorder=3.5,
                    label=NAME,
                )
            )
            if self.shown.handles[index].get_marker() in (None, "None", "none", ""):  # whose name is it?
                points = {**self.look_of(index).points, "markersize": 4.5, "zorder": 3.2}
                points["color"] = self.shown.handles[index].get_color()
                parts["naming"].append(self.ax.plot(*at[:, None], **points)[0])

    def _in_points(self, curve: NDArray, origin: NDArray, unit: float) -> NDArray:
        return (self.ax.transData.transform(curve) - origin) * unit if len(curve) else curve

    def _size(self, name: str, unit: float) -> tuple[float, float]:
        text = self.ax.text(0.0, 0.0, name, fontsize=_NAMES)
        found = text.get_window_extent()
        text.remove()
        return found.width * unit, found.height * unit

    def _words(self, origin: NDArray, unit: float) -> tuple[list[Box], NDArray]:
        """Where there are words already, and lines that lead from them."""
        found: list[Box] = []
        lines: list[NDArray] = [np.zeros((0, 2))]
        for text in self.ax.texts:
            drawn = text.get_window_extent()
            left, low, right, high = ((np.array(drawn.extents) - np.tile(origin, 2)) * unit).tolist()
            found.append(Box(left, low, right, high))
            if text is self.shown.parts.get("label"):
                to = self._in_points(np.array([text.xy]), origin, unit)[0]
                start = [float(np.clip(to[0], left, right)), float(np.clip(to[1], low, high))]
                lines.append(along(np.array([start, to])))
        return found, np.concatenate(lines)

    def _legend(self, extent: tuple[float, float], taken: list[Box], points: NDArray, unit: float) -> None:
        # Names wider than the axes would leave these no room.
        room = max(_NARROWEST, extent[0] - 4.0 * _NAMES)
        names = ["\n".join(wrapped_lines(name, room, _NAMES)) for name in self.shown.names]
        handles = self.shown.handles
        options: dict[str, Any] = {"frameon": False, "fontsize": _NAMES, "borderaxespad": 0.0}
        legend = self.ax.legend(handles, names, loc="upper left", **options)
        size = legend.get_window_extent()
        where = free_corner((size.width * unit, size.height * unit), extent, taken, points)
        if where is not None:
            legend = self.ax.legend(handles, names, loc=where, **options)
        else:
            widest = max(self._size(name, unit)[0] for name in names) + 4.0 * _NAMES
            columns = int(np.clip(extent[0] // widest, 1, len(names)))
            options |= {"ncols": columns, "borderpad": 0.0, "columnspacing": 1.2}
            above = (0.0, 1.0 + _OUT / extent[1])
            legend = self.ax.legend(handles, names, loc="lower left", bbox_to_anchor=above, **options)
            self.shown.parts["strip"] = legend.get_window_extent().height * unit + _OUT
            self._write_title()
        for text, handle in zip(legend.get_texts(), handles, strict=True):
            text.set_color(self.theme.in_words(handle.get_color()))
        self.shown.parts["naming"] = [legend]

    # -- words ---------------------------------------------------------------------------------

    def title(self) -> None:
        """What is said of the model; one line for each where there are several."""
        said = self.shown.said
        if len(said) == 1:
            self.head(said[0][1])
        else:
            self.head("\n".join(f"{name}: {short(statement)}" for name, statement in said))

    def head(self, text: str) -> None:
        """Words above the axes, in lines that fit."""
        self.shown.parts["head"] = text
        self._write_title()

    def _write_title(self) -> None:
        """The title, above a legend where one stands above the axes."""
        lines, strip = (
            self.wrapped(self.shown.parts.get("head", ""), 10.0),
            self.shown.parts.get("strip", 0.0),
        )
        options: dict[str, Any] = {"loc": "left", "fontsize": 10.0, "color": self.theme.ink}
        self.ax.set_title(lines, pad=_PAD + strip, **options).set_gid(TITLE)
        self.shown.parts["above"] = lines.count("\n") * 10.0 * _LEADING + strip / 72.0
        self._fit()

    def _fit(self) -> None:
        """Make a figure of ours as high as what is written above and below its axes."""
        height = OWN_HEIGHTS.get(self.ax.figure)
        if height is not None:
            more = sum(self.shown.parts.get(part, 0.0) for part in ("above", "below", "rows"))
            self.ax.figure.set_figheight(height + more)

    def settle(self) -> None:
        """Make room around axes that a user gave for all that is written there, where no layout does it."""
        if not to_be_fitted(self.ax):
            return
        fit_into_cell(self.ax, self._rewrite)

    def _rewrite(self) -> None:
        for ax in (self.ax, *self.ax.child_axes):
            self._wrap_labels(ax)
        if "head" in self.shown.parts:
            self._write_title()
        if "noted" in self.shown.parts:
            self.note(*self.shown.parts["noted"])

    def _wrap_labels(self, ax: Any) -> None:
        """What is written along axes in lines not much longer than these, which it would make smaller."""
        drawn, unit = ax.get_window_extent(), 72.0 / root_of(ax).dpi
        for axis, length in ((ax.xaxis, drawn.width), (ax.yaxis, drawn.height)):
            text = axis.label.get_text().replace("\n", " ")
            lines = wrapped_lines(text, max(_NARROWEST, _LONGER * length * unit), axis.label.get_fontsize())
            axis.label.set_text("\n".join(lines))

    def note(self, text: str, below: Any = None) -> None:
        """Small print below the axes, or below other ones; what was there before goes."""
        old = self.shown.parts.pop("note", None)
        if old is not None:
            old.remove()
        self.shown.parts["noted"] = text, below
        owner, lines = self.ax if below is None else below, self.wrapped(text, SMALL)
        self.shown.parts["below"] = lines.count("\n") * SMALL * _LEADING
        self._fit()
        self.shown.parts["note"] = owner.annotate(
            lines,
            xy=(0.0, 0.0),
            xycoords=("axes fraction", owner.xaxis.label),
            xytext=(0.0, -5.0),
            textcoords="offset points",
            ha="left",
            va="top",
            fontsize=SMALL,
            color=self.theme.quiet,
            annotation_clip=False,
        )

    def wrapped(self, text: str, size: float) -> str:
        """Text in lines that are no wider than the axes."""
        figure = self.ax.figure
        if to_be_fitted(self.ax):
            inches = room_for_lines(self.ax)
        else:
            whole = figure.bbox.width / root_of(self.ax).dpi
            several = self.ax.get_subplotspec() is not None and len(figure.axes) > 1
            inches = whole * self.ax.get_position().width if several else whole - self.margin
        for word in ("p = ", "p <= "):  # a p-value stays in one line
            text = text.replace(word, word.replace(" ", _UNBROKEN))
        width = max(_NARROWEST, 72.0 * inches)
        lines = [line for part in text.splitlines() for line in wrapped_lines(part, width, size)]
        return "\n".join(lines).replace(_UNBROKEN, " ")

    def rows(self, texts: list[str], colour: str, values: Any, low: Any, high: Any, filled: Any) -> Any:
        """One row for each text, which stands above its line; `filled` says whose marker is.

        Returns the handle of the markers. Rows are as far apart as their texts need.
        """
        ax, theme = self.ax, self.theme
        lines = [self.wrapped(text, 9.0) for text in texts]
        heights = [1.0 + 0.5 * text.count("\n") for text in lines]
        places = [-sum(heights[: k + 1]) for k in range(len(heights))]
        self.shown.parts["rows"] = _ROW * (sum(heights) - len(heights))
        self._fit()
        ax.hlines(places, low, high, color=colour, linewidth=1.8, zorder=2.4)
        shape: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 6.5, "zorder": 3}
        (handle,) = ax.plot(values, places, color=colour, markerfacecolor=theme.paper, **shape)
        for place, value, shown in zip(places, values, filled, strict=True):
            if shown:
                ax.plot([value], [place], color=colour, **shape)
        for text, place in zip(lines, places, strict=True):
            words = ax.annotate(
                text,
                (0.0, place),
                xycoords=("axes fraction", "data"),
                xytext=(0.0, 6.0),
                textcoords="offset points",
                ha="left",
                va="bottom",
                fontsize=9.0,
                color=theme.ink,
                zorder=3,
                # The line of zero stops where there are words.
                bbox={"facecolor": theme.paper, "edgecolor": "none", "pad": 1.0},
            )
            # Words wider than the axes would make the layout shrink them, and words wider still.
            words.set_in_layout(False)
        ax.set(ylim=(places[-1] - 0.45, 0.0), yticks=[])
        ax.spines["left"].set_visible(False)
        return handle

    # -- what is in the background ---------------------------------------------------------------

    def once(self, key: str) -> bool:
        """Whether this is asked for the first time."""
        known = key in self.shown.parts
        self.shown.parts.setdefault(key, True)
        return not known

    def ideal(self, x: Any, y: Any) -> None:
        """The thin grey line of a perfect model, once."""
        if self.once("ideal"):
            self.ax.plot(x, y, color=self.theme.ideal, linewidth=0.8, zorder=1.2)

    def band(self, x: Any, low: Any, high: Any, *, around: float = 0.02, **options: Any) -> Any:
        """Where calibrated models lie, in grey; at a single place, so far to both sides of it.

        Returns what is drawn.
        """
        if len(x) == 1:
            x, low, high = x[0] + np.array([-around, around]), np.repeat(low, 2), np.repeat(high, 2)
        shade = {"color": self.theme.band, "alpha": 0.75, "linewidth": 0.0, "zorder": 0.8, **options}
        return self.ax.fill_between(x, low, high, **shade)

    def label(self, text: str, xy: tuple[float, float], to: tuple[float, float], **options: Any) -> None:
        """Words for the band at `xy`, written at `to`, a thin line between both; only the latest stay."""
        old = self.shown.parts.pop("label", None)
        if old is not None:
            old.remove()
        place: dict[str, Any] = {"ha": "right", "va": "center", **options}
        self.shown.parts["label"] = self.ax.annotate(
            text,
            xy=xy,
            xytext=to,
            fontsize=SMALL,
            color=self.theme.quiet,
            arrowprops={"arrowstyle": "-", "color": self.theme.ideal, "linewidth": 0.6, "shrinkB": 0.0},
            **place,
        )


def _columns(curve: Any) -> NDArray:
    """``(x, y)`` as points ``(m, 2)``; None as no points."""
    if curve is None:
        return np.zeros((0, 2))
    x, y = (np.asarray(part, dtype=np.float64) for part in curve)
    return np.stack(np.broadcast_arrays(x, y), axis=1)


def in_title(verdict: str) -> str:
    """A verdict without what makes it long: where a p-value ends, and findings after the clearest one.

    Examples
    --------
    >>> in_title("Miscalibrated (p <= 0.001, the smallest that 999 resamples can give): a is b; c is d.")
    'Miscalibrated (p <= 0.001): a is b.'
    >>> in_title("Miscalibrated (p = 0.01): a is b (2, 1 to 3; predicted 4); c is d.")
    'Miscalibrated (p = 0.01): a is b (2, 1 to 3; predicted 4).'
    """
    head, closed, rest = verdict.partition(")")
    head = head.partition(", the smallest")[0]
    within = re.match(r"(?:\([^()]*\)|(?!; ).)*", rest)  # what is in brackets belongs to its finding
    first = rest if within is None else within[0]
    return f"{head}{closed}{first}{'.' if first != rest else ''}"


def short(verdict: str | None) -> str:
    """The beginning of a verdict: what was found, and how sure it is.

    Examples
    --------
    >>> short("Miscalibrated (p = 0.002): spreads are 21% too small (15% to 27%).")
    'Miscalibrated (p = 0.002).'
    >>> short("No miscalibration found (p = 0.41). 500 cases would have shown more.")
    'No miscalibration found (p = 0.41).'
    """
    head, closed, _ = in_title(verdict or "").partition(")")
    return f"{head}{closed}." if closed else head
