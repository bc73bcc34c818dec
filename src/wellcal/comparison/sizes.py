"""How large the error of a model is in its simplest kinds: a length that two models can be compared by.

The SKCE is a square. Its standard error grows with it, so that the difference between a large error and none
is seen late. The length of an error does not have that defect. For targets with normal scores z (see
:mod:`~wellcal.measures.normal_scores`) it is that of ``(mean z, sqrt(2) log sd z)``, whose square is close to
twice the Kullback-Leibler divergence that mending the error would save. For classes its square is twice the
log-likelihood that the best temperature would gain, of two classes the best line of log odds. (In units of
what predictions say of themselves, as for numbers, predictions that are far too sure would have a small
error, since they leave no room for a residual, and one that is hardly known.) Scores that are not standard
normal under the predictions are seen beside what is usual for them (:mod:`~wellcal.comparison.usual`): a
calibrated model has no error, however coarse its scores are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.special import LEAST_PROBABILITY, bounded_log_odds
from wellcal.comparison.usual import Usual, among, usual_scores
from wellcal.hypotests.parts.families import parts_of
from wellcal.hypotests.parts.part import Parts
from wellcal.hypotests.parts.scalars import ScalarParts
from wellcal.hypotests.parts.vectors import VectorParts
from wellcal.measures.log_odds import fitted_line
from wellcal.measures.sharpness import best_sharpness
from wellcal.predictions import Predictions, Samples
from wellcal.problem.weights import MeanOfWeighted

NUMBERS, TWO_CLASSES, CLASSES = "centre and spread", "temperature and frequency", "temperature"
"""What an error is in whose length is known."""

LENGTHS = {
    NUMBERS: "a length: of the shift in standard deviations, and 1.4 times the logarithm of the factor that "
    "spreads are off by",
    TWO_CLASSES: "a length: the root of twice the NLL that the best temperature and frequency would save",
    CLASSES: "a length: the root of twice the NLL that the best temperature would save",
}
"""What the numbers are that errors are compared by: not the percents that findings tell."""

_LEAST = 1e-12  # variance that is divided by
_HELD = 1e-6  # how strongly a line is held to what was predicted: there is always one, and it is never worse


@dataclass(frozen=True)
class Size:
    """Length of an error.

    Attributes
    ----------
    length
        The length.
    terms
        What each case adds to its deviation from the true one, ``(n,)``, to first order: their weighted mean
        is zero.
    measure
        What the error is in: "centre and spread", "temperature and frequency" of two classes, "temperature"
        of more.
    """

    length: float
    terms: NDArray
    measure: str = NUMBERS


def size_of(targets: NDArray, predictions: Predictions, weights: NDArray) -> Size | None:
    """The length of the error in centre and spread, or of classes in temperature; None where there is none.

    Parameters
    ----------
    targets
        In internal form.
    predictions
        In NumPy.
    weights
        Of the cases, with sum 1.

    Examples
    --------
    >>> from wellcal.predictions import Normal
    >>> z = np.array([-1.0, 1.0])
    >>> size_of(z + 0.5, Normal(np.zeros(2), np.ones(2)), np.full(2, 0.5)).length
    0.5
    """
    if predictions.target_kind == "objects":
        return None
    if predictions.kind == "classes":
        return _of_classes(targets, predictions, weights)
    parts = parts_of(predictions)
    if parts is None:
        return None
    score = partial(scores_of, parts, predictions)
    z = score(targets[None])
    if z is None or not np.isfinite(z).all():
        return None
    return _length(*_of_scores(z[0], weights, usual_scores(targets, predictions, parts, score)))


def scores_of(parts: Parts, predictions: Predictions, targets: NDArray) -> Any:
    """Normal scores, or standardised residuals of vectors, ``(r, n, d)``; None where there are none."""
    with np.errstate(all="ignore"):
        if isinstance(parts, VectorParts):
            return np.asarray(parts.standardise(targets))
        if not isinstance(parts, ScalarParts):
            return None
        z: NDArray = np.asarray(parts.standing(targets))
    if isinstance(predictions, Samples):
        z = among(special.ndtr(z), int(predictions.values.shape[1]))
    return z[..., None]


def difference_error(a: Size, b: Size, weights: NDArray, weighted: MeanOfWeighted) -> float:
    """Standard error of the difference of two lengths from the same cases, the larger of two.

    Errors that both share cancel to first order, if both point where they seem to. But an error that may be
    zero points anywhere, and where nearly everything cancels the second order, which is the noise across the
    direction of an error, is what is left.
    """
    return max(standard_error(a.terms + sign * b.terms, weights, weighted) for sign in (-1.0, 1.0))


def standard_error(terms: NDArray, weights: NDArray, weighted: MeanOfWeighted) -> float:
    """Of a weighted mean, from the deviations of its terms; weights have sum 1."""
    return float(np.sqrt(np.sum((weights * terms) ** 2) * weighted.factor))


def _length(errors: NDArray, terms: NDArray) -> Size:
    length = float(np.sqrt(np.sum(errors**2)))
    return Size(length, terms @ (errors / length if length > 0.0 else errors))


def _of_scores(z: NDArray, weights: NDArray, usual: Usual | None) -> tuple[NDArray, NDArray]:
    """Errors ``(d + 1,)`` and terms ``(n, d + 1)`` of scores ``(n, d)``, usually standard normal."""
    d = z.shape[1]
    unit = np.sqrt(2.0 * d)
    of_cases, expected = np.ones(len(z)), 1.0
    if usual is not None:
        z, of_cases = z - usual.mean, usual.variance
        expected = max(float(weights @ of_cases), _LEAST)
    scale = np.sqrt(expected)
    mean = weights @ z
    squares = np.mean((z - mean) ** 2, axis=1)
    variance = max(float(weights @ squares), _LEAST)
    errors = np.append(mean / scale, unit * 0.5 * np.log(variance / expected))
    moved = of_cases / expected - 1.0  # what is usual varies, too
    centre = (z - mean) / scale - 0.5 * moved[:, None] * (mean / scale)
    spread = unit * 0.5 * (squares / variance - 1.0 - moved)
    return errors, np.column_stack([centre, spread])


def _of_classes(targets: NDArray, predictions: Any, weights: NDArray) -> Size:
    """The root of twice what the best temperature gains, of two classes the best line of log odds.

    The best one is where the gain does not change with it, so that terms are what single cases gain.
    """
    p = np.asarray(to_numpy(predictions.class_probs()), dtype=np.float64)
    if p.shape[1] == 2:
        odds = bounded_log_odds(p[:, 1])
        intercept, slope = fitted_line(targets.astype(np.float64), odds, weights, held=_HELD)
        sign = np.where(targets == 1, -1.0, 1.0)
        gains = np.logaddexp(0.0, sign * odds) - np.logaddexp(0.0, sign * (intercept + slope * odds))
    else:
        logs = np.log(np.maximum(p, LEAST_PROBABILITY))
        logs -= special.logsumexp(logs, axis=1, keepdims=True)
        power, rows = best_sharpness(logs, targets, weights).power, np.arange(len(logs))
        gains = (power - 1.0) * logs[rows, targets] - special.logsumexp(power * logs, axis=1)
    gain = float(weights @ gains)
    measure = TWO_CLASSES if p.shape[1] == 2 else CLASSES
    if not gain > 0.0:
        return Size(0.0, np.zeros(len(gains)), measure)
    length = np.sqrt(2.0 * gain)
    return Size(float(length), (gains - gain) / length, measure)
