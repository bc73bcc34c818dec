"""Errors of predictions that are draws, mixtures or quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bank.designs import Drawn
from benchmarks.bank.errors import CHOOSE, Error

Array = Any
Generator = np.random.Generator


def around(drawn: Drawn, z: Array) -> Array:
    return drawn.loc + drawn.scale * z


def too_narrow(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Draws, or quantiles, are closer together than targets are."""
    return around(drawn, np.exp(size) * rng.normal(size=len(drawn.loc)))


def moved(drawn: Drawn, size: float, rng: Generator) -> Array:
    return around(drawn, size + rng.normal(size=len(drawn.loc)))


def slope(drawn: Drawn, size: float, rng: Generator) -> Array:
    return around(drawn, size * drawn.loc + rng.normal(size=len(drawn.loc)))


def spread_by_sign(drawn: Drawn, size: float, rng: Generator) -> Array:
    return around(drawn, np.exp(size * np.sign(drawn.loc)) * rng.normal(size=len(drawn.loc)))


def wrong_weights(drawn: Drawn, size: float, rng: Generator) -> Array:
    """The odds of the second of two components are higher than predicted."""
    return _mixture(drawn, np.exp(size), 0.0, rng)


def gap(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Components are as frequent as predicted, and further apart."""
    return _mixture(drawn, 1.0, size, rng)


def _mixture(drawn: Drawn, factor: float, apart: float, rng: Generator) -> Array:
    share = factor * np.asarray(drawn.pred.weights)[:, 1]
    second = rng.uniform(size=len(share)) * (1.0 + share * (1.0 - 1.0 / factor)) < share
    z = rng.normal(size=len(share))
    return around(drawn, np.where(second, 2.5 + apart + 1.3 * z, z - apart))


ERRORS: tuple[Error, ...] = (
    Error("ensemble too narrow", "ensembles", CHOOSE, too_narrow, {100: 0.27, 1000: 0.085}),
    Error("ensemble bias", "ensembles", CHOOSE, moved, {100: 0.3, 1000: 0.09}),
    Error("ensemble slope", "ensembles", CHOOSE, slope, {100: 0.36, 1000: 0.115}),
    Error("mixture weights", "mixtures", CHOOSE, wrong_weights, {100: 0.7, 1000: 0.235}),
    Error("mixture gap", "mixtures", CHOOSE, gap, {100: 0.4, 1000: 0.137}),
    Error("quantiles too narrow", "quantiles", CHOOSE, too_narrow, {100: 0.22, 1000: 0.07}),
    Error("quantiles shifted", "quantiles", CHOOSE, moved, {100: 0.3, 1000: 0.095}),
    Error("quantiles spread by sign", "quantiles", CHOOSE, spread_by_sign, {100: 0.3, 1000: 0.105}),
)
