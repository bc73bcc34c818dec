"""Dirichlet predictions against double exponential quadrature, and errors that are measured on all rows."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import wellcal as wc
from wellcal import kernels as k
from wellcal.expectations.adaptive_quadrature import FOR_FEATURES, choose
from wellcal.expectations.distances import distance
from wellcal.expectations.gauss_jacobi import beta_rule
from wellcal.expectations.pivots import spanning_pivots

Profile = Callable[[np.ndarray], np.ndarray]
ONE = k.ExpDistance(k.MaximumMeanDiscrepancy(k.Gaussian()), lengthscale=1e9, power=2.0)
STEP = 0.02


def of_beta(a: float, b: float, step: float = STEP) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, 1 - x and probabilities: trapezoidal rule in t, with the logit of x at pi sinh t."""
    t = np.arange(-8.0, 8.0, step)
    log_x, log_rest = (-np.logaddexp(0.0, sign * np.pi * np.sinh(t)) for sign in (-1.0, 1.0))
    log_mass = a * log_x + b * log_rest + np.log(np.cosh(t))
    mass = np.exp(log_mass - log_mass.max())
    keep = mass > 1e-19 * mass.sum()
    return np.exp(log_x)[keep], np.exp(log_rest)[keep], mass[keep] / mass.sum()


def exact(concentration: np.ndarray, profile: Profile, at: np.ndarray) -> np.ndarray:
    """``E k(Z, y)`` of one Dirichlet prediction, for points ``(m, d)``."""
    values, left, weights = np.ones((1, 0)), np.ones(1), np.ones(1)
    for c in range(len(concentration) - 1):
        x, rest, mass = of_beta(concentration[c], concentration[c + 1 :].sum())
        broken = (left[:, None] * x).reshape(-1, 1)
        values = np.concatenate([np.repeat(values, len(x), axis=0), broken], axis=1)
        left, weights = (left[:, None] * rest).reshape(-1), (weights[:, None] * mass).reshape(-1)
    values = np.concatenate([values, left[:, None]], axis=1)
    return np.array([weights @ profile(((values - y) ** 2).sum(axis=1)) for y in at])


def unlike(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return np.exp(1.2 * rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(n, 1)))


def one_odd(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    found = np.full((n, d), 50.0)
    found[int(rng.integers(n))], found[int(rng.integers(n))] = 1.0, 0.05
    return found


KERNELS: dict[str, Callable[[float], tuple[k.Kernel, Profile]]] = {
    "Gaussian": lambda h: (k.Gaussian(h), lambda s: np.exp(-s / (2 * h**2))),
    "Matern": lambda h: (
        k.Matern(1.5, h),
        lambda s: (1 + np.sqrt(3 * s) / h) * np.exp(-np.sqrt(3 * s) / h),
    ),
}


@pytest.mark.parametrize("batch", [unlike, one_odd])
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_dirichlet(name: str, d: int, batch: Callable[..., np.ndarray]) -> None:
    """Rows that need it get more nodes, so that a smooth kernel reaches the tolerance; others say how far."""
    rng = np.random.default_rng(5)
    concentration = batch(rng, 70, d)
    predictions = wc.Dirichlet(concentration)
    scale = float(np.median(predictions.interquartile_range())) * d**0.5
    kernel, profile = KERNELS[name](scale)
    y = predictions.sample(rng=1)
    reported = wc.skce(y, predictions, kernel=ONE @ kernel).provenance["expectation_error"]
    spread = concentration.sum(axis=1)
    rows = np.unique([int(np.argmin(spread)), int(np.argmax(spread)), int(np.argsort(spread)[2]), 9])
    at = np.concatenate([y[rows], np.eye(d), np.full((1, d), 1.0 / d)])
    found = wc.pairing(kernel, predictions, at)
    true = max(np.abs(found[i] - exact(concentration[i], profile, at)).max() for i in rows)
    assert reported >= true / 3.0
    if name == "Gaussian":
        assert reported <= 1e-6


def test_odd_rows_are_spanned() -> None:
    """Points that span the features come from some rows; a row that lies elsewhere adds its own."""
    concentration = np.full((300, 3), (400.0, 4.0, 4.0))
    concentration[170] = (4.0, 4.0, 400.0)
    predictions = wc.Dirichlet(concentration)
    kernel, some = k.Gaussian(0.05), predictions[150:190]
    (rows, atoms) = choose(predictions, kernel, wc.Lowering(), 64, FOR_FEATURES).parts[0]
    found = spanning_pivots(0.05, [(np.asarray(atoms.values), np.asarray(atoms.weights))], [])
    assert found is not None
    assert rows is None
    mean = found.of_points(np.asarray(atoms.values)[150:190], np.asarray(atoms.weights)[150:190])
    np.testing.assert_allclose(mean @ mean.T, wc.pairing(kernel, some, some), rtol=0, atol=1e-6)


def test_rules_of_beta_distributions() -> None:
    """Nodes, weights and derivatives of weights, for parameters of every size."""
    for a, b in [(2.0, 3.0), (0.01, 0.02), (0.5, 0.5), (1.0, 1.0), (0.05, 30.0), (40.0, 60.0)]:
        rule = beta_rule(np.array([a]), np.array([b]), 24)
        x, mass = rule.x[0], rule.weights[0]

        def mean(a: float, b: float) -> float:
            x, _, mass = of_beta(a, b, 0.01)
            return float(mass @ np.cos(3.0 * x))

        assert mass @ np.cos(3.0 * x) == pytest.approx(mean(a, b), abs=1e-12)
        for by, moved in ((rule.by_a[0], (a, 0.0)), (rule.by_b[0], (0.0, b))):
            step = 1e-4
            ends = [mean(a + sign * step * moved[0], b + sign * step * moved[1]) for sign in (1, -1)]
            expected = (ends[0] - ends[1]) / (2.0 * step)
            assert sum(moved) * (mass * by) @ np.cos(3.0 * x) == pytest.approx(expected, abs=3e-7)


def test_gradients_of_a_sharp_kernel() -> None:
    concentration = np.exp(np.random.default_rng(2).normal(size=(5, 3)))
    y = np.random.default_rng(3).dirichlet(np.ones(3), 5)
    kernel = ONE @ k.Gaussian(0.3)
    given = torch.tensor(concentration, requires_grad=True)
    value = wc.skce(torch.tensor(y), wc.Dirichlet(given), kernel=kernel).value
    (gradient,) = torch.autograd.grad(value, given)
    way = np.random.default_rng(4).normal(size=(5, 3))

    def moved(by: float) -> float:
        return float(wc.skce(y, wc.Dirichlet(concentration * np.exp(by * way)), kernel=kernel))

    along = float((gradient.numpy() * concentration * way).sum())
    assert along == pytest.approx((moved(1e-3) - moved(-1e-3)) / 2e-3, rel=1e-3)


def test_what_is_remembered_does_not_keep_predictions() -> None:
    predictions = wc.Dirichlet(np.ones((6, 3)))
    y = predictions.sample(rng=0)
    wc.skce(y, predictions)
    wc.energy_score(y, predictions)
    gone = weakref.ref(predictions)
    del predictions
    gc.collect()
    assert gone() is None


# -- other errors that were measured on a few rows ---------------------------------------------------------


def quantile_distance(p: Any, q: Any, order: int) -> float:
    """Distance of quantile functions by panels of levels, finer and finer towards 0 and 1."""
    ends = np.concatenate([10.0 ** np.arange(-60.0, -1.0, 0.25), np.linspace(0.02, 0.5, 200)])
    x, w = np.polynomial.legendre.leggauss(12)
    total = 0.0
    for lower in (True, False):
        low, high = ends[:-1, None], ends[1:, None]
        u, mass = low + (high - low) * 0.5 * (x + 1.0), 0.5 * w * (high - low)
        values = [d.ppf(u) if lower else d.isf(u) for d in (p, q)]
        total += float((mass * np.abs(values[0] - values[1]) ** order).sum())
    return total ** (1.0 / order)


ODD = 37
Frozen = Callable[[Any, int], Any]
BATCHES: dict[str, tuple[Callable[[np.ndarray], Any], Frozen]] = {
    "Gamma": (
        lambda odd: wc.Gamma(2.0 - 1.7 * odd, 1.0 + 30.0 * odd),
        lambda p, i: stats.gamma(p.shape[i], scale=p.scale[i]),
    ),
    "LogNormal": (
        lambda odd: wc.LogNormal(0.0 * odd, 0.3 + 1.2 * odd),
        lambda p, i: stats.lognorm(p.sigma[i]),
    ),
    "StudentT": (
        lambda odd: wc.StudentT(20.0 - 17.0 * odd, 0.0 * odd, 1.0 + odd),
        lambda p, i: stats.t(p.df[i], p.loc[i], p.scale[i]),
    ),
}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("family", BATCHES)
def test_wasserstein_by_quantiles(family: str, order: int) -> None:
    """One row among a hundred that none of a few evenly spaced ones stands for."""
    build, frozen = BATCHES[family]
    predictions = build((np.arange(100) == ODD).astype(float))
    metric = k.Wasserstein(order)
    y = predictions.sample(rng=1)
    estimate = wc.skce(y, predictions, kernel=k.ExpDistance(metric) @ k.Gaussian())
    reported = estimate.provenance["expectation_error"]
    pair = predictions[[0, ODD]]
    form, rows = distance(metric, pair)
    found = float(form(pair.ops, rows, rows)[0, 1]) ** (1.0 / order)
    true = quantile_distance(frozen(pair, 0), frozen(pair, 1), order)
    assert reported >= abs(found - true) / 3.0
    assert reported <= 30.0 * abs(found - true)


@pytest.mark.parametrize("score", [wc.crps, wc.energy_score])
def test_scores_look_at_all_rows(score: Any) -> None:
    """The odd row is where quadrature errs."""
    odd = np.arange(100) == ODD
    vectors = wc.Dirichlet(np.where(odd[:, None], 0.4, 5e4) * np.ones((100, 3)))
    numbers = wc.as_predictions(stats.weibull_min(np.where(odd, 0.3, 2.0), scale=np.where(odd, 50.0, 1.0)))
    batch: Any = vectors if score is wc.energy_score else numbers
    y = batch.sample(rng=2)
    of_all = score(y, batch).provenance["expectation_error"]
    of_odd = score(y[odd], batch[np.flatnonzero(odd)]).provenance["expectation_error"]
    of_others = score(y[~odd], batch[np.flatnonzero(~odd)]).provenance["expectation_error"]
    assert of_odd > 10.0 * of_others
    assert of_all == pytest.approx(of_odd, rel=1e-6)


def test_joint_kernels_say_how_large_their_error_is() -> None:
    def together(P: Any, y: Any, Q: Any, z: Any) -> Any:
        near = np.exp(-((P.mean()[:, None] - Q.mean()[None, :]) ** 2))
        return near * np.exp(-((y[:, None] - z[None, :]) ** 2) / 2.0)

    scale = np.where(np.arange(12) == 7, 3.0, 0.5)
    batch = wc.Gamma(np.full(12, 2.0), scale)
    y = batch.sample(rng=3)
    rough, fine = (
        wc.skce(y, batch, kernel=k.Joint(together), expectations=wc.Lowering(nodes=nodes))
        for nodes in (32, 256)
    )
    error = rough.provenance["expectation_error"]
    assert fine.provenance["expectation_error"] < 1e-6
    assert error >= abs(float(rough) - float(fine)) / 3.0
    # What is reported is the error of the pairing of one row with a point, which the factors do not change.
    table = wc.pairing(k.Gaussian(), batch[7:8], y[7:8], expectations=wc.Lowering(nodes=32))
    exact_table = wc.pairing(k.Gaussian(), batch[7:8], y[7:8], expectations=wc.Lowering(nodes=256))
    assert error >= abs(float(table[0, 0]) - float(exact_table[0, 0])) / 3.0
    assert 1e-3 < error < 1.0
