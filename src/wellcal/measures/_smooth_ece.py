"""Smooth calibration error: a kernel takes the place of bins."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

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
from wellcal.measures._confidence import check_reduction, confidence
from wellcal.measures.estimate import Estimate, about_cases
from wellcal.measures.smoothed_residual import (
    Integral,
    absolute_integral,
    damping,
    primitive,
    uniform_cuts,
    waves_at,
)
from wellcal.measures.waves import cosine_sums
from wellcal.predictions.base import check_inputs

_NARROWEST = 1e-3  # bandwidth; smaller errors than this are reported as they are at this bandwidth
_LEAST_BANDWIDTH = 1e-6  # that can be given: its inverse is a number of waves
_MANY = 50_000  # cases times waves, beyond which they are not multiplied out


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
    :math:`2.8 / \sigma`, all of them at once by a cosine transform, and the integral is that of a
    trigonometric polynomial between its zeros.

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
    if predictions.kind != "classes":
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
        waves = waves_at(bandwidth)
        return _on_grid(_coefficients(hit, p, waves), bandwidth), bandwidth
    if bandwidth is not None:
        coefficients = _coefficients(hit, p, waves_at(bandwidth))
        return _between_zeros(coefficients, bandwidth)[0], bandwidth
    # Wide kernels need few waves: more are computed only where the bandwidth turns out smaller.
    lowest = 0.1
    while True:
        coefficients = _coefficients(hit, p, waves_at(lowest))
        plain = to_numpy(coefficients).astype(np.float64)
        at_lowest = absolute_integral(plain, lowest)
        if at_lowest.value >= lowest or lowest <= _NARROWEST:
            break
        lowest = max(0.2 * lowest, _NARROWEST)
    if at_lowest.value <= lowest:
        return _between_zeros(coefficients, lowest)[0], lowest
    width = _fixed_point(plain, lowest, at_lowest)
    value, slope = _between_zeros(coefficients, width)
    # One step of Newton's method on error(s) = s: it moves nothing but gives the derivative of the solution.
    return width + (value - width) / (1.0 - slope), width


def _fixed_point(coefficients: NDArray, lowest: float, found: Integral) -> float:
    """The bandwidth that is its own error, where that at `lowest`, which was `found`, is larger; at most 1.

    By Newton's method, kept between bandwidths of which one is too small and the other too large.
    """
    low, high, width = lowest, 1.0, lowest
    for _ in range(100):
        value, slope = found.value, found.slope
        if width == 1.0 and value >= 1.0:
            break
        low, high = (width, high) if value > width else (low, width)
        step = (value - width) / (1.0 - slope)
        width += step
        if abs(step) <= 1e-8 * width:  # what is left is of the order of its square
            break
        if not low <= width <= high:
            width = 0.5 * (low + high) if width < low or high < 1.0 else 1.0
        found = absolute_integral(coefficients, width)
    return width


def _coefficients(hit: Array, p: Array, waves: int) -> Array:
    """Means of ``(y - p) cos(pi k p)`` for k = 0 .. waves, ``(waves + 1,)``."""
    xp, n = namespace(p), int(p.shape[0])
    if is_numpy(xp) and n * waves > _MANY:
        return cosine_sums(hit - p, p, waves) / n
    k = math.pi * _numbers(waves + 1, p)
    total: Any = 0.0
    for rows in in_chunks(n, waves + 1):
        total = total + (hit[rows] - p[rows]) @ xp.cos(p[rows][:, None] * k[None, :])
    return total / n


def _numbers(count: int, like: Array) -> Array:
    return asarray(np.arange(float(count)), xp=namespace(like), device=device_of(like), dtype=like.dtype)


def _between_zeros(coefficients: Array, bandwidth: float) -> tuple[Array, float]:
    """The error as a linear function of the coefficients, and its derivative by the bandwidth.

    At zeros of the integrand its absolute value has no first-order change, so that they are constants.
    """
    found = absolute_integral(to_numpy(coefficients).astype(np.float64), bandwidth)
    xp, waves = namespace(coefficients), int(coefficients.shape[0]) - 1
    if is_numpy(xp):
        return np.float64(found.value), found.slope
    weights = (found.signs @ np.diff(primitive(found.cuts, waves), axis=0)) * damping(waves, bandwidth)
    return xp.sum(
        xp.astype(from_numpy(weights, coefficients), coefficients.dtype) * coefficients
    ), found.slope


def _on_grid(coefficients: Array, bandwidth: float) -> Array:
    """The error from a fixed grid, where zeros cannot be looked for."""
    xp, waves = namespace(coefficients), int(coefficients.shape[0]) - 1
    pieces = np.diff(primitive(uniform_cuts(waves), waves), axis=0) * damping(waves, bandwidth)
    matrix = asarray(pieces, xp=xp, device=device_of(coefficients), dtype=coefficients.dtype)
    return xp.sum(xp.abs(matrix @ coefficients))
