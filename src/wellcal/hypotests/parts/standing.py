"""Where targets stand in their predictions: normal scores, which are standard normal if these are right.

For continuous predictions ``z = Phi^-1(F(y))``, whatever their family and whether or not they have moments.
For others the middle of the step of F at y takes the place of F(y): z is then coarse, and what is ordinary
for it is found by resampling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import Array, NDArray, namespace, to_numpy
from wellcal._arrays.ops import ops_for
from wellcal.predictions import Normal, Predictions, Quantiles, Samples

Standing = Callable[[Array], Array]
"""From sets of targets ``(r, n)`` to their normal scores ``(r, n)``."""

_LEAST_LEVEL = 1e-16
_MOST = 40.0


def standing_of(predictions: Predictions) -> Standing | None:
    """Normal scores of scalar targets; None for predictions without a distribution function."""
    family: Any = predictions
    if predictions.event_shape != () or (isinstance(predictions, Samples) and predictions.holds_objects):
        return None
    if isinstance(predictions, Normal):
        return lambda targets: _limited((targets - family.loc) / family.scale)
    if isinstance(predictions, Quantiles):
        return _in_bins(predictions)
    if isinstance(predictions, Samples):
        return _among_atoms(predictions)
    if not predictions.supports("cdf"):
        return None
    if predictions.continuous:
        return lambda targets: _score(family.cdf(targets))
    return lambda targets: _score(0.5 * (family.cdf(targets) + family.cdf(_before(targets, predictions))))


def _before(targets: Array, predictions: Predictions) -> Array:
    """The largest possible targets below others."""
    if predictions.target_domain.discrete:
        return targets - 1
    return np.nextafter(to_numpy(targets), -np.inf)


def _limited(z: Array) -> Array:
    return namespace(z).clip(z, -_MOST, _MOST)


def _score(u: Array) -> Array:
    xp = namespace(u)
    return ops_for(xp).ndtri(xp.clip(u, _LEAST_LEVEL, 1.0 - _LEAST_LEVEL))


def _in_bins(predictions: Quantiles) -> Standing:
    """Bins between quantiles, by the normal score of their middle level."""
    edges = np.concatenate([[0.0], predictions.levels, [1.0]])
    scores = special.ndtri(0.5 * (edges[1:] + edges[:-1]))
    return lambda targets: scores[np.asarray(predictions.bins(targets))]


def _among_atoms(predictions: Samples) -> Standing:
    """Ranks of targets among atoms: two searches in one sorted list of all rows."""
    values = np.asarray(to_numpy(predictions.values), dtype=np.float64)
    weights = np.broadcast_to(np.asarray(to_numpy(predictions.atom_weights())), values.shape)
    n, size = len(values), int(values.shape[1])
    distinct, codes = np.unique(values, return_inverse=True)
    order = np.argsort(values, axis=1, kind="stable")
    cases: NDArray = np.arange(n)
    start: NDArray = cases * np.int64(len(distinct) + 1)
    keys: NDArray = (
        start[:, None] + np.take_along_axis(np.reshape(codes, values.shape), order, axis=1) + 1
    ).ravel()
    ordered = np.take_along_axis(weights, order, axis=1)
    total = np.concatenate([np.zeros((n, 1)), np.cumsum(ordered, axis=1)], axis=1)

    def scores(targets: NDArray) -> NDArray:
        left = np.searchsorted(distinct, targets, side="left")  # distinct values below
        right = np.searchsorted(distinct, targets, side="right")  # and up to the target
        below: NDArray = np.searchsorted(keys, start + left, side="right") - cases * size
        up_to: NDArray = np.searchsorted(keys, start + right, side="right") - cases * size
        return _score(0.5 * (total[cases, below] + total[cases, up_to]))

    return scores
