"""What displays share: where they are drawn, what a test says of the model, and bands from resamples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wellcal._arrays.checks import described, flag, probability
from wellcal._arrays.equality import ByValue
from wellcal._arrays.namespaces import NDArray, stop_gradient, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.seeds import DEFAULT_SEED
from wellcal.displays._style import OWN_HEIGHTS, lay_out, style
from wellcal.displays.axes import Canvas, in_title
from wellcal.hypotests import calibration_test
from wellcal.hypotests.result import TestResult
from wellcal.measures.quantiles import pit
from wellcal.measures.quantiles.bands import calibration_band
from wellcal.predictions import Samples
from wellcal.predictions.base import Predictions, check_inputs
from wellcal.predictions.serialization import fingerprint

LEVEL = 0.95
"""Share of calibrated models whose whole curve lies in the band."""

TESTED = 1_000
"""Cases up to which a figure runs a test for its title by itself: a second or two."""

DRAWN_NUMBERS = 50_000
"""Numbers in draws up to which it does so: the same, in time."""

SEEN = 0.02
"""Of an axis from 0 to 1: what is nearer to the middle of its band than that is not seen there."""

TIE = 1e-12
"""By which a curve may lie beyond its band before it counts as outside: rounding."""

_LAYOUTS = 2  # axes move while what hangs on their squares is given room, each time a quarter as far
_COARSE = 1.25  # times what may be left out, from which on ranks are too coarse
_PRECISE = 50_000  # cases up to which a band takes the same probability at every share
_REMEMBERED = 64
_VERDICTS: dict[str, str | None] = {}


class Display(ByValue):
    """Data of a figure, and where it was drawn."""

    ax_: Any = None
    figure_: Any = None

    def __repr__(self) -> str:
        """Which figure of which model: the arrays that it holds are for those who ask for them."""
        words = [type(self).__name__]
        words += [f"of {name!r}" for name in (getattr(self, "name", None),) if name]
        words += [f"with {how_many(count)}" for count in (getattr(self, "n_samples", 0),) if count]
        return f"<{' '.join(words)}>"

    @property
    def finding(self) -> str:
        """What is seen in the figure, in a sentence: no test was run for it."""
        raise NotImplementedError

    @property
    def reach(self) -> float:
        """How far what is shown lies from what calibration would be, in half widths of its band.

        Above 1 where it is seen to leave the band: on an axis from 0 to 1, a band and a model less than 0.02
        apart look the same. Not a number where there is no band to leave.
        """
        return math.nan

    @property
    def statement(self) -> str:
        """What the title says: what a test found, or else what is seen."""
        verdict: str | None = getattr(self, "verdict", None)
        return self.finding if verdict is None else in_title(verdict)

    def _drawn(self, ax: Any) -> None:
        with style():
            Canvas(ax).settle()
            if ax.figure in OWN_HEIGHTS:
                for _ in range(_LAYOUTS):
                    lay_out(ax.figure)
        self.ax_, self.figure_ = ax, ax.figure


def shares_below(y: object, pred: object, rng: np.random.Generator | None) -> NDArray:
    """Shares of predictions that lie below the outcomes, in NumPy: :func:`wellcal.pit`."""
    return np.asarray(to_numpy(stop_gradient(pit(y, pred, rng=rng))), dtype=np.float64)


def verdict_of(y: object, pred: object, test: Any, result: Any, rng: Any) -> str | None:
    """What a test says of a model, for the title: one that has been run, or is run now; else None.

    The same targets and predictions are tested once with the same seed, however many figures show them, and
    without a seed that of all functions is taken: what they say agrees.
    """
    if flag(test, "test", or_none=True) and result is not None:
        raise ValueError("give either test=True or result, which is that of a test that has been run")
    if result is not None:
        return checked_result(result).verdict
    if test is not None and not test:
        return None
    targets, predictions = check_inputs(y, pred)
    if test is None and (len(predictions) > TESTED or _drawn_numbers(predictions) > DRAWN_NUMBERS):
        return None
    if isinstance(rng, np.random.Generator):
        return _tested(y, pred, rng, test)
    seed = DEFAULT_SEED if rng is None else int(rng)
    named = [(_settings(predictions), to_numpy(stop_gradient(targets)), predictions)]
    key = f"{seed}:{bool(test)}:{fingerprint(named)}"
    if key not in _VERDICTS:
        if len(_VERDICTS) >= _REMEMBERED:
            del _VERDICTS[next(iter(_VERDICTS))]
        _VERDICTS[key] = _tested(y, pred, seed, test)
    return _VERDICTS[key]


def _drawn_numbers(predictions: Predictions) -> int:
    """How many numbers there are in predictions that are draws."""
    children = [child for name in predictions.batch_fields for child in getattr(predictions, name)]
    own = math.prod(predictions.values.shape) if isinstance(predictions, Samples) else 0
    return own + sum(map(_drawn_numbers, children))


def _settings(predictions: Predictions) -> str:
    """What a batch is beside its arrays: whether samples are draws, say."""
    words = {name: value for name, value in vars(predictions).items() if isinstance(value, (str, int, float))}
    within = [_settings(child) for name in predictions.batch_fields for child in getattr(predictions, name)]
    return f"{type(predictions).__qualname__}{words}{within}"


def _tested(y: object, pred: object, rng: Any, test: bool | None) -> str | None:
    try:
        return calibration_test(y, pred, rng=rng).verdict
    except (TypeError, ValueError):
        if test:
            raise
        return None  # too few cases, say: the figure is still worth drawing


def checked_result(result: Any) -> TestResult:
    """`result`, or an error where it is not that of a test."""
    if not isinstance(result, TestResult):
        raise TypeError(
            f"result must be what calibration_test returns, a TestResult, found {described(result)}"
        )
    return result


def envelope(draws: NDArray, level: float) -> tuple[NDArray, NDArray]:
    """Bounds ``(B,)`` that hold as many other such curves wholly as `level` says, as near as these can tell.

    Of the curves ``(R, B)`` at each place, as many are left out below as above, and equally many at all
    places. Where that would leave out more than `level` allows even beyond the outermost curve, since there
    are many places and few curves, bounds are equally many standard deviations from the mean at all places.

    Parameters
    ----------
    draws
        Curves of calibrated models.
    level
        Share of such curves that stay within the bounds everywhere.

    Examples
    --------
    >>> draws = np.random.default_rng(0).random((999, 5))
    >>> low, high = envelope(draws, 0.9)
    >>> others = np.random.default_rng(1).random((10_000, 5))
    >>> bool(0.88 < ((others >= low) & (others <= high)).all(axis=1).mean() < 0.92)
    True
    """
    places = draws.shape[1]
    ends = np.concatenate([draws, -draws], axis=1)
    if np.mean(_ranks(ends) <= 1) > _COARSE * (1.0 - probability(level, "level")):
        mean, spread = draws.mean(axis=0), draws.std(axis=0)
        apart = np.abs(draws - mean) / np.where(spread > 0.0, spread, 1.0)
        far = float(np.sort(apart.max(axis=1))[-1 - _left_out(len(draws), level)])
        # From the mean of the others, in their standard deviations, as far as there are others.
        far *= math.sqrt(len(draws) / max(len(draws) - 1.0 - far**2, 1.0))
        return mean - far * spread, mean + far * spread
    found = floor_of(ends, level)
    return found[:places], -found[places:]


def floor_of(draws: NDArray, level: float) -> NDArray:
    """Bounds ``(B,)`` above which as many other such curves stay wholly as `level` says, nearly.

    Examples
    --------
    >>> floor_of(np.arange(20.0)[:, None], 0.9)
    array([1.])
    """
    ranks = np.sort(_ranks(draws))
    rank = int(ranks[_left_out(len(draws), probability(level, "level"))])
    # A curve is left out where it has this rank or a lower one among all: more than level says, or fewer.
    more, fewer = (float(np.mean(ranks <= last)) for last in (rank, rank - 1))
    if rank > 1 and abs(more - (1.0 - level)) > abs(fewer - (1.0 - level)):
        rank -= 1
    return np.sort(draws, axis=0)[rank - 1]


def _ranks(draws: NDArray) -> NDArray:
    """The lowest rank that each curve has among all, at any place, from 1 on."""
    ordered = np.sort(draws, axis=0)
    rank = np.full(len(draws), len(draws))
    for place in range(draws.shape[1]):
        rank = np.minimum(rank, np.searchsorted(ordered[:, place], draws[:, place], side="right"))
    return rank


def _left_out(count: int, level: float) -> int:
    """How many of some curves may be left out so that another one is not with the probability `level`."""
    return max(0, count - int(np.ceil(level * (count + 1))))


def band_below(shares: NDArray, n: int, level: float) -> tuple[NDArray, NDArray]:
    """Bounds ``(T,)`` of how many of n calibrated cases lie below each of the shares, all at once.

    Examples
    --------
    >>> low, high = band_below(np.array([0.1, 0.5]), 100, 0.95)
    >>> np.round(high - low, 2)  # narrower where chance is smaller
    array([0.13, 0.22])
    >>> low, high = band_below(np.array([0.1, 0.5]), 60_000, 0.95)
    >>> np.round(high - low, 3)
    array([0.011, 0.011])
    """
    return calibration_band(shares, n, level, "equal_precision" if n <= _PRECISE else "kolmogorov")


def reach_of(found: NDArray, low: NDArray, high: NDArray, seen: float = 0.0) -> float:
    """How far the farthest of some numbers is from the middle of its bounds, in half of their distance.

    Half of a distance is not taken to be less than what can be `seen`.

    Examples
    --------
    >>> low, high = np.array([0.0, 0.0]), np.array([1.0, 2.0])
    >>> reach_of(np.array([0.5, 1.0]), low, high), reach_of(np.array([2.0, 1.0]), low, high)
    (0.0, 3.0)
    >>> reach_of(np.array([1.0]), np.array([1.0]), np.array([1.0]))  # bounds without room, and within them
    0.0
    >>> reach_of(np.array([0.03]), np.array([0.0]), np.array([0.01]), seen=0.05)
    0.5
    """
    half = np.maximum(0.5 * (high - low), seen)
    off = np.maximum(np.abs(found - 0.5 * (low + high)) - TIE, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(half > 0.0, off / half, np.where(off > 0.0, np.inf, 0.0))
    return float(np.max(ratios, initial=0.0))


def bins_outside(outside: NDArray, what: str, *, each: str = "") -> str:
    """How many of the bins of a figure lie outside of their bands, in a sentence.

    Bands that hold for one thing at a time only say so after it: for `each` what.

    Examples
    --------
    >>> bins_outside(np.array([False, True, True]), "bins")
    '2 of 3 bins lie outside of the band of calibrated models.'
    >>> bins_outside(np.zeros(3, dtype=bool), "bins")
    'All 3 bins lie in the band of calibrated models.'
    >>> bins_outside(np.zeros(1, dtype=bool), "bins")
    'The only bin lies in the band of calibrated models.'
    >>> bins_outside(np.zeros(3, dtype=bool), "bins", each="event")
    'All 3 bins lie in the band of calibrated models, one event at a time.'
    """
    band = f"the band of calibrated models{f', one {each} at a time' if each else ''}."
    count = int(np.sum(outside))
    if outside.size == 1:
        where = "outside of" if count else "in"
        return f"The only {what.removesuffix('s')} lies {where} {band}"
    if not count:
        return f"All {outside.size} {what} lie in {band}"
    return f"{count} of {outside.size} {what} lie outside of {band}"


def rows_off(found: int, shown: int, what: str) -> str:
    """How many of the rows of a figure do not follow their predictions, in a sentence.

    Examples
    --------
    >>> rows_off(0, 2, "group")
    'No group of cases is further from its predictions than chance allows.'
    >>> rows_off(1, 2, "segment")
    'Of 2 segments that are shown, 1 segment does not follow its predictions.'
    >>> rows_off(1, 1, "group")
    'The group that is shown does not follow its predictions.'
    >>> rows_off(3, 3, "group")
    'None of the 3 groups that are shown follows its predictions.'
    """
    if not found:
        return f"No {what} of cases is further from its predictions than chance allows."
    if found == shown:
        if found == 1:
            return f"The {what} that is shown does not follow its predictions."
        none = "Neither" if found == 2 else "None"
        return f"{none} of the {found} {what}s that are shown follows its predictions."
    some = f"1 {what} does not follow its" if found == 1 else f"{found} {what}s do not follow their"
    return f"Of {shown} {what}s that are shown, {some} predictions."


def curve_outside(outside: NDArray) -> str:
    """Whether a curve leaves its band, in a sentence.

    Examples
    --------
    >>> curve_outside(np.array([False, True]))
    'The curve leaves the band of calibrated models.'
    """
    return f"The curve {'leaves' if np.any(outside) else 'stays in'} the band of calibrated models."
