"""Locations: drawn from the predictions, or given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import wellcal as wc
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein
from wellcal.problem.at_locations import location_kernel
from wellcal.problem.locations import Locations, as_locations, draw_locations

from ..statistical.designs import check_uniform

MANY = 20_000
RNG = np.random.default_rng(0)


def same(pred: Any, n: int = MANY) -> Any:
    """The one prediction n times over."""
    return pred[np.zeros(n, dtype=int)]


def test_predictions_are_those_of_the_data_without_repetition() -> None:
    pred = wc.Normal(np.arange(10.0), 1.0)
    found: Any = draw_locations(pred, 10, rng=1).predictions
    assert sorted(found.loc) == list(range(10))
    more: Any = draw_locations(pred, 30, rng=1).predictions
    assert set(more.loc) <= set(range(10))
    assert len(more) == 30


def test_same_seed_same_locations() -> None:
    pred = wc.Normal(np.arange(10.0), 1.0)
    a, b, c = (draw_locations(pred, 4, rng=seed).targets for seed in (3, 3, 4))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_numbers_lie_one_and_a_half_times_as_far_out() -> None:
    t = draw_locations(same(wc.Normal(np.array([2.0]), 0.5)), MANY, rng=2).targets
    check_uniform("widened locations", stats.norm(2.0, 0.75).cdf(t), find=0.03)
    assert stats.kstest(t, stats.norm(2.0, 0.5).cdf).statistic > 0.03  # the test can fail


def test_vectors_are_widened_about_their_means() -> None:
    cov = np.array([[[2.0, 0.9], [0.9, 1.0]]])
    t = draw_locations(same(wc.MultivariateNormal(np.array([[1.0, -1.0]]), cov)), MANY, rng=2).targets
    assert_allclose(t.mean(axis=0), [1.0, -1.0], atol=0.05)
    assert_allclose(np.cov(t, rowvar=False), 2.25 * cov[0], rtol=0.05)


def test_mixtures_are_widened_about_the_mean_of_the_mixture() -> None:
    members = [wc.Normal(np.array([-1.0]), 1e-6), wc.Normal(np.array([3.0]), 1e-6)]
    t = draw_locations(same(wc.Mixture(members)), MANY, rng=2).targets
    assert set(np.unique(t.round(3))) == {-2.0, 4.0}


def test_counts_stay_counts() -> None:
    t = draw_locations(same(wc.Poisson(np.array([1.5]))), MANY, rng=2).targets
    assert np.all(t == np.rint(t))
    assert t.min() == 0.0
    assert np.std(t) > 1.2 * np.sqrt(1.5)


def test_support_is_not_left() -> None:
    gamma = wc.Gamma(np.full(MANY, 0.5), 1.0)
    assert np.all(draw_locations(gamma, MANY, rng=0).targets >= 0.0)
    beta = wc.Beta(np.full(MANY, 0.5), 0.5)
    t = draw_locations(beta, MANY, rng=0).targets
    assert np.all((t >= 0.0) & (t <= 1.0))
    assert_allclose(draw_locations(wc.Dirichlet(np.full((50, 3), 0.3)), 50, rng=0).targets.sum(axis=1), 1.0)


def test_distributions_without_a_mean_are_widened_about_the_median() -> None:
    t = draw_locations(same(wc.StudentT(np.array([1.0]), 3.0, 2.0)), MANY, rng=0).targets
    check_uniform("widened locations", stats.cauchy(3.0, 3.0).cdf(t), find=0.03)


def test_points_stay_where_they_are() -> None:
    pred = wc.Normal(np.array([2.0]), 0.0)
    np.testing.assert_array_equal(draw_locations(same(pred, 5), 5, rng=0).targets, np.full(5, 2.0))


@pytest.mark.parametrize("kind", ["Bernoulli", "Categorical", "Mixture"])
def test_classes_are_any_class_one_time_in_three(kind: str) -> None:
    probs = np.array([[0.9, 0.1]]) if kind == "Bernoulli" else np.array([[0.7, 0.3, 0.0]])
    pred: Any = (
        wc.Bernoulli(probs[:, 1]) if kind == "Bernoulli" else wc.Categorical(probs, classes=list("abc"))
    )
    if kind == "Mixture":
        pred = wc.Mixture([pred, pred])
        probs = pred.class_probs()
    found = draw_locations(same(pred), MANY, rng=5)
    assert found.targets.dtype.kind == "i"
    share = np.bincount(found.targets, minlength=probs.shape[1]) / MANY
    expected = 2.0 / 3.0 * probs[0] + 1.0 / 3.0 / probs.shape[1]
    assert_allclose(share, expected, atol=0.015)


def test_quantiles_have_targets_in_all_bins() -> None:
    pred = wc.Quantiles([0.05, 0.5, 0.95], np.array([[0.0, 1.0, 4.0]]))
    found = draw_locations(same(pred), MANY, rng=5)
    batch: Any = found.predictions
    share = np.bincount(batch.bins(found.targets), minlength=4) / MANY
    assert_allclose(share, 2.0 / 3.0 * pred.bin_probs() + 1.0 / 12.0, atol=0.015)
    assert set(np.unique(found.targets)) == {-0.5, 0.5, 2.5, 5.5}


def test_samples_of_numbers_and_of_objects() -> None:
    t = draw_locations(same(wc.Samples(np.array([[0.0, 2.0]]))), 100, rng=0).targets
    assert set(np.unique(t)) == {-0.5, 2.5}
    words = wc.Samples([["x", "y"], ["z", "u"]])
    found = draw_locations(words, 2, rng=0)
    for row, target in zip(found.predictions.values, found.targets, strict=True):  # pyright: ignore
        assert target in row


def test_drawn_targets_pass_the_check_of_targets() -> None:
    families: list[Any] = [
        wc.Gamma(np.full(50, 0.5), 1.0),
        wc.Beta(np.full(50, 0.5), 0.5),
        wc.Poisson(np.full(50, 0.7)),
        wc.Dirichlet(np.full((50, 3), 0.3)),
        wc.LogNormal(np.zeros(50), 2.0),
        wc.Quantiles([0.5], np.zeros((50, 1))),
        wc.as_predictions(stats.uniform(loc=np.arange(50.0), scale=1.0)),
    ]
    for pred in families:
        found = draw_locations(pred, 50, rng=1)
        np.testing.assert_array_equal(found.predictions.check_targets(found.targets), found.targets)


# -- given ------------------------------------------------------------------------------------------------


def test_given_locations_are_checked_and_kept() -> None:
    data = wc.Categorical(np.array([[0.2, 0.8], [0.5, 0.5]]), classes=["no", "yes"])
    found = as_locations((data, ["yes", "no"]), data, None)
    assert found.targets.tolist() == [1, 0]
    assert len(found) == 2
    assert as_locations(found, data, None) is found


def test_a_number_draws() -> None:
    data = wc.Normal(np.arange(5.0), 1.0)
    found = as_locations(np.int64(3), data, 7)
    np.testing.assert_array_equal(found.targets, draw_locations(data, 3, 7).targets)


DATA = wc.Normal(np.arange(5.0), 1.0)
BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "none": (None, TypeError, "locations must be a number of locations"),
    "flag": (True, TypeError, "locations must be a number of locations"),
    "zero": (0, ValueError, "at least one, found 0"),
    "only predictions": (DATA, TypeError, r"a tuple \(predictions, targets\)"),
    "three": ((DATA, [1.0], 2), TypeError, r"a tuple \(predictions, targets\)"),
    "wrong order": ((np.zeros(5), DATA), TypeError, "predictions as the second entry"),
    "lengths": ((DATA, np.zeros(4)), ValueError, "the targets of locations"),
    "not finite": ((DATA, [0.0, np.nan, 0.0, 0.0, 0.0]), ValueError, "the targets of locations"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_locations(name: str) -> None:
    given, error, message = BAD[name]
    with pytest.raises(error, match=message):
        as_locations(given, DATA, None)


def test_locations_of_another_family_are_refused() -> None:
    from wellcal import ucme

    at = wc.Laplace(np.zeros(2), 1.0), np.zeros(2)
    with pytest.raises(TypeError, match="pred and locations must be of one family, found Normal as pred"):
        ucme(np.zeros(5), DATA, locations=at)


def test_number_of_locations() -> None:
    assert len(Locations(DATA, np.zeros(5))) == 5


@pytest.mark.parametrize("away", [0.0, 1e3, 1e7])
def test_distances_by_products_are_those_coordinate_by_coordinate(away: float) -> None:
    """Squared lengths cancel where cases lie far from each other: these are not taken then."""
    rng = np.random.default_rng(4)
    loc = rng.normal(size=(12, 7)) + away
    loc[::2] *= -1.0
    pred, sets = wc.DiagonalNormal(loc, np.ones((12, 7))), rng.normal(loc, 1.0, (3, 12, 7))
    kernel = ExpDistance(Wasserstein()) @ Gaussian(2.0)
    prepared = location_kernel(kernel, pred, draw_locations(pred, 5, rng))
    one_by_one = np.stack([prepared.deviations(targets).sum(axis=0) for targets in sets])
    assert_allclose(prepared.sums(sets), one_by_one, rtol=1e-11, atol=1e-12)
