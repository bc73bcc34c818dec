"""Surprise: minus the log probability of targets, summed over cases.

Over-confident predictions make targets too surprising, under-confident ones not surprising enough.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from wellcal._arrays.namespaces import Array, namespace
from wellcal.predictions import Predictions
from wellcal.predictions.batches import on_device_of

Surprise = Callable[[Array], Array]
"""From sets of targets ``(r, n, ...)`` to the surprise of each ``(r, n)``, in their library."""


def surprise_of(predictions: Predictions) -> Surprise | None:
    """Surprise of each target; None for predictions without probabilities."""
    if not predictions.supports("log_prob"):
        return None

    def surprise(targets: Array) -> Array:
        with np.errstate(all="ignore"):
            return -on_device_of(predictions, targets).log_prob(targets)

    return surprise


def total_surprise(values: Array) -> Array:
    """Sums ``(r,)`` over cases.

    Where densities are infinite for some cases and zero for others, what is impossible counts.
    """
    xp = namespace(values)
    with np.errstate(invalid="ignore"):
        total = xp.sum(values, axis=1)
    return xp.where(xp.isnan(total), xp.full_like(total, xp.inf), total)
