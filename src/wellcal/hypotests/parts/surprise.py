"""Surprise: minus the log probability of targets, summed over cases.

Over-confident predictions make targets too surprising, under-confident ones not surprising enough.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.predictions import Predictions

Surprise = Callable[[NDArray], NDArray]
"""From sets of targets ``(r, n, ...)`` to the surprise of each ``(r, n)``."""


def surprise_of(predictions: Predictions) -> Surprise | None:
    """Surprise of each target; None for predictions without probabilities."""
    if not predictions.supports("log_prob"):
        return None

    def surprise(targets: NDArray) -> NDArray:
        with np.errstate(all="ignore"):
            return -np.asarray(to_numpy(predictions.log_prob(targets)))

    return surprise


def total_surprise(values: NDArray) -> NDArray:
    """Sums ``(r,)`` over cases.

    Where densities are infinite for some cases and zero for others, what is impossible counts.
    """
    with np.errstate(invalid="ignore"):
        total = values.sum(axis=1)
    return np.where(np.isnan(total), np.inf, total)
