"""Features of Gaussian kernels: products are pairings, for points, normals and Laplace distributions."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import torch
from scipy import integrate

import wellcal as wc
from wellcal import kernels as k
from wellcal._arrays.chunks import limited
from wellcal.expectations.features import NORM, FeatureGrid, mean_features, needed_features, step_of
from wellcal.expectations.signed_measures import Components, elementary_components, points

from ..engines.examples import jax_x64

LOC, SCALE = np.array([0.0, 1.0, -3.0, 0.2]), np.array([1.0, 0.2, 2.0, 1e-3])


def needed(lengthscale: float, *parts: Components) -> FeatureGrid:
    found = needed_features(lengthscale, parts)
    assert found is not None
    assert found[1] == 0.0
    return found[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("lengthscale", "d"), [(0.05, 1), (1.0, 1), (40.0, 1), (0.5, 2), (40.0, 2)])
def test_features_reproduce_the_kernel(lengthscale: float, d: int, weighted: bool) -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=(5, 20, d))
    w = rng.dirichlet(np.ones(20), 5)
    atoms = points(x, w if weighted else None)
    features = mean_features(needed(lengthscale, atoms), atoms)
    squared = ((x[:, :, None, None, :] - x[None, None, :, :, :]) ** 2).sum(-1)
    gram = np.exp(-squared / (2 * lengthscale**2))
    share = w if weighted else np.full((5, 20), 0.05)
    direct = np.einsum("is,isjt,jt->ij", share, gram, share)
    np.testing.assert_allclose(features @ features.T, direct, rtol=0, atol=1e-12)


@pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("lengthscale", [0.1, 0.6, 30.0])
@pytest.mark.parametrize("family", [wc.Normal, wc.Laplace])
def test_features_of_families_reproduce_pairings(family: Any, lengthscale: float, convert: Any) -> None:
    own = elementary_components(family(convert(LOC), convert(SCALE)))
    at = points(convert(np.array([[0.1], [4.0], [-60.0], [0.2]])))
    grid = needed(lengthscale, own, at)
    left, right = (np.asarray(mean_features(grid, part)) for part in (own, at))
    P, kernel = family(LOC, SCALE), k.Gaussian(lengthscale)
    np.testing.assert_allclose(left @ left.T, wc.pairing(kernel, P, P), rtol=0, atol=1e-12)
    y = np.array([0.1, 4.0, -60.0, 0.2])
    np.testing.assert_allclose(left @ right.T, wc.pairing(kernel, P, y), rtol=0, atol=1e-12)


def test_features_of_laplace_distributions_are_expectations() -> None:
    grid, m, b = FeatureGrid(1.0, (0.4 * np.arange(-8.0, 9.0),), (0.0,)), 0.3, 0.7
    found = grid.of_laplaces(np.array([m]), np.array([b]))[0]
    for c, value in zip(grid.centres[0], found, strict=True):

        def density(z: float, c: float = float(c)) -> float:
            return float(np.exp(-((z - c) ** 2) - abs(z - m) / b) / (2.0 * b))

        exact = integrate.quad(density, c - 12.0, c + 12.0, points=[m], epsabs=1e-14, limit=200)[0]
        assert value == pytest.approx(NORM * exact, abs=1e-12)


def test_atoms_meet_the_features_near_them() -> None:
    """Of many features, some of which are left out; also at the ends, and where there are none."""
    rng = np.random.default_rng(4)
    x = np.concatenate([100.0 * rng.normal(size=200), [-1e200, 1e200, 90.0]])
    centres = needed(1.0, points(x[:12, None])).centres[0]
    assert len(centres) > 192
    assert np.ptp(centres) > 0.4 * len(centres)
    grid = FeatureGrid(1.0, (centres,), (0.25,))
    with np.errstate(over="ignore"):
        direct = NORM * np.exp(-((x[:, None] - 0.25 - centres) ** 2))
    np.testing.assert_allclose(grid.of_points(x[:, None, None], None), direct, rtol=0, atol=1e-15)
    with limited(work=50_000):
        means = grid.of_points(x[None, :200, None], None)
    np.testing.assert_allclose(means[0], direct[:200].mean(axis=0), rtol=0, atol=1e-15)


def test_data_far_from_zero_lose_nothing() -> None:
    away = np.random.default_rng(2).integers(-64, 64, (20, 9)) / 16.0  # sums with the origin are exact
    there, here = (points(origin + away) for origin in (2.0**30, 0.0))
    found = [mean_features(needed(1.0, part), part) for part in (there, here)]
    np.testing.assert_allclose(found[0] @ found[0].T, found[1] @ found[1].T, rtol=0, atol=1e-13)


@pytest.mark.parametrize("d", [1, 2])
def test_atoms_without_weight_need_no_features(d: int) -> None:
    """What is left out of wide predictions is reported; targets and uniform atoms are never left out."""
    x = np.array([[0.0, 0.3, 1e9], [0.1, -3000.0, 0.0]])[:, :, None] * np.ones(d)
    w = np.array([[0.5, 0.5, 1e-11], [0.6, 1e-12, 0.4]])
    found = needed_features(1.0, [points(x, w)], exact=False)
    assert found is not None
    assert found[0].size < 30**d
    assert found[1] <= 1e-9
    assert needed_features(1.0, [points(x, w)]) is None
    assert needed_features(1.0, [points(x)], exact=False) is None
    assert step_of(found[0].lengthscale) == pytest.approx(np.diff(found[0].centres[0])[0])


@pytest.mark.parametrize("weighted", [False, True])
def test_near_features_in_jax(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    x = 500.0 * rng.standard_normal((3, 60, 1))
    w = rng.dirichlet(np.ones(60), 3) if weighted else None
    grid = needed(0.3, points(x, w))
    assert grid.size > 192

    with jax_x64():
        weights = None if w is None else jax.numpy.asarray(w)

        def total(values: Any) -> Any:
            features = grid.of_points(values, weights)
            return jax.numpy.sum(features * jax.numpy.sin(jax.numpy.arange(grid.size))), features

        (_, features), slopes = jax.jit(jax.value_and_grad(total, has_aux=True))(jax.numpy.asarray(x))
    signs = np.sin(np.arange(grid.size))
    np.testing.assert_allclose(features, grid.of_points(x, w), rtol=0, atol=1e-13)
    move = np.zeros_like(x)
    move[1, 5] = 1e-5
    ends = [float(np.sum(grid.of_points(x + t, w) * signs)) for t in (-move, move)]
    np.testing.assert_allclose(float(slopes[1, 5, 0]), (ends[1] - ends[0]) / 2e-5, rtol=1e-5, atol=1e-8)
