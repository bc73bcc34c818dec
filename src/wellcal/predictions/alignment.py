"""Alignment by labels of what users give for each case: weights, groups, segments and several models."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import plain_array
from wellcal._arrays.namespaces import namespace
from wellcal._arrays.row_errors import Row, RowError
from wellcal.columns.labels import in_order_of, label_text, labels_of, same_labels
from wellcal.predictions import Predictions
from wellcal.predictions.adapters import converted_argument
from wellcal.predictions.base import check_truth_first, shape_of
from wellcal.predictions.input_hints import raise_with_hint, refuse_class_pairs


def per_case(x: Any, name: str, y: object, pred: object) -> Any:
    """Return what a user gave for each case, such as weights, in the order of the predictions.

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


def check_one_order(y: object, predictions: Predictions) -> None:
    """Reject targets that have the labels of the predictions in another order, where order means time.

    Examples
    --------
    >>> import pandas as pd, wellcal as wc
    >>> mean = pd.Series([0.0, 1.0], index=["mon", "tue"])
    >>> check_one_order(mean, wc.Normal(mean, 1.0))
    >>> check_one_order(mean[::-1], wc.Normal(mean, 1.0))
    Traceback (most recent call last):
    wellcal.RowError: y and the predictions are in different orders: row 0 is 'tue' in y and 'mon' in ...
    """
    own, theirs = labels_of(y), predictions.case_index
    if own is None or theirs is None or same_labels(own, theirs):
        return
    for row, (label, other) in enumerate(zip(own, theirs, strict=True)):
        if label != other:
            raise RowError(
                "y and the predictions are in different orders: ",
                Row(row),
                f" is {label_text(label)} in y and {label_text(other)} in the predictions",
                argument="y",
                remedy="cases come in the order of time: sort both by time",
            )


def same_cases(y: Any, models: dict[str, object]) -> list[Predictions]:
    """Return predictions of several models for the same cases in one order: that of `y` if it has one.

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
            refuse_class_pairs(y, pred, name)
            batches[name] = converted_argument(pred, name)
        except (TypeError, ValueError) as error:
            try:
                raise_with_hint(error, y, pred, name)
                raise
            except (TypeError, ValueError) as final:
                final.add_note(f"This was found for the predictions of {name}.")
                raise
    labels, first = labels_of(y), "y"
    for name, batch in batches.items():
        if labels is None:
            labels, first = batch.case_index, name
        elif first != "y" and batch.case_index is not None and not same_labels(batch.case_index, labels):
            in_order_of(labels, batch, name, first)  # raises if the labels differ
            raise ValueError(
                f"y has no index, and the rows of {first} and of {name} are in different orders: give y "
                "an index too, or bring all of them into one order"
            )
    return [in_order_of(labels, batch, name, first) for name, batch in batches.items()]


def as_batch(y: Any, pred: Any) -> tuple[Any, Any]:
    """Return targets and predictions as they are; those of a single case as batches of one.

    Examples
    --------
    >>> as_batch(1.3, (0.0, 2.0))
    ([1.3], (array([0.]), array([2.])))
    >>> as_batch("cat", [0.2, 0.8])
    (['cat'], [[0.2, 0.8]])
    >>> as_batch([0, 1], [0.2, 0.8])
    ([0, 1], [0.2, 0.8])
    """
    check_truth_first(y)  # none of these is a single target
    if isinstance(pred, Predictions):
        shape = pred.event_shape
        single = len(pred) == 1 and shape_of(y) == shape
        return ([y] if single else y), pred
    shape, kind = shape_of(y), cast("type[Any]", type(pred))
    if issubclass(kind, tuple):
        parts = [plain_array(part, "pred") for part in pred]
        if len(shape) > 1 or not parts or parts[0].ndim != len(shape):
            return y, pred
        if len(shape) == 1 and not (len(parts) == 2 and parts[1].ndim == 2 and parts[0].ndim == 1):
            return y, pred  # n numbers; a single vector comes with its covariance
        return [y], tuple(namespace(part).asarray(part)[None] for part in parts)
    if shape != ():
        return y, pred
    given = shape_of(pred)
    if issubclass(kind, (int, float, np.generic)) or (issubclass(kind, list) and len(given) == 1 < given[0]):
        return [y], [pred]
    if len(given) == 1 < given[0] and labels_of(pred) is not None:
        return [y], pred.to_frame().T  # a row of a data frame, whose labels are the names of classes
    return [y], (plain_array(pred, "pred")[None] if len(given) == 1 < given[0] else pred)
