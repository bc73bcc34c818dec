"""Closed forms of temperature scaling against powers of densities that are normalised numerically."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import wellcal as wc
from wellcal.recalibration import apply_temperature

TEMPERATURES = [0.4, 1.0, 2.7]


def lebesgue(x: Any) -> Any:
    return np.ones_like(np.asarray(x, float))


def beta_measure(x: Any) -> Any:
    return 1.0 / (x * (1.0 - x))


SCALARS: dict[str, tuple[Any, Any, Callable[[Any], Any], tuple[float, float], list[float]]] = {
    # predictions, an independent density, the reference measure, where to integrate, where to compare
    "Normal": (
        wc.Normal(np.array([0.7]), np.array([1.3])),
        stats.norm(0.7, 1.3),
        lebesgue,
        (-25.0, 25.0),
        [-2.0, 0.7, 1.0, 4.0],
    ),
    "Laplace": (
        wc.Laplace(np.array([0.7]), np.array([0.8])),
        stats.laplace(0.7, 0.8),
        lebesgue,
        (-90.0, 90.0),
        [-2.0, 0.7, 1.0, 4.0],
    ),
    "PowerExponential": (
        wc.PowerExponential(np.array([0.7]), np.array([1.3]), np.array([1.4])),
        stats.gennorm(1.4, 0.7, 1.3),
        lebesgue,
        (-60.0, 60.0),
        [-2.0, 0.7, 1.0, 4.0],
    ),
    "Beta": (
        wc.Beta(np.array([3.2]), np.array([4.1])),
        stats.beta(3.2, 4.1),
        beta_measure,
        (0.0, 1.0),
        [0.05, 0.3, 0.5, 0.9],
    ),
}


@pytest.mark.parametrize("T", TEMPERATURES)
@pytest.mark.parametrize("name", SCALARS)
def test_scalars(name: str, T: float) -> None:
    pred, density, measure, ends, places = SCALARS[name]

    def power(x: Any) -> Any:
        # (p / m)^(1/T) m: the power is one of the density with respect to the measure
        return (density.pdf(x) / measure(x)) ** (1.0 / T) * measure(x)

    points = [0.7] if ends[0] < 0 else None
    total, _ = integrate.quad(power, *ends, points=points, epsabs=0, epsrel=1e-12, limit=500)
    scaled = apply_temperature(pred, T)
    for x in places:
        found = np.exp(scaled.log_prob(np.array([x])))[0]
        assert found == pytest.approx(power(x) / total, rel=1e-9)


def test_the_measure_matters() -> None:
    """With respect to Lebesgue measure a Beta distribution would move: the two must be told apart."""
    density, T = stats.beta(3.2, 4.1), 2.7
    total, _ = integrate.quad(lambda x: density.pdf(x) ** (1.0 / T), 0.0, 1.0)
    scaled = apply_temperature(wc.Beta(np.array([3.2]), np.array([4.1])), T)
    assert abs(np.exp(scaled.log_prob(np.array([0.3])))[0] - density.pdf(0.3) ** (1.0 / T) / total) > 0.05


@pytest.mark.parametrize("T", TEMPERATURES)
def test_classes(T: float) -> None:
    probs = np.array([[0.1, 0.2, 0.7], [0.0, 0.5, 0.5], [1e-30, 0.25, 0.75]])
    expected = probs ** (1.0 / T)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        apply_temperature(wc.Categorical(probs), T).probs, expected, rtol=1e-13, atol=0
    )
    p = np.array([0.0, 1e-12, 0.3, 0.5, 0.9, 1.0])
    odd = p ** (1.0 / T) / (p ** (1.0 / T) + (1.0 - p) ** (1.0 / T))
    np.testing.assert_allclose(apply_temperature(wc.Bernoulli(p), T).probs, odd, rtol=1e-13, atol=0)


COV = np.array([[1.0, 0.4], [0.4, 0.7]])
LOC = np.array([0.3, -0.2])
PLACES = [LOC, np.array([1.0, 0.5]), np.array([-2.0, 1.5])]


def vector_power(shape: float, T: float) -> Callable[[Any], Any]:
    """exp(-q^(shape/2) / 2)^(1/T) for points ``(..., 2)``."""
    precision = np.linalg.inv(COV)

    def power(x: Any) -> Any:
        z = x - LOC
        return np.exp(-0.5 / T * np.einsum("...i,ij,...j", z, precision, z) ** (shape / 2))

    return power


@pytest.mark.parametrize("T", TEMPERATURES)
@pytest.mark.parametrize(
    ("pred", "shape", "tolerance"),
    [
        (wc.MultivariateNormal(LOC[None], COV[None]), 2.0, 1e-10),
        (wc.PowerExponential(LOC[None], shape=np.array([2.0]), cov=COV[None]), 2.0, 1e-10),
        (wc.PowerExponential(LOC[None], shape=np.array([3.0]), cov=COV[None]), 3.0, 1e-7),
        (wc.PowerExponential(LOC[None], shape=np.array([1.3]), cov=COV[None]), 1.3, 1e-5),
    ],
    ids=["MultivariateNormal", "shape 2", "shape 3", "shape 1.3"],
)
def test_vectors(pred: Any, shape: float, tolerance: float, T: float) -> None:
    power = vector_power(shape, T)
    side = np.linspace(-1.0, 1.0, 1201) * (30.0 if shape < 2 else 14.0)
    grid = np.stack(np.meshgrid(LOC[0] + side, LOC[1] + side, indexing="ij"), axis=-1)
    total = np.sum(power(grid)) * (side[1] - side[0]) ** 2
    scaled = apply_temperature(pred, T)
    for x in PLACES:
        assert np.exp(scaled.log_prob(x[None]))[0] == pytest.approx(power(x) / total, rel=tolerance)


@pytest.mark.parametrize("T", TEMPERATURES)
def test_independent_coordinates(T: float) -> None:
    loc, scale = np.array([[0.3, -0.2]]), np.array([[1.2, 0.4]])
    scaled = apply_temperature(wc.DiagonalNormal(loc, scale), T)
    for x in PLACES:
        power = np.prod(stats.norm(loc[0], scale[0]).pdf(x)) ** (1.0 / T)
        total = np.prod([np.sqrt(T) * (2 * np.pi * s**2) ** (0.5 - 0.5 / T) for s in scale[0]])
        assert np.exp(scaled.log_prob(x[None]))[0] == pytest.approx(power / total, rel=1e-12)


@pytest.mark.parametrize("T", TEMPERATURES)
def test_dirichlet(T: float) -> None:
    """The measure lives on the simplex: 1 / (x1 x2 x3) in the coordinates x1 and x2."""
    a = np.array([3.5, 4.0, 5.0])

    def power(x1: float, x2: float) -> float:
        x = np.array([x1, x2, 1.0 - x1 - x2])
        if np.any(x <= 0):
            return 0.0
        with_respect_to_measure = np.prod(x**a)  # density prod x^(a - 1), divided by prod x^-1
        return with_respect_to_measure ** (1.0 / T) / np.prod(x)

    nodes, weights = np.polynomial.legendre.leggauss(120)
    u, w = 0.5 * (nodes + 1.0), 0.5 * weights
    # (u, v) -> (u, (1 - u) v) maps the square to the triangle; the ends are smoothed by u = s^2 (3 - 2 s)
    s, ds = u**2 * (3.0 - 2.0 * u), 6.0 * u * (1.0 - u) * w
    total = sum(
        ds[i] * ds[j] * (1.0 - s[i]) * power(s[i], (1.0 - s[i]) * s[j])
        for i in range(len(s))
        for j in range(len(s))
    )
    scaled = apply_temperature(wc.Dirichlet(a[None]), T)
    for x in ([0.2, 0.3, 0.5], [0.05, 0.15, 0.8], [0.6, 0.3, 0.1]):
        found = np.exp(scaled.log_prob(np.array([x])))[0]
        assert found == pytest.approx(power(x[0], x[1]) / total, rel=1e-7)


def test_components_of_a_mixture_are_scaled_one_by_one() -> None:
    """A mixture of powers, and not the power of a mixture."""
    T, x = 2.7, np.array([0.4])
    mixture = wc.Mixture([wc.Normal(np.zeros(1), 1.0), wc.Laplace(np.ones(1), 0.5)], [0.3, 0.7])
    expected = 0.3 * stats.norm(0.0, np.sqrt(T)).pdf(0.4) + 0.7 * stats.laplace(1.0, 0.5 * T).pdf(0.4)
    assert np.exp(apply_temperature(mixture, T).log_prob(x))[0] == pytest.approx(expected, rel=1e-13)
    whole = mixture.log_prob(x)[0] / T
    total, _ = integrate.quad(
        lambda z: np.exp(mixture.log_prob(np.array([z]))[0] / T), -60, 60, points=[0, 1]
    )
    assert abs(expected - np.exp(whole) / total) > 1e-3
