"""What the targets of a family are: numbers or labels, countably many or not."""

from __future__ import annotations

from wellcal.predictions import Mixture, Predictions, Samples


def components(predictions: Predictions) -> tuple[Predictions, ...]:
    """Batches that a mixture is made of; the batch itself otherwise."""
    if not isinstance(predictions, Mixture):
        return (predictions,)
    return tuple(part for component in predictions.components for part in components(component))


def are_numbers(predictions: Predictions) -> bool:
    """Whether targets are numbers, or vectors of numbers, rather than labels or objects."""
    return all(map(_is_number, components(predictions)))


def _is_number(component: Predictions) -> bool:
    if component.target_kind == "labels":
        values = getattr(component, "support_values", None)
        return values is not None and values() is not None
    return component.target_kind != "objects"


def are_countable(predictions: Predictions) -> bool | None:
    """Whether targets lie in a countable set that the family gives; None where that is not known.

    Draws may come from a density or not.
    """
    found = [
        None if isinstance(part, Samples) else part.target_kind == "bins" or not part.continuous
        for part in components(predictions)
    ]
    return None if None in found else all(found)


def has_draws(predictions: Predictions) -> bool:
    """Whether some predictions are known by draws from them."""
    return any(isinstance(part, Samples) and part.kind == "draws" for part in components(predictions))
