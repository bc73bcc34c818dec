"""Continuous ranked probability scores in closed form, on every array library with derivatives.

All have the shape E|Z - y| - E|Z - Z'| / 2 with Z, Z' drawn from the prediction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from wellcal._arrays.namespaces import Array, namespace, widen
from wellcal._arrays.ops import Ops, ops_for
from wellcal.expectations.decompose import components_of
from wellcal.measures.scores.rules import CRPS_RULES, MIXTURE_CRPS_RULES
from wellcal.predictions import Laplace, LogNormal, Mixture, Normal, Samples

_ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_ROOT_1_OVER_PI = math.sqrt(1.0 / math.pi)


@CRPS_RULES.register(Normal)
def normal_crps(predictions: Normal, y: Array) -> Array:
    """Normal distributions; a scale of zero is a point."""
    loc, scale = widen(predictions.loc), widen(predictions.scale)
    ops = ops_for(namespace(loc))
    return normal_absolute_mean(ops, widen(y) - loc, scale) - _ROOT_1_OVER_PI * scale


def normal_absolute_mean(ops: Ops, mean: Array, scale: Array) -> Array:
    """E|N(mean, scale^2)|, for scales >= 0."""
    certain = scale == 0
    safe = ops.where(certain, ops.one(scale), scale)
    z = mean / safe
    spread = safe * (_ROOT_2_OVER_PI * ops.exp(-0.5 * z * z)) + mean * (2.0 * ops.ndtr(z) - 1.0)
    return ops.where(certain, ops.abs(mean), spread)


@CRPS_RULES.register(Laplace)
def laplace_crps(predictions: Laplace, y: Array) -> Array:
    """Laplace distributions."""
    loc, scale = widen(predictions.loc), widen(predictions.scale)
    ops = ops_for(namespace(loc))
    z = ops.abs(widen(y) - loc) / scale
    return scale * (z + ops.exp(-z) - 0.75)


@CRPS_RULES.register(LogNormal)
def log_normal_crps(predictions: LogNormal, y: Array) -> Array:
    """Log-normal distributions (Baran, Lerch, 2015)."""
    mu, sigma, y = widen(predictions.mu), widen(predictions.sigma), widen(y)
    ops = ops_for(namespace(mu))
    possible = y > 0
    mean = ops.exp(mu + 0.5 * sigma**2)
    z = (ops.log(ops.where(possible, y, ops.one(y))) - mu) / sigma
    below = ops.where(possible, ops.ndtr(z), 0.0 * z)
    below_tilted = ops.where(possible, ops.ndtr(z - sigma), 0.0 * z)
    half_spread = ops.ndtr(sigma * math.sqrt(0.5)) - 0.5
    return (y - mean) * (2.0 * below - 1.0) + 2.0 * mean * (below - below_tilted - half_spread)


@MIXTURE_CRPS_RULES.register(Normal)
def mixture_of_normals_crps(predictions: Mixture, y: Array) -> Array:
    """Mixtures of normal distributions (Grimit, Gneiting, Berrocal, Johnson, 2006)."""
    weights, y = widen(predictions.weights), widen(y)
    xp, ops = namespace(weights), ops_for(namespace(weights))
    normals = cast("Sequence[Normal]", predictions.components)
    loc = xp.stack([widen(part.loc) for part in normals], axis=1)
    scale = xp.stack([widen(part.scale) for part in normals], axis=1)
    to_target = xp.sum(weights * normal_absolute_mean(ops, y[:, None] - loc, scale), axis=1)
    spread = ops.root(scale[:, :, None] ** 2 + scale[:, None, :] ** 2)
    between = normal_absolute_mean(ops, loc[:, :, None] - loc[:, None, :], spread)
    within = xp.sum(weights * xp.sum(weights[:, None, :] * between, axis=2), axis=1)
    return to_target - 0.5 * within


def atoms_crps(values: Array, weights: Array, y: Array, *, fair: bool) -> Array:
    """Weighted atoms ``(n, S)``.

    The spread is ``sum_j F_j (1 - F_j) (x_(j+1) - x_(j))`` over the gaps between sorted atoms. For S draws,
    `fair` divides by S (S - 1) pairs instead of S^2, which makes the score of draws unbiased.
    """
    values, weights, y = widen(values), widen(weights), widen(y)
    xp = namespace(values)
    to_target = xp.sum(weights * xp.abs(values - y[:, None]), axis=1)
    order = xp.argsort(values, axis=1)
    ordered = xp.take_along_axis(values, order, axis=1)
    below = xp.cumulative_sum(xp.take_along_axis(weights, order, axis=1), axis=1)
    mass = below[:, :-1]
    spread = xp.sum(mass * (below[:, -1:] - mass) * (ordered[:, 1:] - ordered[:, :-1]), axis=1)
    size = int(values.shape[1])
    return to_target - (size / (size - 1.0) if fair else 1.0) * spread


@MIXTURE_CRPS_RULES.register(Samples)
def mixture_of_samples_crps(predictions: Mixture, y: Array) -> Array:
    """Mixtures of samples: their atoms together."""
    return atoms_crps(*merged_samples(predictions), y, fair=False)


def merged_samples(predictions: Mixture) -> tuple[Array, Array]:
    """Values ``(n, S)`` or ``(n, S, d)`` and weights ``(n, S)`` of a mixture of samples."""
    xp = predictions.xp
    parts: list[tuple[Any, Array]] = [
        (part, weight[:, None]) for part, weight in components_of(predictions) if weight is not None
    ]
    values = xp.concat([widen(part.values) for part, _ in parts], axis=1)
    weights = xp.concat([weight * widen(part.atom_weights()) for part, weight in parts], axis=1)
    return values, weights
