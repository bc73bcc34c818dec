"""The limit of the statistic by eigenvalues of the matrix of h."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wellcal.hypotests.draws import draw_chi_square_sum
from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.passes import eigenvalues_of, estimate_from
from wellcal.hypotests.pvalues import monte_carlo_pvalue
from wellcal.hypotests.setup import Setup


@dataclass(frozen=True)
class Spectrum(Method):
    """Eigenvalues of the matrix of h as weights of chi-square variables.

    Notes
    -----
    The statistic is n SKCE_u, compared with draws of ``sum_i l_i (Z_i - 1)``, Z_i chi-square with one
    degree of freedom and l_i the eigenvalues of H / n, where H holds h_ii on its diagonal.

    The whole matrix is needed: 8 n^2 bytes and O(n^3) operations.

    References
    ----------
    Gretton, Fukumizu, Harchaoui, Sriperumbudur (2009), A fast, consistent kernel two-sample test.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> y = mu + 0.8
    >>> pred = wc.Normal(mu, np.ones(100))
    >>> wc.calibration_test(y, pred, method="spectrum", rng=0).pvalue
    0.001
    """

    name: ClassVar[str] = "spectrum"

    def run(self, setup: Setup) -> Outcome:
        """The p-value of a prepared case."""
        eigenvalues, sums = eigenvalues_of(setup, 'method="spectrum"')
        null = draw_chi_square_sum(setup.rng, eigenvalues, 1, setup.n_resamples)
        estimate = estimate_from(setup, sums)
        statistic = setup.n_samples * float(estimate)
        provenance = {"n_resamples": setup.n_resamples, "largest_eigenvalue": float(eigenvalues[-1])}
        pvalue = monte_carlo_pvalue(statistic, null)
        return Outcome(statistic, pvalue, "n SKCE_u", estimate, null, provenance)
