"""What tests and witnesses of cases in partitions begin with: some of the cases in memory, and the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.dask.functions import IN_MEMORY
from wellcal.dask.judging import check_judged
from wellcal.dask.kernels import kernel_of
from wellcal.dask.partitioned import Cases, Partition
from wellcal.hypotests.setup import Setup, make_setup
from wellcal.kernels.base import Kernel
from wellcal.predictions import Samples
from wellcal.predictions.quantile_ties import counted_only
from wellcal.problem.target_resampling import pool_draws, stretch

SAMPLE = 10_000
"""Cases that scores and contributions of a witness are made of."""

AT_HAND, NUMBERS_AT_HAND = 1_000_000, 20_000_000
"""Cases, and numbers in them, that are taken into memory at most: those that findings are made of."""

_SEED = 0


def number_at_hand(cases: Cases) -> int:
    """How many of the cases are taken into memory: all of them, where these are not too many."""
    first = cases.rows(np.zeros(1, dtype=np.intp))
    sizes = [first.targets.size]
    first.predictions.map_arrays(lambda array: sizes.append(array.size) or array)
    return min(cases.n, AT_HAND, max(NUMBERS_AT_HAND // sum(sizes), 1))


@dataclass(frozen=True)
class Begun:
    """What all methods begin with.

    Attributes
    ----------
    cases, given
        With draws pooled with their targets, where predictions are draws; and as they were given.
    setup
        That of a sample of the cases, as they were given.
    sample, places
        The sample itself, and where its cases are among all.
    kernel, expectations
        The kernel of all cases, and how its expectations are computed.
    """

    cases: Cases
    given: Cases
    setup: Setup
    sample: Partition
    places: NDArray
    kernel: Kernel
    expectations: Any

    @classmethod
    def of(cls, given: Cases, kernel: Kernel | None, expectations: Any, count: int | None = None) -> Begun:
        """Take a sample of so many cases, and the kernel given, or the default of all predictions."""
        cases, places = given, given.sampled(SAMPLE if count is None else count, _SEED)
        sample = cases.rows(places)
        family = sample.predictions
        if family.target_kind == "objects":
            raise TypeError(f"targets that are objects are not supported in partitions; {IN_MEMORY}")
        check_judged(given, sample)
        sizes = cases.sizes
        if family.kind == "draws":
            cases = Cases(tuple(cases.map(_pooled)))
            cases.__dict__["sizes"] = sizes
        chosen = kernel_of(cases, kernel, expectations)
        options: dict[str, Any] = {"rng": _SEED, "expectations": expectations, "pool": True}
        with counted_only():  # all cases were judged, and the sample is none of its own
            setup = make_setup(sample.given, family, chosen, **options)
        return cls(cases, given, setup, sample, places, chosen, expectations)

    @property
    def kernel_at(self) -> Kernel:
        """The kernel between cases and locations: that of draws is stretched."""
        pooled = self.setup.pooled
        return self.kernel if pooled is None else stretch(pooled) * self.kernel

    @property
    def whole(self) -> bool:
        """Whether the sample has all cases."""
        return self.setup.n_samples == self.cases.n

    @property
    def sampled(self) -> str:
        """How many cases are in the sample, in words."""
        return f"{self.setup.n_samples:,} of {self.cases.n:,} cases, at random"


def _pooled(block: Partition) -> Partition:
    assert isinstance(block.predictions, Samples)
    return block._replace(predictions=pool_draws(block.targets, block.predictions))
