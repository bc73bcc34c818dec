"""Ends of regions at the resolution of cases, by likelihood.

Grids are rough, so that all their groups can be looked at in all sets of targets. Which group is told is a
question about the observed targets only: its ends are moved to where these are most likely, under the
assumption that targets deviate in the group, by the same amount, and nowhere else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.witnesses.axes import Region

PRICE = 6.0
"""Twice the log-likelihood that a number in a description must gain.

Somewhere near the end of a group that errs everywhere, targets look well by chance: a cut there gains more
than x with a probability of at most exp(-x / 2), which is .05.
"""

SIZES = (0.2, 0.4, 0.7, 1.1, 1.6, 2.4, 3.6)
"""Changes of log odds at which many groups are compared."""

SLACK = 2.0
"""Twice the log-likelihood that room for a short number may cost."""

ALIKE = 1e-12
"""Difference of probabilities that count as the same."""

_MOST = 6.0  # change of log odds
_SWEEPS = 12
_STEPS = 20


@dataclass(frozen=True)
class Deviation:
    """Deviations of observed targets in a direction, and how likely they are if targets err by some size.

    An event has its log odds raised by the size, another function of the target its mean by the size times
    its variance, times the weight of a case: the sum over cases, weighted, is what tells such errors best.

    Attributes
    ----------
    observed
        Function minus expectation, for the observed targets, ``(n,)``.
    expected
        The expectation, ``(n,)``.
    variance
        The variance of each case, ``(n,)``.
    weights
        Weights of cases, zero for those that do not count, ``(n,)``.
    happens
        Whether the function is that of an event.
    """

    observed: NDArray
    expected: NDArray
    variance: NDArray
    weights: NDArray
    happens: bool

    def gains(self, size: float) -> NDArray:
        """Twice the logarithm of the likelihood ratio of each case, ``(n,)``."""
        t = size * self.weights
        if not self.happens:
            return t * (2.0 * self.observed - t * self.variance)
        if self._alike is not None:
            w, e = self._alike
            return 2.0 * (t * (self.observed + e) - (math.log1p(e * math.expm1(size * w)) / w) * self.weights)
        return 2.0 * (t * (self.observed + self.expected) - np.log1p(self.expected * np.expm1(t)))

    @cached_property
    def _alike(self) -> tuple[float, float] | None:
        """Weight and expectation of a case, where all that count have the same: one stands for all."""
        some = self.weights[self.weights != 0.0]
        if not len(some) or some.min() != some.max():
            return None
        low, high = float(self.expected.min()), float(self.expected.max())
        return (float(some[0]), 0.5 * (low + high)) if high - low <= ALIKE else None

    def size(self, mask: NDArray, sign: float) -> float:
        """The most likely size in a group, of the given sign."""
        w, e = self.weights[mask], self.expected[mask]
        total = float(w @ self.observed[mask])
        if self.happens and self._alike is not None:
            alike = np.array(self._alike)
            count = np.count_nonzero(w)
            w, e, total = alike[:1], alike[1:], total / max(count, 1)
        if not self.happens:
            variance = float(w**2 @ self.variance[mask])
            return total / variance if variance > 0.0 and total * sign > 0.0 else 0.0
        # The sum grows with the size: bisection ends where Newton's steps would leave the bracket.
        most = _MOST / max(float(w.max(initial=0.0)), 1e-300)
        low, high, at = 0.0, most, 0.25 * most
        for _ in range(_STEPS):
            grown = np.exp(sign * at * w)
            raised = e * grown / (1.0 - e + e * grown)
            short = sign * (total - float(w @ (raised - e)))
            low, high = (at, high) if short > 0.0 else (low, at)
            slope = float(w**2 @ (raised * (1.0 - raised)))
            new = at + short / slope if slope > 0.0 else low
            new = new if low < new < high else 0.5 * (low + high)
            if abs(new - at) <= 1e-6 * most:
                break
            at = new
        return sign * at

    def worth(self, mask: NDArray, sign: float, numbers: int) -> float:
        """Twice the log-likelihood ratio of a group at its likeliest size, less the price of its numbers."""
        return float(self.gains(self.size(mask, sign))[mask].sum()) - PRICE * numbers


class Found(NamedTuple):
    """A region, and what its description is worth."""

    region: Region
    worth: float


def refined(deviation: Deviation, region: Region, sign: float, *, outwards: bool = False) -> Found:
    """Move ends of a region to where observed targets are most likely, then to wide gaps nearby.

    One side after the other is the best of all that there are while the others stay, and the size of the
    error is the most likely one: each step makes targets more likely. `outwards` keeps all cases.
    """
    core = region.ends if outwards else None
    for _ in range(_SWEEPS):
        before = region.ends
        gains = deviation.gains(deviation.size(region.mask, sign))
        for j in range(len(region.axes)):
            upto = _upto(region, j, gains)
            region = _with(region, j, best_side(upto) if core is None else side_around(upto, core[j]))
        if region.ends == before:
            break
    gains = deviation.gains(deviation.size(region.mask, sign))
    for j in range(len(region.axes)):
        region = _with(
            region, j, _clear(region, j, _upto(region, j, gains), None if core is None else core[j])
        )
    return Found(region, deviation.worth(region.mask, sign, sum(region.cuts)))


def _with(region: Region, j: int, side: tuple[int, int]) -> Region:
    return replace(region, ends=(*region.ends[:j], side, *region.ends[j + 1 :]))


def _upto(region: Region, j: int, gains: NDArray) -> NDArray:
    """Sums of gains over none, one, two and so on of the values of a side, ``(m + 1,)``."""
    inside = gains
    for other in range(len(region.axes)):
        if other != j:
            inside = inside * region.side(other)
    axis = region.axes[j]
    by_value = np.bincount(axis.level, weights=inside, minlength=len(axis.ordered))
    return np.concatenate([[0.0], np.cumsum(by_value)])


def best_side(upto: NDArray) -> tuple[int, int]:
    """The side with the largest sum, less the price of its ends."""
    m = len(upto) - 1
    lowest = np.minimum.accumulate(upto[1:-1] + PRICE)  # of a cut at 1 .. m - 1
    closed = upto[1:m] - PRICE - lowest  # the empty one among them
    tops = [
        (upto[m], 0, m),
        (float(np.max(upto[1:m])) - PRICE, 0, 1 + int(np.argmax(upto[1:m]))),
        (upto[m] - float(lowest[-1]), 1 + int(np.argmin(upto[1:m])), m),
    ]
    last = int(np.argmax(closed))
    first = int(np.argmin(upto[1 : last + 2]))
    if first < last:
        tops.append((float(closed[last]), 1 + first, 1 + last))
    _, first, last = max(tops, key=lambda top: top[0])
    return first, last


def side_around(upto: NDArray, core: tuple[int, int]) -> tuple[int, int]:
    """The side with the largest sum that holds another, less the price of its ends."""
    below, above = upto[: core[0] + 1].copy(), upto[core[1] :].copy()
    below[1:] += PRICE
    above[:-1] -= PRICE
    return int(np.argmin(below)), core[1] + int(np.argmax(above))


def _clear(region: Region, j: int, upto: NDArray, core: tuple[int, int] | None) -> tuple[int, int]:
    """A side whose ends lie where there is more room for a short number, at little cost."""
    ordered = region.axes[j].ordered
    first, last = region.ends[j]
    inner, outer = (last - 1, first + 1) if core is None else core
    if first > 0:
        first = widest_gap(ordered, first, 1, min(inner, last - 1), upto - upto[first])
    if last < len(ordered):
        last = widest_gap(ordered, last, max(outer, first + 1), len(ordered) - 1, upto[last] - upto)
    return first, last


def widest_gap(ordered: NDArray, end: int, least: int, most: int, loss: NDArray) -> int:
    """The end, from `least` to `most`, in the widest gap around it of those that lose little.

    Widths are compared, not names: a change of unit must not move the end.
    """
    dear = np.flatnonzero(loss > SLACK)
    low = max(least, int(np.max(dear[dear < end], initial=0)) + 1)
    high = min(most, int(np.min(dear[dear > end], initial=len(ordered))) - 1)
    width = np.diff(ordered[low - 1 : high + 1])
    widest = low + np.flatnonzero(width >= np.max(width) * (1.0 - 1e-9))
    return int(widest[np.argmin(np.abs(widest - end))])
