"""Simultaneous bands for the distribution function of uniform variables."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

import numpy as np
from scipy import special

from wellcal._arrays.checks import one_of, probability
from wellcal._arrays.namespaces import NDArray

KINDS = ("kolmogorov", "equal_precision")

_FEW = 300  # numbers, up to which a convolution is quickest term by term


def calibration_band(levels: NDArray, n: int, level: float, kind: str) -> tuple[NDArray, NDArray]:
    """Bounds ``(T,)`` between which the empirical distribution function of n uniforms stays at `levels`.

    The probability that it does so at all levels at once is at least `level`.
    """
    level = probability(level, "level")
    one_of(kind, "kind of band", KINDS)
    levels = np.asarray(levels, dtype=np.float64)
    if kind == "kolmogorov":
        from scipy import stats  # slow to load, as it is below

        half = float(stats.kstwo.ppf(level, n))
        return np.clip(levels - half, 0.0, 1.0), np.clip(levels + half, 0.0, 1.0)
    low, high = _equal_precision(tuple(levels.tolist()), n, level)
    return low.copy(), high.copy()


@lru_cache(maxsize=64)
def _equal_precision(at: tuple[float, ...], n: int, level: float) -> tuple[NDArray, NDArray]:
    """Binomial intervals of one level at each of the levels, widened until all hold together.

    As in Säilynoja, Bürkner, Vehtari (2022), with the probability of the whole path computed exactly. They
    are remembered: the pictures of one report ask for the same band again and again.
    """
    levels = np.array(at)
    inner = np.unique(levels[(levels > 0) & (levels < 1)])
    if len(inner) == 0:
        return levels.copy(), levels.copy()
    # Bounds jump where the error of single intervals crosses a binomial probability: bisection finds the
    # largest error whose intervals still hold together.
    low, high = np.log((1.0 - level) / (4.0 * len(inner))), np.log(1.0 - level)
    for _ in range(40):
        middle = 0.5 * (low + high)
        enough = path_probability(inner, n, *_intervals(inner, n, float(np.exp(middle)))) >= level
        low, high = (middle, high) if enough else (low, middle)
    least, most = _intervals(levels, n, float(np.exp(low)))
    return least / n, most / n


def _intervals(levels: NDArray, n: int, alpha: float) -> tuple[NDArray, NDArray]:
    """Smallest and largest counts below each level, with at most half of `alpha` left out on each side."""
    from scipy import stats

    least, most = stats.binom.ppf(0.5 * alpha, n, levels), stats.binom.isf(0.5 * alpha, n, levels)
    return np.asarray(least), np.asarray(most)


def path_probability(levels: NDArray, n: int, least: NDArray, most: NDArray) -> float:
    """Probability that n uniforms have between `least` and `most` of them below each of increasing levels.

    Counts below levels are a Poisson process that is conditioned on its total, n: what remains within the
    bounds from level to level is a convolution with Poisson probabilities.

    Examples
    --------
    >>> round(path_probability(np.array([0.5]), 2, np.array([1]), np.array([1])), 12)
    0.5
    """
    from scipy import signal

    steps = np.diff(levels, prepend=0.0, append=1.0)
    least = np.append(least, n).astype(int)
    most = np.append(most, n).astype(int)
    mass, start = np.ones(1), 0
    for step, first, last in zip(steps, least, most, strict=True):
        if last < first:
            return 0.0
        low = max(int(first), start)
        counts = np.arange(0, int(last) - start + 1)
        rate = n * step
        log_jumps = cast("NDArray", special.xlogy(counts, rate) - rate - special.gammaln(counts + 1.0))
        jumps = np.exp(log_jumps)
        # Few terms are added up: what chooses between that and transforms takes longer than either.
        few = min(len(mass), len(jumps)) <= _FEW
        moved = np.convolve(mass, jumps) if few else cast("NDArray", signal.fftconvolve(mass, jumps))
        mass, start = np.maximum(moved[low - start : last - start + 1], 0.0), low
    total = np.exp(special.xlogy(n, n) - n - special.gammaln(n + 1.0))
    return float(mass[-1] / total) if len(mass) else 0.0
