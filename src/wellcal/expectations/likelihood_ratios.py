"""Derivatives of sums over atoms that stand for predictions, by the parameters of the predictions.

Parameters act on the weights of atoms, through the likelihood ratio p(x; theta) / p(x; theta_0), whose value
is 1 and whose derivative is the score: bounded in the tails, where atoms are too far apart to be moved. That
needs two kinds of care.

Scores must be finite where densities are not. A gamma density is infinite at 0, where small shapes put most
of their atoms because the quantile is too small for a floating-point number, and a beta density at both ends.
The logarithm of such a quantile is known all the same, from F(x) = x^a / (a B(a, b)) (1 + O(x)) near 0.

Scores must be smooth for quadrature. Where a density has a kink at its centre, atoms near it move with the
parameters instead: with v the derivative of a quantile by a parameter and chi a smooth function that is 1 at
the centre and 0 far away, atoms move by ``chi v``, and ``(1 - chi) score + chi' v`` is left for the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy import special

from wellcal._arrays.derivatives import right_derivatives
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    device_of,
    namespace,
    stop_gradient,
    through_numpy,
    widen,
)
from wellcal._arrays.registry import Rules
from wellcal._arrays.special import beta_quantile, beta_upper_quantile, betaln, quiet
from wellcal.predictions import Beta, Dirichlet, Gamma, Laplace, PowerExponential, Predictions
from wellcal.predictions.base import keeps_distribution

_TINY = 1e-30
"""Below, the first term of a distribution function near its end is all of it."""

Followed: TypeAlias = tuple[Array, Array | None]
"""Atoms, and logarithms of the densities there where something is left that atoms do not follow."""

FOLLOWERS: Rules[Callable[[Any, Array, NDArray], Followed]] = Rules(
    "a derivative of atoms", serves=keeps_distribution
)
"""How quantiles ``(n, S)`` at normal scores ``(S,)`` or ``(n, S)`` follow the parameters, by family."""


def differentiable_atoms(
    predictions: Predictions, values: Array, weights: Array, scores: NDArray | None = None
) -> tuple[Array, Array]:
    """Atoms ``(n, S)`` or ``(n, S, d)`` and weights ``(n, S)`` with their derivatives by the parameters.

    Values do not change, but for those so far out that distances could not be squared: they are moved to
    where they can. `scores` are the normal scores at which scalar atoms are quantiles, where they are.
    """
    values = within_reach(values)
    if not predictions.ops.differentiable or not predictions.supports("log_prob"):
        return values, weights
    rule = None if scores is None else FOLLOWERS.find(type(predictions))
    if rule is None or scores is None:
        return values, times_likelihood_ratio(weights, _log_density(predictions, values))
    values, log_density = rule(predictions, values, scores)
    return values, weights if log_density is None else times_likelihood_ratio(weights, log_density)


def within_reach(values: Array) -> Array:
    """Atoms no further from 0 than a number whose square is finite, with room for differences."""
    xp = namespace(values)
    most = float(xp.finfo(values.dtype).max) ** 0.49
    return xp.clip(values, -most, most)


def times_likelihood_ratio(weights: Array, log_density: Array) -> Array:
    """`weights` with the derivative of the logarithm of a density, which must be finite."""
    return weights * namespace(weights).exp(log_density - stop_gradient(log_density))


def _log_density(predictions: Predictions, values: Array) -> Array:
    """Log densities ``(n, S)`` at atoms; a constant where they are infinite, or no derivative is known."""
    xp = predictions.xp
    moved = (1, 0) if values.ndim == 2 else (1, 0, 2)
    at = xp.permute_dims(values, moved)
    usable = xp.isfinite(predictions.map_arrays(stop_gradient).log_prob(at))
    # An infinite value must not be on the tape at all: its derivative times zero is not a number.
    wanted = usable if values.ndim == 2 else usable[..., None]
    some = at[values.shape[1] // 2, ...][None, ...]
    log_density = widen(predictions.log_prob(xp.where(wanted, at, some)))
    return xp.permute_dims(xp.where(usable, log_density, stop_gradient(log_density)), (1, 0))


# -- kinks ---------------------------------------------------------------------------------------


def change(parameter: Array) -> Array:
    """Zero ``(n, 1)``, with the derivative of a parameter ``(n,)``."""
    wide = widen(parameter)[:, None]
    return wide - stop_gradient(wide)


@FOLLOWERS.register(Laplace)
def _laplace(predictions: Laplace, values: Array, scores: NDArray) -> Followed:
    """Atoms move with location and scale; there are no far tails."""
    z = (values - stop_gradient(widen(predictions.loc))[:, None]) / stop_gradient(widen(predictions.scale))[
        :, None
    ]
    return values + change(predictions.loc) + z * change(predictions.scale), None


@FOLLOWERS.register(PowerExponential)
def _power_exponential(predictions: PowerExponential, values: Array, scores: NDArray) -> Followed:
    loc, scale, shape = (
        stop_gradient(widen(p))[:, None] for p in (predictions.loc, predictions.scale, predictions.shape)
    )
    z = (values - loc) / scale
    predictions = predictions.with_fields(
        scale=right_derivatives(predictions.scale, 1, "the scale of PowerExponential"),
        shape=right_derivatives(predictions.shape, 1, "the shape of PowerExponential"),
    )
    by_shape = through_numpy(_quantile_by_shape, shape, _placed(scores, z))
    near, slope = _centre(z)
    velocity = z * change(predictions.scale) / scale + by_shape * change(predictions.shape)
    still = predictions.with_fields(loc=stop_gradient(predictions.loc))
    log_density = (1.0 - near) * _log_density(still, values) + slope * velocity
    return values + change(predictions.loc) + scale * near * velocity, log_density


def _centre(z: Array) -> tuple[Array, Array]:
    """``chi = 1 / (1 + z^2)`` and its derivative."""
    near = 1.0 / (1.0 + within_reach(z) ** 2)
    return near, -2.0 * z * near * near


_STEP = 1e-5


@quiet
def _quantile_by_shape(shape: NDArray, score: NDArray) -> NDArray:
    """Derivative of a standard power exponential quantile by the shape."""
    level = 2.0 * special.ndtr(-np.abs(score))

    def quantile(shape: NDArray) -> NDArray:
        return special.gammainccinv(1.0 / shape, level) ** (1.0 / shape)

    step = _STEP * shape
    found = np.sign(score) * (quantile(shape + step) - quantile(shape - step)) / (2.0 * step)
    return np.where(np.isfinite(found), found, 0.0)


# -- quantiles at the ends of a support ----------------------------------------------------------


@FOLLOWERS.register(Gamma)
def _gamma(predictions: Gamma, values: Array, scores: NDArray) -> Followed:
    ops, shape, scale = predictions.ops, widen(predictions.shape)[:, None], widen(predictions.scale)[:, None]
    still = stop_gradient(scale)
    z = values / still
    log_z = through_numpy(_log_gamma_quantile, z, stop_gradient(shape), _placed(scores, z))
    log_density = shape * (log_z - ops.log(scale / still)) - ops.gammaln(shape) - z * (still / scale)
    return values, log_density


@FOLLOWERS.register(Beta)
def _beta(predictions: Beta, values: Array, scores: NDArray) -> Followed:
    a, b = widen(predictions.a)[:, None], widen(predictions.b)[:, None]
    fixed = (stop_gradient(a), stop_gradient(b))
    score = _placed(scores, values)
    log_x = through_numpy(_log_beta_quantile, values, *fixed, score)
    rest = through_numpy(_beta_quantile, *fixed[::-1], -score)
    log_rest = through_numpy(_log_beta_quantile, rest, *fixed[::-1], -score)
    return values, a * log_x + b * log_rest - betaln(predictions.ops, a, b)


def _placed(scores: NDArray, like: Array) -> Array:
    """Normal scores ``(S,)`` or ``(n, S)`` as an array like another one."""
    xp = namespace(like)
    return xp.broadcast_to(
        asarray(scores, xp=xp, device=device_of(like), dtype=like.dtype), tuple(like.shape)
    )


@quiet
def log_gamma_quantile(z: NDArray, shape: NDArray, log_level: NDArray) -> NDArray:
    """Logarithm of a quantile `z` of a standard gamma distribution, given log F(z); finite where z is 0."""
    near = (log_level + special.gammaln(shape + 1.0)) / shape
    return np.where(z < _TINY, near, np.log(np.where(z < _TINY, 1.0, z)))


def _log_gamma_quantile(z: NDArray, shape: NDArray, score: NDArray) -> NDArray:
    return log_gamma_quantile(z, shape, special.log_ndtr(score))


@quiet
def _log_beta_quantile(x: NDArray, a: NDArray, b: NDArray, score: NDArray) -> NDArray:
    near = (special.log_ndtr(score) + np.log(a) + special.betaln(a, b)) / a
    return np.where(x < _TINY, near, np.log(np.where(x < _TINY, 1.0, x)))


@quiet
def _beta_quantile(a: NDArray, b: NDArray, score: NDArray) -> NDArray:
    """Quantile at a normal score, from the tail that is nearer."""
    level = special.ndtr(-np.abs(score))
    return np.where(score < 0, beta_quantile(a, b, level), beta_upper_quantile(a, b, level))


# -- vectors -------------------------------------------------------------------------------------


def dirichlet_atoms(predictions: Dirichlet, uniform: NDArray) -> tuple[Array, Array]:
    """Atoms ``(n, S, d)`` from points ``(S, d)`` of the unit cube, and the logarithms of their densities.

    Coordinates are quotients of gamma quantiles, taken as logarithms: for small concentrations all quantiles
    may be too small for a floating-point number.
    """
    # Points that are spread for values leave second derivatives off by a third.
    concentration = right_derivatives(widen(predictions.concentration), 1, "the concentration of Dirichlet")
    fixed = stop_gradient(concentration)[:, None, :]
    xp = predictions.xp
    u = asarray(uniform, xp=xp, device=device_of(fixed), dtype=fixed.dtype)
    logs = through_numpy(_log_gamma_at_level, fixed, u[None, :, :])
    logs = logs - xp.max(logs, axis=2, keepdims=True)
    logs = logs - xp.log(xp.sum(xp.exp(logs), axis=2, keepdims=True))
    before = xp.cumulative_sum(concentration, axis=1)[:, :-1]
    constant = xp.sum(betaln(predictions.ops, before, concentration[:, 1:]), axis=1)
    return xp.exp(logs), xp.sum(concentration[:, None, :] * logs, axis=2) - constant[:, None]


@quiet
def _log_gamma_at_level(shape: NDArray, u: NDArray) -> NDArray:
    return log_gamma_quantile(special.gammaincinv(shape, u), shape, np.log(u))
