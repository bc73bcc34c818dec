"""Plain statistics that a kernel sees only dimly: the centre of targets, and how surprising they are.

Both are sums over cases, which cost next to nothing compared with kernels, and both are standardised by
their spread over all sets of targets, so that a change of unit changes nothing.

- *centre*: standardised residuals (or residuals of class probabilities), summed over cases;
- *surprise*: minus the log probability of the target, summed over cases. Over-confident predictions make
  targets too surprising, under-confident ones not surprising enough. Predictions without a density take
  the squared standardised residual instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy import linalg, special

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.expectations.decompose import targets_are_indices
from wellcal.hypotests.pvalues import Ranks, combined, ranked
from wellcal.predictions import MultivariateNormal, Predictions, Quantiles, Samples

_UNDERCONFIDENCE = 1.0 / 3.0  # weight of too little surprise, compared with too much
_SETS_PER_COORDINATE = 20  # sets of targets for each coordinate, from which their covariance is estimated
_LEAST_EIGENVALUE = 1e-9

SumOverCases = Callable[[NDArray], NDArray]
"""From sets of targets ``(r, n, ...)`` to a sum over cases for each, ``(r,)`` or ``(r, q)``."""


@dataclass(frozen=True)
class Moments:
    """Sums over cases of sets of targets ``(r, n, ...)``: residuals ``(r, q)`` and surprise ``(r,)``."""

    residuals: SumOverCases
    surprise: SumOverCases


def moments_of(predictions: Predictions) -> Moments | None:
    """The sums for a batch of predictions; None where targets are objects, which have neither."""
    if isinstance(predictions, Samples) and predictions.holds_objects:
        return None
    if targets_are_indices(predictions):
        return _of_classes(predictions)
    if isinstance(predictions, Quantiles):
        return _of_bins(predictions)
    standardise = _standardised(predictions)

    def residuals(targets: NDArray) -> NDArray:
        u = standardise(targets).sum(axis=1)
        return u[:, None] if u.ndim == 1 else u

    def squares(targets: NDArray) -> NDArray:
        return (standardise(targets) ** 2).reshape(len(targets), -1).sum(axis=1)

    surprise = _surprise(predictions)
    return Moments(residuals, squares if surprise is None else surprise)


# -- by family -------------------------------------------------------------------------------


def _of_classes(predictions: Predictions) -> Moments:
    probabilities = np.asarray(to_numpy(predictions.class_probs()), dtype=np.float64)
    with np.errstate(divide="ignore"):
        surprisal = -np.log(probabilities)
    rows = np.arange(len(probabilities))
    expected = probabilities.sum(axis=0)

    def residuals(targets: NDArray) -> NDArray:
        count = probabilities.shape[1]
        shifted = targets + count * np.arange(len(targets))[:, None]
        return np.bincount(shifted.ravel(), minlength=count * len(targets)).reshape(-1, count) - expected

    def surprise(targets: NDArray) -> NDArray:
        return surprisal[rows, targets].sum(axis=1)

    return Moments(residuals, surprise)


def _of_bins(predictions: Quantiles) -> Moments:
    """Bins by the normal score of their middle level."""
    edges = np.concatenate([[0.0], predictions.levels, [1.0]])
    scores = special.ndtri(0.5 * (edges[1:] + edges[:-1]))

    def residuals(targets: NDArray) -> NDArray:
        return scores[np.asarray(predictions.bins(targets))].sum(axis=1)[:, None]

    def surprise(targets: NDArray) -> NDArray:
        return (scores[np.asarray(predictions.bins(targets))] ** 2).sum(axis=1)

    return Moments(residuals, surprise)


def _standardised(predictions: Predictions) -> SumOverCases:
    """Targets minus the centre of their prediction, in units of its spread."""
    if isinstance(predictions, MultivariateNormal):
        inverse = _inverses(np.asarray(predictions.chol))
        loc = np.asarray(predictions.loc)
        return lambda targets: np.einsum("nab,rnb->rna", inverse, targets - loc)
    centre, spread = centre_and_spread(predictions)
    return lambda targets: (targets - centre) / spread


def _inverses(matrices: NDArray) -> NDArray:
    out = np.empty_like(matrices)
    for k, matrix in enumerate(matrices):
        out[k] = linalg.inv(matrix)
    return out


def centre_and_spread(predictions: Predictions) -> tuple[NDArray, NDArray]:
    """Mean and standard deviation; median and interquartile range where there are none, or no finite ones."""
    centre = spread = np.full((len(predictions), *predictions.event_shape), np.nan)
    if predictions.supports("mean") and predictions.supports("variance"):
        with np.errstate(invalid="ignore", over="ignore"):
            centre = np.asarray(to_numpy(predictions.mean()), dtype=np.float64)
            spread = np.sqrt(np.asarray(to_numpy(predictions.variance()), dtype=np.float64))
    bad = ~(np.isfinite(centre) & np.isfinite(spread))
    if bad.any():
        median = np.asarray(to_numpy(predictions.quantile(0.5)))
        robust = np.asarray(to_numpy(predictions.interquartile_range())) / 1.349
        centre, spread = np.where(bad, median, centre), np.where(bad, robust, spread)
    # A prediction without spread says what will be: any deviation counts in the unit of the others.
    typical = np.median(spread[spread > 0]) if (spread > 0).any() else 1.0
    return centre, np.where(spread > 0, spread, typical)


def _surprise(predictions: Predictions) -> SumOverCases | None:
    """Minus the log probability of all targets of a set, or None for predictions that have none."""
    if not predictions.supports("log_prob"):
        return None

    def surprise(targets: NDArray) -> NDArray:
        with np.errstate(all="ignore"):
            total = -np.asarray(to_numpy(predictions.log_prob(targets))).sum(axis=1)
        # Where densities are infinite for some cases and zero for others, what is impossible counts.
        return np.where(np.isnan(total), np.inf, total)

    return surprise


# -- p-values --------------------------------------------------------------------------------


def centre_pvalues(sums: NDArray) -> Ranks:
    """p-values over sets from sums of residuals ``(R + 1, q)``.

    The statistic is their squared Mahalanobis length under the covariance over all sets; with too few
    sets for it, the sum of squares of the standardised coordinates.
    """
    z = sums - sums.mean(axis=0)
    scale = z.std(axis=0)
    z = z[:, scale > 0] / scale[scale > 0]
    if z.shape[1] * _SETS_PER_COORDINATE > len(z):
        return ranked((z**2).sum(axis=1))
    values, vectors = cast("tuple[NDArray, NDArray]", linalg.eigh(z.T @ z / len(z)))
    keep = values > _LEAST_EIGENVALUE * max(values.max(initial=0.0), 1e-300)
    return ranked(((z @ vectors[:, keep]) ** 2 / values[keep]).sum(axis=1))


def surprise_pvalues(sums: NDArray) -> Ranks:
    """p-values over sets from total surprise ``(R + 1,)``; too much counts three times too little."""
    finite = sums[np.isfinite(sums)]
    sums = sums - (np.median(finite) if len(finite) else 0.0)  # the unit of targets is an additive constant
    return combined([(1.0, ranked(sums)), (_UNDERCONFIDENCE, ranked(-sums))])
