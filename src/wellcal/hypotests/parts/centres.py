"""Centre and spread of predictions, whether or not they have moments."""

from __future__ import annotations

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.predictions import Predictions


def centre_and_spread(predictions: Predictions) -> tuple[NDArray, NDArray]:
    """Mean and standard deviation; median and interquartile range where there are none, or no finite ones."""
    centre = spread = np.full((len(predictions), *predictions.event_shape), np.nan)
    if predictions.supports("mean") and predictions.supports("variance"):
        with np.errstate(invalid="ignore", over="ignore"):
            centre = np.asarray(to_numpy(predictions.mean()), dtype=np.float64)
            spread = np.sqrt(np.asarray(to_numpy(predictions.variance()), dtype=np.float64))
    bad = ~(np.isfinite(centre) & np.isfinite(spread))
    if bad.any():
        median = np.asarray(to_numpy(predictions.quantile(0.5)))
        robust = np.asarray(to_numpy(predictions.interquartile_range())) / 1.349
        centre, spread = np.where(bad, median, centre), np.where(bad, robust, spread)
    # A prediction without spread says what will be: any deviation counts in the unit of the others.
    typical = np.median(spread[spread > 0]) if (spread > 0).any() else 1.0
    return centre, np.where(spread > 0, spread, typical)
