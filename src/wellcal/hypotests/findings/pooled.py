"""Findings about draws that are pooled with their target, which is any of them if the model is calibrated.

Errors go with what the draws alone say. Which draws these are depends on which member of the pool is the
target, in every set of targets alike, so that p-values by resampling are exact.

Draws that happen to be high lie above their target, and the fewer there are and the more they scatter, the
more so: against the mean of all draws a spread that is wrong would look like a trend. So one draw says where
a case lies, and the others whether its target is above them, for each draw in turn. Given that draw, the
target is any of the others, and is above half of the time; a spread that is wrong does not change it.
"""

from __future__ import annotations

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.special import middle_ranks
from wellcal.hypotests.findings.draws import ABOVE, RANGE, DrawClaims, trend_names
from wellcal.hypotests.findings.scalars import SPREAD
from wellcal.hypotests.findings.splits import SPREAD as PREDICTED_SPREAD
from wellcal.hypotests.findings.splits import Summary, name_of_means
from wellcal.hypotests.parts.centres import above_zero
from wellcal.hypotests.parts.contrasts import contrasts_of, lines_and_curves
from wellcal.measures.score_units import PLAIN, AmongDraws
from wellcal.problem.drawn_targets import moments_of_others

_CHANCE = 0.05  # share of the variance of log spreads that may be chance
_CURVES = 2  # of the centre, beside its line
_OF_CASES = 4  # rows that all claims about draws have


class PooledClaims(DrawClaims):
    """The same for draws and target together."""

    def __init__(self, pool: NDArray) -> None:
        """`pool` of draws and target ``(n, S + 1)``, the target last."""
        self.pool, self.size = pool, pool.shape[1]
        # In order, so that even rounding does not depend on which member is the target.
        order = np.argsort(pool, axis=1, kind="stable")
        back = np.argsort(order, axis=1, kind="stable")
        moments = moments_of_others(np.take_along_axis(pool, order, axis=1))
        mean, spread = (np.take_along_axis(table, back, axis=1) for table in moments)
        spread = above_zero(spread)
        finite = bool(np.isfinite(mean).all() and np.isfinite(spread).all())
        # Without the member that is farthest off, be it the target or not.
        known = finite and spread_is_known(spread.min(axis=1), self.size - 1)
        named = (name_of_means(), mean, finite), (PREDICTED_SPREAD, spread, known)
        summaries = [Summary(name, table[:, -1], table) for name, table, there in named if there]
        weights = np.full(pool.shape, 1.0 / self.size)
        # What a closer look at shapes leaves out is that of the pool.
        least = spread.min(axis=1) if known else np.ones(len(pool))
        super().__init__(pool, weights, contrasts_of(pool.mean(axis=1), least), summaries)
        self.units = AmongDraws(self.size - 1) if self.size > 2 else PLAIN
        self.lines = list(range(1, len(summaries) + 1))
        count = 1 + len(summaries) + (_CURVES if finite else 0)
        self.names = [ABOVE, RANGE, SPREAD, *trend_names(count, self.lines)]
        columns = self._columns(order, mean, spread, known) if finite else np.empty((0, *pool.shape))
        self._number_members(columns)

    def _columns(self, order: NDArray, mean: NDArray, spread: NDArray, known: bool) -> NDArray:
        """Of each member as the target ``(K, n, S + 1)``: what it adds to trends of the centre; lines."""
        levels = [middle_ranks(table.reshape(-1)).reshape(table.shape) for table in (self.pool, mean, spread)]
        (line, _), curves = lines_and_curves([levels[0], levels[2]])
        (by_mean, by_spread), _ = lines_and_curves(levels[1:])
        above = self._rows(self.pool.T)[0].T - 0.5
        centres = [in_turn(column, order) for column in (line, *curves)]
        if not known:
            return np.stack([*centres, by_mean])
        return np.stack([centres[0], above * by_spread, *centres[1:], by_mean, by_spread])

    def _number_members(self, columns: NDArray) -> None:
        """A table of members by case and value: equal ones are one, with the mean of what they have."""
        self.distinct, number = np.unique(self.pool, return_inverse=True)
        keys = self._first_keys()[:, None] + number.reshape(self.pool.shape)
        self.keys, place = np.unique(keys, return_inverse=True)
        flat, count = place.reshape(-1), np.bincount(place.reshape(-1))
        self.table = np.empty((len(columns), len(count)))
        for row, column in zip(self.table, columns, strict=True):
            row[:] = np.bincount(flat, column.reshape(-1)) / count

    def _first_keys(self) -> NDArray:
        return np.arange(len(self.pool)) * len(self.distinct)

    def _rows(self, targets: NDArray) -> NDArray:
        """``(4, r, n)``, of the draws alone: without the target, which is one of the pool."""
        above = super()._by_case(targets)[0]
        outside = (targets <= self.low) | (targets >= self.high)
        draws = max(self.size - 1.0, 1.0)
        # (y - mean of draws) / sqrt(1 + 1 / draws)
        error = (targets - self.mean) * np.sqrt(self.size / draws)
        rest = np.maximum(self.size * self.square - error**2, 0.0)
        return np.stack([above, outside, error, rest / max(draws - 1.0, 1.0)])

    def _by_case(self, targets: NDArray) -> NDArray:
        """The same, and the columns of the members that are targets, ``(4 + K, r, n)``."""
        keys = self._first_keys() + np.searchsorted(self.distinct, targets)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.concatenate([self._rows(targets), self.table[:, place]])

    def _trends(self, by_case: NDArray, relative: NDArray, cases: NDArray | slice) -> list[NDArray]:
        """Means of what members add, and of squares of relative errors times lines."""
        centres = by_case[_OF_CASES : len(by_case) - len(self.lines)]
        return [centres.mean(axis=2).T, (relative * self._lines(by_case)).mean(axis=2).T]

    def _lines(self, by_case: NDArray) -> NDArray:
        """What trends of the spread go with, of the members that are targets."""
        return by_case[len(by_case) - len(self.lines) :]

    def _fitted(self) -> NDArray:
        """Their mean alone: a line in the mean of draws would take with it how far that is off by chance."""
        return np.ones((len(self.pool), 1))

    def _members(self) -> NDArray:
        """What is known of each member of a pool as the target, ``(4, n, S + 1)``."""
        return np.swapaxes(self._rows(self.pool.T), 1, 2)


def in_turn(column: NDArray, order: NDArray) -> NDArray:
    """For each member ``(n, m)`` as the target: whether it is above, times a column of a draw, on average.

    It is compared with the draws other than that one, for each of them in turn: .5 where it is in the upper
    half of these and itself, and -.5 in the lower one. `order` sorts the members.

    Examples
    --------
    >>> in_turn(np.array([[1.0, 2.0, 4.0]]), np.array([[0, 1, 2]]))
    array([[-1.5 ,  0.75,  0.75]])
    """
    m = column.shape[1]
    ordered = np.take_along_axis(column, order, axis=1)
    upto = np.cumsum(ordered, axis=1)
    lower, higher = upto - ordered, upto[:, -1:] - upto
    place = np.arange(m)  # among all members; without a lower one it is one less
    half = [0.5 * np.sign(2.0 * among - (m - 2.0)) for among in (place - 1, place)]
    found = np.empty_like(column)
    np.put_along_axis(found, order, (half[0] * lower + half[1] * higher) / max(m - 1, 1), axis=1)
    return found


def spread_is_known(spread: NDArray, draws: int) -> bool:
    """Whether spreads of draws differ by more than chance makes them differ.

    Spreads that happen to be small among few draws are too small: that is chance, not an error that goes
    with the predicted spread.

    Examples
    --------
    >>> spread_is_known(np.array([0.9, 1.0, 1.1]), 5), spread_is_known(np.array([0.1, 1.0, 10.0]), 50)
    (False, True)
    """
    chance = 0.5 / max(draws - 2.0, 1.0)  # variance of the logarithm of a standard deviation
    differ = float(np.var(np.log(np.maximum(spread, 1e-300))))
    return chance < _CHANCE * differ
