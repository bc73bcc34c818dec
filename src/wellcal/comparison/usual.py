"""What scores of targets are usual under their predictions, where these are not standard normal.

Scores of counts, of bins between quantiles and among few atoms are coarse, and spread less than standard
normal ones; residuals of vectors about the mean of a few draws spread further. What is usual for them is
found from targets that follow the predictions: drawn ones, or the draws themselves, each in the place of the
target and with the target among the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.hypotests.parts.part import Parts
from wellcal.hypotests.parts.scalars import ScalarParts
from wellcal.measures.ranks import average_ranks
from wellcal.predictions import Predictions, Samples
from wellcal.problem.target_resampling import TargetStream, pool_draws, why_not_resampled

_SETS, _FEWEST_SETS = 200, 20
_NUMBERS = 2_000_000  # that are drawn, in all
_STREAM = TargetStream((20211, 7))


class Usual(NamedTuple):
    """Mean ``(n, d)`` of scores, and their variance ``(n,)``, mean over coordinates."""

    mean: NDArray
    variance: NDArray


def usual_scores(
    targets: NDArray, predictions: Predictions, parts: Parts, scores: Callable[[NDArray], NDArray]
) -> Usual | None:
    """Mean and variance of scores under the predictions; None where these are 0 and 1.

    Parameters
    ----------
    targets, predictions, parts
        Cases in NumPy, and the parts of a test that have the scores.
    scores
        From sets of targets ``(r, n, ...)`` to scores ``(r, n, d)``.

    Examples
    --------
    >>> import wellcal as wc
    >>> from wellcal.hypotests.parts.families import parts_of
    >>> draws = wc.Samples([[0.0, 1.0, 2.0]])
    >>> found = usual_scores(np.array([0.5]), draws, parts_of(draws), np.asarray)
    >>> found.mean.round(9), found.variance.round(3)
    (array([[0.]]), array([0.712]))
    """
    if isinstance(predictions, Samples) and predictions.kind == "draws":
        pool = np.asarray(to_numpy(pool_draws(targets, predictions).values), dtype=np.float64)
        return _moments(
            scores_of_draws(pool) if pool.ndim == 2 else residuals_of_draws(pool.reshape(*pool.shape[:2], -1))
        )
    if not isinstance(parts, ScalarParts) or parts.normal or why_not_resampled(predictions) is not None:
        return None
    count = min(max(_NUMBERS // len(predictions), _FEWEST_SETS), _SETS)
    drawn = _STREAM.sets(predictions, targets, count)
    found = np.concatenate([scores(sets) for sets in drawn])
    return _moments(np.moveaxis(found, 0, 1)) if np.isfinite(found).all() else None


def among(level: Any, atoms: int) -> NDArray:
    """Score of a target that has this share of so many atoms below it.

    One outside of all atoms is not infinitely far off: it is the first or last of one more.
    """
    return cast("NDArray", special.ndtri((atoms * level + 0.5) / (atoms + 1.0)))


def scores_of_draws(pool: NDArray) -> NDArray:
    """Scores ``(n, S + 1, 1)`` of each member of a pool among the others."""
    others = pool.shape[1] - 1
    below = average_ranks(pool) - 1.0  # half of those that are equal
    return among(below / others, others)[..., None]


def residuals_of_draws(pool: NDArray) -> NDArray:
    """Residuals ``(n, S + 1, d)`` of each member about the mean of the others, in their spreads."""
    others = pool.shape[1] - 1
    centred = pool - pool.mean(axis=1, keepdims=True)
    mean = -centred / others
    squares = (np.sum(centred**2, axis=1, keepdims=True) - centred**2) / others - mean**2
    spread = np.sqrt(np.maximum(squares, 0.0))
    typical = np.median(spread[spread > 0.0]) if (spread > 0.0).any() else 1.0
    return (centred - mean) / np.where(spread > 0.0, spread, typical)


def _moments(scores: NDArray) -> Usual:
    mean = scores.mean(axis=1)
    return Usual(mean, np.mean((scores - mean[:, None]) ** 2, axis=(1, 2)))
