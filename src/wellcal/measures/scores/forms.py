"""Continuous ranked probability scores in closed form, on every array library with derivatives.

All have the shape E|Z - y| - E|Z - Z'| / 2 with Z, Z' drawn from the prediction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.namespaces import Array, NDArray, from_numpy, is_numpy, namespace, widen
from wellcal._arrays.ops import Ops, ops_for
from wellcal.expectations.signed_measures import components_of
from wellcal.measures.scores.rules import CRPS_RULES, MIXTURE_CRPS_RULES, CrpsRule
from wellcal.predictions import Laplace, LogNormal, Mixture, Normal, Samples

_ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_ROOT_1_OVER_PI = math.sqrt(1.0 / math.pi)


Rule = TypeVar("Rule", bound=CrpsRule)


def in_cache(rule: Rule) -> Rule:
    """Decorator of a rule in closed form: many cases in NumPy are taken some at a time.

    Arrays that are made on the way then stay in the cache, which halves the time of a million cases.
    """

    @wraps(rule)
    def by_chunks(predictions: Any, y: Array) -> Array:
        n, step = len(predictions), budget.cache // 8
        if n <= step or not is_numpy(predictions.xp):
            return rule(predictions, y)
        parts = in_chunks(n, within=step)
        return np.concatenate([rule(predictions[rows], y[rows]) for rows in parts])

    return cast("Rule", by_chunks)


@CRPS_RULES.register(Normal)
@in_cache
def normal_crps(predictions: Normal, y: Array) -> Array:
    """Normal distributions; a scale of zero is a point."""
    loc, scale = widen(predictions.loc), widen(predictions.scale)
    ops = ops_for(namespace(loc))
    return normal_absolute_mean(ops, widen(y) - loc, scale) - _ROOT_1_OVER_PI * scale


def normal_absolute_mean(ops: Ops, mean: Array, scale: Array) -> Array:
    """E|N(mean, scale^2)|, for scales >= 0."""
    if is_numpy(ops.xp) and np.min(scale, initial=1.0) > 0.0:
        return _random_absolute_mean(ops, mean, scale)
    certain = scale == 0
    safe = ops.where(certain, ops.one(scale), scale)
    z = mean / safe
    spread = safe * (_ROOT_2_OVER_PI * ops.exp(-0.5 * z * z)) + mean * (2.0 * ops.ndtr(z) - 1.0)
    return ops.where(certain, ops.abs(mean), spread)


def _random_absolute_mean(ops: Ops, mean: NDArray, scale: NDArray) -> NDArray:
    """The same for positive scales in NumPy, with as few arrays as possible."""
    z = mean / scale
    total = ops.ndtr(z)
    total *= 2.0
    total -= 1.0
    total *= mean
    z *= z
    z *= -0.5
    np.exp(z, out=z)
    z *= _ROOT_2_OVER_PI
    z *= scale
    total += z
    return total


@CRPS_RULES.register(Laplace)
@in_cache
def laplace_crps(predictions: Laplace, y: Array) -> Array:
    """Laplace distributions."""
    loc, scale = widen(predictions.loc), widen(predictions.scale)
    ops = ops_for(namespace(loc))
    z = ops.abs(widen(y) - loc) / scale
    return scale * (z + ops.exp(-z) - 0.75)


@CRPS_RULES.register(LogNormal)
@in_cache
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


def draws_crps(values: Array, y: Array, *, fair: bool) -> Array:
    """The same for values ``(n, S)`` that count alike: they are sorted, and nothing else is.

    Half of the mean distance between two of them is ``sum_j j (S - j) (x_(j+1) - x_(j)) / S^2``.
    """
    values, y = widen(values), widen(y)
    xp, size = namespace(values), int(values.shape[1])
    below = np.arange(1.0, size)
    shares = below * (size - below) / (size * (size - 1.0) if fair else size**2)
    if is_numpy(xp):
        scores = np.empty(len(values))
        mean = np.full(size, 1.0 / size)
        for rows in in_chunks(len(values), size, within=budget.cache // 4):
            ordered = np.sort(values[rows], axis=1)
            spread = np.diff(ordered, axis=1) @ shares
            ordered -= y[rows, None]
            scores[rows] = np.abs(ordered, out=ordered) @ mean - spread
        return scores
    ordered = xp.sort(values, axis=1)
    spread = xp.sum(from_numpy(shares, values) * (ordered[:, 1:] - ordered[:, :-1]), axis=1)
    return xp.mean(xp.abs(values - y[:, None]), axis=1) - spread


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
