"""Reductions of predictions to simpler ones, and measures built on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.namespaces import Array, from_numpy, namespace, stop_gradient
from wellcal.predictions import Bernoulli, Categorical, Mixture
from wellcal.predictions.adapters import as_predictions


def confidence(y: object, pred: object) -> tuple[Array, Bernoulli]:
    """The confidence reduction: was the most probable class right, and with which probability.

    Every measure and test of calibration can be applied to the result, ``skce(*confidence(y, pred))``,
    and then asks only whether the top class is right as often as its probability says.

    Parameters
    ----------
    y
        Observed classes.
    pred
        Bernoulli or Categorical predictions, mixtures of these over the same classes, or arrays of
        probabilities. Ties go to the first class.

    Returns
    -------
    correct
        ``(n,)`` integers, 1 where the most probable class was observed.
    predictions
        `Bernoulli` predictions with the largest probability of each case.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> correct, top = wc.confidence([0, 2], np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]))
    >>> correct, top.probs
    (array([1, 0]), array([0.7, 0.6]))
    """
    predictions: Any = as_predictions(pred)
    ensemble = isinstance(predictions, Mixture) and predictions.shares_labels
    if not ensemble and not isinstance(predictions, (Bernoulli, Categorical)):
        raise TypeError(
            f"confidence needs Bernoulli or Categorical predictions, found {type(predictions).__name__}"
        )
    index = predictions.check_targets(y)
    probabilities = predictions.class_probs()
    xp = namespace(probabilities)
    top = xp.argmax(stop_gradient(probabilities), axis=1)
    positions = np.arange(probabilities.shape[1])
    chosen = top[:, None] == from_numpy(positions, top)[None, :]
    largest = xp.sum(xp.where(chosen, probabilities, xp.zeros_like(probabilities)), axis=1)
    # Probabilities that sum to one up to rounding may leave one of them just above it.
    largest = xp.where(largest > 1.0, xp.ones_like(largest), largest)
    correct = xp.astype(xp.astype(top, index.dtype) == index, index.dtype)
    return correct, Bernoulli(largest)
