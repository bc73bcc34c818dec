"""Locations of few predictions with many targets, against a kernel value for each."""

from __future__ import annotations

import numpy as np
import pytest

import wellcal as wc
from wellcal.kernels import Gaussian, Laplacian
from wellcal.problem import at_locations
from wellcal.problem.at_locations import location_kernel
from wellcal.problem.repeated_locations import RepeatedLocations

N = 900


def _direct(points: np.ndarray, weights: np.ndarray, y: np.ndarray, lengthscale: float) -> np.ndarray:
    table = np.exp(-0.5 * ((y[:, :, None] - points) / lengthscale) ** 2)
    return np.einsum("rnj,nj->rj", table, weights)


@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1.0), (1e5, 1.0), (-3.0, 1e-4)])
def test_sums_are_those_of_all_kernel_values(offset: float, scale: float) -> None:
    rng = np.random.default_rng(1)
    points = offset + scale * np.linspace(-2.0, 2.0, 44)
    weights = np.repeat(rng.random((N, 4)), 11, axis=1)
    y = offset + scale * rng.standard_t(2.0, (3, N)) * 3.0
    found = RepeatedLocations.of(Gaussian(0.9 * scale), points, weights)
    assert found is not None
    assert found.weights.shape == (4, N)
    assert len(found.at) < 30
    direct = _direct(points, weights, y, 0.9 * scale)
    assert np.abs(found.sums(y) - direct).max() <= 1e-12 * weights.sum(axis=0).max()


def test_it_is_left_where_nothing_is_gained() -> None:
    rng = np.random.default_rng(2)
    points, alike = np.linspace(-2.0, 2.0, 40), np.ones((N, 40))
    assert RepeatedLocations.of(Gaussian(0.9), points, alike) is not None
    assert RepeatedLocations.of(Gaussian(0.9), points, rng.random((N, 40))) is None  # all predictions differ
    assert RepeatedLocations.of(Gaussian(0.01), points, alike) is None  # no target is near another
    assert RepeatedLocations.of(Laplacian(0.9), points, alike) is None  # not smooth
    assert RepeatedLocations.of(Gaussian(1e-9), points, alike) is None  # too far apart to look


def test_many_cases_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    loc = rng.normal(size=N)
    pred = wc.Normal(loc, np.ones(N))
    where = pred[np.repeat([3, 5], 30)], np.tile(np.linspace(-2.0, 2.0, 30), 2)
    y = rng.normal(loc, size=(4, N))
    kernel = wc.default_kernel(pred)
    usual = location_kernel(kernel, pred, where).sums(y)
    monkeypatch.setattr(at_locations, "FEWEST", N)
    weights = rng.random(N)
    at = location_kernel(kernel, pred, where)
    calls: list[int] = []
    sums = RepeatedLocations.sums
    monkeypatch.setattr(RepeatedLocations, "sums", lambda *args: calls.append(1) or sums(*args))  # type: ignore
    assert np.abs(at.sums(y) - usual).max() <= 1e-12 * N
    assert np.abs(at.sums(y, centred=False) - at.sums(y) - at.expected.sum(axis=0)).max() <= 1e-12 * N
    assert len(calls) == 3
    monkeypatch.setattr(at_locations, "FEWEST", N + 1)
    plain = location_kernel(kernel, pred, where).weighted(weights).sums(y)
    assert np.abs(at.weighted(weights).sums(y) - plain).max() <= 1e-12 * N
