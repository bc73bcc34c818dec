"""Scores that look at predictions one case at a time: likelihood, squared error, pinball loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wellcal._arrays.checks import check_levels
from wellcal._arrays.chunks import budget, in_chunks, told_chunks
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    from_numpy,
    handed_over,
    is_numpy,
    is_traced,
    namespace,
    stop_gradient,
    to_numpy,
    widen,
)
from wellcal.measures.estimate import NOT_FINITE, Estimate, about_cases
from wellcal.measures.numbers_of_classes import target_numbers
from wellcal.predictions import Predictions, Quantiles
from wellcal.predictions.alignment import per_case
from wellcal.predictions.base import check_inputs
from wellcal.problem.weights import MeanOfWeighted, check_weights

PINBALL_LEVELS = tuple(round(0.05 * i, 2) for i in range(1, 20))
"""Levels 0.05, 0.10 .. 0.95: the paper's."""


@handed_over
@about_cases
def nll(y: object, pred: object, *, weights: object = None) -> Estimate:
    r"""Mean negative log-likelihood, :math:`-\frac1n \sum_i \log p_i(y_i)`.

    Parameters
    ----------
    y
        Observed targets, one for each prediction.
    pred
        Predictions with a density or probabilities: a batch such as ``wc.Normal(mu, sigma)``, or anything
        that :func:`wellcal.as_predictions` understands.
    weights
        How much each case counts, ``(n,)``: finite and not negative; None counts all alike.

    Returns
    -------
    Estimate
        The mean, with its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(nll(np.array([0.0, 1.0]), (np.zeros(2), np.ones(2)))), 6)
    1.168939
    """
    return mean_score(nll_of_cases(y, pred), "NLL", weights=per_case(weights, "weights", y, pred))


def nll_of_cases(y: object, pred: object) -> Array:
    """Negative log-likelihoods ``(n,)``."""
    predictions, targets = _checked(y, pred, "log_prob", "nll")
    if predictions.target_kind == "labels":
        targets = predictions.align(y)  # `log_prob` is told labels, not positions
    n, at_a_time = len(predictions), budget.work // 10
    if n <= at_a_time or not isinstance(targets, np.ndarray):
        return -predictions.log_prob(targets)
    parts = [-predictions[some].log_prob(targets[some]) for some in told_chunks(n, within=at_a_time)]
    return np.concatenate(parts)


@handed_over
@about_cases
def mse(y: object, pred: object, *, weights: object = None) -> Estimate:
    r"""Mean squared error of predicted means, :math:`\frac1n \sum_i \|y_i - \mathrm{E} P_i\|^2 / d`.

    Parameters
    ----------
    y
        Observed targets ``(n,)`` or ``(n, d)``.
    pred
        Predictions of numbers or vectors, as for :func:`nll`; the coordinates of vectors are averaged.
    weights
        How much each case counts, ``(n,)``: finite and not negative; None counts all alike.

    Returns
    -------
    Estimate
        The mean, with its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> float(mse(np.array([0.0, 2.0]), (np.zeros(2), np.ones(2))))
    2.0
    """
    return mean_score(squared_errors(y, pred), "MSE", weights=per_case(weights, "weights", y, pred))


def squared_errors(y: object, pred: object) -> Array:
    """Squared errors of predicted means ``(n,)``; the mean over coordinates of vectors."""
    predictions, targets = _checked(y, pred, "mean", "mse")
    targets = target_numbers(predictions, targets, "mse needs predictions of numbers or vectors")
    squares = (widen(targets) - widen(predictions.mean())) ** 2
    return namespace(squares).mean(squares, axis=1) if squares.ndim == 2 else squares


@handed_over
@about_cases
def pinball_loss(
    y: object,
    pred: object,
    *,
    levels: Sequence[float] | Array | None = None,
    weights: object = None,
) -> Estimate:
    r"""Mean pinball loss of predicted quantiles, over cases and levels.

    .. math:: L_\tau(y, q) = (1 - \tau) (q - y)_+ + \tau (y - q)_+

    Parameters
    ----------
    y
        Observed targets ``(n,)``.
    pred
        Predictions of numbers with quantiles, as for :func:`nll`; classes are the numbers that they stand
        for, those of ``support=``.
    levels
        Levels strictly between 0 and 1; None takes those of `Quantiles`, and 0.05, 0.10 .. 0.95 for other
        predictions.
    weights
        How much each case counts, ``(n,)``: finite and not negative; None counts all alike.

    Returns
    -------
    Estimate
        The mean, with its standard error.

    References
    ----------
    Widmann, Lindsten, Zachariah (2021), appendix "Friedman 1 regression problem".

    Examples
    --------
    >>> import numpy as np
    >>> round(float(pinball_loss(np.array([1.0]), (np.zeros(1), np.ones(1)), levels=[0.5])), 6)
    0.5
    """
    losses = pinball_of_cases(y, pred, levels)
    return mean_score(losses, "pinball loss", weights=per_case(weights, "weights", y, pred))


def pinball_of_cases(y: object, pred: object, levels: Sequence[float] | Array | None = None) -> Array:
    """Pinball losses ``(n,)``, means over levels."""
    predictions, targets = _checked(y, pred, "quantile", "pinball_loss")
    targets = target_numbers(predictions, targets, "pinball_loss needs predictions of numbers")
    if levels is None:  # at others nothing is known of quantiles
        levels = predictions.levels if isinstance(predictions, Quantiles) else PINBALL_LEVELS
    chosen = check_levels(levels, open_interval=True)
    n = len(predictions)
    if n * len(chosen) <= budget.cache or not isinstance(targets, np.ndarray):
        return _pinball(predictions, targets, chosen)
    chunks = told_chunks(n, len(chosen), within=budget.cache)
    return np.concatenate([_pinball(predictions[some], targets[some], chosen) for some in chunks])


def _pinball(predictions: Any, targets: Array, chosen: NDArray) -> Array:
    shape = (len(chosen), len(predictions))
    grid = from_numpy(np.ascontiguousarray(np.broadcast_to(chosen[:, None], shape)), predictions.like)
    gap = widen(targets)[None, :] - widen(predictions.quantile(grid))
    xp = namespace(gap)
    losses = xp.where(gap > 0, grid * gap, (grid - 1.0) * gap)
    return xp.mean(losses, axis=0)


def log_prob_of_cases(targets: NDArray, predictions: Any) -> NDArray:
    """Logarithms ``(..., n)`` of the probability or density of targets, or sets of them, in NumPy.

    Parameters
    ----------
    targets
        As `check_targets` returns them: classes are positions.
    predictions
        Predictions with `log_prob`.

    Examples
    --------
    >>> from wellcal.predictions import Bernoulli
    >>> np.exp(log_prob_of_cases(np.array([[0, 1], [1, 1]]), Bernoulli(np.array([0.25, 0.0]))))
    array([[0.75, 0.  ],
           [0.25, 0.  ]])
    """
    with np.errstate(all="ignore"):
        if predictions.kind == "classes":
            probs = np.asarray(to_numpy(predictions.class_probs()), dtype=np.float64)
            return np.log(probs[np.arange(len(probs)), targets])
        return np.asarray(to_numpy(predictions.log_prob(targets)), dtype=np.float64)


# -- shared ----------------------------------------------------------------------------------


def _checked(y: object, pred: object, method: str, score: str) -> tuple[Predictions, Array]:
    """Predictions that have a method, and targets as `check_targets` returns them."""
    targets, predictions = check_inputs(y, pred)
    if predictions.event_shape != () and method == "quantile":
        raise TypeError(
            f"{score} needs predictions of numbers, found vectors of length {predictions.event_shape[0]}; "
            "take one coordinate at a time"
        )
    if not predictions.supports(method):
        raise TypeError(f"{score} needs predictions with {method}: {predictions.missing(method)}")
    return predictions, targets


def _weighted_mean(scores: Array, name: str, provenance: dict[str, Any] | None, weights: object) -> Estimate:
    """``sum w s / sum w``, with the standard error of a ratio; cases of weight zero do not count."""
    xp, n = namespace(scores), int(scores.shape[0])
    w = check_weights(weights, n, scores)
    counted = xp.where(
        w > 0, scores, xp.zeros_like(scores)
    )  # a score of weight zero does not count, even an infinite one
    value = xp.sum(w * counted) / xp.sum(w)
    error: Any = None
    weighted, traced = MeanOfWeighted.of(w), is_traced(scores, w)
    if traced or weighted.has_error:
        with np.errstate(invalid="ignore"):
            spread = xp.sum(stop_gradient((w * (counted - value)) ** 2)) * weighted.factor
            error = xp.sqrt(spread) / stop_gradient(xp.sum(w))
        error = error if traced else float(to_numpy(error))
    found = float(value) if is_numpy(xp) else value
    known = {} if traced else weights_told(weighted)
    known = {**(provenance or {}), **not_finite(value, counted), **known, "weights": "given"}
    return Estimate(found, error, name, "weighted mean", n, provenance=known)


def weights_told(weighted: MeanOfWeighted) -> dict[str, float]:
    """What the provenance of a weighted mean says of its weights.

    Examples
    --------
    >>> weights_told(MeanOfWeighted.of(np.array([2.0, 2.0, 2.0, 0.0])))
    {'effective_cases': 3.0, 'degrees_of_freedom': 2.0}
    """
    degrees = {"degrees_of_freedom": weighted.degrees} if weighted.has_error else {}
    return {"effective_cases": weighted.cases, **degrees}


def not_finite(mean: Array, scores: Array) -> dict[str, int]:
    """How many scores are no finite numbers, for the provenance of their mean, where that is none.

    Examples
    --------
    >>> not_finite(np.inf, np.array([1.0, np.inf])), not_finite(1.5, np.array([1.0, 2.0]))
    ({'not_finite': 1}, {})
    """
    if is_traced(scores) or np.isfinite(to_numpy(mean)):
        return {}
    count = int(np.sum(~np.isfinite(to_numpy(scores))))
    return {NOT_FINITE: count} if count else {}  # none where the sum alone is too large


def _standard_deviation(scores: NDArray) -> float:
    """Of scores some at a time, so that differences from the mean stay in the cache.

    Squares are summed by NumPy: of so few numbers the threads of a linear algebra library take longer to
    meet than to multiply, on a busy machine a hundred times as long.
    """
    mean = scores.mean()
    total = 0.0
    for rows in in_chunks(len(scores), within=budget.cache // 8):
        gap = scores[rows] - mean
        total += float(np.multiply(gap, gap, out=gap).sum())
    return math.sqrt(total / (len(scores) - 1.0))


def mean_score(
    scores: Array, name: str, provenance: dict[str, Any] | None = None, *, weights: object = None
) -> Estimate:
    """Mean over cases with its standard error; a ratio of sums where cases have weights."""
    scores = widen(scores)
    if weights is not None:
        return _weighted_mean(scores, name, provenance, weights)
    xp, n = namespace(scores), int(scores.shape[0])
    value = xp.mean(scores)
    error: Any = None
    if n > 1 and is_traced(scores):
        error = xp.std(stop_gradient(scores), correction=1) / math.sqrt(n)
    elif n > 1:
        with np.errstate(invalid="ignore", over="ignore"):  # an infinite score has no standard error
            error = _standard_deviation(to_numpy(stop_gradient(scores))) / math.sqrt(n)
    found = float(value) if is_numpy(xp) else value
    known = {**({} if provenance is None else provenance), **not_finite(value, scores)}
    return Estimate(found, error, name, "mean", n, provenance=known)
