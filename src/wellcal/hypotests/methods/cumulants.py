"""Tests that fit a distribution to the moments of the statistic under calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.engines.reductions import Sums
from wellcal.hypotests.base import Outcome, Setup
from wellcal.hypotests.methods.asymptotic import draw_signs
from wellcal.hypotests.passes import (
    dense,
    estimate_from,
    products,
    sums_of,
    whole_diagonal,
)
from wellcal.hypotests.tails import gamma_tail, pearson_tail

_EXACT_UP_TO = 4096  # cases up to which a product of two n x n matrices is a matter of seconds
_STRIP = 128  # rows of that product which are formed at a time


@dataclass(frozen=True)
class Trace:
    """Sums over pairs and triples of cases.

    Attributes
    ----------
    squares, triples
        ``sum_{i != j} h_ij^2`` and ``sum_{i, j, k distinct} h_ij h_jk h_ki``.
    sums
        Sums of h over all pairs.
    error
        Standard error of `triples` where random vectors were used.
    """

    squares: float
    triples: float
    sums: Sums
    error: float | None = None


@dataclass(frozen=True)
class Pearson:
    """Pearson type III curve with the first three cumulants of n SKCE_u.

    Parameters
    ----------
    traces
        "exact": by a product of the n x n matrix of h with itself; "hutchinson": by products with
        random vectors, in two passes over the pairs that do not store the matrix; "auto": exact up to
        4096 cases.
    probes
        Number of random vectors.

    Notes
    -----
    Under calibration T = n SKCE_u has mean 0, variance k2 and third cumulant about k3,

        k2 = 2 sum_{i != j} h_ij^2 / (n (n - 1)),
        k3 = 8 sum_{i, j, k distinct} h_ij h_jk h_ki / (n (n - 1) (n - 2)).

    With the skewness g = k3 / k2^1.5 and a = 4 / g^2, ``a + sqrt(a) T / sqrt(k2)`` is taken as a gamma
    variate of shape a, and as normal for k3 <= 0. Where h_ij = 0 for all pairs, p = 1.

    The sum over pairs is exact in any case. The sum over triples is the trace of the cube of H0, the
    matrix of h with a zero diagonal. Half of the random vectors V find a subspace Q in which H0 V lies
    for the most part; the trace of the cube of ``H0 - (I - QQ') H0 (I - QQ')`` is then known, and only
    the rest is left to the other half (after Meyer, Musco, Musco and Woodruff, 2021, Hutch++). The
    standard error is in the provenance.

    References
    ----------
    Gretton et al. (2007), A kernel method for the two-sample-problem. Buckley, Eagleson (1988), An
    approximation to the distribution of quadratic forms in normal random variables.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> y = mu + 0.8
    >>> pred = wc.Normal(mu, np.ones(100))
    >>> bool(wc.calibration_test(y, pred, method="pearson").pvalue < 1e-6)
    True
    """

    traces: str = "auto"
    probes: int = 64

    name: ClassVar[str] = "pearson"
    exchanges_draws: ClassVar[bool] = True
    resamples: ClassVar[bool] = False
    clusters: ClassVar[bool] = False
    fewest: ClassVar[int] = 3

    def __post_init__(self) -> None:
        if self.traces not in ("auto", "exact", "hutchinson"):
            raise ValueError(f'traces must be "auto", "exact" or "hutchinson", found {self.traces!r}')
        given: Any = self.probes
        if not isinstance(given, (int, np.integer)) or isinstance(given, bool) or given < 4:
            raise ValueError(f"probes must be a whole number of at least 4, found {given!r}")

    def run(self, setup: Setup) -> Outcome:
        """The p-value of a prepared case."""
        n = setup.n
        exact = self.traces == "exact" or (self.traces == "auto" and n <= _EXACT_UP_TO)
        trace = exact_trace(setup) if exact else hutchinson_trace(setup, int(self.probes))
        estimate = estimate_from(setup, trace.sums)
        statistic = n * float(estimate)
        k2 = 2.0 * trace.squares / (n * (n - 1.0))
        share = 8.0 / (n * (n - 1.0) * (n - 2.0))
        k3 = share * trace.triples
        provenance: dict[str, Any] = {
            "traces": "exact" if exact else "hutchinson",
            "standard_deviation": math.sqrt(k2),
            "skewness": k3 / k2**1.5 if k2 > 0 else 0.0,
        }
        if trace.error is not None:
            error = share * trace.error / k2**1.5 if k2 > 0 else 0.0
            provenance |= {"probes": int(self.probes), "skewness_standard_error": error}
        pvalue = pearson_tail(statistic, k2, k3) if k2 > 0 else 1.0
        return Outcome(statistic, pvalue, "n SKCE_u", estimate, None, provenance)


def exact_trace(setup: Setup) -> Trace:
    """Sums over pairs and triples from the whole matrix.

    Its square is formed strip by strip, above the diagonal only: about half the work of a full product
    of two matrices, and no second matrix.
    """
    matrix = dense(setup, 'traces="exact"')

    def strip_sum(start: int) -> float:
        rows, after = slice(start, start + _STRIP), slice(start + _STRIP, None)
        within = np.vecdot(matrix[rows] @ matrix[:, rows], matrix[rows, rows])
        beyond = np.vecdot(matrix[rows] @ matrix[:, after], matrix[rows, after])
        return float(np.sum(within + 2.0 * beyond))

    # The engine's threads each take a strip: they do not wait for each other as those of BLAS do.
    strips = setup.engine.map_items(setup.problem, strip_sum, range(0, setup.n, _STRIP))
    return Trace(float(np.einsum("ij,ij->", matrix, matrix)), math.fsum(strips), sums_of(matrix))


def hutchinson_trace(setup: Setup, probes: int) -> Trace:
    """The same from products with random signs, in two passes over the pairs.

    A = QMQ' + EQ' + QE' with M = Q' H0 Q and E = H0 Q - QM is the part of H0 that the subspace Q
    touches. Its cube has the trace tr M^3 + 3 tr M E'E, and v' (H0^3 - A^3) v has the trace of the rest
    as its mean.
    """
    half = probes // 2
    signs = draw_signs(setup.rng, setup.n, probes).T
    first = products(setup, signs)
    if first.squares == 0.0:
        return Trace(0.0, 0.0, first.sums, 0.0)
    basis = np.linalg.qr(first.values[:, :half])[0]
    width = basis.shape[1]
    vectors = np.asarray(signs[:, half:], float)
    images = first.values[:, half:]
    second = products(setup, np.concatenate([basis, images], axis=1)).values
    inner = basis.T @ second[:, :width]
    outer = second[:, :width] - basis @ inner
    gram = outer.T @ outer
    known = float(np.trace(inner @ (inner @ inner + 3.0 * gram)))
    inside = basis.T @ vectors
    through = inner @ inside + outer.T @ vectors
    cubes = _columns(through, inner @ through + 2.0 * gram @ inside)
    rest = _columns(images, second[:, width:]) - cubes
    error = float(np.std(rest, ddof=1)) / math.sqrt(len(rest))
    return Trace(first.squares, known + float(np.mean(rest)), first.sums, error)


def _columns(a: NDArray, b: NDArray) -> NDArray:
    """Inner products of matching columns."""
    return np.einsum("ij,ij->j", a, b)


@dataclass(frozen=True)
class Gamma:
    """Gamma distribution with the first two moments of n SKCE_b.

    Notes
    -----
    The statistic is n times the biased estimate, ``sum_{i, j} h_ij / n``. Under calibration its mean is
    about ``sum_i h_ii / n`` and its variance about ``2 sum_{i != j} h_ij^2 / (n (n - 1))``. One pass
    over the pairs; the matrix is not stored.

    References
    ----------
    Johnson, Kotz, Balakrishnan (1994), Continuous univariate distributions, pages 343 and 359, as cited
    by the paper's remark on the unbiased estimator.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> y = mu + 0.8
    >>> pred = wc.Normal(mu, np.ones(100))
    >>> bool(wc.calibration_test(y, pred, method="gamma").pvalue < 1e-6)
    True
    """

    name: ClassVar[str] = "gamma"
    exchanges_draws: ClassVar[bool] = True
    resamples: ClassVar[bool] = False
    clusters: ClassVar[bool] = False
    fewest: ClassVar[int] = 2

    def run(self, setup: Setup) -> Outcome:
        """The p-value of a prepared case."""
        n = setup.n
        mean = float(np.sum(whole_diagonal(setup, 'method="gamma"'))) / n
        found = products(setup, np.empty((n, 0)))
        variance = 2.0 * found.squares / (n * (n - 1.0))
        statistic = 2.0 * float(found.sums.total) / n + mean
        if variance > 0.0 and mean <= 0.0:
            raise ValueError(
                f"a gamma distribution needs a positive mean, but h_ii is {mean:.3g} on average, which only "
                'draws or a kernel that is not positive definite can give; take method="pearson"'
            )
        provenance = {"mean": mean, "standard_deviation": math.sqrt(variance)}
        pvalue = gamma_tail(statistic, mean, variance) if variance > 0 else 1.0
        return Outcome(statistic, pvalue, "n SKCE_b", estimate_from(setup, found.sums), None, provenance)
