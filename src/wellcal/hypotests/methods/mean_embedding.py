"""The calibration mean embedding test: Hotelling's statistic of deviations at a few locations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import stats

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.base import Outcome, Setup
from wellcal.problem.location_kernel import LocationKernel, location_kernel
from wellcal.problem.locations import as_locations

DEFAULT_LOCATIONS = 10
"""Locations that are drawn where none are given: the paper's number."""

_ROUNDING = 1e-13  # of eigenvalues of correlations
_NEGLIGIBLE = 0.1  # standard errors that errors of expectations may amount to
_CERTAIN = 5.0  # the same, from which on a deviation that does not vary is no rounding error


@dataclass(frozen=True)
class MeanEmbedding:
    r"""Hotelling's T^2 of the deviations at J locations: the calibration mean embedding (CME) test.

    With Z_i in R^J the deviations of case i at the locations, their mean :math:`\bar Z` and covariance S,
    the statistic is

    .. math:: Q = n \bar Z^\top S^{-1} \bar Z.

    Parameters
    ----------
    locations
        Number of locations drawn from the predictions, or ``(predictions, targets)``; None draws 10.
    reference
        "f": Q (n - J) / (J (n - 1)) is compared with the F distribution of J and n - J degrees of
        freedom, which is exact for normal deviations; "chi2": Q with the chi-square distribution of J
        degrees of freedom, the paper's choice, which rejects far too often unless n is many times J.

    Notes
    -----
    Cost: O(n J). There must be more cases than locations, or S is singular.

    Where S is singular all the same, because locations coincide or predictions do not tell them apart, Q
    is taken over the q < J directions in which deviations vary, with q in place of J, which is the same as
    leaving the superfluous locations out; the result reports q as `rank`. Directions whose spread is not
    above the error of numerical expectations do not count as directions. If deviations do not vary between
    cases and yet are not zero, no asymptotic test exists, and the method refuses.

    Deviations are skewed, and either reference distribution is rough unless n is large: at level 0.05 the F
    form with ten drawn locations rejected calibrated models in .04 (ten-dimensional normals) to .29 (ten
    classes) of data sets of 32 cases, and in .04 to .11 of 256; the chi-square form in .27 to .51 and .05
    to .13. ``method="exact", statistic="cme"`` is exact at any n.

    Predictions that are draws (``Samples``) are pooled with their target, so that deviations have mean
    zero under calibration.

    References
    ----------
    Widmann, Lindsten, Zachariah (2021), appendix "Calibration mean embedding"; Chwialkowski, Ramdas,
    Sejdinovic, Gretton (2015), "Fast two-sample testing with analytic representations of probability
    measures"; Hotelling (1931).
    """

    locations: Any = None
    reference: str = "f"

    name: ClassVar[str] = "cme"
    exchanges_draws: ClassVar[bool] = True
    resamples: ClassVar[bool] = False
    clusters: ClassVar[bool] = False
    fewest: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.reference not in ("f", "chi2"):
            raise ValueError(f'reference must be "f" or "chi2", found {self.reference!r}')

    def run(self, setup: Setup) -> Outcome:
        """The p-value of Hotelling's statistic."""
        n = setup.n
        at = prepare_locations(setup, self.locations)
        count = len(at.locations)
        if n <= count:
            raise ValueError(
                f'method="cme" needs more cases than locations, found {n} cases and {count} locations: the '
                f"covariance of the deviations is singular; take locations={max(1, n // 5)} or fewer, more "
                'cases, or method="exact" with statistic="cme"'
            )
        means, covariances = at.moments(setup.targets[None])
        found = hotelling(means, covariances, n, at.precision)
        rank, statistic = int(found.rank[0]), float(found.statistic[0])
        if rank == 0 or found.certain[0]:
            raise ValueError(
                f'method="cme": in {count - rank} of {count} directions the deviations at the locations are '
                "the same for all cases, so that Hotelling's statistic does not exist; take other locations, "
                'or method="exact" with statistic="cme"'
            )
        provenance: dict[str, Any] = {
            "locations": count,
            "drawn": not isinstance(self.locations, tuple),
            "reference": f"F({rank}, {n - rank})" if self.reference == "f" else f"chi-square({rank})",
            "UCME^2": float(setup.factor * np.mean(means[0] ** 2)),
        }
        if rank < count:
            provenance["rank"] = rank
            provenance["note"] = (
                f"the deviations at {count} locations vary in {rank} directions only: superfluous locations "
                "were left out"
            )
        return Outcome(statistic, self._pvalue(statistic, rank, n), "Q", provenance=provenance)

    def _pvalue(self, statistic: float, rank: int, n: int) -> float:
        if self.reference == "chi2":
            tail = stats.chi2.sf(statistic, rank)
        else:
            tail = stats.f.sf(statistic * (n - rank) / (rank * (n - 1.0)), rank, n - rank)
        return max(float(tail), float(np.finfo(np.float64).tiny))


def prepare_locations(setup: Setup, locations: Any = None) -> LocationKernel:
    """The kernel of a case between its predictions and locations, drawn with its rng unless given."""
    where = as_locations(DEFAULT_LOCATIONS if locations is None else locations, setup.predictions, setup.rng)
    return location_kernel(
        setup.problem.kernel,
        setup.predictions,
        where,
        engine=setup.engine,
        expectations=setup.expectations,
    )


@dataclass(frozen=True)
class EmbeddingStatistic:
    """The statistic of the CME test for sets of targets, in pieces of bounded memory.

    With as many locations as cases, or more, the covariance within one set of targets says nothing; the
    statistic then is n UCME^2, which needs none.
    """

    at: LocationKernel
    factor: float = 1.0

    @property
    def label(self) -> str:
        """What the statistic is."""
        return "n UCME^2" if self.at.n <= len(self.at.locations) else "Q"

    def __call__(self, targets: NDArray) -> NDArray:
        """Values ``(r,)`` for sets of targets ``(r, n, ...)``; observed and drawn sets go the same way."""
        at = self.at
        if at.n <= len(at.locations):
            return self.factor * np.mean(at.sums(targets) ** 2, axis=1) / at.n
        means, covariances = at.moments(targets)
        return hotelling(means, covariances, at.n, at.precision).statistic


def cme_statistics(setup: Setup, locations: Any = None) -> EmbeddingStatistic:
    """The statistic of the CME test for sets of targets of a prepared case."""
    return EmbeddingStatistic(prepare_locations(setup, locations), setup.factor)


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
