"""Asymptotic tests against their definitions, in loops over an explicit matrix of h."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import wellcal as wc
from wellcal import kernels
from wellcal.engines import Tiled
from wellcal.hypotests.draws import draw_chi_square_sum, draw_counts, draw_signs
from wellcal.hypotests.methods import Bootstrap, GammaMoments, Multiplier, Pearson, Spectrum, pearson
from wellcal.hypotests.methods.block import Block
from wellcal.hypotests.methods.distribution_free import DistributionFree
from wellcal.hypotests.setup import Setup, make_setup
from wellcal.hypotests.traces import exact_trace, hutchinson_trace, sampled_trace, set_sums
from wellcal.kernels import paper_kernel
from wellcal.problem.problem import prepare_checked

from ..statistical.designs import check_counts, check_mean, check_same

SEED = 7
SMALL_TILES = Tiled(tile=(5, 3), threads=2)  # several tiles, on and off the diagonal


def normal_case(n: int = 13, shift: float = 0.4) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    mu, sigma = rng.normal(size=n), rng.uniform(0.5, 1.5, n)
    return rng.normal(mu, sigma) + shift, wc.Normal(mu, sigma)


def labels_case(n: int = 17) -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    return rng.integers(0, 3, n), wc.Categorical(rng.dirichlet([1.0, 2.0, 0.7], n))


def draws_case(n: int = 11) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    mu = rng.normal(size=n)
    return rng.normal(mu), wc.Samples(rng.normal(mu[:, None], 1.0, (n, 4)))


CASES = {"normal": normal_case, "labels": labels_case, "draws": draws_case}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    return CASES[request.param]()


def setup_of(case: tuple[Any, Any], **options: Any) -> Setup:
    return make_setup(*case, rng=SEED, pool=True, **{"engine": SMALL_TILES, "n_resamples": 40, **options})


def matrix(setup: Setup) -> Any:
    """h for all pairs; between a target and pooled draws in the scale of the draws alone."""
    problem = prepare_checked(setup.targets, setup.predictions, setup.kernel)
    h = np.array(problem.h(problem.rows, problem.rows))
    return h if setup.pooled is None else h * ((setup.pooled + 1) / setup.pooled) ** 2


def unbiased(h: Any, cases: Any) -> float:
    total = math.fsum(h[i, j] for i in cases for j in cases if i != j)
    return total / (len(cases) * (len(cases) - 1))


def monte_carlo(statistic: float, null: Any) -> float:
    """Equal up to rounding is equal: signs that are all alike give the statistic again, in another order."""
    equal = statistic - 1e-10 * max(abs(value) for value in [statistic, *null])
    return (1 + sum(value >= equal for value in null)) / (1 + len(null))


# -- resampling -----------------------------------------------------------------------------------


def test_bootstrap_is_the_u_statistic_of_the_centred_kernel(case: tuple[Any, Any]) -> None:
    setup = setup_of(case)
    n, h = setup.n_samples, matrix(setup)
    drawn = np.random.default_rng(SEED).integers(0, n, size=(setup.n_resamples, n))
    mean = h.mean(axis=1)
    centred = h - mean[:, None] - mean[None, :] + h.mean()
    expected = [n * unbiased(centred[np.ix_(d, d)], range(n)) for d in drawn]
    outcome = Bootstrap().run(setup)
    assert outcome.null is not None
    assert_allclose(outcome.null, expected, rtol=1e-9, atol=1e-11)
    assert outcome.statistic == pytest.approx(n * unbiased(h, range(n)), rel=1e-11)
    assert outcome.pvalue == monte_carlo(outcome.statistic, expected)


def test_the_authors_bootstrap_compares_the_same_resamples_with_a_larger_statistic(
    case: tuple[Any, Any],
) -> None:
    ours, theirs = Bootstrap().run(setup_of(case)), Bootstrap(statistic="authors").run(setup_of(case))
    n, h = len(case[1]), matrix(setup_of(case))
    assert ours.null is not None
    assert theirs.null is not None
    assert np.array_equal(ours.null, theirs.null)
    assert theirs.statistic == pytest.approx(n**2 / (n - 1) * unbiased(h, range(n)), rel=1e-11)
    assert theirs.pvalue == monte_carlo(theirs.statistic, theirs.null)
    assert float(theirs.estimate or 0.0) == float(ours.estimate or 1.0)


def test_counts_are_of_draws_with_replacement() -> None:
    counts = draw_counts(np.random.default_rng(0), 50, 2000)
    assert counts.shape == (2000, 50)
    assert np.all(counts.sum(axis=1, dtype=int) == 50)
    found = np.bincount(np.minimum(counts[:, 0], 4), minlength=5)
    expected = 2000 * np.append(stats.binom.pmf(np.arange(4), 50, 1 / 50), stats.binom.sf(3, 50, 1 / 50))
    check_counts("counts of draws with replacement", found, expected, find=0.2)


@pytest.mark.parametrize("signs", ["rademacher", "normal"])
def test_multiplier_sums_signed_pairs(case: tuple[Any, Any], signs: str) -> None:
    setup = setup_of(case)
    n, h = setup.n_samples, matrix(setup)
    rng = np.random.default_rng(SEED)
    drawn = draw_signs(rng, n, 40) if signs == "rademacher" else rng.standard_normal((40, n))
    expected = [
        math.fsum(float(e[i]) * float(e[j]) * h[i, j] for i in range(n) for j in range(n) if i != j) / (n - 1)
        for e in drawn
    ]
    outcome = Multiplier(signs).run(setup)
    assert outcome.null is not None
    assert_allclose(outcome.null, expected, rtol=1e-9, atol=1e-11)
    assert outcome.statistic == pytest.approx(n * unbiased(h, range(n)), rel=1e-11)
    assert outcome.pvalue == monte_carlo(outcome.statistic, expected)


@pytest.mark.parametrize("signs", ["rademacher", "normal"])
def test_multiplier_with_clusters_uses_pairs_between_them(case: tuple[Any, Any], signs: str) -> None:
    n = len(case[1])
    groups = np.array(["a", "b", "c", "d", "e", "f", "g"])[np.random.default_rng(1).integers(0, 7, n)]
    setup = setup_of(case, groups=groups)
    names, h = np.unique(groups), matrix(setup)
    rng = np.random.default_rng(SEED)
    count = len(names)
    drawn = draw_signs(rng, count, 40) if signs == "rademacher" else rng.standard_normal((40, count))
    between = [(i, j) for i in range(n) for j in range(n) if groups[i] != groups[j]]
    number = {name: index for index, name in enumerate(names)}

    def mean_over_pairs(e: Any) -> float:
        signs_of = [float(e[number[g]]) for g in groups]
        return math.fsum(signs_of[i] * signs_of[j] * h[i, j] for i, j in between) / len(between)

    outcome = Multiplier(signs).run(setup)
    assert outcome.null is not None
    assert_allclose(outcome.null, [n * mean_over_pairs(e) for e in drawn], rtol=1e-9, atol=1e-11)
    assert outcome.statistic == pytest.approx(n * mean_over_pairs(np.ones(count)), rel=1e-11)
    assert outcome.pvalue == monte_carlo(outcome.statistic, outcome.null)


def test_clusters_of_one_case_are_no_clusters(case: tuple[Any, Any]) -> None:
    n = len(case[1])
    alone = Multiplier().run(setup_of(case))
    clustered = Multiplier().run(setup_of(case, groups=np.arange(n)))
    assert clustered.statistic == pytest.approx(alone.statistic, rel=1e-12)
    assert clustered.pvalue == alone.pvalue
    assert alone.estimate is not None
    assert clustered.estimate is not None
    assert clustered.estimate.standard_error == pytest.approx(alone.estimate.standard_error, rel=1e-10)


def test_standard_error_between_clusters_is_that_of_the_jackknife() -> None:
    """For many clusters the infinitesimal and the leave-one-cluster-out jackknife agree."""
    rng = np.random.default_rng(8)
    count, n = 150, 300
    groups = np.concatenate([np.arange(count), rng.integers(0, count, n - count)])
    mu = rng.normal(size=n)
    case = rng.normal(mu) + 0.7, wc.Normal(mu, np.ones(n))
    setup = setup_of(case, groups=groups, engine=Tiled(threads=1), n_resamples=1)
    h = matrix(setup) * (groups[:, None] != groups[None, :])
    sizes = np.bincount(groups)

    def without(cluster: int) -> float:
        kept = groups != cluster
        left = sizes[np.arange(count) != cluster]
        return h[np.ix_(kept, kept)].sum() / (left.sum() ** 2 - np.sum(left**2))

    values = np.array([without(g) for g in range(count)])
    jackknife = math.sqrt((count - 1) / count * np.sum((values - values.mean()) ** 2))
    estimate = Multiplier().run(setup).estimate
    assert estimate is not None
    assert estimate.standard_error == pytest.approx(jackknife, rel=0.03)


# -- spectrum -------------------------------------------------------------------------------------


def test_spectrum_weighs_chi_squares_by_eigenvalues(case: tuple[Any, Any]) -> None:
    setup = setup_of(case)
    n, h = setup.n_samples, matrix(setup)
    eigenvalues = np.sort(np.linalg.eigvals(h / n).real)
    drawn = np.random.default_rng(SEED).standard_normal((40, n)) ** 2
    expected = [math.fsum(weights * (z - 1)) for weights, z in zip([eigenvalues] * 40, drawn, strict=True)]
    outcome = Spectrum().run(setup)
    assert outcome.null is not None
    assert_allclose(outcome.null, expected, rtol=1e-7, atol=1e-9)
    assert outcome.pvalue == monte_carlo(outcome.statistic, expected)


@pytest.mark.parametrize("degrees", [1, 3])
def test_sums_of_chi_squares_have_the_cumulants_of_their_law(degrees: int) -> None:
    weights = np.array([1.5, 0.4, 0.2, -0.3])
    count = 200_000
    drawn = draw_chi_square_sum(np.random.default_rng(2), weights, degrees, count)
    # Cumulant r of a chi-square variate with s degrees of freedom is 2^(r - 1) (r - 1)! s.
    variance = 2 * np.sum(weights**2) / degrees
    third = 8 * np.sum(weights**3) / degrees**2
    name = "moments of sums of chi-squares"
    check_mean(name, drawn, 0.0, find=0.05 * math.sqrt(variance))
    for power, expected in ((2, variance), (3, third)):
        check_mean(name, drawn**power, expected, find=0.2 * expected)


def test_spectrum_agrees_with_simulation_from_normal_features() -> None:
    """``sum_i l_i (Z_i - 1)`` is the law of g' (H / n) g - tr(H / n) for standard normal g."""
    setup = setup_of(normal_case(20), n_resamples=20_000)
    h = matrix(setup) / setup.n_samples
    g = np.random.default_rng(1).standard_normal((20_000, setup.n_samples))
    direct = np.einsum("ri,ij,rj->r", g, h, g, optimize=True) - np.trace(h)
    outcome = Spectrum().run(setup)
    assert outcome.null is not None
    check_same("spectrum by simulation", outcome.null, direct, find=0.04)


# -- cumulants ------------------------------------------------------------------------------------


def cumulants(h: Any) -> tuple[float, float]:
    n = len(h)
    pairs = math.fsum(h[i, j] ** 2 for i, j in itertools.permutations(range(n), 2))
    triples = math.fsum(h[i, j] * h[j, k] * h[k, i] for i, j, k in itertools.permutations(range(n), 3))
    return 2 * pairs / (n * (n - 1)), 8 * triples / (n * (n - 1) * (n - 2))


@pytest.mark.parametrize("traces", ["exact", "auto"])
def test_pearson_is_scipys_curve_with_three_cumulants(case: tuple[Any, Any], traces: str) -> None:
    setup = setup_of(case)
    n, h = setup.n_samples, matrix(setup)
    k2, k3 = cumulants(h)
    statistic = n * unbiased(h, range(n))
    expected = stats.pearson3(skew=k3 / k2**1.5, scale=math.sqrt(k2)).sf(statistic)
    outcome = Pearson(traces).run(setup)
    assert outcome.statistic == pytest.approx(statistic, rel=1e-11)
    assert outcome.pvalue == pytest.approx(expected, rel=1e-9)


def test_exact_trace_in_several_strips() -> None:
    setup = setup_of(normal_case(300), engine=Tiled(threads=2))
    h = matrix(setup)
    np.fill_diagonal(h, 0.0)
    trace = exact_trace(setup)
    assert trace.squares == pytest.approx(np.sum(h**2), rel=1e-12)
    assert trace.triples == pytest.approx(np.trace(h @ h @ h), rel=1e-11)


def test_hutchinson_finds_the_trace_within_its_error() -> None:
    """Over many seeds: no bias, and standard errors that tell the spread."""
    rng = np.random.default_rng(11)
    n = 100
    mu = rng.normal(size=n)
    case = rng.normal(mu), wc.Normal(mu, np.ones(n))
    kernel = wc.kernels.ExpDistance(wc.kernels.Wasserstein(), lengthscale=0.2) @ wc.kernels.Gaussian(0.2)
    setups = [make_setup(*case, kernel, rng=seed, engine=Tiled(threads=1)) for seed in range(40)]
    exact = exact_trace(setups[0])
    found = [hutchinson_trace(setup, 16) for setup in setups]
    assert all(f.squares == pytest.approx(exact.squares, rel=1e-12) for f in found)
    deviations = np.array([(f.triples - exact.triples) / exact.triples for f in found])
    errors = np.array([(f.error or 0.0) / exact.triples for f in found])
    assert deviations.std() > 1e-4  # a case in which something is left to chance
    check_mean("random traces", deviations, 0.0, find=1.1 * deviations.std())
    assert 0.6 < math.sqrt(np.mean(errors**2)) / deviations.std() < 1.6


def test_subspace_makes_hutchinson_far_better_than_plain_probes() -> None:
    rng = np.random.default_rng(12)
    n = 200
    mu = rng.normal(size=n)
    setup = make_setup(rng.normal(mu), wc.Normal(mu, np.ones(n)), rng=0, engine=Tiled(threads=1))
    h = matrix(setup)
    np.fill_diagonal(h, 0.0)
    cube = h @ h @ h
    plain = math.sqrt(2 * (np.sum(cube**2) - np.sum(np.diag(cube) ** 2)) / 32)
    trace = hutchinson_trace(setup, 32)
    assert trace.error is not None
    assert trace.error < 0.1 * plain
    assert abs(trace.triples - np.trace(cube)) < 5 * trace.error


@pytest.mark.parametrize("n", [5, 13])
def test_hutchinson_with_more_vectors_than_cases_is_exact(n: int) -> None:
    setup = setup_of(normal_case(n))
    exact = exact_trace(setup)
    trace = hutchinson_trace(setup, 64)
    assert trace.triples == pytest.approx(exact.triples, rel=1e-9)
    assert trace.error == pytest.approx(0.0, abs=1e-9 * abs(exact.triples))


def test_sets_of_cases_find_pairs_and_triples_within_their_error() -> None:
    """Over many seeds: no bias, and standard errors that tell the spread."""
    setup = make_setup(*normal_case(1000, shift=0.0), rng=0, engine=Tiled(threads=1))
    exact = exact_trace(setup)
    seeds = [np.random.default_rng(seed) for seed in range(60)]
    found = [sampled_trace(replace(setup, rng=rng), size=20, most=12) for rng in seeds]
    assert all(float(f.sums.total) == pytest.approx(float(exact.sums.total), rel=1e-9) for f in found)
    squares = np.array([f.squares / exact.squares - 1.0 for f in found])
    triples = np.array([f.triples / exact.triples - 1.0 for f in found])
    for deviations in (squares, triples):
        assert deviations.std() > 1e-3  # a case in which something is left to chance
        check_mean("sampled traces", deviations, 0.0, find=0.9 * deviations.std())
    errors = np.array([(f.error or 0.0) / exact.triples for f in found])
    assert 0.6 < math.sqrt(np.mean(errors**2)) / triples.std() < 1.6


@pytest.mark.parametrize("together", [0, 10])
def test_sampled_sets_know_what_they_miss_where_few_pairs_interact(together: int) -> None:
    """Triangles that hardly any set sees; and ten cases that are alike, among many that are alone."""
    rng, n = np.random.default_rng(2), 2000
    mu = np.arange(n) * 0.7 if together else rng.uniform(0.0, 4e4, n)
    mu[:together] = -50.0
    kernel = kernels.ExpDistance(kernels.Wasserstein(), lengthscale=0.02 if together else 10.0)
    pred = wc.Normal(mu, np.ones(n))
    setup = make_setup(
        rng.normal(mu), pred, kernel=kernel @ kernels.Gaussian(), rng=0, engine=Tiled(threads=1)
    )
    exact = exact_trace(setup)
    seeds = [np.random.default_rng(seed) for seed in range(8)]
    found = [sampled_trace(replace(setup, rng=rng), size=64, most=64) for rng in seeds]
    for f in found:
        assert abs(f.triples - exact.triples) < 5 * (f.error or 0.0)
    if together:
        assert np.mean([f.squares for f in found]) == pytest.approx(exact.squares, rel=0.2)
        assert np.mean([f.triples for f in found]) == pytest.approx(exact.triples, rel=0.3)


def test_sums_of_sets_are_those_of_all_cases_on_average() -> None:
    """All 4^3 sets of three draws of four cases, each as often as it comes."""
    setup = setup_of(normal_case(4))
    exact = exact_trace(setup)
    chances = np.array([0.1, 0.2, 0.3, 0.4])
    sets = [np.array(own) for own in itertools.product(range(4), repeat=3)]
    often = np.array([np.prod(chances[own]) for own in sets])
    found = often @ np.array([set_sums(setup.problem, own, chances) for own in sets])
    doubled = exact.squares**2 / exact.carriers
    assert_allclose(found[[0, 1, 3]], [exact.squares, exact.triples, doubled], rtol=1e-12)


def test_errors_of_sampled_cumulants_are_those_of_what_follows_from_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pearson, "SET", 20)
    monkeypatch.setattr(pearson, "MOST_SETS", 16)
    setup = make_setup(*normal_case(1000, shift=0.08), rng=0, engine=Tiled(threads=1))
    seeds = [np.random.default_rng(seed) for seed in range(40)]
    found = [Pearson("sampled").run(replace(setup, rng=rng)) for rng in seeds]
    wanted = Pearson("exact").run(setup)
    assert 1e-3 < wanted.pvalue < 0.9
    said = [one.provenance for one in found]
    for values, name, true in (
        ([one.pvalue for one in found], "pvalue_standard_error", wanted.pvalue),
        ([one["skewness"] for one in said], "skewness_standard_error", wanted.provenance["skewness"]),
        (
            [one["standard_deviation"] for one in said],
            "standard_deviation_standard_error",
            wanted.provenance["standard_deviation"],
        ),
    ):
        told = math.sqrt(np.mean([one[name] ** 2 for one in said]))
        spread = math.sqrt(np.mean((np.array(values) - true) ** 2))
        assert 0.5 < told / spread < 2.0, name


def test_gamma_matches_two_moments(case: tuple[Any, Any]) -> None:
    setup = setup_of(case)
    n, h = setup.n_samples, matrix(setup)
    mean, variance = float(np.trace(h)) / n, cumulants(h)[0]
    outcome = GammaMoments().run(setup)
    assert outcome.statistic == pytest.approx(h.sum() / n, rel=1e-11)
    expected = stats.gamma(a=mean**2 / variance, scale=variance / mean).sf(h.sum() / n)
    assert outcome.pvalue == pytest.approx(expected, rel=1e-9)


# -- blocks ---------------------------------------------------------------------------------------


def block_means(h: Any, size: int, count: int | None = None) -> Any:
    starts = range(0, (len(h) // size if count is None else count) * size, size)
    return np.array([unbiased(h, range(start, start + size)) for start in starts])


@pytest.mark.parametrize("size", [2, 3, 5])
def test_block_with_the_spread_of_blocks(case: tuple[Any, Any], size: int) -> None:
    setup = setup_of(case)
    values = block_means(matrix(setup), size)
    count, deviation = len(values), np.std(values, ddof=1)
    outcome = Block(size).run(setup)
    z = math.sqrt(count) * values.mean() / deviation
    assert outcome.statistic == pytest.approx(z, rel=1e-9)
    assert outcome.pvalue == pytest.approx(stats.norm.cdf(-z), rel=1e-9)
    student = Block(size, quantiles="t").run(setup)
    expected = stats.ttest_1samp(values, 0.0, alternative="greater")
    assert student.statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert student.pvalue == pytest.approx(expected.pvalue, rel=1e-9)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_block_with_the_mean_square_of_pairs(case: tuple[Any, Any], size: int) -> None:
    setup = setup_of(case)
    n, h = setup.n_samples, matrix(setup)
    count = n // size
    inside = [h[i, j] ** 2 for i in range(count * size) for j in range(i) if i // size == j // size]
    sigma = math.sqrt(math.fsum(inside) / len(inside))
    mean = block_means(h, size).mean()
    outcome = Block(size, variance="pairs").run(setup)
    expected = stats.norm.cdf(-math.sqrt(count * size * (size - 1)) * mean / (math.sqrt(2) * sigma))
    assert outcome.pvalue == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_fixed_number_of_blocks_weighs_chi_squares(case: tuple[Any, Any], count: int) -> None:
    setup = setup_of(case)
    n, h = setup.n_samples, matrix(setup)
    size = n // count
    eigenvalues = np.linalg.eigvalsh(h / n)
    rng = np.random.default_rng(SEED)
    z = rng.chisquare(count, (40, n)) if count > 1 else rng.standard_normal((40, n)) ** 2
    expected = [math.fsum(eigenvalues * (row - count)) / count for row in z]
    outcome = Block(n_blocks=count, null="weighted_chi2").run(setup)
    assert outcome.null is not None
    assert_allclose(outcome.null, expected, rtol=1e-7, atol=1e-9)
    assert outcome.statistic == pytest.approx(size * block_means(h, size, count).mean(), rel=1e-9)
    assert outcome.pvalue == monte_carlo(outcome.statistic, expected)


def test_number_of_blocks_is_kept_where_more_would_fit() -> None:
    setup = setup_of(draws_case(11))
    values = block_means(matrix(setup), 2, 4)  # 11 // 4 = 2 cases in a block, of which there could be 5
    outcome = Block(n_blocks=4).run(setup)
    assert outcome.statistic == pytest.approx(2 * values.mean() / np.std(values, ddof=1), rel=1e-9)
    assert outcome.estimate is not None
    assert outcome.estimate.value == pytest.approx(values.mean(), rel=1e-9)
    assert outcome.provenance["blocks"] == 4
    assert outcome.provenance["dropped"] == 3


# -- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 4])
def test_bound_for_blocks(size: int) -> None:
    setup = setup_of(normal_case(shift=2.0))
    n, h = setup.n_samples, matrix(setup)
    estimate = block_means(h, size).mean()
    expected = math.exp(-(n // size) * (size // 2) * estimate**2 / (2 * 2.0**2))
    assert estimate > 0
    outcome = DistributionFree(block_size=size).run(setup)
    assert outcome.statistic == pytest.approx(estimate, rel=1e-9)
    assert outcome.pvalue == pytest.approx(expected, rel=1e-9)


def test_bound_for_the_biased_estimate() -> None:
    rng = np.random.default_rng(3)
    mu = 0.1 * rng.normal(size=40)
    setup = setup_of((mu + 2.0, wc.Normal(mu, np.full(40, 0.1))), kernel=paper_kernel)
    h = matrix(setup)
    estimate = h.mean()
    expected = math.exp(-((math.sqrt(40 * estimate / 2.0) - 1) ** 2) / 2)
    outcome = DistributionFree("biased").run(setup)
    assert outcome.statistic == pytest.approx(estimate, rel=1e-10)
    assert outcome.pvalue == pytest.approx(expected, rel=1e-9)
    assert outcome.pvalue < 0.05
