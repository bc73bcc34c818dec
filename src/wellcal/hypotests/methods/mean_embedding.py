"""The calibration mean embedding test: deviations at a few locations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.checks import one_of
from wellcal._arrays.warnings import advise
from wellcal.hypotests.few_cases import FEWEST_EFFECTIVE, directions_of, effective_cases
from wellcal.hypotests.hotellings_statistic import (
    embedding_statistics,
    embedding_sums,
    hotelling,
    prepare_locations,
    rounding_of,
)
from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.pvalues import monte_carlo_pvalue
from wellcal.hypotests.resampling.targets import check_resampled, why_not_resampled
from wellcal.hypotests.setup import Setup
from wellcal.hypotests.tails import chi_square_tail, f_tail
from wellcal.problem.at_locations import LocationKernel

NEARLY_SINGULAR = 1e-8
"""Smallest eigenvalue of correlations below which they are nearly singular."""

REFERENCES = ("auto", "exact", "F", "chi2")


@dataclass(frozen=True)
class MeanEmbedding(Method):
    r"""Deviations at J locations: the calibration mean embedding (CME) test.

    Parameters
    ----------
    locations
        Number of locations drawn from the predictions, or ``(predictions, targets)``; None draws 10.
    reference
        What the statistic is compared with. "exact": its values for targets drawn from the predictions,
        which keeps the error rate at every number of cases and locations. "F" and "chi2": Hotelling's
        statistic and its limits, for many cases; see the notes for where they fail. "auto" is "exact"
        wherever targets can be drawn, else "F"; the result says which.

    Notes
    -----
    With z in R^J the sums over cases of the deviations at the locations, the exact test takes

    .. math:: Q = (z - \bar z)^\top C^{-} (z - \bar z),

    mean and covariance C being those over the observed and all drawn sets of targets: how far deviations
    are from what calibration makes of them. Its cost is O(R n J).

    The asymptotic forms take Hotelling's :math:`n \bar Z^\top S^{-1} \bar Z` with mean and covariance S of
    the deviations over cases, O(n J). "F" compares it, times (n - J) / (J (n - 1)), with the F distribution
    of J and n - J degrees of freedom, which is exact for normal deviations; "chi2" compares it with the
    chi-square distribution of J degrees of freedom, the paper's choice.

    Deviations are not normal, and S is known from the cases that happened to be seen. At alpha = 0.05, F
    and chi-square rejected calibrated models

    ==============================================  =====  ==========
    30 cases, 10 locations                              F  chi-square
    ==============================================  =====  ==========
    Bernoulli, probabilities within 0.01 of 0 or 1   0.99        1.00
    100 classes                                      1.00        1.00
    Poisson, means of about 0.01                     0.72        0.75
    quantiles at five levels                         0.43        0.68
    ten normals, each three times                    0.27        0.61
    the paper's setting, d = 1, n = 64               0.25        0.40
    the paper's setting, d = 10, n = 64              0.05        0.14
    ==============================================  =====  ==========

    where the exact test rejects 0.05 (``benchmarks/hard_settings.py``). They hold where many cases vary in
    each direction: a warning is given where S is nearly singular, or few cases make up a direction of it.

    There must be more cases than locations. Where S is singular because locations coincide or predictions do
    not tell them apart, the q < J directions are taken in which deviations vary, with q in place of J, and
    the result reports q as `rank`. If deviations do not vary between cases and yet are not zero, no limit
    exists, and these forms refuse.

    Predictions that are draws (``Samples``) are pooled with their target, so that deviations have mean
    zero under calibration.

    References
    ----------
    Widmann, Lindsten, Zachariah (2021), appendix "Calibration mean embedding"; Chwialkowski, Ramdas,
    Sejdinovic, Gretton (2015), "Fast two-sample testing with analytic representations of probability
    measures"; Hotelling (1931).

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> pred = wc.Normal(mu, np.ones(100))
    >>> result = wc.calibration_test(mu + 0.8, pred, method="cme", locations=3, rng=0)
    >>> result.provenance["reference"], result.pvalue
    ('exact', 0.001)
    >>> paper = wc.hypotests.MeanEmbedding(3, reference="chi2")
    >>> result = wc.calibration_test(mu + 0.8, pred, method=paper, rng=0)
    >>> result.provenance["reference"], bool(result.pvalue < 1e-6)
    ('chi-square(3)', True)
    """

    locations: object = None
    reference: str = "auto"

    name: ClassVar[str] = "cme"
    linear: ClassVar[bool] = True
    few_pairs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.reference == "f":  # its name in the first version
            object.__setattr__(self, "reference", "F")
        one_of(self.reference, "reference", REFERENCES)
        object.__setattr__(self, "resamples", self.reference in ("auto", "exact"))

    def run(self, setup: Setup) -> Outcome:
        """The p-value, by resampling or from a limit."""
        obstacle = why_not_resampled(setup.predictions) if self.reference == "auto" else None
        if self.reference == "exact":
            check_resampled(setup.predictions)
        at = prepare_locations(setup, self.locations)
        if self.reference == "exact" or (self.reference == "auto" and obstacle is None):
            return self._exact(setup, at)
        found = self._asymptotic(setup, at)
        if obstacle is not None:
            found.provenance["why not exact"] = obstacle
        return found

    def _exact(self, setup: Setup, at: LocationKernel) -> Outcome:
        sums = embedding_sums(setup, at)
        values = embedding_statistics(sums, rounding_of(at))
        provenance: dict[str, Any] = {
            **self._chosen(at),
            "reference": "exact",
            "n_resamples": setup.n_resamples,
            "UCME^2": float(((sums[0] / setup.n_samples) ** 2).mean()),
        }
        statistic, null = float(values[0]), values[1:]
        return Outcome(statistic, monte_carlo_pvalue(statistic, null), "Q", null=null, provenance=provenance)

    def _asymptotic(self, setup: Setup, at: LocationKernel) -> Outcome:
        n, count = setup.n_samples, len(at.locations)
        if n <= count:
            raise ValueError(
                f'reference="{self._limit}" needs more cases than locations, found {n} cases and {count} '
                "locations: the covariance of the deviations is singular; take "
                f'locations={max(1, n // 5)} or fewer, more cases, or reference="exact"'
            )
        means, covariances = at.moments(setup.targets[None])
        found = hotelling(means, covariances, n, at.precision)
        rank, statistic = int(found.rank[0]), float(found.statistic[0])
        if rank == 0 or found.certain[0]:
            raise ValueError(
                f'reference="{self._limit}": in {count - rank} of {count} directions the deviations at the '
                "locations are the same for all cases, so that Hotelling's statistic does not exist; take "
                'other locations, or reference="exact"'
            )
        provenance: dict[str, Any] = {
            **self._chosen(at),
            "reference": f"F({rank}, {n - rank})" if self._limit == "F" else f"chi-square({rank})",
            "UCME^2": float((means[0] ** 2).mean()),
        }
        if rank < count:
            provenance["rank"] = rank
            provenance["note"] = (
                f"the deviations at {count} locations vary in {rank} directions only: superfluous locations "
                "were left out"
            )
        directions = directions_of(np.asarray(at.deviations(setup.targets)))
        provenance["cases_in_a_direction"] = directions.cases
        # Where nothing unlikely was seen, cases vary little and alike; only the predictions know better.
        hidden = effective_cases(setup) < FEWEST_EFFECTIVE
        if directions.few or hidden or directions.smallest < NEARLY_SINGULAR:
            advise(
                f'reference="{self._limit}": of {n} cases about {directions.cases:.2g} make up each '
                f"direction of the deviations at {count} locations, whose covariance is nearly singular or "
                "known from too few of them; the p-value may be far too small: take "
                'reference="exact", fewer locations, or more cases'
            )
        return Outcome(statistic, self._pvalue(statistic, rank, n), "Q", provenance=provenance, floor=0.0)

    @property
    def _limit(self) -> str:
        return "chi2" if self.reference == "chi2" else "F"

    def _chosen(self, at: LocationKernel) -> dict[str, Any]:
        return {"locations": len(at.locations), "drawn": not isinstance(self.locations, tuple)}

    def _pvalue(self, statistic: float, rank: int, n: int) -> float:
        if self._limit == "chi2":
            return chi_square_tail(statistic, rank)
        return f_tail(statistic * (n - rank) / (rank * (n - 1.0)), rank, n - rank)
