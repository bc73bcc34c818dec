"""What groups of cases are made of: summaries of predictions, and segments.

Groups are made from predictions, or given by the user, and never look at targets: whatever is found in
them by chance is found as often in targets that are drawn from the predictions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.expectations.decompose import targets_are_indices
from wellcal.predictions import Predictions, Quantiles, Samples

MOST_CLASSES = 20
"""Classes that are looked at one by one: those with the largest predicted probability in total."""

_MOST_COORDINATES = 5


@dataclass(frozen=True)
class Cases:
    """A group of cases.

    Attributes
    ----------
    where
        What they have in common, such as "where the predicted mean is above 4".
    mask
        Which they are, ``(n,)``.
    kind
        "all", "segment", "split" (above or below a number), "interval" or "box".
    """

    where: str
    mask: NDArray
    kind: str


@dataclass(frozen=True)
class Summary:
    """A number for each prediction, ``(n,)``, what to call it, and whether it is a share."""

    name: str
    values: NDArray
    share: bool = False


def summaries_of(predictions: Predictions) -> list[Summary]:
    """Summaries that groups for directions of all kinds are made of; classes have those of their own."""
    family: Any = predictions
    if targets_are_indices(predictions) or (isinstance(predictions, Samples) and predictions.holds_objects):
        return []
    if isinstance(predictions, Quantiles):
        return _of_quantiles(predictions)
    with np.errstate(invalid="ignore", over="ignore"):
        mean = np.asarray(to_numpy(family.mean()), dtype=np.float64)
        spread = np.sqrt(np.asarray(to_numpy(family.variance()), dtype=np.float64))
    if predictions.event_shape == ():
        if not (np.isfinite(mean).all() and np.isfinite(spread).all()):
            median = np.asarray(to_numpy(family.quantile(0.5)))
            return [
                Summary("the predicted median", median),
                Summary(
                    "the predicted interquartile range", np.asarray(to_numpy(family.interquartile_range()))
                ),
            ]
        return [
            Summary("the predicted mean", mean),
            Summary("the predicted standard deviation", spread),
        ]
    found = [
        Summary(f"the predicted mean of coordinate {c + 1}", mean[:, c])
        for c in range(min(mean.shape[1], _MOST_COORDINATES))
    ]
    return [*found, Summary("the predicted standard deviation", np.sqrt(np.mean(spread**2, axis=1)))]


def _of_quantiles(predictions: Quantiles) -> list[Summary]:
    levels = predictions.levels
    middle = int(np.argmin(np.abs(levels - 0.5)))
    found = [Summary(f"the predicted {levels[middle]:.0%} quantile", predictions.values[:, middle])]
    if len(levels) > 1:
        width = predictions.values[:, -1] - predictions.values[:, 0]
        found.append(
            Summary(f"the distance from the {levels[0]:.0%} to the {levels[-1]:.0%} quantile", width)
        )
    return found
