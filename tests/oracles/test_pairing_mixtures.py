"""Pairings of mixtures are full double sums over their components."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal import kernels as k

N, M = 4, 3


def brute_force(kernel: k.Kernel, P: Any, Q: Any) -> np.ndarray:
    """Every component of P with every component of Q, each as a batch of its own."""
    total = 0.0
    for a, b in itertools.product(range(len(P.components)), range(len(Q.components))):
        part = wc.pairing(kernel, P.components[a], Q.components[b])
        total = total + P.weights[:, a, None] * part * Q.weights[None, :, b]
    return total


def weights(n: int, size: int, seed: int) -> np.ndarray:
    """Of their own in every row."""
    return np.random.default_rng(seed).dirichlet(np.full(size, 0.7), n)


def normals(n: int, seed: int) -> wc.Normal:
    rng = np.random.default_rng(seed)
    return wc.Normal(rng.normal(size=n), rng.uniform(0.2, 2.0, n))


def laplaces(n: int, seed: int) -> wc.Laplace:
    rng = np.random.default_rng(seed)
    return wc.Laplace(rng.normal(size=n), rng.uniform(0.2, 2.0, n))


def samples(n: int, seed: int, size: int = 3, shape: tuple[int, ...] = ()) -> wc.Samples:
    return wc.Samples(np.random.default_rng(seed).normal(size=(n, size, *shape)), axis=1)


def poissons(n: int, seed: int) -> wc.Poisson:
    return wc.Poisson(np.random.default_rng(seed).uniform(0.1, 9.0, n))


def negative_binomials(n: int, seed: int) -> wc.NegativeBinomial:
    rng = np.random.default_rng(seed)
    return wc.NegativeBinomial(rng.uniform(0.1, 9.0, n), rng.uniform(0.1, 2.0, n))


def supports(n: int, seed: int) -> wc.Categorical:
    return wc.Categorical(weights(n, 3, seed), support=[-1.0, 0.5, 2.0])


def diagonal(n: int, seed: int) -> wc.DiagonalNormal:
    rng = np.random.default_rng(seed)
    return wc.DiagonalNormal(rng.normal(size=(n, 2)), rng.uniform(0.2, 2.0, (n, 2)))


def full(n: int, seed: int) -> wc.MultivariateNormal:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, 2, 2))
    return wc.MultivariateNormal(rng.normal(size=(n, 2)), root @ np.swapaxes(root, 1, 2) + 0.1 * np.eye(2))


def vectors(n: int, seed: int) -> wc.Samples:
    return samples(n, seed, shape=(2,))


CASES = {
    "three normals": ([normals] * 3, [normals] * 2),
    "laplace": ([laplaces] * 2, [laplaces] * 3),
    "normals and laplace": ([normals, laplaces, normals], [laplaces, normals]),
    "normals and samples": ([samples, normals, samples], [normals, supports]),
    "all scalars": ([normals, laplaces, samples, supports], [supports, samples, laplaces, normals]),
}
KERNELS = [k.Gaussian(0.7), k.Laplacian(1.3), 0.5 * k.Gaussian(0.4) + k.Gaussian(2.0)]
KERNEL = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def mixture(makers: list[Any], n: int, seed: int) -> wc.Mixture:
    return wc.Mixture(
        [make(n, seed + i) for i, make in enumerate(makers)], weights(n, len(makers), seed + 100)
    )


@KERNEL
@pytest.mark.parametrize("name", CASES)
def test_scalar_mixtures(kernel: k.Kernel, name: str) -> None:
    left, right = CASES[name]
    P, Q = mixture(left, N, 0), mixture(right, M, 50)
    expected = brute_force(kernel, P, Q)
    np.testing.assert_allclose(wc.pairing(kernel, P, Q, expectations="closed"), expected, rtol=1e-13)
    np.testing.assert_allclose(wc.pairing(kernel, Q, P, expectations="closed"), expected.T, rtol=1e-13)
    y = np.linspace(-2.0, 3.0, 5)
    targets = wc.pairing(kernel, P, y, expectations="closed")
    by_component = sum(
        P.weights[:, i, None] * wc.pairing(kernel, c, wc.Samples(y[:, None]))
        for i, c in enumerate(P.components)
    )
    np.testing.assert_allclose(targets, by_component, rtol=1e-13)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([diagonal] * 2, [diagonal] * 3),
        ([full, diagonal, vectors], [vectors, full]),
        ([full] * 3, [full] * 2),
    ],
)
def test_vector_mixtures(left: list[Any], right: list[Any]) -> None:
    kernel = k.Gaussian(0.9)
    P, Q = mixture(left, N, 0), mixture(right, M, 50)
    found = wc.pairing(kernel, P, Q, expectations="closed")
    np.testing.assert_allclose(found, brute_force(kernel, P, Q), rtol=1e-13)


@pytest.mark.parametrize("kernel", [k.Delta(), k.Gaussian(1.5), k.Laplacian()], ids=repr)
def test_count_mixtures(kernel: k.Kernel) -> None:
    P, Q = (
        mixture([poissons, negative_binomials, poissons], N, 0),
        mixture([negative_binomials, poissons], M, 50),
    )
    np.testing.assert_allclose(
        wc.pairing(kernel, P, Q, expectations="closed"), brute_force(kernel, P, Q), rtol=0, atol=1e-12
    )
    only_poisson = mixture([poissons] * 3, N, 0)
    np.testing.assert_allclose(
        wc.pairing(kernel, only_poisson, only_poisson, expectations="closed"),
        brute_force(kernel, only_poisson, only_poisson),
        rtol=0,
        atol=1e-12,
    )


@KERNEL
def test_every_pair_of_components_counts(kernel: k.Kernel) -> None:
    """With all weight on one component each, the pairing is that of these two, for all of them.

    A sum that skips pairs (i >= 2, j = 1), as code in the literature does, fails here.
    """
    left = [normals(N, i) for i in range(3)]
    right = [normals(M, 10), laplaces(M, 11), normals(M, 12)]
    for a, b in itertools.product(range(3), repeat=2):
        P, Q = wc.Mixture(left, np.eye(3)[a]), wc.Mixture(right, np.eye(3)[b])
        np.testing.assert_allclose(
            wc.pairing(kernel, P, Q), wc.pairing(kernel, left[a], right[b]), rtol=1e-14, err_msg=str((a, b))
        )


def test_mixture_of_normals_by_hand() -> None:
    """Independently of the library's own pairings."""
    loc = np.array([[0.0, 1.0, -2.0], [3.0, 0.5, 0.0]])
    scale = np.array([[1.0, 0.5, 2.0], [0.1, 1.0, 3.0]])
    w = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]])
    P = wc.Mixture([wc.Normal(loc[:, i], scale[:, i]) for i in range(3)], w)

    def by_hand(i: int, j: int) -> float:
        terms: list[float] = []
        for a, b in itertools.product(range(3), repeat=2):
            s = 0.8**2 + scale[i, a] ** 2 + scale[j, b] ** 2
            terms.append(
                w[i, a] * w[j, b] * 0.8 / math.sqrt(s) * math.exp(-((loc[i, a] - loc[j, b]) ** 2) / (2 * s))
            )
        return math.fsum(terms)

    expected = [[by_hand(i, j) for j in range(2)] for i in range(2)]
    np.testing.assert_allclose(wc.pairing(k.Gaussian(0.8), P, P), expected, rtol=1e-14)


def test_equal_weights_by_default() -> None:
    members = [normals(N, i) for i in range(4)]
    P = wc.Mixture(members)
    np.testing.assert_allclose(
        wc.pairing(k.Gaussian(), P, P),
        wc.pairing(k.Gaussian(), wc.Mixture(members, np.full(4, 0.25)), P),
        rtol=1e-15,
    )
    np.testing.assert_allclose(wc.pairing(k.Gaussian(), P, P), brute_force(k.Gaussian(), P, P), rtol=1e-14)


def test_mixture_meets_single_family() -> None:
    P, Q = mixture([normals, laplaces], N, 0), normals(M, 9)
    np.testing.assert_allclose(
        wc.pairing(k.Gaussian(), P, Q), brute_force(k.Gaussian(), P, wc.Mixture([Q])), rtol=1e-14
    )
    np.testing.assert_allclose(wc.pairing(k.Gaussian(), Q, P), wc.pairing(k.Gaussian(), P, Q).T, rtol=1e-14)


def test_mixture_of_mixtures() -> None:
    inner = mixture([normals, laplaces], N, 0)
    outer = wc.Mixture([inner, normals(N, 9)], [0.3, 0.7])
    inside = wc.pairing(k.Gaussian(), inner, inner)
    between = wc.pairing(k.Gaussian(), inner, normals(N, 9))
    outside = wc.pairing(k.Gaussian(), normals(N, 9), normals(N, 9))
    expected = 0.09 * inside + 0.21 * (between + between.T) + 0.49 * outside
    np.testing.assert_allclose(wc.pairing(k.Gaussian(), outer, outer), expected, rtol=1e-13)


@pytest.mark.parametrize("size", [2, 40])
def test_mixtures_with_many_samples(size: int) -> None:
    """Above some number of atoms a Gaussian kernel is expanded in features: the same sum to 1e-12."""
    kernel = k.Gaussian(0.6)
    P = wc.Mixture([samples(N, 0, size), normals(N, 1)], weights(N, 2, 2))
    Q = wc.Mixture([normals(M, 3), samples(M, 4, size), supports(M, 5)], weights(M, 3, 6))
    expected = brute_force(kernel, P, Q)
    np.testing.assert_allclose(wc.pairing(kernel, P, Q, expectations="closed"), expected, rtol=0, atol=1e-12)


# -- classes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", [k.Delta(), k.Gaussian(), k.Callable(lambda x, y: 1.0 / (1.0 + abs(x - y)))], ids=repr
)
def test_mixture_of_categoricals_is_the_categorical_of_mean_probabilities(kernel: k.Kernel) -> None:
    members = [weights(N, 3, seed) for seed in range(3)]
    w = weights(N, 3, 7)
    P = wc.Mixture([wc.Categorical(p) for p in members], w)
    mean = wc.Categorical(np.einsum("nk,knc->nc", w, np.array(members)))
    np.testing.assert_allclose(wc.pairing(kernel, P, P), wc.pairing(kernel, mean, mean), rtol=1e-13)
    np.testing.assert_allclose(wc.pairing(kernel, P, mean), wc.pairing(kernel, mean, mean), rtol=1e-13)
    y = np.array([0, 2, 1])
    np.testing.assert_allclose(wc.pairing(kernel, P, y), wc.pairing(kernel, mean, y), rtol=1e-13)


def test_mixture_of_labelled_categoricals() -> None:
    classes = ["red", "green", "blue"]
    members = [weights(N, 3, seed) for seed in range(2)]
    P = wc.Mixture([wc.Categorical(p, classes=classes) for p in members])
    mean = np.mean(members, axis=0)
    np.testing.assert_allclose(wc.pairing(k.Delta(), P, P), mean @ mean.T, rtol=1e-14)
    np.testing.assert_allclose(wc.pairing(k.Delta(), P, ["blue", "red"]), mean[:, [2, 0]], rtol=1e-15)


def test_mixture_of_bernoulli_and_categorical() -> None:
    p, q = np.array([0.2, 0.7]), np.array([[0.5, 0.5], [0.1, 0.9]])
    P = wc.Mixture([wc.Bernoulli(p), wc.Categorical(q)], [0.25, 0.75])
    mean = 0.25 * np.stack([1 - p, p], axis=1) + 0.75 * q
    np.testing.assert_allclose(wc.pairing(k.Delta(), P, P), mean @ mean.T, rtol=1e-14)


# -- lowered components ------------------------------------------------------------------------------------


def test_lowered_components_are_summed_too() -> None:
    rng = np.random.default_rng(8)
    gammas = wc.Gamma(rng.uniform(1.0, 4.0, 2), rng.uniform(0.5, 1.0, 2))
    P = wc.Mixture([normals(2, 0), gammas, laplaces(2, 1)], weights(2, 3, 2))
    for kernel in (k.Gaussian(0.8), k.Matern(2.5, 0.8)):
        np.testing.assert_allclose(wc.pairing(kernel, P, P), brute_force(kernel, P, P), rtol=0, atol=2e-6)
    with pytest.raises(ValueError, match=r"no closed form of Gaussian.* for Gamma"):
        wc.pairing(k.Gaussian(), P, P, expectations="closed")
