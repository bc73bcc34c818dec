"""The door of every measure and test: targets and predictions, checked together."""

from __future__ import annotations

from wellcal._arrays.namespaces import Array
from wellcal.predictions.adapters import as_predictions
from wellcal.predictions.base import Predictions


def check_inputs(y: object, pred: object, name: str = "pred") -> tuple[Array, Predictions]:
    """Targets in the form that computations use, and the predictions they belong to.

    Parameters
    ----------
    y
        Observed targets, truth first.
    pred
        Predictions, or anything that :func:`wellcal.as_predictions` understands.
    name
        What errors call the predictions.

    Returns
    -------
    targets
        As `check_targets` of the predictions returns them.
    predictions
        A batch of :class:`wellcal.Predictions`.

    Examples
    --------
    >>> import numpy as np
    >>> targets, predictions = check_inputs([0, 1], np.array([0.2, 0.7]))
    >>> predictions
    <Bernoulli: 2 predictions>
    """
    check_truth_first(y, name)
    predictions = pred if isinstance(pred, Predictions) else as_predictions(pred)
    return predictions.check_targets(y), predictions


def check_truth_first(y: object, name: str = "pred") -> None:
    """Reject predictions in the place of observed targets."""
    if isinstance(y, Predictions):
        raise TypeError(
            f"y must be observed targets, found predictions; the order is (y, {name}), truth first"
        )
