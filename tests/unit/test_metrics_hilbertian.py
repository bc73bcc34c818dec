"""Which distances give kernels: counterexamples reproduced, and Gram matrices of proven ones."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal import kernels as k
from wellcal.expectations.bilinear import matching
from wellcal.expectations.distances import distance
from wellcal.expectations.prediction_kernels import prediction_kernel


def distances(metric: k.Metric, predictions: Any) -> np.ndarray:
    form, rows = distance(metric, predictions)
    return np.asarray(form(predictions.ops, rows, rows)) ** (1.0 / form.degree)


def smallest_eigenvalue(gram: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(0.5 * (gram + gram.T))[0])


def negative_type(squared: np.ndarray) -> float:
    """Smallest eigenvalue of the centred -d^2 / 2: negative where d is not Hilbertian."""
    n = len(squared)
    centre = np.eye(n) - 1.0 / n
    return smallest_eigenvalue(-0.5 * centre @ squared @ centre)


def random_covariances(n: int, d: int, seed: int) -> np.ndarray:
    root = np.random.default_rng(seed).normal(size=(n, d, d))
    return root @ np.swapaxes(root, 1, 2) + 0.05 * np.eye(d)


def two_point_mixtures(points: np.ndarray, *, repeated: bool) -> wc.Mixture:
    """All uniform mixtures of two of the points, as normals of almost no spread."""
    choose = itertools.combinations_with_replacement if repeated else itertools.combinations
    pairs = np.array(list(choose(range(len(points)), 2)))
    tiny = np.full((len(pairs), points.shape[1]), 1e-9)
    return wc.Mixture([wc.DiagonalNormal(points[pairs[:, c]], tiny) for c in (0, 1)])


def kernel_matrix(kernel: k.ExpDistance, predictions: Any) -> np.ndarray:
    return np.exp(-((distances(kernel.metric, predictions) / kernel.lengthscale) ** kernel.power))


def test_mixture_wasserstein_on_a_square_is_not_hilbertian() -> None:
    """r' MW_2^2 r = 1/4 for r = 1/2 on diagonals, -1/4 on edges; exp(-l MW_2^2) fails for l < ln 3."""
    P = two_point_mixtures(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), repeated=False)
    squared = distances(k.MixtureWasserstein(2), P) ** 2
    r = np.array([-0.25, -0.25, 0.5, 0.5, -0.25, -0.25])  # pairs 03 and 12 are the diagonals
    assert r @ squared @ r == pytest.approx(0.25, abs=1e-7)
    assert negative_type(squared) < -0.05
    for rate in (0.2, 0.7, 1.0, math.log(3.0) - 0.01):
        assert smallest_eigenvalue(np.exp(-rate * squared)) < -1e-4, rate
    assert smallest_eigenvalue(np.exp(-(math.log(3.0) + 0.01) * squared)) > 0


def test_papers_mixture_kernel_has_a_negative_eigenvalue() -> None:
    axis = 0.2425 * np.arange(3)
    P = two_point_mixtures(np.array(list(itertools.product(axis, axis))), repeated=True)
    gram = kernel_matrix(k.ExpDistance(k.MixtureWasserstein(2)), P)
    assert smallest_eigenvalue(gram) == pytest.approx(-0.0587, abs=5e-5)
    proven = k.ExpDistance(k.MaximumMeanDiscrepancy(k.Gaussian(0.3)), power=2)
    assert smallest_eigenvalue(kernel_matrix(proven, P)) > -1e-12


def needles() -> wc.MultivariateNormal:
    """Nearly degenerate covariances at 0, 45, 90 and 135 degrees."""
    angles = np.deg2rad([0.0, 45.0, 90.0, 135.0])
    along = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return wc.MultivariateNormal(np.zeros((4, 2)), along[:, :, None] * along[:, None, :] + 1e-4 * np.eye(2))


def test_wasserstein_between_needles_is_not_hilbertian() -> None:
    assert negative_type(distances(k.Wasserstein(), needles()) ** 2) < -0.01
    gram = kernel_matrix(k.ExpDistance(k.Wasserstein(), lengthscale=3.0, power=2), needles())
    assert smallest_eigenvalue(gram) < -1e-3
    assert negative_type(distances(k.RootCovariance(), needles()) ** 2) > -1e-12
    assert smallest_eigenvalue(kernel_matrix(k.ExpDistance(k.RootCovariance(), power=2), needles())) > 0


@pytest.mark.parametrize("power", [0.5, 1.0, 1.7, 2.0])
@pytest.mark.parametrize("lengthscale", [0.1, 1.0, 10.0])
def test_proven_kernels_have_no_negative_eigenvalue(power: float, lengthscale: float) -> None:
    rng = np.random.default_rng(17)
    n = 12
    full = wc.MultivariateNormal(0.1 * rng.normal(size=(n, 2)), random_covariances(n, 2, 18))
    normal = wc.Normal(rng.normal(size=n), rng.uniform(0.1, 2, n))
    mixture = wc.Mixture([normal, wc.Laplace(rng.normal(size=n), rng.uniform(0.1, 2, n))])
    probs = rng.dirichlet(np.full(4, 0.5), n)
    cases: list[tuple[k.Metric, Any]] = [
        (k.RootCovariance(), full),
        (k.MaximumMeanDiscrepancy(k.Gaussian()), full),
        (k.MaximumMeanDiscrepancy(k.Laplacian()), mixture),
        (k.Wasserstein(), normal),
        (k.Wasserstein(), wc.Samples(rng.normal(size=(n, 9)))),
        (k.Hellinger(), wc.Categorical(probs)),
        (k.Hellinger(), normal),
        (k.Euclidean(), wc.Categorical(probs)),
    ]
    if power <= 1.0:
        cases += [
            (k.TotalVariation(), wc.Categorical(probs)),
            (k.Wasserstein(1), wc.Samples(rng.normal(size=(n, 9)))),
        ]
    for metric, predictions in cases:
        gram = kernel_matrix(k.ExpDistance(metric, lengthscale=lengthscale, power=power), predictions)
        assert smallest_eigenvalue(gram) > -1e-10, metric


def test_total_variation_with_power_2_is_refused() -> None:
    """And rightly: exp(-TV^2) has negative eigenvalues."""
    for metric in (k.TotalVariation(), k.Wasserstein(1)):
        with pytest.raises(ValueError, match=r"a kernel only for power <= 1, found 2"):
            k.ExpDistance(metric, power=2)
        with pytest.raises(ValueError, match=r"power <= 1"):
            k.ExpDistance(metric, power=1.01)
        k.ExpDistance(metric, power=1.0)
    vertices = np.concatenate([np.eye(4), np.full((1, 4), 0.25), 0.5 * (np.eye(4) + np.eye(4)[[1, 0, 3, 2]])])
    pairs = np.array([(np.eye(4)[a] + np.eye(4)[b]) / 2 for a, b in itertools.combinations(range(4), 2)])
    squared = distances(k.TotalVariation(), wc.Categorical(np.concatenate([vertices, pairs]))) ** 2
    assert negative_type(squared) < -1e-3
    assert min(smallest_eigenvalue(np.exp(-rate * squared)) for rate in (0.1, 0.5, 1.0)) < -1e-6


# -- ExpDistance -------------------------------------------------------------------------------------------


def test_exp_distance_of_a_batch() -> None:
    P = wc.Normal(np.array([0.0, 1.0, 5.0]), np.array([1.0, 0.5, 2.0]))
    for power, lengthscale in ((1.0, 1.0), (2.0, 0.7), (0.5, 3.0)):
        kernel = k.ExpDistance(k.Wasserstein(), lengthscale=lengthscale, power=power)
        form, rows = prediction_kernel(kernel, P)
        np.testing.assert_allclose(form(P.ops, rows, rows), kernel_matrix(kernel, P), rtol=1e-13)
        np.testing.assert_allclose(matching(form, P.ops, rows, rows), 1.0, rtol=1e-15)


@pytest.mark.parametrize("power", [0.0, -1.0, 2.5, math.nan])
def test_bad_powers(power: float) -> None:
    with pytest.raises(ValueError, match="power"):
        k.ExpDistance(k.Wasserstein(), power=power)


def test_exp_distance_needs_a_metric() -> None:
    with pytest.raises(TypeError, match="metric must be a metric such as"):
        k.ExpDistance(k.Gaussian())  # pyright: ignore[reportArgumentType]
