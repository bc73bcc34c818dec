"""How large errors are for targets that are positive, or shares, from their normal scores.

Normal scores of such targets bend: gammas that are 1.5 times what was predicted have scores that are both
higher and farther apart, and scores that are closer together may come from targets that spread farther. So
the two are read together. Targets are moved and stretched where they have no ends, as logarithms or log odds,
until scores have the mean and the spread that were seen; how far means and standard deviations of the targets
are off then is what is told.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import special

from wellcal._arrays.domains import nonnegative, unit_interval
from wellcal._arrays.namespaces import NDArray
from wellcal.measures.normal_scores import are_normal
from wellcal.measures.score_units import PLAIN, WEIGHTS, Sizes, Units
from wellcal.predictions import Predictions
from wellcal.predictions.misspecification import MEANS, SPREADS, centre_and_scale, kind_of_error

_LEAST = 1e-300  # positive, and with a logarithm
_FARTHEST = 600.0  # logarithms that have an exponential
_STEPS, _CLOSE, _NUDGE = 40, 1e-9, 1e-5  # of Newton's method
_LONGEST = 1.0  # step of it


class Line(NamedTuple):
    """Targets where they have no ends: there and back."""

    there: Callable[[NDArray], NDArray]
    back: Callable[[NDArray], NDArray]


def _logarithm(x: NDArray) -> NDArray:
    return np.log(np.maximum(x, _LEAST))


def _log_odds(x: NDArray) -> NDArray:
    return _logarithm(x) - _logarithm(1.0 - x)


def _exponential(x: NDArray) -> NDArray:
    return np.exp(np.clip(x, -_FARTHEST, _FARTHEST))


POSITIVE, SHARES = Line(_logarithm, _exponential), Line(_log_odds, special.expit)


class BentUnits(Units):
    """From means and spreads of normal scores to those of targets that have ends.

    Examples
    --------
    >>> import wellcal as wc
    >>> gammas = wc.Gamma(np.full(3, 2.0), np.ones(3))
    >>> levels = (np.arange(5000)[:, None] + 0.5) / 5000.0
    >>> scores = special.ndtri(gammas.cdf(1.5 * np.asarray(gammas.quantile(levels))))
    >>> found = BentUnits(gammas, POSITIVE).together(float(scores.mean()), float(np.log(scores.std())))
    >>> found.sizes.round(2), round(float(np.log(1.5)), 2)  # 1 / sqrt(2) of a standard deviation
    (array([0.71, 0.41]), 0.41)
    """

    def __init__(self, predictions: Predictions, line: Line) -> None:
        super().__init__(predictions)
        self._line = line

    def among(self, cases: NDArray) -> BentUnits:
        """The same of some cases, whose scores bend as their own predictions do."""
        assert self._predictions is not None
        return BentUnits(self._predictions[cases], self._line)

    def shift(self, mean: float) -> float:
        """How far means of targets lie above those of their predictions where they are only moved."""
        return float(self._solved(mean, None).sizes[0])

    def log_spread(self, spread: float) -> float:
        """Logarithm of the true spread over the predicted one where targets are only stretched."""
        return float(self._solved(None, spread).sizes[1])

    def together(self, mean: float, spread: float) -> Sizes:
        """Both, from the mean and the logarithm of the spread of scores, and how they change with these."""
        return self._solved(mean, spread)

    # -- targets that are moved and stretched ------------------------------------------------------

    @cached_property
    def _away(self) -> tuple[NDArray, NDArray]:
        """Centre ``(cases,)`` and what is on either side ``(nodes, cases)``, where targets have no ends."""
        there = self._line.there(self._quantiles)
        centre = WEIGHTS @ there
        return centre, there - centre

    @cached_property
    def _predicted(self) -> tuple[NDArray, NDArray]:
        """Means and standard deviations by the nodes that altered ones are had from."""
        return _moments(self._quantiles)

    @cached_property
    def _unit(self) -> NDArray:
        return centre_and_scale(self._some)[1] if self._has_moments else self._some.interquartile_range()

    def _altered(self, move: float, stretch: float) -> tuple[NDArray, NDArray]:
        """Mean and log spread of scores, and sizes of errors, of targets that are altered."""
        centre, away = self._away
        targets = self._line.back(centre + move + np.exp(stretch) * away)
        scores = self._scores(targets)
        mean = float(np.mean(WEIGHTS @ scores))
        square = float(np.mean(WEIGHTS @ (scores - mean) ** 2))
        means, spreads = _moments(targets)
        was, spread = self._predicted
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            shift = np.mean((means - was) / self._unit)
            ratio = np.mean(_logarithm(spreads) - _logarithm(spread))
        return np.array([mean, 0.5 * np.log(max(square, 1e-30))]), np.array([shift, ratio])

    def _solved(self, mean: float | None, spread: float | None) -> Sizes:
        """Targets altered until scores are as wanted, by Newton's method; what is None is left alone."""
        free = np.array([mean is not None, spread is not None])
        wanted = np.array([mean or 0.0, spread or 0.0])
        at = np.zeros(2)
        found, gap, inverse = self._near(at, free, wanted)
        for _ in range(_STEPS):
            if np.abs(gap).max() < _CLOSE:
                break
            step = inverse @ gap
            at = at + step * min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-300))
            found, gap, inverse = self._near(at, free, wanted)
        return found

    def _near(self, at: NDArray, free: NDArray, wanted: NDArray) -> tuple[Sizes, NDArray, NDArray]:
        """Sizes of an alteration, how far its scores are from those wanted, and what takes them there."""
        scores, sizes = self._altered(*at)
        slopes, of_sizes = np.eye(2), np.zeros((2, 2))
        for k in np.flatnonzero(free):
            nudged = at.copy()
            nudged[k] += _NUDGE
            more, larger = self._altered(*nudged)
            slopes[:, k], of_sizes[:, k] = (more - scores) / _NUDGE, (larger - sizes) / _NUDGE
        slopes[~free] = np.eye(2)[~free]
        inverse = np.linalg.pinv(slopes)
        return Sizes(sizes, of_sizes @ inverse), np.where(free, wanted - scores, 0.0), inverse


def _moments(targets: NDArray) -> tuple[NDArray, NDArray]:
    means = WEIGHTS @ targets
    with np.errstate(over="ignore"):
        return means, np.sqrt(WEIGHTS @ (targets - means) ** 2)


def line_of(predictions: Predictions) -> Line | None:
    """Where targets of scalar predictions have no ends: None where they have none as they are.

    Examples
    --------
    >>> import wellcal as wc
    >>> line_of(wc.Gamma([1.0], [1.0])) is POSITIVE, line_of(wc.Laplace([0.0], [1.0]))
    (True, None)
    """
    if predictions.target_domain is unit_interval:
        return SHARES
    positive = predictions.target_domain is nonnegative or kind_of_error(predictions) == MEANS
    return POSITIVE if positive else None


def units_of(predictions: Predictions) -> Units:
    """Units for scalar predictions that can be moved and stretched; others keep those of scores.

    Examples
    --------
    >>> import wellcal as wc
    >>> cauchy = units_of(wc.StudentT(np.ones(3), np.zeros(3), np.ones(3)))
    >>> round(float(np.exp(cauchy.log_spread(np.log(1.267)))), 2)
    2.0
    >>> cauchy.unit, round(units_of(wc.Normal(np.zeros(3), np.ones(3))).shift(0.3), 2)
    ('interquartile ranges', 0.3)
    """
    known = predictions.event_shape == () and predictions.continuous and not are_normal(predictions)
    if not (known and predictions.supports("cdf") and predictions.supports("quantile")):
        return PLAIN
    line = line_of(predictions)
    if line is not None:
        return BentUnits(predictions, line)
    return Units(predictions) if kind_of_error(predictions) == SPREADS else PLAIN
