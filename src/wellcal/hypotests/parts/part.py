"""What a part of a test is: a sum over cases, and a statistic made of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, asarray, device_of, namespace


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

    def part(self, name: str, values: NDArray) -> Evaluated:
        """A statistic with its weight."""
        return Evaluated(name, self.weights[name], values)


def like(values: NDArray, targets: Array) -> Array:
    """NumPy's numbers in the library, and on the device, of targets."""
    return asarray(values, xp=namespace(targets), device=device_of(targets))


def standardised(sums: NDArray) -> NDArray:
    """Sums in units of their spread over all sets, and from their mean; zero where there is no spread."""
    finite = np.where(np.isfinite(sums), sums, np.nan_to_num(sums, nan=0.0, posinf=1e150, neginf=-1e150))
    z = finite - finite.mean(axis=0)
    scale = z.std(axis=0)
    rounding = 1e-12 * np.abs(finite).max(axis=0, initial=0.0)
    some = scale > rounding
    return np.where(some, z, 0.0) / np.where(some, scale, 1.0)


def length(z: NDArray) -> NDArray:
    """Squared length of the rows of standardised sums."""
    return np.sum(z**2, axis=1)
