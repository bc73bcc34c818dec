"""Pairs of coordinates of vectors: how residuals are correlated, and how a calibrated model has them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.checks import probability
from wellcal._arrays.namespaces import NDArray, stop_gradient, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.seeds import as_generator
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.axes import SQUARE, WIDE, Canvas
from wellcal.displays.base import LEVEL, TIE, Display, bins_outside, envelope, reach_of, verdict_of
from wellcal.hypotests.findings.families import claims_of
from wellcal.hypotests.findings.vectors import VectorClaims
from wellcal.hypotests.setup import numpy_batch
from wellcal.predictions.base import check_inputs
from wellcal.problem.target_resampling import TargetStream, pool_draws

QUESTION = "Are coordinates correlated as the model says?"
_MOST = 6  # pairs that are drawn, those that are farthest off
_FEW = 3  # pairs that leave a wide figure empty
_RESAMPLES, _FEWEST = 499, 99
_NUMBERS = 5 * 10**6  # that are drawn, about
_WIDTH, _APART = 0.15, 0.22  # of a band, and of two models, in distances between pairs
_WITHOUT = ", without the chance in the mean of draws"
_ROOM = 0.22  # for the words at the band, in heights of what is drawn


@dataclass(repr=False)
class CorrelationsDisplay(Display):
    """Correlations of the residuals of vectors, for each pair of coordinates, and those of calibrated models.

    Parameters
    ----------
    pairs
        Numbers of the two coordinates of each pair, from 1 on.
    correlations
        Those of their residuals in units of predicted spreads, ``(p,)``.
    predicted
        What they are on average if the model is calibrated, ``(p,)``.
    low, high
        The band, ``(p,)``.
    name, verdict
        Of the model: see :mod:`wellcal.displays`.
    level
        Share of calibrated models all of whose correlations, also those that are not drawn, lie in the band.
    n_samples, coordinates
        Number of cases, and of coordinates that targets have.
    draws
        Whether predictions are draws.

    Notes
    -----
    Correlations are those that findings of :func:`wellcal.calibration_test` tell, of what a trend leaves of
    residuals. The band is that of targets drawn from the predictions, for all pairs together: under
    calibration the observed targets are one more such set, so that it holds for any number of cases. Of more
    than 12 coordinates some are looked at, evenly spaced.

    Residuals of draws are those about their mean, which is off by chance, too, with the correlations that
    draws have: what it adds is taken out. What was predicted are correlations of the draws within cases, and
    the band has differences to these that there are with any other of draws and target as the target. Where
    targets spread so little that chance is nearly all there is, the correlation is not known and is put
    where it was predicted.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> y = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]], size=150)
    >>> pred = wc.DiagonalNormal(np.zeros((150, 2)), np.ones((150, 2)))
    >>> display = CorrelationsDisplay.from_predictions(y, pred, test=False)
    >>> display.pairs, display.outside().tolist()
    (((1, 2),), [True])
    """

    pairs: tuple[tuple[int, int], ...]
    correlations: NDArray
    predicted: NDArray
    low: NDArray
    high: NDArray
    name: str | None = None
    verdict: str | None = None
    level: float = LEVEL
    n_samples: int = 0
    coordinates: int = 0
    draws: bool = False

    @classmethod
    def from_predictions(
        cls,
        y: object,
        pred: object,
        *,
        level: float = LEVEL,
        name: str | None = None,
        ax: Any = None,
        test: bool | None = None,
        result: Any = None,
        rng: int | np.random.Generator | None = None,
    ) -> CorrelationsDisplay:
        """Compute the correlations from targets and predictions, and draw them.

        Parameters
        ----------
        y, pred
            Targets, and predictions of vectors.
        level
            Share of calibrated models all of whose correlations lie in the band.
        name, ax, test, result, rng
            As for all displays: see :mod:`wellcal.displays`.
        """
        found = cls.computed(y, pred, level=level, name=name, test=test, result=result, rng=rng)
        return found.plot(ax)

    @classmethod
    def computed(
        cls,
        y: object,
        pred: object,
        *,
        level: float = LEVEL,
        name: str | None = None,
        test: bool | None = None,
        result: Any = None,
        rng: int | np.random.Generator | None = None,
    ) -> CorrelationsDisplay:
        """The same as `from_predictions`, and not drawn yet."""
        probability(level, "level")
        generator = as_generator(rng)
        targets, predictions = check_inputs(y, pred)
        objects = predictions.target_kind == "objects"
        if objects or math.prod(predictions.event_shape) < 2:
            raise TypeError(
                "pred: correlations are for predictions of vectors with two coordinates or more, found "
                f"{type(predictions).__name__} with outcomes of shape {tuple(predictions.event_shape)}; "
                "PITDisplay is for numbers and counts, ReliabilityDisplay for classes"
            )
        observed = np.asarray(to_numpy(stop_gradient(targets)), dtype=np.float64)
        found = _of_sets(observed, numpy_batch(predictions), generator)
        low, high = (np.tanh(found.predicted + end) for end in envelope(found.apart[1:], level))
        verdict = verdict_of(y, pred, test, result, rng)
        known = found.pairs, np.tanh(found.seen), np.tanh(found.predicted), low, high
        return cls(*known, name, verdict, level, *observed.shape, draws=found.draws)

    # -- data ----------------------------------------------------------------------------------

    def outside(self) -> NDArray:
        """Whether each pair leaves the band, ``(p,)``."""
        return (self.correlations < self.low - TIE) | (self.correlations > self.high + TIE)

    @property
    def reach(self) -> float:
        """How far the farthest correlation lies from the middle of its band, in half widths of that."""
        return reach_of(self.correlations, self.low, self.high)

    @property
    def finding(self) -> str:
        """How many correlations leave the band, in a sentence, and of how many of the coordinates."""
        some = f" of {self._looked} of {self.coordinates} coordinates" if self._leaves_out else ""
        return bins_outside(self.outside(), f"correlations{some}")

    # -- drawing -------------------------------------------------------------------------------

    def plot(self, ax: Any = None) -> CorrelationsDisplay:
        """Draw it on given axes, which may show other models already, or on new ones."""
        with style():
            ax = axes_or_new(ax, SQUARE if len(self.pairs) <= _FEW else WIDE)
            canvas = Canvas(ax)
            shown = self._shown(canvas)
            look, index = canvas.look, len(canvas.shown.names)
            x = np.arange(len(shown)) + _APART * index
            values, low, high, predicted = (
                part[shown] for part in (self.correlations, self.low, self.high, self.predicted)
            )
            sides = x - 0.5 * _WIDTH, x + 0.5 * _WIDTH
            for place in range(len(shown)):
                ends = [side[place] for side in sides]
                canvas.band(ends, np.repeat(low[place], 2), np.repeat(high[place], 2))
            ax.hlines(predicted, *sides, color=canvas.theme.ideal, linewidth=0.8, zorder=1.2)
            shape: dict[str, Any] = {**look.points, "markersize": 6.5, "zorder": 3, "clip_on": False}
            (handle,) = ax.plot(x, values, **shape)
            dots = np.tile(x, 3), np.concatenate([values, low, high])
            canvas.add(self.name, handle, dots=dots)
            canvas.say(self.name, self.statement)
            self._axes(canvas, len(shown), np.concatenate([values, low, high]))
            if len(canvas.shown.names) == 1:
                self._label(canvas, float(x[-1]), values, float(low[-1]), float(high[-1]))
            canvas.title()
            canvas.note(self._small_print(canvas, len(shown)))
            canvas.name_models()
        self._drawn(ax)
        return self

    def _shown(self, canvas: Canvas) -> NDArray:
        """Places of the pairs that are drawn: those that axes have already, or those farthest off."""
        half = np.maximum(0.5 * (self.high - self.low), TIE)
        far = np.abs(self.correlations - 0.5 * (self.low + self.high)) / half
        own = np.sort(np.argsort(-far, kind="stable")[:_MOST])
        wanted = canvas.shown.parts.setdefault("pairs", [self.pairs[k] for k in own])
        if not set(wanted) <= set(self.pairs):
            first, second = next(pair for pair in wanted if pair not in self.pairs)
            raise ValueError(
                f"ax shows coordinates {first} and {second}, which these predictions do not have; draw "
                "models of the same targets on the same axes"
            )
        return np.array([self.pairs.index(pair) for pair in wanted])

    def _axes(self, canvas: Canvas, count: int, heights: NDArray) -> None:
        ax, models = canvas.ax, len(canvas.shown.names)
        middle = 0.5 * _APART * (models - 1)
        names = [f"{first} and {second}" for first, second in canvas.shown.parts["pairs"]]
        ax.set_xticks(np.arange(count) + middle, names)
        ax.set_xlim(-0.5, count - 0.5 + 2.0 * middle)
        least, most = canvas.shown.parts.get("ends", (0.0, 0.0))
        least, most = min(least, float(heights.min())), max(most, float(heights.max()))
        canvas.shown.parts["ends"] = least, most
        room = (most - least) or 0.1
        ax.set_ylim(max(least - _ROOM * room, -1.05), min(most + _ROOM * room, 1.05))
        ax.set_xlabel("coordinates", color=canvas.theme.ink)
        ax.set_ylabel("correlation of residuals", color=canvas.theme.ink)

    def _label(self, canvas: Canvas, x: float, values: NDArray, low: float, high: float) -> None:
        """Words for the band, on the side where correlations are not."""
        below = float(np.sum(values - 0.5 * (low + high))) > 0.0
        (left, right), (least, most) = canvas.ax.get_xlim(), canvas.ax.get_ylim()
        to = right - 0.03 * (right - left), least + (0.06 if below else 0.94) * (most - least)
        here = "here" if len(values) == 1 else "all of these"
        text = f"{self.level:.0%} of calibrated models stay in {here}"
        canvas.label(text, (x, low if below else high), to)

    @property
    def _looked(self) -> int:
        """How many coordinates are in some pair."""
        return len({place for pair in self.pairs for place in pair})

    @property
    def _leaves_out(self) -> bool:
        return self._looked < self.coordinates

    def _small_print(self, canvas: Canvas, shown: int) -> str:
        named = f"{self.name}: " if self.name and len(canvas.shown.names) == 1 else ""
        count = len(self.pairs)
        some = f"; the {shown} of {count} pairs that are farthest off" if shown < count else ""
        if self._leaves_out:
            some += f", of {self._looked} of the {self.coordinates} coordinates"
        return (
            f"{named}{how_many(self.n_samples)}{some}; residuals in units of the predicted spread"
            f"{_WITHOUT if self.draws else ''}; line in the band: what was predicted."
        )


class _Found(NamedTuple):
    """Pairs of coordinates, and Fisher's transforms, on whose scale correlations vary alike, as in findings.

    Those that were seen and predicted ``(p,)``, and how far apart they are in observed and drawn targets
    ``(r + 1, p)``.
    """

    pairs: tuple[tuple[int, int], ...]
    seen: NDArray
    predicted: NDArray
    apart: NDArray
    draws: bool


def _of_sets(targets: NDArray, predictions: Any, rng: np.random.Generator) -> _Found:
    draws = predictions.kind == "draws"
    batch = pool_draws(targets, predictions) if draws else predictions
    claims = claims_of(batch, draws)
    assert isinstance(claims, VectorClaims)
    count = int(np.clip(_NUMBERS // max(targets.size, 1), _FEWEST, _RESAMPLES))

    def sets() -> Iterator[NDArray]:
        yield targets[None]
        yield from TargetStream.of(rng).sets(batch, targets, count)

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = [claims.correlations(np.reshape(np.asarray(some), (*some.shape[:2], -1))) for some in sets()]
    pairs = tuple((first + 1, second + 1) for first, second in claims.coordinates)
    seen = _transformed([values for values, _ in found])
    said = _transformed([values for _, values in found if values is not None])
    if len(said):
        said = np.nan_to_num(said)
        seen = np.where(np.isnan(seen), said, seen)
        return _Found(pairs, seen[0], said[0], seen - said, draws)
    seen = np.nan_to_num(seen)
    predicted = seen[1:].mean(axis=0)
    return _Found(pairs, seen[0], predicted, seen - predicted, draws)


def _transformed(correlations: list[NDArray]) -> NDArray:
    some = np.concatenate(correlations) if correlations else np.empty((0, 0))
    return np.arctanh(np.clip(some, -1.0 + 1e-9, 1.0 - 1e-9))
