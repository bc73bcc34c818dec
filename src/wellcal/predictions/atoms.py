"""Distributions on finitely many numbers or vectors, each with its weight."""

from __future__ import annotations

from wellcal._arrays.namespaces import Array
from wellcal._arrays.special import table_quantile
from wellcal.predictions.base import Predictions


class Atoms(Predictions):
    """Moments, distribution function and quantiles of families on finitely many atoms."""

    def atoms(self) -> tuple[Array, Array]:
        """Return atoms ``(n, S)`` or ``(n, S, d)`` and their weights ``(n, S)``."""
        raise NotImplementedError

    def _average(self, of: Array, weights: Array) -> Array:
        return self.xp.sum((weights if of.ndim == 2 else weights[:, :, None]) * of, axis=1)

    def mean(self) -> Array:
        """Means, ``(n,)`` or ``(n, d)``."""
        self.require("mean")
        return self._average(*self.atoms())

    def variance(self) -> Array:
        """Variances, ``(n,)``, or of the coordinates, ``(n, d)``."""
        self.require("variance")
        values, weights = self.atoms()
        return self._average((values - self._average(values, weights)[:, None, ...]) ** 2, weights)

    def cdf(self, y: Array) -> Array:
        """Distribution function at `y`: weight of the atoms up to and including it."""
        self.require("cdf")
        xp, (values, weights) = self.xp, self.atoms()
        return xp.sum(xp.where(values <= self.argument(y, "y")[..., None], weights, 0.0 * weights), axis=-1)

    def quantile(self, u: Array) -> Array:
        """Quantiles at levels `u`: the smallest atom whose distribution function reaches it."""
        self.require("quantile")
        return table_quantile(*self.atoms(), self.argument(u, "u"))

    def interquartile_range(self) -> Array:
        """Interquartile ranges, ``(n,)``, or of the coordinates, ``(n, d)``."""
        self.require("interquartile_range")
        values, weights = self.atoms()
        low, high = (self.argument(u, "u", event_ndim=0) for u in (0.25, 0.75))
        tables = [values] if values.ndim == 2 else [values[:, :, k] for k in range(values.shape[2])]
        ranges = [table_quantile(t, weights, high) - table_quantile(t, weights, low) for t in tables]
        return ranges[0] if values.ndim == 2 else self.xp.stack(ranges, axis=1)
