"""An error for each part of the omnibus test, of every family: what its first finding must be about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

import wellcal as wc

N = 400
ANIMALS = np.array(["cat", "dog", "emu", "fox", "gnu"])
LEVELS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])

TURNS = np.array([1.0, -1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0])  # without mean, slope and curve

Make = Callable[[np.random.Generator], tuple[Any, Any]]


class Planted(NamedTuple):
    """A part that sees the error, kinds of findings that tell it, and data that have it."""

    part: str
    kinds: tuple[str, ...]
    make: Make


PLANTED: dict[str, Planted] = {}


def plant(family: str, part: str, *kinds: str) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        PLANTED[f"{family}, {part}"] = Planted(part, kinds, make)
        return make

    return add


def bent(rng: np.random.Generator, size: float, *degrees: int) -> np.ndarray:
    """Levels whose density is 1 + Legendre polynomials, evenly spread: nothing else is off by chance."""
    grid = np.linspace(0.0, 1.0, 4001)
    terms = [
        np.sqrt(2.0 * degree + 1.0) * np.polynomial.legendre.Legendre.basis(degree)(2.0 * grid - 1.0)
        for degree in degrees
    ]
    below = np.cumsum(np.maximum(1.0 + size * np.sum(terms, axis=0), 0.0))
    return np.interp(even(rng), below / below[-1], grid)


def even(rng: np.random.Generator) -> np.ndarray:
    """Levels between 0 and 1, evenly spread, in random order."""
    return (rng.permutation(N) + 0.5) / N


def ranks(values: np.ndarray) -> np.ndarray:
    return (stats.rankdata(values) - 0.5) / len(values)


def humps(mu: np.ndarray) -> np.ndarray:
    """A curve with two bends."""
    return np.sqrt(7.0) * np.polynomial.legendre.Legendre.basis(3)(2.0 * ranks(mu) - 1.0)


# -- numbers -----------------------------------------------------------------------------------------


def add_numbers(part: str, kind: str, noise: Callable[[Any, np.ndarray], Any], *others: str) -> None:
    @plant("numbers", part, kind, *others)
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mu = rng.normal(3.0, 2.0, N)
        return mu + noise(rng, mu), wc.Normal(mu, np.ones(N))


add_numbers("distribution", "shift", lambda rng, mu: rng.normal(0.25, 1.0, N))
add_numbers("levels", "levels", lambda rng, mu: special.ndtri(bent(rng, 0.28, 5, 6)))
add_numbers("shape", "tails", lambda rng, mu: special.ndtri(bent(rng, 0.3, 4)), "two peaks")
add_numbers("spread", "spread", lambda rng, mu: rng.normal(0.0, 1.2, N))
add_numbers("tails", "tails", lambda rng, mu: rng.standard_t(4, N) / np.sqrt(2.0))
add_numbers("trend of the centre", "trend of the centre", lambda rng, mu: rng.normal(0.2 * (mu - 3.0), 1.0))
add_numbers("curve of the centre", "trend of the centre", lambda rng, mu: rng.normal(0.35 * humps(mu), 1.0))


@plant("numbers", "trend of the spread", "trend of the spread")
def _spread_by_spread(rng: np.random.Generator) -> tuple[Any, Any]:
    mu, spread = rng.normal(3.0, 2.0, N), np.exp(rng.normal(0.0, 0.5, N))
    return rng.normal(mu, spread**1.7), wc.Normal(mu, spread)


# -- counts ------------------------------------------------------------------------------------------


def add_counts(part: str, kind: str, draw: Callable[[Any, np.ndarray], Any], *others: str) -> None:
    @plant("counts", part, kind, *others)
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mean = np.exp(rng.normal(2.5, 0.6, N))
        return np.asarray(draw(rng, mean)).astype(int), wc.Poisson(mean)


add_counts("distribution", "shift", lambda rng, mean: rng.poisson(1.08 * mean))
add_counts("levels", "levels", lambda rng, mean: stats.poisson.ppf(bent(rng, 0.37, 5, 6), mean), "skew")
add_counts("shape", "tails", lambda rng, mean: stats.poisson.ppf(bent(rng, 0.3, 4), mean), "two peaks")
add_counts("spread", "dispersion", lambda rng, mean: rng.poisson(mean * rng.gamma(20.0, 0.05, N)))
add_counts(
    "tails",
    "tails",
    lambda rng, mean: stats.poisson.ppf(stats.norm.cdf(stats.t.ppf(even(rng), 4) / 2**0.5), mean),
)
add_counts(
    "trend of the centre",
    "trend of the centre",
    lambda rng, mean: rng.poisson(mean * (0.85 + 0.3 * ranks(mean))),
)
add_counts(
    "curve of the centre",
    "trend of the centre",
    lambda rng, mean: rng.poisson(mean + 0.4 * humps(mean) * mean**0.5),
)
add_counts(
    "trend of the spread",
    "trend of the spread",
    lambda rng, mean: np.maximum(rng.normal(mean, mean**0.5 * np.where(mean > 12.0, 1.35, 0.7)), 0.0).round(),
)


# -- vectors -----------------------------------------------------------------------------------------


def add_vectors(part: str, kind: str, noise: Callable[[Any, Any, Any], Any], dimension: int = 3) -> None:
    @plant("vectors", part, kind)
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mu, e = rng.normal(size=(N, dimension)), rng.normal(size=(N, dimension))
        return mu + noise(rng, mu, e), wc.DiagonalNormal(mu, np.ones((N, dimension)))


def with_second(e: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.concatenate([e[:, :1], second[:, None], e[:, 2:]], axis=1)


def mixed(e: np.ndarray, share: Any) -> np.ndarray:
    return with_second(e, share * e[:, 0] + np.sqrt(1.0 - share**2) * e[:, 1])


add_vectors("centre", "shift", lambda rng, mu, e: e + np.array([0.0, 0.3, 0.0]))
add_vectors("common shift", "shift", lambda rng, mu, e: e + 0.12, dimension=6)
add_vectors("spread", "spread", lambda rng, mu, e: with_second(e, 1.3 * e[:, 1]))
add_vectors("correlation", "correlation", lambda rng, mu, e: mixed(e, 0.3))
add_vectors("shape", "skew", lambda rng, mu, e: with_second(e, (rng.gamma(2.0, size=N) - 2.0) / 2.0**0.5))
add_vectors(
    "trend of the centre", "trend of the centre", lambda rng, mu, e: with_second(e, e[:, 1] + 0.35 * mu[:, 0])
)
add_vectors(
    "trend of the spread",
    "trend of the spread",
    lambda rng, mu, e: with_second(e, e[:, 1] * np.where(mu[:, 0] > 0.0, 1.3, 0.65)),
)
add_vectors(
    "trend of the correlation",
    "trend of the correlation",
    lambda rng, mu, e: mixed(e, np.where(mu[:, 2] > 0.0, 0.45, -0.45)),
    dimension=4,
)


@plant("vectors", "surprise", "surprise", "spread")
def _surprise(rng: np.random.Generator) -> tuple[Any, Any]:
    """All coordinates together spread a little too far: none of them does by itself."""
    mu = rng.normal(size=(N, 6))
    return mu + 1.06 * rng.normal(size=(N, 6)), wc.DiagonalNormal(mu, np.ones((N, 6)))


# -- two classes -------------------------------------------------------------------------------------


def add_binary(part: str, kind: str, true: Callable[[np.ndarray], np.ndarray], *others: str) -> None:
    @plant("two classes", part, kind, *others)
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        logit = rng.normal(0.0, 1.5, 2 * N)
        y = rng.uniform(size=2 * N) < special.expit(true(logit))
        return y.astype(int), wc.Bernoulli(special.expit(logit))


add_binary("centre", "frequency", lambda logit: logit + 0.4)
add_binary("slope", "slope", lambda logit: 0.65 * logit)
add_binary("curve", "group", lambda logit: logit + np.where(np.abs(ranks(logit) - 0.5) < 0.25, 0.65, -0.65))
add_binary("groups", "group", lambda logit: logit + 1.3 * TURNS[(8.0 * ranks(logit)).astype(int)])
add_binary("surprise", "slope", lambda logit: 0.65 * logit, "frequency")


# -- classes -----------------------------------------------------------------------------------------


def animals(rng: np.random.Generator, logits: np.ndarray, true: np.ndarray) -> tuple[Any, Any]:
    upper = special.softmax(true, axis=1).cumsum(axis=1)
    y = np.minimum((upper < rng.uniform(size=(N, 1))).sum(axis=1), len(ANIMALS) - 1)
    return ANIMALS[y], wc.Categorical(special.softmax(logits, axis=1), classes=ANIMALS)


def add_classes(part: str, kind: str, true: Callable[[Any, np.ndarray], np.ndarray], name: str = "") -> None:
    @plant(f"classes{name}", part, kind)
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        logits = 1.5 * rng.normal(size=(N, 5))
        return animals(rng, logits, true(rng, logits))


def swapped(rng: np.random.Generator, logits: np.ndarray) -> np.ndarray:
    out, some = logits.copy(), rng.uniform(size=N) < 0.6
    out[some, :2] = logits[some, 1::-1]
    return out


add_classes("surprise", "temperature", lambda rng, logits: logits / 1.5)
add_classes("one class", "class", lambda rng, logits: logits - [0.8, 0.0, 0.0, 0.0, 0.0])
add_classes("classes", "class", lambda rng, logits: logits + np.array([0.5, 0.5, 0.0, -0.5, -0.5]))
add_classes(
    "slopes",
    "class slope",
    lambda rng, logits: logits * [1.0, 0.25, 1.0, 1.0, 1.0] + [0.0, 0.4, 0.0, 0.0, 0.0],
)
add_classes("slopes", "swapped", swapped, ", two of which are swapped")


# -- draws and quantiles -----------------------------------------------------------------------------


def add_draws(part: str, kind: str, noise: Callable[[Any, np.ndarray], Any], *others: str) -> None:
    @plant("draws", part, kind, *others)
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mu = rng.normal(3.0, 2.0, N)
        return mu + noise(rng, mu), wc.Samples(rng.normal(mu[:, None], 1.0, (N, 20)))


add_draws("distribution", "above", lambda rng, mu: rng.normal(0.3, 1.0, N))
add_draws("spread", "spread", lambda rng, mu: rng.normal(0.0, 1.3, N), "range")
add_draws("shape", "tails", lambda rng, mu: special.ndtri(bent(rng, 0.42, 4)), "range")
add_draws("trend of the centre", "trend of the centre", lambda rng, mu: rng.normal(0.25 * (mu - 3.0), 1.0))
add_draws(
    "trend of the spread",
    "trend of the spread",
    lambda rng, mu: rng.normal(0.0, np.where(mu > 3.0, 1.4, 0.7)),
)


def add_quantiles(part: str, kind: str, noise: Callable[[Any, np.ndarray], Any]) -> None:
    @plant("quantiles", part, kind)
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mu = rng.normal(3.0, 2.0, N)
        return mu + noise(rng, mu), wc.Quantiles(LEVELS, mu[:, None] + stats.norm.ppf(LEVELS))


add_quantiles("distribution", "quantile", lambda rng, mu: rng.normal(0.35, 1.0, N))
add_quantiles("spread", "coverage", lambda rng, mu: rng.normal(0.0, 1.4, N))
add_quantiles("trend of the centre", "trend of the centre", lambda rng, mu: rng.normal(0.3 * (mu - 3.0), 1.0))
add_quantiles(
    "trend of the spread",
    "trend of the spread",
    lambda rng, mu: rng.normal(0.0, np.where(mu > 3.0, 1.6, 0.7)),
)
