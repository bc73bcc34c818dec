"""The Brier score of predictions of classes and counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import flag
from wellcal._arrays.namespaces import Array, NDArray, handed_over, is_numpy, namespace, widen
from wellcal._arrays.special import gather
from wellcal.expectations.bilinear import matching
from wellcal.expectations.expansion import plan
from wellcal.kernels import Delta
from wellcal.measures.estimate import Estimate, about_cases
from wellcal.measures.scores.casewise import mean_score
from wellcal.predictions import Bernoulli
from wellcal.predictions.alignment import per_case
from wellcal.predictions.base import check_inputs


@handed_over
@about_cases
def brier(y: object, pred: object, *, scale_by_half: bool | None = None, weights: object = None) -> Estimate:
    r"""Mean Brier score, the squared distance between probabilities and what happened.

    .. math:: \frac1n \sum_i \sum_c \big(p_i(c) - 1\{y_i = c\}\big)^2

    Parameters
    ----------
    y
        Observed targets, one for each prediction.
    pred
        Predictions of classes (`Bernoulli`, `Categorical`, mixtures of these, arrays of probabilities) or
        of counts (`Poisson`, `NegativeBinomial`, mixtures of these).
    scale_by_half
        Whether half of the sum is taken, so that scores lie in [0, 1]; None does so for two classes, where
        half of it is the squared error of the probability.
    weights
        How much each case counts, ``(n,)``: finite and not negative; None counts all alike.

    Returns
    -------
    Estimate
        The mean, with its standard error.

    References
    ----------
    G. W. Brier (1950). Verification of forecasts expressed in terms of probability.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(brier([1, 0], np.array([0.7, 0.2]))), 6)
    0.065
    >>> round(float(brier([2], np.array([[0.2, 0.2, 0.6]]))), 6)
    0.24
    """
    scale_by_half = flag(scale_by_half, "scale_by_half", or_none=True)
    targets, predictions = check_inputs(y, pred)
    scores = brier_of_cases(targets, predictions, scale_by_half)
    return mean_score(scores, "Brier score", weights=per_case(weights, "weights", y, pred))


def brier_of_cases(targets: Array, predictions: Any, scale_by_half: bool | None = None) -> Array:
    """Scores ``(n,)`` for checked targets."""
    if type(predictions) is Bernoulli:
        p = widen(predictions.probs)
        xp = namespace(p)
        squares = _squared(p - targets) if is_numpy(xp) else (p - xp.astype(targets, p.dtype)) ** 2
        return 2.0 * squares if scale_by_half is False else squares
    if predictions.kind == "classes":
        probs = widen(predictions.class_probs())
        xp = namespace(probs)
        half = probs.shape[1] == 2 if scale_by_half is None else scale_by_half
        at_target = gather(probs, targets)
        rest = xp.sum(probs**2, axis=1) - at_target**2
        scores = (1.0 - at_target) ** 2 + xp.where(rest > 0, rest, xp.zeros_like(rest))
    elif predictions.kind == "counts":
        half = bool(scale_by_half)
        scheme = plan(Delta(), [predictions])
        rows = scheme.rows([(1.0, predictions)])
        squares = matching(scheme.form(rows, rows), predictions.ops, rows, rows)
        xp = namespace(squares)
        scores = 1.0 - 2.0 * xp.exp(widen(predictions.log_prob(targets))) + squares
    else:
        raise TypeError(
            f"brier needs predictions of classes or counts, found {type(predictions).__name__}; "
            "wc.crps is the score for numbers"
        )
    return 0.5 * scores if half else scores


def _squared(gaps: NDArray) -> NDArray:
    """Squares in the place of what is squared."""
    return np.square(gaps, out=gaps)
