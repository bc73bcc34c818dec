"""Reliability diagrams: what the model said, and how often it happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.checks import flag, whole_number
from wellcal._arrays.equality import ByValue
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.seeds import as_generator
from wellcal.displays._curves import binned_curve, cell_counts, isotonic_curve, smooth_curve
from wellcal.displays._events import REDUCTIONS, Event, events_of
from wellcal.displays._style import OWN_HEIGHTS, TITLE, axes_or_new, style
from wellcal.displays.axes import SMALL, TALL, Canvas, short
from wellcal.displays.base import LEVEL, SEEN, Display, bins_outside, reach_of, verdict_of
from wellcal.displays.cells import root_of
from wellcal.displays.shortening import cut_apart
from wellcal.displays.wrapping import wrapped_lines

__all__ = ["REDUCTIONS", "ReliabilityCurve", "ReliabilityDisplay"]

QUESTION = "Do outcomes happen as often as the model says?"
_CELLS = 20  # of the histogram of what the model said
_COLUMNS = 4  # of small multiples
_FEW = 50  # cases below which no smooth curve is drawn
_CORNER = 0.1  # of both axes
_THIN = 0.6  # opacity of an isotonic curve beside a smooth one
_LETTERS = 24  # of the title of a small one
_GAP, _HIGH = 0.18, 0.36  # inches between a diagram and its counts, and of these


@dataclass
class ReliabilityCurve(ByValue):
    """What was said of one event, and how often it happened.

    Parameters
    ----------
    event
        The event in words.
    predicted, observed, counts
        Mean probability, frequency and number of cases of each bin that has any, ``(B,)``.
    low, high
        Frequencies between which the bins of a calibrated model stay, all of them at once, ``(B,)``.
    smooth, isotonic
        Curves as pairs of probabilities and frequencies.
    histogram
        Number of cases whose probability lies in each of 20 cells of equal width.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> display = ReliabilityDisplay.from_predictions([0, 1, 1, 0], np.array([0.2, 0.7, 0.9, 0.4]), n_bins=2)
    >>> display.curves[0].observed, display.curves[0].counts
    (array([0., 1.]), array([2, 2]))
    """

    event: str
    predicted: NDArray
    observed: NDArray
    counts: NDArray
    low: NDArray
    high: NDArray
    smooth: tuple[NDArray, NDArray]
    isotonic: tuple[NDArray, NDArray]
    histogram: NDArray

    @property
    def outside(self) -> NDArray:
        """Bins whose frequency is outside of the band."""
        return (self.observed < self.low) | (self.observed > self.high)

    @property
    def reach(self) -> float:
        """How far the farthest bin lies from the middle of the band, in half of its width.

        Zero where all bins are in a corner of the diagram, in which nothing is seen.
        """
        wide = np.ptp(np.concatenate([self.predicted, self.observed]))
        return reach_of(self.observed, self.low, self.high, SEEN) if wide >= _CORNER else 0.0


@dataclass(repr=False)
class ReliabilityDisplay(Display):
    """Reliability diagram: how often things happened that the model gave a certain probability.

    Parameters
    ----------
    curves
        One for each event.
    name, verdict
        Of the model: see :mod:`wellcal.displays`.
    level
        Share of calibrated models whose bins all lie in the band; of several events, one at a time.
    n_samples
        Number of cases.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn, after `plot`; the first axes where there are several, which are in `axes_`.

    Notes
    -----
    Bins hold equally many cases, as far as equal probabilities allow. The band is made of targets that are
    drawn from the predictions, in the same bins: exact at every number of cases.

    The smooth curve is the diagonal and a local mean of what is left of targets without their probabilities,
    so that it has no bias where the model is calibrated. The isotonic curve is the best one that never falls;
    it is drawn thin, for one model alone.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> display = ReliabilityDisplay.from_predictions(rng.random(500) < p, p, name="honest", rng=1)
    >>> display.ax_.get_ylabel()
    'how often it happened'
    >>> bool(display.curves[0].outside.any())
    False
    """

    curves: tuple[ReliabilityCurve, ...]
    name: str | None = None
    verdict: str | None = None
    level: float = LEVEL
    n_samples: int = 0
    axes_: Any = None

    @classmethod
    def from_predictions(
        cls,
        y: object,
        pred: object,
        *,
        reduce: str | None = None,
        label: Any = None,
        grade: Any = None,
        n_bins: int | None = None,
        level: float = LEVEL,
        n_resamples: int = 999,
        name: str | None = None,
        ax: Any = None,
        test: bool | None = None,
        result: Any = None,
        rng: int | np.random.Generator | None = None,
        **options: Any,
    ) -> ReliabilityDisplay:
        """Compute the curves from targets and predictions, and draw them.

        Parameters
        ----------
        y, pred
            Targets, and predictions of classes.
        reduce
            What counts as an event. "confidence": the most probable class was right; "classwise": each class,
            one after the other; "cumulative": the target is at or above grade k, for ordered grades. None
            takes the second of two classes, "cumulative" for classes with a support of numbers, and
            "confidence" for other classes.
        label, grade
            Instead: this class happened; the target is at or above this grade.
        n_bins
            Number of bins; None takes one for each 20 cases, from 3 to 15.
        level
            Share of calibrated models whose bins all lie in the band. With several events ("classwise",
            "cumulative") each has a band of its own, and it is the share for each of them: more calibrated
            models than the rest leave the band of some event.
        n_resamples
            Sets of targets that the band is made of, fewer beyond 200,000 cases.
        name, ax, test, result, rng
            As for all displays: see :mod:`wellcal.displays`.
        options
            For `plot`.
        """
        events: dict[str, Any] = {"reduce": reduce, "label": label, "grade": grade}
        given: dict[str, Any] = {"n_bins": n_bins, "level": level, "n_resamples": n_resamples, "name": name}
        found = cls.computed(y, pred, test=test, result=result, rng=rng, **events, **given)
        return found.plot(ax, **options)

    @classmethod
    def computed(
        cls,
        y: object,
        pred: object,
        *,
        reduce: str | None = None,
        label: Any = None,
        grade: Any = None,
        n_bins: int | None = None,
        level: float = LEVEL,
        n_resamples: int = 999,
        name: str | None = None,
        test: bool | None = None,
        result: Any = None,
        rng: int | np.random.Generator | None = None,
    ) -> ReliabilityDisplay:
        """The same as `from_predictions`, and not drawn yet."""
        generator = as_generator(rng)
        events = events_of(y, pred, reduce, label, grade)
        whole_number(n_resamples, "n_resamples", least=19)
        bins = None if n_bins is None else whole_number(n_bins, "n_bins", least=1)
        verdict = verdict_of(y, pred, test, result, rng)
        curves = tuple(_curve(event, bins, level, n_resamples, generator) for event in events)
        return cls(curves, name, verdict, level, len(events[0].hits))

    def plot(
        self, ax: Any = None, *, smooth: bool = True, isotonic: bool | None = None, counts: bool = True
    ) -> ReliabilityDisplay:
        """Draw the diagram.

        Parameters
        ----------
        ax
            matplotlib's axes, which may show other models already. None makes a new figure, with axes for
            each event where there are several; given axes show all of them, unless they are the first of
            such a figure: then each event is added where it is shown already.
        smooth, isotonic
            Whether to draw the curves, the isotonic one thin; a smooth one needs 50 cases. None draws the
            isotonic curve of a model that is alone on its axes: steps of several would hide each other.
        counts
            Whether to draw a histogram of what the model said under the diagram.
        """
        flag(isotonic, "isotonic", or_none=True)
        kinds = {"smooth": flag(smooth, "smooth"), "isotonic": isotonic}
        counts = flag(counts, "counts")
        events, grid = (None, None) if ax is None else Canvas(ax).shown.parts.get("grid", (None, None))
        if grid is not None and [curve.event for curve in self.curves] != events:
            raise ValueError("ax shows other events than these: draw them into a figure of their own")
        if grid is not None or (len(self.curves) > 1 and ax is None):
            self._multiples(kinds, counts, grid)
            return self
        with style():
            ax = axes_or_new(ax, TALL)
            canvas = Canvas(ax)
            for curve in self.curves:
                self._draw(canvas, curve, kinds, bands=len(self.curves) == 1)
            _square(ax)
            below = self._counts(canvas, self.curves) if counts else None
            lower = below or ax
            ax.set_ylabel("how often it happened", color=canvas.theme.ink)
            lower.set_xlabel("what the model said", color=canvas.theme.ink)
            ax.set_xlabel("what the model said" if below is None else "")
            canvas.say(self.name, self.statement)
            canvas.title()
            canvas.note(self._small_print(canvas), below)
            canvas.name_models()
        self._drawn(ax)
        self.axes_ = np.array([ax])
        return self

    @property
    def reach(self) -> float:
        """How far the farthest bin lies from the middle of the band, in half of its width."""
        return max(curve.reach for curve in self.curves)

    @property
    def finding(self) -> str:
        """How many bins are outside of the band, in a sentence."""
        each = "event" if len(self.curves) > 1 else ""
        return bins_outside(np.concatenate([curve.outside for curve in self.curves]), "bins", each=each)

    # -- drawing -------------------------------------------------------------------------------

    def _draw(
        self,
        canvas: Canvas,
        curve: ReliabilityCurve,
        kinds: dict[str, bool | None],
        *,
        bands: bool,
        labelled: bool = True,
        named: bool = True,
    ) -> None:
        ax, look = canvas.ax, canvas.look
        canvas.ideal([0.0, 1.0], [0.0, 1.0])
        if bands:
            canvas.band(curve.predicted, curve.low, curve.high)
            if labelled and canvas.first:
                _label_band(canvas, curve, self.level)
        few = self.n_samples < _FEW  # a smooth curve would follow single cases
        by_default = kinds["isotonic"] is None
        if not canvas.first:
            for line in canvas.shown.parts.pop("isotonic", []):
                line.remove()
        chosen = {**kinds, "isotonic": (canvas.first and bands) if by_default else kinds["isotonic"]}
        lines = [key for key, wanted in chosen.items() if wanted and not (few and key == "smooth")]
        drawn = curve.predicted, curve.observed
        for key in reversed(lines):  # the smooth one is the one to look at
            x, y = getattr(curve, key)
            # Beyond the outermost bins it would follow a few cases.
            between = (x >= curve.predicted[0]) & (x <= curve.predicted[-1])
            drawn = x[between], y[between]
            thin = key == "isotonic" and len(lines) > 1
            shape = {"linewidth": 0.8, "alpha": _THIN} if thin else {"linewidth": 1.6}
            (line,) = ax.plot(*drawn, **({**look.line, "linestyle": "-"} if thin else look.line), **shape)
            if key == "isotonic" and by_default:
                canvas.shown.parts["isotonic"] = [line]
        joined = {} if lines else {"linestyle": look.dash}
        (handle,) = ax.plot(
            curve.predicted, curve.observed, **{**look.points, **joined}, zorder=3, clip_on=False
        )
        if not bands:  # several events: what is outside of its band is filled
            handle.set_markerfacecolor(canvas.theme.paper)
            out = curve.outside
            if out.any():  # a line without points would claim room at the corner of the figure
                ax.plot(curve.predicted[out], curve.observed[out], **look.points, zorder=3.1, clip_on=False)
        (shown,) = ax.plot([], [], color=look.colour, linestyle=look.dash, marker=look.marker)
        event = curve.event if named and len(self.curves) > 1 else None
        name = ": ".join(word for word in (self.name, event) if word) or None
        canvas.add(name, shown, drawn, (curve.predicted, curve.observed))

    def _counts(self, canvas: Canvas, curves: tuple[ReliabilityCurve, ...]) -> Any:
        parts, ax = canvas.shown.parts, canvas.ax
        below = parts.get("counts")
        if below is None:
            below = parts["counts"] = _below(ax)
            ax.tick_params(labelbottom=False)
            Canvas(below)
            below.set(xlim=ax.get_xlim(), xticks=ax.get_xticks())
            below.set_ylabel("cases", color=canvas.theme.ink)
        shown = len(canvas.shown.names)
        edges = np.linspace(0.0, 1.0, _CELLS + 1)
        for index, curve in zip(range(shown - len(curves), shown), curves, strict=True):
            look, heights = canvas.look_of(index), np.where(curve.histogram > 0, curve.histogram, np.nan)
            filled = shown == 1
            below.stairs(
                heights,
                edges,
                fill=filled,
                color=look.colour,
                alpha=0.6 if filled else 1.0,
                linestyle="-" if filled else look.dash,
            )
        most = max([parts.get("most", 0), *(int(curve.histogram.max()) for curve in curves)])
        parts["most"] = most
        below.set(ylim=(0.0, 1.08 * most), yticks=[0, most], yticklabels=["0", f"{most:,}"])
        return below

    def _multiples(self, kinds: dict[str, bool | None], counts: bool, grid: Any = None) -> None:
        """Axes for each event, new ones or those that show other models of the same events."""
        number = len(self.curves)
        columns = min(number, 3 if number in (3, 5, 6, 9) else _COLUMNS)
        rows = -(-number // columns)
        with style() as pyplot:
            axes: Any = grid
            if grid is None:
                size = (max(4.6, 2.3 * columns), (2.9 if counts else 2.45) * rows + 0.7)
                shape: dict[str, Any] = {"figsize": size, "layout": "constrained", "squeeze": False}
                _, axes = pyplot.subplots(rows, columns, sharex=True, sharey=True, **shape)
            names = cut_apart([curve.event for curve in self.curves], _LETTERS)
            for ax, curve, name in zip(axes.flat, self.curves, names, strict=False):
                canvas = Canvas(ax)
                self._draw(canvas, curve, kinds, bands=True, labelled=False, named=False)
                _square(ax)
                if grid is None:
                    ax.set_title(name, fontsize=9.0)
                    ax.tick_params(labelbottom=True)
                if counts:
                    self._counts(canvas, (curve,)).set_ylabel("")
            for ax in axes.flat[number:]:
                ax.set_axis_off()
            canvas = Canvas(axes[0, 0])
            canvas.shown.parts["grid"] = [curve.event for curve in self.curves], axes
            canvas.say(self.name, self.statement)
            self._words_around(canvas)
        self._drawn(axes[0, 0])
        self.axes_ = axes

    def _words_around(self, canvas: Canvas) -> None:
        """Title, axes in words, and names of models where there are several, for small multiples."""
        figure, theme, said = canvas.ax.figure, canvas.theme, canvas.shown.said
        width = 72.0 * float(figure.get_size_inches()[0]) - 20.0
        told = [said[0][1]] if len(said) == 1 else [f"{name}: {short(words)}" for name, words in said]
        title = "\n".join(line for words in told for line in wrapped_lines(words, width, 10.0))
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.0, color=theme.ink).set_gid(TITLE)
        band = f"grey: {self.level:.0%} of calibrated models, one event at a time"
        below = f"what the model said\n({how_many(self.n_samples)}; {band})"
        figure.supxlabel(below, fontsize=10.0, color=theme.ink)
        figure.supylabel("how often it happened", fontsize=10.0, color=theme.ink)
        if len(said) > 1:
            names = cut_apart(canvas.shown.names, _LETTERS)
            where = "lower right" if _above(self.curves[:1]) else "upper left"
            legend = canvas.ax.legend(
                canvas.shown.handles, names, loc=where, frameon=False, fontsize=SMALL, borderaxespad=0.0
            )
            for text in legend.get_texts():
                text.set_color(theme.ink)

    def _small_print(self, canvas: Canvas) -> str:
        several = len(self.curves) > 1
        model = f"{self.name}: " if self.name and len(canvas.shown.names) == 1 else ""
        what = "" if several else f"{self.curves[0].event}; "
        band = f"filled: outside of the {self.level:.0%} band of its event; " if several else ""
        if "isotonic" in canvas.shown.parts and self.n_samples >= _FEW:
            band = "thick: smooth, thin: isotonic; "
        return (
            f"{model}{what}{band}{how_many(self.n_samples)} in bins of equal counts; band of targets drawn "
            "from the predictions."
        )


def _below(ax: Any) -> Any:
    """Axes for counts under others; under those of a user they are so many inches high, and stay it.

    A layout asks once how far things reach beyond the axes, and then changes these.
    """
    if ax.figure in OWN_HEIGHTS or root_of(ax).get_layout_engine() is not None:
        return ax.inset_axes([0.0, -0.2, 1.0, 0.13])
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    inches = root_of(ax).dpi_scale_trans + ScaledTranslation(0.0, 0.0, ax.transAxes)
    bounds = [0.0, -_GAP - _HIGH, 1.0, _HIGH]
    return ax.inset_axes(bounds, transform=blended_transform_factory(ax.transAxes, inches))


def _square(ax: Any) -> None:
    ticks = np.linspace(0.0, 1.0, 6)
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), xticks=ticks, yticks=ticks, aspect="equal")


def _above(curves: tuple[ReliabilityCurve, ...]) -> bool:
    """Whether frequencies are mostly above probabilities, so that there is room below."""
    return sum(float(np.sum((c.observed - c.predicted) * c.counts)) for c in curves) > 0


def _label_band(canvas: Canvas, curve: ReliabilityCurve, level: float) -> None:
    """In the corner that the curve leaves empty, with a line to the band."""
    above = _above((curve,))
    text = f"{level:.0%} of calibrated\nmodels stay in here"
    place = int(np.argmin(np.abs(curve.predicted - (0.7 if above else 0.3))))
    x, edge = float(curve.predicted[place]), float((curve.low if above else curve.high)[place])
    to = (0.97, 0.17) if above else (0.03, 0.83)
    canvas.label(text, (x, edge), to, ha="right" if above else "left", linespacing=1.1)


# -- data --------------------------------------------------------------------------------------------


def _curve(
    event: Event, n_bins: int | None, level: float, n_resamples: int, rng: np.random.Generator
) -> ReliabilityCurve:
    p, hits = event.probs, event.hits
    bins = int(np.clip(len(p) // 20, 3, 15)) if n_bins is None else n_bins
    predicted, observed, counts, low, high = binned_curve(hits, p, bins, level, n_resamples, rng)
    return ReliabilityCurve(
        event.words,
        predicted,
        observed,
        counts,
        low,
        high,
        smooth_curve(hits, p),
        isotonic_curve(hits, p),
        cell_counts(np.clip(p, 0.0, 1.0), _CELLS),
    )
