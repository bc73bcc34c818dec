"""Hotelling's statistic and its p-values against independent computations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import wellcal as wc
from wellcal.hypotests.hotellings_statistic import embedding_statistics, hotelling
from wellcal.hypotests.methods import MeanEmbedding
from wellcal.hypotests.setup import make_setup
from wellcal.kernels import ExpDistance, Gaussian, TotalVariation, Wasserstein
from wellcal.problem.at_locations import deviations
from wellcal.problem.locations import as_locations
from wellcal.problem.target_resampling import TargetStream

from ..statistical.designs import check_uniform

RNG = np.random.default_rng(5)
N = 25
MU, SIGMA = RNG.normal(size=N), RNG.uniform(0.5, 1.5, N)
Y = MU + 0.3 + SIGMA * RNG.normal(size=N)
PRED = wc.Normal(MU, SIGMA)
AT = wc.Normal(np.array([-1.0, 0.0, 1.2]), np.array([0.6, 1.0, 1.4])), np.array([-0.5, 0.3, 2.0])
KERNEL = ExpDistance(Wasserstein()) @ Gaussian(0.8)


def run(method: MeanEmbedding, y: Any = Y, pred: Any = PRED, kernel: Any = KERNEL) -> Any:
    return method.run(make_setup(y, pred, kernel, rng=0))


def reference(locations: Any, y: Any = Y, pred: Any = PRED, kernel: Any = KERNEL) -> float:
    """Q from an explicit inverse."""
    where = as_locations(locations, pred, None)
    D = np.asarray(deviations(kernel, pred, pred.check_targets(y), where))
    n = len(D)
    mean = D.sum(axis=0) / n
    S = sum(np.outer(row - mean, row - mean) for row in D) / (n - 1)
    return float(n * mean @ np.linalg.inv(S) @ mean)


def test_statistic_is_that_of_the_definition() -> None:
    assert run(MeanEmbedding(AT, "F")).statistic == pytest.approx(reference(AT), rel=1e-9)


def test_classes() -> None:
    probs = RNG.dirichlet(np.ones(3), N)
    pred, y = wc.Categorical(probs), RNG.integers(3, size=N)
    at = wc.Categorical(RNG.dirichlet(np.ones(3), 2)), np.array([0, 2])
    kernel = ExpDistance(TotalVariation()) @ wc.kernels.Delta()
    found = run(MeanEmbedding(at, "F"), y, pred, kernel)
    assert found.statistic == pytest.approx(reference(at, y, pred, kernel), rel=1e-9)


def test_p_values() -> None:
    q, n, j = reference(AT), N, 3
    f = run(MeanEmbedding(AT, "F"))
    assert f.pvalue == pytest.approx(1.0 - stats.f(j, n - j).cdf(q * (n - j) / (j * (n - 1))), rel=1e-8)
    chi2 = run(MeanEmbedding(AT, reference="chi2"))
    assert chi2.pvalue == pytest.approx(1.0 - stats.chi2(j).cdf(q), rel=1e-8)
    assert chi2.pvalue < f.pvalue


def test_one_location_is_a_t_test() -> None:
    at = AT[0][:1], AT[1][:1]
    where = as_locations(at, PRED, None)
    D = np.asarray(deviations(KERNEL, PRED, Y, where))[:, 0]
    found, expected = run(MeanEmbedding(at, "F")), stats.ttest_1samp(D, 0.0)
    assert found.statistic == pytest.approx(expected.statistic**2, rel=1e-9)
    assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-9)


def test_p_values_of_normal_deviations_are_uniform() -> None:
    """The F form is exact for normal deviations; the chi-square form is far off at n = 12, J = 5."""
    n, j, sets = 12, 5, 4000
    root = RNG.normal(size=(j, j))
    D = RNG.normal(size=(sets, n, j)) @ root
    means = D.mean(axis=1)
    centred = D - means[:, None, :]
    covariances = np.swapaxes(centred, 1, 2) @ centred / (n - 1)
    found = hotelling(means, covariances, n)
    assert np.all(found.rank == j)
    q = found.statistic
    check_uniform("Hotelling's statistic", stats.f.sf(q * (n - j) / (j * (n - 1)), j, n - j), find=0.06)
    assert np.mean(stats.chi2.sf(q, j) < 0.05) > 0.15


def test_units_of_the_deviations_do_not_matter() -> None:
    D = RNG.normal(size=(30, 4)) + 0.2
    plain, scaled, columns = (
        hotelling(x.mean(axis=0)[None], np.cov(x, rowvar=False)[None], 30, 0.0)
        for x in (D, 1e-20 * D, D * np.array([1e-30, 1.0, 1e-5, 1e20]))
    )
    assert_allclose(scaled.statistic, plain.statistic, rtol=1e-12)
    assert_allclose(columns.statistic, plain.statistic, rtol=1e-9)


def test_locations_below_the_error_of_expectations_are_left_out() -> None:
    """And no others with them, though their deviations correlate."""
    D = RNG.normal(size=(30, 4)) + 0.2
    rest = hotelling(D[:, 1:].mean(axis=0)[None], np.cov(D[:, 1:], rowvar=False)[None], 30)
    D[:, 0] = 1e-12 * (D[:, 0] + D[:, 1])
    found = hotelling(
        D.mean(axis=0)[None], np.cov(D, rowvar=False)[None], 30, np.array([1e-9, 0.0, 0.0, 0.0])
    )
    assert found.rank[0] == 3
    assert_allclose(found.statistic, rest.statistic, rtol=1e-3)


def test_kernels_may_be_multiplied() -> None:
    plain, tiny = (run(MeanEmbedding(AT, "F"), kernel=factor * KERNEL) for factor in (1.0, 1e-25))
    assert tiny.pvalue == pytest.approx(plain.pvalue, rel=1e-8)


def test_coinciding_locations_are_left_out() -> None:
    twice = wc.Normal(np.append(AT[0].loc, AT[0].loc[:2]), np.append(AT[0].scale, AT[0].scale[:2]))
    doubled = run(MeanEmbedding((twice, np.append(AT[1], AT[1][:2])), "F"))
    single = run(MeanEmbedding(AT, "F"))
    assert doubled.statistic == pytest.approx(single.statistic, rel=1e-6)
    assert doubled.pvalue == pytest.approx(single.pvalue, rel=1e-6)
    assert doubled.provenance["rank"] == 3
    assert doubled.provenance["locations"] == 5
    assert "rank" not in single.provenance


def test_constant_binary_predictions_have_one_direction() -> None:
    """Two classes and one prediction: whatever the locations, only the share of ones can deviate."""
    y = np.array([1] * 14 + [0] * 6)
    found = run(
        MeanEmbedding(4, "F"),
        y,
        wc.Bernoulli(np.full(20, 0.5)),
        ExpDistance(TotalVariation()) @ wc.kernels.Delta(),
    )
    expected = stats.ttest_1samp(y, 0.5)
    assert found.provenance["rank"] == 1
    assert found.statistic == pytest.approx(expected.statistic**2, rel=1e-9)
    assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-9)


def test_errors_of_expectations_are_not_magnified() -> None:
    """A direction that hardly varies, and a mean there that the error of expectations explains."""
    D = RNG.normal(size=(50, 2))
    D[:, 1] = D[:, 0] + 1e-5 * RNG.normal(size=50)
    D = D - D.mean(axis=0) + np.array([0.1, 0.1 + 1e-4])
    moments = D.mean(axis=0)[None], np.cov(D, rowvar=False)[None]
    exact, rough = hotelling(*moments, 50), hotelling(*moments, 50, error=1e-4)
    assert exact.rank[0] == 2
    assert exact.statistic[0] > 1000.0
    assert rough.rank[0] == 1
    one = 50 * 0.1**2 / np.var(D[:, 0], ddof=1)
    assert rough.statistic[0] == pytest.approx(one, abs=0.05)
    assert not rough.certain[0]


# -- for exact tests --------------------------------------------------------------------------------------


def by_definition(sums: Any) -> list[float]:
    """Q from an explicit inverse of the covariance over sets."""
    z = sums - sums.mean(axis=0)
    inverse = np.linalg.inv(sum(np.outer(row, row) for row in z) / len(z))
    return [float(row @ inverse @ row) for row in z]


def test_statistics_of_sets() -> None:
    """Deviations of some size in all directions: no eigenvalue is at its least."""
    sums = RNG.normal(size=(40, 3)) @ np.array([[1.0, 0.2, 0.0], [0.0, 3.0, 0.1], [0.0, 0.0, 0.2]]) + 5.0
    assert_allclose(embedding_statistics(sums), by_definition(sums), rtol=1e-9)


def test_the_exact_test_is_made_of_sums_of_deviations() -> None:
    setup = make_setup(Y, PRED, KERNEL, rng=0, n_resamples=19)
    found = MeanEmbedding(AT).run(setup)
    (drawn,) = TargetStream.of(np.random.default_rng(0)).sets(PRED, Y, 19)
    sets = np.concatenate([Y[None], drawn])
    where = as_locations(AT, PRED, None)
    sums = np.array([np.asarray(deviations(KERNEL, PRED, y, where)).sum(axis=0) for y in sets])
    z = (sums - sums.mean(axis=0)) / sums.std(axis=0)
    values, vectors = np.linalg.eigh(z.T @ z / len(z))
    expected = ((z @ vectors) ** 2 / np.maximum(values, 0.01)).sum(axis=1)
    assert found.null is not None
    assert_allclose([found.statistic, *found.null], expected, rtol=1e-9)
    assert found.pvalue == np.mean(expected >= expected[0] - 1e-9)
    assert found.provenance["UCME^2"] == pytest.approx(np.mean((sums[0] / N) ** 2), rel=1e-9)


def test_units_and_copies_of_locations_do_not_matter_to_sets() -> None:
    sums = RNG.normal(size=(50, 4))
    plain = embedding_statistics(sums)
    for changed in (1e-200 * sums, sums * np.array([1e-150, 1.0, 1e5, 1e150]), sums - 1e3):
        assert_allclose(embedding_statistics(changed), plain, rtol=1e-9)
    wider = np.concatenate([sums, np.zeros((50, 2))], axis=1)
    assert_allclose(embedding_statistics(wider), plain, rtol=1e-12)
    assert_allclose(embedding_statistics(np.full((50, 3), 2.0)), np.zeros(50))
    one = sums[:, :1]
    assert_allclose(embedding_statistics(np.repeat(one, 5, axis=1)), embedding_statistics(one), rtol=1e-9)


def test_pooled_draws() -> None:
    """Deviations from the pooled draws are those from the draws, times S / (S + 1)."""
    draws = MU[:, None] + SIGMA[:, None] * RNG.normal(size=(N, 4))
    pred = wc.Samples(draws)
    at = wc.Samples(draws[:2]), np.array([0.0, 1.0])
    setup = make_setup(Y, pred, rng=0, pool=True)
    found = MeanEmbedding(at, "F").run(setup)
    pooled = np.concatenate([draws, Y[:, None]], axis=1)
    l_p, on_targets = setup.kernel.predictions.lengthscale, setup.kernel.targets

    def inner(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.mean(on_targets(a, b)))

    D = np.empty((N, 2))
    for i in range(N):
        for j in range(2):
            p, q = pooled[i], draws[j]
            squared = inner(p, p) - 2.0 * inner(p, q) + inner(q, q)
            k = on_targets(np.append(draws[i], Y[i]), at[1][j : j + 1])[:, 0]
            D[i, j] = np.exp(-squared / l_p**2) * (k[-1] - k[:-1].mean())
    q_value = N * D.mean(axis=0) @ np.linalg.inv(np.cov(D, rowvar=False)) @ D.mean(axis=0)
    assert found.statistic == pytest.approx(q_value, rel=1e-8)
    assert found.provenance["UCME^2"] == pytest.approx(np.mean(D.mean(axis=0) ** 2), rel=1e-8)
