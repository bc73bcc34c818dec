"""Score-function gradients: parameters act on the weights of atoms that stay where they are.

The weights of vectors and of draws carry the likelihood ratio p(x; theta) / p(x; theta_0), whose value is 1
and whose derivative is the score. Scalars stand at quantiles, and move with these (see `lowering`).
"""

from __future__ import annotations

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
from wellcal._arrays.special import betaln, quiet
from wellcal.predictions import Dirichlet, Predictions

_TINY = 1e-30
"""Quantiles below which the first term of a gamma distribution function is all of it."""


def within_reach(values: Array) -> Array:
    """Clip atoms to numbers whose squares are finite, with room for differences."""
    xp = namespace(values)
    most = float(xp.finfo(values.dtype).max) ** 0.49
    return xp.clip(values, -most, most)


def times_likelihood_ratio(weights: Array, log_density: Array) -> Array:
    """Give `weights` the derivative of the logarithm of a density, which must be finite."""
    return weights * namespace(weights).exp(log_density - stop_gradient(log_density))


def scored_weights(predictions: Predictions, values: Array, weights: Array) -> Array:
    """Return weights ``(n, S)`` with their derivatives by the parameters, where these have a density.

    Where it is infinite, the derivative of the weight is zero.
    """
    if not predictions.ops.differentiable or not predictions.supports("log_prob"):
        return weights
    xp = predictions.xp
    at = xp.permute_dims(values, (1, 0) if values.ndim == 2 else (1, 0, 2))
    usable = xp.isfinite(predictions.map_arrays(stop_gradient).log_prob(at))
    # An infinite value must not be on the tape at all: its derivative times zero is not a number.
    wanted = usable if values.ndim == 2 else usable[..., None]
    some = at[values.shape[1] // 2, ...][None, ...]
    log_density = widen(predictions.log_prob(xp.where(wanted, at, some)))
    finite = xp.where(usable, log_density, stop_gradient(log_density))
    return times_likelihood_ratio(weights, xp.permute_dims(finite, (1, 0)))


def change(parameter: Array) -> Array:
    """Zero ``(n, 1)``, with the derivative of a parameter ``(n,)``."""
    wide = widen(parameter)[:, None]
    return wide - stop_gradient(wide)


def dirichlet_atoms(predictions: Dirichlet, uniform: NDArray) -> tuple[Array, Array]:
    """Return atoms ``(n, S, d)`` from points ``(S, d)`` of the unit cube, and their log densities.

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
    return _log_gamma_quantile(special.gammaincinv(shape, u), shape, np.log(u))


@quiet
def _log_gamma_quantile(z: NDArray, shape: NDArray, log_level: NDArray) -> NDArray:
    """Logarithm of a quantile `z` of a standard gamma distribution, given log F(z); finite where z is 0."""
    near = (log_level + special.gammaln(shape + 1.0)) / shape
    return np.where(z < _TINY, near, np.log(np.where(z < _TINY, 1.0, z)))
