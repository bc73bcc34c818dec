"""Reductions of predictions to simpler ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import one_of
from wellcal._arrays.chunks import budget, told_chunks
from wellcal._arrays.namespaces import Array, NDArray, is_numpy, namespace, stop_gradient
from wellcal._arrays.special import gather
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
    if is_numpy(xp):
        right, largest = _top_class(probabilities, index)
        correct = right.astype(index.dtype)
    else:
        top = xp.argmax(stop_gradient(probabilities), axis=1)
        largest = gather(probabilities, top)
        correct = xp.astype(xp.astype(top, index.dtype) == index, index.dtype)
    # Probabilities that sum to one up to rounding may leave one of them just above it.
    largest = xp.where(largest > 1.0, xp.ones_like(largest), largest)
    return correct, Bernoulli(largest).with_index(predictions.case_index)


def _top_class(probs: NDArray, index: NDArray) -> tuple[NDArray, NDArray]:
    """Whether the first of the most probable classes is that of `index`, and its probability, ``(n,)``.

    Classes are compared by columns, many cases at a time; only ties need a look at the order of classes.
    """
    n, classes = probs.shape
    right, largest = np.empty(n, dtype=bool), np.empty(n, dtype=probs.dtype)
    for rows in told_chunks(n, classes, within=budget.cache // 2):
        columns = np.ascontiguousarray(probs[rows].T)
        most = columns.max(axis=0)
        found = columns[index[rows], np.arange(len(most))] == most
        tied = (columns == most).sum(axis=0) > 1
        if tied.any():
            found[tied] = columns[:, tied].argmax(axis=0) == index[rows][tied]
        right[rows], largest[rows] = found, most
    return right, largest
