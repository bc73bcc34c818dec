"""How large the error of a model is in centre and spread: a length that two models can be compared by.

The SKCE is a square. Its standard error grows with it, so that the difference between a large error and none
is seen late. The length of an error does not have that defect. For targets with normal scores z (see
:mod:`~wellcal.measures.normal_scores`) it is that of ``(mean z, sqrt(2) log sd z)``; for classes that of
the mean residual in units of its standard deviation (two classes) and of the logarithm of the temperature
that would mend the predictions, in the same unit: the square of the length is close to twice the
Kullback-Leibler divergence that mending the error would save. Scores that are not standard normal under the
predictions are seen beside what is usual for them (:mod:`~wellcal.comparison.usual`): a calibrated
model has no error, however coarse its scores are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.special import LEAST_PROBABILITY
from wellcal.comparison.usual import Usual, among, usual_scores
from wellcal.expectations.decompose import targets_are_indices
from wellcal.hypotests.parts.families import parts_of
from wellcal.hypotests.parts.part import Parts
from wellcal.hypotests.parts.scalars import ScalarParts
from wellcal.hypotests.parts.vectors import VectorParts
from wellcal.measures.sharpness import best_sharpness
from wellcal.predictions import Predictions, Samples

_LEAST = 1e-12  # variance that is divided by


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
    """

    length: float
    terms: NDArray


def size_of(targets: NDArray, predictions: Predictions, weights: NDArray) -> Size | None:
    """The length of the error in centre and spread; None for targets that have neither.

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
    if isinstance(predictions, Samples) and predictions.holds_objects:
        return None
    if targets_are_indices(predictions):
        return _length(*_of_classes(targets, predictions, weights))
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


def difference_error(a: Size, b: Size, weights: NDArray) -> float:
    """Standard error of the difference of two lengths from the same cases, the larger of two.

    Errors that both share cancel to first order, if both point where they seem to. But an error that may be
    zero points anywhere, and where nearly everything cancels the second order, which is the noise across the
    direction of an error, is what is left.
    """
    return max(standard_error(a.terms + sign * b.terms, weights) for sign in (-1.0, 1.0))


def standard_error(terms: NDArray, weights: NDArray) -> float:
    """Of a weighted mean, from the deviations of its terms; weights have sum 1."""
    n = np.count_nonzero(weights)
    return float(np.sqrt(np.sum((weights * terms) ** 2) * n / max(n - 1.0, 1.0)))


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


def _of_classes(targets: NDArray, predictions: Any, weights: NDArray) -> tuple[NDArray, NDArray]:
    """The same for classes: residual, where there are two, and logarithm of the temperature."""
    p = np.asarray(to_numpy(predictions.class_probs()), dtype=np.float64)
    logs = np.log(np.maximum(p, LEAST_PROBABILITY))
    bends = _variance(p, logs)
    bend = max(float(weights @ bends), _LEAST)
    best = best_sharpness(logs, targets, weights)
    curvature = max(float(weights @ best.bend) * best.power, _LEAST)
    unit, log_sharpness = np.sqrt(bend), np.log(best.power)
    errors = [unit * log_sharpness]
    terms = [
        unit * best.slope / curvature + 0.5 * log_sharpness * (bends - bend) / unit
    ]  # the unit varies, too
    if p.shape[1] == 2:
        residual = (targets == 1) - p[:, 1]
        variances = p[:, 1] * p[:, 0]
        scale = np.sqrt(max(float(weights @ variances), _LEAST))
        mean = float(weights @ residual)
        errors.append(mean / scale)
        terms.append((residual - mean) / scale - 0.5 * mean / scale**3 * (variances - scale**2))
    return np.array(errors), np.column_stack(terms)


def _variance(p: NDArray, values: NDArray) -> NDArray:
    mean = np.sum(p * values, axis=1)
    return np.sum(p * values**2, axis=1) - mean**2
