"""A gamma distribution with two moments of the statistic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.passes import estimate_from, products, whole_diagonal
from wellcal.hypotests.setup import Setup
from wellcal.hypotests.tails import gamma_tail


@dataclass(frozen=True)
class GammaMoments(Method):
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
    resamples: ClassVar[bool] = False

    def run(self, setup: Setup) -> Outcome:
        """The p-value of a prepared case."""
        n = setup.n_samples
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
