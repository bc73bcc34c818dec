"""Which parts a batch of predictions has. The choice looks at predictions alone, never at targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.expectations.decompose import components_of, targets_are_indices
from wellcal.hypotests.parts.binary import BinaryParts
from wellcal.hypotests.parts.centres import centre_and_spread
from wellcal.hypotests.parts.classes import ClassParts
from wellcal.hypotests.parts.contrasts import contrasts_of
from wellcal.hypotests.parts.part import Parts, like
from wellcal.hypotests.parts.scalars import CONTINUOUS, COUNTS, ScalarParts
from wellcal.hypotests.parts.standing import standing_of
from wellcal.hypotests.parts.surprise import surprise_of
from wellcal.hypotests.parts.vectors import Standardised, VectorParts, whitening
from wellcal.predictions import DiagonalNormal, MultivariateNormal, Predictions, Quantiles, Samples
from wellcal.predictions.base import keeps_distribution

_MOST_CENTRES = 5  # coordinates whose predicted centre may go with errors


def parts_of(predictions: Predictions) -> Parts | None:
    """The parts for a batch of predictions; None where targets are objects, which have none."""
    if isinstance(predictions, Samples) and predictions.holds_objects:
        return None
    if targets_are_indices(predictions):
        probabilities = np.asarray(to_numpy(predictions.class_probs()), dtype=np.float64)
        return BinaryParts(probabilities[:, 1]) if probabilities.shape[1] == 2 else ClassParts(probabilities)
    centre, spread = summaries(predictions)
    standing = standing_of(predictions)
    if predictions.event_shape == ():
        weights = COUNTS if are_counts(predictions) else CONTINUOUS
        scores = _standardised(predictions, centre, spread) if standing is None else standing
        normal = standing is not None and predictions.continuous and not isinstance(predictions, Quantiles)
        return ScalarParts(scores, contrasts_of(centre, spread), weights, normal=normal)
    dimension = int(np.prod(predictions.event_shape))
    total = np.sqrt(np.mean(spread**2, axis=1))
    columns = contrasts_of(centre[:, :_MOST_CENTRES], total)
    standardise = _standardised(predictions, centre, spread)
    # Of normals the squared length of residuals is the surprise, but for a factor and a constant.
    surprise = None if _are_normal(predictions) else surprise_of(predictions)
    return VectorParts(standardise, columns, dimension, surprise)


def _are_normal(predictions: Predictions) -> bool:
    """Whether they are normal vectors, none of them a point in any direction."""
    kinds = (DiagonalNormal, MultivariateNormal)
    known = any(
        isinstance(predictions, kind) and keeps_distribution(type(predictions), kind) for kind in kinds
    )
    return known and bool(np.all(to_numpy(predictions.variance()) > 0.0))


def are_counts(predictions: Predictions) -> bool:
    """Whether all targets are whole numbers."""
    return all(part.target_domain.discrete for part, _ in components_of(predictions))


def summaries(predictions: Predictions) -> tuple[NDArray, NDArray]:
    """Centre and spread of each prediction; a middle quantile and a range where these are all there is."""
    if isinstance(predictions, Quantiles):
        values, levels = np.asarray(predictions.values), predictions.levels
        return values[:, int(np.argmin(np.abs(levels - 0.5)))], values[:, -1] - values[:, 0]
    return centre_and_spread(predictions)


def _standardised(predictions: Predictions, centre: NDArray, spread: NDArray) -> Standardised:
    if isinstance(predictions, MultivariateNormal):
        family: Any = predictions
        return whitening(family.loc, family.chol)
    return lambda targets: (targets - like(centre, targets)) / like(spread, targets)
