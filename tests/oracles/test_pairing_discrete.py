"""Pairings on classes, supports, samples and counts against plain sums."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal import kernels as k

RELATIVE_ERROR = 1e-12
SMALLEST = 1e-290
Atoms = list[tuple[Any, float]]
"""A distribution as values with their probabilities."""


@pytest.fixture(autouse=True)
def fifty_digits() -> Iterator[None]:
    with mp.workdps(50):
        yield


# -- a kernel as plain Python, and double sums -------------------------------------------------------------


def distance(x: Any, y: Any) -> float:
    return math.dist(np.atleast_1d(x), np.atleast_1d(y))


PLAIN: list[tuple[k.Kernel, Callable[[Any, Any], float]]] = [
    (k.Gaussian(0.8), lambda x, y: math.exp(-(distance(x, y) ** 2) / (2 * 0.8**2))),
    (k.Laplacian(1.5), lambda x, y: math.exp(-distance(x, y) / 1.5)),
    (
        k.Matern(1.5, 0.7),
        lambda x, y: (1 + 3**0.5 * distance(x, y) / 0.7) * math.exp(-(3**0.5) * distance(x, y) / 0.7),
    ),
    (k.RationalQuadratic(0.6, 2.0), lambda x, y: (1 + distance(x, y) ** 2 / (2 * 0.6 * 2.0**2)) ** -0.6),
    (k.Delta(), lambda x, y: float(np.all(np.asarray(x) == np.asarray(y)))),
    (
        2.0 * k.Gaussian() + k.Laplacian() * k.Delta(),
        lambda x, y: 2 * math.exp(-(distance(x, y) ** 2) / 2) + float(distance(x, y) == 0),
    ),
    (
        k.Gaussian(2.0) * k.Matern(0.5),
        lambda x, y: math.exp(-(distance(x, y) ** 2) / 8) * math.exp(-distance(x, y)),
    ),
    (k.Callable(lambda x, y: 1.0 / (1.0 + distance(x, y))), lambda x, y: 1.0 / (1.0 + distance(x, y))),
]
ANY_KERNEL = pytest.mark.parametrize(("kernel", "plain"), PLAIN, ids=[repr(kernel) for kernel, _ in PLAIN])


def double_sum(plain: Callable[[Any, Any], float], P: list[Atoms], Q: list[Atoms]) -> np.ndarray:
    return np.array(
        [[math.fsum(p * q * plain(x, y) for (x, p), (y, q) in itertools.product(a, b)) for b in Q] for a in P]
    )


def points(values: Any) -> list[Atoms]:
    return [[(value, 1.0)] for value in values]


def check(kernel: k.Kernel, plain: Callable[..., float], P: Any, atoms: list[Atoms], y: Any) -> None:
    """Predictions with themselves and with targets."""
    np.testing.assert_allclose(
        wc.pairing(kernel, P, P, expectations="closed"),
        double_sum(plain, atoms, atoms),
        rtol=1e-13,
        atol=1e-16,
    )
    np.testing.assert_allclose(
        wc.pairing(kernel, P, y, expectations="closed"),
        double_sum(plain, atoms, points(y)),
        rtol=1e-13,
        atol=1e-16,
    )


def probabilities(n: int, size: int, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).dirichlet(np.ones(size), n)
    drawn[0] = np.eye(size)[1]  # one certain prediction
    return drawn


# -- classes -----------------------------------------------------------------------------------------------


@ANY_KERNEL
def test_bernoulli(kernel: k.Kernel, plain: Callable[..., float]) -> None:
    p = np.array([0.0, 0.3, 1.0, 0.625])
    check(kernel, plain, wc.Bernoulli(p), [[(0.0, 1 - q), (1.0, q)] for q in p], np.array([0, 1, 1]))


@ANY_KERNEL
def test_categorical_numbered(kernel: k.Kernel, plain: Callable[..., float]) -> None:
    probs = probabilities(4, 3)
    atoms = [[(float(c), p) for c, p in enumerate(row)] for row in probs]
    check(kernel, plain, wc.Categorical(probs), atoms, np.array([0, 2, 1, 1, 0]))


@ANY_KERNEL
def test_categorical_with_numeric_support(kernel: k.Kernel, plain: Callable[..., float]) -> None:
    probs, support = probabilities(4, 4), [-2.5, 0.0, 10.0, 0.25]
    atoms = [list(zip(support, row, strict=True)) for row in probs]
    check(kernel, plain, wc.Categorical(probs, support=support), atoms, np.array([10.0, -2.5, 0.25]))


@ANY_KERNEL
def test_categorical_with_vector_support(kernel: k.Kernel, plain: Callable[..., float]) -> None:
    probs = probabilities(3, 4)
    support = np.array([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5], [0.0, 3.0]])
    atoms = [list(zip(support, row, strict=True)) for row in probs]
    check(kernel, plain, wc.Categorical(probs, support=support), atoms, support[[3, 0]])


def test_categorical_with_labels() -> None:
    probs, classes = probabilities(4, 3), ["cat", "dog", "cow"]
    atoms = [list(zip(classes, row, strict=True)) for row in probs]
    P = wc.Categorical(probs, classes=classes)
    check(k.Delta(), lambda x, y: float(x == y), P, atoms, ["cow", "cat"])

    def same_initial(x: str, y: str) -> float:
        return float(x[0] == y[0]) + float(x == y)

    check(k.Callable(same_initial), same_initial, P, atoms, ["cow", "cat"])
    with pytest.raises(TypeError, match="needs numeric targets"):
        wc.pairing(k.Gaussian(), P, P)


def test_bernoulli_is_a_categorical_of_two_classes() -> None:
    p = np.array([0.1, 0.5, 0.9])
    two = wc.Categorical(np.stack([1 - p, p], axis=1))
    for kernel in (k.Delta(), k.Gaussian(), 3.0 * k.Laplacian()):
        expected = wc.pairing(kernel, wc.Bernoulli(p), wc.Bernoulli(p))
        np.testing.assert_allclose(wc.pairing(kernel, two, two), expected, rtol=1e-15)
        np.testing.assert_allclose(wc.pairing(kernel, two, wc.Bernoulli(p)), expected, rtol=1e-15)


# -- samples -----------------------------------------------------------------------------------------------


@ANY_KERNEL
@pytest.mark.parametrize("kind", ["draws", "atoms"])
def test_samples(kernel: k.Kernel, plain: Callable[..., float], kind: str) -> None:
    values = np.random.default_rng(1).normal(size=(4, 5)).round(1)
    values[:, 0] = 0.5  # so that Delta has something to find
    atoms = [[(x, 0.2) for x in row] for row in values]
    check(kernel, plain, wc.Samples(values, kind=kind), atoms, np.array([0.5, -0.3]))


@ANY_KERNEL
def test_weighted_vectors(kernel: k.Kernel, plain: Callable[..., float]) -> None:
    values = np.random.default_rng(2).normal(size=(4, 3, 2)).round(1)
    weights = probabilities(4, 3)
    atoms = [list(zip(x, w, strict=True)) for x, w in zip(values, weights, strict=True)]
    check(kernel, plain, wc.Samples(values, weights=weights, kind="atoms"), atoms, values[:2, 0])


def test_objects() -> None:
    """Samples of strings under a kernel that counts common letters."""

    def common(x: str, y: str) -> float:
        return float(len(set(x) & set(y)))

    values = [["ab", "bcd", ""], ["xyz", "ab", "b"]]
    atoms = [[(x, 1 / 3) for x in row] for row in values]
    check(k.Callable(common), common, wc.Samples(values), atoms, ["abc", "z"])
    weights = np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    atoms = [list(zip(x, w, strict=True)) for x, w in zip(values, weights, strict=True)]
    check(k.Callable(common), common, wc.Samples(values, weights=weights, kind="atoms"), atoms, ["abc", "z"])


def test_objects_that_are_sequences() -> None:
    """A target that is a tuple is one target, not a row of numbers."""
    overlap = k.Callable(lambda x, y: float(len(set(x) & set(y))))
    values = np.empty((1, 2), dtype=object)
    values[0, 0], values[0, 1] = (1, 2), (2, 3, 4)
    found = wc.pairing(overlap, wc.Samples(values), [(2,), (1, 4)])
    np.testing.assert_allclose(found, [[1.0, 1.0]])


def test_vectorised_callable_agrees() -> None:
    values = np.random.default_rng(3).normal(size=(3, 4, 2))
    one_by_one = k.Callable(lambda x, y: float(1.0 + x @ y) ** 2)
    at_once = k.Callable(lambda x, y: (1.0 + x @ y.T) ** 2, vectorized=True)
    P = wc.Samples(values)
    np.testing.assert_allclose(wc.pairing(at_once, P, P), wc.pairing(one_by_one, P, P), rtol=1e-14)
    np.testing.assert_allclose(
        wc.pairing(at_once, P, values[:, 0]), wc.pairing(one_by_one, P, values[:, 0]), rtol=1e-14
    )


@ANY_KERNEL
def test_atoms_of_different_families_meet(kernel: k.Kernel, plain: Callable[..., float]) -> None:
    probs = probabilities(3, 2)
    values = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 0.0]])
    P, Q = wc.Categorical(probs, support=[0.0, 2.0]), wc.Samples(values)
    a = [[(0.0, p), (2.0, q)] for p, q in probs]
    b = [[(x, 1 / 3) for x in row] for row in values]
    np.testing.assert_allclose(
        wc.pairing(kernel, P, Q, expectations="closed"), double_sum(plain, a, b), rtol=1e-13, atol=1e-16
    )
    np.testing.assert_allclose(
        wc.pairing(kernel, Q, wc.Bernoulli(probs[:, 1])),
        double_sum(plain, b, [[(0.0, 1 - p), (1.0, p)] for p in probs[:, 1]]),
        rtol=1e-13,
        atol=1e-16,
    )


def test_samples_meet_normals_in_closed_form() -> None:
    values = np.array([[0.0, 1.0, 2.0], [0.5, -30.0, 0.0]])
    loc, scale = np.array([0.0, 3.0]), np.array([1.0, 0.1])
    for kernel in (k.Gaussian(0.6), k.Laplacian(0.6)):
        expected = wc.pairing(kernel, wc.Normal(loc, scale), values.reshape(-1)).reshape(2, 2, 3).mean(axis=2)
        found = wc.pairing(kernel, wc.Normal(loc, scale), wc.Samples(values), expectations="closed")
        np.testing.assert_allclose(found, expected, rtol=1e-14)


# -- Poisson and Delta -------------------------------------------------------------------------------------

RATES = np.array([0.0, 1e-3, 0.03, 0.5, 1.0, 7.3, 31.0, 100.0, 333.3, 1e3])


@cache
def poisson_table(rate: float, top: int) -> tuple[Any, ...]:
    """Probabilities of 0 .. top by their recursion."""
    table = [mp.exp(-mp.mpf(rate))]
    for count in range(1, top + 1):
        table.append(table[-1] * mp.mpf(rate) / count)
    return tuple(table)


@cache
def negative_binomial_table(mean: float, dispersion: float, top: int) -> tuple[Any, ...]:
    mean, dispersion = mp.mpf(mean), mp.mpf(dispersion)
    size, share = 1 / dispersion, dispersion * mean / (1 + dispersion * mean)
    table = [(1 - share) ** size]
    for count in range(1, top + 1):
        table.append(table[-1] * (size + count - 1) / count * share)
    return tuple(table)


def dot(a: tuple[Any, ...], b: tuple[Any, ...]) -> Any:
    return mp.fdot(zip(a, b, strict=True))


def relative_errors(found: np.ndarray, exact: list[list[Any]]) -> list[float]:
    return [
        float(abs(mp.mpf(float(found[i, j])) / value - 1))
        for i, row in enumerate(exact)
        for j, value in enumerate(row)
        if value > SMALLEST
    ]


def test_oracle_tables_are_the_probabilities() -> None:
    for count in (0, 3, 40):
        by_formula = mp.mpf(31) ** count * mp.exp(-31) / mp.factorial(count)
        assert abs(poisson_table(31.0, 40)[count] / by_formula - 1) < 1e-45
        binomial = mp.binomial(count + mp.mpf(2.5) - 1, count)
        by_formula = (
            binomial * (1 / (1 + mp.mpf(0.4) * 8)) ** (1 / mp.mpf(0.4)) * (3.2 / mp.mpf(4.2)) ** count
        )
        assert abs(negative_binomial_table(8.0, 0.4, 40)[count] / by_formula - 1) < 1e-15


def test_poisson_with_delta() -> None:
    """Probability that two counts agree, from rates 0 and 1e-3 to 1e3, against the sum over counts."""
    P = wc.Poisson(RATES)
    found = wc.pairing(k.Delta(), P, P, expectations="closed")
    tables = [poisson_table(float(r), 2600) for r in RATES]
    exact = [[dot(a, b) for b in tables] for a in tables]
    assert float(abs(exact[4][4] / (mp.exp(-2) * mp.besseli(0, 2)) - 1)) < 1e-40
    errors = relative_errors(found, exact)
    assert len(errors) > 85
    assert max(errors) < RELATIVE_ERROR
    assert found[0, 0] == 1.0


def test_poisson_with_delta_and_target() -> None:
    y = np.array([0, 1, 2, 3, 7, 11, 12, 13, 20, 31, 60, 100, 150, 333, 500, 1000, 1400, 2500])
    found = wc.pairing(k.Delta(), wc.Poisson(RATES), y, expectations="closed")
    tables = [poisson_table(float(r), 2600) for r in RATES]
    errors = relative_errors(found, [[table[count] for count in y] for table in tables])
    assert len(errors) > 90
    assert max(errors) < RELATIVE_ERROR
    assert found[0, 0] == 1.0
    assert np.all(found[0, 1:] == 0.0)


def test_log_probabilities_of_counts_keep_their_digits() -> None:
    """The rule and the family share one expression: probabilities to 1e-12 far into both tails."""
    rng = np.random.default_rng(4)
    mean, dispersion = 10.0 ** rng.uniform(-3, 3, 60), 10.0 ** rng.uniform(-6, 2, 60)
    dispersion[:10] = 1e-3
    spread = np.sqrt(mean + dispersion * mean**2)
    y = np.abs(np.rint(mean + spread * rng.normal(size=60) * np.linspace(1, 12, 60))).clip(0, 4000)
    found = np.exp([wc.Poisson(mean).log_prob(y), wc.NegativeBinomial(mean, dispersion).log_prob(y)])
    exact = [
        [poisson_table(float(m), int(c))[-1] for m, c in zip(mean, y, strict=True)],
        [
            negative_binomial_table(float(m), float(d), int(c))[-1]
            for m, d, c in zip(mean, dispersion, y, strict=True)
        ],
    ]
    errors = relative_errors(found, exact)
    assert len(errors) > 100
    assert max(errors) < RELATIVE_ERROR


def test_poisson_probability_is_differentiable() -> None:
    """Derivative of P(Z = y) in the rate is P(Z = y - 1) - P(Z = y), also at rate 0."""
    rate = torch.tensor([0.0, 0.3, 11.5, 40.0, 700.0], dtype=torch.float64, requires_grad=True)
    for y in (0, 1, 2, 12, 13, 41, 690):
        value = wc.pairing(k.Delta(), wc.Poisson(rate), np.array([y]))
        (gradient,) = torch.autograd.grad(value.sum(), rate)
        tables = [poisson_table(float(r), 700) for r in rate.detach()]
        exact = [float((table[y - 1] if y else mp.mpf(0)) - table[y]) for table in tables]
        np.testing.assert_allclose(gradient, exact, rtol=1e-9, atol=1e-300)


# -- counts on a grid --------------------------------------------------------------------------------------

MEANS = np.array([0.0, 1e-3, 0.4, 5.0, 60.0])
DISPERSIONS = np.array([0.5, 3.0, 1e-4, 1.0, 0.2])
TOP = 2000


def count_tables(P: Any) -> list[tuple[Any, ...]]:
    if isinstance(P, wc.Poisson):
        return [poisson_table(float(r), TOP) for r in P.rate]
    return [
        negative_binomial_table(float(m), float(d), TOP) for m, d in zip(P.mean(), P.dispersion, strict=True)
    ]


def smoothed(table: tuple[Any, ...], lengthscale: float) -> np.ndarray:
    """``sum_y p(y) exp(-(x - y)^2 / (2 l^2))`` at all x, in float64 from exact probabilities."""
    counts = np.arange(TOP + 1)
    p = np.array([float(q) for q in table])
    used = np.flatnonzero(p > 1e-25)
    return np.exp(-((counts[:, None] - counts[None, used]) ** 2) / (2 * lengthscale**2)) @ p[used]


FAMILIES = [wc.Poisson(MEANS), wc.NegativeBinomial(MEANS, DISPERSIONS)]


@pytest.mark.parametrize("lengthscale", [0.1, 2.0, 50.0])
@pytest.mark.parametrize(("P", "Q"), list(itertools.product(FAMILIES, repeat=2)))
def test_counts_with_gaussian(P: Any, Q: Any, lengthscale: float) -> None:
    """All but 1e-13 of the mass is kept: 1e-12 absolute."""
    found = wc.pairing(k.Gaussian(lengthscale), P, Q, expectations="closed")
    right = [smoothed(table, lengthscale) for table in count_tables(Q)]
    exact = [
        [math.fsum(float(p) * s for p, s in zip(table, row, strict=True)) for row in right]
        for table in count_tables(P)
    ]
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12)
    y = np.array([0, 3, 77, 1500])
    targets = wc.pairing(k.Gaussian(lengthscale), P, y, expectations="closed")
    np.testing.assert_allclose(
        targets, [smoothed(t, lengthscale)[y] for t in count_tables(P)], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize(("P", "Q"), list(itertools.product(FAMILIES, repeat=2)))
def test_counts_with_delta(P: Any, Q: Any) -> None:
    found = wc.pairing(k.Delta(), P, Q, expectations="closed")
    exact = [[float(dot(a, b)) for b in count_tables(Q)] for a in count_tables(P)]
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12)
    y = np.array([0, 3, 77, 1500])
    targets = wc.pairing(k.Delta(), P, y, expectations="closed")
    np.testing.assert_allclose(
        targets, [[float(t[c]) for c in y] for t in count_tables(P)], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("mean", [1e-3, 1.0, 1e3])
def test_other_kernels_on_counts(mean: float) -> None:
    """Any kernel is a sum over the counts that carry the mass, also around large means."""
    P = wc.Poisson(np.array([mean, 1.1 * mean]))
    top = int(1.1 * mean + 12 * (1.1 * mean) ** 0.5 + 40)
    tables = np.array([[float(p) for p in poisson_table(float(r), top)] for r in P.rate])
    counts = np.arange(top + 1.0)
    for kernel, plain in PLAIN[1:4]:
        gram = np.array([plain(0.0, c) for c in counts])[np.abs(counts[:, None] - counts).astype(int)]
        found = wc.pairing(kernel, P, P, expectations="closed")
        np.testing.assert_allclose(found, tables @ gram @ tables.T, rtol=0, atol=1e-12)


# -- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "P",
    [
        wc.Normal(np.zeros(2), np.ones(2)),
        wc.Laplace(np.zeros(2), np.ones(2)),
        wc.Gamma(np.ones(2), np.ones(2)),
        wc.DiagonalNormal(np.zeros((2, 2)), np.ones((2, 2))),
        wc.Mixture([wc.Normal(np.zeros(2), np.ones(2)), wc.Poisson(np.ones(2))]),
    ],
    ids=lambda P: type(P).__name__,
)
@pytest.mark.parametrize(
    "kernel",
    [k.Delta(), 2.0 * k.Delta(), k.Delta() + k.Gaussian(), k.Delta() * k.Callable(lambda x, y: 1.0)],
    ids=repr,
)
def test_delta_with_densities_is_refused(P: Any, kernel: k.Kernel) -> None:
    y = np.zeros(2) if P.event_shape == () else np.zeros((2, 2))
    for Q in (P, y):
        with pytest.raises(
            ValueError, match=r"Delta\(\) compares targets for equality.*take a kernel such as"
        ):
            wc.pairing(kernel, P, Q)


def test_quantiles_of_other_levels_are_refused() -> None:
    P = wc.Quantiles([0.25, 0.75], np.array([[0.0, 1.0]]))
    Q = wc.Quantiles([0.1, 0.9], np.array([[0.0, 1.0]]))
    with pytest.raises(ValueError, match="same levels"):
        wc.pairing(k.Delta(), P, Q)


def test_quantiles_are_distributions_over_bins() -> None:
    levels = np.array([0.1, 0.5, 0.9])
    P = wc.Quantiles(levels, np.array([[0.0, 1.0, 2.0], [-5.0, 0.0, 5.0]]))
    bins = np.array([0.1, 0.4, 0.4, 0.1])
    np.testing.assert_allclose(wc.pairing(k.Delta(), P, P), np.full((2, 2), bins @ bins), rtol=1e-15)
