"""Errors of predictions of counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bank.designs import Drawn
from benchmarks.bank.errors import CHOOSE, Error

Array = Any
Generator = np.random.Generator


def under_dispersed(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Binomial counts of the predicted mean; their variance is less by about the factor ``1 - size``."""
    if size == 0.0:
        return drawn.pred.sample(rng)
    trials = drawn.loc / size
    whole = np.floor(trials)
    whole += rng.uniform(size=len(trials)) < trials - whole
    return rng.binomial(whole.astype(np.int64), size).astype(np.float64)


def over_dispersed(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Negative binomial counts of the predicted mean and dispersion `size`."""
    if size == 0.0:
        return drawn.pred.sample(rng)
    return negative_binomial(drawn.loc, size, rng)


def wrong_dispersion(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Negative binomial counts whose dispersion is larger than predicted."""
    return negative_binomial(drawn.loc, drawn.scale * np.exp(size), rng)


def too_dispersed(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Negative binomial counts whose dispersion is smaller than predicted."""
    return negative_binomial(drawn.loc, drawn.scale * np.exp(-size), rng)


def negative_binomial(mean: Array, dispersion: float, rng: Generator) -> Array:
    return rng.poisson(rng.gamma(1.0 / dispersion, dispersion * mean)).astype(np.float64)


def zero_inflated(drawn: Drawn, size: float, rng: Generator) -> Array:
    """A share of counts is 0, and the others are larger, so that means are as predicted."""
    counts = rng.poisson(drawn.loc / (1.0 - size))
    return np.where(rng.uniform(size=len(counts)) < size, 0.0, counts)


def wrong_rate(drawn: Drawn, size: float, rng: Generator) -> Array:
    return rng.poisson(np.exp(size) * drawn.loc).astype(np.float64)


def rate_slope(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Rates below 4 are predicted too high, those above too low."""
    return rng.poisson(4.0 * (drawn.loc / 4.0) ** (1.0 + size)).astype(np.float64)


ERRORS: tuple[Error, ...] = (
    Error("under-dispersed counts", "Poisson", CHOOSE, under_dispersed, {100: 0.3, 1000: 0.11}),
    Error("over-dispersed counts", "Poisson", CHOOSE, over_dispersed, {100: 0.1, 1000: 0.034}),
    Error("zero inflation", "Poisson", CHOOSE, zero_inflated, {100: 0.08, 1000: 0.025}),
    Error("rate", "Poisson", CHOOSE, wrong_rate, {100: 0.13, 1000: 0.042}),
    Error("rate slope", "Poisson", CHOOSE, rate_slope, {100: 0.25, 1000: 0.079}),
    Error("dispersion too low", "negative binomial", CHOOSE, wrong_dispersion, {100: 0.6, 1000: 0.235}),
    Error("dispersion too high", "negative binomial", CHOOSE, too_dispersed, {100: 0.9, 1000: 0.28}),
)
