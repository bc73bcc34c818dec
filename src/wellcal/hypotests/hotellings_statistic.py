"""Hotelling's statistic of deviations at locations, for one or many sets of targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.setup import Setup
from wellcal.problem.at_locations import LocationKernel
from wellcal.problem.locations import as_locations

DEFAULT_LOCATIONS = 10
"""Locations that are drawn where none are given: the paper's number."""

_ROUNDING = 1e-13  # of eigenvalues of correlations
_NEGLIGIBLE = 0.1  # standard errors that errors of expectations may amount to
_CERTAIN = 5.0  # the same, from which on a deviation that does not vary is no rounding error


def prepare_locations(setup: Setup, locations: object = None) -> LocationKernel:
    """The kernel of a case between its predictions and locations, drawn with its rng unless given."""
    wanted = DEFAULT_LOCATIONS if locations is None else locations
    return setup.at(as_locations(wanted, setup.predictions, setup.rng))


@dataclass(frozen=True)
class EmbeddingStatistic:
    """The statistic of the CME test for sets of targets, in pieces of bounded memory.

    With as many locations as cases, or more, the covariance within one set of targets says nothing; the
    statistic then is n UCME^2, which needs none.
    """

    at: LocationKernel

    @property
    def label(self) -> str:
        """What the statistic is."""
        return "n UCME^2" if self.at.n <= len(self.at.locations) else "Q"

    def __call__(self, targets: NDArray) -> NDArray:
        """Values ``(r,)`` for sets of targets ``(r, n, ...)``; observed and drawn sets go the same way."""
        at = self.at
        if at.n <= len(at.locations):
            return np.mean(at.sums(targets) ** 2, axis=1) / at.n
        means, covariances = at.moments(targets)
        return hotelling(means, covariances, at.n, at.precision).statistic


def cme_statistics(setup: Setup, locations: object = None) -> EmbeddingStatistic:
    """The statistic of the CME test for sets of targets of a prepared case."""
    return EmbeddingStatistic(prepare_locations(setup, locations))


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
    scales = np.maximum(np.sqrt(np.einsum("rjj->rj", covariances)), noise)
    scales = np.where(scales > 0.0, scales, 1.0)
    values, vectors = np.linalg.eigh(covariances / (scales[:, :, None] * scales[:, None, :]))
    along = np.einsum("rjk,rj->rk", vectors, means / scales)
    smallest = np.einsum("rjk,rj->rk", vectors**2, (noise / scales) ** 2) + _ROUNDING
    varies = values > smallest
    shares = n * along**2 / np.maximum(values, smallest)
    certain = np.any(~varies & (shares > _CERTAIN**2), axis=1)
    return Hotelling(shares.sum(axis=1), np.count_nonzero(varies, axis=1), certain)
