"""Bootstrap, multipliers, spectrum, cumulants: options, edge cases, what they refuse."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wellcal as wc
from wellcal._arrays.chunks import limited
from wellcal.hypotests.draws import draw_counts, draw_signs
from wellcal.hypotests.methods import Bootstrap, GammaMoments, Multiplier, Pearson, Spectrum
from wellcal.hypotests.methods.block import Block
from wellcal.hypotests.methods.distribution_free import DistributionFree
from wellcal.hypotests.setup import Setup, make_setup
from wellcal.hypotests.tails import (
    SMALLEST,
    chi_square_tail,
    f_tail,
    gamma_tail,
    normal_tail,
    pearson_tail,
    student_tail,
)

ALL = [
    Bootstrap(),
    Multiplier(),
    Multiplier("normal"),
    Spectrum(),
    Pearson(),
    Pearson("hutchinson"),
    GammaMoments(),
    Block(2),
    Block(2, variance="pairs"),
    Block(2, quantiles="t"),
    Block(n_blocks=3, null="weighted_chi2"),
    DistributionFree(),
    DistributionFree("biased"),
]
"""Every method of these modules."""


def shifted(n: int = 40, shift: float = 0.0, **options: Any) -> Setup:
    rng = np.random.default_rng(1)
    mu = rng.normal(size=n)
    y = rng.normal(mu) + shift
    return make_setup(y, wc.Normal(mu, np.ones(n)), **{"rng": 0, "n_resamples": 199, **options})


@pytest.mark.parametrize("method", ALL, ids=repr)
def test_errors_that_cannot_occur_give_p_of_one(method: Any) -> None:
    """Certain predictions that come true: h is 0 for all pairs."""
    y = np.array([0, 1, 1, 0, 1, 0, 0, 1])
    outcome = method.run(make_setup(y, wc.Bernoulli(y.astype(float)), rng=0, n_resamples=19))
    assert outcome.pvalue == 1.0
    assert outcome.statistic == 0.0


@pytest.mark.parametrize("method", ALL, ids=repr)
def test_a_gross_error_is_found_and_no_p_is_zero(method: Any) -> None:
    outcome = method.run(shifted(400, 6.0, n_resamples=99))
    bound = 0.05 if isinstance(method, DistributionFree) else 0.011
    assert 0.0 < outcome.pvalue < bound


@pytest.mark.parametrize("method", ALL, ids=repr)
def test_methods_carry_their_own_estimate(method: Any) -> None:
    setup = shifted()
    estimate = method.run(setup).estimate
    assert "estimate" not in setup.__dict__  # no pass beyond the method's own
    assert estimate.n_samples == 40
    if not isinstance(method, (Block, DistributionFree)):
        assert float(estimate) == pytest.approx(float(setup.estimate), rel=1e-10)
        assert estimate.standard_error == pytest.approx(setup.estimate.standard_error, rel=1e-9)


@pytest.mark.parametrize("method", ALL, ids=repr)
def test_pooled_draws_are_tested_at_their_level(method: Any) -> None:
    """One draw for each prediction is enough: its target takes part in the pool."""
    rng = np.random.default_rng(3)
    mu = rng.normal(size=30)
    setup = make_setup(
        rng.normal(mu),
        wc.Samples(rng.normal(mu)[:, None]),
        rng=0,
        n_resamples=99,
        pool=method.exchanges_draws,
    )
    assert method.run(setup).pvalue > 0.05


@pytest.mark.parametrize("method", ALL, ids=repr)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_kernels_that_are_not_finite_are_refused(method: Any, bad: float) -> None:
    """A p-value from comparisons with NaN would be the smallest there is."""
    kernel = wc.kernels.ExpDistance(wc.kernels.Wasserstein()) @ wc.kernels.Callable(
        lambda x, y: np.where(np.abs(np.subtract.outer(x, y)) > 1.0, bad, 1.0), vectorized=True
    )
    rng = np.random.default_rng(0)
    pred = wc.Samples(rng.normal(size=(12, 3)), kind="atoms")
    setup = make_setup(rng.normal(size=12), pred, kernel, rng=0, n_resamples=19)
    given = replace(method, bound=4.0) if isinstance(method, DistributionFree) else method
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="h is not finite"):
        given.run(setup)


# -- bootstrap and multipliers --------------------------------------------------------------------


def test_counts_beyond_a_byte() -> None:
    class Stuck:
        def integers(self, low: int, high: int, size: tuple[int, int]) -> Any:
            return np.zeros(size, int)

    stuck: Any = Stuck()
    assert draw_counts(stuck, 300, 2)[:, :2].tolist() == [[300, 0], [300, 0]]


def test_signs_are_fair_and_independent() -> None:
    signs = draw_signs(np.random.default_rng(0), 60, 5000).astype(float)
    assert signs.shape == (5000, 60)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    correlations = signs.T @ signs / len(signs)
    assert np.max(np.abs(correlations - np.eye(60))) < 5 / math.sqrt(len(signs))
    assert np.max(np.abs(signs.mean(axis=0))) < 5 / math.sqrt(len(signs))
    between = signs[:-1] * signs[1:]
    assert abs(between.mean()) < 5 / math.sqrt(between.size)


def test_unknown_statistic_of_the_bootstrap() -> None:
    with pytest.raises(ValueError, match=r"unknown statistic 'author'; known are skce, authors; did you"):
        Bootstrap(statistic="author")


def test_the_authors_bootstrap_by_name() -> None:
    y, pred = np.linspace(-1.0, 2.0, 20), wc.Normal(np.linspace(-1.0, 1.0, 20), np.ones(20))
    by_name = wc.calibration_test(y, pred, method="bootstrap", statistic="authors", rng=0)
    as_value = wc.calibration_test(y, pred, method=Bootstrap(statistic="authors"), rng=0)
    assert by_name.pvalue == as_value.pvalue
    assert by_name.statistic == as_value.statistic


def test_unknown_signs() -> None:
    with pytest.raises(ValueError, match=r"unknown signs 'uniform'; known are rademacher, normal"):
        Multiplier("uniform")


def test_one_cluster_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 clusters, found 1"):
        Multiplier().run(shifted(8, groups=np.zeros(8)))


def test_few_clusters_are_warned_of() -> None:
    setup = shifted(12, 9.0, groups=np.arange(12) % 4)
    with pytest.warns(UserWarning, match=r"4 clusters have 8 different patterns.*0\.12"):
        outcome = Multiplier().run(setup)
    assert outcome.pvalue > 0.06
    with pytest.warns(UserWarning, match="4 clusters are few"):
        Multiplier("normal").run(setup)


def test_few_cases_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="5 cases have 16 different patterns"):
        Multiplier().run(shifted(5))


def test_six_clusters_are_enough(recwarn: pytest.WarningsRecorder) -> None:
    outcome = Multiplier().run(shifted(30, 3.0, groups=np.arange(30) % 6, n_resamples=999))
    assert not recwarn.list
    assert outcome.pvalue < 0.05
    assert outcome.provenance["clusters"] == 6
    assert outcome.provenance["largest_cluster"] == 5
    assert outcome.label == "n SKCE_u between clusters"


def test_two_clusters_have_no_standard_error() -> None:
    with pytest.warns(UserWarning, match="2 clusters"):
        outcome = Multiplier().run(shifted(8, groups=np.arange(8) % 2))
    assert outcome.estimate is not None
    assert outcome.estimate.standard_error is None


def test_clusters_of_copies_do_not_count_as_more_cases() -> None:
    """Each case five times over: without clusters a chance deviation looks like proof."""
    rejected = {"clustered": 0, "alone": 0}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        mu = np.repeat(rng.normal(size=12), 5)
        y = np.repeat(rng.normal(mu[::5]), 5)
        for name, groups in (("clustered", np.arange(60) // 5), ("alone", None)):
            setup = make_setup(y, wc.Normal(mu, np.ones(60)), rng=seed, n_resamples=99, groups=groups)
            rejected[name] += Multiplier().run(setup).pvalue <= 0.05
    assert rejected["clustered"] <= 9  # binomial with probability 0.05: more than 9 of 60 once in 1000
    assert rejected["alone"] >= 20


# -- chunks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [m for m in ALL if m.resamples], ids=repr)
def test_chunks_change_nothing(method: Any) -> None:
    before = method.run(shifted(41)).null
    with limited(work=100, cache=50):
        after = method.run(shifted(41)).null
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-12)


# -- cumulants ------------------------------------------------------------------------------------


def test_auto_takes_random_vectors_for_many_cases() -> None:
    assert Pearson().by_matrix(4096)
    assert not Pearson().by_matrix(4097)
    assert Pearson("exact").by_matrix(10_000)
    assert not Pearson("hutchinson").by_matrix(10)
    assert Pearson().run(shifted()).provenance["traces"] == "exact"
    outcome = Pearson("hutchinson").run(shifted())
    assert outcome.provenance["traces"] == "hutchinson"
    assert outcome.provenance["probes"] == 64
    assert outcome.pvalue == pytest.approx(Pearson("exact").run(shifted()).pvalue, rel=1e-3)


def test_cumulants_of_very_many_cases_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    p = rng.random(2500)
    y, pred = rng.random(2500) < p, wc.Bernoulli(p)
    exact = wc.calibration_test(y, pred, method=Pearson("exact"))
    monkeypatch.setattr("wellcal.hypotests.methods.pearson.EXACT_UP_TO", 1000)
    assert wc.calibration_test(y, pred, method="pearson", rng=0).provenance["traces"] == "hutchinson"
    monkeypatch.setattr("wellcal.hypotests.methods.pearson.SAMPLED_FROM", 2500)
    monkeypatch.setattr("wellcal.hypotests.methods.pearson.SET", 250)
    found = wc.calibration_test(y, pred, method="pearson", rng=0)
    assert found.provenance["traces"] == "sampled"
    assert found.provenance["sets_of_cases"] == 64
    assert "probes" not in found.provenance
    assert found.estimate.provenance["engine"] == "linear"
    assert found.statistic == pytest.approx(exact.statistic, rel=1e-9)
    assert abs(found.pvalue - exact.pvalue) < 5 * found.provenance["pvalue_standard_error"]
    tiles = wc.calibration_test(y, pred, method="pearson", engine="tiled", rng=0)
    assert tiles.provenance["traces"] == "sampled"
    with pytest.raises(ValueError, match="8 sets of 250 cases, 2,000 in all, found 40"):
        Pearson("sampled").run(shifted(40))


def test_few_cases_that_carry_the_statistic_are_among_the_sampled() -> None:
    """60 of 6,000 cases say nearly all: sets of equally likely cases would find p = 0 with an error of 0."""
    rng = np.random.default_rng(2)
    p = np.where(np.arange(6000) % 100 == 0, rng.uniform(0.3, 0.7, 6000), 1e-4 * rng.random(6000))
    y, pred = rng.random(6000) < p, wc.Bernoulli(p)
    wanted = wc.calibration_test(y, pred, method=Pearson("hutchinson"), rng=0)
    found = wc.calibration_test(y, pred, method=Pearson("sampled"), rng=0)
    assert 0.02 < wanted.pvalue < 0.98
    assert 0.0 < found.provenance["pvalue_standard_error"] < 0.02
    assert abs(found.pvalue - wanted.pvalue) < 5 * found.provenance["pvalue_standard_error"]


def test_error_of_random_vectors_is_reported() -> None:
    exact = Pearson().run(shifted(300)).provenance["skewness"]
    found = Pearson("hutchinson", probes=16).run(shifted(300)).provenance
    assert 0.0 < found["skewness_standard_error"] < 0.1
    assert abs(found["skewness"] - exact) < 5 * found["skewness_standard_error"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"traces": "approximate"}, "unknown traces 'approximate'"),
        ({"probes": 3}, "at least 4, found 3"),
        ({"probes": 8.5}, "whole number"),
    ],
)
def test_wrong_options_of_pearson(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Pearson(**options)


def test_gamma_needs_a_positive_mean() -> None:
    """-x y is no kernel: h_ii is minus a square."""
    kernel = wc.kernels.ExpDistance(wc.kernels.Wasserstein()) @ wc.kernels.Callable(
        lambda x, y: -np.outer(x, y), vectorized=True
    )
    rng = np.random.default_rng(0)
    setup = make_setup(rng.normal(size=6), wc.Samples(rng.normal(size=(6, 3)), kind="atoms"), kernel)
    with pytest.raises(ValueError, match=r"positive mean.*pearson"):
        GammaMoments().run(setup)


@pytest.mark.parametrize(
    "method", [Bootstrap(), Spectrum(), GammaMoments(), Block(n_blocks=2, null="weighted_chi2")]
)
def test_a_single_draw_that_is_not_pooled_has_no_diagonal(method: Any) -> None:
    rng = np.random.default_rng(0)
    setup = make_setup(rng.normal(size=6), wc.Samples(rng.normal(size=(6, 1))), pool=False)
    with pytest.raises(ValueError, match="at least two draws"):
        method.run(setup)


# -- tails ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("skewness", [1e-9, 1e-7, 1e-4, 0.3, 2.0, 5.0])
@pytest.mark.parametrize("z", [-3.0, -0.1, 0.0, 1.5, 4.0, 9.0])
def test_pearson_tail_against_scipy(skewness: float, z: float) -> None:
    if skewness < 1e-3:
        # scipy's own switch to the normal curve is at 1e-5; the curves differ by a term of this size.
        expected = stats.norm.sf(z) + skewness / 6 * (z**2 - 1) * stats.norm.pdf(z)
        assert pearson_tail(2.0 * z, 4.0, 8.0 * skewness) == pytest.approx(
            expected, rel=1e-6 + 500 * skewness**2
        )
    else:
        expected = stats.pearson3(skew=skewness).sf(z)
        assert pearson_tail(2.0 * z, 4.0, 8.0 * skewness) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("k3", [0.0, -0.5])
def test_pearson_tail_without_positive_skewness_is_normal(k3: float) -> None:
    assert pearson_tail(3.0, 4.0, k3) == pytest.approx(stats.norm.sf(1.5), rel=1e-12)


def test_left_of_a_curve_is_all_of_it() -> None:
    assert pearson_tail(-10.0, 1.0, 1.0) == 1.0
    assert gamma_tail(-1.0, 2.0, 1.0) == 1.0


def test_tails_never_vanish() -> None:
    assert normal_tail(100.0) == SMALLEST
    assert pearson_tail(1e9, 1.0, 1.0) == SMALLEST
    assert gamma_tail(1e9, 1.0, 1.0) == SMALLEST
    assert student_tail(1e300, 3) == SMALLEST
    assert chi_square_tail(1e9, 3) == SMALLEST
    assert f_tail(1e300, 3, 4000) == SMALLEST
    assert student_tail(2.0, 4) == pytest.approx(stats.t.sf(2.0, 4), rel=1e-12)
    assert chi_square_tail(2.0, 4) == pytest.approx(stats.chi2.sf(2.0, 4), rel=1e-12)
    assert f_tail(2.0, 4, 9) == pytest.approx(stats.f.sf(2.0, 4, 9), rel=1e-12)
