"""What measures of quantiles ask of targets and predictions."""

from __future__ import annotations

from typing import Any

from wellcal._arrays.namespaces import Array
from wellcal.predictions import Predictions
from wellcal.predictions.base import check_inputs
from wellcal.predictions.class_names import NUMBERS_WANTED, is_ordered

_EITHER_WAY = 2  # classes that have an order without being told


def check_standing(y: object, pred: object, what: str) -> tuple[Array, Predictions]:
    """Targets and predictions, checked, that have places in an order."""
    targets, predictions = check_inputs(y, pred)
    check_scalar(predictions, what)
    predictions.check_judged(targets)
    return targets, predictions


def check_scalar(predictions: Predictions, what: str) -> None:
    """An error unless `predictions` are of numbers or of grades, with a distribution function.

    Two classes have an order, whichever of them comes first: what lies below one of them is all the other is.

    Examples
    --------
    >>> import wellcal as wc
    >>> check_scalar(wc.Categorical([[0.2, 0.8]]), "pit")
    >>> check_scalar(wc.Categorical([[0.2, 0.3, 0.5]]), "pit")
    Traceback (most recent call last):
    TypeError: pit needs an order, and 3 classes have none: a reliability diagram shows whether their ...
    """
    if predictions.event_shape != ():
        raise TypeError(
            f"{what} needs predictions of numbers, found vectors of length {predictions.event_shape[0]}; "
            "take one coordinate at a time; CoordinatesDisplay (wellcal plot coordinates) shows all of them"
        )
    if not predictions.supports("cdf") and predictions.target_kind != "labels":
        raise TypeError(f"{what} needs predictions with cdf: {predictions.missing('cdf')}")
    if predictions.kind == "classes" and not is_ordered(predictions):
        batch: Any = predictions
        if (count := int(batch.class_probs().shape[1])) > _EITHER_WAY:
            raise TypeError(
                f"{what} needs an order, and {count} classes have none: a reliability diagram shows whether "
                "their probabilities are right (ReliabilityDisplay, wellcal plot reliability); where they "
                f"are grades, {NUMBERS_WANTED}"
            )
