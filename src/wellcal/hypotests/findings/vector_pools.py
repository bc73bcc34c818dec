"""Draws of vectors and their target as one pool: what is known of them with each member as the target.

Errors go with what the draws alone say, and not with the mean of draws and outcome: an outcome that is far
off pulls that mean, so that a spread that is wrong would look like a trend. One draw says where a case lies,
the others whether its target is above them, for each draw in turn, as in `wellcal.hypotests.findings.pooled`.
All of it depends on which member of the pool is the target, in every set of targets alike, so that p-values
by resampling are exact.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.parts.centres import above_zero
from wellcal.hypotests.parts.polynomials import legendre
from wellcal.measures.ranks import middle_ranks
from wellcal.problem.target_resampling import moments_of_others

_ROUNDING, _ROUNDED = 1e-9, 1e-14  # of spreads, and of squares
_CHANCE = 0.05  # share of the variance of log spreads that may be chance


class Members:
    """One coordinate of pools, ``(n, m)``: which member a target is, and polynomials of levels of members.

    A draw says by these where a case lies, which errors may go with.

    Attributes
    ----------
    total, products
        Sums over members of polynomials, ``(K, n)``, and of products of two of them, ``(K, K, n)``.

    Examples
    --------
    >>> members = Members(np.array([[3.0, 1.0, 1.0], [5.0, 7.0, 9.0]]), 1)
    >>> members.find(np.array([[3.0, 7.0], [1.0, 9.0]])) % 3  # equal ones are one
    array([[0, 1],
           [2, 2]])
    """

    def __init__(self, values: NDArray, degree: int) -> None:
        n, m = values.shape
        self._degree = degree
        self.levels = levels_of(values)
        self._order = np.argsort(values, axis=1, kind="stable")
        ordered = np.take_along_axis(values, self._order, axis=1)
        self._steps = [2**k for k in reversed(range(m.bit_length()))]
        # From which number on a member is nearer than the one before it; up to a power of two, for halving.
        self._from = np.full((n, 2 * self._steps[0]), np.inf)
        self._from[:, 1:m] = ordered[:, :-1] + 0.5 * np.diff(ordered, axis=1)
        members = list(self._columns())
        self.total = np.stack([column.sum(axis=1) for column in members])
        self.products = np.array([[np.sum(one * other, axis=1) for one in members] for other in members])

    def find(self, targets: NDArray) -> NDArray:
        """Places of targets ``(r, n)`` among all members, case by case."""
        n, width = self._from.shape
        cases, starts = np.arange(n), self._from.reshape(-1)
        place = np.zeros(targets.shape, dtype=np.intp)
        for step in self._steps:
            place += step * (targets >= starts[cases * width + place + step])
        m = self._order.shape[1]
        return cases * m + self._order.reshape(-1)[cases * m + place]

    def table(self) -> NDArray:
        """Polynomials of all members ``(K, n, m)``."""
        return np.stack(list(self._columns()))

    def _columns(self, cases: NDArray | slice = slice(None)) -> Iterator[NDArray]:
        return legendre(self.levels[cases], self._degree)

    def combined(self, weights: NDArray, cases: NDArray | slice) -> NDArray:
        """Weighted sums of the polynomials of members of some cases ``(n, m)``."""
        columns = zip(weights, self._columns(cases), strict=True)
        return np.sum([weight * column for weight, column in columns], axis=0)

    def in_turn(self, apart: NDArray) -> NDArray:
        """Errors in turn of each member as the target ``(K, n, m)``, given how far from their mean it is."""
        draws = apart.shape[1] - 1
        found: list[NDArray] = []
        for column, total in zip(self._columns(), self.total, strict=True):
            product = np.sum(column * apart, axis=1, keepdims=True)
            found.append(errors_in_turn(apart, column, total[:, None], product, draws))
        return np.stack(found)


def errors_in_turn(apart: NDArray, own: NDArray, total: NDArray, product: NDArray, draws: int) -> NDArray:
    """Errors of targets about all draws but one, times a column of that one, for each in turn: the mean.

    Given that draw, the target is any of the others, and a spread that is wrong makes it as often too high as
    too low.

    Parameters
    ----------
    apart
        Targets less the mean of their pools.
    own
        The column of the targets.
    total, product
        Sums over all members of the column, and of the column times their distance from the mean.
    draws
        How many members are not the target.

    Examples
    --------
    Of draws 1 and 2 with columns 7 and 8, and the target 6: half of 4 times 7 and 5 times 8.

    >>> pool, column = np.array([1.0, 2.0, 6.0]), np.array([7.0, 8.0, 9.0])
    >>> float(errors_in_turn(pool[2] - 3.0, column[2], column.sum(), np.sum(column * (pool - 3.0)), 2))
    34.0
    """
    return (draws * apart * (total - own) + product - apart * own) / (draws * (draws - 1.0))


def levels_of(table: NDArray) -> NDArray:
    """Levels of numbers among all numbers in a table.

    Examples
    --------
    >>> levels_of(np.array([[3.0, 1.0], [3.0, 9.0]]))
    array([[0.5  , 0.125],
           [0.5  , 0.875]])
    """
    return middle_ranks(table.reshape(-1)).reshape(table.shape)


def standardised(lines: NDArray) -> NDArray:
    """Lines ``(..., n)`` with mean 0 and variance 1 over cases, where they differ.

    Where targets are far off, means of their draws are all among the lowest, or highest, of all members.

    Examples
    --------
    >>> standardised(np.array([[0.1, 0.2], [0.3, 0.3]]))
    array([[-1.,  1.],
           [ 0.,  0.]])
    """
    apart = lines - lines.mean(axis=-1, keepdims=True)
    spread = np.sqrt(np.mean(apart**2, axis=-1, keepdims=True))
    return apart / np.where(spread > _ROUNDING, spread, np.inf)


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


class VectorPool:
    """Pools of draws and target, in which the target comes last: three members or more.

    Sets of targets ``(r, n, d)`` take any member of each pool.

    Attributes
    ----------
    members
        As so many sets of targets, ``(m, n, d)``.
    centre
        Means of the pools, ``(n, d)``.
    draws
        How many members of a pool are not the target, S = m - 1.
    own
        Whether cases have a unit of their own, ``(d,)``: spreads of a few draws that differ by chance alone
        are taken together. In units of each of them errors would have heavy tails.
    """

    def __init__(self, values: NDArray, own: NDArray | None = None) -> None:
        """`values` ``(n, m, d)``; `own` where it is known."""
        self.members = np.moveaxis(np.asarray(values, dtype=np.float64), 1, 0)
        self.draws = len(self.members) - 1
        self._stretch = 1.0 + 1.0 / self.draws
        # In order, so that even rounding does not depend on which member is the target.
        self.centre = np.sort(self.members, axis=0).mean(axis=0)
        self._square = np.sort(self.apart(self.members) ** 2, axis=0).mean(axis=0)
        _, spreads = moments_of_others(np.sort(values, axis=1))
        # Draws without spread say what will be: any deviation counts in the unit of the others.
        typical = [above_zero(column.reshape(-1)) for column in np.moveaxis(spreads, 2, 0)]
        self._typical = np.median(typical, axis=1) ** 2 * (self.draws + 1.0) / (self.draws - 1.0)
        mean = np.sqrt(self._square.mean(axis=0))
        self._least = _ROUNDING * np.where(mean > 0.0, mean, 1.0)
        if own is None:
            # Without the member that is farthest off, be it the target or not.
            least = spreads.min(axis=1)
            own = np.array([spread_is_known(above_zero(column), self.draws) for column in least.T])
        self.own = own

    def apart(self, targets: NDArray) -> NDArray:
        """Targets less the mean of their pools."""
        return targets - self.centre

    def means(self, targets: NDArray) -> NDArray:
        """Means of the draws."""
        return self.centre - self.apart(targets) / self.draws

    def spreads(self, targets: NDArray) -> NDArray:
        """Standard deviations of the draws."""
        return np.sqrt(self.squares(targets) * ((self.draws - 1.0) / (self.draws + 1.0)))

    def squares(self, targets: NDArray) -> NDArray:
        """Squares of errors about the mean of the draws, if the model is calibrated, by each case alone.

        By the draws alone: a target that is far off widens its pool, so that in units of that an error looks
        smaller than it is.
        """
        square = np.maximum(self._square - self.apart(targets) ** 2 / self.draws, 0.0)
        return square * (self._stretch**2 * self.draws / (self.draws - 1.0))

    def units(self, targets: NDArray, together: tuple[int, ...] = (-2,)) -> NDArray:
        """How far errors spread if the model is calibrated: by all cases, or those that have their own.

        All cases are those along some axes.
        """
        squares, own = self.squares(targets), self.own
        if np.any(own):
            squares = np.where(own & (squares <= _ROUNDED * self._square), self._typical, squares)
        squares[..., ~own] = squares[..., ~own].mean(axis=together, keepdims=True)
        return np.maximum(np.sqrt(squares), self._least)

    def residuals(self, targets: NDArray) -> NDArray:
        """Errors about the mean of the draws, in these units."""
        return self._stretch * self.apart(targets) / self.units(targets)

    def of_members(self) -> NDArray:
        """Residuals of each member as the target, ``(n, m, d)``."""
        units = self.units(self.members, together=(0, 1))
        return np.moveaxis(self._stretch * self.apart(self.members) / units, 0, 1)
