"""Which parts a batch of predictions has. The choice looks at predictions alone, never at targets."""

from __future__ import annotations

import numpy as np

from wellcal._arrays.namespaces import NDArray, from_numpy, to_numpy
from wellcal.hypotests.parts.binary import BinaryParts
from wellcal.hypotests.parts.centres import centre_and_spread
from wellcal.hypotests.parts.classes import ClassParts
from wellcal.hypotests.parts.contrasts import Contrasts, contrasts_of
from wellcal.hypotests.parts.part import Parts
from wellcal.hypotests.parts.scalars import CONTINUOUS, COUNTS, ScalarParts
from wellcal.hypotests.parts.surprise import surprise_of
from wellcal.hypotests.parts.vectors import VectorParts
from wellcal.measures.normal_scores import Standing, residuals_of, standing_of
from wellcal.predictions import Predictions, Quantiles

_MOST_CENTRES = 5  # coordinates whose predicted centre may go with errors


def parts_of(predictions: Predictions) -> Parts | None:
    """The parts for a batch of predictions; None where targets are objects, which have none."""
    if predictions.target_kind == "objects":
        return None
    if predictions.kind == "classes":
        probabilities = np.asarray(to_numpy(predictions.class_probs()), dtype=np.float64)
        return BinaryParts(probabilities[:, 1]) if probabilities.shape[1] == 2 else ClassParts(probabilities)
    return parts_beside(predictions, contrasts_of(*ranked_summaries(predictions)))


def ranked_summaries(predictions: Predictions) -> tuple[NDArray, NDArray]:
    """Centres ``(n,)`` or ``(n, k)`` and spreads ``(n,)``, whose ranks make contrasts."""
    centre, spread = summaries(predictions)
    if predictions.event_shape == ():
        return centre, spread
    return centre[:, :_MOST_CENTRES], np.sqrt(np.mean(spread**2, axis=1))


def parts_beside(predictions: Predictions, columns: Contrasts) -> Parts:
    """Parts of numbers and vectors, with what their errors may go with."""
    centre, spread = summaries(predictions)
    standing = standing_of(predictions)
    if predictions.event_shape == ():
        weights = COUNTS if are_counts(predictions) else CONTINUOUS
        scores = _by_spread(centre, spread) if standing is None else standing
        normal = standing is not None and predictions.continuous and not isinstance(predictions, Quantiles)
        return ScalarParts(scores, columns, weights, normal=normal)
    dimension = int(np.prod(predictions.event_shape))
    residuals = residuals_of(predictions)
    if residuals is None or np.any(to_numpy(predictions.variance()) == 0.0):
        return VectorParts(_by_spread(centre, spread), columns, dimension, surprise_of(predictions))
    # Of normals the squared length of residuals is the surprise, but for a factor and a constant.
    return VectorParts(residuals, columns, dimension, None)


def are_counts(predictions: Predictions) -> bool:
    """Whether all targets are whole numbers."""
    return all(part.target_domain.discrete for part in predictions.parts)


def summaries(predictions: Predictions) -> tuple[NDArray, NDArray]:
    """Centre and spread of each prediction; a middle quantile and a range where these are all there is."""
    if isinstance(predictions, Quantiles):
        values, levels = np.asarray(predictions.values), predictions.levels
        return values[:, int(np.argmin(np.abs(levels - 0.5)))], values[:, -1] - values[:, 0]
    return centre_and_spread(predictions)


def _by_spread(centre: NDArray, spread: NDArray) -> Standing:
    return lambda targets: (targets - from_numpy(centre, targets)) / from_numpy(spread, targets)
