"""From values of statistics over exchangeable sets of targets to p-values.

Set 0 is the observed one. Under calibration all sets are exchangeable, so that the rank of set 0 among
them is uniform, whatever the statistic; also where a statistic is made from ranks of others, as long as
it treats all sets alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.checks import check_ndim, numeric_array, real_number
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.warnings import advise

EVIDENCE = "-log10 of the smallest weighted p-value"
"""What the statistic of several parts is called."""

MOST_EVIDENCE = 300.0
"""Where it ends: tails that are fitted to drawn sets underflow there."""


class Ranks(NamedTuple):
    """p-values ``(R + 1,)`` of all sets, and the smallest that the observed one could have had.

    Attributes
    ----------
    pvalues
        The observed set first.
    floor
        p-value of the observed set if the statistic that decides over it were beyond those of all drawn
        sets: what R resamples can give at best. 1 / (R + 1) for one statistic; more for the smallest of
        several, each of which has a set that is the first in it.
    """

    pvalues: NDArray
    floor: float


def monte_carlo_pvalue(statistic: float, null: NDArray) -> float:
    """``(1 + #{null >= statistic}) / (1 + R)``: never zero, and ties count against rejection.

    Values that differ by rounding only are ties.

    Parameters
    ----------
    statistic
        The observed value.
    null
        Values of the statistic for R drawn sets of targets, ``(R,)``.

    Examples
    --------
    >>> monte_carlo_pvalue(2.0, np.array([1.0, 2.0, 3.0]))
    0.75
    """
    drawn = to_numpy(numeric_array(null, "null"))
    check_ndim(drawn, "null", (1,))
    observed = real_number(statistic, "statistic")
    check_numbers(np.append(drawn, observed))
    exceed = int(np.count_nonzero(drawn >= observed - tie_width(observed, drawn)))
    return (1.0 + exceed) / (1.0 + len(drawn))


def rank_pvalues(values: NDArray) -> NDArray:
    """For each set the share of sets, itself included, whose statistic is as large or larger.

    Values that differ by rounding only are ties. The first entry is the p-value of the observed set.

    Examples
    --------
    >>> rank_pvalues(np.array([3.0, 1.0, 2.0, 3.0]))
    array([0.5 , 1.  , 0.75, 0.5 ])
    """
    check_numbers(values)
    ordered = np.sort(values)
    with np.errstate(invalid="ignore"):
        below = np.searchsorted(ordered, values - tie_width(values), side="left")
    return (len(values) - below) / len(values)


def smallest_pvalue(parts: Sequence[tuple[float, NDArray]]) -> NDArray:
    """Smallest p-value of each set over several statistics, each first divided by its weight.

    Examples
    --------
    >>> smallest_pvalue([(1.0, np.array([0.5, 0.2])), (0.5, np.array([0.2, 0.2]))])
    array([0.4, 0.2])
    """
    return np.min([pvalues / weight for weight, pvalues in parts], axis=0)


def ranked(values: NDArray) -> Ranks:
    """`rank_pvalues` of one statistic, with the floor.

    Examples
    --------
    >>> ranked(np.array([3.0, 1.0, 2.0, 0.0])).floor
    0.25
    """
    return Ranks(rank_pvalues(values), 1.0 / len(values))


def sequential_pvalue(values: NDArray, stop_after: int) -> tuple[float, int] | None:
    """Besag and Clifford's p-value of set 0 once `stop_after` later sets are as large; None before that.

    Stopping at the l-th drawn set with the `stop_after`-th exceedance gives p = stop_after / l, which is
    valid: P(p <= a) <= a (Besag, Clifford, 1991).

    Examples
    --------
    >>> sequential_pvalue(np.array([2.0, 1.0, 3.0, 0.0, 2.5, 4.0]), 2)
    (0.5, 4)
    """
    check_numbers(values)
    exceeds = values[1:] >= values[0] - tie_width(values)
    if np.count_nonzero(exceeds) < stop_after:
        return None
    drawn = int(np.searchsorted(np.cumsum(exceeds), stop_after)) + 1
    return stop_after / drawn, drawn


def check_numbers(values: NDArray) -> None:
    """Raise an error where a statistic is nan, which would compare as neither large nor small."""
    if np.any(np.isnan(values)):
        raise ValueError(
            "the statistic is nan for some targets: h is not finite under this kernel, or a function of "
            "yours returned nan; check what they return"
        )


def tie_width(*values: Any) -> float:
    """Differences up to this are rounding: 1e-10 of the largest finite value."""
    together = np.abs(np.concatenate([np.ravel(v) for v in values]))
    finite = together[np.isfinite(together)]
    return 1e-10 * float(finite.max(initial=0.0))


def advise_of_few_resamples(tests: Iterable[Any], times: float, alpha: float, what: str) -> None:
    """A word where p-values cannot get small enough, since they are multiplied by a number of tests.

    Parameters
    ----------
    tests
        Results of tests.
    times
        What their p-values are multiplied by.
    alpha
        The error rate.
    what
        What cannot be shown, as in "a difference between 3 models".
    """
    least = min((test.pvalue for test in tests if test.at_floor), default=0.0)
    if times * least > alpha:
        advise(
            f"with {round(1.0 / least) - 1:,} resamples no p-value is below {least:.2g}, and times {times:g} "
            f"that is more than alpha = {alpha:.2g}: {what} cannot be shown; take n_resamples="
            f"{math.ceil(times / alpha - 1e-9) - 1} at least, or leave it out"
        )


def holm(pvalues: Sequence[float]) -> list[float]:
    """p-values adjusted for their number, whatever their dependence.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(pvalues, kind="stable")
    steps = np.asarray(pvalues)[order] * np.arange(len(pvalues), 0, -1)
    adjusted = np.minimum(np.maximum.accumulate(steps), 1.0)
    out = np.empty(len(pvalues))
    out[order] = adjusted
    return [float(p) for p in out]
