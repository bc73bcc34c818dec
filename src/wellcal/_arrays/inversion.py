"""Distribution functions inverted: the smallest number, or whole number, at which one reaches a level."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray

_HALVED = 8  # one step in so many halves the bracket, whatever else is known
_INTERPOLATED = 20  # steps that interpolate, at most
_MARGIN = 1e-15  # probes stay so far from the ends, in units of x, or of what moves the function by as much
_MOST = 148  # steps
_FULL = 0.75  # share of rows that go on, below which the others are taken out


def count_quantile(
    cdf: Callable[..., NDArray], u: NDArray, mean: NDArray, variance: NDArray, *parameters: NDArray
) -> NDArray:
    """Smallest whole number k >= 0 with ``cdf(k, *parameters) >= u``: infinite for u = 1, NaN for no level.

    The search starts from the quantile of a gamma distribution of the same mean and variance, which is
    seldom more than a few counts off, and goes on where it has not ended.
    """
    shape = np.broadcast_shapes(u.shape, mean.shape)
    level, centre, spread, *rest = (
        np.broadcast_to(a, shape).ravel() for a in (u, mean, variance, *parameters)
    )
    usable = (level >= 0) & (level < 1)
    target = np.where(usable, level, 0.0)

    def reaches(k: NDArray, some: NDArray) -> NDArray:
        return cdf(k, *(a[some] for a in rest)) >= target[some]

    start = np.ceil(special.gammaincinv(centre**2 / spread, target) * (spread / centre) - 0.5)
    start = np.where((start > 0.0) & (start < 1e15), start, 0.0)
    reached = reaches(start, np.arange(len(start)))
    # Always cdf(low) < u <= cdf(high).
    low, high = np.where(reached, -1.0, start), np.where(reached, start, np.inf)
    for some, upwards in ((np.flatnonzero(~reached), True), (np.flatnonzero(reached & (high > 0.0)), False)):
        step = 1.0
        while len(some):
            k = low[some] + step if upwards else np.maximum(high[some] - step, 0.0)
            yes = reaches(k, some)
            high[some[yes]], low[some[~yes]] = k[yes], k[~yes]
            some = some[~yes] if upwards else some[yes & (k > 0.0)]
            step *= 2.0
    while len(some := np.flatnonzero(high - low > np.maximum(1.0, 1e-15 * high))):
        middle = np.floor(0.5 * (low[some] + high[some]))
        yes = reaches(middle, some)
        high[some[yes]], low[some[~yes]] = middle[yes], middle[~yes]
    found = np.where(usable, high, np.where(level == 1, np.inf, np.nan))
    return found.reshape(shape)


def bisect_quantile(
    cdf: Callable[[NDArray], Callable[[NDArray], NDArray]],
    u: NDArray,
    low: NDArray,
    high: NDArray,
    *,
    smooth: bool = False,
    whole: bool = False,
) -> NDArray:
    """Smallest x in ``[low, high]`` with ``cdf(x) >= u``, to neighbouring floating-point numbers.

    A bracket is halved, or divided where a line through its ends says, if the function is smooth: a third of
    the evaluations then. Rows that are done are left out. At most 128 halvings, so that a quantile very close
    to zero has an error of 2**-128 of the bracket.

    Parameters
    ----------
    cdf
        From positions of rows to the distribution function of these.
    u, low, high
        Levels ``(n,)``, and brackets: the caller guarantees ``cdf(high) >= u``.
    smooth
        Whether the function has no steps.
    whole
        Whether all steps are at whole numbers, as `low` and `high` are.

    Examples
    --------
    >>> bisect_quantile(
    ...     lambda rows: special.ndtr, np.array([0.5, 0.975]), np.full(2, -9.0), np.full(2, 9.0), smooth=True
    ... ).round(4)
    array([0.  , 1.96])
    """
    everywhere = cdf(np.arange(len(u)))
    at_low, at_high = everywhere(low) - u, everywhere(high) - u
    found = np.where(at_low >= 0.0, low, high)
    rows: NDArray = np.flatnonzero((at_low < 0.0) & (low < high))
    level, low, high, at_low, at_high = (a[rows] for a in (u, low, high, at_low, at_high))
    side, function = np.zeros(len(rows)), cdf(rows)
    for step in range(_MOST):
        middle = low + 0.5 * (high - low)
        middle = np.floor(middle) if whole else middle
        going = (middle > low) & (middle < high)
        left = np.count_nonzero(going)
        # Rows that are done cannot move: they are taken out when they are many, which copies all others.
        if left < _FULL * len(rows):
            found[rows[~going]] = high[~going]
            rows, level, low, high, at_low, at_high, side, middle = (
                a[going] for a in (rows, level, low, high, at_low, at_high, side, middle)
            )
            function = cdf(rows)
        if not left:
            break
        if smooth and step < _INTERPOLATED and step % _HALVED != _HALVED - 1:
            middle = _divided(low, high, middle, at_low, at_high)
        value = function(middle) - level
        reached = value >= 0.0
        # An end that stays twice is given half its weight, so that the next probe moves it (Illinois rule).
        at_low = np.where(reached, np.where(side > 0.0, 0.5 * at_low, at_low), value)
        at_high = np.where(reached, value, np.where(side < 0.0, 0.5 * at_high, at_high))
        side = np.where(reached, 1.0, -1.0)
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    found[rows] = high
    return found


def _divided(low: NDArray, high: NDArray, middle: NDArray, at_low: NDArray, at_high: NDArray) -> NDArray:
    """Return the point where a line through the ends of a bracket meets the level, a little off the ends."""
    gap, rise = high - low, at_high - at_low
    with np.errstate(all="ignore"):
        margin = np.minimum(0.5 * gap, _MARGIN * np.maximum(np.abs(middle), gap / rise))
        x = low - gap * (at_low / rise)
    return np.where(np.isfinite(x), np.minimum(np.maximum(x, low + margin), high - margin), middle)
