"""Families of vectors against scipy.stats, numerical integration and their special cases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import wellcal.predictions as wp

RNG = np.random.default_rng(21)
N, D = 20, 3
MEANS = RNG.normal(size=(N, D))
FACTORS = RNG.normal(size=(N, D, D))
COVS = FACTORS @ FACTORS.transpose(0, 2, 1) + 0.1 * np.eye(D)
POINTS = MEANS + 2.0 * RNG.normal(size=(5, N, D))


def rowwise(function: Callable[[int, np.ndarray], float], points: np.ndarray) -> np.ndarray:
    return np.array([[function(i, point) for i, point in enumerate(batch)] for batch in points])


def test_multivariate_normal() -> None:
    pred = wp.MultivariateNormal(MEANS, COVS)
    expected = rowwise(lambda i, y: stats.multivariate_normal(MEANS[i], COVS[i]).logpdf(y), POINTS)
    assert_allclose(pred.log_prob(POINTS), expected, rtol=1e-11)
    assert_allclose(pred.log_prob(POINTS[1]), expected[1], rtol=1e-11)
    assert_allclose(pred.mean(), MEANS)
    assert_allclose(pred.variance(), np.diagonal(COVS, axis1=1, axis2=2))
    assert_allclose(pred.chol @ pred.chol.transpose(0, 2, 1), COVS, rtol=1e-12, atol=1e-12)
    quartiles = 2.0 * stats.norm.ppf(0.75) * np.sqrt(pred.variance())
    assert_allclose(pred.interquartile_range(), quartiles, rtol=1e-14)


def test_diagonal_normal() -> None:
    scale = np.exp(MEANS)
    pred = wp.DiagonalNormal(MEANS, scale)
    assert_allclose(pred.log_prob(POINTS), stats.norm.logpdf(POINTS, MEANS, scale).sum(-1), rtol=1e-12)
    assert_allclose(pred.mean(), MEANS)
    assert_allclose(pred.variance(), scale**2)
    quartiles = stats.norm.ppf(0.75, MEANS, scale) - stats.norm.ppf(0.25, MEANS, scale)
    assert_allclose(pred.interquartile_range(), quartiles, rtol=1e-9)


def test_zero_scales_of_a_diagonal_normal() -> None:
    pred = wp.DiagonalNormal([[0.0, 1.0]] * 3, [[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    assert_allclose(pred.log_prob([[0.0, 1.0], [0.0, 2.0], [1.0, 1.0]]), [np.inf, -np.inf, -np.inf])


def test_precisions_are_joined() -> None:
    pred = wp.MultivariateNormal(MEANS.astype(np.float32), COVS)
    assert pred.loc.dtype == pred.cov.dtype == pred.chol.dtype == np.float64


def test_dirichlet() -> None:
    concentration = RNG.uniform(0.3, 30.0, (N, 4))
    pred = wp.Dirichlet(concentration)
    points = RNG.dirichlet(np.ones(4), (2, N))
    assert_allclose(pred.mean(), [stats.dirichlet.mean(a) for a in concentration], rtol=1e-12)
    assert_allclose(pred.variance(), [stats.dirichlet.var(a) for a in concentration], rtol=1e-12)
    expected = rowwise(lambda i, y: stats.dirichlet.logpdf(y / y.sum(), concentration[i]), points)
    assert_allclose(pred.log_prob(points), expected, rtol=1e-11, atol=1e-11)
    rest = concentration.sum(1, keepdims=True) - concentration
    marginal = stats.beta(concentration, rest)
    assert_allclose(pred.interquartile_range(), marginal.ppf(0.75) - marginal.ppf(0.25), rtol=1e-11)


def test_dirichlet_on_the_boundary() -> None:
    flat = wp.Dirichlet([[1.0, 1.0, 1.0]])
    assert_allclose(flat.log_prob([[0.0, 0.5, 0.5]]), np.log(2.0))
    assert_allclose(wp.Dirichlet([[2.0, 1.0]]).log_prob([[0.0, 1.0]]), -np.inf)
    assert_allclose(wp.Dirichlet([[2.0, 1.0]]).log_prob([[-0.5, 1.5]]), -np.inf)


def test_dirichlet_samples_with_tiny_concentrations_are_probability_vectors() -> None:
    drawn = wp.Dirichlet(np.full((1, 3), 1e-4)).sample(0, 2000)
    assert np.all(np.isfinite(drawn))
    assert_allclose(drawn.sum(-1), 1.0)
    # Nearly all of the mass is in one corner, each equally often.
    assert_allclose((drawn > 0.5).mean(0), 1 / 3, atol=5 * np.sqrt(2 / 9 / 2000))


@pytest.mark.parametrize("shape", [0.6, 1.0, 2.0, 5.0])
def test_power_exponential_integrates_to_one_and_has_its_variance(shape: float) -> None:
    # In whitened polar coordinates the density is c exp(-r^shape / 2), on spheres of area 4 pi r^2.
    pred = wp.PowerExponential(MEANS[:1], shape=shape, cov=COVS[:1])
    _, log_determinant = np.linalg.slogdet(COVS[0])
    direction = np.linalg.cholesky(COVS[0])[:, 0]
    nodes, weights = np.polynomial.legendre.leggauss(400)
    end = 120.0 ** (1.0 / shape)  # exp(-60) is left out
    s = 0.5 * (nodes + 1.0)
    r, w = end * s**4, 0.5 * weights * end * 4.0 * s**3  # the substitution smooths the density at 0
    at = MEANS[0] + r[:, None] * direction
    values = np.exp(pred.log_prob(at[:, None, :])[:, 0] + 0.5 * log_determinant)
    assert_allclose(np.sum(w * values * 4.0 * np.pi * r**2), 1.0, rtol=1e-10)
    second_moment = np.sum(w * values * 4.0 * np.pi * r**4) / D
    assert_allclose(pred.variance()[0], second_moment * np.diagonal(COVS[0]), rtol=1e-10)
    assert_allclose(pred.interquartile_range(), 1.3489795003921634 * np.sqrt(pred.variance()), rtol=1e-14)


def test_power_exponential_special_cases() -> None:
    normal = wp.MultivariateNormal(MEANS, COVS)
    same = wp.PowerExponential(MEANS, shape=2.0, cov=COVS)
    assert_allclose(same.log_prob(POINTS), normal.log_prob(POINTS), rtol=1e-12)
    assert_allclose(same.variance(), normal.variance(), rtol=1e-12)

    loc, scale, shape = MEANS[:, 0], np.exp(MEANS[:, 1]), np.exp(0.5 * MEANS[:, 2])
    one = wp.PowerExponential(loc[:, None], shape=shape, cov=scale[:, None, None] ** 2)
    scalar = wp.PowerExponential(loc, scale * 2.0 ** (1.0 / shape), shape)
    y = scalar.quantile(0.2)
    assert_allclose(one.log_prob(y[:, None]), scalar.log_prob(y), rtol=1e-11, atol=1e-12)
    assert_allclose(one.variance()[:, 0], scalar.variance(), rtol=1e-11)
    for method in ("cdf", "quantile"):
        with pytest.raises(TypeError, match=f"has no {method}"):
            getattr(one, method)(0.5)


def test_a_covariance_is_made_exactly_symmetric() -> None:
    cov = COVS.copy()
    cov[0, 0, 1] *= 1.0 + 1e-10
    pred = wp.MultivariateNormal(MEANS, cov)
    assert np.array_equal(pred.cov, pred.cov.transpose(0, 2, 1))
