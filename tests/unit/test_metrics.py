"""Distances between predictions against integrals, linear programs and known counterexamples."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import ot
import pytest
from scipy import linalg, stats
from scipy.integrate import quad

import wellcal as wc
from wellcal import kernels as k
from wellcal._arrays.ops import ops_for
from wellcal._arrays.rows import slice_rows
from wellcal.expectations.bilinear import matching
from wellcal.expectations.distances import EmbeddingDistance, distance, without_repetition


def distances(metric: k.Metric, predictions: Any) -> np.ndarray:
    """All distances of a batch; matching rows must agree with the table."""
    form, rows = distance(metric, predictions)
    ops = predictions.ops
    table = np.asarray(form(ops, rows, rows))
    assert table.shape == (len(predictions), len(predictions))
    np.testing.assert_allclose(matching(form, ops, rows, rows), np.diagonal(table), atol=1e-14)
    assert np.all(table >= 0)
    return table ** (1.0 / form.degree)


def random_covariances(n: int, d: int, seed: int) -> np.ndarray:
    root = np.random.default_rng(seed).normal(size=(n, d, d))
    return root @ np.swapaxes(root, 1, 2) + 0.05 * np.eye(d)


# -- Euclidean ---------------------------------------------------------------------------------------------


def test_euclidean_is_the_distance_of_parameters() -> None:
    p = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(distances(k.Euclidean(), wc.Bernoulli(p)), np.abs(p[:, None] - p), atol=1e-16)
    probs = np.random.default_rng(0).dirichlet(np.ones(6), 4)
    by_hand = np.linalg.norm(probs[:, None] - probs[None], axis=2)
    np.testing.assert_allclose(distances(k.Euclidean(), wc.Categorical(probs)), by_hand, atol=1e-15)
    loc, scale = np.array([0.0, 3.0, -1.0]), np.array([1.0, 5.0, 0.2])
    by_hand = np.hypot(loc[:, None] - loc, scale[:, None] - scale)
    for family in (wc.Normal, wc.Laplace):
        np.testing.assert_allclose(distances(k.Euclidean(), family(loc, scale)), by_hand, atol=1e-15)
    vectors = wc.DiagonalNormal(np.stack([loc, scale], axis=1), np.stack([scale, scale + 1], axis=1))
    by_hand = np.sqrt((loc[:, None] - loc) ** 2 + 3 * (scale[:, None] - scale) ** 2)
    np.testing.assert_allclose(distances(k.Euclidean(), vectors), by_hand, atol=1e-15)
    np.testing.assert_allclose(
        distances(k.Euclidean(), wc.Poisson(scale)), np.abs(scale[:, None] - scale), atol=1e-15
    )


@pytest.mark.parametrize(
    "P",
    [
        wc.Gamma(np.ones(2), np.ones(2)),
        wc.Samples(np.zeros((2, 3))),
        wc.MultivariateNormal(np.zeros((2, 2)), random_covariances(2, 2, 0)),
        wc.Mixture([wc.Normal(np.zeros(2), np.ones(2))] * 2),
        wc.NegativeBinomial(np.ones(2), 1.0),
    ],
    ids=lambda P: type(P).__name__,
)
def test_euclidean_is_an_error_elsewhere(P: Any) -> None:
    with pytest.raises(TypeError, match=f"Euclidean.*not available for {type(P).__name__}.*take"):
        distance(k.Euclidean(), P)


# -- total variation ---------------------------------------------------------------------------------------


def test_total_variation() -> None:
    probs = np.random.default_rng(1).dirichlet(np.ones(5), 6)
    by_hand = np.array(
        [[max(abs(a[list(s)].sum() - b[list(s)].sum()) for s in events(5)) for b in probs] for a in probs]
    )
    np.testing.assert_allclose(distances(k.TotalVariation(), wc.Categorical(probs)), by_hand, atol=1e-15)


def events(size: int) -> list[tuple[int, ...]]:
    return [s for r in range(size + 1) for s in itertools.combinations(range(size), r)]


def test_total_variation_of_bernoulli_and_its_categorical() -> None:
    p = np.array([0.0, 0.25, 0.7, 1.0])
    two = wc.Categorical(np.stack([1 - p, p], axis=1))
    expected = np.abs(p[:, None] - p)
    np.testing.assert_allclose(distances(k.TotalVariation(), wc.Bernoulli(p)), expected, atol=1e-16)
    np.testing.assert_allclose(distances(k.TotalVariation(), two), expected, atol=1e-16)


def test_total_variation_of_a_mixture_of_classes() -> None:
    members = np.random.default_rng(2).dirichlet(np.ones(3), (2, 4))
    P = wc.Mixture([wc.Categorical(m) for m in members], [0.25, 0.75])
    mean = 0.25 * members[0] + 0.75 * members[1]
    np.testing.assert_allclose(
        distances(k.TotalVariation(), P), distances(k.TotalVariation(), wc.Categorical(mean)), atol=1e-15
    )


def test_total_variation_needs_classes() -> None:
    with pytest.raises(TypeError, match=r"TotalVariation\(\) is not available for Normal.*Hellinger"):
        distance(k.TotalVariation(), wc.Normal(np.zeros(2), np.ones(2)))


# -- Hellinger ---------------------------------------------------------------------------------------------


def hellinger_by_quadrature(p: Any, q: Any, ends: list[float]) -> float:
    parts = [
        quad(lambda x: math.sqrt(p.pdf(x) * q.pdf(x)), a, b, epsabs=1e-13, epsrel=1e-12)[0]
        for a, b in itertools.pairwise(ends)
    ]
    return math.sqrt(1.0 - math.fsum(parts))


def test_hellinger_of_normals() -> None:
    loc, scale = np.array([0.0, 1.0, -2.0]), np.array([1.0, 0.5, 3.0])
    found = distances(k.Hellinger(), wc.Normal(loc, scale))
    for i, j in itertools.combinations(range(3), 2):
        p, q = stats.norm(loc[i], scale[i]), stats.norm(loc[j], scale[j])
        assert found[i, j] == pytest.approx(hellinger_by_quadrature(p, q, [-40, -3, 0, 1, 4, 40]), rel=1e-9)


def test_hellinger_of_independent_coordinates_multiplies() -> None:
    loc = np.array([[0.0, 1.0], [0.5, -1.0]])
    scale = np.array([[1.0, 2.0], [0.5, 0.3]])
    found = distances(k.Hellinger(), wc.DiagonalNormal(loc, scale))[0, 1]
    overlaps = [1 - distances(k.Hellinger(), wc.Normal(loc[:, c], scale[:, c]))[0, 1] ** 2 for c in (0, 1)]
    assert found**2 == pytest.approx(1 - math.prod(overlaps), rel=1e-13)


def test_hellinger_of_log_normals_is_that_of_the_normals() -> None:
    mu, sigma = np.array([0.0, 0.4]), np.array([0.5, 1.0])
    found = distances(k.Hellinger(), wc.LogNormal(mu, sigma))[0, 1]
    p, q = stats.lognorm(0.5), stats.lognorm(1.0, scale=math.exp(0.4))
    assert found == pytest.approx(hellinger_by_quadrature(p, q, [0, 0.1, 1, 3, 20, 300, 1e5]), rel=1e-7)
    np.testing.assert_allclose(found, distances(k.Hellinger(), wc.Normal(mu, sigma))[0, 1], rtol=1e-15)


def test_hellinger_of_counts_and_classes() -> None:
    rate = np.array([0.0, 0.5, 3.0, 40.0])
    found = distances(k.Hellinger(), wc.Poisson(rate))
    counts = np.arange(200)
    mass = np.array([stats.poisson(r).pmf(counts) for r in rate])
    by_hand = np.sqrt(np.maximum(0.0, 1 - np.sqrt(mass) @ np.sqrt(mass).T))
    np.testing.assert_allclose(found, by_hand, atol=2e-8)
    probs = np.random.default_rng(3).dirichlet(np.ones(4), 5)
    by_hand = np.linalg.norm(np.sqrt(probs)[:, None] - np.sqrt(probs)[None], axis=2) / math.sqrt(2)
    np.testing.assert_allclose(distances(k.Hellinger(), wc.Categorical(probs)), by_hand, atol=1e-15)
    p = probs[:, 0]
    two = np.stack([1 - p, p], axis=1)
    np.testing.assert_allclose(
        distances(k.Hellinger(), wc.Bernoulli(p)), distances(k.Hellinger(), wc.Categorical(two)), atol=1e-15
    )


def test_hellinger_keeps_its_digits_for_near_predictions() -> None:
    """To first order H^2 = (dm^2 + 2 ds^2) / (8 s^2) for normals, and H^2 = dr^2 / (8 r) for counts."""
    step = 1e-7
    found = distances(k.Hellinger(), wc.Normal(np.array([1.0, 1.0 + step]), np.array([2.0, 2.0])))[0, 1]
    assert found == pytest.approx(step / (math.sqrt(8) * 2.0), rel=1e-8)
    found = distances(k.Hellinger(), wc.Normal(np.array([1.0, 1.0]), np.array([2.0, 2.0 + step])))[0, 1]
    assert found == pytest.approx(step / (2.0 * 2.0), rel=1e-7)
    found = distances(k.Hellinger(), wc.Poisson(np.array([5.0, 5.0 + step])))[0, 1]
    assert found == pytest.approx(step / math.sqrt(8 * 5.0), rel=1e-6)


# -- Wasserstein -------------------------------------------------------------------------------------------


def quantile_distance(p: Any, q: Any, order: int) -> float:
    """In the normal score, where quantile functions are tame."""

    def integrand(t: float) -> float:
        u = stats.norm.cdf(t)
        return abs(p.ppf(u) - q.ppf(u)) ** order * stats.norm.pdf(t)

    parts = [quad(integrand, a, b, epsabs=1e-10)[0] for a, b in itertools.pairwise(range(-8, 9, 2))]
    return math.fsum(parts) ** (1.0 / order)


@pytest.mark.parametrize(("family", "scipy_family"), [(wc.Normal, stats.norm), (wc.Laplace, stats.laplace)])
def test_wasserstein_2_of_location_scale_families(family: Any, scipy_family: Any) -> None:
    loc, scale = np.array([0.0, 1.0, -2.0]), np.array([1.0, 0.5, 3.0])
    found = distances(k.Wasserstein(), family(loc, scale))
    for i, j in itertools.combinations(range(3), 2):
        exact = quantile_distance(scipy_family(loc[i], scale[i]), scipy_family(loc[j], scale[j]), 2)
        assert found[i, j] == pytest.approx(exact, rel=1e-9)


def test_wasserstein_2_of_diagonal_normals() -> None:
    loc = np.array([[0.0, 1.0], [0.5, -1.0]])
    scale = np.array([[1.0, 2.0], [0.5, 0.3]])
    found = distances(k.Wasserstein(), wc.DiagonalNormal(loc, scale))[0, 1]
    assert found**2 == pytest.approx(0.25 + 4.0 + 0.25 + 1.7**2, rel=1e-14)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_wasserstein_2_of_multivariate_normals(d: int) -> None:
    """Against the matrix square roots of scipy.linalg."""
    n = 4
    loc, cov = np.random.default_rng(4).normal(size=(n, d)), random_covariances(n, d, 5)
    found = distances(k.Wasserstein(), wc.MultivariateNormal(loc, cov))
    for i, j in itertools.combinations(range(n), 2):
        root = linalg.sqrtm(cov[i])
        cross = np.trace(linalg.sqrtm(root @ cov[j] @ root)).real
        squared = ((loc[i] - loc[j]) ** 2).sum() + np.trace(cov[i]) + np.trace(cov[j]) - 2 * cross
        assert found[i, j] ** 2 == pytest.approx(squared, rel=1e-9)
    np.testing.assert_allclose(np.diagonal(found), 0.0, atol=1e-6)


def test_wasserstein_of_multivariate_normals_with_equal_axes_is_diagonal() -> None:
    loc, scale = (
        np.random.default_rng(6).normal(size=(4, 3)),
        np.random.default_rng(7).uniform(0.2, 2, (4, 3)),
    )
    diagonal = wc.DiagonalNormal(loc, scale)
    full = wc.MultivariateNormal(loc, np.stack([np.diag(s**2) for s in scale]))
    for metric in (k.Wasserstein(), k.RootCovariance()):
        np.testing.assert_allclose(distances(metric, full), distances(k.Wasserstein(), diagonal), atol=1e-7)


@pytest.mark.parametrize("order", [1, 2])
def test_wasserstein_of_samples(order: int) -> None:
    values = np.random.default_rng(8).normal(size=(5, 7))
    found = distances(k.Wasserstein(order), wc.Samples(values))
    for i, j in itertools.combinations(range(5), 2):
        if order == 1:
            exact = stats.wasserstein_distance(values[i], values[j])
        else:
            exact = math.sqrt(np.mean((np.sort(values[i]) - np.sort(values[j])) ** 2))
        assert found[i, j] == pytest.approx(exact, rel=1e-13)


def test_wasserstein_of_weighted_samples() -> None:
    """By quantiles at 128 levels: to their spacing."""
    rng = np.random.default_rng(9)
    values, weights = rng.normal(size=(4, 6)), rng.dirichlet(np.ones(6), 4)
    found = distances(k.Wasserstein(1), wc.Samples(values, weights=weights, kind="atoms"))
    for i, j in itertools.combinations(range(4), 2):
        exact = stats.wasserstein_distance(values[i], values[j], weights[i], weights[j])
        assert found[i, j] == pytest.approx(exact, abs=0.05)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("P", "exact"),
    [
        (
            wc.Gamma(np.array([3.0, 1.5]), np.array([0.5, 1.0])),
            [stats.gamma(3.0, scale=0.5), stats.gamma(1.5)],
        ),
        (wc.Beta(np.array([2.0, 1.0]), np.array([5.0, 1.0])), [stats.beta(2, 5), stats.beta(1, 1)]),
        (
            wc.StudentT(np.array([5.0, 30.0]), np.array([0.0, 1.0]), np.array([1.0, 0.5])),
            [stats.t(5), stats.t(30, 1, 0.5)],
        ),
    ],
    ids=["Gamma", "Beta", "StudentT"],
)
def test_wasserstein_by_quantiles(P: Any, exact: list[Any], order: int) -> None:
    """128 quantiles leave a few per cent, all of it in the tails."""
    assert distances(k.Wasserstein(order), P)[0, 1] == pytest.approx(
        quantile_distance(*exact, order), rel=0.03
    )


def test_wasserstein_1_of_counts_is_the_difference_of_means() -> None:
    rate = np.array([0.5, 2.0, 7.0])
    found = distances(k.Wasserstein(1), wc.Poisson(rate))
    counts = np.arange(100)
    cdf = np.array([stats.poisson(r).cdf(counts) for r in rate])
    np.testing.assert_allclose(found, np.abs(cdf[:, None] - cdf[None]).sum(axis=2), atol=1e-12)


def test_wasserstein_of_quantiles() -> None:
    """Each value stands for the levels nearest to it."""
    levels = np.array([0.1, 0.5, 0.9])
    values = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 5.0]])
    share = np.array([0.25, 0.4, 0.25])
    exact = math.sqrt(share @ (values[0] - values[1]) ** 2 / share.sum())
    assert distances(k.Wasserstein(), wc.Quantiles(levels, values))[0, 1] == pytest.approx(exact, rel=1e-13)
    exact = share @ np.abs(values[0] - values[1]) / share.sum()
    assert distances(k.Wasserstein(1), wc.Quantiles(levels, values))[0, 1] == pytest.approx(exact, rel=1e-13)


def test_wasserstein_of_quantiles_approaches_that_of_the_distributions() -> None:
    levels = (np.arange(2000) + 0.5) / 2000
    p, q = stats.norm(0.0, 1.0), stats.norm(1.0, 2.0)
    P = wc.Quantiles(levels, np.stack([p.ppf(levels), q.ppf(levels)]))
    assert distances(k.Wasserstein(), P)[0, 1] == pytest.approx(math.sqrt(2.0), rel=2e-3)


def test_wasserstein_needs_scalars_or_normals() -> None:
    with pytest.raises(TypeError, match=r"not available for Dirichlet.*take MaximumMeanDiscrepancy"):
        distance(k.Wasserstein(), wc.Dirichlet(np.ones((2, 3))))
    with pytest.raises(TypeError, match="not available for Samples"):
        distance(k.Wasserstein(), wc.Samples(np.zeros((2, 3, 2))))
    with pytest.raises(ValueError, match="order must be a whole number between 1 and 2, found 3"):
        k.Wasserstein(3)


# -- square roots of covariances ---------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 3])
def test_root_covariance(d: int) -> None:
    n = 4
    loc, cov = np.random.default_rng(10).normal(size=(n, d)), random_covariances(n, d, 11)
    found = distances(k.RootCovariance(), wc.MultivariateNormal(loc, cov))
    roots = [linalg.sqrtm(c).real for c in cov]
    for i, j in itertools.combinations(range(n), 2):
        exact = math.sqrt(((loc[i] - loc[j]) ** 2).sum() + ((roots[i] - roots[j]) ** 2).sum())
        assert found[i, j] == pytest.approx(exact, rel=1e-10)
    assert np.all(np.diagonal(found) == 0.0)


def test_root_covariance_needs_normals() -> None:
    with pytest.raises(TypeError, match=r"RootCovariance.*not available for Laplace"):
        distance(k.RootCovariance(), wc.Laplace(np.zeros(2), np.ones(2)))


# -- mixture Wasserstein -----------------------------------------------------------------------------------


def component_costs(components: list[Any], i: int, j: int) -> np.ndarray:
    return np.array(
        [[math.hypot(a.loc[i] - b.loc[j], a.scale[i] - b.scale[j]) for b in components] for a in components]
    )


@pytest.mark.parametrize("order", [1, 1.5, 2, 3])
def test_mixture_wasserstein_with_uniform_weights(order: float) -> None:
    """Against all permutations of the components."""
    rng = np.random.default_rng(12)
    size, n = 4, 5
    components = [wc.Normal(rng.normal(size=n), rng.uniform(0.1, 2.0, n)) for _ in range(size)]
    found = distances(k.MixtureWasserstein(order), wc.Mixture(components))
    for i, j in itertools.product(range(n), repeat=2):
        costs = component_costs(components, i, j) ** order
        best = min(costs[range(size), p].mean() for p in itertools.permutations(range(size)))
        assert found[i, j] == pytest.approx(best ** (1 / order), rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("order", [1, 1.5, 2, 3])
def test_mixture_wasserstein_with_general_weights(order: float) -> None:
    """Against a linear program."""
    rng = np.random.default_rng(13)
    size, n = 3, 4
    components = [wc.Normal(rng.normal(size=n), rng.uniform(0.1, 2.0, n)) for _ in range(size)]
    weights = rng.dirichlet(np.ones(size), n)
    found = distances(k.MixtureWasserstein(order), wc.Mixture(components, weights))
    for i, j in itertools.product(range(n), repeat=2):
        costs = component_costs(components, i, j) ** order
        program = np.zeros((2 * size, size * size))
        for a, b in itertools.product(range(size), repeat=2):
            program[a, a * size + b] = program[size + b, a * size + b] = 1.0
        given = np.concatenate([weights[i], weights[j]])
        best = optimum(costs.reshape(-1), program, given)
        assert found[i, j] == pytest.approx(best ** (1 / order), rel=1e-9, abs=1e-9)
        assert found[i, j] ** order == pytest.approx(
            ot.emd2(weights[i], weights[j], costs), rel=1e-12, abs=1e-15
        )


def optimum(costs: np.ndarray, equalities: np.ndarray, given: np.ndarray) -> float:
    from scipy.optimize import linprog

    return max(0.0, float(linprog(costs, A_eq=equalities[:-1], b_eq=given[:-1]).fun))


def test_sinkhorn_approximates() -> None:
    rng = np.random.default_rng(14)
    components = [wc.Normal(rng.normal(size=2), rng.uniform(0.1, 2.0, 2)) for _ in range(3)]
    P = wc.Mixture(components, rng.dirichlet(np.full(3, 3.0), 2))
    exact = distances(k.MixtureWasserstein(2), P)[0, 1]

    def approximate(regularisation: float) -> float:
        form, rows = distance(k.MixtureWasserstein(2, solver="sinkhorn", regularisation=regularisation), P)
        first, second = (slice_rows(rows, slice(i, i + 1)) for i in (0, 1))
        return float(matching(form, P.ops, first, second)[0] ** 0.5)

    rough, fine = approximate(0.5), approximate(0.05)
    assert exact * (1 - 1e-9) <= fine < rough
    assert fine == pytest.approx(exact, rel=0.02)


def test_mixture_wasserstein_of_other_components() -> None:
    rng = np.random.default_rng(15)
    loc, cov = rng.normal(size=(2, 3, 2)), random_covariances(6, 2, 16).reshape(2, 3, 2, 2)
    components = [wc.MultivariateNormal(loc[c], cov[c]) for c in (0, 1)]
    for inner in (k.Wasserstein(), k.RootCovariance()):
        found = distances(k.MixtureWasserstein(2, components=inner), wc.Mixture(components))
        both = wc.MultivariateNormal(loc.reshape(6, 2), cov.reshape(6, 2, 2))
        table = distances(inner, both) ** 2
        for i, j in itertools.combinations(range(3), 2):
            straight = table[i, j] + table[3 + i, 3 + j]
            crossed = table[i, 3 + j] + table[3 + i, j]
            assert found[i, j] ** 2 == pytest.approx(min(straight, crossed) / 2, rel=1e-10)


def test_mixture_wasserstein_needs_one_family() -> None:
    P = wc.Mixture([wc.Normal(np.zeros(2), np.ones(2)), wc.Laplace(np.zeros(2), np.ones(2))])
    with pytest.raises(ValueError, match="components of one family, found Laplace, Normal"):
        distance(k.MixtureWasserstein(), P)
    with pytest.raises(ValueError, match="order must be at least 1"):
        k.MixtureWasserstein(0.5)
    with pytest.raises(ValueError, match="unknown solver 'simplex'; known are exact, sinkhorn"):
        k.MixtureWasserstein(solver="simplex")


def test_mixture_wasserstein_of_one_component_is_its_metric() -> None:
    P = wc.Normal(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    np.testing.assert_allclose(
        distances(k.MixtureWasserstein(3), P), distances(k.Wasserstein(), P), rtol=1e-15
    )
    np.testing.assert_allclose(
        distances(k.MixtureWasserstein(3), wc.Mixture([P])), distances(k.Wasserstein(), P), rtol=1e-14
    )


# -- columns that say nothing new ---------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1.0, 2.0])
@pytest.mark.parametrize(
    ("columns", "left"),
    [
        ("abc", 3),
        ("a.b", 2),
        (".a.", 1),
        ("aab", 2),
        ("bbb", 1),
        ("a.ab", 2),
        ("aab..bbb", 2),
        ("...", 3),
        ("_b", 2),
    ],
)
def test_columns_that_say_nothing_new_are_left_out(columns: str, left: int, degree: float) -> None:
    """A dot is a column that is the same for all; `_` begins and ends alike, and differs in between."""
    rng = np.random.default_rng(3)
    known = {name: rng.normal(size=400) for name in "abc_"} | {".": np.full(400, 0.3)}
    known["_"][-1] = known["_"][0]
    points = np.stack([known[name] for name in columns], axis=1)
    form = EmbeddingDistance(len(columns), degree)
    fewer, rows = without_repetition(form, points)
    assert isinstance(fewer, EmbeddingDistance)
    assert (fewer.size, rows.shape) == (left, (400, left))
    ops = ops_for(np)
    expected = form(ops, points, points)
    np.testing.assert_allclose(fewer(ops, rows, rows), expected, rtol=1e-12, atol=1e-13)
