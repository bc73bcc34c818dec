"""What a part of a test is: a sum over cases, and a statistic made of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from wellcal._arrays.chunks import budget, entries_for, in_chunks
from wellcal._arrays.namespaces import Array, NDArray, is_numpy, namespace


class Evaluated(NamedTuple):
    """A statistic over all sets of targets.

    Attributes
    ----------
    name
        What a result calls it.
    weight
        p-values are divided by it before the smallest is taken.
    values
        ``(R + 1,)``, the observed set first, or more: sets that only some statistics are made of come last.
        Large where a model is miscalibrated.
    """

    name: str
    weight: float
    values: NDArray


class Parts(ABC):
    """Statistics that are made of sums over cases of the targets of a batch of predictions.

    Attributes
    ----------
    weights
        Of the parts by name, and of what stands beside them, "SKCE" and "locations".

    Notes
    -----
    What the sums are must not depend on observed targets: the same sums of targets drawn from the
    predictions say what is ordinary.

    `sums` is where the time goes, over all cases of all sets: it computes in the library, and on the device,
    of the targets that it is given. Special functions that a library lacks are SciPy's, number by number, as
    everywhere. All else is made in NumPy: what is known of the predictions, once, and `terms` and
    `statistics`, which see one set of targets, or a few numbers for each.
    """

    weights: Mapping[str, float]

    @abstractmethod
    def sums(self, targets: Array) -> Array:
        """Sums over cases ``(r, K)`` of sets of targets ``(r, n, ...)``."""

    @abstractmethod
    def terms(self, targets: NDArray) -> Iterator[NDArray]:
        """What each case adds to the sums, for one set of targets ``(n, ...)``.

        Arrays ``(n, k)``, whose columns together are those of `sums`. What a case with an impossible target
        adds may be infinite.
        """

    def mean_terms(self) -> Iterator[NDArray] | None:
        """Expectations of `terms` under the predictions; None where drawn targets have to tell."""
        return None

    @abstractmethod
    def statistics(self, sums: NDArray) -> Iterator[Evaluated]:
        """Statistics of all sets from their sums ``(R + 1, K)``."""

    @property
    def width(self) -> int:
        """Numbers that one set makes, where these may be many more than its targets."""
        return 1

    def remembered(self, sums: NDArray) -> NDArray:
        """What is kept of the sums of each set ``(r, K)`` until all sets are seen: all of it, or few numbers.

        Sets are many, and sums of a set may be as many as there are classes.
        """
        return sums

    def of_remembered(self, rows: NDArray) -> Iterator[Evaluated]:
        """Statistics of all sets from what is kept of each."""
        return self.statistics(rows)

    def part(self, name: str, values: NDArray) -> Evaluated:
        """A statistic with its weight."""
        return Evaluated(name, self.weights[name], values)


def in_sets(targets: Array, entries: float) -> Iterator[Array]:
    """Some sets of targets at a time, where each set makes so many numbers.

    They stay in a processor's cache; other devices get more of them, since each operation takes its time to
    start.
    """
    within = budget.cache if is_numpy(namespace(targets)) else entries_for(targets)
    return (targets[some, ...] for some in in_chunks(targets.shape[0], entries, within=within))


def standardised(sums: NDArray) -> NDArray:
    """Sums in units of their spread over all sets, and from their mean; zero where there is no spread."""
    if not np.all(np.isfinite(sums)):
        sums = np.nan_to_num(sums, nan=0.0, posinf=1e150, neginf=-1e150)
    z = sums - sums.mean(axis=0)
    scale = z.std(axis=0)
    rounding = 1e-12 * np.abs(sums).max(axis=0, initial=0.0)
    some = scale > rounding
    return z / scale if np.all(some) else np.where(some, z, 0.0) / np.where(some, scale, 1.0)


def length(z: NDArray) -> NDArray:
    """Squared length of the rows of standardised sums."""
    return np.sum(z**2, axis=1)
