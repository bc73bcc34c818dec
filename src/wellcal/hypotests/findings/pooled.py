"""Findings about draws that are pooled with their target, which is any of them if the model is calibrated.

Errors go with what the draws alone say. Which draws these are depends on which member of the pool is the
target, in every set of targets alike, so that p-values by resampling are exact.

Draws that happen to be high lie above their target, and the fewer there are and the more they scatter, the
more so: against the mean of all draws a spread that is wrong would look like a trend. So one draw says where
a case lies, and the others whether its target is above them, for each draw in turn. Given that draw, the
target is any of the others, and is above half of the time; a spread that is wrong does not change it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.draws import ABOVE, RANGE, DrawClaims, trend_names
from wellcal.hypotests.findings.scalars import SPREAD, WIDTH
from wellcal.hypotests.findings.splits import SPREAD as PREDICTED_SPREAD
from wellcal.hypotests.findings.splits import Summary, name_of_means
from wellcal.hypotests.findings.vector_pools import levels_of, spread_is_known, standardised
from wellcal.hypotests.parts.centres import above_zero
from wellcal.hypotests.parts.contrasts import contrasts_of
from wellcal.hypotests.parts.polynomials import legendre
from wellcal.measures.score_units import PLAIN, AmongDraws
from wellcal.problem.target_resampling import moments_of_others

_DEGREE = 3  # of what the centre may follow: a line and two curves
_OF_CASES = 4  # rows that all claims about draws have
_FEWEST, _MOST_SETS = 3, 20  # draws of which one may be the target, and how many of them are


class PooledClaims(DrawClaims):
    """The same for draws and target together."""

    def __init__(self, pool: NDArray, own: bool | None = None) -> None:
        """`pool` of draws and target ``(n, S + 1)``, the target last; `own` spreads of cases, where known."""
        self.pool, self.size = pool, pool.shape[1]
        # In order, so that even rounding does not depend on which member is the target.
        order = np.argsort(pool, axis=1, kind="stable")
        back = np.argsort(order, axis=1, kind="stable")
        moments = moments_of_others(np.take_along_axis(pool, order, axis=1))
        mean, spread = (np.take_along_axis(table, back, axis=1) for table in moments)
        spread = above_zero(spread)
        self.finite = bool(np.isfinite(mean).all() and np.isfinite(spread).all())
        # Without the member that is farthest off, be it the target or not.
        least = spread.min(axis=1)
        self.own = self.finite and (spread_is_known(least, self.size - 1) if own is None else own)
        named = (name_of_means(), mean, self.finite), (PREDICTED_SPREAD, spread, self.own)
        summaries = [Summary(name, table[:, -1], table) for name, table, there in named if there]
        weights = np.full(pool.shape, 1.0 / self.size)
        # What a closer look at shapes leaves out is that of the pool.
        columns = contrasts_of(pool.mean(axis=1), least if self.own else np.ones(len(pool)))
        super().__init__(pool, weights, columns, summaries)
        self.units = AmongDraws(self.size - 1) if self.size > 2 else PLAIN
        self.lines = list(range(1, len(summaries) + 1))
        count = _DEGREE + len(summaries) if self.finite else 1
        self.names = [ABOVE, RANGE, SPREAD, *trend_names(count, self.lines)]
        self._number_members(self._columns(order) if self.finite else np.empty((0, *pool.shape)))

    def _columns(self, order: NDArray) -> NDArray:
        """Of each member as the target ``(K, n, S + 1)``.

        What it adds to trends of the centre, the means of draws that these go with, how often it is above in
        turn, and lines.
        """
        columns = np.stack(list(legendre(levels_of(self.pool), _DEGREE)))
        draws = (columns.sum(axis=2, keepdims=True) - columns) / max(self.size - 1, 1)
        turned = [in_turn(column, order) for column in (*columns, np.ones(self.pool.shape))]
        lines = [levels_of(one.swapped) for one in self.summaries if one.swapped is not None]
        return np.stack([*turned[:-1], *draws, turned[-1], *lines])

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
        """Means of what members add, less what all add that are too high, and of relative squares by lines.

        Where all targets are above their draws, what they add is how high the draws are among all members.
        """
        if not self.finite:
            return []
        turned, draws = by_case[_OF_CASES:][: 2 * _DEGREE].mean(axis=2).reshape(2, _DEGREE, -1)
        often = by_case[_OF_CASES + 2 * _DEGREE].mean(axis=1)
        lines = self._lines(by_case)
        by_spread = (by_case[0] * lines[1:]).mean(axis=2)
        line, *curves = turned - draws * often
        return [np.stack([line, *by_spread, *curves], axis=1), (relative * lines).mean(axis=2).T]

    def _lines(self, by_case: NDArray) -> NDArray:
        """What trends of the spread go with, of the members that are targets."""
        return standardised(by_case[len(by_case) - len(self.lines) :])

    def expected(self, scores: NDArray) -> NDArray:
        """Trends of the spread are those of draws alone.

        Of the targets that are drawn from a pool an outcome that is off is one: they lie far from low draws
        where it is high, and such a trend would be missing where all outcomes are too high.
        """
        if self.without is None:
            return scores
        members = self.without.pool[:, :: -(-(self.size - 1) // _MOST_SETS)].T
        among = self.without.scores(members).mean(axis=0)
        return np.where([name.startswith(WIDTH) for name in self.names], among, scores)

    @cached_property
    def without(self) -> PooledClaims | None:
        """The same without the observed targets, where there are draws enough: one of them is the target."""
        if not self.finite or self.size - 1 < _FEWEST:
            return None
        return PooledClaims(self.pool[:, :-1], self.own)

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
