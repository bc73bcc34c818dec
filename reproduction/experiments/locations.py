"""The paper's CME test on many data sets at once.

:func:`wellcal.calibration_test` has it too, for one data set at a time and with all that belongs to a
result. Here only decisions are wanted, for hundreds of data sets and hundreds of sets of locations.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy import special
from scipy.spatial.distance import cdist

from reproduction.experiments.synthetic import DataSets
from reproduction.tasks import FloatArray
from wellcal import DiagonalNormal

_ROUNDING = 1e-13  # of eigenvalues of correlations


def cme_pvalues(
    data: DataSets, locations: tuple[DiagonalNormal, FloatArray], lengthscale: float = 1.0
) -> FloatArray:
    """p-values ``(B,)`` of the paper's CME test, chi-square form, at J locations."""
    at, targets = locations
    count, n, d = data.y.shape
    centre = np.repeat(data.centres.reshape(-1, 1), d, axis=1)
    wide = 1.0 + data.spread**2
    deviations = np.exp(-0.5 * cdist(data.y.reshape(-1, d), targets, "sqeuclidean"))
    deviations -= wide ** (-0.5 * d) * np.exp(-0.5 * cdist(centre, targets, "sqeuclidean") / wide)
    # W_2 of normal distributions with independent coordinates is the Euclidean distance of their parameters.
    ours, theirs = (
        np.hstack([mean, np.broadcast_to(spread, mean.shape)])
        for mean, spread in ((centre, data.spread), (np.asarray(at.loc), np.asarray(at.scale)))
    )
    deviations *= np.exp(-cdist(ours, theirs) / lengthscale)
    return _hotelling_pvalues(deviations.reshape(count, n, -1))


def _hotelling_pvalues(deviations: FloatArray) -> FloatArray:
    """Hotelling's Q of deviations ``(B, n, J)``, against chi-square.

    The kernel is smooth, and deviations at ten close locations vary in fewer than ten directions, up to
    rounding. There Q is not defined; what is within rounding counts as rounding, and adds nothing to the
    degrees of freedom.
    """
    n = deviations.shape[1]
    means = np.mean(deviations, axis=1)
    centred = deviations - means[:, None]
    covariances = np.swapaxes(centred, 1, 2) @ centred / (n - 1)
    scales = np.sqrt(np.einsum("bjj->bj", covariances))
    values, vectors = np.linalg.eigh(covariances / (scales[:, :, None] * scales[:, None, :]))
    along = np.einsum("bjk,bj->bk", vectors, means / scales)
    statistic = n * np.sum(along**2 / np.maximum(values, _ROUNDING), axis=1)
    return cast("FloatArray", special.chdtrc(np.count_nonzero(values > _ROUNDING, axis=1), statistic))
