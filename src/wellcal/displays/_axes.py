"""What axes remember: the models that they show, so that the next one looks different, and one legend."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from wellcal.displays._style import DASHES, MARKERS, OWN_HEIGHTS, THEMES, TITLE, Theme, theme_of

SMALL = 8.0
"""Size of small print, in points."""

SQUARE, TALL, WIDE = (4.4, 4.6), (4.4, 5.45), (6.0, 4.0)
"""Sizes of figures in inches, with one line above and below: square axes, the same with counts, and 3:2."""

_LEADING = 1.25 / 72.0  # height of a line in inches, in units of the size of its font

_UNBROKEN = "\N{NO-BREAK SPACE}"
_NARROW = 0.56  # width of a letter, in units of the size of its font


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
    verdicts: list[str | None] = field(default_factory=lambda: [])
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
        self.ax = ax
        self.margin = 0.75  # inches beside the axes, which lines of text do not take
        self.theme: Theme = THEMES[theme_of(ax)]
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
        return Look(self.theme.colour(index), DASHES[index % len(DASHES)], MARKERS[index % len(MARKERS)])

    def add(self, name: str | None, handle: Any, verdict: str | None = None) -> None:
        """Remember a model, and what a test said of it."""
        self.shown.names.append(name or f"model {len(self.shown.names) + 1}")
        self.shown.handles.append(handle)
        self.shown.verdicts.append(verdict)

    @property
    def free_corner(self) -> str:
        """Of a diagram with a diagonal: the one where the band is not labelled."""
        return self.shown.parts.get("free corner", "upper left")

    def legend(self, loc: str = "best", band: str | None = None) -> None:
        """One legend for all models; none for a single one, whose name is in the small print.

        `band` is what the band is called where there is no room for its label beside the legend.
        """
        names = self.shown.names
        if len(names) > 1:
            handles, shown = self.shown.handles, names
            if band is not None and (old := self.shown.parts.pop("label", None)) is not None:
                old.remove()
            if band is not None:
                from matplotlib.patches import Patch

                grey = Patch(color=self.theme.band, alpha=0.75, linewidth=0.0)
                handles, shown = [*handles, grey], [*names, band]
            found = self.ax.legend(handles, shown, loc=loc, frameon=False, fontsize=9.0)
            for text in found.get_texts():
                text.set_color(self.theme.ink)

    # -- words ---------------------------------------------------------------------------------

    def title(self, question: str) -> None:
        """The verdict, one line for each model where there are several; else the question."""
        names, verdicts = self.shown.names, self.shown.verdicts
        if all(verdict is None for verdict in verdicts):
            text = question
        elif len(names) == 1:
            text = in_title(verdicts[0] or question)
        else:
            said = zip(names, verdicts, strict=True)
            text = "\n".join(f"{name}: {short(verdict)}" for name, verdict in said if verdict is not None)
        self.head(text)

    def head(self, text: str) -> None:
        """Words above the axes, in lines that fit."""
        lines = self.wrapped(text, 10.0)
        self.ax.set_title(lines, loc="left", fontsize=10.0, color=self.theme.ink).set_gid(TITLE)
        self.shown.parts["above"] = lines.count("\n") * 10.0 * _LEADING
        self._fit()

    def _fit(self) -> None:
        """Make a figure of ours as high as what is written above and below its axes."""
        height = OWN_HEIGHTS.get(self.ax.figure)
        if height is not None:
            more = self.shown.parts.get("above", 0.0) + self.shown.parts.get("below", 0.0)
            self.ax.figure.set_figheight(height + more)

    def note(self, text: str, below: Any = None) -> None:
        """Small print below the axes, or below other ones; what was there before goes."""
        old = self.shown.parts.pop("note", None)
        if old is not None:
            old.remove()
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
        inches = figure.get_size_inches()[0]
        several = self.ax.get_subplotspec() is not None and len(figure.axes) > 1
        inches = inches * self.ax.get_position().width if several else inches - self.margin
        width = max(24, int(inches * 72.0 / (_NARROW * size)))
        for word in ("p = ", "p <= "):  # a p-value stays in one line
            text = text.replace(word, word.replace(" ", _UNBROKEN))
        return "\n".join(textwrap.fill(line, width) for line in text.splitlines()).replace(_UNBROKEN, " ")

    def rows(self, texts: list[str], colour: str, values: Any, low: Any, high: Any, filled: Any) -> Any:
        """One row for each text, which stands above its line; `filled` says whose marker is.

        Returns the handle of the markers. Rows are as far apart as their texts need.
        """
        ax, theme = self.ax, self.theme
        lines = [self.wrapped(text, 9.0) for text in texts]
        heights = [1.0 + 0.5 * text.count("\n") for text in lines]
        places = [-sum(heights[: k + 1]) for k in range(len(heights))]
        ax.hlines(places, low, high, color=colour, linewidth=1.8, zorder=2.4)
        shape: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 6.5, "zorder": 3}
        (handle,) = ax.plot(values, places, color=colour, markerfacecolor=theme.paper, **shape)
        for place, value, shown in zip(places, values, filled, strict=True):
            if shown:
                ax.plot([value], [place], color=colour, **shape)
        for text, place in zip(lines, places, strict=True):
            ax.annotate(
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

    def band(self, x: Any, low: Any, high: Any, **options: Any) -> None:
        """Where calibrated models lie, in grey."""
        shade = {"color": self.theme.band, "alpha": 0.75, "linewidth": 0.0, "zorder": 0.8, **options}
        self.ax.fill_between(x, low, high, **shade)

    def label(self, text: str, xy: tuple[float, float], to: tuple[float, float], **options: Any) -> None:
        """Words for the band at `xy`, written at `to`, a thin line between both; only the latest stay."""
        old = self.shown.parts.pop("label", None)
        if old is not None:
            old.remove()
        place: dict[str, Any] = {"ha": "right", "va": "center", **options}
        self.shown.parts["free corner"] = "upper left" if place["ha"] == "right" else "lower right"
        self.shown.parts["label"] = self.ax.annotate(
            text,
            xy=xy,
            xytext=to,
            fontsize=SMALL,
            color=self.theme.quiet,
            arrowprops={"arrowstyle": "-", "color": self.theme.ideal, "linewidth": 0.6, "shrinkB": 0.0},
            **place,
        )


def in_title(verdict: str) -> str:
    """A verdict without what makes it long: where a p-value ends, and findings after the clearest one.

    Examples
    --------
    >>> in_title("Miscalibrated (p <= 0.001, the smallest that 999 resamples can give): a is b; c is d.")
    'Miscalibrated (p <= 0.001): a is b.'
    """
    head, closed, rest = verdict.partition(")")
    head = head.partition(", the smallest")[0]
    first, more, _ = rest.partition("; ")
    return f"{head}{closed}{first}{'.' if more else ''}"


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
