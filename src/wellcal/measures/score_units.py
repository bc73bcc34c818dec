"""How large errors are in units of the predictions, where normal scores show them.

Of a normal distribution scores are residuals: targets that lie a standard deviation too high have scores that
are 1 too high, and spreads that are half of the true ones make them spread twice as far. Heavy tails hide
that: targets from a Cauchy distribution of twice the predicted scale have scores with a spread of 1.27. The
amount that was wrong is the one at which scores would be as they are.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray
from wellcal.measures.normal_scores import score
from wellcal.predictions import Predictions
from wellcal.predictions.misspecification import centre_and_scale

DEVIATIONS, RANGES = "standard deviations", "interquartile ranges"
"""Units of shifts: the second where predictions have no finite variance."""

_NODES, _MASSES = np.polynomial.hermite_e.hermegauss(32)
WEIGHTS: NDArray = _MASSES / _MASSES.sum()
"""Of the quantiles of predictions that stand for targets."""

_LEVELS = np.clip(special.ndtr(_NODES), 1e-15, 1.0 - 1e-15)  # where quantiles are finite
_LEAST_SQUARE = 1e-4  # of a ratio of spreads: draws that are right about the centre, but for rounding
_MOST_CASES = 64  # that stand for all
_NUDGE = 1e-5  # of what a slope is taken from
_STEPS = np.linspace(-1.0, 1.0, 61)
_SHIFTS = 1000.0 * np.sinh(9.0 * _STEPS) / np.sinh(9.0)
_LOG_FACTORS = 7.0 * np.sinh(3.0 * _STEPS) / np.sinh(3.0)


class Sizes(NamedTuple):
    """How far targets are off in units of the predicted spread, and the log ratio of spreads.

    `slopes` ``(2, 2)`` say how they change with the mean and the log spread of scores.
    """

    sizes: NDArray
    slopes: NDArray


class Units:
    """From means and spreads of normal scores to shifts and spreads of targets.

    Without predictions, and for normals, scores are what they are.
    """

    def __init__(self, predictions: Predictions | None = None) -> None:
        self._predictions = predictions

    @cached_property
    def unit(self) -> str:
        """What shifts are told in."""
        return DEVIATIONS if self._predictions is None or self._has_moments else RANGES

    def shift(self, mean: float) -> float:
        """How far targets lie above their predictions, from the mean of their scores."""
        return mean if self._predictions is None else _interpolated(mean, self._means, _SHIFTS)

    def log_spread(self, spread: float) -> float:
        """Logarithm of the true spread over the predicted one, from that of the spread of scores."""
        if self._predictions is None:
            return spread
        return _interpolated(spread, self._spreads, _LOG_FACTORS)

    @property
    def known(self) -> bool:
        """Whether scores are other than residuals, of predictions that are known."""
        return self._predictions is not None

    def together(self, mean: float, spread: float) -> Sizes:
        """Both, from the mean and the logarithm of the spread of scores, and how they change with these."""
        (shift, ratio), (more, wider) = (
            (self.shift(mean + by), self.log_spread(spread + by)) for by in (0.0, _NUDGE)
        )
        slopes = np.diag([(more - shift) / _NUDGE, (wider - ratio) / _NUDGE])
        return Sizes(np.array([shift, ratio]), slopes)

    def residuals(self, targets: NDArray) -> NDArray | None:
        """Targets of all cases in units of their predictions; None where these have no finite moments."""
        if self._predictions is None or not self._has_moments:
            return None
        centre, spread = centre_and_scale(self._predictions)
        return (targets - centre) / spread

    # -- scores under errors of all sizes --------------------------------------------------------

    @cached_property
    def _has_moments(self) -> bool:
        batch = self._some
        with np.errstate(invalid="ignore", over="ignore"):
            known = batch.supports("variance") and np.isfinite(np.asarray(batch.variance())).all()
        return bool(known)

    @cached_property
    def _some(self) -> Predictions:
        batch = self._predictions
        assert batch is not None
        places = np.linspace(0, len(batch) - 1, min(len(batch), _MOST_CASES))
        return batch[np.unique(places.round().astype(int))]

    @cached_property
    def _quantiles(self) -> NDArray:
        """Targets ``(nodes, cases)`` of a calibrated model."""
        levels = np.broadcast_to(_LEVELS[:, None], (len(_NODES), len(self._some)))
        return np.asarray(self._some.quantile(levels), dtype=np.float64)

    def _scores(self, targets: NDArray) -> NDArray:
        return np.asarray(score(self._some.cdf(targets)), dtype=np.float64)

    @cached_property
    def _means(self) -> NDArray:
        """Mean scores of targets that are shifted by each of `_SHIFTS`."""
        spread = centre_and_scale(self._some)[1]
        unit = spread if self._has_moments else np.asarray(self._some.interquartile_range())
        found = [float(np.mean(WEIGHTS @ self._scores(self._quantiles + by * unit))) for by in _SHIFTS]
        return np.maximum.accumulate(found)

    @cached_property
    def _spreads(self) -> NDArray:
        """Log spreads of scores of targets that are stretched by each of `_LOG_FACTORS`."""
        centre = centre_and_scale(self._some)[0]
        off = self._quantiles - centre
        squares = [self._scores(centre + np.exp(by) * off) ** 2 for by in _LOG_FACTORS]
        found = [0.5 * np.log(max(float(np.mean(WEIGHTS @ each)), 1e-30)) for each in squares]
        return np.maximum.accumulate(found)


def _interpolated(value: float, at: NDArray, values: NDArray) -> float:
    found: NDArray = np.interp([value], at, values)
    return float(found[0])


PLAIN = Units()
"""Scores are residuals."""


class InUnits(Units):
    """Sizes that are in units of the predictions already."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit


class AmongDraws(Units):
    """From errors about the mean of a few draws to spreads: that mean is off by chance, too.

    Errors are in units of the spread that they have where draws are right, which is theirs and that of the
    mean of draws. Spreads that are too small make the latter too small as well.

    Examples
    --------
    >>> narrow = 0.5 * np.log((1.0 + 0.7**2 / 5.0) / (1.2 * 0.7**2))  # of five draws with spreads times 0.7
    >>> round(0.7 * float(np.exp(AmongDraws(5).log_spread(narrow))), 9)
    1.0
    """

    def __init__(self, draws: int) -> None:
        super().__init__()
        self._draws = draws

    def shift(self, mean: float) -> float:
        """How far targets lie above their draws, in spreads of these, from the mean of errors."""
        return mean * float(np.sqrt(1.0 + 1.0 / self._draws))

    def log_spread(self, spread: float) -> float:
        """Logarithm of the true spread over that of the draws, from that of errors."""
        square = (1.0 + 1.0 / self._draws) * np.exp(2.0 * spread) - 1.0 / self._draws
        return 0.5 * float(np.log(max(square, _LEAST_SQUARE)))
