"""Errors of predictions of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bank.designs import Drawn
from benchmarks.bank.errors import CHOOSE, Error

Array = Any
Generator = np.random.Generator


def _correlated(drawn: Drawn, correlation: Array, rng: Generator) -> Array:
    z = rng.normal(size=drawn.loc.shape)
    z[:, 1] = correlation * z[:, 0] + np.sqrt(1.0 - correlation**2) * z[:, 1]
    return drawn.loc + drawn.scale * z


def correlated(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Coordinates are correlated, and predicted independent."""
    return _correlated(drawn, np.full(len(drawn.loc), size), rng)


def correlated_by_sign(drawn: Drawn, size: float, rng: Generator) -> Array:
    """The same with the sign of the first predicted mean, and so uncorrelated on average."""
    return _correlated(drawn, size * np.sign(drawn.loc[:, 0]), rng)


def one_moved(drawn: Drawn, size: float, rng: Generator) -> Array:
    y = drawn.pred.sample(rng)
    y[:, 0] += size * drawn.scale[:, 0]
    return y


def one_stretched(drawn: Drawn, size: float, rng: Generator) -> Array:
    """The first coordinate has a larger spread; correlations are right."""
    residuals = np.einsum("nab,nb->na", drawn.scale, rng.normal(size=drawn.loc.shape))
    residuals[:, 0] *= np.exp(size)
    return drawn.loc + residuals


def sum_moved(drawn: Drawn, size: float, rng: Generator) -> Array:
    """All whitened coordinates are too high."""
    z = size + rng.normal(size=drawn.loc.shape)
    return drawn.loc + np.einsum("nab,nb->na", drawn.scale, z)


ERRORS: tuple[Error, ...] = (
    Error("correlation ignored", "pairs", CHOOSE, correlated, {100: 0.3, 1000: 0.097}),
    Error("correlation by sign", "pairs", CHOOSE, correlated_by_sign, {100: 0.35, 1000: 0.108}),
    Error("one coordinate shifted", "pairs", CHOOSE, one_moved, {100: 0.4, 1000: 0.12}),
    Error("one coordinate stretched", "full covariances", CHOOSE, one_stretched, {100: 0.22, 1000: 0.07}),
    Error("all coordinates shifted", "full covariances", CHOOSE, sum_moved, {100: 0.18, 1000: 0.051}),
)
