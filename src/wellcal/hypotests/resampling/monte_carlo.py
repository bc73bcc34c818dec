"""From values of statistics over exchangeable sets of targets to p-values.

Set 0 is the observed one. Under calibration all sets are exchangeable, so that the rank of set 0 among
them is uniform, whatever the statistic; also where a statistic is made from ranks of others, as long as
it treats all sets alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.base import check_numbers, tie_width


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


def combined_pvalues(parts: Sequence[tuple[float, NDArray]]) -> NDArray:
    """p-values of the smallest p-value: exact by exchangeability, without a correction for their number."""
    return rank_pvalues(-smallest_pvalue(parts))


def sequential_pvalue(values: NDArray, stop_after: int) -> tuple[float, int] | None:
    """Besag and Clifford's p-value of set 0 once `stop_after` later sets are as large; None before that.

    Stopping at the l-th drawn set with the `stop_after`-th exceedance gives p = stop_after / l, which is
    valid: P(p <= a) <= a (Besag, Clifford, 1991).
    """
    check_numbers(values)
    exceeds = values[1:] >= values[0] - tie_width(values)
    if np.count_nonzero(exceeds) < stop_after:
        return None
    drawn = int(np.searchsorted(np.cumsum(exceeds), stop_after)) + 1
    return stop_after / drawn, drawn
