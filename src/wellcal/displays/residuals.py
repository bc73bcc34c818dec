"""Residuals in units of the predicted spread, against what was predicted."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from wellcal._arrays.checks import one_of, probability, whole_number
from wellcal._arrays.namespaces import NDArray, stop_gradient, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.seeds import as_generator
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.against import AGAINST, Described, described, draws_apart, either
from wellcal.displays.axes import WIDE, Canvas
from wellcal.displays.base import LEVEL, Display, bins_outside, reach_of, shares_below, verdict_of
from wellcal.measures.binned.binning import EqualMassBins
from wellcal.predictions import Normal, Samples
from wellcal.predictions.base import check_inputs

SHARES = (0.1, 0.5, 0.9)
"""Of residuals that lie below the three lines."""

_FEW_SHARES, _FEW_RANKS = (0.25, 0.5, 0.75), 6  # lines nearer to the ends of ranks that few draws have

QUESTIONS = {
    "spread": "Are the predicted spreads right for every kind of case?",
    "mean": "Are predictions right wherever they lie?",
}
"""What is asked, by what residuals are drawn against."""
_SHARE = "share of its prediction that lies below the outcome"
_FARTHEST = 4.0  # residuals beyond are drawn at the edge
_MOST_POINTS = 4000
_FEWEST_BINS, _MOST_BINS = 2, 10
_BINS_OF_FEW = 3  # ranks among few draws say little in a small bin
_GAP = 0.1  # between bands, in standard deviations
_AROUND = 0.02  # of a number that all predictions share, to which its band is widened


@dataclass(repr=False)
class ResidualDisplay(Display):
    """Residuals in units of the predicted spread, or as normal scores, against the predicted spread or mean.

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
    scored
        What `residuals` are the normal scores of, in words: a share of the prediction, or a rank among draws;
        None where they are ``(y - mean) / spread``.
    shares
        Of residuals that lie below the three lines of a calibrated model.

    Notes
    -----
    A tenth of the residuals of a calibrated model lies below -1.28, half below 0, nine tenths below 1.28,
    whatever was predicted. The lines are these quantiles of the residuals in each bin, and the bands where an
    order statistic of as many normals lies, exact, at all bins and lines at once (Bonferroni). Residuals of
    counts are randomised.

    Residuals of other families than normals are normal scores: the quantile of a standard normal at the
    share of the prediction that lies below the outcome.

    Draws (``Samples(kind="draws")``) are taken apart, at random in each case: one of them says where the
    prediction lies, or half of them (two at least) how wide it is, and the outcome is ranked among the
    others. Under calibration it is any of these and itself, whatever the ones are, so that its rank is
    uniform in each bin, and a spread that is wrong makes no trend of the centre. In bins by the draws that it
    is ranked among it would not be: where few draws happen to lie close together, outcomes of a calibrated
    model are outside of them more often than not. Where there are too few, a single one or two for spreads,
    bins are by the mean, or spread, of the draws and the outcome together, of which it is any: bands are
    exact there, too, but errors in spread bend the lines. Ranks among fewer than six draws tell less of the
    tails than of quarters: lines are those that a quarter, a half and three quarters lie below.

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
    scored: str | None = None
    shares: tuple[float, ...] = SHARES

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
            Number of bins; None takes as many, from 2 to 10, as leave the three bands apart, and at most 3
            for ranks among few draws.
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
        shown, scored = described(predictions, against, targets), None
        if against == "spread" and not shown.differ:
            against, shown = "mean", described(predictions, "mean", targets)
        verdict, shares = verdict_of(y, pred, test, result, rng), SHARES
        if isinstance(predictions, Samples) and predictions.kind == "draws":
            whole = _Ranked(values, shown, predictions)
            ranked = _among_draws(targets, whole, against, generator)
            values, shown, scored = ranked.values, ranked.shown, ranked.words
            shares = _FEW_SHARES if ranked.among + 1 <= _FEW_RANKS else SHARES
        elif not isinstance(predictions, Normal):
            scored = _SHARE
        usual = _bins(len(values), probability(level, "level"), shares)
        usual = min(usual, _BINS_OF_FEW) if shares == _FEW_SHARES else usual
        bins = usual if n_bins is None else whole_number(n_bins, "n_bins", least=1)
        residuals = np.asarray(special.ndtri(values))
        return cls(shown.values, residuals, against, bins, name, verdict, level, shown.words, scored, shares)

    def lines(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Mean prediction of each bin, ``(B,)``, and three lines with their bands, ``(3, B)``."""
        cells = EqualMassBins(self.n_bins).cells(self.predicted[:, None])
        means = {cell: float(self.predicted[cells == cell].mean()) for cell in np.unique(cells).tolist()}
        order = sorted(means, key=lambda cell: means[cell])
        alpha = (1.0 - probability(self.level, "level")) / (len(self.shares) * len(order))
        found: list[list[tuple[float, float, float]]] = []
        for cell in order:
            inside = np.sort(self.residuals[cells == cell])
            found.append([_quantile(inside, share, alpha) for share in self.shares])
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
            look, n = canvas.look, len(self.residuals)
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
            for share, line, least, most in zip(self.shares, lines, low, high, strict=True):
                ideal = float(special.ndtri(share))
                new = canvas.once(f"{share:.0%} below")
                if new:
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
                if new:
                    words = "half below" if share == 0.5 else f"{share:.0%} below"
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
            scores: list[str | None] = canvas.shown.parts.setdefault("scored", [])
            scores.append(self.scored)
            plain = not any(scores)
            units = "in predicted spreads" if plain else "as a normal score"
            ax.set_ylabel(f"residual, {units}", color=canvas.theme.ink)
            ax.set_xlabel(across, color=canvas.theme.ink)
            canvas.title()
            named = f"{self.name}: " if self.name and len(canvas.shown.names) == 1 else ""
            drawn = "" if n <= _MOST_POINTS else f", {_MOST_POINTS:,} of them drawn"
            beyond = int(np.sum(np.abs(self.residuals) > _FARTHEST))
            edge = (
                f"; {how_many(beyond, 'residual')} beyond {_FARTHEST:g} drawn at the edge" if beyond else ""
            )
            scored = "" if plain else f"; normal score: of the {either(one or _SHARE for one in scores)}"
            canvas.note(
                f"{named}{how_many(n)}{drawn}{scored}; lines: quantiles of residuals in bins of equal "
                f"counts; {self.level:.0%} of calibrated models stay in all the grey bands{edge}."
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


class _Ranked(NamedTuple):
    """Shares of draws below outcomes, what they are drawn against, the draws, and whether these are some."""

    values: NDArray
    shown: Described
    draws: Samples
    others: bool = False

    @property
    def among(self) -> int:
        """How many draws outcomes are ranked among."""
        return int(self.draws.values.shape[1])

    @property
    def words(self) -> str:
        """What the values are."""
        rank = f"rank of the outcome among {how_many(self.among, 'other draw' if self.others else 'draw')}"
        return rank if self.others else f"{rank}, too few to take some for the axis"


def _among_draws(targets: Any, whole: _Ranked, against: str, rng: np.random.Generator) -> _Ranked:
    """Outcomes among draws that the axis is not made of; among the `whole` of them where they are few."""
    # `pit` leaves the generator as it is: the same numbers must not choose draws and spread ranks.
    chosen = np.random.default_rng(int(rng.integers(2**31)))
    apart = draws_apart(whole.draws, against, chosen)
    if apart is None:
        return whole
    shown, others = apart
    return _Ranked(shares_below(to_numpy(stop_gradient(targets)), others, rng), shown, others, others=True)


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


def _bins(n: int, level: float, shares: tuple[float, ...] = SHARES) -> int:
    """As many bins as leave the bands of the three lines apart, from 2 to 10.

    Examples
    --------
    >>> _bins(100, 0.95), _bins(450, 0.95), _bins(2000, 0.95)
    (2, 7, 10)
    """
    for bins in range(_MOST_BINS, _FEWEST_BINS, -1):
        alpha = (1.0 - level) / (len(shares) * bins)
        ends = [_bounds(n // bins, share, alpha)[1:] for share in shares] if n >= bins else [(0.0, 0.0)] * 2
        if all(below[1] + _GAP < above[0] for below, above in pairwise(ends)):
            return bins
    return _FEWEST_BINS
