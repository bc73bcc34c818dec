"""The statistic of the CME test: deviations at locations in units of their spread, over sets or cases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.resampling.targets import target_sets
from wellcal.hypotests.setup import Setup
from wellcal.problem.at_locations import LocationKernel
from wellcal.problem.locations import as_locations

DEFAULT_LOCATIONS = 10
"""Locations that are drawn where none are given: the paper's number."""

_ROUNDING = 1e-13  # of eigenvalues of correlations
_SMALLEST_EIGENVALUE = 1e-2  # of correlations between sums, which have a mean of 1
_NEGLIGIBLE = 0.1  # standard errors that errors of expectations may amount to
_CERTAIN = 5.0  # the same, from which on a deviation that does not vary is no rounding error
_NOT_FINITE = (
    "deviations at the locations are not finite for some targets; check the values that the kernel returns"
)


def prepare_locations(setup: Setup, locations: object = None) -> LocationKernel:
    """The kernel of a case between its predictions and locations, drawn with its rng unless given."""
    wanted = DEFAULT_LOCATIONS if locations is None else locations
    return setup.at(as_locations(wanted, setup.predictions, setup.rng))


# -- with the covariance over sets of targets --------------------------------------------------


def embedding_sums(setup: Setup, at: LocationKernel) -> NDArray:
    """Sums of deviations ``(R + 1, J)`` of the observed set of targets, the first, and of all drawn ones."""
    return np.concatenate([at.sums(targets) for targets in target_sets(setup)])


def embedding_statistics(sums: NDArray, rounding: NDArray | float = 0.0) -> NDArray:
    """Q of each of R + 1 sets of targets ``(R + 1,)``, in units of their spread over all of them.

    ``Q_r = z_r' C^- z_r`` for the sums z_r less their mean, C their covariance over all sets. In that all
    sets are alike, so that ranks of Q are exact under calibration. The covariance over the cases of one set,
    Hotelling's, would not do: sets in which nothing unlikely happens hardly vary within, and rank first.

    Sums are brought to unit variance. Of the correlations, eigenvalues count as at least 0.01: directions
    in which locations hardly differ, or not at all, are not magnified. Locations at which sums vary by
    `rounding` only, a number or ``(J,)``, do not count.

    Examples
    --------
    >>> sums = np.array([[3.0, 3.0], [1.0, 1.0], [-1.0, -1.0], [-3.0, -3.0]])
    >>> embedding_statistics(sums).round(6), embedding_statistics(sums[:, :1]).round(6)
    (array([1.8, 0.2, 0.2, 1.8]), array([1.8, 0.2, 0.2, 1.8]))
    """
    if not np.isfinite(sums).all():
        raise ValueError(_NOT_FINITE)
    z = sums - sums.mean(axis=0)
    scales = np.max(np.abs(z), axis=0)  # squares of the smallest numbers are zero
    keep = scales > rounding
    if not keep.any():
        return np.zeros(len(z))
    z = z[:, keep] / scales[keep]
    z = z / np.sqrt(np.mean(z**2, axis=0))
    values, vectors = np.linalg.eigh(z.T @ z / len(z))
    return ((z @ vectors) ** 2) @ (1.0 / np.maximum(values, _SMALLEST_EIGENVALUE))


def rounding_of(at: LocationKernel) -> NDArray:
    """Differences between sums of deviations at each location that rounding makes, ``(J,)``."""
    return _ROUNDING * np.sum(np.abs(at.expected), axis=0)


# -- with the covariance over cases -------------------------------------------------------------


@dataclass(frozen=True)
class Hotelling:
    """Hotelling's statistic of R sets.

    Attributes
    ----------
    statistic
        Q, ``(R,)``.
    rank
        Directions in which deviations vary, ``(R,)``.
    certain
        Whether deviations do not vary in some direction in which they are not zero, ``(R,)``.
    """

    statistic: NDArray
    rank: NDArray
    certain: NDArray


def hotelling(means: NDArray, covariances: NDArray, n: int, error: NDArray | float = _ROUNDING) -> Hotelling:
    """Hotelling's statistic from means ``(R, J)`` and covariances ``(R, J, J)`` of n cases.

    Deviations are first brought to unit variance, which changes nothing but the rounding. Along each
    eigenvector of the correlations the variance counts as at least what rounding leaves of it, and so large
    that the `error` of the deviations, a number or ``(J,)``, is a small part of the standard error: such
    directions add nothing to Q, unless the mean there is beyond doubt.
    """
    noise = np.broadcast_to(error, means.shape[1:]) * (np.sqrt(n) / _NEGLIGIBLE)
    if not (np.isfinite(means).all() and np.isfinite(covariances).all()):
        raise ValueError(_NOT_FINITE)
    scales = np.maximum(np.sqrt(np.einsum("rjj->rj", covariances)), noise)
    scales = np.where(scales > 0.0, scales, 1.0)
    values, vectors = np.linalg.eigh(covariances / (scales[:, :, None] * scales[:, None, :]))
    along = np.einsum("rjk,rj->rk", vectors, means / scales)
    smallest = np.einsum("rjk,rj->rk", vectors**2, (noise / scales) ** 2) + _ROUNDING
    varies = values > smallest
    shares = n * along**2 / np.maximum(values, smallest)
    certain = np.any(~varies & (shares > _CERTAIN**2), axis=1)
    return Hotelling(shares.sum(axis=1), np.count_nonzero(varies, axis=1), certain)
