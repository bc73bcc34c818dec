"""What the scores share."""

from __future__ import annotations

from wellcal.expectations.decompose import components_of
from wellcal.predictions import Categorical, Predictions


def names_only(predictions: Predictions) -> bool:
    """Whether a component predicts classes that no numbers were given for."""
    parts = [part for part, _ in components_of(predictions)]
    return any(isinstance(part, Categorical) and part.support is None for part in parts)
