"""Where targets stand in their predictions: normal scores, which are standard normal if these are right.

For continuous predictions ``z = Phi^-1(F(y))``, whatever their family and whether or not they have moments;
of normals that is the standardised residual. For others the middle of the step of F at y takes the place of
F(y): z is then coarse, and what is ordinary for it is found by resampling. Vectors of normals have residuals,
which are standard normal and independent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wellcal._arrays.linalg import inverse_lower
from wellcal._arrays.namespaces import Array, NDArray, from_numpy, namespace, to_numpy
from wellcal._arrays.ops import ops_for
from wellcal._arrays.registry import Rules
from wellcal._arrays.special import integer_dtype, look_up
from wellcal.measures.count_scores import CountScores
from wellcal.measures.quantiles._pit import distribution_at
from wellcal.predictions import DiagonalNormal, MultivariateNormal, Normal, Predictions, Quantiles, Samples
from wellcal.predictions.base import keeps_distribution
from wellcal.predictions.batches import on_device_of

Standing = Callable[[Array], Array]
"""From targets ``(..., n)`` to their normal scores, in their library and on their device."""

FARTHEST = 8.2
"""Score of a level that rounding cannot tell from 0 or 1."""

FARTHEST_RESIDUAL = 40.0
"""Residuals of normals go on where levels end; their fourth powers must still be numbers beside others."""


def standing_of(predictions: Predictions, farthest: float = FARTHEST_RESIDUAL) -> Standing | None:
    """Normal scores of scalar targets; None for predictions without a distribution function.

    Parameters
    ----------
    predictions
        Classes are in the order of their support, or else of the classes. Draws count as atoms.
    farthest
        Limit of the residuals of normals; levels end at `FARTHEST`.

    Examples
    --------
    >>> standing_of(Normal(np.zeros(2), np.array([1.0, 0.0])))(np.array([[1.0, 0.0], [-50.0, 1.0]]))
    array([[  1.,   0.],
           [-40.,  40.]])
    """
    if predictions.event_shape != () or predictions.target_kind == "objects":
        return None
    if are_normal(predictions):
        return _of_normals(predictions, farthest)
    if isinstance(predictions, Quantiles):
        return _in_bins(predictions)
    if isinstance(predictions, Samples):
        return _among_atoms(predictions)
    if not (predictions.kind == "classes" or predictions.supports("cdf")):
        return None
    if predictions.continuous:
        return lambda targets: score(on_device_of(predictions, targets).cdf(targets))
    if predictions.kind == "counts":
        return CountScores(predictions, lambda batch, k: score(_middle(*distribution_at(batch, k))))
    return lambda targets: score(_middle(*distribution_at(on_device_of(predictions, targets), targets)))


def score(level: Array) -> Array:
    """Phi^-1 of levels, between the limits that rounding sets."""
    xp = namespace(level)
    return xp.clip(ops_for(xp).ndtri(xp.clip(level, 0.0, 1.0)), -FARTHEST, FARTHEST)


def _middle(below: Array, upto: Array) -> Array:
    return 0.5 * (below + upto)


# -- normals -----------------------------------------------------------------------------------

_RESIDUALS: Rules[Callable[[Any], Standing]] = Rules("residuals", serves=keeps_distribution)


def residuals_of(predictions: Predictions) -> Standing | None:
    """From targets ``(..., n)`` or ``(..., n, d)`` to residuals, which are independent N(0, 1) under normals.

    None for predictions that are not normal. Residuals of point predictions are infinite, or NaN where the
    target is the point.
    """
    rule = _RESIDUALS.find(type(predictions))
    return None if rule is None else rule(predictions)


def are_normal(predictions: Predictions) -> bool:
    """Whether predictions are normal, so that targets have residuals."""
    return _RESIDUALS.find(type(predictions)) is not None


@_RESIDUALS.register(Normal)
@_RESIDUALS.register(DiagonalNormal)
def _by_scales(predictions: Any) -> Standing:

    def residuals(targets: Array) -> Array:
        batch = on_device_of(predictions, targets)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return (targets - batch.loc) / batch.scale

    return residuals


@_RESIDUALS.register(MultivariateNormal)
def _by_factors(predictions: MultivariateNormal) -> Standing:
    centre, inverse = to_numpy(predictions.loc), inverse_lower(to_numpy(predictions.chol))

    def residuals(targets: Array) -> Array:
        xp = namespace(targets)
        sets = xp.reshape(targets - from_numpy(centre, targets), (-1, *centre.shape))
        columns = from_numpy(inverse, targets) @ xp.permute_dims(sets, (1, 2, 0))
        return xp.reshape(xp.permute_dims(columns, (2, 0, 1)), targets.shape)

    return residuals


def _of_normals(predictions: Any, farthest: float) -> Standing:
    residuals = residuals_of(predictions)
    assert residuals is not None
    points = bool(np.any(to_numpy(predictions.scale) == 0.0))

    def standing(targets: Array) -> Array:
        z = residuals(targets)
        xp = namespace(z)
        if points:  # the middle of a step from 0 to 1
            z = xp.where(xp.isnan(z), xp.zeros_like(z), z)
        return xp.clip(z, -farthest, farthest)

    return standing


# -- steps that are known before ---------------------------------------------------------------


def _in_bins(predictions: Quantiles) -> Standing:
    """Bins between quantiles, by the normal score of their middle level."""
    edges = np.concatenate([[0.0], predictions.levels, [1.0]])
    scores = score(_middle(edges[1:], edges[:-1]))
    return lambda targets: look_up(
        from_numpy(scores, targets), on_device_of(predictions, targets).bins(targets)
    )


def _among_atoms(predictions: Samples) -> Standing:
    """Ranks of targets among atoms: what they score at an atom, and between two, is known before."""
    values = np.asarray(to_numpy(predictions.values), dtype=np.float64)
    weights = to_numpy(predictions.atom_weights())
    n, size = (int(k) for k in values.shape)
    order = np.argsort(values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    total = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    below = np.concatenate([np.zeros((n, 1)), total], axis=1)
    # Equal atoms are one step, which ends with the last of them.
    last = np.concatenate([ordered[:, 1:] != ordered[:, :-1], np.ones((n, 1), dtype=bool)], axis=1)
    ends = np.where(last, total, np.inf)
    upto: NDArray = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
    at = _middle(below[:, :-1], upto)
    scores = score(np.concatenate([below, at, np.zeros((n, 1))], axis=1)).ravel()
    # Among 2^k - 1 values there are k steps to the first that is not less, without a look at their end.
    steps = [2**k for k in reversed(range(size.bit_length()))]
    width = 2 * steps[0]
    table = np.concatenate([ordered, np.full((n, width - size), np.inf)], axis=1).ravel()
    cases: NDArray = np.arange(n)

    def standing(targets: Array) -> Array:
        xp = namespace(targets)
        sorted_values, known = from_numpy(table, targets), from_numpy(scores, targets)
        case = xp.astype(from_numpy(cases, targets), integer_dtype(xp))
        start = case * width
        place = xp.broadcast_to(start, targets.shape)
        for step in steps:
            less = look_up(sorted_values, place + (step - 1)) < targets
            place = place + step * xp.astype(less, place.dtype)
        equal = look_up(sorted_values, place) == targets
        rank = place - start + (size + 1) * xp.astype(equal, place.dtype)
        return look_up(known, case * (2 * size + 2) + rank)

    return standing
