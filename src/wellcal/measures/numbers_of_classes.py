"""Numbers that classes stand for: what means, quantiles and distances of classes are taken of."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.namespaces import Array, from_numpy, take_rows
from wellcal.predictions import Categorical, Predictions
from wellcal.predictions.class_names import NUMBERS_WANTED


def target_numbers(predictions: Predictions, targets: Array, wanted: str) -> Array:
    """Targets in the unit of predicted means and quantiles: classes are the numbers that they stand for.

    Labels may be numbers too, in any other code, and are never compared with what is predicted.

    Parameters
    ----------
    predictions
        Predictions of any family.
    targets
        As `check_targets` returns them: classes are positions.
    wanted
        Who needs predictions of what, for errors.

    Examples
    --------
    >>> grades = Categorical([[0.2, 0.3, 0.5]], classes=[3, 2, 1], support=[0, 1, 2])
    >>> target_numbers(grades, grades.check_targets([1]), "mse needs numbers")
    array([2.])
    >>> target_numbers(Categorical([[0.2, 0.8]]), np.array([1]), "mse needs numbers")
    Traceback (most recent call last):
    TypeError: mse needs numbers, found predictions of classes; give the numbers that ...
    """
    if predictions.kind != "classes":
        return targets
    return take_rows(class_numbers(predictions, wanted), targets)


def class_numbers(predictions: Any, wanted: str, or_else: str = "") -> Array:
    """The numbers ``(C,)`` or vectors ``(C, d)`` of classes, like the predictions; names have none.

    Examples
    --------
    >>> import wellcal as wc
    >>> class_numbers(wc.Bernoulli([0.2], classes=("no", "yes")), "crps needs numbers")
    array([0., 1.])
    """
    parts = predictions.parts
    if any(isinstance(part, Categorical) and part.support is None for part in parts):
        raise TypeError(f"{wanted}, found predictions of classes; {NUMBERS_WANTED}{or_else}")
    return from_numpy(np.asarray(predictions.support_values()), predictions.like)
