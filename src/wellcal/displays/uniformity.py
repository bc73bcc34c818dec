"""Where outcomes fall within their predictions: histogram of the PIT, and how far it is from uniform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.checks import one_of, whole_number
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.seeds import as_generator
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

    Notes
    -----
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
        return cls(values, kind, bins, name, verdict, level, what, seed)

    # -- data ----------------------------------------------------------------------------------

    def heights(self) -> tuple[NDArray, NDArray, NDArray]:
        """Bars relative to what is promised, and the band of a calibrated model, each ``(n_bins,)``."""
        n, bins = len(self.values), self.n_bins
        counts = np.histogram(self.values, bins=bins, range=(0.0, 1.0))[0]
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
            handle, curve = self._histogram(canvas) if kind == "histogram" else self._ecdf(canvas)
            canvas.add(self.name, handle, curve)
            canvas.say(self.name, self.statement if self.verdict else self._seen(kind))
            shown: set[str] = canvas.shown.parts.setdefault("what", set())
            shown.add(self.what)
            among = "its draws" if shown == {"draws"} else "its prediction"
            ax.set_xlabel(f"where the outcome fell in {among}  (low to high)", color=canvas.theme.ink)
            ax.set(xlim=(0.0, 1.0), xticks=np.linspace(0.0, 1.0, 5), box_aspect=1.0)
            canvas.title()
            name = f"{self.name}: " if self.name and len(canvas.shown.names) == 1 else ""
            how = {"histogram": f"{self.n_bins} bars", "ecdf": "distribution function less the ideal one"}[
                kind
            ]
            spread = " or ".join(words for what, words in _SPREAD.items() if what in shown)
            canvas.note(f"{name}{how_many(len(self.values))}; {spread}, {how}.")
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
            heights, low, high = self.heights()
            return bins_outside((heights < low - TIE) | (heights > high + TIE), "bars")
        _, found, low, high = self.differences()
        return curve_outside((found < low - TIE) | (found > high + TIE))

    def _histogram(self, canvas: Canvas) -> tuple[Any, Any]:
        heights, low, high = self.heights()
        edges, ax, look = np.linspace(0.0, 1.0, self.n_bins + 1), canvas.ax, canvas.look
        first = canvas.first
        canvas.band(edges, np.append(low, low[-1]), np.append(high, high[-1]), step="post")
        canvas.ideal([0.0, 1.0], [1.0, 1.0])
        if first:
            ax.stairs(heights, edges, fill=True, color=look.colour, alpha=0.16, zorder=1.5)
        shape: dict[str, Any] = {
            "color": look.colour,
            "linestyle": look.dash,
            "linewidth": 1.6,
            "zorder": 2.5,
        }
        ax.stairs(heights, edges, baseline=None, **shape)
        room = 1.22 * float(max(heights.max(), high.max()))  # for the label of the band
        top = max(canvas.shown.parts.get("top", 0.0), room)
        canvas.shown.parts["top"] = top
        ax.set_ylim(0.0, top)
        ax.set_ylabel("how often, where 1 is what was promised", color=canvas.theme.ink)
        quiet = int(np.argmin(heights - high))
        _label(canvas, (edges[quiet] + edges[quiet + 1]) / 2.0, float(high[quiet]), 0.955 * top, self.level)
        (handle,) = ax.plot([], [], **look.line)
        return handle, (np.repeat(edges, 2)[1:-1], np.repeat(heights, 2))

    def _ecdf(self, canvas: Canvas) -> tuple[Any, Any]:
        shares, found, low, high = self.differences()
        ax, look = canvas.ax, canvas.look
        canvas.band(shares, low, high)
        canvas.ideal([0.0, 1.0], [0.0, 0.0])
        (handle,) = ax.plot(shares, found, **look.line, linewidth=1.8, zorder=2.5)
        difference_axis(canvas, found, (low, high), self.level)
        return handle, (shares, found)


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
    return fitting[-1] if fitting and fitting[-1] >= min(5, ranks) else wanted
