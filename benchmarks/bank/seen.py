"""What rivals see of a data set: normal scores of the PIT, ranks of centres, probabilities of classes."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import special, stats

import wellcal as wc

Array = Any

_EDGE = 1e-15  # normal scores stay finite


class Seen:
    """A data set as rivals see it; what is random in it, the PIT of discrete targets, comes from `rng`."""

    def __init__(self, y: Array, pred: Any, rng: np.random.Generator) -> None:
        self.y, self.pred, self.rng = np.asarray(y), pred, rng

    # -- numbers -----------------------------------------------------------------------------

    @cached_property
    def scores(self) -> Array:
        """Normal scores of targets, ``(n,)``, or of whitened coordinates, ``(n, d)``; N(0, 1) under H0."""
        pred = self.pred
        if isinstance(pred, wc.Normal | wc.DiagonalNormal):
            return (self.y - pred.loc) / pred.scale
        if isinstance(pred, wc.MultivariateNormal):
            return np.linalg.solve(pred.chol, (self.y - pred.loc)[:, :, None])[:, :, 0]
        return special.ndtri(np.clip(self._pit(), _EDGE, 1.0 - _EDGE))

    def _pit(self) -> Array:
        """The PIT, randomised where targets are discrete."""
        y, pred = self.y, self.pred
        if isinstance(pred, wc.Samples):
            below, size = np.sum(np.asarray(pred.values) < y[:, None], axis=1), pred.values.shape[1] + 1
            low, width = below / size, 1.0 / size
        elif isinstance(pred, wc.Quantiles):
            edges, bins = np.concatenate([[0.0], pred.levels, [1.0]]), np.asarray(pred.bins(y))
            low, width = edges[bins], np.diff(edges)[bins]
        elif isinstance(pred, wc.Poisson | wc.NegativeBinomial):
            low = np.asarray(pred.cdf(y - 1.0))
            width = np.asarray(pred.cdf(y)) - low
        else:
            return np.asarray(pred.cdf(y))
        return low + width * self.rng.uniform(size=len(y))

    @cached_property
    def z(self) -> Array:
        """Normal scores in one row."""
        return self.scores.ravel()

    @cached_property
    def u(self) -> Array:
        """The PIT in ascending order."""
        return np.sort(special.ndtr(self.z))

    @cached_property
    def ranks(self) -> Array:
        """Ranks of the predicted centres, of mean 0 and variance 1, one for each of `z`."""
        return _standard_ranks(np.asarray(self._centre())).ravel()

    @cached_property
    def spread_ranks(self) -> Array:
        """The same of the predicted spreads."""
        return _standard_ranks(np.asarray(self.pred.variance())).ravel()

    def _centre(self) -> Array:
        if isinstance(self.pred, wc.Samples):
            # Given the draws alone a target is not uniform among them: where their mean is high by chance it
            # is rather below. Given draws and target together, which are exchangeable, it is.
            return np.mean(np.concatenate([self.pred.values, self.y[:, None]], axis=1), axis=1)
        if isinstance(self.pred, wc.StudentT):
            return self.pred.loc
        if isinstance(self.pred, wc.Quantiles):
            return self.pred.quantile(0.5)
        return self.pred.mean()

    @cached_property
    def variance_ratio(self) -> float:
        """Mean square of residuals in units of the predicted variance."""
        return float(np.mean((self.y - self.pred.mean()) ** 2 / self.pred.variance()))

    @cached_property
    def first_coordinate(self) -> Array:
        """Standardised residuals of the first coordinate alone."""
        return (self.y[:, 0] - self.pred.mean()[:, 0]) / np.sqrt(self.pred.variance()[:, 0])

    # -- classes -----------------------------------------------------------------------------

    @cached_property
    def probs(self) -> Array:
        return np.asarray(self.pred.class_probs())

    @cached_property
    def hits(self) -> Array:
        """Targets as indicators of classes, ``(n, C)``."""
        return (self.y[:, None] == np.arange(self.probs.shape[1])).astype(np.float64)

    @cached_property
    def binary(self) -> tuple[Array, Array]:
        """Outcomes and their probabilities; for more than two classes, of the most probable one."""
        if self.probs.shape[1] == 2:
            return self.hits[:, 1], self.probs[:, 1]
        rows, top = np.arange(len(self.probs)), np.argmax(self.probs, axis=1)
        return self.hits[rows, top], self.probs[rows, top]


def _standard_ranks(values: Array) -> Array:
    ranks = stats.rankdata(values, axis=0) - 0.5 * (len(values) + 1)
    return ranks / np.sqrt(np.mean(ranks**2, axis=0))
