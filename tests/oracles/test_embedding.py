"""Deviations at locations against their definition: explicit loops, numerical integrals and sums."""

from __future__ import annotations

import math
from collections.abc import Callable as Function
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

import wellcal as wc
from wellcal import ucme
from wellcal._arrays.chunks import limited
from wellcal.kernels import (
    Callable,
    Delta,
    ExpDistance,
    Gaussian,
    Joint,
    Laplacian,
    MaximumMeanDiscrepancy,
    TotalVariation,
    Wasserstein,
)
from wellcal.problem.at_locations import deviations, location_kernel
from wellcal.problem.locations import as_locations

N, J = 5, 3
RNG = np.random.default_rng(11)
LOC, SCALE = RNG.normal(size=N + J), RNG.uniform(0.3, 1.5, N + J)
LOC_2, SCALE_2 = RNG.normal(size=N + J), RNG.uniform(0.3, 1.5, N + J)
WEIGHTS = RNG.dirichlet(np.ones(2), N + J)
PROBS = RNG.dirichlet(np.ones(4), N + J)
DRAWS = RNG.normal(size=(N + J, 6))
ATOM_WEIGHTS = RNG.dirichlet(np.ones(6), N + J)
RATES = RNG.uniform(0.5, 6.0, N + J)
Y = RNG.normal(size=N + J)
LABELS, COUNTS = RNG.integers(4, size=N + J), RNG.poisson(4.0, N + J)
DATA, AT = slice(0, N), slice(N, N + J)

KernelValue = Function[[int, int], float]


def brute_force(on_predictions: KernelValue, at_points: KernelValue, expected: KernelValue) -> np.ndarray:
    """k_P(i, j) (k_Y(y_i, t_j) - E k_Y(Z_i, t_j)) for cases i and locations j, which follow the cases."""
    return np.array(
        [
            [on_predictions(i, j) * (at_points(i, j) - expected(i, j)) for j in range(N, N + J)]
            for i in range(N)
        ]
    )


def found(kernel: Any, predictions: Any, targets: Any, **options: Any) -> np.ndarray:
    data, at = predictions[DATA], predictions[AT]
    locations = as_locations((at, targets[AT]), data, None)
    return np.asarray(deviations(kernel, data, data.check_targets(targets[DATA]), locations, **options))


def integral(function: Function[[float], float], loc: float, scale: float) -> float:
    low, high = loc - 12 * scale, loc + 12 * scale
    return integrate.quad(function, low, high, epsabs=1e-13, epsrel=1e-12, limit=200, points=[loc])[0]


def wasserstein(i: int, j: int) -> float:
    return math.hypot(LOC[i] - LOC[j], SCALE[i] - SCALE[j])


def gaussian(x: float, y: float, scale: float) -> float:
    return math.exp(-0.5 * ((x - y) / scale) ** 2)


def test_normal() -> None:
    def expected(i: int, j: int) -> float:
        return integral(
            lambda z: stats.norm.pdf(z, LOC[i], SCALE[i]) * gaussian(z, Y[j], 0.7), LOC[i], SCALE[i]
        )

    reference = brute_force(
        lambda i, j: math.exp(-wasserstein(i, j) / 0.9), lambda i, j: gaussian(Y[i], Y[j], 0.7), expected
    )
    kernel = ExpDistance(Wasserstein(), 0.9) @ Gaussian(0.7)
    assert_allclose(found(kernel, wc.Normal(LOC, SCALE), Y), reference, rtol=1e-10, atol=1e-14)


def test_sum_of_products_with_factors() -> None:
    def expected(i: int, j: int) -> float:
        return integral(
            lambda z: stats.norm.pdf(z, LOC[i], SCALE[i]) * math.exp(-abs(z - Y[j]) / 1.3), LOC[i], SCALE[i]
        )

    kernel = 2.0 * (ExpDistance(Wasserstein(), 0.9) @ Gaussian(0.7)) + 0.5 * (
        ExpDistance(Wasserstein(), 2.0, power=2.0) @ Laplacian(1.3)
    )
    other = brute_force(
        lambda i, j: math.exp(-((wasserstein(i, j) / 2.0) ** 2)),
        lambda i, j: math.exp(-abs(Y[i] - Y[j]) / 1.3),
        expected,
    )
    first = found(ExpDistance(Wasserstein(), 0.9) @ Gaussian(0.7), wc.Normal(LOC, SCALE), Y)
    assert_allclose(found(kernel, wc.Normal(LOC, SCALE), Y), 2.0 * first + 0.5 * other, rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("labels", [None, ["a", "b", "c", "d"]])
def test_categorical(labels: list[str] | None) -> None:
    def total_variation(i: int, j: int) -> float:
        return 0.5 * sum(abs(PROBS[i, c] - PROBS[j, c]) for c in range(4))

    reference = brute_force(
        lambda i, j: math.exp(-total_variation(i, j) / 0.4),
        lambda i, j: float(LABELS[i] == LABELS[j]),
        lambda i, j: PROBS[i, LABELS[j]],
    )
    targets = LABELS if labels is None else np.array(labels)[LABELS]
    kernel = ExpDistance(TotalVariation(), 0.4) @ Delta()
    assert_allclose(found(kernel, wc.Categorical(PROBS, classes=labels), targets), reference, rtol=1e-13)


def test_categorical_with_support() -> None:
    support = np.array([-1.0, 0.5, 2.0, 4.0])
    reference = brute_force(
        lambda i, j: math.exp(-0.5 * np.abs(PROBS[i] - PROBS[j]).sum()),
        lambda i, j: gaussian(support[LABELS[i]], support[LABELS[j]], 1.5),
        lambda i, j: sum(PROBS[i, c] * gaussian(support[c], support[LABELS[j]], 1.5) for c in range(4)),
    )
    kernel = ExpDistance(TotalVariation()) @ Gaussian(1.5)
    predictions = wc.Categorical(PROBS, support=support)
    assert_allclose(found(kernel, predictions, support[LABELS]), reference, rtol=1e-12)


def test_bernoulli() -> None:
    p, y = PROBS[:, 0] + 0.1, LABELS % 2
    reference = brute_force(
        lambda i, j: math.exp(-abs(p[i] - p[j])),
        lambda i, j: float(y[i] == y[j]),
        lambda i, j: p[i] if y[j] == 1 else 1.0 - p[i],
    )
    kernel = ExpDistance(TotalVariation()) @ Delta()
    assert_allclose(found(kernel, wc.Bernoulli(p), y), reference, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_samples(weighted: bool) -> None:
    weights = ATOM_WEIGHTS if weighted else np.full((N + J, 6), 1.0 / 6.0)

    def inner(i: int, j: int) -> float:
        return sum(
            weights[i, s] * weights[j, t] * gaussian(DRAWS[i, s], DRAWS[j, t], 0.8)
            for s in range(6)
            for t in range(6)
        )

    reference = brute_force(
        lambda i, j: math.exp(-(inner(i, i) - 2.0 * inner(i, j) + inner(j, j)) / 0.6**2),
        lambda i, j: gaussian(Y[i], Y[j], 0.8),
        lambda i, j: sum(weights[i, s] * gaussian(DRAWS[i, s], Y[j], 0.8) for s in range(6)),
    )
    kernel = ExpDistance(MaximumMeanDiscrepancy(Gaussian(0.8)), 0.6, power=2.0) @ Gaussian(0.8)
    predictions = wc.Samples(DRAWS, ATOM_WEIGHTS, kind="atoms") if weighted else wc.Samples(DRAWS)
    assert_allclose(found(kernel, predictions, Y), reference, rtol=1e-11, atol=1e-15)


def test_mixture() -> None:
    grid = np.linspace(-25.0, 25.0, 4001)
    step = grid[1] - grid[0]
    density = np.array(
        [
            WEIGHTS[i, 0] * stats.norm.pdf(grid, LOC[i], SCALE[i])
            + WEIGHTS[i, 1] * stats.norm.pdf(grid, LOC_2[i], SCALE_2[i])
            for i in range(N + J)
        ]
    )
    between = np.exp(-0.5 * ((grid[:, None] - grid[None, :]) / 0.8) ** 2)
    inner = step**2 * density @ between @ density.T

    def expected(i: int, j: int) -> float:
        return step * float(np.sum(density[i] * np.exp(-0.5 * ((grid - Y[j]) / 0.8) ** 2)))

    reference = brute_force(
        lambda i, j: math.exp(-(inner[i, i] - 2.0 * inner[i, j] + inner[j, j]) / 0.6**2),
        lambda i, j: gaussian(Y[i], Y[j], 0.8),
        expected,
    )
    kernel = ExpDistance(MaximumMeanDiscrepancy(Gaussian(0.8)), 0.6, power=2.0) @ Gaussian(0.8)
    predictions = wc.Mixture([wc.Normal(LOC, SCALE), wc.Normal(LOC_2, SCALE_2)], WEIGHTS)
    assert_allclose(found(kernel, predictions, Y), reference, rtol=1e-10, atol=1e-14)


def test_poisson() -> None:
    counts = np.arange(80)
    reference = brute_force(
        lambda i, j: math.exp(-abs(RATES[i] - RATES[j])),
        lambda i, j: gaussian(COUNTS[i], COUNTS[j], 2.0),
        lambda i, j: float(
            np.sum(stats.poisson.pmf(counts, RATES[i]) * np.exp(-0.5 * ((counts - COUNTS[j]) / 2.0) ** 2))
        ),
    )
    kernel = ExpDistance(Wasserstein(1)) @ Gaussian(2.0)
    assert_allclose(found(kernel, wc.Poisson(RATES), COUNTS), reference, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("kernel", [Delta(), Gaussian(0.3)], ids=repr)
def test_quantiles(kernel: Any) -> None:
    levels, values = np.array([0.2, 0.5, 0.9]), np.sort(DRAWS[:, :3], axis=1)
    probs, middles = np.array([0.2, 0.3, 0.4, 0.1]), np.array([0.1, 0.35, 0.7, 0.95])
    bins = np.array([sum(y > v for v in row) for y, row in zip(Y, values, strict=True)])

    def k(a: int, b: int) -> float:
        return float(a == b) if isinstance(kernel, Delta) else gaussian(middles[a], middles[b], 0.3)

    reference = brute_force(
        lambda i, j: math.exp(-float(np.linalg.norm(values[i] - values[j])) / 2.0),
        lambda i, j: k(bins[i], bins[j]),
        lambda i, j: sum(probs[b] * k(b, bins[j]) for b in range(4)),
    )
    pairs = Callable(lambda P, Q: np.exp(-np.linalg.norm(P.values[:, None] - Q.values[None], axis=2) / 2.0))
    assert_allclose(found(pairs @ kernel, wc.Quantiles(levels, values), Y), reference, rtol=1e-12, atol=1e-15)


def test_lowered_family() -> None:
    on_means = Callable(lambda P, Q: np.exp(-np.abs(P.mean()[:, None] - Q.mean()[None, :])))
    means = RATES * SCALE
    targets = np.abs(Y)
    reference = brute_force(
        lambda i, j: math.exp(-abs(means[i] - means[j])),
        lambda i, j: gaussian(targets[i], targets[j], 0.9),
        lambda i, j: integrate.quad(
            lambda z: stats.gamma.pdf(z, RATES[i], scale=SCALE[i]) * gaussian(z, targets[j], 0.9),
            0.0,
            60.0,
            limit=200,
        )[0],
    )
    value = found(
        on_means @ Gaussian(0.9), wc.Gamma(RATES, SCALE), targets, expectations=wc.Lowering(nodes=256)
    )
    assert_allclose(value, reference, atol=1e-6)


def test_distribution_of_scipy() -> None:
    """Uniform on an interval: the Gaussian kernel integrates to normal distribution functions."""
    means = LOC + 0.5 * SCALE

    def expected(i: int, j: int) -> float:
        mass = stats.norm(Y[j], 2.0).cdf(LOC[i] + SCALE[i]) - stats.norm(Y[j], 2.0).cdf(LOC[i])
        return math.sqrt(2.0 * math.pi) * 2.0 * mass / SCALE[i]

    reference = brute_force(
        lambda i, j: math.exp(-abs(means[i] - means[j])), lambda i, j: gaussian(Y[i], Y[j], 2.0), expected
    )
    on_means = Callable(lambda P, Q: np.exp(-np.abs(P.mean()[:, None] - Q.mean()[None, :])))
    predictions = wc.as_predictions(stats.uniform(loc=LOC, scale=SCALE))
    value = found(on_means @ Gaussian(2.0), predictions, Y)
    assert_allclose(value, reference, atol=1e-6)


def joint_value(p: np.ndarray, y: float, q: np.ndarray, z: float) -> float:
    return math.exp(-0.3 * abs(y - z) * (1.0 + float(p @ q)))


def test_joint_kernel() -> None:
    def function(P: Any, y: Any, Q: Any, z: Any) -> np.ndarray:
        return np.array(
            [
                [joint_value(p, a, q, b) for q, b in zip(Q.probs, z, strict=True)]
                for p, a in zip(P.probs, y, strict=True)
            ]
        )

    reference = brute_force(
        lambda i, j: 1.0,
        lambda i, j: joint_value(PROBS[i], LABELS[i], PROBS[j], LABELS[j]),
        lambda i, j: sum(PROBS[i, c] * joint_value(PROBS[i], c, PROBS[j], LABELS[j]) for c in range(4)),
    )
    value = found(3.0 * Joint(function), wc.Categorical(PROBS), LABELS)
    assert_allclose(value, 3.0 * reference, rtol=1e-12)


def test_objects() -> None:
    words = np.array(
        [["ab", "ac", "bd"], ["bb", "cd", "ce"], ["aa", "ab", "ac"], ["cc", "cb", "bb"]], dtype=object
    )
    y = ["ab", "cb", "bb", "ca"]

    def likeness(a: str, b: str) -> float:
        return 0.5 * sum(s == t for s, t in zip(a, b, strict=True))

    def on_predictions(P: Any, Q: Any) -> np.ndarray:
        return np.array(
            [[np.mean([likeness(a, b) for a in p for b in q]) for q in Q.values] for p in P.values]
        )

    pred = wc.Samples(words)
    locations = as_locations((pred[2:], y[2:]), pred[:2], None)
    data = pred[:2].check_targets(y[:2])
    value = deviations(Callable(on_predictions) @ Callable(likeness), pred[:2], data, locations)
    for i in range(2):
        for j in (2, 3):
            weight = np.mean([likeness(a, b) for a in words[i] for b in words[j]])
            mean = np.mean([likeness(a, y[j]) for a in words[i]])
            assert value[i, j - 2] == pytest.approx(weight * (likeness(y[i], y[j]) - mean), abs=1e-15)


def test_ucme_is_the_mean_of_squared_means() -> None:
    kernel = ExpDistance(TotalVariation(), 0.4) @ Delta()
    D = found(kernel, wc.Categorical(PROBS), LABELS)
    total = 0.0
    for j in range(J):
        total += (sum(D[i, j] for i in range(N)) / N) ** 2
    estimate = ucme(
        LABELS[DATA],
        wc.Categorical(PROBS[DATA]),
        locations=(wc.Categorical(PROBS[AT]), LABELS[AT]),
        kernel=kernel,
    )
    assert estimate.value == pytest.approx(total / J, rel=1e-13)
    assert estimate.name == "UCME^2"
    assert estimate.standard_error is None


# -- many sets of targets ---------------------------------------------------------------------------------

SETS: dict[str, tuple[Any, Any]] = {
    "normal": (wc.Normal(LOC, SCALE), ExpDistance(Wasserstein()) @ Gaussian(0.7)),
    "sum": (
        wc.Normal(LOC, SCALE),
        2.0 * (ExpDistance(Wasserstein()) @ Gaussian(0.7)) + ExpDistance(Wasserstein()) @ Laplacian(0.7),
    ),
    "vectors": (
        wc.DiagonalNormal(DRAWS[:, :2], 1.0 + PROBS[:, :2]),
        ExpDistance(Wasserstein()) @ (Gaussian(0.7) + Laplacian(2.0)),
    ),
    "many coordinates": (wc.DiagonalNormal(DRAWS, 1.0), ExpDistance(Wasserstein()) @ Gaussian(2.0)),
    "classes": (wc.Categorical(PROBS, classes=list("abcd")), ExpDistance(TotalVariation()) @ Delta()),
    "counts": (wc.Poisson(RATES), ExpDistance(Wasserstein(1)) @ Gaussian(2.0)),
    "large counts": (wc.Poisson(1e6 * RATES), ExpDistance(Wasserstein(1), 1e6) @ Gaussian(2e6)),
    "quantiles": (
        wc.Quantiles([0.2, 0.5, 0.9], np.sort(DRAWS[:, :3], axis=1)),
        ExpDistance(Wasserstein()) @ Delta(),
    ),
    "function": (
        wc.Normal(LOC, SCALE),
        ExpDistance(Wasserstein()) @ Callable(lambda a, b: 1.0 / (1.0 + (a - b) ** 2)),
    ),
    "joint": (
        wc.Categorical(PROBS),
        Joint(lambda P, y, Q, z: (P.probs @ Q.probs.T) ** (1.0 + np.abs(y[:, None] - z[None, :]))),
    ),
}


@pytest.mark.parametrize(
    ("name", "chunk"),
    [*((name, 44) for name in SETS), ("normal", 8), ("normal", 400_000), ("joint", 400_000)],
)
def test_sets_of_targets_are_done_one_by_one(name: str, chunk: int) -> None:
    with limited(cache=chunk):
        check_sets(*SETS[name])


def check_sets(predictions: Any, kernel: Any) -> None:
    data, at = predictions[DATA], predictions[AT]
    at_targets = at.sample(5)
    draws = data.sample(6, 7)
    sets = np.stack([np.asarray(data.check_targets(y)) for y in draws])
    prepared = location_kernel(kernel, data, (at, at_targets))
    D = np.stack([prepared.deviations(targets) for targets in sets])
    assert_allclose(prepared.sums(sets), D.sum(axis=1), rtol=1e-12, atol=1e-14)
    assert_allclose(prepared(sets), D.sum(axis=1), rtol=1e-12, atol=1e-14)
    assert_allclose(
        prepared.sums(sets, centred=False), (D + prepared.expected).sum(axis=1), rtol=1e-12, atol=1e-14
    )
    means, covariances = prepared.moments(sets)
    assert_allclose(means, D.mean(axis=1), rtol=1e-12, atol=1e-14)
    for r in range(len(sets)):
        assert_allclose(covariances[r], np.cov(D[r], rowvar=False), rtol=1e-11, atol=1e-15)


def test_sets_of_objects() -> None:
    pool = np.array([["ab", "ac", "bd"], ["bb", "cd", "ce"], ["aa", "ab", "ac"]], dtype=object)
    calls = 0

    def likeness(a: str, b: str) -> float:
        nonlocal calls
        calls += 1
        return 0.5 * sum(s == t for s, t in zip(a, b, strict=True))

    predictions = wc.Samples(pool, kind="atoms")
    kernel = Callable(lambda P, Q: np.ones((len(P), len(Q)))) @ Callable(likeness)
    prepared = location_kernel(kernel, predictions, (predictions[1:], ["bb", "ad"]))
    sets = predictions.sample(0, 50)
    expected = np.stack([prepared.deviations(targets) for targets in sets]).sum(axis=1)
    calls = 0
    assert_allclose(prepared.sums(sets), expected, atol=1e-12)
    assert calls <= pool.size * 2  # each object once with each location, not once for each set
