"""Where outcomes fall within their predictions: histogram of the PIT, and how far it is from uniform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.checks import one_of, whole_number
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.seeds import as_generator
from wellcal.displays._curves import cell_counts
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.axes import SQUARE, Canvas
from wellcal.displays.base import (
    LEVEL,
    TIE,
    Display,
    band_below,
    bins_outside,
    curve_outside,
    floor_of,
    reach_of,
    shares_below,
    verdict_of,
)
from wellcal.displays.percentages import signed_percent
from wellcal.predictions import Samples
from wellcal.predictions.base import check_inputs

KINDS = ("histogram", "ecdf")
QUESTION = "Do outcomes fall everywhere in their predictions as often as promised?"
_SPREAD = {"prediction": "probability integral transform", "draws": "ranks among draws"}
PLACES = 100  # of the distribution function
_RESAMPLES = 1999
_FEWEST_BARS = 5  # that show a trough; fewer only where there are fewer ranks


@dataclass(repr=False)
class PITDisplay(Display):
    """Where outcomes fall within their predictions, from the lowest they allow to the highest.

    Parameters
    ----------
    values
        Shares of the predictions that lie below the outcomes, ``(n,)``: :func:`wellcal.pit`.
    kind
        "histogram": how many outcomes fall into each part of their predictions; "ecdf": by how much more, or
        fewer, lie below each share than promised.
    n_bins
        Number of bars.
    name, verdict
        Of the model: see :mod:`wellcal.displays`.
    level
        Share of calibrated models whose whole curve, or all of whose bars, lie in the band.
    what
        What the values are, in words: "prediction", or "draws" for ranks among them.
    seed
        Of the band of the histogram.
    ranks
        How many ranks there are among draws, and None for other predictions: bars hold equally many.

    Notes
    -----
    Histograms of several models on the same axes have one number of bars, the smallest that any of them would
    have alone, or fewer where ranks among draws are then counted exactly: one band is that of all models.

    Counts and classes spread an outcome over the share that its prediction gives to it, and draws are ranked
    with the outcome among them. All are then uniform for a calibrated model, so that both bands are exact:
    the histogram's by drawing from it, the other one's by computing the probability of whole paths.

    A hump means that predictions are too wide, a trough that they are too narrow, a slope that they are too
    high or too low.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> y = np.random.default_rng(0).normal(size=400)
    >>> display = PITDisplay.from_predictions(y, wc.Normal(np.zeros(400), 0.5))
    >>> heights, low, high = display.heights()
    >>> bool(heights[0] > high[0]), bool(heights[-1] > high[-1])
    (True, True)
    """

    values: NDArray
    kind: str = "histogram"
    n_bins: int = 10
    name: str | None = None
    verdict: str | None = None
    level: float = LEVEL
    what: str = "prediction"
    seed: int = 0
    ranks: int | None = None

    @classmethod
    def from_predictions(
        cls,
        y: object,
        pred: object,
        *,
        kind: str = "histogram",
        n_bins: int | None = None,
        level: float = LEVEL,
        name: str | None = None,
        ax: Any = None,
        test: bool | None = None,
        result: Any = None,
        rng: int | np.random.Generator | None = None,
        **options: Any,
    ) -> PITDisplay:
        """Compute the values from targets and predictions, and draw them.

        Parameters
        ----------
        y, pred
            Targets, and predictions of numbers, counts, samples or classes in an order.
        kind
            "histogram" or "ecdf".
        n_bins
            Number of bars; None takes one for each 20 cases, from 4 to 20, and a number that divides the
            number of ranks where predictions are draws.
        level
            Share of calibrated models that stay in the band.
        name, ax, test, result, rng
            As for all displays: see :mod:`wellcal.displays`.
        options
            For `plot`.
        """
        given: dict[str, Any] = {"kind": kind, "n_bins": n_bins, "level": level, "name": name}
        return cls.computed(y, pred, test=test, result=result, rng=rng, **given).plot(ax, **options)

    @classmethod
    def computed(
        cls,
        y: object,
        pred: object,
        *,
        kind: str = "histogram",
        n_bins: int | None = None,
        level: float = LEVEL,
        name: str | None = None,
        test: bool | None = None,
        result: Any = None,
        rng: int | np.random.Generator | None = None,
    ) -> PITDisplay:
        """The same as `from_predictions`, and not drawn yet."""
        one_of(kind, "kind", KINDS)
        generator = as_generator(rng)
        _, predictions = check_inputs(y, pred)
        values = shares_below(y, pred, None if rng is None else generator)
        ranks: int | None = None
        if isinstance(predictions, Samples) and predictions.kind == "draws":
            ranks = int(predictions.values.shape[1]) + 1
        wanted = int(np.clip(len(values) // 20, 4, 20))
        bins = _bins(wanted, ranks) if n_bins is None else whole_number(n_bins, "n_bins", least=2)
        verdict = verdict_of(y, pred, test, result, rng)
        what = "prediction" if ranks is None else "draws"
        seed = int(generator.integers(2**31))
        return cls(values, kind, bins, name, verdict, level, what, seed, ranks)

    # -- data ----------------------------------------------------------------------------------

    def heights(self, n_bins: int | None = None) -> tuple[NDArray, NDArray, NDArray]:
        """Bars relative to what is promised, and the band of a calibrated model, each ``(n_bins,)``."""
        n, bins = len(self.values), self.n_bins if n_bins is None else n_bins
        counts = cell_counts(self.values, bins)
        rng = np.random.default_rng(self.seed)
        draws = rng.multinomial(n, np.full(bins, 1.0 / bins), size=_RESAMPLES)
        # All bars are alike: what holds for the lowest and the highest of each set holds for all of them.
        low, high = floor_of(np.stack([draws.min(axis=1), -draws.max(axis=1)], axis=1), self.level)
        return counts * bins / n, np.full(bins, low * bins / n), np.full(bins, -high * bins / n)

    def differences(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Shares, how many more outcomes lie below them than promised, and the band, ``(101,)`` each."""
        n = len(self.values)
        shares = np.linspace(0.0, 1.0, PLACES + 1)
        found = np.searchsorted(np.sort(self.values), shares, side="right") / n
        low, high = band_below(shares, n, self.level)
        return shares, found - shares, low - shares, high - shares

    # -- drawing -------------------------------------------------------------------------------

    def plot(self, ax: Any = None, *, kind: str | None = None) -> PITDisplay:
        """Draw it on given axes, which may show other models already, or on new ones; `kind` as above."""
        kind = one_of(self.kind if kind is None else kind, "kind", KINDS)
        with style():
            ax = axes_or_new(ax, SQUARE)
            canvas = Canvas(ax)
            together: list[PITDisplay] = canvas.shown.parts.setdefault("displays", [])
            together.append(self)
            bars = common_bars(together)
            (handle,) = ax.plot([], [], **canvas.look.line)
            canvas.add(self.name, handle, self._ecdf(canvas) if kind == "ecdf" else None)
            canvas.say(self.name, self.statement if self.verdict else self._seen(kind))
            if kind == "histogram":
                _draw_histograms(canvas, together, bars)
            shown = {one.what for one in together}
            among = "its draws" if shown == {"draws"} else "its prediction"
            ax.set_xlabel(f"where the outcome fell in {among}  (low to high)", color=canvas.theme.ink)
            ax.set(xlim=(0.0, 1.0), xticks=np.linspace(0.0, 1.0, 5), box_aspect=1.0)
            canvas.title()
            name = f"{self.name}: " if self.name and len(canvas.shown.names) == 1 else ""
            how = {"histogram": f"{bars} bars", "ecdf": "distribution function less the ideal one"}[kind]
            spread = " or ".join(words for what, words in _SPREAD.items() if what in shown)
            counts = sorted({len(one.values) for one in together})
            cases = " or ".join([*(f"{count:,}" for count in counts[:-1]), how_many(counts[-1])])
            canvas.note(f"{name}{cases}; {spread}, {how}.")
            canvas.name_models()
        self._drawn(ax)
        return self

    @property
    def reach(self) -> float:
        """How far the curve, or the farthest bar, lies from uniform, in half widths of the band."""
        return reach_of(*(self.heights() if self.kind == "histogram" else self.differences()[1:]))

    @property
    def finding(self) -> str:
        """How many bars are outside of the band, or whether the curve leaves it, in a sentence."""
        return self._seen(self.kind)

    def _seen(self, kind: str) -> str:
        if kind == "histogram":
            return _bars_outside(*self.heights())
        _, found, low, high = self.differences()
        return curve_outside((found < low - TIE) | (found > high + TIE))

    def _ecdf(self, canvas: Canvas) -> tuple[NDArray, NDArray]:
        shares, found, low, high = self.differences()
        canvas.band(shares, low, high)
        canvas.ideal([0.0, 1.0], [0.0, 0.0])
        canvas.ax.plot(shares, found, **canvas.look.line, linewidth=1.8, zorder=2.5)
        difference_axis(canvas, found, (low, high), self.level)
        return shares, found


def common_bars(displays: Sequence[PITDisplay]) -> int:
    """Number of bars of histograms on the same axes: one that suits all of them.

    Bars of one model beside narrower ones of another, each in its own band, would hide in the wider band.

    Examples
    --------
    >>> def of(n_bins, ranks=None):
    ...     return PITDisplay(np.array([0.5]), n_bins=n_bins, ranks=ranks)
    >>> common_bars([of(20), of(7, ranks=21)]), common_bars([of(20), of(20, ranks=100), of(10, ranks=10)])
    (7, 10)
    >>> common_bars([of(12), of(12, ranks=21)]), common_bars([of(20, ranks=100), of(6, ranks=6)])
    (12, 6)
    """
    wanted = {one.n_bins for one in displays}
    least = min(wanted)
    if len(wanted) == 1:  # also where that was asked for
        return least
    ranks = [one.ranks for one in displays if one.ranks is not None]
    shared = math.gcd(*ranks)  # 0 without any
    fewest = min([_FEWEST_BARS, *ranks])
    return max((bars for bars in range(fewest, least + 1) if shared % bars == 0), default=least)


def _draw_histograms(canvas: Canvas, displays: Sequence[PITDisplay], bars: int) -> None:
    """Histograms of all models that the axes show, anew: the next one may need fewer bars."""
    shown, ax = canvas.shown, canvas.ax
    for artist in shown.parts.pop("drawn", []):
        artist.remove()
    edges = np.linspace(0.0, 1.0, bars + 1)
    bands: dict[tuple[int, float], tuple[NDArray, NDArray]] = {}
    tallest, highest, drawn = np.zeros(bars), np.zeros(bars), shown.parts.setdefault("drawn", [])
    for place, one in enumerate(displays):
        heights, *ends = one.heights(bars)
        key = len(one.values), one.level
        if key not in bands:  # one for all models with as many cases
            low, high = bands[key] = ends[0], ends[1]
            drawn.append(canvas.band(edges, np.append(low, low[-1]), np.append(high, high[-1]), step="post"))
        low, high = bands[key]
        if not one.verdict:
            shown.said[place] = shown.said[place][0], _bars_outside(heights, low, high)
        look = canvas.look_of(place)
        if place == 0:
            drawn.append(ax.stairs(heights, edges, fill=True, color=look.colour, alpha=0.16, zorder=1.5))
        drawn.append(ax.stairs(heights, edges, baseline=None, **look.line, linewidth=1.6, zorder=2.5))
        shown.curves[place] = np.stack([np.repeat(edges, 2)[1:-1], np.repeat(heights, 2)], axis=1)
        tallest, highest = np.maximum(tallest, heights), np.maximum(highest, high)
    canvas.ideal([0.0, 1.0], [1.0, 1.0])
    top = 1.22 * float(max(tallest.max(), highest.max()))  # with room for the label of the band
    ax.set_ylim(0.0, top)
    ax.set_ylabel("how often, where 1 is what was promised", color=canvas.theme.ink)
    quiet = int(np.argmin(tallest - highest))
    middle = (edges[quiet] + edges[quiet + 1]) / 2.0
    _label(canvas, middle, float(highest[quiet]), 0.955 * top, displays[-1].level)


def _bars_outside(heights: NDArray, low: NDArray, high: NDArray) -> str:
    return bins_outside((heights < low - TIE) | (heights > high + TIE), "bars")


def difference_axis(canvas: Canvas, found: NDArray, band: tuple[NDArray, NDArray], level: float) -> None:
    """The axes of differences from the ideal, wide enough for curves and band, which is labelled."""
    ax, (low, high) = canvas.ax, band
    reach = 1.35 * float(max(np.abs(found).max(), high.max(), -low.min()))
    reach = canvas.shown.parts["reach"] = max(canvas.shown.parts.get("reach", 0.0), reach)
    ax.set(xlim=(0.0, 1.0), ylim=(-reach, reach), xticks=np.linspace(0.0, 1.0, 5), box_aspect=1.0)
    ax.yaxis.set_major_formatter(signed_percent)
    ax.set_ylabel("how many more lie below than promised", color=canvas.theme.ink)
    places = found.shape[-1]
    above = found[..., places // 4 : -places // 4].mean() > 0
    edge = float((low if above else high)[places // 2])
    _label(canvas, 0.5, edge, -0.93 * reach if above else 0.93 * reach, level)


def _label(canvas: Canvas, x: float, edge: float, y: float, level: float) -> None:
    place = "left" if x < 0.3 else "right" if x > 0.7 else "center"
    canvas.label(f"{level:.0%} of calibrated models stay in here", (x, edge), (x, y), ha=place)


def _bins(wanted: int, ranks: int | None) -> int:
    """About as many bars as wanted, each of equally many ranks where that is possible.

    Examples
    --------
    >>> _bins(20, None), _bins(20, 101), _bins(20, 100), _bins(20, 6), _bins(10, 21)
    (20, 20, 20, 6, 7)
    """
    if ranks is None:
        return wanted
    fitting = [bins for bins in range(2, wanted + 1) if ranks % bins == 0]
    return fitting[-1] if fitting and fitting[-1] >= min(_FEWEST_BARS, ranks) else wanted
