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
from wellcal._arrays.special import integer_dtype, look_up
from wellcal.hypotests.parts.part import like
from wellcal.predictions import Normal, Predictions, Quantiles, Samples
from wellcal.predictions.batches import wherever

Standing = Callable[[Array], Array]
"""From sets of targets ``(r, n)`` to their normal scores ``(r, n)``, in their library and on their device."""

_LEAST_LEVEL = 1e-16
_MOST = 40.0


def standing_of(predictions: Predictions) -> Standing | None:
    """Normal scores of scalar targets; None for predictions without a distribution function."""
    if predictions.event_shape != () or (isinstance(predictions, Samples) and predictions.holds_objects):
        return None
    if isinstance(predictions, Quantiles):
        return _in_bins(predictions)
    if isinstance(predictions, Samples):
        return _among_atoms(predictions)
    beside: Callable[[Array], Any] = wherever(predictions)
    if isinstance(predictions, Normal):
        return lambda targets: _residual(beside(targets), targets)
    if not predictions.supports("cdf"):
        return None
    if predictions.continuous:
        return lambda targets: _score(beside(targets).cdf(targets))
    return lambda targets: _in_the_middle(beside(targets), targets)


def _residual(normals: Any, targets: Array) -> Array:
    z = (targets - normals.loc) / normals.scale
    return namespace(z).clip(z, -_MOST, _MOST)


def _in_the_middle(predictions: Any, targets: Array) -> Array:
    """Scores of the middle of steps; the largest possible target below another is where a step begins."""
    discrete = predictions.target_domain.discrete
    xp = namespace(targets)
    before = targets - 1 if discrete else xp.nextafter(targets, xp.full_like(targets, -np.inf))
    return _score(0.5 * (predictions.cdf(targets) + predictions.cdf(before)))


def _score(u: Array) -> Array:
    xp = namespace(u)
    return ops_for(xp).ndtri(xp.clip(u, _LEAST_LEVEL, 1.0 - _LEAST_LEVEL))


def _in_bins(predictions: Quantiles) -> Standing:
    """Bins between quantiles, by the normal score of their middle level."""
    edges = np.concatenate([[0.0], predictions.levels, [1.0]])
    scores = special.ndtri(0.5 * (edges[1:] + edges[:-1]))
    beside: Callable[[Array], Any] = wherever(predictions)
    return lambda targets: look_up(like(scores, targets), beside(targets).bins(targets))


def _among_atoms(predictions: Samples) -> Standing:
    """Ranks of targets among atoms: what they score at an atom, and between two, is known before."""
    values = np.asarray(to_numpy(predictions.values), dtype=np.float64)
    weights = np.broadcast_to(np.asarray(to_numpy(predictions.atom_weights())), values.shape)
    n, size = (int(k) for k in values.shape)
    order = np.argsort(values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    total = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    below = np.concatenate([np.zeros((n, 1)), total], axis=1)
    # Equal atoms are one step, which ends with the last of them.
    last = np.concatenate([ordered[:, 1:] != ordered[:, :-1], np.ones((n, 1), dtype=bool)], axis=1)
    ends = np.where(last, total, np.inf)
    upto: NDArray = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
    at = 0.5 * (below[:, :-1] + upto)
    scores = _score(np.concatenate([below, at, np.zeros((n, 1))], axis=1)).ravel()
    # Among 2^k - 1 values there are k steps to the first that is not less, without a look at their end.
    steps = [2**k for k in reversed(range(size.bit_length()))]
    width = 2 * steps[0]
    table = np.concatenate([ordered, np.full((n, width - size), np.inf)], axis=1).ravel()
    cases: NDArray = np.arange(n)

    def standing(targets: Array) -> Array:
        xp = namespace(targets)
        sorted_values, known = like(table, targets), like(scores, targets)
        case = xp.astype(like(cases, targets), integer_dtype(xp))
        start = case * width
        place = xp.broadcast_to(start, targets.shape)
        for step in steps:
            less = look_up(sorted_values, place + (step - 1)) < targets
            place = place + step * xp.astype(less, place.dtype)
        equal = look_up(sorted_values, place) == targets
        rank = place - start + (size + 1) * xp.astype(equal, place.dtype)
        return look_up(known, case * (2 * size + 2) + rank)

    return standing
