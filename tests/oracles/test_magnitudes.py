"""Closed forms over all magnitudes of locations, scales, length scales and points.

Every value is finite and right, without a warning; what cannot be squared is refused at the door.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import wellcal as wc
from wellcal import kernels as k

SCALES = 10.0 ** np.array([-150, -100, -20, 0, 20, 100, 150])
PLACES = np.array(
    [0.0, *(sign * 10.0**e for e in (-300, -150, -20, 0, 20, 150, 160, 300) for sign in (1, -1))]
)
LOC, SCALE = (a.ravel() for a in np.meshgrid(PLACES, SCALES, indexing="ij"))
MODERATE = (SCALE < 1e141) & (SCALE > 1e-141)
SQUARES = SCALE[MODERATE, None, None] ** 2 * np.array([[1.0, 0.5], [0.5, 1.0]])


def both_ways(x: Any) -> Any:
    return np.stack([x, x[::-1]], axis=1)


PREDICTIONS: dict[str, Any] = {
    "Normal": wc.Normal(LOC, SCALE),
    "Laplace": wc.Laplace(LOC, SCALE),
    "points": wc.Samples(PLACES[:, None]),
    "DiagonalNormal": wc.DiagonalNormal(both_ways(LOC), both_ways(SCALE)),
    "MultivariateNormal": wc.MultivariateNormal(both_ways(LOC)[MODERATE], SQUARES),
    "points in the plane": wc.Samples(both_ways(PLACES)[:, None, :]),
}
POINTS = ("points", "points in the plane")
CLOSED: dict[str, tuple[Callable[[float], k.Kernel], tuple[str, ...]]] = {
    "Gaussian": (k.Gaussian, tuple(PREDICTIONS)),
    "Laplacian": (k.Laplacian, ("Normal", "Laplace", "points")),
    "Matern 3/2": (lambda scale: k.Matern(1.5, scale), POINTS),
    "Matern 2.2": (lambda scale: k.Matern(2.2, scale), POINTS),
    "RationalQuadratic": (lambda scale: k.RationalQuadratic(1.0, scale), POINTS),
}


@pytest.mark.parametrize("lengthscale", SCALES)
@pytest.mark.parametrize("name", CLOSED)
def test_values_are_finite_without_a_warning(name: str, lengthscale: float) -> None:
    make, families = CLOSED[name]
    kernel = make(lengthscale)
    for a, b in itertools.product(families, families):
        P, Q = PREDICTIONS[a], PREDICTIONS[b]
        if P.event_shape == Q.event_shape:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = wc.pairing(kernel, P, Q, expectations="closed")
            assert np.isfinite(found).all(), (a, b)
            assert found.min() >= 0.0, (a, b)
            assert found.max() <= 1.0 + 1e-13, (a, b)


# -- against many digits -----------------------------------------------------------------------


def exponential(x: Any) -> Any:
    return mp.mpf(0) if x < -1e5 else mp.exp(x)


def scaled_erfc(x: Any) -> Any:
    """``exp(x^2) erfc(x)`` for x >= 0; far out by its asymptotic series."""
    if x < 1e4:
        return mp.exp(x * x) * mp.erfc(x)
    series = mp.fsum((-1) ** n * mp.fac2(2 * n - 1) / (2 * x * x) ** n for n in range(8))
    return series / (x * mp.sqrt(mp.pi))


def expected_exponential(rate: Any, z: Any, variance: Any) -> Any:
    """E exp(-rate |D|), D ~ N(z, variance)."""
    if variance == 0:
        return exponential(-rate * z)
    rho, zeta = rate * mp.sqrt(variance / 2), z / mp.sqrt(2 * variance)
    total = mp.mpf(0)
    for x in (rho + zeta, rho - zeta):
        sign = 1 if x >= 0 else -1
        total += sign * exponential(-(zeta**2)) * scaled_erfc(abs(x))
        total += 0 if x >= 0 else 2 * exponential(rho**2 - 2 * rho * zeta)
    return total / 2


def by_two_rates(a: Any, b: Any, of: Callable[[Any], Any]) -> Any:
    """``(a f(b) - b f(a)) / (a - b)``; equal rates are moved apart by what does not count."""
    b = b * (1 + mp.mpf(10) ** -300) if a == b else b
    return (a * of(b) - b * of(a)) / (a - b)


def exact_value(kernel: str, a: str, b: str, at: tuple[float, ...]) -> Any:
    """The expectation in mpmath, from partial fractions: ``at`` has z, both scales and the length scale."""
    z, s, t, scale = map(mp.mpf, at)
    normal = {"Normal": 1, "points": 0}
    if kernel == "Gaussian" and a in normal and b in normal:
        total = scale**2 + normal[a] * s**2 + normal[b] * t**2
        return scale / mp.sqrt(total) * exponential(-(z**2) / (2 * total))
    if kernel == "Gaussian" and b in normal:
        variance = scale**2 + normal[b] * t**2
        return mp.sqrt(mp.pi / 2) * scale / s * expected_exponential(1 / s, z, variance)
    if kernel == "Gaussian":
        p, q = 1 / s, 1 / t
        f = by_two_rates(p, q, lambda r: expected_exponential(r, z, scale**2))
        return mp.sqrt(mp.pi / 2) * scale * p * q / (p + q) * f
    rate = 1 / scale
    if a in normal and b in normal:
        return expected_exponential(rate, z, normal[a] * s**2 + normal[b] * t**2)
    if b in normal:
        f = by_two_rates(1 / s, rate, lambda r: expected_exponential(r, z, normal[b] * t**2))
        return f / s / (1 / s + rate)
    rates = [1 / s, 1 / t * (1 + mp.mpf(10) ** -200), rate * (1 - mp.mpf(10) ** -200)]
    total = mp.mpf(0)
    for i, r in enumerate(rates):
        others = [x for j, x in enumerate(rates) if j != i]
        total += exponential(-r * z) / r / mp.fprod(x**2 - r**2 for x in others)
    return rates[2] * rates[0] ** 2 * rates[1] ** 2 / mp.mpf(1) * total


PAIRS = [
    ("Normal", "Normal"),
    ("Normal", "points"),
    ("Laplace", "points"),
    ("Laplace", "Normal"),
    ("Laplace", "Laplace"),
]


@pytest.mark.parametrize("kernel", ["Gaussian", "Laplacian"])
@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_values_are_right(kernel: str, pair: tuple[str, str]) -> None:
    P, Q = (PREDICTIONS[name] for name in pair)
    rng = np.random.default_rng(3)
    counted = 0
    for lengthscale in SCALES:
        found = wc.pairing(CLOSED[kernel][0](lengthscale), P, Q, expectations="closed")
        interesting = np.argwhere((found > 1e-140) & (found < 1.0 - 1e-9))
        chosen = [*rng.permutation(interesting)[:5], *rng.permutation(np.argwhere(found >= 0))[:3]]
        for i, j in chosen:
            x, s = LOC[i], SCALE[i]
            y, t = (PLACES[j], 0.0) if pair[1] == "points" else (LOC[j], SCALE[j])
            with mp.workdps(1500):
                z = abs(mp.mpf(float(x)) - mp.mpf(float(y)))
                exact = exact_value(kernel, *pair, (z, float(s), float(t), float(lengthscale)))
                error = abs(mp.mpf(float(found[i, j])) - exact)
                assert error <= 1e-12 * exact + mp.mpf(10) ** -140, (x, s, y, t, lengthscale)
            counted += exact > 1e-140
    assert counted >= 20


# -- at the door -------------------------------------------------------------------------------

REFUSED: dict[str, Callable[[], Any]] = {
    "scale": lambda: wc.Normal(np.zeros(2), np.array([1.0, 1e155])),
    "scale of Laplace": lambda: wc.Laplace(np.zeros(2), np.array([1.0, 1e155])),
    "scale that is too small": lambda: wc.Laplace(np.zeros(2), np.array([1.0, 1e-170])),
    "scale of vectors": lambda: wc.DiagonalNormal(np.zeros((2, 2)), np.full((2, 2), 1e200)),
    "cov": lambda: wc.MultivariateNormal(np.zeros((2, 2)), np.stack([np.eye(2), 1e300 * np.eye(2)])),
    "shape": lambda: wc.Gamma(np.array([1.0, 1e-300]), 1.0),
    "lengthscale": lambda: k.Gaussian(1e-170),
    "lengthscale of Laplacian": lambda: k.Laplacian(1e155),
    "lengthscale of a distance": lambda: k.ExpDistance(k.Wasserstein(), lengthscale=1e200),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_squared_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name.split()[0]} must .* between .*; change the unit"):
        REFUSED[name]()


@pytest.mark.parametrize("kernel", [k.Gaussian(2.0), k.Laplacian(2.0)], ids=repr)
@pytest.mark.parametrize("far", [1e100, 1e154, 1e160, 1e300])
def test_one_point_far_away_counts_for_nothing(kernel: Any, far: float) -> None:
    for pred in (wc.Normal(np.zeros(3), 1.0), wc.Laplace(np.zeros(3), 1.0)):
        near = wc.pairing(kernel, pred, np.array([0.3, 1.0]))
        found = wc.pairing(kernel, pred, np.array([0.3, far, 1.0]))
        np.testing.assert_array_equal(found[:, [0, 2]], near)
        np.testing.assert_array_equal(found[:, 1], 0.0)


# -- estimates ---------------------------------------------------------------------------------

Z = np.array([0.3, -1.2, 0.7, 0.1, 2.0, -0.4])
Y = np.array([0.5, -0.3, 0.2, 1.4, 0.9, -2.2])
SHAPES = np.array([1.0, 2.0, 3.0, 0.5, 0.7, 1.0])


def last(values: Any, size: float) -> Any:
    """The same with one entry of another size."""
    return np.concatenate([values[:-1], [size]])


ESTIMATES: dict[str, Callable[[float], tuple[Any, Any]]] = {
    "Normal in a unit": lambda s: (s * Y, wc.Normal(s * Z, np.full(6, s))),
    "Laplace in a unit": lambda s: (s * Y, wc.Laplace(s * Z, np.full(6, s))),
    "StudentT in a unit": lambda s: (s * Y, wc.StudentT(3.0, s * Z, np.full(6, s))),
    "Gamma in a unit": lambda s: (s * np.abs(Y), wc.Gamma(SHAPES, np.full(6, s))),
    "PowerExponential in a unit": lambda s: (s * Y, wc.PowerExponential(s * Z, np.full(6, s), 1.3)),
    "Samples in a unit": lambda s: (s * Y, wc.Samples(s * np.stack([Z, Y, -Z], axis=1), kind="atoms")),
    "Normal far from zero": lambda s: (s + Y, wc.Normal(s + Z, 1.0)),
    "a target, Normal": lambda s: (last(Y, s), wc.Normal(Z, 1.0)),
    "a target, Laplace": lambda s: (last(Y, s), wc.Laplace(Z, 1.0)),
    "a target, Gamma": lambda s: (last(np.abs(Y), s), wc.Gamma(SHAPES, 1.0)),
    "a location, Normal": lambda s: (Y, wc.Normal(last(Z, s), 1.0)),
    "a location, Laplace": lambda s: (Y, wc.Laplace(last(Z, s), 1.0)),
    "a sample": lambda s: (Y, wc.Samples(np.stack([Z, Y, np.full(6, s)], axis=1), kind="atoms")),
    "a scale, Normal": lambda s: (Y, wc.Normal(Z, last(np.ones(6), s))),
    "a scale, Laplace": lambda s: (Y, wc.Laplace(Z, last(np.ones(6), s))),
    "a shape, Gamma": lambda s: (np.abs(Y), wc.Gamma(last(SHAPES, s), 1.0)),
    "a shape, Beta": lambda s: (np.full(6, 0.3), wc.Beta(last(SHAPES, s), 1.0)),
    "a shape, PowerExponential": lambda s: (Y, wc.PowerExponential(Z, 1.0, last(SHAPES, s))),
    "df": lambda s: (Y, wc.StudentT(last(SHAPES, s), Z, 1.0)),
    "mu": lambda s: (np.abs(Y), wc.LogNormal(last(Z, s), 1.0)),
    "sigma": lambda s: (np.abs(Y), wc.LogNormal(Z, last(np.ones(6), s))),
    "rate": lambda s: (np.arange(6.0), wc.Poisson(last(SHAPES, s))),
    "rates": lambda s: (np.arange(300.0), wc.Poisson(s * np.linspace(1.0, 2.0, 300))),
    "means": lambda s: (np.arange(300.0), wc.NegativeBinomial(s * np.linspace(1.0, 2.0, 300), 5.0)),
    "concentration": lambda s: (np.full((6, 2), 0.5), wc.Dirichlet(np.full((6, 2), s))),
}


def ending(name: str, size: float) -> Any:
    """The estimate, or what was said against its parameters."""
    try:
        y, pred = ESTIMATES[name](size)
        return wc.skce(y, pred, expectations=wc.Lowering(nodes=32, points=16))
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("name", ESTIMATES)
def test_estimates_are_finite_or_refused(name: str) -> None:
    accepted = 0
    for exponent in (-300, -160, -150, -60, 60, 150, 160, 300):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = ending(name, 10.0**exponent)
        if isinstance(found, str):
            assert "change the unit" in found, exponent
        else:
            assert np.isfinite(float(found)), exponent
            assert np.isfinite(found.standard_error), exponent
            if name.endswith("in a unit"):
                # Of quadrature at 1e150, far nodes are cut off: their squares would overflow.
                assert float(found) == pytest.approx(float(ending(name, 1.0)), rel=1e-4), exponent
            accepted += 1
    assert accepted >= 4
