"""Residuals in units of the predicted spread, against what was predicted."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.checks import one_of, probability, whole_number
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.seeds import as_generator
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.against import AGAINST, described, either
from wellcal.displays.axes import WIDE, Canvas
from wellcal.displays.base import LEVEL, Display, bins_outside, reach_of, shares_below, verdict_of
from wellcal.measures.binned.binning import EqualMassBins
from wellcal.predictions.base import check_inputs

SHARES = (0.1, 0.5, 0.9)
"""Of residuals that lie below the three lines."""

QUESTIONS = {
    "spread": "Are the predicted spreads right for every kind of case?",
    "mean": "Are predictions right wherever they lie?",
}
"""What is asked, by what residuals are drawn against."""
_FARTHEST = 4.0  # residuals beyond are drawn at the edge
_MOST_POINTS = 4000
_FEWEST_BINS, _MOST_BINS = 2, 10
_GAP = 0.1  # between bands, in standard deviations
_AROUND = 0.02  # of a number that all predictions share, to which its band is widened


@dataclass(repr=False)
class ResidualDisplay(Display):
    """Residuals in units of the predicted spread, against the predicted spread or mean.

    Parameters
    ----------
    predicted
        Predicted spreads (standard deviations), or means, ``(n,)``; see the notes for those of draws, and for
        predictions without finite moments.
    residuals
        Normal quantiles of the PIT, ``(n,)``: for normals ``(y - mean) / spread``.
    against
        "spread" or "mean".
    n_bins
        Number of bins of equal counts that the lines go through.
    name, verdict
        Of the model: see :mod:`wellcal.displays`.
    level
        Share of calibrated models whose three lines all lie in their bands.
    words
        What `predicted` are, for the axis; None says "predicted spread" or "predicted mean".

    Notes
    -----
    A tenth of the residuals of a calibrated model lies below -1.28, half below 0, nine tenths below 1.28,
    whatever was predicted. The lines are these quantiles of the residuals in each bin, and the bands where an
    order statistic of as many normals lies, exact, at all bins and lines at once (Bonferroni). Residuals of
    counts are randomised.

    Draws (``Samples(kind="draws")``) are binned by the spread, or mean, of the S draws and the outcome
    together. Under calibration the outcome is any of these S + 1 numbers, so that its rank is uniform in each
    bin. In bins by the draws alone it is not: where few draws happen to lie close together, outcomes of a
    calibrated model are outside of them more often than not.

    Where the variance, or mean, of some prediction is not finite, or not known, spreads of all are distances
    between quartiles, divided by 1.349, which is the standard deviation of a normal, and means are medians.
    `Quantiles` have the distance of the outer ones, and the one in the middle.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> sd = rng.uniform(0.5, 2.0, 300)
    >>> display = ResidualDisplay.from_predictions(rng.normal(0.0, sd), wc.Normal(np.zeros(300), sd))
    >>> x, lines, low, high = display.lines()
    >>> lines.shape, bool(np.all((lines >= low) & (lines <= high)))
    ((3, 5), True)
    """

    predicted: NDArray
    residuals: NDArray
    against: str = "spread"
    n_bins: int = 10
    name: str | None = None
    verdict: str | None = None
    level: float = LEVEL
    words: str | None = None

    @classmethod
    def from_predictions(
        cls,
        y: object,
        pred: object,
        *,
        against: str = "spread",
        n_bins: int | None = None,
        level: float = LEVEL,
        name: str | None = None,
        ax: Any = None,
        test: bool | None = None,
        result: Any = None,
        rng: int | np.random.Generator | None = None,
    ) -> ResidualDisplay:
        """Compute residuals from targets and predictions, and draw them.

        Parameters
        ----------
        y, pred
            Targets, and predictions of numbers, counts or samples.
        against
            "spread": the predicted standard deviation; "mean": the predicted mean. Where all spreads are
            equal the mean is taken. Models on the same axes must be drawn against the same.
        n_bins
            Number of bins; None takes as many, from 2 to 10, as leave the three bands apart.
        level
            Share of calibrated models whose lines all lie in their bands.
        name, ax, test, result, rng
            As for all displays: see :mod:`wellcal.displays`.
        """
        given: dict[str, Any] = {"against": against, "n_bins": n_bins, "level": level, "name": name}
        return cls.computed(y, pred, test=test, result=result, rng=rng, **given).plot(ax)

    @classmethod
    def computed(
        cls,
        y: object,
        pred: object,
        *,
        against: str = "spread",
        n_bins: int | None = None,
        level: float = LEVEL,
        name: str | None = None,
        test: bool | None = None,
        result: Any = None,
        rng: int | np.random.Generator | None = None,
    ) -> ResidualDisplay:
        """The same as `from_predictions`, and not drawn yet."""
        one_of(against, "against", AGAINST)
        generator = as_generator(rng)
        targets, predictions = check_inputs(y, pred)
        values = shares_below(y, pred, None if rng is None else generator)
        residuals = np.asarray(special.ndtri(values))
        shown = described(predictions, against, targets)
        if against == "spread" and not shown.differ:
            against, shown = "mean", described(predictions, "mean", targets)
        usual = _bins(len(values), probability(level, "level"))
        bins = usual if n_bins is None else whole_number(n_bins, "n_bins", least=1)
        verdict = verdict_of(y, pred, test, result, rng)
        return cls(shown.values, residuals, against, bins, name, verdict, level, shown.words)

    def lines(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Mean prediction of each bin, ``(B,)``, and three lines with their bands, ``(3, B)``."""
        cells = EqualMassBins(self.n_bins).cells(self.predicted[:, None])
        means = {cell: float(self.predicted[cells == cell].mean()) for cell in np.unique(cells).tolist()}
        order = sorted(means, key=lambda cell: means[cell])
        alpha = (1.0 - probability(self.level, "level")) / (len(SHARES) * len(order))
        found: list[list[tuple[float, float, float]]] = []
        for cell in order:
            inside = np.sort(self.residuals[cells == cell])
            found.append([_quantile(inside, share, alpha) for share in SHARES])
        lines, low, high = np.moveaxis(np.array(found), 2, 0)
        return np.array([means[cell] for cell in order]), lines.T, low.T, high.T

    @property
    def reach(self) -> float:
        """How far the farthest quantile of residuals lies from its middle, in half widths of its band."""
        return reach_of(*self.lines()[1:])

    @property
    def finding(self) -> str:
        """How many of the quantiles of residuals are outside of their bands, in a sentence."""
        _, lines, low, high = self.lines()
        return bins_outside((lines < low) | (lines > high), "quantiles of residuals")

    def plot(self, ax: Any = None) -> ResidualDisplay:
        """Draw it on given axes, which may show other models already, or on new ones."""
        with style():
            ax = axes_or_new(ax, WIDE)
            canvas = Canvas(ax)
            across = self._across(canvas)
            first, look, n = canvas.first, canvas.look, len(self.residuals)
            shown = np.random.default_rng(0).permutation(n)[:_MOST_POINTS]
            heights = np.clip(self.residuals[shown], -_FARTHEST, _FARTHEST)
            faint = float(np.clip(150.0 / len(shown), 0.15, 0.7))
            ax.scatter(
                self.predicted[shown],
                heights,
                s=9.0,
                color=look.colour,
                alpha=faint,
                linewidth=0.0,
                zorder=1.6,
            )
            x, lines, low, high = self.lines()
            dots = (
                np.concatenate([self.predicted[shown], x, x]),
                np.concatenate([heights, lines[0], lines[1]]),
            )
            handle: Any = None
            around = 0.5 * float(np.ptp(self.predicted)) or _AROUND * (abs(float(x[0])) or 1.0)
            for share, line, least, most in zip(SHARES, lines, low, high, strict=True):
                ideal = float(special.ndtri(share))
                if first:
                    ax.axhline(ideal, color=canvas.theme.ideal, linewidth=0.8, zorder=1.2)
                # One shade, where bands of several models lie over each other.
                ends = np.clip([least, most], -_FARTHEST, _FARTHEST)
                canvas.band(x, *ends, around=around, alpha=1.0)
                shape: dict[str, Any] = {
                    "linestyle": look.dash,
                    "markersize": 4.0,
                    "clip_on": False,
                    "zorder": 3,
                }
                (handle,) = ax.plot(
                    x, np.clip(line, -_FARTHEST, _FARTHEST), color=look.colour, marker=look.marker, **shape
                )
                if first:
                    words = {0.1: "10% below", 0.5: "half below", 0.9: "90% below"}[share]
                    ax.annotate(
                        words,
                        (1.0, ideal),
                        xycoords=("axes fraction", "data"),
                        xytext=(4.0, 0.0),
                        textcoords="offset points",
                        va="center",
                        fontsize=8.0,
                        color=canvas.theme.quiet,
                        annotation_clip=False,
                    )
            canvas.add(self.name, handle, (x, np.clip(lines[-1], -_FARTHEST, _FARTHEST)), dots)
            canvas.say(self.name, self.statement)
            ax.set_ylim(-1.05 * _FARTHEST, 1.05 * _FARTHEST)
            ax.set_ylabel("residual, in predicted spreads", color=canvas.theme.ink)
            ax.set_xlabel(across, color=canvas.theme.ink)
            canvas.title()
            named = f"{self.name}: " if self.name and len(canvas.shown.names) == 1 else ""
            drawn = "" if n <= _MOST_POINTS else f", {_MOST_POINTS:,} of them drawn"
            beyond = int(np.sum(np.abs(self.residuals) > _FARTHEST))
            edge = (
                f"; {how_many(beyond, 'residual')} beyond {_FARTHEST:g} drawn at the edge" if beyond else ""
            )
            canvas.note(
                f"{named}{how_many(n)}{drawn}; lines: quantiles of residuals in bins of equal counts; "
                f"{self.level:.0%} of calibrated models stay in all the grey bands{edge}."
            )
            canvas.name_models()
        self._drawn(ax)
        return self

    def _across(self, canvas: Canvas) -> str:
        """Words for the axis; an error where it shows something else already."""
        known, said = canvas.shown.parts.setdefault("against", (self.against, []))
        if known != self.against:
            raise ValueError(
                f"ax shows residuals against the predicted {known}, and these are against the predicted "
                f'{self.against}; draw all models with against="mean"'
            )
        said.append(self.words or f"predicted {self.against}")
        return either(said)


def _quantile(ordered: NDArray, share: float, alpha: float) -> tuple[float, float, float]:
    """The order statistic nearest to a share, and where that of as many normals lies but for `alpha`."""
    rank, low, high = _bounds(len(ordered), share, alpha)
    return float(ordered[rank - 1]), low, high


def _bounds(n: int, share: float, alpha: float) -> tuple[int, float, float]:
    """Rank of the order statistic nearest to a share, and where that of n normals lies but for `alpha`."""
    k = int(np.clip(round(share * (n + 1)), 1, n))
    of_beta = (special.betaincinv, special.betainccinv)  # of the k-th of n uniforms
    low, high = (float(special.ndtri(f(k, n + 1 - k, 0.5 * alpha))) for f in of_beta)
    return k, low, high


def _bins(n: int, level: float) -> int:
    """As many bins as leave the bands of the three lines apart, from 2 to 10.

    Examples
    --------
    >>> _bins(100, 0.95), _bins(450, 0.95), _bins(2000, 0.95)
    (2, 7, 10)
    """
    for bins in range(_MOST_BINS, _FEWEST_BINS, -1):
        alpha = (1.0 - level) / (len(SHARES) * bins)
        ends = [_bounds(n // bins, share, alpha)[1:] for share in SHARES] if n >= bins else [(0.0, 0.0)] * 2
        if all(below[1] + _GAP < above[0] for below, above in pairwise(ends)):
            return bins
    return _FEWEST_BINS
