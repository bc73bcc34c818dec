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
from wellcal._arrays.special import middle_ranks
from wellcal.hypotests.findings.pooled import spread_is_known
from wellcal.hypotests.parts.centres import above_zero
from wellcal.hypotests.parts.polynomials import legendre

_ROUNDING = 1e-9


class Levels:
    """From numbers to their levels among some numbers, which they are between or equal to.

    Examples
    --------
    >>> Levels(np.array([[3.0, 1.0], [3.0, 9.0]]))(np.array([1.0, 3.0, 6.0]))
    array([0.125 , 0.5   , 0.6875])
    """

    def __init__(self, table: NDArray) -> None:
        self._at, place = np.unique(table, return_inverse=True)
        self._levels = np.empty(len(self._at))
        self._levels[place.reshape(-1)] = middle_ranks(table.reshape(-1))

    def __call__(self, values: NDArray) -> NDArray:
        """Levels between 0 and 1."""
        return np.interp(values, self._at, self._levels)

    def line(self, values: NDArray) -> NDArray:
        """The same with mean 0, over all members."""
        return self(values) - 0.5


class Columns:
    """What errors may go with where one draw says where a case lies: polynomials of its level.

    Attributes
    ----------
    total, squares
        Sums over members of these, and of their squares, ``(K, n)``.
    """

    def __init__(self, values: NDArray, degree: int) -> None:
        """`values` of one coordinate ``(n, m)``."""
        self._levels, self._degree = Levels(values), degree
        self._known = self._levels(values)
        members = list(self._members())
        self.total = np.stack([column.sum(axis=1) for column in members])
        self.squares = np.stack([np.sum(column**2, axis=1) for column in members])

    def __call__(self, targets: NDArray) -> NDArray:
        """Those of targets ``(r, n)``, which are members: ``(K, r, n)``."""
        return np.stack(list(legendre(self._levels(targets), self._degree)))

    def _members(self, cases: NDArray | slice = slice(None)) -> Iterator[NDArray]:
        """Those of all members of some cases ``(n, m)``, one after the other."""
        return legendre(self._known[cases], self._degree)

    def combined(self, weights: NDArray, cases: NDArray | slice) -> NDArray:
        """Weighted sums of the columns of members ``(n, m)``."""
        columns = zip(weights, self._members(cases), strict=True)
        return np.sum([weight * column for weight, column in columns], axis=0)

    def others(self, own: NDArray, cases: NDArray | slice = slice(None)) -> NDArray:
        """Sums over the draws of some cases, given those of targets ``(K, r, n)``."""
        return self.total[:, None, cases] - own

    def times(self, values: NDArray) -> NDArray:
        """Sums over members of columns times values ``(n, m)``: ``(K, n)``."""
        return np.stack([np.sum(column * values, axis=1) for column in self._members()])


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

    def __init__(self, values: NDArray) -> None:
        """`values` ``(n, m, d)``."""
        self.members = np.moveaxis(np.asarray(values, dtype=np.float64), 1, 0)
        self.draws = len(self.members) - 1
        self._stretch = 1.0 + 1.0 / self.draws
        # In order, so that even rounding does not depend on which member is the target.
        self.centre = np.sort(self.members, axis=0).mean(axis=0)
        self._unit = above_zero(np.sqrt(np.sort(self.apart(self.members) ** 2, axis=0).mean(axis=0)))
        # Without the member that is farthest off, be it the target or not.
        least = above_zero(self.spreads(self.members).min(axis=0))
        self.own = np.array([spread_is_known(column, self.draws) for column in least.T])

    def apart(self, targets: NDArray) -> NDArray:
        """Targets less the mean of their pools."""
        return targets - self.centre

    def means(self, targets: NDArray) -> NDArray:
        """Means of the draws."""
        return self.centre - self.apart(targets) / self.draws

    def spreads(self, targets: NDArray) -> NDArray:
        """Standard deviations of the draws."""
        square = self._unit**2 - self.apart(targets) ** 2 / self.draws
        return np.sqrt(np.maximum(self._stretch * square, 0.0))

    def units(self, targets: NDArray, together: tuple[int, ...] = (-2,)) -> NDArray:
        """How far errors about the mean of the draws spread if the model is calibrated.

        By the draws alone: a target that is far off widens its pool, so that in units of that an error looks
        smaller than it is. Where cases have no unit of their own, one is made of those along some axes.
        """
        squares = self.spreads(targets) ** 2 * (self.draws / (self.draws - 1.0))
        squares[..., ~self.own] = squares[..., ~self.own].mean(axis=together, keepdims=True)
        return np.sqrt(self._stretch) * np.maximum(np.sqrt(squares), _ROUNDING * self._unit)

    def residuals(self, targets: NDArray) -> NDArray:
        """Errors about the mean of the draws, in these units."""
        return self._stretch * self.apart(targets) / self.units(targets)

    def of_members(self) -> NDArray:
        """Residuals of each member as the target, ``(n, m, d)``."""
        units = self.units(self.members, together=(0, 1))
        return np.moveaxis(self._stretch * self.apart(self.members) / units, 0, 1)

    def in_turn(self, apart: NDArray, own: NDArray, total: NDArray, products: NDArray) -> NDArray:
        """Errors of targets about all draws but one, times a column of that one, for each in turn: the mean.

        Given that draw, the target is any of the others, and a spread that is wrong makes it as often too
        high as too low.

        Parameters
        ----------
        apart
            Targets less the mean of their pools, one coordinate of them, ``(r, n)``.
        own
            Columns of the targets ``(K, r, n)``.
        total, products
            Sums over all members of columns, and of columns times their distance from the mean of the pool,
            ``(K, n)``.

        Examples
        --------
        >>> pool = VectorPool(np.array([[[1.0], [2.0], [6.0]]]))
        >>> column, apart = np.array([[[1.0, 0.0, 3.0]]]), pool.apart(pool.members)[..., 0].T
        >>> pool.in_turn(apart[:, 2:], column[..., 2:], column.sum(axis=2), (column * apart).sum(axis=2))
        array([[[2.]]])
        """
        draws, total, products = self.draws, total[:, None], products[:, None]
        return (draws * apart * (total - own) + products - apart * own) / (draws * (draws - 1.0))


def has_moments(pool: NDArray) -> bool:
    """Whether pools ``(n, m, ...)`` have two draws or more, of numbers that can be squared.

    Examples
    --------
    >>> (
    ...     has_moments(np.zeros((4, 3, 2))),
    ...     has_moments(np.zeros((4, 2, 2))),
    ...     has_moments(np.full((4, 3), 1e200)),
    ... )
    (True, False, False)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        square = float(np.sum(np.asarray(pool, dtype=np.float64) ** 2))
    return pool.shape[1] > 2 and bool(np.isfinite(square))
