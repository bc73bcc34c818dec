"""Temperature of the largest likelihood for predictions of classes, by Newton's method in 1/T."""

from __future__ import annotations

import math

import numpy as np

from wellcal._arrays.chunks import budget, told_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.progress import Stages

_STEPS = 200  # at most; halvings alone take a hundred from one end of the widest bounds to the other
_TRIED = 10.0  # temperatures, about, on the way and at its ends
_PRECISE = 1e-14  # relative, in 1/T


class ClassLikelihood:
    r"""Mean negative log-likelihood of observed classes as a function of b = 1/T, with two derivatives.

    With :math:`l_c` the logarithms of probabilities it is the mean of
    :math:`\log \sum_c \exp(b l_c) - b l_y`, which is convex in b.

    Parameters
    ----------
    probs
        Class probabilities ``(n, C)``; those of observed classes must be positive.
    index
        Observed classes ``(n,)``.

    Examples
    --------
    >>> likelihood = ClassLikelihood(np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([1, 0]))
    >>> value, slope, curvature = likelihood(1.0)
    >>> abs(value + 0.5 * math.log(0.75 * 0.5)) < 1e-15
    True
    """

    def __init__(self, probs: NDArray, index: NDArray) -> None:
        possible = probs > 0
        # A class of probability zero has none at any temperature, and no logarithm.
        self.possible = None if possible.all() else possible
        self.logs = np.log(probs if self.possible is None else np.where(possible, probs, 1.0))
        self.logs -= np.log(probs.max(axis=1))[:, None]
        self.at_target = float(self.logs[np.arange(len(index)), index].mean())
        self.stages = Stages("temperatures", _TRIED)

    def __call__(self, b: float) -> tuple[float, float, float]:
        """Value, and first and second derivative, at b: one of the stages, which the caller ends."""
        with self.stages.part(1.0):
            return self._at(b)

    def _at(self, b: float) -> tuple[float, float, float]:
        n, classes = self.logs.shape
        ones = np.ones(classes)
        total = slope = curvature = 0.0
        for rows in told_chunks(n, classes, within=budget.cache // 4):
            logs = self.logs[rows]
            weights = b * logs
            np.exp(weights, out=weights)
            if self.possible is not None:
                weights *= self.possible[rows]
            mass = weights @ ones
            weights *= logs
            mean = (weights @ ones) / mass
            weights *= logs
            total += float(np.log(mass).sum())
            slope += float(mean.sum())
            curvature += float(((weights @ ones) / mass - mean * mean).sum())
        return total / n - b * self.at_target, slope / n - self.at_target, curvature / n

    def best(self, bounds: tuple[float, float]) -> tuple[float, bool]:
        """The temperature of the least value within `bounds`, and whether it is an end of them."""
        lowest, highest = 1.0 / bounds[1], 1.0 / bounds[0]
        low, high = lowest, highest  # the slope is negative left of the minimum, and positive right of it
        b, tried = min(max(1.0, low), high), set[float]()
        for _ in range(_STEPS):
            _, slope, curvature = self(b)
            tried.add(b)
            if slope == 0.0:
                break
            low, high = (b, high) if slope < 0.0 else (low, b)
            step = slope / curvature if curvature > 0.0 else math.copysign(math.inf, slope)
            if abs(step) <= _PRECISE * b or high - low <= _PRECISE * high:
                break
            moved = b - step
            if not low < moved < high:
                # An end of the bounds is the minimum where the slope says so; an end of a bracket is none.
                end = high if slope < 0.0 else low
                moved = math.sqrt(low * high) if end in tried else end
            b = moved
        at_bound = min(math.log(b / lowest), math.log(highest / b)) < 1e-3
        return 1.0 / b, at_bound
