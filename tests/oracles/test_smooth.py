"""Smooth calibration error against integration of its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import wellcal as wc
from wellcal import smooth_ece

RNG = np.random.default_rng(4)


def by_definition(y: Any, p: Any, sigma: float) -> float:
    """Integral between zeros of the sum of Gaussian kernels and all their mirror images in 0 and 1."""
    images = np.concatenate([2.0 * m + s * p for m in range(-6, 7) for s in (1.0, -1.0)])
    residuals = np.tile(y - p, 26) / len(p)

    def at(t: float) -> float:
        return float(residuals @ stats.norm.pdf(t, images, sigma))

    def below(t: float) -> float:
        return float(residuals @ stats.norm.cdf(t, images, sigma))

    grid = np.linspace(0.0, 1.0, 4001)
    signs = np.sign([at(t) for t in grid])
    zeros = [optimize.brentq(at, grid[i], grid[i + 1], xtol=1e-15) for i in np.flatnonzero(np.diff(signs))]
    return float(np.sum(np.abs(np.diff([below(t) for t in (0.0, *zeros, 1.0)]))))


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.7])
def test_against_integration(sigma: float) -> None:
    rng = np.random.default_rng(1)
    p = np.concatenate([rng.random(10), [0.0, 1.0, 0.5]])
    y = rng.integers(0, 2, 13)
    assert smooth_ece(y, p, bandwidth=sigma).value == pytest.approx(by_definition(y, p, sigma), rel=1e-12)


@pytest.mark.parametrize("n", [20, 300])
def test_the_bandwidth_is_its_own_error(n: int) -> None:
    p = RNG.random(n)
    y = RNG.integers(0, 2, n)
    found = smooth_ece(y, p)
    assert found.value == pytest.approx(found.provenance["bandwidth"], rel=1e-10)
    assert smooth_ece(y, p, bandwidth=found.provenance["bandwidth"]).value == pytest.approx(
        found.value, rel=1e-10
    )


def test_wide_kernels_give_the_mean_difference() -> None:
    p, y = RNG.random(50), RNG.integers(0, 2, 50)
    assert smooth_ece(y, p, bandwidth=50.0).value == pytest.approx(abs(np.mean(y - p)), rel=1e-12)


def test_wider_kernels_see_less() -> None:
    p, y = RNG.random(80), RNG.integers(0, 2, 80)
    values = [smooth_ece(y, p, bandwidth=s).value for s in (0.01, 0.03, 0.1, 0.3, 1.0)]
    assert np.all(np.diff(values) < 0)


def test_names_of_the_two_classes_do_not_matter() -> None:
    p, y = RNG.random(60), RNG.integers(0, 2, 60)
    assert smooth_ece(1 - y, 1.0 - p).value == pytest.approx(smooth_ece(y, p).value, rel=1e-9)


def test_continuous_in_predictions() -> None:
    """At the edge of a bin the binned error jumps; this one does not."""
    y = np.array([1, 0, 1, 1, 0])
    p = np.array([0.3, 0.3, 0.6, 0.8, 0.9])
    values = [smooth_ece(y, p + shift).value for shift in (-1e-7, 0.0, 1e-7)]
    assert max(values) - min(values) < 1e-6


def test_reductions() -> None:
    probs, y = RNG.dirichlet(np.ones(3), 100), RNG.integers(0, 3, 100)
    assert smooth_ece(y, probs, reduce="confidence").value == smooth_ece(*wc.confidence(y, probs)).value
    single = [smooth_ece((y == c).astype(int), probs[:, c]).value for c in range(3)]
    assert smooth_ece(y, probs, reduce="classwise").value == pytest.approx(np.mean(single), rel=1e-12)


def test_small_errors() -> None:
    assert smooth_ece([0, 1], np.array([0.0, 1.0])).value == 0.0
    p = np.repeat([0.25, 0.75], 1000)
    y = np.concatenate([np.arange(1000) % 4 == 0, np.arange(1000) % 4 != 0]).astype(int)
    y[0] = 1 - y[0]
    assert smooth_ece(y, p).value == pytest.approx(1 / 2000, rel=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: smooth_ece([0], np.array([[0.2, 0.3, 0.5]])), ValueError, "3 classes"),
        (lambda: smooth_ece([0.0], wc.Normal(np.zeros(1), 1.0)), TypeError, "predictions of classes"),
        (lambda: smooth_ece([0], np.array([0.2]), reduce="top"), ValueError, "unknown value of reduce"),
        (lambda: smooth_ece([0], np.array([0.2]), bandwidth=0.0), ValueError, "bandwidth must be positive"),
        (lambda: smooth_ece(wc.Bernoulli(np.ones(1)), [1]), TypeError, "truth first"),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
