"""Curves of reliability diagrams: binned with a band, smooth, and isotonic."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import ndimage, optimize

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal.displays.base import envelope
from wellcal.measures.binned.binning import EqualMassBins, UniformBins

_MOST = 2 * 10**8  # random numbers for a band, about
_FEWEST = 199  # resamples for a band, however many cases
_GRID = 400  # cells of smooth curves
_FEWEST_CASES = 10  # within a bandwidth of a point of a smooth curve
_CLOSE = 0.05  # to a point of a smooth curve, where there must be a case
_NARROWEST = 0.02  # bandwidth of smooth curves


def cell_counts(values: NDArray, cells: int) -> NDArray:
    """Count values from 0 to 1 in so many cells of equal width; a value on an edge is in the cell above.

    Examples
    --------
    >>> cell_counts(np.array([0.0, 0.1 + 0.2, 0.7, 0.7 - 1e-16, 1.0]), 10)
    array([1, 0, 0, 1, 0, 0, 0, 2, 0, 1])
    """
    # Rounded, so that 1 - 0.7 and 0.3 are one probability.
    return np.bincount(UniformBins(cells).cells(np.round(values, 9)[:, None]), minlength=cells)


def binned_curve(
    hits: NDArray, p: NDArray, n_bins: int, level: float, n_resamples: int, rng: np.random.Generator
) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray]:
    """Mean probabilities, frequencies, numbers of cases and the band of bins that hold any, in order.

    Examples
    --------
    >>> found = binned_curve(
    ...     np.array([0, 1, 1, 1]), np.array([0.1, 0.3, 0.8, 0.9]), 2, 0.9, 99, np.random.default_rng(0)
    ... )
    >>> [part.round(3).tolist() for part in found[:3]]
    [[0.2, 0.85], [0.5, 1.0], [2, 2]]
    """
    cells = EqualMassBins(n_bins).cells(p[:, None])
    _, cells = np.unique(cells, return_inverse=True)
    number = int(cells.max()) + 1
    counts = np.bincount(cells, minlength=number)
    predicted = np.bincount(cells, p, number) / counts
    order = np.argsort(predicted, kind="stable")
    position = np.argsort(order)[cells]
    by_bin = np.argsort(position, kind="stable")
    counts, predicted = counts[order], predicted[order]
    observed = np.bincount(position, hits, number) / counts
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    chance, n = p[by_bin], len(p)
    resamples = min(n_resamples, max(_FEWEST, _MOST // n))
    draws = np.empty((resamples, number))
    for rows in in_chunks(resamples, n):
        drawn = rng.random((rows.stop - rows.start, n)) < chance
        draws[rows] = np.add.reduceat(drawn, starts, axis=1, dtype=np.int64)
    low, high = (np.clip(end / counts, 0.0, 1.0) for end in envelope(draws, level))
    return predicted, observed, counts, low, high


def smooth_curve(hits: NDArray, p: NDArray) -> tuple[NDArray, NDArray]:
    """Probabilities, and frequencies as the diagonal and a local mean of `hits` less `p`.

    The mean is Gaussian, reflected at 0 and 1, with a bandwidth of Silverman's rule, 0.02 at least; the curve
    leaves out the smallest and the largest hundredth of probabilities, where next to nothing is known.

    Examples
    --------
    >>> x, y = smooth_curve(np.ones(50), np.full(50, 0.5))
    >>> bool(np.allclose(y, 1.0)), bool(np.all(abs(x - 0.5) < 0.01))
    (True, True)
    >>> x, y = smooth_curve(np.array([0, 1] * 50), np.array([0.0, 1.0] * 50))
    >>> bool(np.isnan(y[(x > 0.05) & (x < 0.95)]).all()), bool(np.isfinite(y[x < 0.05]).all())
    (True, True)
    """
    n, spread = len(p), float(np.std(p))
    bandwidth = max(_NARROWEST, 1.06 * spread * n**-0.2)
    cell = np.clip((p * _GRID).astype(np.int64), 0, _GRID - 1)
    options: dict[str, Any] = {"sigma": bandwidth * _GRID, "mode": "reflect", "truncate": 8.0}
    mass = ndimage.gaussian_filter1d(np.bincount(cell, minlength=_GRID).astype(np.float64), **options)
    rest = ndimage.gaussian_filter1d(np.bincount(cell, hits - p, _GRID), **options)
    x = (np.arange(_GRID) + 0.5) / _GRID
    least, most = np.quantile(cell, [0.01, 0.99], method="nearest").astype(int)
    inside = slice(least, most + 1)
    curve = np.clip(x[inside] + rest[inside] / mass[inside], 0.0, 1.0)
    # Between clusters of cases there is nothing to draw.
    ordered = np.sort(p)
    wide, close = (_cases_within(ordered, x[inside], reach) for reach in (bandwidth, _CLOSE))
    return x[inside], np.where((wide >= _FEWEST_CASES) & (close > 0), curve, np.nan)


def _cases_within(ordered: NDArray, x: NDArray, reach: float) -> NDArray:
    """How many of some probabilities in order lie that near."""
    low, high = (np.searchsorted(ordered, x + side * reach) for side in (-1.0, 1.0))
    return high - low


def isotonic_curve(hits: NDArray, p: NDArray) -> tuple[NDArray, NDArray]:
    """Distinct probabilities, and frequencies that never fall and are nearest to what happened.

    Examples
    --------
    >>> isotonic_curve(np.array([1, 0, 1]), np.array([0.2, 0.3, 0.9]))
    (array([0.2, 0.3, 0.9]), array([0.5, 0.5, 1. ]))
    """
    values, cells, counts = np.unique(p, return_inverse=True, return_counts=True)
    means = np.bincount(cells, hits, len(values)) / counts
    found = optimize.isotonic_regression(means, weights=counts.astype(np.float64))
    return values, np.asarray(found.x)
