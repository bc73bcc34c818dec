"""Groups of cases that show a trend best, named by a round number of the predicted centre or spread."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.measures.round_numbers import cut_near, cut_text, distinct, round_number

_LEAST = 10  # cases on either side
_PLACES, _ROOM = (0.25, 0.5, 0.75), 0.04  # shares at which cases are split, and how far a round number may be
_FINE_PLACES = (0.1, 0.5, 0.9)  # the same for errors that bend twice
_SINGULAR = 1.0 - 1e-9
_CASES_PER_COLUMN = 10  # of a fit within a group
_COLLINEAR = 1e-9  # share of columns that is rounding: within a group some of them may be the same


SPREAD, OUTER = "predicted spread", "distance of the outer quantiles"
"""What summaries of the spread of predictions are called."""


class Summary(NamedTuple):
    """A number of each prediction, and what it is called.

    Of predictions that are draws `swapped` has the number that there would be if a member of the pool were
    the target, ``(n, S + 1)``.
    """

    name: str
    values: NDArray
    swapped: NDArray | None = None


def name_of_means(coordinate: int | None = None) -> str:
    """What the means of predictions are called that cases are told by.

    Examples
    --------
    >>> name_of_means(), name_of_means(0)
    ('predicted mean', 'predicted mean of coordinate 1')
    """
    return "predicted mean" if coordinate is None else f"predicted mean of coordinate {coordinate + 1}"


class Split(NamedTuple):
    """Cases inside of a group, names of the group and of its complement, and what cases are split by.

    Of draws `swapped` says which members of the pool put their case inside when they are the target.
    """

    inside: NDArray
    name: str
    complement: str
    by: str
    swapped: NDArray | None = None


def each_split(summaries: list[Summary], fine: bool = False) -> Iterator[Split]:
    """Groups above a number, and between two; with `fine` also those that a curve with two bends has."""
    for summary in summaries:
        cuts = [_cut(summary.values, place) for place in _PLACES]
        for cut in sorted({cut for cut in cuts if cut is not None}):
            yield from _kept(summary, cut, math.inf, f"above {cut_text(cut)}", f"below {cut_text(cut)}")
        yield from _between(summary, cuts[0], cuts[-1])
        if fine:
            low, middle, high = (_cut(summary.values, place) for place in _FINE_PLACES)
            yield from _between(summary, low, middle)
            yield from _between(summary, middle, high)


def _between(summary: Summary, low: float | None, high: float | None) -> Iterator[Split]:
    if low is not None and high is not None and low < high:
        between = f"between {cut_text(low)} and {cut_text(high)}"
        yield from _kept(summary, low, high, between, f"not {between}")


def _kept(summary: Summary, low: float, high: float, where: str, elsewhere: str) -> Iterator[Split]:
    def within(values: NDArray) -> NDArray:
        return (values > low) & (values <= high)

    inside, name = within(summary.values), summary.name
    if _LEAST <= np.count_nonzero(inside) <= len(inside) - _LEAST:
        swapped = None if summary.swapped is None else within(summary.swapped)
        yield Split(inside, f"where the {name} is {where}", f"where the {name} is {elsewhere}", name, swapped)


def _cut(values: NDArray, place: float) -> float | None:
    """A round number about a quantile, or between the values nearest to it that differ; None without such.

    Examples
    --------
    >>> values = np.repeat([1.0, 2.0, 5.0], [30, 30, 40])
    >>> [_cut(values, place) for place in _PLACES], _cut(np.ones(9), 0.5)
    ([1.5, 4.0, 4.0], None)
    """
    low, high = np.quantile(values, [place - _ROOM, place + _ROOM])
    cut = cut_near(values, float(low), float(high))
    if cut is not None:
        return cut
    ordered = distinct(values)
    if len(ordered) < 2:
        return None
    middles = 0.5 * (ordered[1:] + ordered[:-1])
    shares = np.searchsorted(np.sort(values), middles) / len(values)
    nearest = int(np.argmin(np.abs(shares - place)))
    return round_number(float(ordered[nearest]), float(ordered[nearest + 1]))


class Side(NamedTuple):
    """A quantity in some cases: estimate, standard error, and what each case adds to its error.

    The estimate is less what is `usual` there: where draws happen to be high their targets lie below them.
    """

    value: float
    error: float
    influence: NDArray
    usual: float = 0.0

    @property
    def off(self) -> float:
        """How far it is from zero, in standard errors."""
        return abs(self.value) / self.error if self.error > 0.0 else 0.0

    def or_as(self, other: Side, reach: float) -> Side:
        """The same with an interval, of so many standard errors, that holds those of both.

        Examples
        --------
        >>> none = np.zeros(2)
        >>> Side(1.0, 0.5, none).or_as(Side(0.0, 0.25, none), 2.0)[:2]
        (0.75, 0.625)
        """
        low = min(side.value - reach * side.error for side in (self, other))
        high = max(side.value + reach * side.error for side in (self, other))
        return self._replace(value=0.5 * (low + high), error=0.5 * (high - low) / reach)


Measure = Callable[[NDArray], tuple[float, NDArray]]
"""From values of some cases to their quantity, and to what each of them adds to its error."""


class Contrast(NamedTuple):
    """A split and a quantity on both of its sides, and the difference of these."""

    split: Split
    inside: Side
    outside: Side
    difference: Side

    def or_as(self, other: Contrast, reach: float) -> Contrast:
        """The same where quantities are had in two ways, with intervals that hold both."""
        sides = (one.or_as(two, reach) for one, two in zip(self[1:], other[1:], strict=True))
        return Contrast(self.split, *sides)


def contrast_of(
    measure: Measure,
    values: NDArray,
    split: Split,
    groups: NDArray | None,
    members: NDArray | None = None,
) -> Contrast:
    """A quantity on both sides of a split; cases of one of `groups` depend on each other.

    Of draws `members` are the values that there would be with each member of the pool as the target,
    ``(n, S + 1, ...)``. What calibration makes of a side is the quantity of all members that are on that side
    when they are the target, as in `wellcal.witnesses.swapped`.
    """
    inside = side_of(measure, values, split.inside, groups)
    outside = side_of(measure, values, ~split.inside, groups)
    if members is not None and split.swapped is not None:
        inside = _less_usual(inside, measure, members[split.swapped])
        outside = _less_usual(outside, measure, members[~split.swapped])
    influence = inside.influence - outside.influence
    difference = Side(inside.value - outside.value, _error(influence, groups), influence)
    return Contrast(split, inside, outside, difference)


def side_of(measure: Measure, values: NDArray, some: NDArray, groups: NDArray | None) -> Side:
    """A quantity of some of the cases."""
    value, parts = measure(values[some])
    count = len(parts) if groups is None else len(np.unique(groups[some]))
    influence = np.zeros(len(values))
    influence[some] = parts * np.sqrt(count / max(count - 1.0, 1.0))
    return Side(value, _error(influence, groups), influence)


def _less_usual(side: Side, measure: Measure, members: NDArray) -> Side:
    usual = measure(members)[0]
    return side._replace(value=side.value - usual, usual=usual)


def _error(influence: NDArray, groups: NDArray | None) -> float:
    """Root of the sum of squares over cases, or over sums of clusters."""
    added = influence if groups is None else np.bincount(groups, weights=influence)
    return float(np.sqrt(np.sum(added**2)))


def mean_of(values: NDArray) -> tuple[float, NDArray]:
    """A mean.

    Examples
    --------
    >>> mean_of(np.array([1.0, 3.0]))
    (2.0, array([-0.5,  0.5]))
    """
    mean = float(values.mean())
    return mean, (values - mean) / len(values)


def log_spread_of(values: NDArray) -> tuple[float, NDArray]:
    """The logarithm of the root mean square."""
    squares = values**2
    mean = max(float(squares.mean()), 1e-8)
    return 0.5 * float(np.log(mean)), 0.5 * (squares - squares.mean()) / mean / len(values)


def fitted(
    measure: Measure, columns: NDArray, values: NDArray, free: int | None = None
) -> tuple[Measure, NDArray]:
    """A measure of what `columns` leave of values ``(n,)`` or ``(n, c)`` on each side, and its values.

    Columns are fitted on each side by itself: in a fit of all cases the noise of a side that spreads far
    would be taken out of the other one, and a step between the sides would be left on both. With `free` only
    so many of the values are fitted, the first ones.

    Examples
    --------
    >>> step = np.repeat([0.0, 50.0], 100) + np.tile([-1.0, 1.0], 100)
    >>> about, values = fitted(log_spread_of, np.ones((200, 1)), step)
    >>> float(np.exp(about(values[:100])[0]).round(2)), float(np.exp(about(values[100:])[0]).round(2))
    (1.01, 1.01)
    """
    shape = values.shape[1:]
    count = shape[0] if shape else 1
    free = count if free is None else free

    def about(some: NDArray) -> tuple[float, NDArray]:
        rest, share = _left(some[:, :free], some[:, count:])
        value, influence = measure(np.concatenate([rest, some[:, free:count]], axis=1).reshape(-1, *shape))
        return value, influence / share

    return about, np.concatenate([values.reshape(-1, count), columns], axis=1)


def _left(values: NDArray, columns: NDArray) -> tuple[NDArray, float]:
    """What columns leave of values, spread as far as their errors, and the root of the share that is left.

    The fewer cases there are, the fewer columns are taken out; the mean always is, which comes first.
    """
    n = len(values)
    columns = columns[:, : max(n // _CASES_PER_COLUMN, 1)]
    coefficients, _, rank, _ = np.linalg.lstsq(columns, values, rcond=_COLLINEAR)
    share = float(np.sqrt((n - rank) / n)) if n > rank else 1.0
    return (values - columns @ coefficients) / share, share


def log_ratio_of(values: NDArray) -> tuple[float, NDArray]:
    """Half the logarithm of the mean square of errors over that of what is expected, of values ``(n, 2)``.

    Examples
    --------
    >>> errors, squares = np.array([-3.0, 3.0]), np.array([1.0, 1.0])
    >>> float(np.exp(log_ratio_of(np.stack([errors, squares], axis=1))[0]).round(9))
    3.0
    """
    squares = np.stack([values[:, 0] ** 2, values[:, 1]], axis=1)
    above, below = (max(float(mean), 1e-300) for mean in squares.mean(axis=0))
    influence = 0.5 * (squares[:, 0] / above - squares[:, 1] / below) / len(values)
    return 0.5 * float(np.log(above / below)), influence


def correlation_of(values: NDArray) -> tuple[float, NDArray]:
    """Fisher's transform of the correlation of two columns whose means are 0, ``(n, 2)``."""
    scale = np.sqrt(np.maximum(np.mean(values**2, axis=0), 1e-300))
    u, v = values[:, 0] / scale[0], values[:, 1] / scale[1]
    product: NDArray = u * v
    found = min(max(float(product.mean()), -_SINGULAR), _SINGULAR)
    influence = (product - 0.5 * found * (u**2 + v**2)) / (1.0 - found**2) / len(values)
    return float(np.arctanh(found)), influence
