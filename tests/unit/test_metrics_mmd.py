"""The maximum mean discrepancy: exact zeros, and rounding of the squares that are subtracted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, product, starmap
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import wellcal as wc
from wellcal import kernels as k
from wellcal.expectations.bilinear import matching
from wellcal.expectations.distances import distance

SCALE = 0.8
STEPS = (0.3, 1e-2, 1e-3, 1e-6, 1e-9)
Pairing = Callable[[int, int], Any]


@pytest.fixture(autouse=True)
def hundred_digits() -> Iterator[None]:
    with mp.workdps(100):
        yield


def distances(kernel: k.Kernel, predictions: Any) -> np.ndarray:
    form, rows = distance(k.MaximumMeanDiscrepancy(kernel), predictions)
    table = form(predictions.ops, rows, rows)
    np.testing.assert_allclose(
        matching(form, predictions.ops, rows, rows), np.diagonal(table), rtol=0, atol=0
    )
    return np.asarray(table) ** (1.0 / form.degree)


def number(x: Any) -> Any:
    return mp.mpf(float(x))


# -- oracles: pairings in 100 digits, subtracted ------------------------------------------------------------

LENGTH = mp.mpf(SCALE)


def gaussian(difference: Any, variance: Any) -> Any:
    total = LENGTH**2 + variance
    return LENGTH / mp.sqrt(total) * mp.exp(-(difference**2) / (2 * total))


def gaussian_full(difference: Any, covariance: Any) -> Any:
    total = covariance + LENGTH**2 * mp.eye(len(difference))
    exponent = (difference.T * mp.lu_solve(total, difference))[0]
    return LENGTH ** len(difference) / mp.sqrt(mp.det(total)) * mp.exp(-exponent / 2)


def laplacian_laplace(difference: Any, a: Any, b: Any) -> Any:
    """E exp(-|Z - Z'| / l) by partial fractions, equal scales moved apart."""
    scales: list[Any] = []
    for scale in (LENGTH, a, b):
        while scale in scales:
            scale *= 1 + mp.mpf(10) ** -35
        scales.append(scale)
    total = mp.mpf(0)
    for s in scales:
        total += (
            mp.exp(-abs(difference) / s) / s * mp.fprod(s * s / (s * s - t * t) for t in scales if t != s)
        )
    return scales[0] * total


def laplacian_normal(difference: Any, variance: Any) -> Any:
    """E exp(-|D| / l) for a normal difference D."""
    z, root = abs(difference), mp.sqrt(2 * variance)
    near = mp.exp(-z / LENGTH) * mp.erfc((variance / LENGTH - z) / root)
    far = mp.exp(z / LENGTH) * mp.erfc((variance / LENGTH + z) / root)
    return mp.exp(variance / (2 * LENGTH**2)) * (near + far) / 2


def discrepancy(pairing: Pairing) -> Any:
    return mp.sqrt(pairing(0, 0) + pairing(1, 1) - 2 * pairing(0, 1))


def normal_pairing(P: wc.Normal) -> Pairing:
    return lambda i, j: gaussian(
        number(P.loc[i]) - number(P.loc[j]), number(P.scale[i]) ** 2 + number(P.scale[j]) ** 2
    )


def diagonal_pairing(P: wc.DiagonalNormal) -> Pairing:
    columns = [normal_pairing(wc.Normal(P.loc[:, c], P.scale[:, c])) for c in range(P.loc.shape[1])]
    return lambda i, j: mp.fprod(column(i, j) for column in columns)


def full_pairing(P: wc.MultivariateNormal, Q: wc.MultivariateNormal) -> Pairing:
    def at(i: int, j: int) -> Any:
        difference = mp.matrix([number(a) - number(b) for a, b in zip(P.loc[i], Q.loc[j], strict=True)])
        return gaussian_full(difference, mp.matrix(P.cov[i].tolist()) + mp.matrix(Q.cov[j].tolist()))

    return at


def cross_pairing(P: Any, Q: Any) -> Pairing:
    """Two components of one family."""
    if isinstance(P, wc.MultivariateNormal):
        return full_pairing(P, Q)

    def at(i: int, j: int) -> Any:
        difference = number(P.loc[i]) - number(Q.loc[j])
        if isinstance(P, wc.Normal):
            return gaussian(difference, number(P.scale[i]) ** 2 + number(Q.scale[j]) ** 2)
        return laplacian_laplace(difference, number(P.scale[i]), number(Q.scale[j]))

    return at


def mixture_pairing(P: wc.Mixture) -> Pairing:
    def at(i: int, j: int) -> Any:
        return mp.fsum(
            number(P.weights[i, a]) * number(P.weights[j, b]) * cross_pairing(p, q)(i, j)
            for a, p in enumerate(P.components)
            for b, q in enumerate(P.components)
        )

    return at


def samples_pairing(P: wc.Samples) -> Pairing:
    values = P.values if P.values.ndim == 3 else P.values[:, :, None]
    points = [tuple(map(tuple, row.tolist())) for row in values]

    def at(i: int, j: int) -> Any:
        if points[i] == points[j]:
            return within(points[i])
        with mp.workdps(50):
            pairs = product(in_digits(points[i]), in_digits(points[j]))
            return mp.fsum(starmap(gaussian_of_points, pairs)) / len(points[i]) ** 2

    return at


@cache
def within(points: tuple[Any, ...]) -> Any:
    """The pairing of a sample with itself, of which one is the same at every step: each pair once."""
    with mp.workdps(50):
        pairs = combinations(in_digits(points), 2)
        return (len(points) + 2 * mp.fsum(starmap(gaussian_of_points, pairs))) / len(points) ** 2


def in_digits(points: tuple[Any, ...]) -> list[list[Any]]:
    return [[number(t) for t in x] for x in points]


def gaussian_of_points(x: list[Any], y: list[Any]) -> Any:
    return mp.exp(-mp.fsum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / (2 * LENGTH**2))


# -- families, each as a function of how near its two predictions are ---------------------------------------


def near(x: np.ndarray, step: float) -> np.ndarray:
    """`x` and `x (1 + step)`, stacked."""
    return np.stack([x, x * (1 + step)])


def normal(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = wc.Normal(near(np.float64(1.3), step), near(np.float64(0.5), -step))
    return k.Gaussian(SCALE), P, normal_pairing(P)


def normal_loc(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = wc.Normal(near(np.float64(1.3), step), np.full(2, 0.5))
    return k.Gaussian(SCALE), P, normal_pairing(P)


def normal_scale(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = wc.Normal(np.zeros(2), near(np.float64(0.5), step))
    return k.Gaussian(SCALE), P, normal_pairing(P)


def diagonal_normal(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = wc.DiagonalNormal(near(np.array([1.0, -2.0, 0.3]), step), near(np.array([0.5, 1.5, 0.2]), -step))
    return k.Gaussian(SCALE), P, diagonal_pairing(P)


COV = np.array([[1.0, 0.6], [0.6, 0.9]])


def multivariate_normal(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = wc.MultivariateNormal(near(np.array([1.0, -0.5]), step), near(COV, step))
    return k.Gaussian(SCALE), P, full_pairing(P, P)


def laplace(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = wc.Laplace(near(np.float64(1.3), step), near(np.float64(0.5), -step))
    return k.Laplacian(SCALE), P, cross_pairing(P, P)


def laplace_scale(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = wc.Laplace(np.zeros(2), near(np.float64(0.5), step))
    return k.Laplacian(SCALE), P, cross_pairing(P, P)


def weights(size: int, step: float) -> np.ndarray:
    given = np.arange(1.0, size + 1.0) / (0.5 * size * (size + 1))
    moved = given * (1 + step * np.cos(np.arange(size)))
    return np.stack([given, moved / moved.sum()])


def mixture_of(make: Callable[[int, float], Any], size: int, step: float) -> wc.Mixture:
    return wc.Mixture([make(i, step) for i in range(size)], weights(size, step))


def mixture(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = mixture_of(
        lambda i, s: wc.Normal(near(np.float64(i - 0.7), s), near(np.float64(0.3 + 0.2 * i), s)), 3, step
    )
    return k.Gaussian(SCALE), P, mixture_pairing(P)


def large_mixture(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = mixture_of(
        lambda i, s: wc.Normal(near(np.float64(i - 2.7), s), near(np.float64(0.3 + 0.2 * i), s)), 7, step
    )
    return k.Gaussian(SCALE), P, mixture_pairing(P)


def mixture_of_laplace(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = mixture_of(
        lambda i, s: wc.Laplace(near(np.float64(i - 0.7), s), near(np.float64(0.3 + 0.2 * i), s)), 2, step
    )
    return k.Laplacian(SCALE), P, mixture_pairing(P)


def mixture_of_full_normals(step: float) -> tuple[k.Kernel, Any, Pairing]:
    def make(i: int, s: float) -> wc.MultivariateNormal:
        return wc.MultivariateNormal(near(np.array([i, 1.0 - i]), s), near((1 + i) * COV, s))

    P = mixture_of(make, 2, step)
    return k.Gaussian(SCALE), P, mixture_pairing(P)


def samples(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = wc.Samples(near(np.random.default_rng(0).normal(size=3), step))
    return k.Gaussian(SCALE), P, samples_pairing(P)


def many_samples(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = wc.Samples(near(np.random.default_rng(1).normal(size=40), step))
    return k.Gaussian(SCALE), P, samples_pairing(P)


def vector_samples(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = wc.Samples(near(np.random.default_rng(2).normal(size=(70, 3)), step))
    return k.Gaussian(SCALE), P, samples_pairing(P)


def categorical(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = wc.Categorical(weights(4, step))
    exact = [[number(p) for p in row] for row in P.probs]
    return k.Delta(), P, lambda i, j: mp.fdot(exact[i], exact[j])


def numeric_classes(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = wc.Categorical(weights(4, step), support=[0.0, 0.5, 2.0, -1.0])
    exact = [[number(p) for p in row] for row in P.probs]
    gram = [[gaussian(number(x) - number(y), mp.mpf(0)) for y in P.support] for x in P.support]
    return (
        k.Gaussian(SCALE),
        P,
        lambda i, j: mp.fsum(p * mp.fdot(row, exact[j]) for p, row in zip(exact[i], gram, strict=True)),
    )


def counts(step: float) -> tuple[k.Kernel, Any, Pairing]:
    """On a table of counts, with a Gaussian kernel on them."""
    P = wc.Poisson(near(np.float64(3.0), step))
    tables = [[mp.exp(-number(r)) * number(r) ** c / mp.factorial(c) for c in range(60)] for r in P.rate]
    lags = [gaussian(mp.mpf(c), mp.mpf(0)) for c in range(60)]
    return (
        k.Gaussian(SCALE),
        P,
        lambda i, j: mp.fsum(
            p * mp.fsum(q * lags[abs(a - b)] for b, q in enumerate(tables[j]))
            for a, p in enumerate(tables[i])
        ),
    )


def normal_under_laplacian(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = wc.Normal(near(np.float64(1.3), step), near(np.float64(0.5), -step))
    return (
        k.Laplacian(SCALE),
        P,
        lambda i, j: laplacian_normal(
            number(P.loc[i]) - number(P.loc[j]), number(P.scale[i]) ** 2 + number(P.scale[j]) ** 2
        ),
    )


def counts_under_delta(step: float) -> tuple[k.Kernel, Any, Pairing]:
    P = wc.Poisson(near(np.float64(30.0), step))
    return (
        k.Delta(),
        P,
        lambda i, j: (
            mp.exp(-number(P.rate[i]) - number(P.rate[j]))
            * mp.besseli(0, 2 * mp.sqrt(number(P.rate[i]) * number(P.rate[j])))
        ),
    )


CASES = [
    mixture_of_laplace,
    normal_under_laplacian,
    counts_under_delta,
    normal,
    normal_loc,
    normal_scale,
    diagonal_normal,
    multivariate_normal,
    laplace,
    laplace_scale,
    mixture,
    large_mixture,
    mixture_of_full_normals,
    samples,
    many_samples,
    vector_samples,
    categorical,
    numeric_classes,
    counts,
]


@pytest.mark.parametrize("make", CASES, ids=lambda f: f.__name__)
def test_errors_are_those_of_subtracting_squared_norms(
    make: Callable[[float], tuple[k.Kernel, Any, Pairing]],
) -> None:
    """Squared distances are right to 2e-14 of the norms, and those that are below that are zero."""
    for step in STEPS:
        kernel, predictions, pairing = make(step)
        norms = float(pairing(0, 0) + pairing(1, 1))
        found = distances(kernel, predictions)[0, 1]
        assert abs(float(number(found) ** 2 - discrepancy(pairing) ** 2)) < 2e-14 * norms, step


def two_of_each(batch: Any) -> Any:
    return batch[[0, 1, 0, 1, 1]]


IDENTICAL: list[tuple[k.Kernel, Any]] = [
    *((make(1e-3)[0], make(1e-3)[1]) for make in CASES),
    (k.Laplacian(), normal(1e-3)[1]),
    (k.Gaussian(), laplace(1e-3)[1]),
    (k.Matern(2.5), normal(1e-3)[1]),
    (k.Matern(2.5, 0.3), samples(1e-3)[1]),
    (k.Laplacian(0.3), wc.Samples(np.random.default_rng(3).normal(size=(2, 30)))),
    (k.RationalQuadratic(), vector_samples(1e-3)[1]),
    (k.Callable(lambda x, y: 1.0 / (1.0 + abs(x - y))), samples(1e-3)[1]),
    (k.Delta(), wc.Poisson(np.array([3.0, 300.0]))),
    (k.Callable(lambda x, y: float(len(set(x) & set(y)))), wc.Samples([["ab", "b"], ["c", "cd"]])),
    (k.Gaussian(), wc.Gamma(np.array([2.0, 3.0]), np.ones(2))),
    (k.Laplacian(), wc.Gamma(np.array([2.0, 3.0]), np.ones(2))),
    (k.Gaussian(), wc.Dirichlet(np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]]))),
    (k.Gaussian(), wc.Mixture([wc.Gamma(np.array([2.0, 3.0]), np.ones(2)), normal(1e-3)[1]])),
]


@pytest.mark.parametrize(("kernel", "batch"), IDENTICAL)
def test_identical_predictions_have_distance_zero(kernel: k.Kernel, batch: Any) -> None:
    repeated = two_of_each(batch)
    table = distances(kernel, repeated)
    same = np.array([0, 1, 0, 1, 1])[:, None] == np.array([0, 1, 0, 1, 1])[None, :]
    assert np.all(table[same] == 0.0), table
    assert np.all(table[~same] > 0.0), table


def test_permuted_components_are_the_same_mixture() -> None:
    """Components that do not match one by one: zero up to the rounding of pairings."""
    loc, scale, w = np.array([0.0, 1.0, 3.0]), np.array([1.0, 0.5, 2.0]), np.array([0.2, 0.3, 0.5])
    order = [2, 0, 1]
    P = wc.Mixture(
        [wc.Normal([loc[i], loc[j]], [scale[i], scale[j]]) for i, j in enumerate(order)],
        np.stack([w, w[order]]),
    )
    assert distances(k.Gaussian(), P)[0, 1] == 0.0
    values = np.random.default_rng(4).normal(size=50)
    shuffled = wc.Samples(np.stack([values, values[::-1]]))
    assert distances(k.Gaussian(), shuffled)[0, 1] == 0.0


def test_sums_and_multiples_of_kernels() -> None:
    P = wc.Normal(np.array([1.0, 1.01]), np.array([0.5, 0.51]))
    combined = distances(2.0 * k.Gaussian(0.5) + k.Gaussian(3.0), P)[0, 1]
    parts = [distances(kernel, P)[0, 1] for kernel in (k.Gaussian(0.5), k.Gaussian(3.0))]
    assert combined**2 == pytest.approx(2 * parts[0] ** 2 + parts[1] ** 2, rel=1e-7)
    assert combined > 0


@pytest.mark.parametrize("copies", [2, 5, 13, 30])
def test_equal_predictions_stay_equal_wherever_they_stand(copies: int) -> None:
    """Triangular solves round otherwise at the end of a block, and small pivots make much of it."""
    batch = wc.Dirichlet(np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]]))[[0, *([1] * copies)]]
    table = distances(k.Gaussian(), batch)
    assert np.all(table[1:, 1:] == 0.0)
    assert np.all(table[0, 1:] > 0.0)


def test_transport_between_components_at_mmd_distances() -> None:
    """Two equally likely components: the cheaper of two assignments of squared distances."""
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet(np.ones(3), 6), rng.dirichlet(np.full(3, 3.0), 6)
    y = rng.integers(0, 3, 6)
    metric = k.MixtureWasserstein(components=k.MaximumMeanDiscrepancy(k.Delta()))
    kernel = k.ExpDistance(metric, lengthscale=0.3) @ k.Delta()
    mixture = wc.Mixture([wc.Categorical(first), wc.Categorical(second)])
    phi = 0.5 * (first + second) - np.eye(3)[y]

    def h(i: int, j: int) -> float:
        straight = ((first[i] - first[j]) ** 2).sum() + ((second[i] - second[j]) ** 2).sum()
        crossed = ((first[i] - second[j]) ** 2).sum() + ((second[i] - first[j]) ** 2).sum()
        return float(np.exp(-np.sqrt(0.5 * min(straight, crossed)) / 0.3) * (phi[i] @ phi[j]))

    expected = np.mean([h(i, j) for i in range(6) for j in range(i)])
    assert float(wc.skce(y, mixture, kernel=kernel)) == pytest.approx(expected, rel=1e-12)
