"""What the scores share."""

from __future__ import annotations

from typing import Any

from wellcal.adapters import as_predictions
from wellcal.expansion import components_of
from wellcal.predictions import NegativeBinomial, Poisson, Predictions


def checked_predictions(y: object, pred: object) -> Any:
    """`pred` as predictions, with an error where `y` holds the predictions instead."""
    if isinstance(y, Predictions):
        raise TypeError("y must be observed targets, found predictions; the order is (y, pred), truth first")
    return as_predictions(pred)


def are_counts(predictions: Any) -> bool:
    """Whether all components are families of counts."""
    return all(isinstance(part, (Poisson, NegativeBinomial)) for part, _ in components_of(predictions))
