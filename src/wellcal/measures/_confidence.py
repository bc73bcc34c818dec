"""Reductions of predictions to simpler ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import one_of
from wellcal._arrays.namespaces import Array, from_numpy, namespace, stop_gradient
from wellcal.predictions import Bernoulli, Categorical, Mixture
from wellcal.predictions.base import check_inputs

REDUCTIONS = ("confidence", "classwise")
"""Ways from several classes to two: the most probable class, or each class against all others."""


NO_REDUCTION = "none"
"""The word for all probabilities at once, where None leaves the choice to a measure."""


def check_reduction(reduce: object, *more: str) -> None:
    """Reject what is neither the name of a reduction, nor one of `more` words, nor None."""
    if reduce is not None:
        one_of(reduce, "value of reduce", (*REDUCTIONS, *more), or_else="or None")


def confidence(y: object, pred: object) -> tuple[Array, Bernoulli]:
    """The confidence reduction: whether the most probable class was right, and how probable it was.

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
    return reduced_to_confidence(*check_inputs(y, pred))


def reduced_to_confidence(index: Array, predictions: Any) -> tuple[Array, Bernoulli]:
    """The same for targets and predictions that were checked."""
    ensemble = isinstance(predictions, Mixture) and predictions.shares_labels
    if not ensemble and not isinstance(predictions, (Bernoulli, Categorical)):
        raise TypeError(
            f"confidence needs Bernoulli or Categorical predictions, found {type(predictions).__name__}"
        )
    probabilities = predictions.class_probs()
    xp = namespace(probabilities)
    top = xp.argmax(stop_gradient(probabilities), axis=1)
    positions = np.arange(int(probabilities.shape[1]))
    chosen = top[:, None] == from_numpy(positions, top)[None, :]
    largest = xp.sum(xp.where(chosen, probabilities, xp.zeros_like(probabilities)), axis=1)
    # Probabilities that sum to one up to rounding may leave one of them just above it.
    largest = xp.where(largest > 1.0, xp.ones_like(largest), largest)
    correct = xp.astype(xp.astype(top, index.dtype) == index, index.dtype)
    return correct, Bernoulli(largest).with_index(predictions.case_index)
