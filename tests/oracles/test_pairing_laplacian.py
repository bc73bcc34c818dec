"""Pairings of the Laplacian kernel: that every pair of families reaches the right expectation.

The expectations themselves are tested in test_exponentials; here it is which scale goes where.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad

import wellcal as wc
from wellcal.kernels import Laplacian

RELATIVE_ERROR = 1e-12
SMALLEST = 1e-290
SPLIT = mp.mpf(10) ** -30


@pytest.fixture(autouse=True)
def hundred_digits() -> Iterator[None]:
    with mp.workdps(100):
        yield


# -- oracles: the kernel is a Laplace density, so everything is a density of a sum at a point ---------------


def distinct(*scales: Any) -> list[Any]:
    """The scales, equal ones moved apart by 1e-30 relative."""
    result: list[Any] = []
    for scale in scales:
        while scale in result:
            scale = scale * (1 + SPLIT)
        result.append(scale)
    return result


def laplace_sum_density(z: Any, scales: list[Any], variance: Any) -> Any:
    """Density at z of a sum of independent Laplace variables and a normal one, all centred.

    The characteristic function is exp(-v t^2 / 2) prod 1 / (1 + b^2 t^2); partial fractions leave one
    Laplace variable plus the normal, whose density is two error functions.
    """
    scales = distinct(*scales)
    total = mp.mpf(0)
    for b in scales:
        weight = mp.fprod(b * b / (b * b - c * c) for c in scales if c != b)
        total += weight * laplace_normal_density(abs(z), b, variance)
    return total


def laplace_normal_density(z: Any, b: Any, variance: Any) -> Any:
    if variance == 0:
        return mp.exp(-z / b) / (2 * b)
    root = mp.sqrt(2 * variance)
    near = mp.exp(-z / b) * mp.erfc((variance / b - z) / root)
    far = mp.exp(z / b) * mp.erfc((variance / b + z) / root)
    return mp.exp(variance / (2 * b * b)) * (near + far) / (4 * b)


def oracle(lengthscale: Any, difference: Any, scales: list[Any], variance: Any) -> Any:
    """E exp(-|Z - Z'| / l) where Z - Z' is a difference, Laplace variables and a normal one."""
    return 2 * lengthscale * laplace_sum_density(difference, [lengthscale, *scales], variance)


@pytest.mark.parametrize("b", [0.75, 1.5])
def test_oracle_is_the_integral(b: float) -> None:
    """A Laplace and a normal variable under a kernel of scale 1.5, which coincides with one of the scales."""
    z, v, lengthscale = 1.25, 0.5, 1.5

    def kernel_mean(x: float) -> float:
        def integrand(y: float) -> float:
            return math.exp(-((y - x) ** 2) / (2 * v) - abs(y) / lengthscale) / math.sqrt(2 * math.pi * v)

        breaks = sorted({x - 6.0, min(max(0.0, x - 6.0), x + 6.0), x + 6.0})
        return sum(quad(integrand, *ends, epsabs=1e-13)[0] for ends in itertools.pairwise(breaks))

    def outer(x: float) -> float:
        return math.exp(-abs(x - z) / b) / (2 * b) * kernel_mean(x)

    breaks = [z - 35.0, -5.0, 0.0, z, 6.0, z + 35.0]
    integral = sum(quad(outer, *ends, epsabs=1e-12)[0] for ends in itertools.pairwise(breaks))
    exact = oracle(mp.mpf(lengthscale), mp.mpf(z), [mp.mpf(b)], mp.mpf(v))
    assert abs(integral / float(exact) - 1) < 1e-9


# -- families ----------------------------------------------------------------------------------------------


def number(x: Any) -> Any:
    return mp.mpf(float(x))


def assert_relative(values: np.ndarray, exact: Callable[[int, int], Any], needed: int) -> None:
    worst, where, count = 0.0, (0, 0), 0
    for i, j in itertools.product(*map(range, values.shape)):
        wanted = exact(i, j)
        if wanted > SMALLEST:
            count += 1
            error = float(abs(number(values[i, j]) / wanted - 1))
            if not error <= worst:
                worst, where = error, (i, j)
    assert count >= needed
    assert worst < RELATIVE_ERROR, f"relative error {worst:.1e} at {where}: {values[where]!r}"


def grid(lengthscale: float) -> tuple[np.ndarray, np.ndarray]:
    """Locations up to 30 scales apart; scales that include the length scale, and values close to it."""
    near = [lengthscale * (1 + e) for e in (0.0, 1e-15, -1e-9, 1e-4)]
    scales = [1e-3, 0.5, 40.0, 1e3, *near]
    pairs = [(t * s, s) for s, t in itertools.product(scales, (0.0, 0.8, 30.0))]
    loc, scale = np.array(pairs).T.copy()
    return loc, scale


def laplace(i: int, scale: np.ndarray) -> tuple[list[Any], Any]:
    return [number(scale[i])], mp.mpf(0)


def normal(i: int, scale: np.ndarray) -> tuple[list[Any], Any]:
    return [], number(scale[i]) ** 2


PARTS = {wc.Laplace: laplace, wc.Normal: normal}
LENGTHSCALES = pytest.mark.parametrize("lengthscale", [1e-3, 0.8, 1e3])


@LENGTHSCALES
@pytest.mark.parametrize("right", [wc.Laplace, wc.Normal])
@pytest.mark.parametrize("left", [wc.Laplace, wc.Normal])
def test_two_predictions(left: Any, right: Any, lengthscale: float) -> None:
    loc, scale = grid(lengthscale)
    few = slice(None, None, 2)
    x, s = loc[few], scale[few]
    values = wc.pairing(Laplacian(lengthscale), left(x, s), right(loc, scale), expectations="closed")

    def exact(i: int, j: int) -> Any:
        scales_a, variance_a = PARTS[left](i, s)
        scales_b, variance_b = PARTS[right](j, scale)
        difference = number(x[i]) - number(loc[j])
        return oracle(number(lengthscale), difference, [*scales_a, *scales_b], variance_a + variance_b)

    assert_relative(values, exact, 150)


@LENGTHSCALES
@pytest.mark.parametrize("family", [wc.Laplace, wc.Normal])
def test_prediction_and_target(family: Any, lengthscale: float) -> None:
    loc, scale = grid(lengthscale)
    y = np.unique(loc)
    values = wc.pairing(Laplacian(lengthscale), family(loc, scale), y, expectations="closed")

    def exact(i: int, j: int) -> Any:
        scales, variance = PARTS[family](i, scale)
        return oracle(number(lengthscale), number(loc[i]) - number(y[j]), scales, variance)

    assert_relative(values, exact, 150)


def test_normal_without_spread_is_a_target() -> None:
    x, s = np.array([0.0, 1.0, -2.0]), np.array([0.0, 0.5, 2.0])
    y = np.array([0.3, -1.0, 0.0])
    certain = wc.Normal(y, np.zeros(3))
    for P in (wc.Normal(x, s), wc.Laplace(x, s + 0.1)):
        targets = wc.pairing(Laplacian(0.7), P, y)
        np.testing.assert_allclose(wc.pairing(Laplacian(0.7), P, certain), targets, rtol=1e-14)
        np.testing.assert_allclose(wc.pairing(Laplacian(0.7), certain, P).T, targets, rtol=1e-14)
    kernel = np.exp(-np.abs(y[:, None] - y[None, :]) / 0.7)
    np.testing.assert_allclose(wc.pairing(Laplacian(0.7), certain, certain), kernel, rtol=1e-15)


def test_far_from_the_origin() -> None:
    x, s = 1e6 + np.array([0.0, 0.5, 2.0]), np.array([0.5, 1.0, 0.3])
    for left, right in itertools.product((wc.Laplace, wc.Normal), repeat=2):
        values = wc.pairing(Laplacian(0.5), left(x, s), right(x, s))

        def exact(i: int, j: int, left: Any = left, right: Any = right) -> Any:
            (scales_a, variance_a), (scales_b, variance_b) = PARTS[left](i, s), PARTS[right](j, s)
            return oracle(
                number(0.5), number(x[i]) - number(x[j]), [*scales_a, *scales_b], variance_a + variance_b
            )

        assert_relative(values, exact, 9)


def test_vectors_have_no_closed_form() -> None:
    """Coordinates of the Euclidean norm do not separate: expectations are numerical there."""
    P = wc.DiagonalNormal(np.zeros((2, 2)), np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"no closed form of Laplacian.* for DiagonalNormal"):
        wc.pairing(Laplacian(), P, P, expectations="closed")
