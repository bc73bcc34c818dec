"""Centre and surprise: sums over cases and their p-values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import linalg, special, stats

import wellcal as wc
from wellcal.hypotests.pvalues import combined_pvalues, rank_pvalues
from wellcal.hypotests.resampling.components import ETAS, regularised_pvalues
from wellcal.hypotests.resampling.moments import centre_pvalues, moments_of, surprise_pvalues
from wellcal.hypotests.resampling.targets import draw_targets

from ...engines.examples import EXAMPLES

RNG = np.random.default_rng(31)
N, R = 9, 4
MU, SIGMA = RNG.normal(size=N), RNG.uniform(0.5, 2.0, N)
SETS = RNG.normal(size=(R, N))


def test_normals() -> None:
    found = moments_of(wc.Normal(MU, SIGMA))
    assert found is not None
    np.testing.assert_allclose(found.residuals(SETS)[:, 0], ((SETS - MU) / SIGMA).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(
        found.surprise(SETS), -stats.norm(MU, SIGMA).logpdf(SETS).sum(axis=1), rtol=1e-12
    )


def test_vectors_are_made_round() -> None:
    loc, factor = RNG.normal(size=(N, 3)), RNG.normal(size=(N, 3, 3))
    cov = factor @ factor.transpose(0, 2, 1) + 0.1 * np.eye(3)
    targets = RNG.normal(size=(R, N, 3))
    found = moments_of(wc.MultivariateNormal(loc, cov))
    assert found is not None
    expected = np.zeros((R, 3))
    surprise = np.zeros(R)
    for i in range(N):
        expected += linalg.solve(np.linalg.cholesky(cov[i]), (targets[:, i] - loc[i]).T).T
        surprise -= stats.multivariate_normal(loc[i], cov[i]).logpdf(targets[:, i])
    np.testing.assert_allclose(found.residuals(targets), expected, rtol=1e-9)
    np.testing.assert_allclose(found.surprise(targets), surprise, rtol=1e-9)


def test_classes() -> None:
    probs = RNG.dirichlet(np.ones(4), N)
    labels = RNG.integers(0, 4, (R, N))
    found = moments_of(wc.Categorical(probs))
    assert found is not None
    counts = np.stack([(labels == c).sum(axis=1) for c in range(4)], axis=1)
    np.testing.assert_allclose(found.residuals(labels), counts - probs.sum(axis=0), rtol=1e-12)
    expected = [-sum(np.log(probs[i, row[i]]) for i in range(N)) for row in labels]
    np.testing.assert_allclose(found.surprise(labels), expected, rtol=1e-12)
    two = moments_of(wc.Bernoulli(probs[:, 0]))
    assert two is not None
    assert two.residuals(labels % 2).shape == (R, 2)


def test_impossible_classes_are_infinitely_surprising() -> None:
    found = moments_of(wc.Categorical(np.array([[1.0, 0.0], [0.5, 0.5]])))
    assert found is not None
    np.testing.assert_array_equal(found.surprise(np.array([[1, 0], [0, 0]])), [np.inf, np.log(2.0)])


def test_bins_of_quantiles() -> None:
    levels = np.array([0.1, 0.5, 0.9])
    pred = wc.Quantiles(levels, np.tile([-1.0, 0.0, 1.0], (2, 1)))
    found = moments_of(pred)
    assert found is not None
    scores = special.ndtri([0.05, 0.3, 0.7, 0.95])
    targets = np.array([[-5.0, 0.5], [0.5, 0.5], [7.0, -0.5]])
    bins = np.array([[0, 2], [2, 2], [3, 1]])
    np.testing.assert_allclose(found.residuals(targets)[:, 0], scores[bins].sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(found.surprise(targets), (scores[bins] ** 2).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize(
    "pred",
    [
        wc.Samples(RNG.normal(size=(N, 6)), kind="atoms"),
        wc.Mixture([wc.Normal(MU, SIGMA), wc.Samples(RNG.normal(size=(N, 6)), kind="atoms")]),
    ],
    ids=["atoms", "density and atoms"],
)
def test_without_a_density_squares_are_taken(pred: Any) -> None:
    found = moments_of(pred)
    assert found is not None
    z = (SETS - pred.mean()) / np.sqrt(pred.variance())
    np.testing.assert_allclose(found.residuals(SETS)[:, 0], z.sum(axis=1), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.surprise(SETS), (z**2).sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("df", [0.8, 1.5])
def test_without_moments_quartiles_are_taken(df: float) -> None:
    found = moments_of(wc.StudentT(np.full(N, df), MU, SIGMA))
    assert found is not None
    spread = SIGMA * 2.0 * stats.t(df).ppf(0.75) / 1.349
    np.testing.assert_allclose(found.residuals(SETS)[:, 0], ((SETS - MU) / spread).sum(axis=1), rtol=1e-8)
    np.testing.assert_allclose(
        found.surprise(SETS), -stats.t(df, MU, SIGMA).logpdf(SETS).sum(axis=1), rtol=1e-9
    )


def test_predictions_without_spread_take_that_of_the_others() -> None:
    values = np.array([[1.0, 1.0], [0.0, 2.0], [0.0, 6.0]])
    found = moments_of(wc.Samples(values, kind="atoms"))
    assert found is not None
    np.testing.assert_allclose(found.residuals(np.array([[2.0, 1.0, 3.0]])), [[0.5]])
    certain = moments_of(wc.Samples(np.ones((2, 2)), kind="atoms"))
    assert certain is not None
    np.testing.assert_allclose(certain.residuals(np.array([[1.5, 1.0]])), [[0.5]])


def test_objects_have_neither() -> None:
    assert moments_of(wc.Samples([["a", "b"], ["b", "c"]])) is None


def test_densities_that_are_infinite_do_not_make_nan() -> None:
    found = moments_of(wc.Beta([0.5, 2.0], [2.0, 2.0]))
    assert found is not None
    np.testing.assert_array_equal(found.surprise(np.array([[0.0, 0.0], [0.5, 0.0]])), [np.inf, np.inf])


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "Mixture with draws"])
def test_all_families_have_them(name: str) -> None:
    example = EXAMPLES[name]
    pred = example.build()
    observed = np.asarray(pred.check_targets(example.targets))
    sets = np.concatenate([observed[None], draw_targets(pred, np.random.default_rng(0), 199, observed)])
    found = moments_of(pred)
    assert found is not None
    residuals, surprise = found.residuals(sets), found.surprise(sets)
    assert residuals.shape[0] == surprise.shape[0] == 200
    assert residuals.ndim == 2
    assert np.isfinite(residuals).all()
    # Drawn targets are off their centre by chance only.
    error = residuals[1:].mean(axis=0) / np.maximum(residuals[1:].std(axis=0), 1e-12) * np.sqrt(199.0)
    if name != "Quantiles":  # scores of bins have mean zero only where levels are symmetric
        assert np.abs(error).max() < 5.0
    for pvalues, _ in (centre_pvalues(residuals), surprise_pvalues(surprise)):
        assert pvalues.shape == (200,)
        assert 0.0 < pvalues.min() <= pvalues.max() <= 1.0


# -- p-values -----------------------------------------------------------------------------------------


def test_centre_is_the_mahalanobis_length() -> None:
    sums = RNG.normal(size=(200, 3)) @ RNG.normal(size=(3, 3)) + 4.0
    z = sums - sums.mean(axis=0)
    lengths = np.einsum("ra,ab,rb->r", z, np.linalg.inv(np.cov(z.T, bias=True)), z)
    np.testing.assert_array_equal(centre_pvalues(sums).pvalues, rank_pvalues(lengths))
    changed = sums @ RNG.normal(size=(3, 3)) - 7.0
    np.testing.assert_array_equal(centre_pvalues(changed).pvalues, centre_pvalues(sums).pvalues)


def test_centre_with_superfluous_coordinates() -> None:
    """Class counts add up to n, and a class that nobody predicts never varies."""
    free = RNG.normal(size=(200, 2))
    sums = np.column_stack([free, -free.sum(axis=1), np.full(200, 3.0)])
    np.testing.assert_array_equal(centre_pvalues(sums).pvalues, centre_pvalues(free).pvalues)
    np.testing.assert_array_equal(centre_pvalues(np.full((20, 2), 3.0)).pvalues, np.ones(20))


def test_centre_of_many_coordinates_and_few_sets() -> None:
    sums = RNG.normal(size=(50, 10)) * np.arange(1.0, 11.0)
    z = sums - sums.mean(axis=0)
    expected = rank_pvalues(((z / z.std(axis=0)) ** 2).sum(axis=1))
    np.testing.assert_array_equal(centre_pvalues(sums).pvalues, expected)


def test_surprise_has_two_sides_of_unequal_weight() -> None:
    sums = RNG.normal(size=99)
    expected = combined_pvalues([(1.0, rank_pvalues(sums)), (1.0 / 3.0, rank_pvalues(-sums))])
    np.testing.assert_array_equal(surprise_pvalues(sums).pvalues, expected)
    assert surprise_pvalues(np.append(9.0, sums)).pvalues[0] == pytest.approx(0.01)
    assert surprise_pvalues(np.append(-9.0, sums)).pvalues[0] == pytest.approx(0.04)
    shifted = surprise_pvalues(sums + 1e6)  # another unit
    np.testing.assert_array_equal(shifted.pvalues, surprise_pvalues(sums).pvalues)
    assert surprise_pvalues(np.append(np.inf, sums)).pvalues[0] == pytest.approx(0.01)
    np.testing.assert_array_equal(surprise_pvalues(np.full(5, np.inf)).pvalues, np.ones(5))


def test_regularised_deviations_by_definition() -> None:
    z = RNG.normal(size=(60, 4)) @ np.diag([10.0, 1.0, 0.1, 0.01]) @ linalg.qr(RNG.normal(size=(4, 4)))[0]
    centred = z - z.mean(axis=0)
    cov = centred.T @ centred / 60
    largest = np.linalg.eigvalsh(cov)[-1]
    parts = [
        rank_pvalues(
            np.einsum("ra,ab,rb->r", centred, np.linalg.inv(cov + eta * largest * np.eye(4)), centred)
        )
        for eta in ETAS
    ]
    parts.append(rank_pvalues((centred**2).sum(axis=1)))
    np.testing.assert_array_equal(regularised_pvalues(z).pvalues, rank_pvalues(-np.min(parts, axis=0)))
    np.testing.assert_array_equal(regularised_pvalues(1e-9 * z).pvalues, regularised_pvalues(z).pvalues)
    np.testing.assert_array_equal(regularised_pvalues(np.zeros((7, 3))).pvalues, np.ones(7))
