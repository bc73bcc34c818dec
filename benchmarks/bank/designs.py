"""Calibrated models: how predictions of a kind come about, and targets that follow them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

import wellcal as wc

Generator = np.random.Generator
Array = Any


@dataclass(frozen=True)
class Drawn:
    """Predictions, and what they were made of: centres and spreads, or probabilities (`loc`)."""

    pred: Any
    loc: Array = None
    scale: Array = None


@dataclass(frozen=True)
class Design:
    """A calibrated model.

    Attributes
    ----------
    name
        What tables call it.
    predict
        From a number of cases and a generator to predictions.
    rivals
        Tests that suit its predictions (names in `rivals.RIVALS`).
    targets
        Targets that follow the predictions; None samples them from the batch.
    discrete
        Whether targets are discrete: tests may then stay below their level.
    """

    name: str
    predict: Callable[[int, Generator], Drawn]
    rivals: tuple[str, ...]
    targets: Callable[[Drawn, Generator], Array] | None = None
    discrete: bool = False

    def calibrated(self, n: int, rng: Generator) -> tuple[Array, Any]:
        """Targets and predictions of a calibrated model."""
        drawn = self.predict(n, rng)
        y = drawn.pred.sample(rng) if self.targets is None else self.targets(drawn, rng)
        return y, drawn.pred


PIT = ("KS", "AD", "Neyman-4", "Berkowitz", "score4")
NORMALS = (*PIT, "RESET", "Breusch-Pagan")
COUNTS = (*PIT, "dispersion")
BINARY = ("Spiegelhalter", "HL", "Cox")
CLASSES = ("log score", "class count", "class counts", "Cox, one class", *BINARY)
PAIRS = (*PIT, "correlation", "correlation trend")
VECTORS = (*PIT, "correlation", "one coordinate")

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
DRAWS = 20


def _loc_scale(n: int, rng: Generator) -> tuple[Array, Array]:
    return rng.normal(size=n), np.exp(0.4 * rng.normal(size=n))


def normals(n: int, rng: Generator) -> Drawn:
    loc, scale = _loc_scale(n, rng)
    return Drawn(wc.Normal(loc, scale), loc, scale)


def laplaces(n: int, rng: Generator) -> Drawn:
    loc, scale = _loc_scale(n, rng)
    return Drawn(wc.Laplace(loc, scale), loc, scale)


def cauchys(n: int, rng: Generator) -> Drawn:
    loc, scale = _loc_scale(n, rng)
    return Drawn(wc.StudentT(np.ones(n), loc, scale), loc, scale)


def students(n: int, rng: Generator) -> Drawn:
    loc, scale = _loc_scale(n, rng)
    return Drawn(wc.StudentT(np.full(n, 4.0), loc, scale), loc, scale)


def gammas(n: int, rng: Generator) -> Drawn:
    shape = np.exp(1.0 + 0.4 * rng.normal(size=n))
    mean = np.exp(0.5 * rng.normal(size=n))
    return Drawn(wc.Gamma(shape, mean / shape), mean, shape)


def poissons(n: int, rng: Generator) -> Drawn:
    rate = rng.gamma(2.0, 2.0, size=n)
    return Drawn(wc.Poisson(rate), rate)


def negative_binomials(n: int, rng: Generator) -> Drawn:
    mean = rng.gamma(2.0, 2.0, size=n)
    return Drawn(wc.NegativeBinomial(mean, np.full(n, 0.5)), mean, 0.5)


def binary(n: int, rng: Generator) -> Drawn:
    p = rng.uniform(size=n)
    return Drawn(wc.Bernoulli(p), p)


def rare(n: int, rng: Generator) -> Drawn:
    p = special.expit(-2.5 + rng.normal(size=n))
    return Drawn(wc.Bernoulli(p), p)


def _softmax(n: int, count: int, spread: float, rng: Generator) -> Drawn:
    p = special.softmax(spread * rng.normal(size=(n, count)), axis=1)
    return Drawn(wc.Categorical(p), p)


def ten_classes(n: int, rng: Generator) -> Drawn:
    return _softmax(n, 10, 1.5, rng)


def three_classes(n: int, rng: Generator) -> Drawn:
    return _softmax(n, 3, 1.2, rng)


def pairs(n: int, rng: Generator) -> Drawn:
    loc, scale = rng.normal(size=(n, 2)), np.exp(0.3 * rng.normal(size=(n, 2)))
    return Drawn(wc.DiagonalNormal(loc, scale), loc, scale)


def full_covariances(n: int, rng: Generator) -> Drawn:
    loc, root = rng.normal(size=(n, 3)), 0.5 * rng.normal(size=(n, 3, 3)) + np.eye(3)
    cov = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(3)
    return Drawn(wc.MultivariateNormal(loc, cov), loc, np.linalg.cholesky(cov))


def ensembles(n: int, rng: Generator) -> Drawn:
    loc, scale = _loc_scale(n, rng)
    draws = loc[:, None] + scale[:, None] * rng.normal(size=(n, DRAWS))
    return Drawn(wc.Samples(draws), loc, scale)


def mixtures(n: int, rng: Generator) -> Drawn:
    """Two normals, of which the second is 2.5 spreads higher and a little wider."""
    loc, scale = _loc_scale(n, rng)
    share = rng.uniform(0.2, 0.8, size=n)
    components = [wc.Normal(loc, scale), wc.Normal(loc + 2.5 * scale, 1.3 * scale)]
    return Drawn(wc.Mixture(components, np.stack([1.0 - share, share], axis=1)), loc, scale)


def quantiles(n: int, rng: Generator) -> Drawn:
    loc, scale = _loc_scale(n, rng)
    return Drawn(wc.Quantiles(LEVELS, loc[:, None] + scale[:, None] * special.ndtri(LEVELS)), loc, scale)


def normal_targets(drawn: Drawn, rng: Generator) -> Array:
    """Targets of a normal law whose draws or quantiles the predictions are."""
    return drawn.loc + drawn.scale * rng.normal(size=len(drawn.loc))


DESIGNS: dict[str, Design] = {
    design.name: design
    for design in (
        Design("normals", normals, NORMALS),
        Design("Laplace", laplaces, PIT),
        Design("Cauchy", cauchys, PIT),
        Design("Student t", students, PIT),
        Design("gamma", gammas, PIT),
        Design("Poisson", poissons, COUNTS, discrete=True),
        Design("negative binomial", negative_binomials, COUNTS, discrete=True),
        Design("binary", binary, BINARY, discrete=True),
        Design("rare binary", rare, BINARY, discrete=True),
        Design("ten classes", ten_classes, CLASSES, discrete=True),
        Design("three classes", three_classes, CLASSES, discrete=True),
        Design("pairs", pairs, PAIRS),
        Design("full covariances", full_covariances, VECTORS),
        Design("ensembles", ensembles, PIT, normal_targets),
        Design("mixtures", mixtures, PIT),
        Design("quantiles", quantiles, PIT, normal_targets, discrete=True),
    )
}
