"""Energy score: the CRPS of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from wellcal._arrays.checks import as_library, flag, real_number
from wellcal._arrays.chunks import told_chunks
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    concat_rows,
    handed_over,
    is_traced,
    namespace,
    stop_gradient,
    take_rows,
    to_numpy,
    widen,
)
from wellcal._arrays.ops import Ops, ops_for
from wellcal._arrays.special import quiet
from wellcal.expectations.lowering import lower
from wellcal.expectations.signed_measures import components_of
from wellcal.measures.estimate import Estimate, about_cases
from wellcal.measures.numbers_of_classes import class_numbers
from wellcal.measures.scores.casewise import mean_score
from wellcal.measures.scores.forms import merged_samples
from wellcal.measures.scores.ranked import crps_of_cases
from wellcal.measures.scores.rules import ENERGY_RULES, shared_rule
from wellcal.predictions import DiagonalNormal, Mixture, MultivariateNormal, Normal, Predictions, Samples
from wellcal.predictions.alignment import per_case
from wellcal.predictions.base import check_inputs

_POINTS = 256  # atoms for families without another form


@handed_over
@about_cases
def energy_score(
    y: object, pred: object, *, power: float = 1.0, fair: bool | None = None, weights: object = None
) -> Estimate:
    r"""Mean energy score.

    .. math:: \mathrm{ES}(P, y) = \mathrm{E}\|Z - y\|^\beta - \tfrac12 \mathrm{E}\|Z - Z'\|^\beta,
              \quad Z, Z' \sim P

    Parameters
    ----------
    y
        Observed targets ``(n, d)``; ``(n,)`` for predictions of numbers, whose energy score is the CRPS.
    pred
        Predictions of vectors or numbers. `Samples`, a support of vectors, normal distributions, mixtures of
        either and families that registered a rule are exact up to rounding. All others become atoms, which
        the provenance reports with an estimate of the error.
    power
        The exponent :math:`\beta`, from 0.1 to 1.9.
    fair
        Only for `Samples`: whether a draw is not compared with itself, as for :func:`wellcal.crps`.
    weights
        How much each case counts, ``(n,)``: finite and not negative; None counts all alike.

    Returns
    -------
    Estimate
        The mean, with its standard error; differentiable.

    Notes
    -----
    For a normal vector W, :math:`\mathrm{E}\|W\|^\beta` is an integral over the Laplace transform of
    :math:`\|W\|^2`, which is a product of elementary functions: the double exponential rule gives it to
    rounding, in any dimension.

    References
    ----------
    T. Gneiting, A. E. Raftery (2007). Strictly proper scoring rules, prediction, and estimation.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> pred = wc.Samples(np.array([[[0.0, 0.0], [6.0, 8.0]]]))
    >>> float(energy_score(np.array([[0.0, 0.0]]), pred, fair=False))
    2.5
    """
    power, fair = real_number(power, "power"), flag(fair, "fair", or_none=True)
    if not 0.1 <= power <= 1.9:
        raise ValueError(f"power must be between 0.1 and 1.9, found {power}")
    targets, predictions = check_inputs(y, pred)
    if fair is not None and not isinstance(predictions, Samples):
        raise ValueError(f"fair is for Samples, found {type(predictions).__name__}")
    scores, provenance = energy_of_cases(targets, predictions, power, fair)
    return mean_score(scores, "energy score", provenance, weights=per_case(weights, "weights", y, pred))


def energy_of_cases(
    targets: Array, predictions: Predictions, power: float = 1.0, fair: bool | None = None
) -> tuple[Array, dict[str, Any]]:
    """Scores ``(n,)`` for checked targets, and how they were obtained."""
    if predictions.target_kind in ("bins", "objects"):
        raise TypeError(
            f"energy_score needs whole distributions of numbers, found {type(predictions).__name__}"
        )
    if predictions.event_shape == () and power == 1.0:
        return crps_of_cases(targets, predictions, fair)
    return _scores(targets, predictions, power, fair)


def _scores(
    targets: Array, predictions: Predictions, power: float, fair: bool | None
) -> tuple[Array, dict[str, Any]]:
    closed = {"expectations": "closed"}
    if predictions.kind == "classes":
        values, weights, at = _class_atoms(predictions, targets)
        return _atom_scores(values, weights, at, power), closed
    at = _vectors(widen(targets))
    if isinstance(predictions, Samples):
        return _sample_scores(predictions, at, power, fair), closed
    rule = shared_rule(ENERGY_RULES, predictions)
    if rule is not None:
        return rule(predictions, at, power), closed
    return _lowered_scores(predictions, at, power)


def _vectors(x: Array) -> Array:
    return x[:, None] if x.ndim == 1 else x


def _table(x: Array) -> Array:
    return x[:, :, None] if x.ndim == 2 else x


# -- atoms -----------------------------------------------------------------------------------


def _class_atoms(predictions: Any, index: Array) -> tuple[Array, Array, Array]:
    numbers = class_numbers(predictions, "energy_score needs predictions of numbers or vectors")
    probs = widen(predictions.class_probs())
    xp = namespace(probs)
    values = xp.astype(numbers, probs.dtype)
    values = values[:, None] if values.ndim == 1 else values
    table = xp.broadcast_to(values[None, :, :], (len(predictions), *values.shape))
    return table, probs, take_rows(values, index)


def _sample_scores(predictions: Samples, at: Array, power: float, fair: bool | None) -> Array:
    fair = predictions.kind == "draws" if fair is None else fair
    size = int(predictions.values.shape[1])
    if fair and (predictions.weights is not None or size < 2):
        raise ValueError(
            "the fair score needs two or more equally weighted draws for each prediction; take fair=False"
        )
    values, weights = _table(widen(predictions.values)), widen(predictions.atom_weights())
    return _atom_scores(values, weights, at, power, size if fair else None)


@ENERGY_RULES.register(Samples)
def mixture_of_samples_scores(predictions: Mixture, at: Array, power: float) -> Array:
    """Mixtures of samples: their atoms together."""
    values, weights = merged_samples(predictions)
    return _atom_scores(_table(values), weights, at, power)


def _atom_scores(values: Array, weights: Array, at: Array, power: float, draws: int | None = None) -> Array:
    """Scores of weighted atoms ``(n, S, d)``; S draws leave pairs of a draw with itself out."""
    xp, ops = namespace(values), ops_for(namespace(values))
    n, size, d = (int(k) for k in values.shape)
    spread = 0.5 * (1.0 if draws is None else draws / (draws - 1.0))
    parts: list[Array] = []
    for rows in told_chunks(n, size * size * d):
        x, w = values[rows, ...], weights[rows, ...]
        to_target = xp.sum(w * _distance(ops, x - at[rows, ...][:, None, :], power), axis=1)
        between = _distance(ops, x[:, :, None, :] - x[:, None, :, :], power)
        parts.append(to_target - spread * xp.sum(w * xp.sum(w[:, None, :] * between, axis=2), axis=1))
    return concat_rows(parts)


def _distance(ops: Ops, difference: Array, power: float) -> Array:
    return ops.power(ops.xp.sum(difference**2, axis=-1), 0.5 * power)


def _lowered_scores(predictions: Any, at: Array, power: float) -> tuple[Array, dict[str, Any]]:
    values, weights, schemes = _lowered(predictions, lambda atoms: atoms)
    scores = _atom_scores(values, weights, at, power)
    error = float("nan")
    if not is_traced(scores):
        coarse_values, coarse_weights, _ = _lowered(predictions, lambda atoms: atoms.coarser())
        coarse = _atom_scores(coarse_values, coarse_weights, at, power)
        error = float(np.max(np.abs(to_numpy(scores) - to_numpy(coarse))))
    lowered = [f"energy score of {name}" for name in schemes]
    return scores, {"expectations": "lowered", "rules": [], "lowered": lowered, "expectation_error": error}


def _lowered(predictions: Any, version: Callable[[Any], Any]) -> tuple[Array, Array, list[str]]:
    xp = predictions.xp
    values: list[Array] = []
    weights: list[Array] = []
    schemes: list[str] = []
    for part, weight in components_of(predictions):
        if isinstance(part, Samples):
            own, mass, scheme = widen(part.values), widen(part.atom_weights()), "its values"
        else:
            atoms = version(lower(part, 64, _POINTS))
            own, mass, scheme = atoms.values, atoms.weights, atoms.scheme
        values.append(_table(own))
        weights.append(mass if weight is None else weight[:, None] * mass)
        schemes.append(f"{type(part).__name__}: {scheme}")
    if len(values) == 1:
        return values[0], weights[0], schemes
    return xp.concat(values, axis=1), xp.concat(weights, axis=1), schemes


# -- normals ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _NormalComponent:
    """A normal component: locations ``(n, d)``, variances ``(n, d)`` or covariances ``(n, d, d)``."""

    loc: Array
    spread: Array
    weight: Array | None


@ENERGY_RULES.register(Normal)
@ENERGY_RULES.register(DiagonalNormal)
@ENERGY_RULES.register(MultivariateNormal)
def normal_scores(predictions: Any, at: Array, power: float) -> Array:
    """Normal distributions and mixtures of them."""
    parts = [_part(part, weight) for part, weight in components_of(predictions)]
    total: Any = 0.0
    for k, a in enumerate(parts):
        term = mean_normal_distance(at - a.loc, a.spread, power)
        total = total + (term if a.weight is None else a.weight * term)
        for j, b in enumerate(parts[: k + 1]):
            between = mean_normal_distance(a.loc - b.loc, _added(a.spread, b.spread), power)
            if a.weight is not None:
                between = a.weight * b.weight * between
            total = total - (0.5 if j == k else 1.0) * between
    return total


def _part(batch: Any, weight: Array | None) -> _NormalComponent:
    loc = _vectors(widen(batch.loc))
    if isinstance(batch, MultivariateNormal):
        return _NormalComponent(loc, widen(batch.cov), weight)
    return _NormalComponent(loc, _vectors(widen(batch.scale)) ** 2, weight)


def _added(a: Array, b: Array) -> Array:
    if a.ndim == b.ndim:
        return a + b
    full, diagonal = (a, b) if a.ndim == 3 else (b, a)
    return full + diagonal[:, :, None] * _identity(full)


def _identity(like: Array) -> Array:
    xp = namespace(like)
    index = xp.cumulative_sum(xp.ones_like(like[0, 0, :]))
    return xp.astype(index[:, None] == index[None, :], like.dtype)


_STEP = 0.0625  # of the double exponential rule
_NEGLIGIBLE = 36.0  # minus the logarithm of what is left out at its ends


@quiet
def mean_normal_distance(mean: Array, spread: Array, power: float) -> Array:
    r"""E||W||^power for normal vectors W with `mean` ``(n, d)`` and variances or covariances `spread`.

    .. math:: \mathrm{E}\, Q^{\beta/2} = \frac{\beta / 2}{\Gamma(1 - \beta / 2)} \int_0^\infty
              \big(1 - \mathrm{E} e^{-t Q}\big)\, t^{-1 - \beta / 2}\, dt

    Examples
    --------
    >>> mean_normal_distance(np.zeros((1, 3)), np.ones((1, 3)), 1.0).round(8)  # sqrt(8 / pi)
    array([1.59576912])
    """
    n, size = int(mean.shape[0]), math.prod(int(k) for k in spread.shape[1:])
    scales, rates = _nodes(0.5 * power)
    return concat_rows(
        [
            _distances(mean[rows, ...], spread[rows, ...], 0.5 * power, scales, rates)
            for rows in told_chunks(n, size * len(scales))
        ]
    )


@cache
def _nodes(half: float) -> tuple[NDArray, NDArray]:
    """Nodes t and weights of the double exponential rule for ``(1 - L(t)) t^(-1 - half) dt``."""
    widest = math.asinh(2.0 / math.pi * min(_NEGLIGIBLE / min(half, 1.0 - half), 640.0))
    count = math.floor(widest / _STEP)
    v = _STEP * np.arange(-count, count + 1)
    u = 0.5 * math.pi * np.sinh(v)
    constant = half / math.gamma(1.0 - half)
    return np.exp(u), constant * 0.5 * math.pi * np.cosh(v) * _STEP * np.exp(-half * u)


def _distances(mean: Array, spread: Array, half: float, scales: NDArray, rates: NDArray) -> Array:
    xp, ops = namespace(mean), ops_for(namespace(mean))
    exact_mean, variances = mean, spread
    if spread.ndim == 3:
        # The determinant of I + t C, less one, has no correct digits for small t: eigenvalues keep them all.
        variances, vectors = xp.linalg.eigh(stop_gradient(spread))
        variances = ops.where(variances > 0, variances, 0.0 * variances)
        exact_mean = xp.matmul(xp.matrix_transpose(vectors), stop_gradient(mean)[:, :, None])[:, :, 0]
    size = stop_gradient(xp.sum(exact_mean**2 + variances, axis=1))
    nothing = size == 0
    size = ops.where(nothing, ops.one(size), size)
    t = as_library(scales, mean, mean.dtype)[None, :] / size[:, None]
    log_transform = _log_transform(ops, t, exact_mean, variances)
    if spread.ndim == 3 and ops.differentiable:
        # Eigenvectors of equal eigenvalues have no derivative, the matrix does.
        moving = _log_transform_by_matrix(ops, t, mean, spread)
        log_transform = log_transform + (moving - stop_gradient(moving))
    total = xp.sum(-ops.expm1(log_transform) * as_library(rates, mean, mean.dtype), axis=1)
    return ops.where(nothing, 0.0 * size, total * size**half)


def _log_transform(ops: Ops, t: Array, mean: Array, variances: Array) -> Array:
    """``log E exp(-t ||W||^2)`` at nodes `t` ``(n, T)``, for independent coordinates."""
    scaled = 2.0 * t[:, :, None] * variances[:, None, :]
    shift = t[:, :, None] * mean[:, None, :] ** 2 / (1.0 + scaled)
    return -ops.xp.sum(0.5 * ops.log1p(scaled) + shift, axis=2)


def _log_transform_by_matrix(ops: Ops, t: Array, mean: Array, covariances: Array) -> Array:
    xp = ops.xp
    matrix = _identity(covariances) + 2.0 * t[:, :, None, None] * covariances[:, None, :, :]
    right = xp.broadcast_to(mean[:, None, :, None], (*matrix.shape[:3], 1))
    solved = xp.linalg.solve(matrix, right)[..., 0]
    return -0.5 * xp.linalg.slogdet(matrix)[1] - t * xp.sum(mean[:, None, :] * solved, axis=2)
