"""What the scores share."""

from __future__ import annotations

from typing import Any

from wellcal.expectations.decompose import components_of
from wellcal.predictions import NegativeBinomial, Poisson
from wellcal.predictions.adapters import as_predictions
from wellcal.predictions.inputs import check_truth_first


def checked_predictions(y: object, pred: object) -> Any:
    """`pred` as predictions, with an error where `y` holds the predictions instead."""
    check_truth_first(y)
    return as_predictions(pred)


def are_counts(predictions: Any) -> bool:
    """Whether all components are families of counts."""
    return all(isinstance(part, (Poisson, NegativeBinomial)) for part, _ in components_of(predictions))
