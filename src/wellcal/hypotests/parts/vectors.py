"""Parts for vectors: each coordinate, and how coordinates go together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from wellcal._arrays.memo import on_device
from wellcal._arrays.namespaces import Array, NDArray, namespace
from wellcal._arrays.ops import ops_for
from wellcal.hypotests.parts.contrasts import Contrasts
from wellcal.hypotests.parts.part import Evaluated, Parts, in_sets, length, standardised
from wellcal.hypotests.parts.polynomials import legendre
from wellcal.hypotests.parts.surprise import Surprise, total_surprise
from wellcal.hypotests.resampling.smooth_tails import two_sided
from wellcal.measures.normal_scores import Standing

WEIGHTS = {
    "centre": 0.6,
    "common shift": 0.45,
    "surprise": 0.1,
    "spread": 0.35,
    "correlation": 0.9,
    "shape": 0.04,
    "trend of the centre": 0.1,
    "trend of the spread": 0.05,
    "trend of the correlation": 0.6,
    "SKCE": 0.06,
    "locations": 0.03,
}
"""Weights of the parts, chosen on one half of a bank of alternatives: benchmarks/bank."""

MOST_COORDINATES = 12
"""Coordinates whose products are looked at: some of them, evenly spaced, where there are more."""


def chosen_coordinates(dimension: int) -> NDArray:
    """Numbers, from 0 on, of the coordinates whose products are looked at.

    Examples
    --------
    >>> chosen_coordinates(3), len(chosen_coordinates(40))
    (array([0, 1, 2]), 12)
    """
    places = np.linspace(0, dimension - 1, min(dimension, MOST_COORDINATES))
    return np.unique(places.round().astype(int))


def coordinates_looked_at(dimension: int) -> dict[str, str]:
    """What the provenance of a test says where it looked at some of the coordinates; nothing for all.

    Examples
    --------
    >>> coordinates_looked_at(40)["coordinates"]
    'all 40 for centres; 12 of them, evenly spaced, for spreads, shapes, correlations and trends'
    >>> coordinates_looked_at(12)
    {}
    """
    some = len(chosen_coordinates(dimension)) if dimension else 0
    if some == dimension:
        return {}
    kinds = "spreads, shapes, correlations and trends"
    return {"coordinates": f"all {dimension} for centres; {some} of them, evenly spaced, for {kinds}"}


class VectorParts(Parts):
    """Sums of standardised residuals, their squares, products and shape, times columns of the predictions."""

    weights = WEIGHTS

    def __init__(
        self, standardise: Standing, columns: Contrasts, dimension: int, surprise: Surprise | None
    ) -> None:
        """`standardise`: from targets ``(r, n, d)`` to residuals of variance 1.

        Without a `surprise` the squared length of residuals takes its place.
        """
        self.standardise, self.columns, self.surprise = standardise, columns, surprise
        self.dimension = dimension
        self.chosen = chosen_coordinates(dimension)
        d = len(self.chosen)
        self.pairs = np.array(list(combinations(range(d), 2)), dtype=np.int64).reshape(-1, 2)

    def sums(self, targets: Array) -> Array:
        """Sums ``(r, d + 1 + k (2 c + p) + 2 c)``: d coordinates, c chosen ones and p pairs of these."""
        some = in_sets(targets, targets.shape[1] * self.dimension)
        return namespace(targets).concat([self._some(sets) for sets in some])

    def _some(self, targets: Array) -> Array:
        residuals = self.standardise(targets)
        xp, columns = namespace(residuals), on_device(self.columns.columns, residuals)
        z = self._coordinates(residuals)
        # One coordinate after the other, with itself and those behind it: no more is in memory at a time.
        products = [(z[i, ...] * z[i:, ...]) @ columns for i in range(z.shape[0])]
        squares = xp.stack([of_one[0, ...] for of_one in products]) - xp.sum(columns, axis=0)
        by_column = xp.concat([z @ columns, squares, *(of_one[1:, ...] for of_one in products)])
        by_set = xp.reshape(xp.permute_dims(by_column, (1, 0, 2)), (targets.shape[0], -1))
        shapes = [[xp.sum(p, axis=1) for p in self._shapes(z[i, ...])] for i in range(z.shape[0])]
        by_degree = [xp.stack(list(sums), axis=1) for sums in zip(*shapes, strict=True)]
        total = total_surprise(self._surprise(targets, residuals))[:, None]
        return xp.concat([xp.sum(residuals, axis=1), total, by_set, *by_degree], axis=1)

    def _coordinates(self, residuals: Array) -> Array:
        """The chosen coordinates ``(c, r, n)``, each of them in one piece of memory."""
        return namespace(residuals).stack([residuals[..., int(place)] for place in self.chosen])

    def _surprise(self, targets: Array, residuals: Array) -> Array:
        if self.surprise is not None:
            return self.surprise(targets)
        return namespace(residuals).sum(residuals**2, axis=-1)

    @staticmethod
    def _shapes(z: Array) -> list[Array]:
        """Skewness and tails, by polynomials of degrees 3 and 4 of levels."""
        return list(legendre(ops_for(namespace(z)).ndtr(z), 4))[2:]

    def terms(self, targets: NDArray) -> Iterator[NDArray]:
        """The same for each case."""
        residuals = self.standardise(targets[None])
        yield residuals[0]
        yield self._surprise(targets[None], residuals)[0][:, None]
        z = self._coordinates(residuals)[:, 0]
        products: list[NDArray] = [z[a] * z[b] for a, b in self.pairs]
        for term in (*z, *(z**2 - 1.0), *products):
            yield term[:, None] * self.columns.columns
        yield from (p.T for p in self._shapes(z))

    def statistics(self, sums: NDArray) -> Iterator[Evaluated]:
        """One statistic for each kind of error."""
        k, d, p = self.columns.columns.shape[1], len(self.chosen), len(self.pairs)
        ends = np.cumsum([self.dimension, 1, k * (2 * d + p)])
        means, surprise, terms, shapes = np.split(sums, ends, axis=1)
        z = standardised(terms).reshape(len(sums), 2 * d + p, k)
        first, second, products = z[:, :d], z[:, d : 2 * d], z[:, 2 * d :]
        trend = self.columns.trend
        yield self.part("centre", length(standardised(means)))
        yield self.part("common shift", length(standardised(means.sum(axis=1, keepdims=True))))
        yield self.part("surprise", two_sided(surprise[:, 0]))
        yield self.part("spread", length(second[:, :, 0]))
        yield self.part("shape", length(standardised(shapes)))
        if p:
            yield self.part("correlation", length(products[:, :, 0]))
        if trend:
            yield self.part("trend of the centre", length(_flat(first[:, :, trend])))
            yield self.part("trend of the spread", length(_flat(second[:, :, trend])))
        if trend and p:
            yield self.part("trend of the correlation", length(_flat(products[:, :, trend])))


def _flat(z: NDArray) -> NDArray:
    return z.reshape(len(z), -1)
