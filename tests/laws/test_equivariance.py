"""Units do not matter: rescaling and shifting targets and predictions leaves the default SKCE alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import wellcal as wc
from wellcal.kernels import paper_kernel
from wellcal.problem.problem import prepare

N = 30
Make = Callable[[np.random.Generator, float, float], Any]
"""Predictions in units where x became scale * x + shift; numbers are drawn in the same order each time."""


def numbers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=(N, *shape))


def spreads(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.uniform(0.3, 2.0, (N, *shape))


def covariances(rng: np.random.Generator) -> np.ndarray:
    root = numbers(rng, 2, 2)
    return root @ np.swapaxes(root, 1, 2) + 0.1 * np.eye(2)


def normal(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.Normal(a * numbers(rng) + b, a * spreads(rng))


def laplace(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.Laplace(a * numbers(rng) + b, a * spreads(rng))


def student_t(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.StudentT(3.0 + 5.0 * spreads(rng), a * numbers(rng) + b, a * spreads(rng))


def power_exponential(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.PowerExponential(a * numbers(rng) + b, a * spreads(rng), 1.0 + spreads(rng))


def diagonal_normal(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.DiagonalNormal(a * numbers(rng, 3) + b, a * spreads(rng, 3))


def multivariate_normal(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.MultivariateNormal(a * numbers(rng, 2) + b, a**2 * covariances(rng))


def elliptical(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.PowerExponential(a * numbers(rng, 2) + b, shape=1.0 + spreads(rng), cov=a**2 * covariances(rng))


def draws(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.Samples(a * numbers(rng, 7) + b)


def many_draws(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.Samples(a * numbers(rng, 50) + b)


def atoms(rng: np.random.Generator, a: float, b: float) -> Any:
    values, weights = numbers(rng, 5), rng.dirichlet(np.ones(5), N)
    return wc.Samples(a * values + b, weights=weights, kind="atoms")


def vector_draws(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.Samples(a * numbers(rng, 6, 3) + b)


def support(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.Categorical(rng.dirichlet(np.ones(4), N), support=a * np.array([0.0, 1.0, 2.5, 7.0]) + b)


def vector_support(rng: np.random.Generator, a: float, b: float) -> Any:
    values = np.array([[0.0, 1.0], [2.0, 2.5], [7.0, -1.0]])
    return wc.Categorical(rng.dirichlet(np.ones(3), N), support=a * values + b)


def quantiles(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.Quantiles([0.1, 0.5, 0.9], a * np.sort(numbers(rng, 3), axis=1) + b)


def mixture(rng: np.random.Generator, a: float, b: float) -> Any:
    members = [normal(rng, a, b), laplace(rng, a, b), draws(rng, a, b)]
    return wc.Mixture(members, rng.dirichlet(np.ones(3), N))


def mixture_of_laplace(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.Mixture([laplace(rng, a, b), laplace(rng, a, b)])


def mixture_of_vectors(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.Mixture([multivariate_normal(rng, a, b), multivariate_normal(rng, a, b)])


def large_mixture(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.Mixture([normal(rng, a, b) for _ in range(6)])


def mixture_with_a_lowered_family(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.Mixture([normal(rng, a, b), student_t(rng, a, b)])


def mixture_with_support(rng: np.random.Generator, a: float, b: float) -> Any:
    return wc.Mixture([normal(rng, a, b), support(rng, a, b)])


FAST: list[Make] = [
    normal,
    laplace,
    diagonal_normal,
    multivariate_normal,
    draws,
    many_draws,
    atoms,
    vector_draws,
    support,
    vector_support,
    quantiles,
    mixture,
    mixture_of_laplace,
    mixture_of_vectors,
    large_mixture,
    mixture_with_support,
]
SLOW: list[Make] = [student_t, power_exponential, elliptical, mixture_with_a_lowered_family]


def targets(make: Make, seed: int, a: float, b: float) -> Any:
    """Twice as spread as the predictions say, or some value of the support, in the same units."""
    rng = np.random.default_rng(seed + 1000)
    predictions = make(np.random.default_rng(seed), 1.0, 0.0)
    if isinstance(predictions, wc.Categorical):
        index = rng.integers(predictions.probs.shape[1], size=N)
        return make(np.random.default_rng(seed), a, b).support[index]
    return a * (2.0 * rng.normal(size=(N, *predictions.event_shape))) + b


def check(make: Make, seed: int, a: float, b: float) -> None:
    plain = make(np.random.default_rng(seed), 1.0, 0.0)
    moved = make(np.random.default_rng(seed), a, b)
    y, z = targets(make, seed, 1.0, 0.0), targets(make, seed, a, b)
    problem = prepare(y, plain)
    size = float(np.abs(problem.h(problem.rows, problem.rows)).mean())
    estimator = "unbiased" if make in SLOW else "biased"  # which has the diagonal as well
    before = wc.skce(y, plain, estimator=estimator).value
    after = wc.skce(z, moved, estimator=estimator).value
    assert abs(after - before) < 1e-10 * size, (before, after, size)


@pytest.mark.parametrize("make", FAST + SLOW, ids=lambda f: f.__name__)
def test_metres_and_millimetres(make: Make) -> None:
    check(make, 0, 1000.0, 5.0)


@pytest.mark.parametrize("make", FAST, ids=lambda f: f.__name__)
@given(seed=st.integers(0, 10_000), power=st.floats(-3.0, 3.0), shift=st.floats(-10.0, 10.0))
@example(seed=0, power=-3.0, shift=0.5)
@settings(max_examples=2, deadline=None)
def test_any_unit(make: Make, seed: int, power: float, shift: float) -> None:
    scale = 10.0**power
    check(make, seed, scale, shift * scale)


def test_fixed_scales_are_not_equivariant() -> None:
    """The law can fail: with the paper's unit length scales the error depends on the unit."""
    rng = np.random.default_rng(0)
    mu, sigma = numbers(rng), spreads(rng)
    y = 2.0 * numbers(rng)
    metres = wc.skce(y, wc.Normal(mu, sigma), kernel=paper_kernel).value
    millimetres = wc.skce(1000 * y, wc.Normal(1000 * mu, 1000 * sigma), kernel=paper_kernel).value
    assert abs(metres - millimetres) > 1e-3
