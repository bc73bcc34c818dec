"""Smooth calibration error: a kernel takes the place of bins."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import fft, optimize

from wellcal._arrays.checks import positive_number
from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    device_of,
    from_numpy,
    is_numpy,
    is_traced,
    namespace,
    to_numpy,
    widen,
)
from wellcal.expectations.decompose import targets_are_indices
from wellcal.measures._confidence import check_reduction, confidence
from wellcal.measures.estimate import Estimate, about_cases
from wellcal.predictions.base import check_inputs

_NARROWEST = 1e-3  # bandwidth; smaller errors than this are reported as they are at this bandwidth
_LEAST_BANDWIDTH = 1e-6  # that can be given: its inverse is a number of waves
_ENOUGH = 2.8  # waves times bandwidth: exp(-(pi * 2.8)^2 / 2) is below 1e-16
_GRID = 16  # points for each half wave of the fastest


@about_cases
def smooth_ece(
    y: object,
    pred: object,
    *,
    bandwidth: float | None = None,
    reduce: str | None = None,
) -> Estimate:
    r"""Smooth expected calibration error of binary predictions, without bins.

    .. math:: \mathrm{smECE}_\sigma = \int_0^1 \Big| \frac1n \sum_i K_\sigma(t, p_i) (y_i - p_i) \Big|\, dt

    with the Gaussian kernel :math:`K_\sigma` on [0, 1] that is reflected at both ends. The bandwidth is the
    one that equals its own error, :math:`\mathrm{smECE}_\sigma = \sigma`.

    Parameters
    ----------
    y
        Observed targets, one for each prediction.
    pred
        Predictions of two classes; of more with `reduce`.
    bandwidth
        Standard deviation :math:`\sigma` of the kernel; None solves for the one above. Needed inside
        ``jax.jit``.
    reduce
        "confidence": was the most probable class right, by :func:`wellcal.confidence`; "classwise": each
        class against all others, the errors averaged.

    Returns
    -------
    Estimate
        The error, between 0 and 1, and differentiable; the bandwidth in its provenance.

    Notes
    -----
    Unlike the binned error it changes continuously with predictions, and is within constant factors of the
    distance to the nearest calibrated predictions. Errors below 0.001 are taken at that bandwidth.

    The kernel is the heat kernel of the interval, :math:`1 + 2 \sum_k \exp(-\sigma^2 \pi^2 k^2 / 2)
    \cos(\pi k t) \cos(\pi k p)`: n cases cost one sum over cases for each wave k up to
    :math:`2.8 / \sigma`, and the integral is that of a trigonometric polynomial between its zeros.

    There are no weights: the bandwidth is that of cases that count alike. :func:`wellcal.skce` and
    :func:`wellcal.mmce` take weights.

    References
    ----------
    J. Błasiok, P. Nakkiran (2023). Smooth ECE: principled reliability diagrams via kernel smoothing.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.full(400, 0.5)
    >>> y = np.arange(400) % 10 < 7
    >>> round(float(smooth_ece(y, p)), 6)
    0.2
    """
    if bandwidth is not None:
        bandwidth = float(positive_number(bandwidth, "bandwidth"))
        if bandwidth < _LEAST_BANDWIDTH:
            raise ValueError(f"bandwidth must be at least {_LEAST_BANDWIDTH:g}, found {bandwidth:g}")
    problems = _binary_problems(y, pred, reduce)
    found = [_smooth(hit, p, bandwidth) for hit, p in problems]
    values = [value for value, _ in found]
    xp = namespace(values[0])
    value = xp.mean(xp.stack(values))
    widths = [width for _, width in found]
    provenance = {"bandwidth": widths[0] if len(widths) == 1 else widths, "reduce": reduce}
    n = int(problems[0][1].shape[0])
    return Estimate(
        float(value) if is_numpy(xp) else value, None, "smooth ECE", "plug-in", n, provenance=provenance
    )


def _binary_problems(y: object, pred: object, reduce: str | None) -> list[tuple[Array, Array]]:
    """Targets 0 and 1, and probabilities of 1, both floating."""
    check_reduction(reduce)
    index, predictions = confidence(y, pred) if reduce == "confidence" else check_inputs(y, pred)
    if not targets_are_indices(predictions):
        raise TypeError(
            f"smooth_ece is for predictions of classes, found {type(predictions).__name__}; "
            "wc.kce is the bin-free error for all families"
        )
    probs = widen(predictions.class_probs())
    classes = int(probs.shape[1])
    if classes > 2 and reduce is None:
        raise ValueError(
            f'pred has {classes} classes and smooth_ece is for two; take reduce="confidence" or "classwise"'
        )
    xp = namespace(probs)
    chosen = range(classes) if reduce == "classwise" else (1,)
    return [(xp.astype(index == c, probs.dtype), probs[:, c]) for c in chosen]


def _smooth(hit: Array, p: Array, bandwidth: float | None) -> tuple[Array, float]:
    """The error and its bandwidth."""
    if is_traced(hit, p):
        if bandwidth is None:
            raise TypeError("the bandwidth cannot be solved for inside jax.jit; give bandwidth=")
        waves = _waves(bandwidth)
        return _on_grid(_coefficients(hit, p, waves), bandwidth), bandwidth
    if bandwidth is not None:
        coefficients = _coefficients(hit, p, _waves(bandwidth))
        return _between_zeros(coefficients, bandwidth)[0], bandwidth
    # Wide kernels need few waves: more are computed only where the bandwidth turns out smaller.
    lowest = 0.1
    while True:
        coefficients = _coefficients(hit, p, _waves(lowest))
        plain = to_numpy(coefficients).astype(np.float64)
        if _error(plain, lowest) >= lowest or lowest <= _NARROWEST:
            break
        lowest = max(0.2 * lowest, _NARROWEST)
    if _error(plain, lowest) <= lowest:
        return _between_zeros(coefficients, lowest)[0], lowest
    width = _fixed_point(lambda s: _error(plain, s) - s, lowest)
    value, slope = _between_zeros(coefficients, width)
    # One step of Newton's method on error(s) = s: it moves nothing but gives the derivative of the solution.
    return width + (value - width) / (1.0 - slope), width


def _fixed_point(excess: Callable[[float], float], lowest: float) -> float:
    """Root of a decreasing function that is positive at `lowest` and not at 1."""
    if excess(1.0) >= 0.0:
        return 1.0
    return float(optimize.brentq(excess, lowest, 1.0, xtol=1e-14, rtol=8.9e-16))


def _waves(bandwidth: float) -> int:
    return math.ceil(_ENOUGH / bandwidth) + 1


def _coefficients(hit: Array, p: Array, waves: int) -> Array:
    """Means of ``(y - p) cos(pi k p)`` for k = 0 .. waves, ``(waves + 1,)``."""
    xp, n = namespace(p), int(p.shape[0])
    k = math.pi * _numbers(waves + 1, p)
    total: Any = 0.0
    for rows in in_chunks(n, waves + 1):
        total = total + (hit[rows] - p[rows]) @ xp.cos(p[rows][:, None] * k[None, :])
    return total / n


def _numbers(count: int, like: Array) -> Array:
    return asarray(np.arange(float(count)), xp=namespace(like), device=device_of(like), dtype=like.dtype)


def _damping(waves: int, bandwidth: float) -> NDArray:
    k = np.arange(waves + 1)
    return np.where(k == 0, 1.0, 2.0) * np.exp(-0.5 * (bandwidth * math.pi * k) ** 2)


def _primitive(t: NDArray, waves: int) -> NDArray:
    """Integrals of ``cos(pi k x)`` from 0 to t, ``(len(t), waves + 1)``."""
    k = np.arange(1, waves + 1) * math.pi
    return np.concatenate([t[:, None], np.sin(t[:, None] * k) / k], axis=1)


def _error(coefficients: NDArray, bandwidth: float) -> float:
    cuts, signs = _sign_changes(coefficients, bandwidth)
    waves = len(coefficients) - 1
    integrals = np.diff(_primitive(cuts, waves) @ (_damping(waves, bandwidth) * coefficients))
    return float(np.sum(signs * integrals))


def _sign_changes(coefficients: NDArray, bandwidth: float) -> tuple[NDArray, NDArray]:
    """Ends and zeros of the smoothed residual on [0, 1], and its signs in between."""
    waves = len(coefficients) - 1
    damped = _damping(waves, bandwidth) * coefficients
    size = _GRID * max(waves, 16)
    padded = np.zeros(size + 1)
    padded[: waves + 1] = 0.5 * damped
    padded[0] = damped[0]
    grid = np.arange(size + 1) / size
    values: NDArray = np.asarray(fft.dct(padded, type=1))
    if not np.any(values):
        return np.array([0.0, 1.0]), np.zeros(1)
    # A value that is zero up to rounding takes the sign of what comes before it, or after it at the start.
    signs = np.sign(np.where(np.abs(values) > 1e-15 * np.max(np.abs(values)), values, 0.0))
    known = np.flatnonzero(signs)
    signs = signs[known[np.clip(np.searchsorted(known, np.arange(size + 1), side="right") - 1, 0, None)]]
    left = np.flatnonzero(signs[1:] != signs[:-1])
    zeros = _refined(damped, grid[left], grid[left + 1], values[left], values[left + 1])
    inside = signs[np.concatenate([[0], left + 1])]
    return np.concatenate([[0.0], zeros, [1.0]]), inside


def _refined(damped: NDArray, low: NDArray, high: NDArray, at_low: NDArray, at_high: NDArray) -> NDArray:
    """Zeros between neighbouring points of the grid, by false position with halved weights (Illinois)."""
    k = math.pi * np.arange(len(damped))
    middle = low
    for _ in range(8):
        width = at_high - at_low
        middle = low - at_low * (high - low) / np.where(width == 0, 1.0, width)
        middle = np.clip(middle, low, high)
        found = np.cos(middle[:, None] * k) @ damped
        same = np.sign(found) == np.sign(at_low)
        at_high, at_low = np.where(same, 0.5 * at_high, found), np.where(same, found, 0.5 * at_low)
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return middle


def _between_zeros(coefficients: Array, bandwidth: float) -> tuple[Array, float]:
    """The error as a linear function of the coefficients, and its derivative by the bandwidth.

    At zeros of the integrand its absolute value has no first-order change, so that they are constants.
    """
    plain = to_numpy(coefficients).astype(np.float64)
    waves = len(plain) - 1
    cuts, signs = _sign_changes(plain, bandwidth)
    weights = (signs @ np.diff(_primitive(cuts, waves), axis=0)) * _damping(waves, bandwidth)
    slope = float(-bandwidth * (math.pi * np.arange(waves + 1)) ** 2 * weights @ plain)
    if is_numpy(namespace(coefficients)):
        return np.sum(weights * coefficients), slope
    xp = namespace(coefficients)
    return xp.sum(xp.astype(from_numpy(weights, coefficients), coefficients.dtype) * coefficients), slope


def _on_grid(coefficients: Array, bandwidth: float) -> Array:
    """The error from a fixed grid, where zeros cannot be looked for."""
    xp, waves = namespace(coefficients), int(coefficients.shape[0]) - 1
    cuts = np.linspace(0.0, 1.0, _GRID * waves + 1)
    pieces = np.diff(_primitive(cuts, waves), axis=0) * _damping(waves, bandwidth)
    matrix = asarray(pieces, xp=xp, device=device_of(coefficients), dtype=coefficients.dtype)
    return xp.sum(xp.abs(matrix @ coefficients))
