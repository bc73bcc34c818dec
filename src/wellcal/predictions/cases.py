"""What users give for each case besides targets and predictions: weights, groups, segments, bins."""

from __future__ import annotations

from typing import Any

from wellcal._arrays.labels import in_order_of, labels_of, same_labels
from wellcal.predictions import Predictions
from wellcal.predictions.adapters import converted_argument


def per_case(x: Any, name: str, y: object, pred: object) -> Any:
    """Something else that a user gave for each case, such as weights, in the order of the predictions.

    Labels are those of the predictions; of targets, where predictions have none. Without an index it is taken
    by position, which is ambiguous, and an error, where targets and predictions are in different orders.

    Examples
    --------
    >>> import numpy as np
    >>> per_case([1.0, 2.0], "weights", [0, 1], np.array([0.2, 0.7]))
    [1.0, 2.0]
    """
    own, of_targets = labels_of(x), labels_of(y)
    if x is None or own is of_targets is None:
        return x
    index = converted_argument(pred, "pred").case_index
    if own is not None:
        other = "predictions" if index is not None else "y"
        return in_order_of(of_targets if index is None else index, x, name, other)
    if index is not None and not same_labels(index, of_targets):
        raise ValueError(
            f"{name} has no index, and the rows of y and of the predictions are in different orders: give "
            f"{name} an index too, or bring all of them into one order"
        )
    return x


def same_cases(y: Any, models: dict[str, object]) -> list[Predictions]:
    """Predictions of several models for the same cases, in one order, which is that of `y` where it has one.

    Parameters
    ----------
    y
        Observed targets.
    models
        Predictions by their names in errors.

    Examples
    --------
    >>> a, b = same_cases([0, 1], {"pred_a": [0.2, 0.7], "pred_b": [0.1, 0.9]})
    >>> b
    <Bernoulli: 2 predictions>
    """
    batches: dict[str, Predictions] = {}
    for name, pred in models.items():
        try:
            batches[name] = converted_argument(pred, name)
        except (TypeError, ValueError) as error:
            error.add_note(f"This was found for the predictions of {name}.")
            raise
    labels, first = labels_of(y), "y"
    labelled = {name: batch for name, batch in batches.items() if batch.case_index is not None}
    if labels is None and labelled:
        first = next(iter(labelled))
        labels = labelled[first].case_index
        for name, batch in labelled.items():
            if not same_labels(batch.case_index, labels):
                in_order_of(labels, batch, name, first)  # an error where the labels differ
                raise ValueError(
                    f"y has no index, and the rows of {first} and of {name} are in different orders: give y "
                    "an index too, or bring all of them into one order"
                )
    return [in_order_of(labels, batch, name, first) for name, batch in batches.items()]
