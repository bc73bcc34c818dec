"""Whether a number of ours is the published one, up to the chance in both.

Every comparison of an experiment is made at 0.01 divided by their number (Bonferroni), so that a faithful
reproduction shows a mismatch anywhere in that experiment with probability 0.01 at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

from reproduction.tasks import FloatArray

ALPHA = 0.01
"""Probability of a false alarm in an experiment."""


@dataclass(frozen=True)
class Agreement:
    """A published number beside ours.

    Attributes
    ----------
    ours, published
        The two numbers.
    low, high
        Where the published number is expected, given ours.
    """

    ours: float
    published: float
    low: float
    high: float

    @property
    def matched(self) -> bool:
        """Whether the published number is where it is expected."""
        return self.low <= self.published <= self.high


def compare_mean_error(
    estimates: FloatArray,
    truth: float,
    published: float,
    *,
    published_count: int,
    truth_variance: float = 0.0,
    comparisons: int = 1,
) -> Agreement:
    """Mean absolute error of estimates: normal bounds.

    Both means are over samples from one distribution, whose variance is estimated from ours. The truth was
    estimated too, by both sides independently and with variance `truth_variance`; to first order an error
    in it moves the mean error in proportion to the surplus of estimates above the truth over those below.
    """
    errors = np.abs(estimates - truth)
    sampling = float(np.var(errors, ddof=1)) * (1.0 / len(errors) + 1.0 / published_count)
    slope = float(np.mean(np.sign(estimates - truth)))
    half = _normal_quantile(comparisons) * math.sqrt(sampling + 2.0 * slope**2 * truth_variance)
    ours = float(np.mean(errors))
    return Agreement(ours, published, ours - half, ours + half)


def compare_variance(
    estimates: FloatArray,
    published: float,
    *,
    published_count: int,
    comparisons: int = 1,
    resamples: int = 2000,
) -> Agreement:
    """Variance of estimates: normal bounds for its logarithm, whose standard error is a bootstrap one."""
    rng = np.random.default_rng(0)
    drawn = estimates[rng.integers(len(estimates), size=(resamples, len(estimates)))]
    error = float(np.std(np.log(np.var(drawn, axis=1, ddof=1)), ddof=1))
    half = _normal_quantile(comparisons) * error * math.sqrt(1.0 + len(estimates) / published_count)
    ours = float(np.var(estimates, ddof=1))
    return Agreement(ours, published, ours * math.exp(-half), ours * math.exp(half))


def compare_proportions(
    ours: int, count: int, published: int, *, published_count: int, comparisons: int = 1
) -> Agreement:
    """Two proportions by Fisher's exact test, two-sided by doubling the smaller tail.

    The bounds are the proportions that the test cannot tell from ours.

    Examples
    --------
    >>> compare_proportions(25, 500, 40, published_count=500).matched
    True
    >>> compare_proportions(25, 500, 70, published_count=500).matched
    False
    """
    candidates = np.arange(published_count + 1)
    total = count + published_count
    tail = stats.hypergeom(total, ours + candidates, published_count)
    pvalues = 2.0 * np.minimum(tail.cdf(candidates), tail.sf(candidates - 1))
    accepted = candidates[pvalues > ALPHA / comparisons]
    low, high = accepted.min() / published_count, accepted.max() / published_count
    return Agreement(ours / count, published / published_count, float(low), float(high))


def compare_with_repeats(
    repeats: FloatArray, published: float, *, scale: str | float = "linear", comparisons: int = 1
) -> Agreement:
    """A published result beside repeats of its experiment: Student's prediction interval for one more.

    The interval is computed on a scale on which repeats spread about evenly, and mapped back: "linear",
    "log", or a number c for asinh(x / c), which is linear for values below c and logarithmic above it.

    Examples
    --------
    >>> found = compare_with_repeats(np.array([1.0, 2.0, 3.0]), 2.5)
    >>> found.ours, found.matched
    (2.0, True)
    """
    there, back = _SCALES[scale] if isinstance(scale, str) else _asinh_scale(scale)
    values = there(repeats)
    count = len(values)
    spread = float(np.std(values, ddof=1)) * math.sqrt(1.0 + 1.0 / count)
    half = float(stats.t.isf(0.5 * ALPHA / comparisons, count - 1)) * spread
    centre = float(values.mean())
    low, high = (float(back(np.clip(end, -700.0, 700.0))) for end in (centre - half, centre + half))
    return Agreement(float(np.mean(repeats)), published, low, high)


_Map = Callable[[Any], Any]
_SCALES: dict[str, tuple[_Map, _Map]] = {"linear": (np.asarray, np.asarray), "log": (np.log, np.exp)}


def _asinh_scale(width: float) -> tuple[_Map, _Map]:
    return lambda x: np.arcsinh(x / width), lambda t: width * np.sinh(t)


def _normal_quantile(comparisons: int) -> float:
    return float(special.ndtri(1.0 - 0.5 * ALPHA / comparisons))
