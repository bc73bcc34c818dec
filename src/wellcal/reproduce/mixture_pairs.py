"""SKCE of mixtures with some pairs of components left out, as in the published values for ensembles.

For mixtures P = sum_i w_i p_i and Q = sum_j v_j q_j the bilinear form of h is a double sum over components,

    < P - d(y), Q - d(z) > = sum_ij w_i v_j < p_i - d(y), q_j - d(z) >.

The code behind the published values leaves out the pairs (i >= 2, j = 1). By linearity the part left out is
v_1 (< P - d(y), q_1 - d(z) > - w_1 < p_1 - d(y), q_1 - d(z) >). It is not symmetric: the sum there is over
pairs of cases in which P belongs to the later one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal.expectations._pairing import pairing
from wellcal.expectations.on_predictions import prediction_kernel
from wellcal.expectations.plans import Notes
from wellcal.kernels.base import Kernel, Tensor
from wellcal.kernels.matrix import kernel_matrix
from wellcal.predictions import Mixture, Predictions

FloatArray = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Values:
    """Biased and unbiased SKCE."""

    biased: float
    unbiased: float


def skce_of_mixtures(y: FloatArray, pred: Mixture, kernel: Tensor, *, leave_out: bool) -> Values:
    """SKCE of mixtures from full matrices, with all pairs of components or without (i >= 2, j = 1)."""
    form = _form(kernel.targets, y, pred, pred)
    if leave_out:
        first = pred.components[0]
        weight = np.asarray(pred.weights)[:, 0]
        pairs = _form(kernel.targets, y, pred, first)
        pairs -= weight[:, None] * _form(kernel.targets, y, first, first)
        form = form - weight[None, :] * pairs
    on_predictions, rows = prediction_kernel(kernel.predictions, pred, expectations="auto", notes=Notes())
    h = form * np.asarray(on_predictions.tile(pred.ops, rows, rows))
    n = len(y)
    below, trace = float(np.sum(np.tril(h, -1))), float(np.trace(h))
    return Values((2.0 * below + trace) / n**2, 2.0 * below / (n * (n - 1.0)))


def _form(kernel: Kernel, y: FloatArray, p: Predictions, q: Predictions) -> FloatArray:
    """< P_a - d(y_a), Q_b - d(y_b) > for all cases a, b."""
    both, left, right = pairing(kernel, p, q), pairing(kernel, p, y), pairing(kernel, q, y)
    return np.asarray(both - left - right.T + kernel_matrix(kernel, y, y))
