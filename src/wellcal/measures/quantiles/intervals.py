"""What central prediction intervals hold, and what they would hold if the model were calibrated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    stop_gradient,
    to_numpy,
    widen,
)
from wellcal._arrays.special import first_reaching
from wellcal.measures.numbers_of_classes import target_numbers
from wellcal.measures.quantiles._pit import distribution_at
from wellcal.measures.quantiles.known_levels import interval_columns
from wellcal.predictions import Quantiles, Samples


class Held(NamedTuple):
    """Of central intervals of one level: the share of targets in them, its expectation, the mean width."""

    share: float
    expected: float
    width: Callable[[], float]


Intervals: TypeAlias = Callable[[float], Held]
"""From a level to what the intervals of that level hold."""


def intervals_of(predictions: Any, targets: Array) -> Intervals:
    """What intervals of the predictions hold, at levels that these have (`known_levels`).

    The expectation is that of a calibrated model, exactly: the level for continuous predictions, the
    probability of the interval for discrete ones, and for draws, which are exchangeable with the target, that
    given the values of both.

    Examples
    --------
    >>> held = intervals_of(Quantiles([0.1, 0.9], [[0.0, 2.0], [0.0, 4.0]]), np.array([1.0, 5.0]))(0.8)
    >>> held.share, held.expected, held.width()
    (0.5, 0.8, 3.0)
    """
    if isinstance(predictions, Quantiles):
        return _between_quantiles(predictions, targets)
    if predictions.kind == "draws":
        return _among_draws(predictions, targets)
    if predictions.continuous:
        return _of_densities(predictions, targets)
    numbers = target_numbers(predictions, targets, "intervals need predictions of numbers")
    return _of_probabilities(predictions, numbers)


def _between_quantiles(predictions: Quantiles, targets: Array) -> Intervals:
    bins, values = _in_numpy(predictions.bins(targets)), _in_numpy(predictions.values)

    def held(level: float) -> Held:
        low, high = interval_columns(predictions, level)
        inside = (bins > low) & (bins <= high)
        return Held(float(inside.mean()), level, lambda: float((values[:, high] - values[:, low]).mean()))

    return held


def _among_draws(predictions: Samples, targets: Array) -> Intervals:
    """Of S + 1 values, b - a lie in the interval of the others, and those that are equal to its ends."""
    y, draws = _in_numpy(targets), np.sort(_in_numpy(predictions.values), axis=1)
    pooled = np.sort(np.column_stack([draws, y]), axis=1)
    weights = predictions[:1].atom_weights()

    def held(level: float) -> Held:
        # Places of the ends among the draws in order. Without one of the values up to place a, the end is the
        # next one; without one beyond place b, it stays.
        a, b = (int(first_reaching(weights, predictions.constant(u))[0]) for u in _ends(level))
        low, high = draws[:, a], draws[:, b]
        ties = np.sum(pooled[:, : a + 1] == pooled[:, [a + 1]], axis=1)
        ties = ties + np.sum(pooled[:, b + 1 :] == pooled[:, [b]], axis=1)
        expected = (b - a + ties.mean()) / pooled.shape[1]
        return Held(
            float(((y >= low) & (y <= high)).mean()), float(expected), lambda: float((high - low).mean())
        )

    return held


def _of_densities(predictions: Any, targets: Array) -> Intervals:
    """By distribution functions at the targets: once for all levels, and quicker than quantiles."""
    below, upto = map(_in_numpy, distribution_at(predictions, targets))

    def held(level: float) -> Held:
        low, high = _ends(level)
        inside = (upto >= low) & (below <= high)
        width = lambda: _mean(predictions.quantile(high) - predictions.quantile(low))  # noqa: E731
        return Held(float(inside.mean()), level, width)

    return held


def _of_probabilities(predictions: Any, targets: Array) -> Intervals:
    def held(level: float) -> Held:
        low, high = (predictions.quantile(u) for u in _ends(level))
        inside = (targets >= low) & (targets <= high)
        expected = min(_probability(predictions, low, high), 1.0)
        return Held(float(to_numpy(inside).mean()), expected, lambda: _mean(high - low))

    return held


def _probability(predictions: Any, low: Array, high: Array) -> float:
    """Mean probability of intervals with both ends."""
    if predictions.kind == "classes":
        values = np.asarray(predictions.support_values())
        inside = (values >= to_numpy(low)[:, None]) & (values <= to_numpy(high)[:, None])
        return float(np.where(inside, to_numpy(predictions.class_probs()), 0.0).sum(axis=1).mean())
    return _mean(distribution_at(predictions, high)[1] - distribution_at(predictions, low)[0])


def _ends(level: float) -> tuple[float, float]:
    return 0.5 - 0.5 * level, 0.5 + 0.5 * level


def _in_numpy(array: Array) -> NDArray:
    return np.asarray(to_numpy(stop_gradient(array)))


def _mean(array: Array) -> float:
    return float(_in_numpy(widen(array)).mean())
