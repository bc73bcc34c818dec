"""Parts for two classes: intercept, slope and curve against the predicted probability, and groups of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wellcal._arrays.memo import on_device
from wellcal._arrays.namespaces import Array, NDArray, namespace
from wellcal._arrays.special import bounded_log_odds, bounded_probability
from wellcal.hypotests.parts.contrasts import add_orthogonal, weighted_products
from wellcal.hypotests.parts.part import Evaluated, Parts, length, standardised
from wellcal.hypotests.parts.polynomials import legendre
from wellcal.measures.ranks import middle_ranks

WEIGHTS = {
    "centre": 0.1,
    "slope": 0.3,
    "curve": 0.05,
    "groups": 0.45,
    "surprise": 1.0,
    "SKCE": 0.05,
    "locations": 0.1,
}
"""Weights of the parts, chosen on one half of a bank of alternatives: benchmarks/bank."""

GROUPS = 10


LEAST_SHARE = 1e-6
"""Share of a column that is something new."""

_CERTAIN = 1.0 - 1e-6


def smooth_columns(probability: NDArray, levels: NDArray | None = None) -> tuple[NDArray, NDArray, NDArray]:
    """Columns ``(n, 4)`` that residuals may follow: ones, log odds, curves; their weights; and levels.

    Levels ``(n,)`` are ranks of the bounded probabilities, between 0 and 1; None takes those among the cases
    themselves.
    """
    p = bounded_probability(probability)
    ranks = middle_ranks(p) if levels is None else levels
    raw = [np.ones_like(p), bounded_log_odds(p), *list(legendre(ranks, 3))[1:]]
    return np.stack(raw, axis=1), np.sqrt(p * (1.0 - p)) ** 2, ranks


class BinaryParts(Parts):
    """Residuals times columns that follow the predicted probability."""

    weights = WEIGHTS

    def __init__(
        self, probability: NDArray, levels: NDArray | None = None, smooth: NDArray | None = None
    ) -> None:
        """From the `probability` of the second class, ``(n,)``.

        Levels of the probabilities, as :func:`smooth_columns` takes them, and orthogonal columns ``(n, k)``
        are given where the cases are only some of all.
        """
        raw, weights, ranks = smooth_columns(probability, levels)
        if smooth is None:
            # Orthogonal for the variances of residuals: intercept, slope and curves do not see each other.
            found: list[NDArray] = []
            add_orthogonal(found, list(raw.T), weighted_products(weights), LEAST_SHARE)
            smooth = np.stack(found, axis=1)
        self.smooth, logit = smooth, raw[:, 1:2]
        group = np.minimum((ranks * GROUPS).astype(int), GROUPS - 1)
        groups = (group[:, None] == np.arange(GROUPS)).astype(np.float64)
        self.columns = np.concatenate([self.smooth, groups, logit], axis=1)
        self.probability = probability
        # Taken off targets before they are added up: sums over what is certain would leave their rounding.
        self.certain = (probability > _CERTAIN).astype(np.float64)
        self.expected = (probability - self.certain) @ self.columns

    def sums(self, targets: Array) -> Array:
        """Sums ``(r, k)`` of residuals times columns."""
        xp = namespace(targets)
        columns, expected = (on_device(x, targets) for x in (self.columns, self.expected))
        events = xp.astype(targets, columns.dtype)
        if self.certain.any():
            events = events - on_device(self.certain, targets)
        return events @ columns - expected

    def terms(self, targets: NDArray) -> Iterator[NDArray]:
        """Residuals times columns."""
        yield (targets - self.probability)[:, None] * self.columns

    def mean_terms(self) -> Iterator[NDArray]:
        """Residuals have mean 0."""
        yield np.zeros_like(self.columns)

    def statistics(self, sums: NDArray) -> Iterator[Evaluated]:
        """One statistic for each kind of error."""
        z = standardised(sums)
        k = self.smooth.shape[1]
        yield self.part("centre", length(z[:, :1]))
        if k > 1:
            yield self.part("slope", length(z[:, 1:2]))
        if k > 2:
            yield self.part("curve", length(z[:, 2:k]))
        yield self.part("groups", length(z[:, k : k + GROUPS]))
        yield self.part("surprise", length(z[:, -1:]))
