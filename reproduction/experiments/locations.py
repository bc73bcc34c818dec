"""The paper's CME test for many sets of locations at once.

:func:`wellcal.calibration_test` has it too, for one set at a time and with all that belongs to a result. Here
only decisions are wanted, for hundreds of data sets and dozens of sets of locations.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy import stats
from scipy.spatial.distance import cdist

import wellcal as wc
from reproduction.tasks import FloatArray
from wellcal.kernels import Gaussian

_ROUNDING = 1e-13  # of eigenvalues of correlations


def cme_pvalues(
    y: FloatArray, pred: wc.DiagonalNormal, sets: list[tuple[wc.DiagonalNormal, FloatArray]]
) -> FloatArray:
    """p-values ``(S,)`` of the paper's CME test, chi-square form, for S sets of J locations each."""
    predictions = np.concatenate([_parameters(at) for at, _ in sets])
    targets = np.concatenate([points for _, points in sets])
    kernel, observed = Gaussian(), wc.Samples(y[:, None], kind="atoms")
    deviations = wc.pairing(kernel, observed, targets) - wc.pairing(kernel, pred, targets)
    deviations *= np.exp(-cdist(_parameters(pred), predictions))
    return _hotelling_pvalues(deviations.reshape(len(y), len(sets), -1))


def _parameters(pred: wc.DiagonalNormal) -> FloatArray:
    """Means and standard deviations, ``(n, 2 d)``: W_2 of diagonal normals is their Euclidean distance."""
    return np.hstack([np.asarray(pred.loc), np.asarray(pred.scale)])


def _hotelling_pvalues(deviations: FloatArray) -> FloatArray:
    """Hotelling's Q of deviations ``(n, S, J)``, against chi-square.

    The kernel is smooth, and deviations at ten close locations vary in fewer than ten directions, up to
    rounding. There Q is not defined; what is within rounding counts as rounding, and adds nothing to the
    degrees of freedom.
    """
    n = len(deviations)
    means = np.mean(deviations, axis=0)
    centred = deviations - means
    covariances = np.einsum("nsj,nsk->sjk", centred, centred) / (n - 1)
    scales = np.sqrt(np.einsum("sjj->sj", covariances))
    values, vectors = np.linalg.eigh(covariances / (scales[:, :, None] * scales[:, None, :]))
    along = np.einsum("sjk,sj->sk", vectors, means / scales)
    statistic = n * np.sum(along**2 / np.maximum(values, _ROUNDING), axis=1)
    return cast("FloatArray", stats.chi2.sf(statistic, np.count_nonzero(values > _ROUNDING, axis=1)))
