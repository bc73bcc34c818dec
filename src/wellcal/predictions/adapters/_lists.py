"""Lists of single distributions as one batch."""

from __future__ import annotations

from collections.abc import Sequence

from wellcal.predictions import Predictions
from wellcal.predictions.adapters._scipy_continuous import ScipyContinuous
from wellcal.predictions.batches import concatenate


def single(batch: Predictions, position: int) -> Predictions:
    """`batch`, which must be one distribution: a list of batches could also mean an ensemble."""
    check_single(len(batch), position)
    return batch


def check_single(n: int, position: int) -> None:
    """Reject an item of a list that is not one distribution."""
    if n != 1:
        raise ValueError(
            f"item {position} of the list is a batch of {n} distributions; a list holds one distribution for "
            "each prediction. An ensemble is wc.Mixture([wc.as_predictions(member) for member in members])"
        )


def join(batches: Sequence[Predictions]) -> Predictions:
    """Batches of one family, one after the other."""
    if len(batches) > 1 and all(isinstance(batch, ScipyContinuous) for batch in batches):
        raise TypeError(
            "a list of these scipy.stats distributions cannot be joined; give one distribution whose "
            "parameters are arrays with one entry for each prediction"
        )
    names = [f"item {position}" for position in range(len(batches))]
    return concatenate(batches, names, "distributions in a list")
