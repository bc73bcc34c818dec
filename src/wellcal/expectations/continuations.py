"""What is known of families of counts: probabilities between counts, ratios of neighbours, and tails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, is_numpy, widen
from wellcal._arrays.registry import Rules
from wellcal._arrays.special import (
    STIRLING_FROM,
    negative_binomial_log_prob,
    nowhere,
    poisson_log_prob,
    quiet,
)
from wellcal.predictions import NegativeBinomial, Poisson, Predictions
from wellcal.predictions.base import keeps_distribution

TAIL = 5e-14
"""Probability that may be left out at each end of a prediction."""

_EXPONENT = 31.0  # exp(-31) is below TAIL
_LARGEST = 1e12  # mean: the exponents of larger counts are differences of numbers that rounding makes alike


class Continuation(NamedTuple):
    """Probabilities of a family of counts as a function of a real argument.

    Attributes
    ----------
    log_prob
        From predictions and arguments t > 0, ``(m, n)`` or ``(m, 1)``, to log probabilities ``(m, n)``.
    ratio
        From predictions and counts k ``(m,)`` to p(k + 1) / p(k), ``(n, m)``, in NumPy.
    exponent
        From predictions and counts ``(n,)`` to D with P(Z >= k) <= exp(-D) above the mean, and P(Z <= k)
        likewise below it (Chernoff), in NumPy.
    """

    log_prob: Callable[[Any, Array], Array]
    ratio: Callable[[Any, NDArray], NDArray]
    exponent: Callable[[Any, NDArray], NDArray]


CONTINUATIONS: Rules[Continuation] = Rules("probabilities between counts", serves=keeps_distribution)
"""Families whose probabilities continue smoothly between counts."""


def _poisson(predictions: Poisson, t: Array) -> Array:
    ops, rate = predictions.ops, widen(predictions.rate)
    certain = rate == 0
    found = poisson_log_prob(ops, t, ops.where(certain, ops.one(rate), rate))
    return found if nowhere(ops, certain) else ops.where(certain & (t > 0), -np.inf * ops.one(found), found)


def _negative_binomial(predictions: NegativeBinomial, t: Array) -> Array:
    ops, mean = predictions.ops, widen(predictions.mean())
    certain = mean == 0
    size = 1.0 / widen(predictions.dispersion)
    positive = ops.where(certain, ops.one(mean), mean)
    small = size < STIRLING_FROM
    if is_numpy(ops.xp) and t.shape[-1] == 1 and np.any(small) and not np.all(small):
        # Each size takes one of two formulas: both are worked out where they are asked for together.
        found = np.empty((len(t), len(size)))
        for rows in (np.flatnonzero(small), np.flatnonzero(~small)):
            found[:, rows] = negative_binomial_log_prob(ops, t, positive[rows], size[rows])
    else:
        found = negative_binomial_log_prob(ops, t, positive, size)
    return found if nowhere(ops, certain) else ops.where(certain & (t > 0), -np.inf * ops.one(found), found)


def _poisson_ratio(predictions: Poisson, k: NDArray) -> NDArray:
    return np.asarray(predictions.rate)[:, None] / (k + 1.0)


def _negative_binomial_ratio(predictions: NegativeBinomial, k: NDArray) -> NDArray:
    mean, dispersion = np.asarray(predictions.mean()), np.asarray(predictions.dispersion)
    return (mean / (1.0 + dispersion * mean))[:, None] * (1.0 + dispersion[:, None] * k) / (k + 1.0)


@quiet
def _poisson_exponent(predictions: Poisson, k: NDArray) -> NDArray:
    rate = np.asarray(predictions.rate)
    return np.where(k > 0, k * np.log(k / rate), 0.0) - k + rate


@quiet
def _negative_binomial_exponent(predictions: NegativeBinomial, k: NDArray) -> NDArray:
    mean, size = np.asarray(predictions.mean()), 1.0 / np.asarray(predictions.dispersion)
    rest = (k + size) * np.log1p((k - mean) / (mean + size))
    return np.where(k > 0, k * np.log(k / mean), 0.0) - rest


CONTINUATIONS.register(Poisson)(Continuation(_poisson, _poisson_ratio, _poisson_exponent))
CONTINUATIONS.register(NegativeBinomial)(
    Continuation(_negative_binomial, _negative_binomial_ratio, _negative_binomial_exponent)
)


def windows(predictions: Predictions) -> tuple[NDArray, NDArray]:
    """Counts ``(n,)`` between which all but 1e-13 of each prediction's mass lies, in NumPy.

    They are infinite where rounding leaves nothing of the difference between a count and the next.
    """
    known = CONTINUATIONS.find(type(predictions))
    if known is None:
        return np.asarray(predictions.quantile(TAIL)), np.asarray(predictions.quantile(1.0 - TAIL)) + 1.0
    mean = np.asarray(predictions.mean(), dtype=np.float64)

    def beyond(k: NDArray) -> NDArray:
        return known.exponent(predictions, k) >= _EXPONENT

    resolved = mean <= _LARGEST
    low, high = np.zeros_like(mean), mean + 1.0
    while not (done := beyond(high) | ~resolved).all() and np.isfinite(high).all():
        high = np.where(done, high, mean + 2.0 * (high - mean))
    inner, near = mean, np.where(beyond(low), mean, low)
    for _ in range(12):  # to a thousandth of the bracket
        middle = 0.5 * (inner + high)
        high, inner = np.where(beyond(middle), middle, high), np.where(beyond(middle), inner, middle)
        middle = 0.5 * (low + near)
        low, near = np.where(beyond(middle), middle, low), np.where(beyond(middle), near, middle)
    return np.floor(low), np.where(resolved, np.where(mean > 0, np.ceil(high), 0.0), np.inf)
