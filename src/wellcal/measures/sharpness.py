"""The power of class probabilities that fits targets best: one over the temperature."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray

_MOST = 4.0  # logarithm of the power, to either side: where targets are separated there is no best one
_STEPS = 60
_ENOUGH = 1e-13  # relative change of the power


class Sharpness(NamedTuple):
    """A power of probabilities, and what each case says of it.

    Attributes
    ----------
    power
        Above one where probabilities should be more extreme than they are.
    slope, bend
        First derivative of the log probability of each target with respect to the power, and minus the
        second one, ``(n,)`` each.
    """

    power: float
    slope: NDArray
    bend: NDArray


def best_sharpness(logs: NDArray, targets: NDArray, weights: NDArray | None = None) -> Sharpness:
    """The power that makes targets likeliest, from logarithms of probabilities ``(n, C)``.

    The log-likelihood is concave in it. Newton's method takes a few steps; where one would leave the
    interval in which the slope changes its sign, that is cut in the middle, which cannot fail.

    Examples
    --------
    >>> logs = np.log([[0.8, 0.2], [0.7, 0.3], [0.4, 0.6], [0.9, 0.1]])
    >>> round(best_sharpness(logs, np.array([0, 1, 1, 0])).power, 3)
    1.074
    """
    rows = np.arange(len(logs))
    each = np.full(len(logs), 1.0 / len(logs)) if weights is None else weights
    low, high, power = -_MOST, _MOST, 1.0
    for _ in range(_STEPS):
        p = special.softmax(power * logs, axis=1)
        mean = np.sum(p * logs, axis=1)
        slope = logs[rows, targets] - mean
        bend = np.sum(p * logs**2, axis=1) - mean**2
        rise, fall = float(each @ slope), float(each @ bend)
        low, high = (np.log(power), high) if rise > 0.0 else (low, np.log(power))
        step = rise / fall if fall > 0.0 else np.inf
        if abs(step) <= _ENOUGH * power:
            break
        inside = np.exp(low) < power + step < np.exp(high)
        power = float(power + step if inside else np.exp(0.5 * (low + high)))
    return Sharpness(power, slope, bend)  # pyright: ignore[reportPossiblyUnboundVariable]
