"""The exact test over a family of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wellcal.hypotests.method import Method, Outcome
from wellcal.hypotests.parts.part import Evaluated
from wellcal.hypotests.resampling.components import smallest_outcome
from wellcal.hypotests.resampling.kernel_families import kernel_family
from wellcal.hypotests.resampling.targets import check_resampled, target_sets
from wellcal.hypotests.setup import Setup
from wellcal.kernels.base import Kernel
from wellcal.measures.target_sets.resampled import ResampledSKCE, check_terms


@dataclass(frozen=True)
class Aggregated(Method):
    """Exact test over a family of kernels: the smallest of their p-values, on the same resamples.

    The p-value of the smallest p-value is found by treating each set of resampled targets in turn as if
    it were the observed one: no correction for the number of kernels is needed, and none is conservative.

    Parameters
    ----------
    kernels
        Kernels on pairs; None takes the kernel of the test with its length scales halved, doubled and so
        on.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> pred = wc.Normal(mu, np.ones(100))
    >>> result = wc.calibration_test(mu + 0.8, pred, method="aggregated", rng=0)
    >>> len(result.provenance["pvalues"]), result.pvalue
    (12, 0.001)
    """

    kernels: Sequence[Kernel] | None = None

    name: ClassVar[str] = "aggregated"

    def run(self, setup: Setup) -> Outcome:
        """The exact p-value of the smallest p-value over kernels."""
        check_resampled(setup.predictions)
        kernels = kernel_family(setup.kernel) if self.kernels is None else tuple(self.kernels)
        if not kernels:
            raise ValueError("kernels is empty: at least one kernel is needed")
        check_terms(kernels)
        statistics = ResampledSKCE(setup, kernels)
        values = np.concatenate([statistics(targets) for targets in target_sets(setup)])
        parts = zip(kernels, values.T, strict=True)
        return smallest_outcome(
            setup.n_resamples, [Evaluated(repr(kernel), 1.0, column) for kernel, column in parts]
        )
