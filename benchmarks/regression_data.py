"""Data of the regression table: one small batch of every family, with targets that it does not predict well.

Arrays and targets come from NumPy alone, never from a family's own sampler, so that a change of a sampler
shows in the rows that use it and nowhere else. Errors of the predictions are large: an estimate near zero
would have few correct digits to compare.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import wellcal as wc

Data = tuple[Any, Any]
"""Targets and predictions."""

CASES = 37  # neither a square nor a multiple of a block
FEW = 6  # for families whose expectations are slow
DIMENSION = 2


def generator(name: str) -> np.random.Generator:
    """A generator that belongs to a name: another batch does not change this one."""
    return np.random.default_rng(list(name.encode()))


def probabilities(rng: np.random.Generator, n: int, classes: int) -> Any:
    """Class probabilities ``(n, classes)``."""
    weights = np.exp(rng.normal(size=(n, classes)))
    return weights / weights.sum(axis=1, keepdims=True)


def labels(rng: np.random.Generator, probs: Any) -> Any:
    """One class for each row of probabilities, up to a factor, ``(n, classes)``."""
    edges = np.cumsum(probs, axis=1)
    return np.sum(edges < rng.random((len(probs), 1)) * edges[:, -1:], axis=1)


def wrong_labels(rng: np.random.Generator, probs: Any) -> Any:
    """Classes drawn from the probabilities of the class before, and the last class for the first."""
    return labels(rng, np.roll(probs, 1, axis=1))


def covariances(rng: np.random.Generator, n: int) -> Any:
    """Covariance matrices ``(n, d, d)`` that do not commute."""
    root = np.eye(DIMENSION) + 0.4 * rng.normal(size=(n, DIMENSION, DIMENSION))
    return root @ np.swapaxes(root, 1, 2) + 0.2 * np.eye(DIMENSION)


# -- classes and counts --------------------------------------------------------------------------


def bernoulli(rng: np.random.Generator) -> Data:
    p = rng.uniform(0.1, 0.9, CASES)
    return (rng.random(CASES) < p**2).astype(int), wc.Bernoulli(p)


def categorical(rng: np.random.Generator) -> Data:
    probs = probabilities(rng, CASES, 4)
    return wrong_labels(rng, probs), wc.Categorical(probs)


def categorical_classes(rng: np.random.Generator) -> Data:
    probs, names = probabilities(rng, CASES, 3), np.array(["ash", "birch", "cedar"])
    return names[wrong_labels(rng, probs)], wc.Categorical(probs, classes=list(names))


def categorical_support(rng: np.random.Generator) -> Data:
    probs, support = probabilities(rng, CASES, 4), np.array([0.5, 1.0, 2.0, 4.0])
    return support[wrong_labels(rng, probs)], wc.Categorical(probs, support=support)


def poisson(rng: np.random.Generator) -> Data:
    rate = rng.uniform(0.5, 6.0, CASES)
    return rng.poisson(1.5 * rate), wc.Poisson(rate)


def negative_binomial(rng: np.random.Generator) -> Data:
    mean, dispersion = rng.uniform(1.0, 6.0, CASES), rng.uniform(0.1, 0.8, CASES)
    return rng.poisson(1.5 * mean), wc.NegativeBinomial(mean, dispersion)


# -- numbers -------------------------------------------------------------------------------------


def located(rng: np.random.Generator, n: int = CASES) -> tuple[Any, Any, Any]:
    """Targets, locations and scales: targets lie higher and are more spread out than predicted."""
    loc, scale = rng.normal(size=n), rng.uniform(0.5, 1.5, n)
    return loc + scale * (1.0 + 1.2 * rng.normal(size=n)), loc, scale


def normal(rng: np.random.Generator) -> Data:
    y, loc, scale = located(rng)
    return y, wc.Normal(loc, scale)


def laplace(rng: np.random.Generator) -> Data:
    y, loc, scale = located(rng)
    return y, wc.Laplace(loc, scale)


def student_t(rng: np.random.Generator) -> Data:
    y, loc, scale = located(rng)
    return y, wc.StudentT(rng.uniform(2.5, 9.0, CASES), loc, scale)


def power_exponential(rng: np.random.Generator) -> Data:
    y, loc, scale = located(rng)
    return y, wc.PowerExponential(loc, scale, rng.uniform(1.2, 4.0, CASES))


def gamma(rng: np.random.Generator) -> Data:
    shape, scale = rng.uniform(1.0, 5.0, CASES), rng.uniform(0.5, 1.5, CASES)
    return 1.4 * scale * shape * rng.uniform(0.3, 1.8, CASES), wc.Gamma(shape, scale)


def log_normal(rng: np.random.Generator) -> Data:
    mu, sigma = 0.5 * rng.normal(size=CASES), rng.uniform(0.3, 0.8, CASES)
    return np.exp(mu + sigma * (1.0 + rng.normal(size=CASES))), wc.LogNormal(mu, sigma)


def beta(rng: np.random.Generator) -> Data:
    a, b = rng.uniform(1.2, 5.0, CASES), rng.uniform(1.2, 5.0, CASES)
    return rng.uniform(0.2, 1.0, CASES) * (1.0 - 1e-3), wc.Beta(a, b)


def quantiles(rng: np.random.Generator) -> Data:
    y, loc, scale = located(rng)
    levels = np.array([0.1, 0.35, 0.6, 0.85])
    return y, wc.Quantiles(levels, loc[:, None] + scale[:, None] * np.array([-1.3, -0.4, 0.3, 1.1]))


# -- vectors -------------------------------------------------------------------------------------


def vectors(rng: np.random.Generator, n: int = CASES) -> tuple[Any, Any]:
    """Targets and locations ``(n, d)``, the targets lying higher."""
    loc = rng.normal(size=(n, DIMENSION))
    return loc + 0.9 + 1.1 * rng.normal(size=(n, DIMENSION)), loc


def diagonal_normal(rng: np.random.Generator) -> Data:
    y, loc = vectors(rng)
    return y, wc.DiagonalNormal(loc, rng.uniform(0.5, 1.5, loc.shape))


def multivariate_normal(rng: np.random.Generator) -> Data:
    y, loc = vectors(rng)
    return y, wc.MultivariateNormal(loc, covariances(rng, CASES))


def power_exponential_vectors(rng: np.random.Generator) -> Data:
    y, loc = vectors(rng, FEW)
    return y, wc.PowerExponential(loc, shape=rng.uniform(1.2, 3.0, FEW), cov=covariances(rng, FEW))


def dirichlet(rng: np.random.Generator) -> Data:
    return probabilities(rng, FEW, 3), wc.Dirichlet(rng.uniform(1.0, 5.0, (FEW, 3)))


# -- mixtures and samples ------------------------------------------------------------------------


def mixture_of_normals(rng: np.random.Generator) -> Data:
    y, loc, scale = located(rng)
    parts = [wc.Normal(loc, scale), wc.Normal(loc - 1.0, 0.5 * scale)]
    return y, wc.Mixture(parts, weights=probabilities(rng, CASES, 2))


def mixture_of_laplaces(rng: np.random.Generator) -> Data:
    y, loc, scale = located(rng)
    return y, wc.Mixture([wc.Laplace(loc, scale), wc.Laplace(loc + 1.0, 0.7 * scale)])


def mixture_of_two_families(rng: np.random.Generator) -> Data:
    """Both in closed form."""
    y, loc, scale = located(rng)
    return y, wc.Mixture([wc.Normal(loc, scale), wc.Laplace(loc - 0.5, scale)], weights=np.array([0.6, 0.4]))


def mixture_with_atoms(rng: np.random.Generator) -> Data:
    """One in closed form, and one that is lowered."""
    y, loc, scale = located(rng, FEW)
    parts = [wc.Normal(loc, scale), wc.StudentT(np.full(FEW, 4.0), loc - 0.5, scale)]
    return y, wc.Mixture(parts, weights=np.array([0.6, 0.4]))


def mixture_of_vectors(rng: np.random.Generator) -> Data:
    y, loc = vectors(rng)
    scale = rng.uniform(0.5, 1.5, loc.shape)
    parts = [wc.DiagonalNormal(loc, scale), wc.MultivariateNormal(loc - 0.5, covariances(rng, CASES))]
    return y, wc.Mixture(parts, weights=np.array([0.6, 0.4]))


def mixture_of_classes(rng: np.random.Generator) -> Data:
    first, second = probabilities(rng, CASES, 3), probabilities(rng, CASES, 3)
    return wrong_labels(rng, first), wc.Mixture([wc.Categorical(first), wc.Categorical(second)])


def mixture_of_counts(rng: np.random.Generator) -> Data:
    rate = rng.uniform(0.5, 6.0, CASES)
    parts = [wc.Poisson(rate), wc.NegativeBinomial(rate + 1.0, np.full(CASES, 0.5))]
    return rng.poisson(1.5 * rate), wc.Mixture(parts, weights=np.array([0.7, 0.3]))


def draws(rng: np.random.Generator) -> Data:
    y, loc, scale = located(rng)
    return y, wc.Samples(loc[:, None] + scale[:, None] * rng.normal(size=(CASES, 9)))


def draws_of_vectors(rng: np.random.Generator) -> Data:
    y, loc = vectors(rng)
    return y, wc.Samples(loc[:, None, :] + rng.normal(size=(CASES, 7, DIMENSION)))


def atoms(rng: np.random.Generator) -> Data:
    y, loc, scale = located(rng)
    values = loc[:, None] + scale[:, None] * rng.normal(size=(CASES, 6))
    return y, wc.Samples(values, kind="atoms")


def atoms_of_vectors(rng: np.random.Generator) -> Data:
    y, loc = vectors(rng)
    values = loc[:, None, :] + rng.normal(size=(CASES, 5, DIMENSION))
    return y, wc.Samples(values, weights=probabilities(rng, CASES, 5), kind="atoms")


MAKERS: dict[str, Callable[[np.random.Generator], Data]] = {
    "Bernoulli": bernoulli,
    "Categorical": categorical,
    "Categorical, classes": categorical_classes,
    "Categorical, support": categorical_support,
    "Poisson": poisson,
    "NegativeBinomial": negative_binomial,
    "Normal": normal,
    "Laplace": laplace,
    "StudentT": student_t,
    "PowerExponential": power_exponential,
    "Gamma": gamma,
    "LogNormal": log_normal,
    "Beta": beta,
    "Quantiles": quantiles,
    "DiagonalNormal": diagonal_normal,
    "MultivariateNormal": multivariate_normal,
    "PowerExponential, vectors": power_exponential_vectors,
    "Dirichlet": dirichlet,
    "Mixture of normals": mixture_of_normals,
    "Mixture of Laplaces": mixture_of_laplaces,
    "Mixture of Normal and Laplace": mixture_of_two_families,
    "Mixture of Normal and StudentT": mixture_with_atoms,
    "Mixture of vectors": mixture_of_vectors,
    "Mixture of classes": mixture_of_classes,
    "Mixture of counts": mixture_of_counts,
    "Samples, draws": draws,
    "Samples, draws of vectors": draws_of_vectors,
    "Samples, atoms": atoms,
    "Samples, weighted atoms of vectors": atoms_of_vectors,
}

CLASSES = [
    "Bernoulli",
    "Categorical",
    "Categorical, classes",
    "Categorical, support",
    "Poisson",
    "NegativeBinomial",
    "Mixture of classes",
    "Mixture of counts",
]
VECTORS = [
    "DiagonalNormal",
    "MultivariateNormal",
    "PowerExponential, vectors",
    "Dirichlet",
    "Mixture of vectors",
    "Samples, draws of vectors",
    "Samples, weighted atoms of vectors",
]
NUMBERS = [name for name in MAKERS if name not in CLASSES + VECTORS]


def data(name: str) -> Data:
    """Targets and predictions of a family by its name above, made anew: nothing is remembered for them."""
    return MAKERS[name](generator(name))


def too_certain() -> Data:
    """Classes with a remedy by temperature: labels drawn from flatter probabilities."""
    rng = generator("too certain")
    probs = probabilities(rng, CASES, 3)
    return labels(rng, np.sqrt(probs)), wc.Categorical(probs)


def case_weights() -> Any:
    """Weights of cases, one of them zero."""
    weights = generator("weights").uniform(0.2, 2.0, CASES)
    weights[5] = 0.0
    return weights
