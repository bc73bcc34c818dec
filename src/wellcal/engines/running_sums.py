"""Kernel sums of points on a line, exact to rounding and without the square, for exponential decay.

On sorted points ``exp(-rate |x - x'|)`` is a product: what comes from the left is one running sum that decays
from point to point, and so is what comes from the right.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.progress import reporter

_CHUNK = 1 << 16  # points at a time
_WIDEST = 500.0  # of a chunk, in decay lengths: exp of more would overflow
MOST_RUNS = 20_000
"""Runs of points, taken one after another: points spread over more decay lengths are not for it."""


def runs_on_a_line(x: NDArray, rate: float) -> float:
    """How many runs the points need, at most."""
    return len(x) / _CHUNK + float(np.ptp(x)) * rate / _WIDEST + 2.0


def line_sums(x: NDArray, features: NDArray, rate: float) -> tuple[float, NDArray]:
    """Sum of ``exp(-rate |x_i - x_j|) <phi_i, phi_j>`` over pairs i < j, and over all partners of each point.

    Parameters
    ----------
    x
        Points ``(n,)``.
    features
        phi, ``(n, M)``.
    rate
        Of the decay.

    Examples
    --------
    >>> x, phi = np.array([2.0, 0.0, 1.0]), np.array([[1.0], [1.0], [2.0]])
    >>> total, rows = line_sums(x, phi, 1.0)
    >>> bool(np.isclose(total, 4.0 * np.exp(-1.0) + np.exp(-2.0)))
    True
    """
    n, tell = len(x), reporter()
    # Sorting takes about as long as everything after it: four passes over the cases.
    done, total = 0, 8 * n

    def passed(cases: int) -> None:
        nonlocal done
        done += cases
        tell("sorted cases", done, total)

    passed(0)
    order = np.argsort(x)
    passed(4 * n)
    at, phi = np.empty(n, dtype=x.dtype), np.empty(features.shape, dtype=features.dtype)
    for some in in_chunks(n, features.shape[1]):
        at[some], phi[some] = x[order[some]], features[order[some]]
        passed(some.stop - some.start)
    before = _from_the_left(at, phi, rate, passed)
    behind = _from_the_left(-at[::-1], phi[::-1], rate, passed)[::-1]
    rows = np.empty(n)
    for some in in_chunks(n):
        rows[order[some]] = before[some] + behind[some]
        passed(some.stop - some.start)
    return math.fsum(float(part.sum()) for part in np.array_split(before, 64)), rows


def _from_the_left(x: NDArray, phi: NDArray, rate: float, passed: Callable[[int], None]) -> NDArray:
    """For each of ascending points the sum over all before it; `passed` hears of each run of points."""
    n, size = phi.shape
    out = np.empty(n)
    carried, at, start = np.zeros(size), float(x[0]), 0
    while start < n:
        stop = min(start + _CHUNK, n)
        away = (x[start:stop] - x[start]) * rate
        if away[-1] > _WIDEST:
            stop = start + int(np.searchsorted(away, _WIDEST, side="right"))
            away = away[: stop - start]
        carried = carried * math.exp(-(float(x[start]) - at) * rate)
        own = phi[start:stop]
        grown = np.exp(away)
        sums = np.cumsum(own * grown[:, None], axis=0)
        sums += carried
        # Points before a point, not the point itself.
        earlier = np.concatenate([carried[None], sums[:-1]])
        out[start:stop] = np.einsum("nm,nm->n", own, earlier) / grown
        passed(stop - start)
        carried, at, start = sums[-1] / grown[-1], float(x[stop - 1]), stop
    return out
