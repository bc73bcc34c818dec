"""Vectors: where outcomes fall within their predictions, in each coordinate and in all of them together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import flag, probability
from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray, stop_gradient, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.seeds import as_generator
from wellcal.displays._style import axes_or_new, style
from wellcal.displays.axes import SQUARE, Canvas
from wellcal.displays.base import LEVEL, TIE, Display, band_below, reach_of, verdict_of
from wellcal.displays.uniformity import PLACES, difference_axis
from wellcal.predictions.base import check_inputs

QUESTION = "Do outcomes fall in every coordinate, and together, as often as promised?"
FAR_OUT = "Do outcomes lie as far out as promised, all coordinates together?"
TOGETHER = "how far out"
_MOST = 6  # coordinates that are drawn, those that are farthest off
_DRAWS = 99  # for each prediction
_FEWEST = 19
_NUMBERS = 2 * 10**7  # that are drawn, about


@dataclass(repr=False)
class CoordinatesDisplay(Display):
    """Of predictions of vectors: how many more outcomes lie below each share than promised.

    There is one curve for each coordinate, from low to high, and one for all of them together, from the
    middle of the prediction outwards.

    Parameters
    ----------
    values
        Ranks of outcomes among draws from their predictions, in each coordinate, between 0 and 1, ``(n, d)``.
    together
        Ranks of their distances from the middle of the prediction, in units of its covariance, ``(n,)``.
    name, verdict
        Of the model: see :mod:`wellcal.displays`.
    level
        Share of calibrated models all of whose curves, also those that are not drawn, lie in the band.
    n_draws
        Draws for each prediction.
    coordinates
        Whether each coordinate has a curve. False leaves the one for all of them together, so that several
        models may share axes.

    Notes
    -----
    An outcome and draws from its prediction are exchangeable if the model is calibrated, so that their ranks
    are uniform: in each coordinate, and in the Mahalanobis distance from their common mean, with their common
    covariance. The latter sees wrong correlations and spreads: its curve is below zero on the right where
    outcomes lie farther out than the model said. Where draws are too few for a covariance, distances are in
    units of the spread of each coordinate. The band holds for all curves together (Bonferroni).

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=(300, 2)) * [1.0, 2.0]
    >>> display = CoordinatesDisplay.from_predictions(
    ...     y, wc.DiagonalNormal(np.zeros((300, 2)), np.ones((300, 2))), test=False
    ... )
    >>> display.outside().tolist()
    [False, True, True]
    """

    values: NDArray
    together: NDArray
    name: str | None = None
    verdict: str | None = None
    level: float = LEVEL
    n_draws: int = _DRAWS
    coordinates: bool = True

    @classmethod
    def from_predictions(
        cls,
        y: object,
        pred: object,
        *,
        coordinates: bool = True,
        level: float = LEVEL,
        name: str | None = None,
        ax: Any = None,
        test: bool | None = None,
        result: Any = None,
        rng: int | np.random.Generator | None = None,
        **options: Any,
    ) -> CoordinatesDisplay:
        """Compute the ranks from targets and predictions, and draw them.

        Parameters
        ----------
        y, pred
            Targets, and predictions of vectors.
        coordinates
            Whether to draw each coordinate.
        level
            Share of calibrated models all of whose curves lie in the band.
        name, ax, test, result, rng
            As for all displays: see :mod:`wellcal.displays`.
        options
            For `plot`.
        """
        given: dict[str, Any] = {"coordinates": coordinates, "level": level, "name": name}
        return cls.computed(y, pred, test=test, result=result, rng=rng, **given).plot(ax, **options)

    @classmethod
    def computed(
        cls,
        y: object,
        pred: object,
        *,
        coordinates: bool = True,
        level: float = LEVEL,
        name: str | None = None,
        test: bool | None = None,
        result: Any = None,
        rng: int | np.random.Generator | None = None,
    ) -> CoordinatesDisplay:
        """The same as `from_predictions`, and not drawn yet."""
        generator = as_generator(rng)
        targets, predictions = check_inputs(y, pred)
        objects = predictions.target_kind == "objects"
        if predictions.event_shape == () or objects:
            raise TypeError(
                f"pred: coordinates are for predictions of vectors, found {type(predictions).__name__}; "
                "PITDisplay is for numbers and counts, ReliabilityDisplay for classes"
            )
        found = np.asarray(to_numpy(stop_gradient(targets)), dtype=np.float64)
        values, together, draws = _ranks(found.reshape(len(found), -1), predictions, generator)
        verdict = verdict_of(y, pred, test, result, rng)
        return cls(values, together, name, verdict, level, draws, flag(coordinates, "coordinates"))

    # -- data ----------------------------------------------------------------------------------

    def differences(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Shares ``(101,)``, how many more lie below, ``(d + 1, 101)``, all together last, and the band."""
        shares = np.linspace(0.0, 1.0, PLACES + 1)
        columns = np.sort(np.column_stack([self.values, self.together]), axis=0)
        n = len(columns)
        found = np.stack([np.searchsorted(column, shares, side="right") / n for column in columns.T])
        alone = 1.0 - (1.0 - probability(self.level, "level")) / len(found)
        low, high = band_below(shares, n, alone)
        return shares, found - shares, low - shares, high - shares

    def outside(self) -> NDArray:
        """Whether the curve of each coordinate leaves the band, and that of all together, ``(d + 1,)``."""
        _, found, low, high = self.differences()
        return np.any((found < low - TIE) | (found > high + TIE), axis=1)

    @property
    def reach(self) -> float:
        """How far the farthest curve that is drawn lies from zero, in half widths of the band."""
        _, found, low, high = self.differences()
        return reach_of(found if self.coordinates else found[-1], low, high)

    @property
    def finding(self) -> str:
        """How many curves leave the band, in a sentence."""
        return self._seen(self.coordinates)

    def _seen(self, coordinates: bool) -> str:
        out = self.outside() if coordinates else self.outside()[-1:]
        if len(out) == 1:
            does = "leaves" if out.any() else "stays in"
            return f"The only curve {does} the band of calibrated models."
        if not out.any():
            return f"All {len(out)} curves stay in the band of calibrated models."
        return f"{int(out.sum())} of {len(out)} curves leave the band of calibrated models."

    # -- drawing -------------------------------------------------------------------------------

    def plot(self, ax: Any = None, *, coordinates: bool | None = None) -> CoordinatesDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax
            matplotlib's axes; None makes a new figure.
        coordinates
            As above. Of more than six those are drawn that are farthest off.
        """
        flag(coordinates, "coordinates", or_none=True)
        coordinates = self.coordinates if coordinates is None else coordinates
        with style():
            ax = axes_or_new(ax, SQUARE)
            canvas = Canvas(ax)
            shares, found, low, high = self.differences()
            farthest = np.argsort(-np.abs(found[:-1]).max(axis=1), kind="stable")[:_MOST]
            shown = [*np.sort(farthest).tolist(), len(found) - 1] if coordinates else [len(found) - 1]
            canvas.band(shares, low, high)
            canvas.ideal([0.0, 1.0], [0.0, 0.0])
            for k in shown:
                joint = k == len(found) - 1
                look = {**canvas.look.line, "linewidth": 1.5}
                if joint and coordinates:
                    look = {"color": canvas.theme.ink, "linewidth": 2.0}
                (handle,) = ax.plot(shares, found[k], **look, zorder=2.5)
                what = TOGETHER if joint else f"coordinate {k + 1}"
                named = self.name if not coordinates else what
                canvas.add(named, handle, (shares, found[k]))
            canvas.say(self.name, self.statement if self.verdict else self._seen(coordinates))
            difference_axis(canvas, found[shown], (low, high), self.level)
            across = "where the outcome fell" if coordinates else "how far out the outcome fell"
            ax.set_xlabel(f"{across} in its prediction", color=canvas.theme.ink)
            canvas.title()
            canvas.note(self._small_print(canvas, len(shown) - 1, coordinates))
            canvas.name_models()
        self._drawn(ax)
        return self

    def _small_print(self, canvas: Canvas, shown: int, coordinates: bool) -> str:
        n, d = self.values.shape
        alone = coordinates or len(canvas.shown.names) == 1
        named = f"{self.name}: " if self.name and alone else ""
        some = f"; the {shown} of {d} coordinates that are farthest off" if coordinates and shown < d else ""
        order = "coordinates from low to high; " if coordinates else ""
        return (
            f"{named}{how_many(n)}, ranked among {self.n_draws} draws each{some}; {order}how far out: from "
            "the middle outwards, all coordinates together."
        )


def _ranks(targets: NDArray, predictions: Any, rng: np.random.Generator) -> tuple[NDArray, NDArray, int]:
    """Ranks of targets ``(n, d)`` among draws: in each coordinate, of distances, and how many draws."""
    n, d = targets.shape
    own = predictions.kind == "draws"
    count = int(predictions.values.shape[1]) if own else int(np.clip(_NUMBERS // (n * d), _FEWEST, _DRAWS))
    values, together = np.empty((n, d)), np.empty(n)
    for rows in in_chunks(n, (count + 1) * d):
        some = predictions[rows]
        given = some.values if own else some.sample(rng, count)
        drawn = np.asarray(to_numpy(stop_gradient(given)), dtype=np.float64)
        drawn = drawn if own else np.moveaxis(drawn, 0, 1)
        pool = np.concatenate([targets[rows, None, :], drawn.reshape(-1, count, d)], axis=1)
        values[rows] = _rank_of_first(pool, rng)
        together[rows] = _rank_of_first(_distances(pool)[:, :, None], rng)[:, 0]
    return values, together, count


def _rank_of_first(pool: NDArray, rng: np.random.Generator) -> NDArray:
    """Ranks of the first of each pool ``(n, S + 1, d)``, spread over their share: uniform if exchangeable."""
    first = pool[:, :1]
    below: NDArray = np.sum(pool[:, 1:] < first, axis=1)
    ties: NDArray = np.sum(pool[:, 1:] == first, axis=1)
    return (below + rng.random(below.shape) * (ties + 1)) / pool.shape[1]


def _distances(pool: NDArray) -> NDArray:
    """Squared distances ``(n, S + 1)`` from the mean of each pool, in units of its covariance."""
    off = pool - pool.mean(axis=1, keepdims=True)
    size, d = pool.shape[1:]
    scale = np.sqrt(np.mean(off**2, axis=1, keepdims=True))
    off = off / np.where(scale > 0.0, scale, 1.0)
    if size < 2 * d + 2:  # too few for a covariance
        return np.sum(off**2, axis=2)
    covariances = np.swapaxes(off, 1, 2) @ off / size + 1e-9 * np.eye(d)
    inverses: NDArray = cast("Any", np.linalg).inv(covariances)
    scaled: NDArray = np.matmul(off, inverses)
    return np.sum(scaled * off, axis=2)
