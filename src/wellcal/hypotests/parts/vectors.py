"""Parts for vectors: each coordinate, and how coordinates go together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from scipy import linalg, special

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.parts.contrasts import Contrasts
from wellcal.hypotests.parts.part import Evaluated, Parts, length, standardised
from wellcal.hypotests.parts.polynomials import legendre
from wellcal.hypotests.parts.surprise import Surprise, total_surprise
from wellcal.hypotests.resampling.smooth_tails import two_sided

WEIGHTS = {
    "centre": 0.9,
    "common shift": 0.4,
    "surprise": 0.15,
    "spread": 0.6,
    "correlation": 0.9,
    "shape": 0.05,
    "trend of the centre": 0.12,
    "trend of the spread": 0.06,
    "trend of the correlation": 0.2,
    "SKCE": 0.08,
    "locations": 0.04,
}
"""Weights of the parts, chosen on one half of a bank of alternatives: benchmarks/bank."""

MOST_COORDINATES = 12
"""Coordinates whose products are looked at: some of them, evenly spaced, where there are more."""

Standardised = Callable[[NDArray], NDArray]
"""From sets of targets ``(r, n, d)`` to residuals ``(r, n, d)`` of variance 1 under the prediction."""


class VectorParts(Parts):
    """Sums of standardised residuals, their squares, products and shape, times columns of the predictions."""

    weights = WEIGHTS

    def __init__(
        self, standardise: Standardised, columns: Contrasts, dimension: int, surprise: Surprise | None
    ) -> None:
        self.standardise, self.columns, self.surprise = standardise, columns, surprise
        self.dimension = dimension
        places = np.linspace(0, dimension - 1, min(dimension, MOST_COORDINATES))
        self.chosen = np.unique(places.round().astype(int))
        d = len(self.chosen)
        self.pairs = np.array(list(combinations(range(d), 2)), dtype=np.int64).reshape(-1, 2)

    def sums(self, targets: NDArray) -> NDArray:
        """Sums ``(r, d + 1 + k (2 c + p) + 2 c)``: d coordinates, c chosen ones and p pairs of these."""
        cells = targets.shape[1] * (self.dimension + len(self.pairs))
        parts = in_chunks(len(targets), cells, within=budget.cache)
        return np.concatenate([self._some(targets[part]) for part in parts])

    def _some(self, targets: NDArray) -> NDArray:
        residuals, surprise, terms, shapes = self._of_cases(targets)
        columns = self.columns.columns
        by_column = np.einsum("rnt,nk->rtk", terms, columns, optimize=True).reshape(len(targets), -1)
        total = total_surprise(surprise)[:, None]
        return np.concatenate(
            [residuals.sum(axis=1), total, by_column, *(p.sum(axis=1) for p in shapes)], axis=1
        )

    def _of_cases(self, targets: NDArray) -> tuple[NDArray, NDArray, NDArray, list[NDArray]]:
        """Residuals, surprise, what goes with columns, and shape, of sets of targets."""
        residuals = self.standardise(targets)
        z = residuals[..., self.chosen]
        products = z[..., self.pairs[:, 0]] * z[..., self.pairs[:, 1]]
        terms = np.concatenate([z, z**2 - 1.0, products], axis=-1)
        surprise = np.sum(residuals**2, axis=2) if self.surprise is None else self.surprise(targets)
        return residuals, surprise, terms, list(legendre(special.ndtr(z), 4))[2:]

    def terms(self, targets: NDArray) -> Iterator[NDArray]:
        """The same for each case."""
        residuals, surprise, terms, shapes = self._of_cases(targets[None])
        yield residuals[0]
        yield surprise[0][:, None]
        for term in terms[0].T:
            yield term[:, None] * self.columns.columns
        yield from (p[0] for p in shapes)

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


def whitening(loc: Any, chol: Any) -> Standardised:
    """Residuals that the covariance matrices of the predictions make independent."""
    centre = np.asarray(loc)
    factors: NDArray = np.asarray(chol)
    one = np.eye(factors.shape[-1])
    solved: list[NDArray] = [linalg.solve_triangular(factor, one, lower=True) for factor in factors]
    inverse: NDArray = np.stack(solved)
    return lambda targets: np.einsum("nab,rnb->rna", inverse, targets - centre, optimize=True)
