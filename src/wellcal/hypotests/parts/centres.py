"""Centre and spread of predictions, whether or not they have moments."""

from __future__ import annotations

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.predictions import Predictions
from wellcal.predictions.misspecification import centre_and_scale


def centre_and_spread(predictions: Predictions) -> tuple[NDArray, NDArray]:
    """Mean and standard deviation; median and interquartile range where there are none, or no finite ones."""
    centre, spread = centre_and_scale(predictions)
    return centre, above_zero(spread)


def above_zero(spread: NDArray) -> NDArray:
    """Spreads, and the median of the others where there is none.

    A prediction without spread says what will be: any deviation counts in the unit of the others.

    Examples
    --------
    >>> above_zero(np.array([0.0, 1.0, 3.0]))
    array([2., 1., 3.])
    """
    typical = np.median(spread[spread > 0]) if (spread > 0).any() else 1.0
    return np.where(spread > 0, spread, typical)
