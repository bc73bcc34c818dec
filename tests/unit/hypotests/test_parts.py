"""Parts of the omnibus test: sums over cases, by their definitions, and statistics made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import linalg, special, stats

import wellcal as wc
from wellcal.hypotests.parts.binary import BinaryParts
from wellcal.hypotests.parts.classes import ClassParts
from wellcal.hypotests.parts.contrasts import contrasts_of
from wellcal.hypotests.parts.families import parts_of
from wellcal.hypotests.parts.part import standardised
from wellcal.hypotests.parts.polynomials import hermite, legendre
from wellcal.hypotests.parts.scalars import ScalarParts
from wellcal.hypotests.parts.surprise import surprise_of, total_surprise
from wellcal.hypotests.parts.vectors import VectorParts
from wellcal.hypotests.resampling import smooth_tails
from wellcal.hypotests.resampling.components import ETAS, regularised_statistic
from wellcal.hypotests.resampling.smooth_tails import pearson_tail, smooth_pvalues, two_sided
from wellcal.hypotests.resampling.targets import draw_targets
from wellcal.measures.normal_scores import standing_of

from ...engines.examples import EXAMPLES

RNG = np.random.default_rng(31)
N, R = 9, 4
MU, SIGMA = RNG.normal(size=N), RNG.uniform(0.5, 2.0, N)
SETS = RNG.normal(size=(R, N))


# -- where targets stand ------------------------------------------------------------------------------


def standing(pred: Any, targets: Any) -> Any:
    found = standing_of(pred)
    assert found is not None
    return found(np.asarray(targets))


def test_normal_scores_of_continuous_targets() -> None:
    np.testing.assert_allclose(standing(wc.Normal(MU, SIGMA), SETS), (SETS - MU) / SIGMA, rtol=1e-12)
    levels = RNG.uniform(size=(R, N))
    cauchy = stats.cauchy(MU, SIGMA).ppf(levels)
    found = standing(wc.StudentT(np.ones(N), MU, SIGMA), cauchy)
    np.testing.assert_allclose(found, special.ndtri(levels), rtol=1e-7, atol=1e-7)


def test_normal_scores_of_counts_take_the_middle_of_a_step() -> None:
    rate = np.exp(MU)
    counts = RNG.poisson(rate, (R, N))
    levels = stats.poisson(rate).cdf(counts) - 0.5 * stats.poisson(rate).pmf(counts)
    np.testing.assert_allclose(standing(wc.Poisson(rate), counts), special.ndtri(levels), rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_normal_scores_among_atoms(weighted: bool) -> None:
    values = RNG.integers(0, 4, (N, 6)).astype(float)
    weights = RNG.dirichlet(np.ones(6), N) if weighted else None
    w = np.full((N, 6), 1 / 6) if weights is None else weights
    targets = RNG.integers(-1, 5, (R, N)).astype(float) + RNG.choice([0.0, 0.5], (R, N))
    below = (w * (values < targets[..., None])).sum(axis=-1)
    equal = (w * (values == targets[..., None])).sum(axis=-1)
    levels = np.clip(below + 0.5 * equal, 1e-16, 1 - 1e-16)
    found = standing(wc.Samples(values, kind="atoms", weights=weights), targets)
    np.testing.assert_allclose(special.ndtr(found), levels, atol=1e-12)


def test_a_step_within_a_mixture() -> None:
    pred = wc.Mixture([wc.Normal(np.zeros(2), np.ones(2)), wc.Samples(np.ones((2, 1)), kind="atoms")])
    found = standing(pred, [[1.0, 2.0]])
    expected = 0.5 * stats.norm.cdf([1.0, 2.0]) + [0.25, 0.5]
    np.testing.assert_allclose(special.ndtr(found), [expected], rtol=1e-12)


def test_bins_of_quantiles() -> None:
    pred = wc.Quantiles([0.1, 0.5, 0.9], np.tile([-1.0, 0.0, 1.0], (2, 1)))
    expected = special.ndtri([[0.05, 0.7], [0.95, 0.3]])
    np.testing.assert_allclose(standing(pred, [[-5.0, 0.5], [7.0, -0.5]]), expected, atol=1e-12)


def test_classes_are_in_the_order_of_their_support() -> None:
    probs = np.array([[0.2, 0.5, 0.3]])
    found = standing(wc.Categorical(probs, support=[3.0, 1.0, 2.0]), [[0], [1], [2]])
    np.testing.assert_allclose(found, special.ndtri([[0.9], [0.25], [0.65]]), rtol=1e-9)
    found = standing(wc.Categorical(probs, classes=["a", "b", "c"]), [[0], [1], [2]])
    np.testing.assert_allclose(found, special.ndtri([[0.1], [0.45], [0.85]]), rtol=1e-9)


def test_points_do_not_blind_the_others() -> None:
    """What is certain, and right, stands in the middle of its step; what is wrong is far off."""
    scale = np.where(np.arange(50) < 10, 0.0, 1.0)
    pred, rng = wc.Normal(np.zeros(50), scale), np.random.default_rng(0)
    found = standing(pred, [np.zeros(50), np.full(50, -1.0)])
    np.testing.assert_array_equal(found[:, [0, 49]], [[0.0, 0.0], [-40.0, -1.0]])
    shifted = wc.calibration_test(scale * (rng.normal(size=50) + 2.0), pred, rng=0, n_resamples=99)
    assert shifted.provenance["pvalues"]["distribution"] <= 0.01


def test_objects_and_vectors_have_none() -> None:
    assert standing_of(wc.Samples([["a", "b"], ["b", "c"]])) is None
    assert parts_of(wc.Samples([["a", "b"], ["b", "c"]])) is None
    assert standing_of(wc.DiagonalNormal(np.zeros((3, 2)), np.ones((3, 2)))) is None


# -- polynomials and columns ------------------------------------------------------------------------


def test_polynomials_are_orthonormal() -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    h = np.stack([np.ones(40), *hermite(nodes)])
    np.testing.assert_allclose((h * weights / weights.sum()) @ h.T, np.eye(5), atol=1e-10)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    p = np.stack([np.ones(40), *legendre(0.5 + 0.5 * nodes)])
    np.testing.assert_allclose((p * weights / 2.0) @ p.T, np.eye(7), atol=1e-12)


def test_columns_are_orthonormal_and_follow_ranks() -> None:
    centre, spread = RNG.normal(size=50), RNG.uniform(1.0, 2.0, 50)
    found = contrasts_of(centre, spread)
    np.testing.assert_allclose(found.columns.T @ found.columns / 50, np.eye(5), atol=1e-10)
    assert (found.trend, found.bend) == ([1, 2], [3, 4])
    again = contrasts_of(np.exp(5.0 * centre), spread**3)
    np.testing.assert_allclose(again.columns, found.columns, atol=1e-10)


@pytest.mark.parametrize("spread", [np.ones(50), np.arange(50.0)])
def test_a_spread_that_says_nothing_new_has_no_column(spread: Any) -> None:
    found = contrasts_of(np.arange(50.0), spread)
    assert (found.trend, found.bend) == ([1], [2, 3])
    constant = contrasts_of(np.zeros(50), np.ones(50))
    assert constant.columns.shape == (50, 1)


# -- sums ---------------------------------------------------------------------------------------------


def test_sums_of_scalars() -> None:
    parts = parts_of(wc.Normal(MU, SIGMA))
    assert isinstance(parts, ScalarParts)
    z, columns = (SETS - MU) / SIGMA, parts.columns.columns
    found = parts.sums(SETS).reshape(R, 10, -1)
    np.testing.assert_allclose(found[:, 1], (z**2 - 1.0) / np.sqrt(2.0) @ columns, atol=1e-12)
    third = 20.0 * special.ndtr(z) ** 3 - 30.0 * special.ndtr(z) ** 2 + 12.0 * special.ndtr(z) - 1.0
    np.testing.assert_allclose(found[:, 6], np.sqrt(7.0) * third @ columns, atol=1e-12)


def test_vectors_are_made_round() -> None:
    loc, factor = RNG.normal(size=(N, 3)), RNG.normal(size=(N, 3, 3))
    cov = factor @ factor.transpose(0, 2, 1) + 0.1 * np.eye(3)
    targets = RNG.normal(size=(R, N, 3))
    parts = parts_of(wc.MultivariateNormal(loc, cov))
    assert isinstance(parts, VectorParts)
    z = np.empty((R, N, 3))
    surprise = np.zeros(R)
    for i in range(N):
        z[:, i] = linalg.solve(np.linalg.cholesky(cov[i]), (targets[:, i] - loc[i]).T).T
        surprise -= stats.multivariate_normal(loc[i], cov[i]).logpdf(targets[:, i])
    found = parts.sums(targets)
    np.testing.assert_allclose(found[:, :3], z.sum(axis=1), rtol=1e-8)
    # The squared length is twice the surprise, but for what all targets share.
    np.testing.assert_allclose(np.diff(found[:, 3]), 2.0 * np.diff(surprise), rtol=1e-8)
    k = parts.columns.columns.shape[1]
    products = found[:, 4 + 6 * k : 4 + 9 * k].reshape(R, 3, k)
    np.testing.assert_allclose(products[:, 1], (z[..., 0] * z[..., 2]) @ parts.columns.columns, rtol=1e-8)


def test_vectors_of_one_coordinate_have_no_correlation() -> None:
    loc = RNG.normal(size=(30, 1))
    result = wc.calibration_test(loc + 3.0, wc.DiagonalNormal(loc, np.ones((30, 1))), rng=0, n_resamples=99)
    assert result.pvalue <= 0.01
    assert "correlation" not in result.provenance["pvalues"]
    assert "spread" in result.provenance["pvalues"]


def test_sums_of_classes() -> None:
    probs = RNG.dirichlet(np.ones(4), N)
    labels = RNG.integers(0, 4, (R, N))
    parts = parts_of(wc.Categorical(probs))
    assert isinstance(parts, ClassParts)
    hits = labels[..., None] == np.arange(4)
    logit = special.logit(probs)
    spread = probs * (1.0 - probs)
    centred = logit - (spread * logit).sum(axis=0) / spread.sum(axis=0)
    found = parts.sums(labels)
    np.testing.assert_allclose(found[:, 0], -np.log(np.where(hits, probs, 1.0)).sum(axis=(1, 2)), rtol=1e-12)
    np.testing.assert_allclose(found[:, 1:5], hits.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(found[:, 5:], ((hits - probs) * centred).sum(axis=1), atol=1e-12)


def test_sums_of_two_classes() -> None:
    p = RNG.uniform(0.1, 0.9, 40)
    labels = RNG.integers(0, 2, (R, 40))
    parts = parts_of(wc.Bernoulli(p))
    assert isinstance(parts, BinaryParts)
    found, spread = parts.sums(labels), p * (1.0 - p)
    np.testing.assert_allclose((parts.smooth.T * spread) @ parts.smooth, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(found[:, 0], (labels - p).sum(axis=1) / np.sqrt(spread.sum()), rtol=1e-9)
    np.testing.assert_allclose(found[:, -1], (labels - p) @ special.logit(p), rtol=1e-9)
    np.testing.assert_allclose(found[:, 4:14].sum(axis=1), (labels - p).sum(axis=1), rtol=1e-9, atol=1e-12)


def test_what_is_impossible_is_infinitely_surprising() -> None:
    found = parts_of(wc.Categorical(np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])))
    assert found is not None
    np.testing.assert_array_equal(found.sums(np.array([[1, 0], [0, 0]]))[:, 0], [np.inf, np.log(2.0)])
    surprise = surprise_of(wc.Beta([0.5, 2.0], [2.0, 2.0]))
    assert surprise is not None
    np.testing.assert_array_equal(
        total_surprise(surprise(np.array([[0.0, 0.0], [0.5, 0.0]]))), [np.inf, np.inf]
    )


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "Mixture with draws"])
def test_all_families_have_parts(name: str) -> None:
    example = EXAMPLES[name]
    pred = example.build()
    observed = np.asarray(pred.check_targets(example.targets))
    sets = draw_targets(pred, np.random.default_rng(0), 200, observed)
    parts = parts_of(pred)
    assert parts is not None
    found = list(parts.statistics(parts.sums(sets)))
    assert len({part.name for part in found}) == len(found) >= 4
    for part in found:
        pvalues = smooth_pvalues(part.values)
        assert pvalues.shape == (200,)
        assert 0.0 <= pvalues.min() <= pvalues.max() <= 1.0
        # Fitted tails are near the ranks: no part has its own idea of what is rare.
        assert np.count_nonzero(pvalues <= 0.1) <= 50


# -- statistics -----------------------------------------------------------------------------------------


def leading(pred: Any, y: Any, count: int = 399) -> str:
    """The part with the smallest weighted p-value."""
    observed = np.asarray(pred.check_targets(y))
    sets = np.concatenate([observed[None], draw_targets(pred, np.random.default_rng(5), count, observed)])
    parts = parts_of(pred)
    assert parts is not None
    found = {
        part.name: smooth_pvalues(part.values)[0] / part.weight for part in parts.statistics(parts.sums(sets))
    }
    return min(found, key=lambda name: found[name])


def test_each_error_leads_to_its_part() -> None:
    n, rng = 400, np.random.default_rng(4)
    mu, sigma, z = rng.normal(size=n), rng.uniform(0.5, 2.0, n), rng.normal(size=n)
    pred = wc.Normal(mu, sigma)
    errors = {
        "distribution, levels": z + 0.2,
        "spread": 0.85 * z,
        "trend of the centre": z + 0.25 * mu,
        "trend of the spread": z * np.exp(0.2 * np.sign(mu)),
        "curve of the centre": z + 0.2 * (mu**2 - 1.0),
        "shape, levels": 0.8 * rng.choice([-1.0, 1.0], n) + 0.6 * z,
    }
    for part, residual in errors.items():
        assert leading(pred, mu + sigma * residual) in part.split(", ")
    loc = rng.normal(size=(n, 2))
    correlated = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], n)
    assert leading(wc.DiagonalNormal(loc, np.ones((n, 2))), loc + correlated) == "correlation"
    p = rng.uniform(0.05, 0.95, n)
    weak = special.expit(0.4 * special.logit(p))
    assert leading(wc.Bernoulli(p), (rng.uniform(size=n) < weak).astype(int)) in ("slope", "surprise")
    probs = rng.dirichlet(np.ones(5), n)
    wrong = probs * np.array([0.3, 1.0, 1.0, 1.0, 1.0])
    labels = (rng.uniform(size=(n, 1)) > np.cumsum(wrong / wrong.sum(axis=1, keepdims=True), axis=1)).sum(
        axis=1
    )
    assert leading(wc.Categorical(probs), labels) == "one class"


def test_regularised_deviations_by_definition() -> None:
    z = RNG.normal(size=(60, 4)) @ np.diag([10.0, 1.0, 0.1, 0.01]) @ linalg.qr(RNG.normal(size=(4, 4)))[0]
    centred = z - z.mean(axis=0)
    cov = centred.T @ centred / 60
    largest = np.linalg.eigvalsh(cov)[-1]
    squares = [
        np.einsum("ra,ab,rb->r", centred, np.linalg.inv(cov + eta * largest * np.eye(4)), centred)
        for eta in ETAS
    ]
    squares.append((centred**2).sum(axis=1))
    least = np.min([smooth_pvalues(values) for values in squares], axis=0)
    np.testing.assert_allclose(regularised_statistic(z), -np.log(least), rtol=1e-6)
    np.testing.assert_allclose(regularised_statistic(1e-9 * z), regularised_statistic(z), rtol=1e-6)
    np.testing.assert_array_equal(regularised_statistic(np.zeros((7, 3))), np.zeros(7))


# -- smooth tails ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("degrees", [1, 2, 5, 40])
def test_tails_of_sums_of_squares_are_exact(degrees: int) -> None:
    x = np.array([0.1, 1.0, 5.0, 20.0, 60.0])
    skewness = np.full(5, np.sqrt(8.0 / degrees))
    found = pearson_tail((x - degrees) / np.sqrt(2.0 * degrees), skewness)
    np.testing.assert_allclose(found, stats.chi2(degrees).sf(x), rtol=1e-9)
    mirrored = pearson_tail(-(x - degrees) / np.sqrt(2.0 * degrees), -skewness)
    np.testing.assert_allclose(mirrored, stats.chi2(degrees).cdf(x), rtol=1e-9)


def test_tails_are_fitted_to_the_others() -> None:
    values = RNG.gamma(2.0, size=50)
    found = smooth_pvalues(values)
    for r in (0, 17, 49):
        others = np.delete(values, r)
        mean, spread, skewness = others.mean(), others.std(), max(float(stats.skew(others)), -0.5)
        expected = stats.pearson3(skewness, mean, spread).sf(values[r])
        np.testing.assert_allclose(found[r], expected, rtol=1e-8)
    np.testing.assert_allclose(smooth_pvalues(7.0 * values - 3.0), found, rtol=1e-8)


def test_tails_at_the_ends() -> None:
    np.testing.assert_array_equal(smooth_pvalues(np.ones(6)), np.ones(6))
    np.testing.assert_array_equal(smooth_pvalues(np.array([2.0, 1.0, 1.0, 1.0, 1.0]))[:1], [0.0])
    found = smooth_pvalues(np.array([np.inf, -np.inf, 1.0, 2.0, 4.0]))
    np.testing.assert_array_equal(found[:2], [0.0, 1.0])
    np.testing.assert_array_equal(found[2:], smooth_pvalues(np.array([1.0, 2.0, 4.0])))
    with pytest.raises(ValueError, match="nan"):
        smooth_pvalues(np.array([1.0, np.nan, 2.0]))


def test_tails_of_the_first_sets_are_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no others are evaluated, which would take most of the time of a small test."""
    values = np.stack([RNG.gamma(2.0, size=50), np.ones(50), RNG.normal(size=50)])
    expected = smooth_pvalues(values)[:, :7]
    beyond = np.where(np.arange(50) % 9 == 4, np.inf, values)
    seen: list[int] = []
    monkeypatch.setattr(smooth_tails, "pearson_tail", lambda x, s: seen.append(x.size) or pearson_tail(x, s))
    np.testing.assert_array_equal(smooth_pvalues(values, 7), expected)
    np.testing.assert_array_equal(smooth_pvalues(values[0], 7), expected[0])
    assert seen == [14, 7]
    np.testing.assert_array_equal(smooth_pvalues(beyond, 7), smooth_pvalues(beyond)[:, :7])


def test_an_outlier_makes_no_others_rare() -> None:
    """One set far off must be the smallest by itself, to either side."""
    values = RNG.normal(size=199)
    for outlier in (30.0, -30.0, 1e6, -1e6):
        both = two_sided(np.append(outlier, values))
        assert np.argmax(both) == 0
        assert np.count_nonzero(both[1:] > -np.log(1e-3)) == 0


# -- what each case adds to the sums ------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "Mixture with draws"])
def test_terms_of_cases_add_up_to_the_sums(name: str) -> None:
    example = EXAMPLES[name]
    pred = example.build()
    observed = np.asarray(pred.check_targets(example.targets))
    parts = parts_of(pred)
    assert parts is not None
    terms = np.concatenate(list(parts.terms(observed)), axis=1)
    assert len(terms) == len(pred)
    expected = np.asarray(parts.sums(observed[None]))[0]
    np.testing.assert_allclose(terms.sum(axis=0), expected, rtol=1e-9, atol=1e-9)
    known = parts.mean_terms()
    if known is None:
        return
    count = 400
    sets = draw_targets(pred, np.random.default_rng(3), count, observed)
    drawn = np.stack([np.concatenate(list(parts.terms(targets)), axis=1) for targets in sets])
    error = 5.0 * drawn.std(axis=0) / np.sqrt(count) + 1e-9
    # What is rare may not have been drawn at all.
    means, error = np.concatenate(list(known), axis=1), np.maximum(error, 20.0 / count)
    assert np.all(np.abs(drawn.mean(axis=0) - means) < error)


# -- units -------------------------------------------------------------------------------------


def test_sums_are_standardised_column_by_column() -> None:
    """Those that are not finite are far off, or nowhere; those without spread are zero."""
    sums = np.random.default_rng(0).normal(3.0, 2.0, (50, 3))
    plain = (sums - sums.mean(axis=0)) / sums.std(axis=0)
    np.testing.assert_allclose(standardised(sums), plain, rtol=1e-12)
    sums[:, 1] = 0.1 + 1e-17 * sums[:, 0]
    found = standardised(sums)
    assert not found[:, 1].any()
    np.testing.assert_allclose(found[:, [0, 2]], plain[:, [0, 2]], rtol=1e-12)
    sums[:3, 0] = np.inf, -np.inf, np.nan
    found = standardised(sums)
    assert found[0, 0] > 4.0
    assert found[1, 0] < -4.0
    assert found[2, 0] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(found[:, 2], plain[:, 2], rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_what_is_certain_beside_one_other_prediction_makes_no_part_of_rounding(classes: int) -> None:
    """The order of cases, and so the rounding of sums, changes no statistic: partitions add up in theirs."""
    rng = np.random.default_rng(5)
    probs = np.eye(classes)[rng.integers(0, classes, 1001)]
    probs[::2] = (0.5, 0.5) if classes == 2 else (0.2, 0.3, 0.5)
    sets = (probs.cumsum(axis=1) > rng.random((20, 1001, 1))).argmax(axis=2)
    found: list[Any] = []
    for order in (np.arange(1001), rng.permutation(1001)):
        parts = BinaryParts(probs[order, 1]) if classes == 2 else ClassParts(probs[order])
        found.append([part.values for part in parts.statistics(parts.sums(sets[:, order]))])
    np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-8)


def test_tails_do_not_depend_on_the_unit_of_a_statistic() -> None:
    """Squares of values below 1e-160 are zero, as are those of outcomes that are nearly sure."""
    values = np.random.default_rng(0).gamma(0.5, size=(2, 40))
    for unit in (2.0**-620, 2.0**600):
        np.testing.assert_array_equal(smooth_pvalues(unit * values), smooth_pvalues(values))
