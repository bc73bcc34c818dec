"""Pairings of the Gaussian kernel with normal and Laplace predictions against 100-digit arithmetic."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import wellcal as wc
from wellcal.kernels import Gaussian

RELATIVE_ERROR = 1e-12
SMALLEST = 1e-290
SPLIT = mp.mpf(10) ** -30


@pytest.fixture(autouse=True)
def hundred_digits() -> Iterator[None]:
    with mp.workdps(100):
        yield


@pytest.fixture
def fifty_digits() -> Iterator[None]:
    with mp.workdps(50):
        yield


# -- oracles -----------------------------------------------------------------------------------------------


def number(x: Any) -> Any:
    return mp.mpf(float(x))


def differences(x: np.ndarray, y: np.ndarray) -> list[Any]:
    return [number(a) - number(b) for a, b in zip(x, y, strict=True)]


def oracle_normal(lengthscale: Any, difference: Any, variance: Any) -> Any:
    """One coordinate: a point is a normal of variance 0."""
    total = lengthscale**2 + variance
    return lengthscale / mp.sqrt(total) * mp.exp(-(difference**2) / (2 * total))


def oracle_full_normal(lengthscale: Any, difference: list[Any], covariance: Any) -> Any:
    d = len(difference)
    total = covariance + lengthscale**2 * mp.eye(d)
    x = mp.matrix(difference)
    quadratic = (x.T * mp.lu_solve(total, x))[0]
    return lengthscale**d / mp.sqrt(mp.det(total)) * mp.exp(-quadratic / 2)


def oracle_laplace_normal(lengthscale: Any, difference: Any, scale: Any, variance: Any) -> Any:
    """Laplace against a normal: completing the square on either side of the kink."""
    s = lengthscale**2 + variance
    d = abs(difference)

    def side(sign: int) -> Any:
        return mp.exp(s / (2 * scale**2) - sign * d / scale) * mp.erfc(
            (s / scale - sign * d) / mp.sqrt(2 * s)
        )

    return lengthscale * mp.sqrt(mp.pi / 2) / (2 * scale) * (side(1) + side(-1))


def oracle_laplace_laplace(lengthscale: Any, difference: Any, a: Any, b: Any) -> Any:
    """Partial fractions of 1 / ((1 + a^2 t^2) (1 + b^2 t^2)); equal scales are moved apart."""
    if a == b:
        b = b * (1 + SPLIT)
    at_a = oracle_laplace_normal(lengthscale, difference, a, mp.mpf(0))
    at_b = oracle_laplace_normal(lengthscale, difference, b, mp.mpf(0))
    return (a * a * at_a - b * b * at_b) / (a * a - b * b)


def normal_density(x: Any, loc: Any, variance: Any) -> Any:
    return mp.exp(-((x - loc) ** 2) / (2 * variance)) / mp.sqrt(2 * mp.pi * variance)


def laplace_density(x: Any, loc: Any, scale: Any) -> Any:
    return mp.exp(-abs(x - loc) / scale) / (2 * scale)


def gaussian(x: Any, lengthscale: Any) -> Any:
    return mp.exp(-(x**2) / (2 * lengthscale**2))


@pytest.mark.parametrize(("lengthscale", "difference", "variance"), [(0.5, 1.25, 2.0), (2.0, 3.0, 0.25)])
def test_oracle_normal_is_the_integral(lengthscale: float, difference: float, variance: float) -> None:
    with mp.workdps(25):
        integral = mp.quad(
            lambda x: normal_density(x, difference, variance) * gaussian(x, lengthscale),
            [-30, -2, 0, difference, 6, 30],
        )
        oracle = oracle_normal(mp.mpf(lengthscale), mp.mpf(difference), mp.mpf(variance))
    assert float(abs(integral / oracle - 1)) < 1e-18


def test_oracle_full_normal_is_the_integral() -> None:
    """In two dimensions, by integrating the conditional normal in closed form."""
    covariance, difference, lengthscale = mp.matrix([[2, 1], [1, 3]]), [mp.mpf(1), mp.mpf(-2)], mp.mpf(1.5)
    with mp.workdps(25):
        conditional = covariance[1, 1] - covariance[0, 1] ** 2 / covariance[0, 0]

        def given_first(x: Any) -> Any:
            shift = difference[1] + covariance[0, 1] / covariance[0, 0] * (x - difference[0])
            return oracle_normal(lengthscale, shift, conditional) * gaussian(x, lengthscale)

        integral = mp.quad(
            lambda x: normal_density(x, difference[0], covariance[0, 0]) * given_first(x), [-25, -3, 0, 3, 25]
        )
        oracle = oracle_full_normal(lengthscale, difference, covariance)
    assert float(abs(integral / oracle - 1)) < 1e-18


@pytest.mark.parametrize(("lengthscale", "scale", "variance"), [(0.5, 1.5, 0.0), (2.0, 0.75, 1.5)])
def test_oracle_laplace_normal_is_the_integral(lengthscale: float, scale: float, variance: float) -> None:
    z = mp.mpf(1.25)
    with mp.workdps(25):
        integral = mp.quad(
            lambda x: laplace_density(x, z, scale) * oracle_normal(mp.mpf(lengthscale), x, mp.mpf(variance)),
            [-90, -5, 0, z, 5, 90],
        )
        oracle = oracle_laplace_normal(mp.mpf(lengthscale), z, mp.mpf(scale), mp.mpf(variance))
    assert float(abs(integral / oracle - 1)) < 1e-18


@pytest.mark.parametrize(("a", "b"), [(1.5, 0.75), (1.0, 1.0)])
def test_oracle_laplace_laplace_is_the_integral(a: float, b: float) -> None:
    z, lengthscale = mp.mpf(1.25), mp.mpf(0.8)
    oracle = oracle_laplace_laplace(lengthscale, z, mp.mpf(a), mp.mpf(b))
    with mp.workdps(30):
        integral = mp.quad(
            lambda x: (
                laplace_density(x, 0, b) * oracle_laplace_normal(lengthscale, x - z, mp.mpf(a), mp.mpf(0))
            ),
            [-70, -5, 0, z, 5, 70],
        )
    assert float(abs(integral / oracle - 1)) < 1e-18


# -- comparison --------------------------------------------------------------------------------------------


def assert_relative(values: np.ndarray, oracle: Callable[[int, int], Any], bound: float, needed: int) -> None:
    """Every entry whose exact value exceeds 1e-290 to `bound`, and at least `needed` of them."""
    worst, where, count = 0.0, (0, 0), 0
    for i, j in itertools.product(*map(range, values.shape)):
        exact = oracle(i, j)
        if exact > SMALLEST:
            count += 1
            error = float(abs(number(values[i, j]) / exact - 1))
            if not error <= worst:
                worst, where = error, (i, j)
    assert count >= needed
    assert worst < bound, f"relative error {worst:.1e} at {where}: {values[where]!r}"


def scalar_grid() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Locations and scales of two batches: scales from 1e-3 to 1e3, means up to 30 of either apart."""
    scales = np.array([1e-3, 0.04, 1.0, 25.0, 1e3])
    left = np.array([(0.0, s) for s in scales])
    steps = (0.0, 1e-9, 0.7, 6.0, 30.0)
    right = np.array([(t * u, s) for u, s, t in itertools.product(scales, scales, steps)])
    return (left[:, 0], left[:, 1]), (right[:, 0], right[:, 1])


LENGTHSCALES = pytest.mark.parametrize("lengthscale", [1e-3, 1.0, 1e3])


# -- normals -----------------------------------------------------------------------------------------------


@LENGTHSCALES
def test_normal(lengthscale: float) -> None:
    (x, s), (y, t) = scalar_grid()
    values = wc.pairing(Gaussian(lengthscale), wc.Normal(x, s), wc.Normal(y, t), expectations="closed")

    def oracle(i: int, j: int) -> Any:
        variance = number(s[i]) ** 2 + number(t[j]) ** 2
        return oracle_normal(number(lengthscale), number(x[i]) - number(y[j]), variance)

    assert_relative(values, oracle, RELATIVE_ERROR, 250)


@LENGTHSCALES
def test_normal_and_point(lengthscale: float) -> None:
    """Targets, and predictions of scale zero on either side."""
    (x, s), (y, _) = scalar_grid()
    s = np.append(s, 0.0)
    x = np.append(x, 0.0)
    y = np.unique(y)

    def oracle(i: int, j: int) -> Any:
        return oracle_normal(number(lengthscale), number(x[i]) - number(y[j]), number(s[i]) ** 2)

    kernel = Gaussian(lengthscale)
    targets = wc.pairing(kernel, wc.Normal(x, s), y, expectations="closed")
    assert_relative(targets, oracle, RELATIVE_ERROR, 60)
    certain = wc.pairing(kernel, wc.Normal(x, s), wc.Normal(y, np.zeros(len(y))), expectations="closed")
    np.testing.assert_array_equal(certain, targets)
    swapped = wc.pairing(kernel, wc.Normal(y, np.zeros(len(y))), wc.Normal(x, s), expectations="closed")
    np.testing.assert_array_equal(swapped.T, targets)


@pytest.mark.parametrize("d", [1, 3, 20, 40])
@LENGTHSCALES
def test_diagonal_normal(d: int, lengthscale: float) -> None:
    rng = np.random.default_rng(d)
    n = 10
    x, y = np.zeros((n, d)), np.zeros((n, d))
    left, right = (10.0 ** rng.uniform(-3, 3, (n, d)) for _ in range(2))
    left[0], right[1], left[2], right[2] = 0.0, 0.0, 0.0, 0.0
    apart = rng.uniform(-1, 1, (n, d)) * np.linspace(0, 30, n)[:, None] / d**0.5  # in scales
    kernel = Gaussian(lengthscale)

    def oracle(i: int, j: int, both: int) -> Any:
        return mp.fprod(
            oracle_normal(
                number(lengthscale),
                number(x[i, c]) - number(y[j, c]),
                number(left[i, c]) ** 2 + both * number(right[j, c]) ** 2,
            )
            for c in range(d)
        )

    y = apart * np.sqrt(lengthscale**2 + left**2 + right**2)
    values = wc.pairing(
        kernel, wc.DiagonalNormal(x, left), wc.DiagonalNormal(y, right), expectations="closed"
    )
    assert_relative(values, lambda i, j: oracle(i, j, 1), RELATIVE_ERROR, 2 * n)
    y = apart * np.sqrt(lengthscale**2 + left**2)
    points = wc.pairing(kernel, wc.DiagonalNormal(x, left), y, expectations="closed")
    assert_relative(points, lambda i, j: oracle(i, j, 0), RELATIVE_ERROR, n)


def covariances(rng: np.random.Generator, n: int, d: int, condition: float, largest: float) -> np.ndarray:
    """Rotated, with eigenvalues spread evenly over the condition number."""
    out = np.empty((n, d, d))
    for i in range(n):
        rotation, _ = np.linalg.qr(rng.normal(size=(d, d)))
        eigenvalues = largest * condition ** -np.linspace(0.0, 1.0, d)
        out[i] = rotation @ np.diag(eigenvalues) @ rotation.T
    return 0.5 * (out + np.swapaxes(out, 1, 2))


@pytest.mark.usefixtures("fifty_digits")
@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6])
@pytest.mark.parametrize(("d", "scale"), [(2, 1.0), (2, 1e3), (5, 1e-3), (5, 30.0), (9, 1.0)])
def test_multivariate_normal(condition: float, d: int, scale: float) -> None:
    """The kernel is as narrow as the smallest eigenvalue, so that the sum is as badly conditioned."""
    rng = np.random.default_rng(int(condition) + d)
    n = 5
    left, right = (covariances(rng, n, d, condition, scale**2) for _ in range(2))
    lengthscale = scale / condition**0.5
    kernel = Gaussian(lengthscale)
    x = np.zeros((n, d))
    apart = rng.normal(size=(n, d))
    apart *= np.linspace(0, 30, n)[:, None] / np.linalg.norm(apart, axis=1, keepdims=True)  # in scales

    def oracle(i: int, j: int, both: int) -> Any:
        covariance = mp.matrix(left[i].tolist()) + both * mp.matrix(right[j].tolist())
        return oracle_full_normal(number(lengthscale), differences(x[i], y[j]), covariance)

    total = left + right + lengthscale**2 * np.eye(d)
    y = np.einsum("jab,jb->ja", np.linalg.cholesky(total), apart)
    P = wc.MultivariateNormal(x, left)
    values = wc.pairing(kernel, P, wc.MultivariateNormal(y, right), expectations="closed")
    assert_relative(values, lambda i, j: oracle(i, j, 1), 1e-10, 2 * n)
    y = np.einsum("jab,jb->ja", np.linalg.cholesky(left + lengthscale**2 * np.eye(d)), apart)
    points = wc.pairing(kernel, P, y, expectations="closed")
    assert_relative(points, lambda i, j: oracle(i, j, 0), 1e-10, n)


def test_multivariate_and_diagonal_normals_meet() -> None:
    rng = np.random.default_rng(3)
    left = covariances(rng, 3, 3, 100.0, 4.0)
    scale = 10.0 ** rng.uniform(-2, 1, (4, 3))
    x, y = rng.normal(size=(3, 3)), rng.normal(size=(4, 3))
    P, Q = wc.MultivariateNormal(x, left), wc.DiagonalNormal(y, scale)
    kernel = Gaussian(0.7)

    def oracle(i: int, j: int) -> Any:
        covariance = mp.matrix(left[i].tolist()) + mp.diag([number(s) ** 2 for s in scale[j]])
        return oracle_full_normal(number(0.7), differences(x[i], y[j]), covariance)

    values = wc.pairing(kernel, P, Q, expectations="closed")
    assert_relative(values, oracle, RELATIVE_ERROR, 12)
    np.testing.assert_allclose(wc.pairing(kernel, Q, P, expectations="closed").T, values, rtol=1e-15)
    as_full = wc.MultivariateNormal(y, np.stack([np.diag(s**2) for s in scale]))
    np.testing.assert_allclose(wc.pairing(kernel, P, as_full, expectations="closed"), values, rtol=1e-13)


def test_far_from_the_origin() -> None:
    """Differences are taken first: an offset of 1e6 costs nothing that the inputs have not lost already."""
    offset = 1e6
    x = offset + np.array([0.0, 0.25, -1.5])
    y = offset + np.array([0.5, -3.0, 10.0])
    s, t = np.array([0.5, 1.0, 2.0]), np.array([0.1, 1.0, 4.0])
    scalar = wc.pairing(Gaussian(0.3), wc.Normal(x, s), wc.Normal(y, t))

    def oracle(i: int, j: int) -> Any:
        variance = number(s[i]) ** 2 + number(t[j]) ** 2
        return oracle_normal(number(0.3), number(x[i]) - number(y[j]), variance)

    assert_relative(scalar, oracle, RELATIVE_ERROR, 8)
    rng = np.random.default_rng(5)
    cov = covariances(rng, 3, 2, 10.0, 1.0)
    loc = offset + rng.normal(size=(3, 2))
    full = wc.pairing(
        Gaussian(0.3), wc.MultivariateNormal(loc, cov), wc.MultivariateNormal(loc[::-1], cov[::-1])
    )

    def oracle_full(i: int, j: int) -> Any:
        difference = differences(loc[i], loc[2 - j])
        return oracle_full_normal(
            number(0.3), difference, mp.matrix(cov[i].tolist()) + mp.matrix(cov[2 - j].tolist())
        )

    assert_relative(full, oracle_full, RELATIVE_ERROR, 9)


# -- Laplace -----------------------------------------------------------------------------------------------


@LENGTHSCALES
def test_laplace_and_point(lengthscale: float) -> None:
    (x, s), (y, _) = scalar_grid()
    y = np.unique(y)
    values = wc.pairing(Gaussian(lengthscale), wc.Laplace(x, s), y, expectations="closed")

    def oracle(i: int, j: int) -> Any:
        return oracle_laplace_normal(
            number(lengthscale), number(x[i]) - number(y[j]), number(s[i]), mp.mpf(0)
        )

    assert_relative(values, oracle, RELATIVE_ERROR, 60)


@LENGTHSCALES
def test_laplace_and_normal(lengthscale: float) -> None:
    (x, s), (y, t) = scalar_grid()
    kernel = Gaussian(lengthscale)
    laplace, normal = wc.Laplace(x, s), wc.Normal(y, t)
    values = wc.pairing(kernel, laplace, normal, expectations="closed")

    def oracle(i: int, j: int) -> Any:
        difference = number(x[i]) - number(y[j])
        return oracle_laplace_normal(number(lengthscale), difference, number(s[i]), number(t[j]) ** 2)

    assert_relative(values, oracle, RELATIVE_ERROR, 250)
    np.testing.assert_array_equal(wc.pairing(kernel, normal, laplace, expectations="closed").T, values)


@LENGTHSCALES
def test_laplace(lengthscale: float) -> None:
    """Also where the two scales coincide or nearly do."""
    (x, s), (y, t) = scalar_grid()
    near = np.array([(0.5 * s, s * (1 + e)) for s in (1e-3, 1.0, 1e3) for e in (1e-15, 1e-9, -1e-5, 1e-2)])
    y, t = np.append(y, near[:, 0]), np.append(t, near[:, 1])
    values = wc.pairing(Gaussian(lengthscale), wc.Laplace(x, s), wc.Laplace(y, t), expectations="closed")

    def oracle(i: int, j: int) -> Any:
        return oracle_laplace_laplace(
            number(lengthscale), number(x[i]) - number(y[j]), number(s[i]), number(t[j])
        )

    assert_relative(values, oracle, RELATIVE_ERROR, 250)


def test_laplace_far_from_the_origin() -> None:
    x, s = 1e6 + np.array([0.0, 0.5]), np.array([0.5, 1.0])
    values = wc.pairing(Gaussian(0.3), wc.Laplace(x, s), wc.Laplace(x, s))

    def oracle(i: int, j: int) -> Any:
        return oracle_laplace_laplace(number(0.3), number(x[i]) - number(x[j]), number(s[i]), number(s[j]))

    assert_relative(values, oracle, RELATIVE_ERROR, 4)


# -- linearity in the kernel -------------------------------------------------------------------------------


def test_sums_and_multiples_of_kernels() -> None:
    x, s = np.array([0.0, 1.0, -2.0]), np.array([0.5, 1.0, 2.0])
    a, b = Gaussian(0.5), Gaussian(3.0)
    combined = wc.pairing(2.0 * a + b, wc.Normal(x, s), wc.Laplace(x, s), expectations="closed")
    parts = [wc.pairing(k, wc.Normal(x, s), wc.Laplace(x, s)) for k in (a, b)]
    np.testing.assert_allclose(combined, 2.0 * parts[0] + parts[1], rtol=1e-15)
    fused = wc.pairing(a * b, wc.Normal(x, s), wc.Normal(x, s), expectations="closed")
    width = 1 / mp.sqrt(1 / mp.mpf(0.5) ** 2 + 1 / mp.mpf(3) ** 2)

    def oracle(i: int, j: int) -> Any:
        return oracle_normal(width, number(x[i]) - number(x[j]), number(s[i]) ** 2 + number(s[j]) ** 2)

    assert_relative(fused, oracle, RELATIVE_ERROR, 9)
