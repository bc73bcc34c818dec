"""The wild bootstrap, for independent cases and for clusters of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.checks import one_of
from wellcal._arrays.chunks import Chunk
from wellcal._arrays.namespaces import NDArray
from wellcal.engines.reductions import Sums
from wellcal.hypotests.clusters import check_clusters
from wellcal.hypotests.draws import BITS, draw_signs
from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.passes import between_clusters, estimate_from, in_passes, quadratic_forms
from wellcal.hypotests.pvalues import monte_carlo_pvalue
from wellcal.hypotests.setup import Setup


@dataclass(frozen=True)
class Multiplier(Method):
    """Multiplier (wild) bootstrap: random signs for cases, or for clusters of them.

    Parameters
    ----------
    signs
        "rademacher": -1 or 1 with equal probability; "normal": standard normal variates.

    Notes
    -----
    The statistic is n SKCE_u, compared with ``T* = sum_{i != j} e_i e_j h_ij / (n - 1)`` for random
    multipliers e. All resamples share one pass over the pairs; the matrix H is not stored.

    Where cases come in clusters (patients, accounts), the statistic is n times the mean of h over pairs
    of different clusters, and all cases of a cluster have the same multiplier: whatever the dependence
    within clusters, both have the same limit under calibration as the number of clusters grows.

    Signs of m cases or clusters make 2^(m - 1) different values of the statistic, one of which is the
    observed one: p does not fall much below 2^(1 - m).

    References
    ----------
    Dehling, Mikosch (1994), Random quadratic forms and the bootstrap for U-statistics. Leucht, Neumann
    (2013), Dependent wild bootstrap for degenerate U- and V-statistics.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> y = mu + 0.8
    >>> pred, patient = wc.Normal(mu, np.ones(100)), np.arange(100) // 5
    >>> result = wc.calibration_test(y, pred, method="multiplier", groups=patient, rng=0)
    >>> result.provenance["clusters"], result.pvalue
    (20, 0.001)
    """

    signs: str = "rademacher"

    name: ClassVar[str] = "multiplier"
    clusters: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of(self.signs, "signs", ("rademacher", "normal"))

    def run(self, setup: Setup) -> Outcome:
        """The p-value of a prepared case."""
        n, groups = setup.n_samples, setup.groups
        units = n if groups is None else int(groups.max()) + 1
        sizes = np.ones(n) if groups is None else np.bincount(groups)
        check_clusters(units, "cases" if groups is None else "clusters", patterns=self.signs == "rademacher")
        pairs = float(n**2 - np.sum(sizes**2))
        null = np.empty(setup.n_resamples)
        sums = Sums(0.0, np.zeros(n))
        for part, drawn in self._draws(setup, units):
            forms = quadratic_forms(setup, (drawn if groups is None else drawn[:, groups]).T)
            sums = forms.sums
            null[part] = n * forms.values / pairs
        provenance: dict[str, Any] = {"n_resamples": setup.n_resamples, "signs": self.signs}
        if groups is None:
            estimate = estimate_from(setup, sums)
        else:
            estimate = between_clusters(setup, sums, groups, sizes)
            provenance |= {"clusters": units, "largest_cluster": int(sizes.max())}
        statistic = n * float(estimate)
        label = "n SKCE_u" if groups is None else "n SKCE_u between clusters"
        return Outcome(statistic, monte_carlo_pvalue(statistic, null), label, estimate, null, provenance)

    def _draws(self, setup: Setup, units: int) -> Iterator[tuple[Chunk, NDArray]]:
        """Multipliers ``(r, units)`` for all resamples, in parts that one pass handles."""
        rademacher = self.signs == "rademacher"
        kind, multiple = (np.int8, BITS) if rademacher else (np.float64, 1)
        for part in in_passes(setup.n_samples, setup.n_resamples, kind, multiple):
            count = part.stop - part.start
            if rademacher:
                yield part, draw_signs(setup.rng, units, count)
            else:
                yield part, setup.rng.standard_normal((count, units))
