"""Errors of probabilities: of an outcome that occurs or not, and of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from benchmarks.bank.designs import Drawn
from benchmarks.bank.errors import CHOOSE, Error
from benchmarks.bank.rivals import NAMED_CLASS

Array = Any
Generator = np.random.Generator


# -- one outcome -----------------------------------------------------------------------------


def occurs(p: Array, rng: Generator) -> Array:
    return (rng.uniform(size=len(p)) < p).astype(np.int64)


def over_confident(drawn: Drawn, size: float, rng: Generator) -> Array:
    return occurs(special.expit((1.0 - size) * special.logit(drawn.loc)), rng)


def under_confident(drawn: Drawn, size: float, rng: Generator) -> Array:
    return occurs(special.expit((1.0 + size) * special.logit(drawn.loc)), rng)


def too_low(drawn: Drawn, size: float, rng: Generator) -> Array:
    return occurs(special.expit(size + special.logit(drawn.loc)), rng)


def waves(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Right on average over all predictions; too low, too high, too low, too high from quarter to quarter."""
    wave = size * np.sqrt(drawn.loc * (1.0 - drawn.loc)) * np.sin(4.0 * np.pi * drawn.loc)
    return occurs(np.clip(drawn.loc + wave, 0.0, 1.0), rng)


# -- classes ---------------------------------------------------------------------------------


def draw_class(p: Array, rng: Generator) -> Array:
    edges = np.cumsum(p / np.sum(p, axis=1, keepdims=True), axis=1)[:, :-1]
    return np.sum(rng.uniform(size=(len(p), 1)) > edges, axis=1)


def over_predicted(drawn: Drawn, size: float, rng: Generator) -> Array:
    """The odds of one class are lower than predicted."""
    factors = np.ones(drawn.loc.shape[1])
    factors[NAMED_CLASS] = np.exp(-size)
    return draw_class(drawn.loc * factors, rng)


def swapped(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Two classes are mistaken for each other where a third one is improbable."""
    p = np.array(drawn.loc)
    a, b, third = NAMED_CLASS, 1, drawn.loc[:, 2]
    subset = third < np.median(third)
    share = size * subset
    p[:, a] = (1.0 - share) * drawn.loc[:, a] + share * drawn.loc[:, b]
    p[:, b] = (1.0 - share) * drawn.loc[:, b] + share * drawn.loc[:, a]
    return draw_class(p, rng)


def hot(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Logits are too large: over-confidence."""
    return draw_class(drawn.loc ** (1.0 - size), rng)


def cold(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Logits are too small: under-confidence."""
    return draw_class(drawn.loc ** (1.0 + size), rng)


def flattened(drawn: Drawn, size: float, rng: Generator) -> Array:
    """The probability of one class says less than it seems to: the truth is nearer to its average."""
    p = np.array(drawn.loc)
    one = p[:, NAMED_CLASS]
    truth = (1.0 - size) * one + size / p.shape[1]
    p *= ((1.0 - truth) / (1.0 - one))[:, None]
    p[:, NAMED_CLASS] = truth
    return draw_class(p, rng)


def prior_shift(drawn: Drawn, size: float, rng: Generator) -> Array:
    """Classes became more or less frequent, from the first to the last."""
    return draw_class(drawn.loc * np.exp(size * np.linspace(-1.0, 1.0, drawn.loc.shape[1])), rng)


ERRORS: tuple[Error, ...] = (
    Error("binary over-confidence", "binary", CHOOSE, over_confident, {100: 0.4, 1000: 0.16}),
    Error("binary under-confidence", "binary", CHOOSE, under_confident, {100: 0.6, 1000: 0.18}),
    Error("binary bias", "rare binary", CHOOSE, too_low, {100: 0.9, 1000: 0.29}),
    Error("binary average only", "binary", CHOOSE, waves, {100: 0.5, 1000: 0.17}),
    Error("one class over-predicted", "ten classes", CHOOSE, over_predicted, {100: 1.3, 1000: 0.33}),
    Error("classes swapped", "three classes", CHOOSE, swapped, {100: 0.38, 1000: 0.1}),
    Error("temperature .7", "ten classes", CHOOSE, hot, {100: 0.3, 1000: 0.095}),
    Error("temperature 1.35", "ten classes", CHOOSE, cold, {100: 0.35, 1000: 0.1}),
    Error("one class flattened", "ten classes", CHOOSE, flattened, {100: 0.8, 1000: 0.2}),
    Error("prior shift", "ten classes", CHOOSE, prior_shift, {100: 0.6, 1000: 0.19}),
    Error("prior shift of three", "three classes", CHOOSE, prior_shift, {100: 0.44, 1000: 0.14}),
)
