"""The calibration mean embedding test: Hotelling's statistic of deviations at a few locations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from wellcal._arrays.checks import one_of
from wellcal.hypotests.hotellings_statistic import hotelling, prepare_locations
from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.setup import Setup
from wellcal.hypotests.tails import chi_square_tail, f_tail


@dataclass(frozen=True)
class MeanEmbedding(Method):
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

    Deviations are skewed, and either reference distribution is rough unless n is large: at alpha = 0.05 the F
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

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> pred = wc.Normal(mu, np.ones(100))
    >>> result = wc.calibration_test(mu + 0.8, pred, method="cme", locations=3, rng=0)
    >>> result.provenance["reference"], bool(result.pvalue < 1e-6)
    ('F(3, 97)', True)
    """

    locations: object = None
    reference: str = "f"

    name: ClassVar[str] = "cme"
    linear: ClassVar[bool] = True
    resamples: ClassVar[bool] = False

    def __post_init__(self) -> None:
        one_of(self.reference, "reference", ("f", "chi2"))

    def run(self, setup: Setup) -> Outcome:
        """The p-value of Hotelling's statistic."""
        n = setup.n_samples
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
            "UCME^2": float((means[0] ** 2).mean()),
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
            return chi_square_tail(statistic, rank)
        return f_tail(statistic * (n - rank) / (rank * (n - 1.0)), rank, n - rank)
