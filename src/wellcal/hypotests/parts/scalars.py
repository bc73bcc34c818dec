"""Parts for scalar targets: off the centre, of the wrong spread or shape, everywhere or with a trend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from scipy import special

from wellcal._arrays.memo import on_device
from wellcal._arrays.namespaces import Array, NDArray, namespace
from wellcal._arrays.ops import ops_for
from wellcal.hypotests.parts.contrasts import Contrasts
from wellcal.hypotests.parts.part import Evaluated, Parts, in_sets, length, standardised
from wellcal.hypotests.parts.polynomials import HERMITE, LEGENDRE, hermite, legendre
from wellcal.measures.normal_scores import Standing

CONTINUOUS = {
    "distribution": 1.0,
    "levels": 1.0,
    "shape": 0.85,
    "spread": 0.55,
    "tails": 0.035,
    "trend of the centre": 0.28,
    "trend of the spread": 0.33,
    "curve of the centre": 0.1,
    "SKCE": 0.1,
    "locations": 0.03,
}
"""Weights of the parts, chosen on one half of a bank of errors: benchmarks/bank."""

COUNTS = {
    "distribution": 0.25,
    "levels": 0.1,
    "shape": 0.12,
    "spread": 1.0,
    "tails": 0.05,
    "trend of the centre": 0.3,
    "trend of the spread": 0.08,
    "curve of the centre": 0.06,
    "SKCE": 0.06,
    "locations": 0.03,
}
"""The same for counts, of which dispersion is the ordinary error."""

_ANDERSON_DARLING = np.array([1.0 / (j * (j + 1.0)) for j in range(1, LEGENDRE + 1)])
_LEVELS = np.array([1.0, 0.7, 0.4, 0.4, 0.2, 0.2])
_ROUNDING = 1e-12  # of a mean square: what lies below is zero


class ScalarParts(Parts):
    """Sums of polynomials of normal scores, times columns that follow the predictions."""

    def __init__(
        self, standing: Standing, columns: Contrasts, weights: Mapping[str, float], *, normal: bool = False
    ) -> None:
        """`normal`: scores are standard normal under the predictions, and polynomials have mean 0."""
        self.standing, self.columns, self.weights, self.normal = standing, columns, weights, normal

    def sums(self, targets: Array) -> Array:
        """Sums ``(r, (4 + 6) k)`` of Hermite, then Legendre polynomials, each with k columns."""
        some = in_sets(targets, targets.shape[1])
        return namespace(targets).concat([self._some(sets) for sets in some])

    def _some(self, targets: Array) -> Array:
        z = self.standing(targets)
        xp = namespace(z)
        columns = on_device(self.columns.columns, z)
        found = [h @ columns for h in hermite(z)]
        found += [p @ columns for p in legendre(ops_for(xp).ndtr(z))]
        return xp.concat(found, axis=1)

    def terms(self, targets: NDArray) -> Iterator[NDArray]:
        """Polynomials of each degree times columns."""
        z = self.standing(targets[None])[0]
        for polynomials in (hermite(z), legendre(special.ndtr(z))):
            for values in polynomials:
                yield values[:, None] * self.columns.columns

    def mean_terms(self) -> Iterator[NDArray] | None:
        """Zero for normal scores: the polynomials are orthogonal to 1."""
        if not self.normal:
            return None
        return (np.zeros_like(self.columns.columns) for _ in range(HERMITE + LEGENDRE))

    def statistics(self, sums: NDArray) -> Iterator[Evaluated]:
        """One statistic for each kind of error."""
        n, k = self.columns.columns.shape
        z = standardised(sums).reshape(len(sums), HERMITE + LEGENDRE, k)
        first, second, squares = z[:, 0], z[:, 1], z[:, HERMITE:, 0] ** 2
        trend, bend = self.columns.trend, self.columns.bend
        yield self.part("distribution", squares @ _ANDERSON_DARLING)  # its own expansion, cut at degree 6
        yield self.part("levels", squares @ _LEVELS)
        yield self.part("shape", squares[:, :4].sum(axis=1))  # Neyman's smooth test
        yield self.part("spread", wrong_spread(n + np.sqrt(2.0) * sums[:, k], n))
        yield self.part("tails", length(z[:, 2:4, 0]))
        if trend:
            yield self.part("trend of the centre", length(first[:, trend]))
            yield self.part("trend of the spread", length(second[:, trend]))
        if bend:
            yield self.part("curve of the centre", length(first[:, bend]))


def wrong_spread(squares: NDArray, cases: int) -> NDArray:
    """How far sums of squares ``(R + 1,)`` are off, to either side: likelihood ratios of a variance.

    Sums over so many cases that are zero but for rounding are equal, as are those of predictions that say
    what will be.

    Examples
    --------
    >>> wrong_spread(np.array([4.0, 2.0, 3.0]), 3).round(3)
    array([0.046, 0.072, 0.   ])
    >>> wrong_spread(np.array([0.0, 1e-16, -1e-16]), 3)
    array([0., 0., 0.])
    """
    squares = np.maximum(squares, _ROUNDING * cases)
    ratio = squares / squares.mean()
    return ratio - 1.0 - np.log(ratio)
