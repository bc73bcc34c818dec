"""Probabilities of classes that were rounded, so that their sum is not 1: how far off that may be."""

from __future__ import annotations

import numpy as np

from wellcal._arrays.checks import check_rows
from wellcal._arrays.namespaces import NDArray
from wellcal.predictions.input_hints import with_probability_hint

LEAST, MOST = 0.01, 0.1
"""How far a sum may be from 1 whatever the digits, and at most: what rounding took more from is lost."""

_FEWEST, _MOST_DECIMALS = 2, 6  # fewer decimals are taken for an accident; single precision shows no more
_SINGLE = 1e-7  # rounding of single precision
_ONE_SIDED, _DEVIATIONS = 0.1, 4.0  # of what rounding may do, how much it does on average


def with_sum_one(rows: NDArray, name: str) -> NDArray:
    """Rows over their sums, where these are about 1; what is further off is not rounding, and refused.

    Examples
    --------
    >>> with_sum_one(np.array([[0.33, 0.33, 0.33]]), "probs").sum()
    np.float64(1.0)
    >>> with_sum_one(np.array([[0.33, 0.33, 0.3]]), "probs")
    Traceback (most recent call last):
    wellcal.RowError: the sum of probs must be one within 0.015 for normalise=True in row 0: found 0.96; ...
    """
    sums = rows.sum(axis=1, keepdims=True)
    able = (rows >= 0.0).all(axis=1, keepdims=True)  # of others the family says what is wrong
    reach = reach_of_rounding(rows.shape[1], decimals_shown(rows))
    try:
        check_rows(
            f"the sum of {name}",
            sums[:, 0],
            (_reached(sums - 1.0, reach, rows.shape[1]) | ~able)[:, 0],
            f"must be one within {reach:g} for normalise=True",
            f"rounding of {rows.shape[1]} classes does not explain what is further off: look at that row",
            argument=name,
        )
    except ValueError as error:
        raise with_probability_hint(error, rows) from None
    return np.divide(rows, sums, out=rows.copy(), where=able)


def rounding_bias(rows: NDArray) -> float | None:
    """How far sums of probabilities are from 1 on average; None where rounding does not explain that.

    It does where :func:`with_sum_one` takes all rows, and where sums above 1 and below it are about as many:
    a class that is lacking moves all of them to one side. So do many small probabilities that become zero,
    for which a tenth of what one row may be off is allowed; and four standard deviations of the mean, as
    rounding by chance has them.

    Examples
    --------
    >>> rounding_bias(np.array([[0.33, 0.33, 0.33], [0.17, 0.17, 0.67]]))
    0.0
    >>> rounding_bias(np.array([[0.33, 0.33, 0.3]])) is None
    True
    """
    n, classes = rows.shape
    if not rows.size or rows.min() < 0.0:
        return None
    gaps = rows.sum(axis=1) - 1.0
    decimals = decimals_shown(rows)
    reach, deviation = reach_of_rounding(classes, decimals), np.sqrt(classes / 12.0 / n) / 10.0**decimals
    bias = abs(float(gaps.mean()))
    allowed = _ONE_SIDED * reach + _DEVIATIONS * deviation
    return bias if _reached(gaps, reach, classes).all() and bias <= allowed else None


def _reached(gaps: NDArray, reach: float, classes: int) -> NDArray:
    """Which sums are no further from 1 than rounding takes them, and the arithmetic."""
    return np.abs(gaps) <= reach + _SINGLE * classes


def reach_of_rounding(classes: int, decimals: int) -> float:
    """How far the sum of so many probabilities may be from 1: each is off by half a unit of the last decimal.

    Examples
    --------
    >>> reach_of_rounding(7, 2), reach_of_rounding(7, 4), reach_of_rounding(1000, 3)
    (0.035, 0.01, 0.1)
    """
    return float(np.clip(0.5 * classes / 10.0**decimals, LEAST, MOST))


def decimals_shown(values: NDArray) -> int:
    """Decimals that write all of some numbers, from 2 on; 6 where more are needed.

    Examples
    --------
    >>> decimals_shown(np.array([0.19, 0.5])), decimals_shown(np.array([0.125, 0.5], dtype=np.float32))
    (2, 3)
    >>> decimals_shown(np.array([1 / 3]))
    6
    """
    for decimals in range(_FEWEST, _MOST_DECIMALS):
        units = values * 10.0**decimals
        if (np.abs(units - np.round(units)) <= _SINGLE * 10.0**decimals).all():
            return decimals
    return _MOST_DECIMALS
