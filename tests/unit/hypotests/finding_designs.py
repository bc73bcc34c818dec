"""Predictions with one planted error each, of known kind and size: what findings must name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

import wellcal as wc

N = 400
ANIMALS = np.array(["cat", "dog", "emu", "fox", "gnu"])
LEVELS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])


class Design(NamedTuple):
    """A kind of error, its size where the finding tells one, and how data with it are made."""

    kinds: tuple[str, ...]
    size: float | None
    make: Callable[[np.random.Generator], tuple[Any, Any]]


DESIGNS: dict[str, Design] = {}


def design(name: str, *kinds: str, size: float | None = None) -> Callable[[Any], Any]:
    def add(make: Any) -> Any:
        DESIGNS[name] = Design(kinds, size, make)
        return make

    return add


def add_noise(name: str, kind: str, size: float | None, noise: Callable[[Any, np.ndarray], Any]) -> None:
    """Normal predictions of standard deviation 1, and targets with another noise, given the mean."""

    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mu = rng.normal(3.0, 2.0, N)
        return mu + noise(rng, mu), wc.Normal(mu, np.ones(N))

    design(name, kind, size=size)(make)


def peaks(rng: np.random.Generator, mu: np.ndarray) -> np.ndarray:
    return 0.9 * rng.choice([-1.0, 1.0], N) + rng.normal(0.0, 0.44, N)


add_noise("too high", "shift", 0.3, lambda rng, mu: rng.normal(0.3, 1.0, N))
add_noise("too small", "spread", 0.8, lambda rng, mu: rng.normal(0.0, 1.25, N))
add_noise("too large", "spread", 1.25, lambda rng, mu: rng.normal(0.0, 0.8, N))
add_noise("high for some", "trend of the centre", 0.6, lambda rng, mu: rng.normal(0.6 * (mu > 3.0), 1.0))
add_noise("slope", "trend of the centre", None, lambda rng, mu: rng.normal(0.25 * (mu - 3.0), 1.0))
add_noise(
    "bent", "trend of the centre", None, lambda rng, mu: rng.normal(0.6 * (abs(mu - 3.0) < 1.35) - 0.3, 1.0)
)
add_noise(
    "spread for some",
    "trend of the spread",
    0.7,
    lambda rng, mu: rng.normal(0.0, np.where(mu > 3.0, 1 / 0.7, 0.9)),
)
add_noise("tails", "tails", None, lambda rng, mu: rng.standard_t(4, N) / np.sqrt(2.0))
add_noise("uniform", "tails", None, lambda rng, mu: rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), N))
add_noise("peaks", "two peaks", None, peaks)
add_noise("skewed", "skew", None, lambda rng, mu: (rng.gamma(4.0, size=N) - 4.0) / 2.0)


@design("correlated", "correlation", size=0.3)
def _correlated(rng: Any) -> tuple[Any, Any]:
    mu, noise = rng.normal(size=(N, 3)), rng.normal(size=(N, 3))
    noise[:, 1] = 0.3 * noise[:, 0] + np.sqrt(0.91) * noise[:, 1]
    return mu + noise, wc.DiagonalNormal(mu, np.ones((N, 3)))


@design("more correlated", "correlation", size=0.6)
def _more_correlated(rng: Any) -> tuple[Any, Any]:
    mu, noise = rng.normal(size=(N, 2)), rng.normal(size=(N, 2))
    noise[:, 1] = 0.6 * noise[:, 0] + 0.8 * noise[:, 1]
    return mu + noise, wc.MultivariateNormal(mu, np.tile([[1.0, 0.3], [0.3, 1.0]], (N, 1, 1)))


@design("one coordinate", "shift", size=0.3)
def _one_coordinate(rng: Any) -> tuple[Any, Any]:
    mu = rng.normal(size=(N, 2))
    return rng.normal(mu + np.array([0.0, 0.3])), wc.DiagonalNormal(mu, np.ones((N, 2)))


@design("all coordinates", "spread", size=0.8)
def _all_coordinates(rng: Any) -> tuple[Any, Any]:
    mu = rng.normal(size=(N, 2))
    return rng.normal(mu, 1.25), wc.DiagonalNormal(mu, np.ones((N, 2)))


@design("dispersed", "dispersion")
def _dispersed(rng: Any) -> tuple[Any, Any]:
    mean = np.exp(rng.normal(1.0, 0.5, N))
    return rng.poisson(mean * rng.gamma(4.0, 0.25, N)), wc.Poisson(mean)


@design("zeros", "zeros")
def _zeros(rng: Any) -> tuple[Any, Any]:
    mean = np.exp(rng.normal(1.2, 0.4, N))
    return rng.poisson(mean / 0.85) * (rng.uniform(size=N) > 0.15), wc.Poisson(mean)


@design("more of them", "shift", size=1.2)
def _more_of_them(rng: Any) -> tuple[Any, Any]:
    mean = np.exp(rng.normal(1.0, 0.5, N))
    return rng.poisson(1.2 * mean), wc.Poisson(mean)


@design("extreme", "slope", size=0.6)
def _extreme(rng: Any) -> tuple[Any, Any]:
    logit = rng.normal(0.0, 1.8, N)
    y = rng.uniform(size=N) < special.expit(0.6 * logit)
    return y.astype(int), wc.Bernoulli(special.expit(logit))


@design("far too extreme", "slope", size=0.3)
def _far_too_extreme(rng: Any) -> tuple[Any, Any]:
    logit = rng.normal(0.0, 5.0, N)
    y = rng.uniform(size=N) < special.expit(0.3 * logit)
    return y.astype(int), wc.Bernoulli(special.expit(logit))


@design("more often", "frequency")
def _more_often(rng: Any) -> tuple[Any, Any]:
    logit = rng.normal(-1.0, 1.0, N)
    y = rng.uniform(size=N) < special.expit(logit + 0.6)
    return y.astype(int), wc.Bernoulli(special.expit(logit))


def _animals(rng: Any, logits: np.ndarray, true: np.ndarray) -> tuple[Any, Any]:
    upper = special.softmax(true, axis=1).cumsum(axis=1)
    y = np.minimum((upper < rng.uniform(size=(N, 1))).sum(axis=1), len(ANIMALS) - 1)
    return ANIMALS[y], wc.Categorical(special.softmax(logits, axis=1), classes=ANIMALS)


@design("hot", "temperature", size=1.5)
def _hot(rng: Any) -> tuple[Any, Any]:
    logits = 2.0 * rng.normal(size=(N, 5))
    return _animals(rng, logits, logits / 1.5)


@design("few cats", "class")
def _few_cats(rng: Any) -> tuple[Any, Any]:
    logits = rng.normal(size=(N, 5))
    return _animals(rng, logits, logits - np.array([0.7, 0.0, 0.0, 0.0, 0.0]))


@design("ensemble", "range", "spread", size=0.7)
def _ensemble(rng: Any) -> tuple[Any, Any]:
    mu = rng.normal(3.0, 2.0, N)
    return rng.normal(mu, 1.0 / 0.7), wc.Samples(rng.normal(mu[:, None], 1.0, (N, 15)))


@design("ensemble too low", "above")
def _ensemble_too_low(rng: Any) -> tuple[Any, Any]:
    mu = rng.normal(3.0, 2.0, N)
    return rng.normal(mu + 0.3, 1.0), wc.Samples(rng.normal(mu[:, None], 1.0, (N, 15)))


@design("quantiles", "coverage")
def _quantiles(rng: Any) -> tuple[Any, Any]:
    mu = rng.normal(3.0, 2.0, N)
    return rng.normal(mu, 1.4), wc.Quantiles(LEVELS, mu[:, None] + stats.norm.ppf(LEVELS))


@design("Cauchy", "shift", size=0.35)  # of two scales, between its quartiles
def _cauchy(rng: Any) -> tuple[Any, Any]:
    mu = rng.normal(3.0, 2.0, N)
    return mu + 0.7 + rng.standard_t(1, N), wc.StudentT(np.ones(N), mu, np.ones(N))


@design("Cauchy too narrow", "spread", size=0.6)
def _cauchy_too_narrow(rng: Any) -> tuple[Any, Any]:
    mu = rng.normal(3.0, 2.0, N)
    return mu + rng.standard_t(1, N) / 0.6, wc.StudentT(np.ones(N), mu, np.ones(N))


@design("Cauchy narrow for some", "trend of the spread", size=0.4)
def _cauchy_narrow_for_some(rng: Any) -> tuple[Any, Any]:
    mu = rng.normal(3.0, 2.0, N)
    scale = np.where(mu > 3.0, 1.0 / 0.4, 0.8)
    return mu + rng.standard_t(1, N) * scale, wc.StudentT(np.ones(N), mu, np.ones(N))


@design("Laplace too high", "shift", size=0.6)
def _laplace_too_high(rng: Any) -> tuple[Any, Any]:
    mu, scale = rng.normal(3.0, 2.0, N), rng.uniform(0.5, 2.0, N)
    return mu + scale * (rng.laplace(size=N) + 0.6 * np.sqrt(2.0)), wc.Laplace(mu, scale)
