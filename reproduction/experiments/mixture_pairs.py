"""SKCE of ensembles with some pairs of members left out, as in the published values.

For mixtures P = mean_i p_i and Q = mean_j q_j of K members each, the bilinear form of h is a double sum,

    < P - d(y), Q - d(z) > = sum_ij < p_i - d(y), q_j - d(z) > / K^2.

The code behind the published values leaves out the pairs (i >= 2, j = 1). By linearity the part left out is
(< P - d(y), q_1 - d(z) > - < p_1 - d(y), q_1 - d(z) > / K) / K. It is not symmetric: P belongs to the later
of two cases in estimates, and to the later of two draws in the bootstrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.optimize import linear_sum_assignment

import wellcal as wc
from reproduction.tasks import FloatArray
from wellcal.kernels import ExpDistance, Gaussian, Kernel, MixtureWasserstein

TARGET_KERNEL = Gaussian()
ENSEMBLE_KERNEL = ExpDistance(MixtureWasserstein()) @ TARGET_KERNEL
"""The paper's kernel for ensembles."""


@dataclass(frozen=True)
class EnsembleForms:
    """h for all pairs of cases, ``(n, n)``, by both formulas.

    Attributes
    ----------
    full
        All pairs of members.
    left_out
        Without the pairs (i >= 2, j = 1); rows are the cases of P.
    """

    full: FloatArray
    left_out: FloatArray


def ensemble_forms(y: FloatArray, members: Sequence[wc.Normal], lengthscale: float = 1.0) -> EnsembleForms:
    """h of normals in equal shares under the paper's kernel for ensembles."""
    pred, first, share = wc.Mixture(list(members)), members[0], 1.0 / len(members)
    form = _form(TARGET_KERNEL, y, pred, pred)
    missing = _form(TARGET_KERNEL, y, pred, first) - share * _form(TARGET_KERNEL, y, first, first)
    weight = np.exp(-mixture_wasserstein(members) / lengthscale)
    return EnsembleForms(form * weight, (form - share * missing) * weight)


def biased_skce(h: FloatArray) -> float:
    """Biased SKCE from pairs (later case, earlier case), which is how the published values were summed."""
    return (2.0 * float(np.sum(np.tril(h, -1))) + float(np.trace(h))) / len(h) ** 2


def unbiased_skce(h: FloatArray) -> float:
    """Unbiased SKCE, likewise."""
    return 2.0 * float(np.sum(np.tril(h, -1))) / (len(h) * (len(h) - 1.0))


def authors_pvalue(h: FloatArray, resamples: int, rng: np.random.Generator) -> float:
    """p-value of the authors' bootstrap, count / resamples, for a form that need not be symmetric.

    The draws are ordered: h of two of them has the later one as its first argument.
    """
    n = len(h)
    statistic = n / (n - 1.0) * unbiased_skce(h) - biased_skce(h)
    rows = h.sum(axis=1)
    lower = np.tril(np.ones((n, n)), -1)
    reached = 0
    for drawn in rng.integers(n, size=(resamples, n)):
        between = 2.0 * float(np.einsum("ij,ij->", h[drawn][:, drawn], lower)) / (n * (n - 1.0))
        reached += between >= statistic + 2.0 * float(rows[drawn].sum()) / n**2
    return reached / resamples


def _form(kernel: Kernel, y: FloatArray, p: wc.Predictions, q: wc.Predictions) -> FloatArray:
    """< P_a - d(y_a), Q_b - d(y_b) > for all cases a, b."""
    observed = wc.Samples(y[:, None], kind="atoms")
    left, right = wc.pairing(kernel, p, y), wc.pairing(kernel, q, y)
    return cast("FloatArray", wc.pairing(kernel, p, q) - left - right.T + wc.pairing(kernel, observed, y))


def mixture_wasserstein(members: Sequence[wc.Normal]) -> FloatArray:
    """MW_2 between the mixtures of all pairs of cases, ``(n, n)``, for normals in equal shares.

    In equal shares an optimal coupling is an assignment of members to members.

    Examples
    --------
    >>> members = [wc.Normal(np.array([0.0, 3.0]), 1.0), wc.Normal(np.array([1.0, 4.0]), 1.0)]
    >>> float(mixture_wasserstein(members)[0, 1])
    3.0
    """
    at = np.stack([[np.asarray(member.loc), np.asarray(member.scale)] for member in members], axis=-1)
    n = at.shape[1]
    squared = np.zeros((n, n))
    for a in range(n):
        costs = np.sum((at[:, a, None, :, None] - at[:, :a, None, :]) ** 2, axis=0)  # (a, K, K)
        for b, cost in enumerate(costs):
            squared[a, b] = squared[b, a] = np.mean(cost[linear_sum_assignment(cost)])
    return np.sqrt(squared)
