"""Parts for scalar targets: off the centre, of the wrong spread or shape, everywhere or with a trend."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.namespaces import Array, NDArray, namespace
from wellcal._arrays.ops import ops_for
from wellcal.hypotests.parts.contrasts import Contrasts
from wellcal.hypotests.parts.part import Evaluated, Parts, length, like, standardised
from wellcal.hypotests.parts.polynomials import HERMITE, LEGENDRE, hermite, legendre
from wellcal.hypotests.parts.standing import Standing

WEIGHTS = {
    "centre": 1.0,
    "spread": 1.0,
    "shape": 0.6,
    "tails": 0.4,
    "distribution": 0.6,
    "trend of the centre": 0.6,
    "trend of the spread": 0.6,
    "curve of the centre": 0.3,
}
"""Weights of the parts, chosen on one half of a bank of alternatives: benchmarks/bank."""

_SMOOTH = np.array([1.0, 0.7, 0.4, 0.4, 0.2, 0.2])  # of Legendre polynomials, in "distribution"


class ScalarParts(Parts):
    """Sums of polynomials of normal scores, times columns that follow the predictions."""

    def __init__(self, standing: Standing, columns: Contrasts) -> None:
        self.standing, self.columns = standing, columns

    def sums(self, targets: Array) -> Array:
        """Sums ``(r, (4 + 6) k)`` of Hermite, then Legendre polynomials, each with k columns."""
        n, xp = targets.shape[1], namespace(targets)
        parts = in_chunks(targets.shape[0], n, within=budget.cache)
        return xp.concat([self._some(targets[part]) for part in parts])

    def _some(self, targets: Array) -> Array:
        z = self.standing(targets)
        xp = namespace(z)
        columns = like(self.columns.columns, z)
        found = [h @ columns for h in hermite(z)]
        found += [p @ columns for p in legendre(ops_for(xp).ndtr(z))]
        return xp.concat(found, axis=1)

    def statistics(self, sums: NDArray) -> Iterator[Evaluated]:
        """One statistic for each kind of error."""
        n, k = self.columns.columns.shape
        z = standardised(sums).reshape(len(sums), HERMITE + LEGENDRE, k)
        first, second = z[:, 0], z[:, 1]
        trend, bend = self.columns.trend, self.columns.bend
        yield self._part("centre", length(first[:, :1]))
        yield self._part("spread", wrong_spread(1.0 + np.sqrt(2.0) * sums[:, k] / n))
        yield self._part("shape", length(z[:, HERMITE + 2 : HERMITE + 4, 0]))
        yield self._part("tails", length(z[:, 2:4, 0]))
        yield self._part("distribution", z[:, HERMITE:, 0] ** 2 @ _SMOOTH)
        if trend:
            yield self._part("trend of the centre", length(first[:, trend]))
            yield self._part("trend of the spread", length(second[:, trend]))
        if bend:
            yield self._part("curve of the centre", length(first[:, bend]))

    def _part(self, name: str, values: NDArray) -> Evaluated:
        return Evaluated(name, WEIGHTS[name], values)


def wrong_spread(squares: NDArray) -> NDArray:
    """How far mean squares ``(R + 1,)`` are off, to either side: likelihood ratios of a variance."""
    ratio = np.maximum(squares / squares.mean(), 1e-300)
    return ratio - 1.0 - np.log(ratio)
