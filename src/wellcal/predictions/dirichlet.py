"""Dirichlet predictions of probability vectors."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from wellcal._arrays.domains import Domain, positive, simplex
from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal._arrays.special import beta_quantile, betaln, elementwise, quiet
from wellcal.predictions.base import Predictions
from wellcal.predictions.fields import family, parameter


@family
class Dirichlet(Predictions):
    """Dirichlet distributions of a probability vector (a composition).

    Parameters
    ----------
    concentration
        Positive concentrations, ``(n, d)`` with d >= 2. Targets ``(n, d)`` are non-negative and sum to
        one within 1e-6 in double precision and 1e-3 below.

    Examples
    --------
    >>> import numpy as np
    >>> pred = Dirichlet(np.array([[1.0, 1.0, 2.0]]))
    >>> pred.mean()
    array([[0.25, 0.25, 0.5 ]])
    """

    concentration: Array = parameter(positive, ndim=2, columns=2)

    target_domain: ClassVar[Domain] = simplex

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one target, ``(d,)``."""
        return (int(self.concentration.shape[1]),)

    def _total(self) -> Array:
        return self.xp.sum(self.concentration, axis=1)[:, None]

    def mean(self) -> Array:
        """Means, ``(n, d)``."""
        return self.concentration / self._total()

    def variance(self) -> Array:
        """Variances of the coordinates, ``(n, d)``."""
        total = self._total()
        mean = self.concentration / total
        return mean * (1.0 - mean) / (total + 1.0)

    @quiet
    def log_prob(self, y: Array) -> Array:
        """Log density at `y` with respect to the first d - 1 coordinates, ``(n,)``.

        Minus infinity for vectors with a negative coordinate; that they sum to one is not
        checked here (`check_targets` does).
        """
        xp, ops, a = self.xp, self.ops, self.concentration
        y = self.argument(y, "y")
        possible = xp.all(y >= 0, axis=-1)
        y = ops.where(y >= 0, y, ops.one(y))
        # log B(a) as a chain of two-argument beta functions, which do not cancel for large `a`.
        before = xp.cumulative_sum(a, axis=1)[:, :-1]
        constant = xp.sum(betaln(ops, before, a[:, 1:]), axis=1)
        found = xp.sum(ops.xlogy(a - 1.0 + 0.0 * y, y), axis=-1) - constant
        return ops.where(possible, found, -math.inf * ops.one(found))

    def interquartile_range(self) -> Array:
        """Interquartile ranges of the coordinates, ``(n, d)``; their distributions are beta."""
        a = self.concentration
        return elementwise(_beta_interquartile_range, a, self._total() - a)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray:
        a = to_numpy(self.concentration).astype(np.float64)
        # Logarithms of gamma draws: the draws themselves underflow for small concentrations.
        shape = (size, *a.shape)
        log_gamma = np.log(rng.standard_gamma(a + 1.0, shape)) - rng.standard_exponential(shape) / a
        drawn = np.exp(log_gamma - log_gamma.max(axis=-1, keepdims=True))
        return drawn / drawn.sum(axis=-1, keepdims=True)


def _beta_interquartile_range(a: NDArray, b: NDArray) -> NDArray:
    return beta_quantile(a, b, 0.75) - beta_quantile(a, b, 0.25)
