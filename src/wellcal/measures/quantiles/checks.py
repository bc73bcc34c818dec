"""What measures of quantiles ask of predictions and of levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import check_ndim, numeric_array
from wellcal._arrays.levels import must_be_levels
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.predictions import Predictions


def check_levels(levels: Any, name: str = "levels", *, open_interval: bool = False) -> NDArray:
    """Levels ``(T,)`` between 0 and 1, both included unless the interval is open.

    Examples
    --------
    >>> check_levels([0.1, 1.0])
    array([0.1, 1. ])
    >>> check_levels([0.1, 1.0], open_interval=True)
    Traceback (most recent call last):
    ValueError: levels must be numbers strictly between 0 and 1, found 1
    """
    array = np.asarray(to_numpy(numeric_array(levels, name)), dtype=np.float64)
    check_ndim(array, name, (1,))
    if len(array) == 0:
        raise ValueError(f"{name} is empty: at least one level is needed")
    must_be_levels(array, name, ends=not open_interval)
    return array


def check_scalar(predictions: Predictions, what: str) -> None:
    """An error unless `predictions` are of numbers or of classes, with a distribution function."""
    if predictions.event_shape != ():
        raise TypeError(
            f"{what} needs predictions of numbers, found vectors of length {predictions.event_shape[0]}; "
            "take one coordinate at a time"
        )
    if not predictions.supports("cdf") and predictions.target_kind != "labels":
        raise TypeError(f"{what} needs predictions with cdf: {predictions.missing('cdf')}")
