"""Distribution-free bounds: what bounds h, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.hypotests.methods.distribution_free import DistributionFree, bound_of_h
from wellcal.hypotests.setup import make_setup
from wellcal.kernels import (
    Callable,
    Delta,
    ExpDistance,
    Gaussian,
    Joint,
    Laplacian,
    Matern,
    MixtureWasserstein,
    RationalQuadratic,
    TotalVariation,
    Wasserstein,
    paper_kernel,
)
from wellcal.kernels.base import Radial

ON_CLASSES = ExpDistance(TotalVariation()) @ Delta()
SIGNED = ExpDistance(Wasserstein()) @ Callable(lambda x, y: np.outer(x, y), vectorized=True)
"""A kernel with values of both signs; on targets -1 and 1 the largest is 1."""


@pytest.mark.parametrize(
    ("kernel", "largest"),
    [
        (Gaussian(3.0), 1.0),
        (Laplacian(), 1.0),
        (Matern(1.5), 1.0),
        (RationalQuadratic(), 1.0),
        (Delta(), 1.0),
        (ExpDistance(Wasserstein(), 2.0), 1.0),
        (2.5 * Gaussian(), 2.5),
        (2.0 * Gaussian() + Laplacian(), 3.0),
        ((2.0 * Gaussian()) * (3.0 * Laplacian()), 6.0),
        (paper_kernel, 1.0),
        ((2.0 * ExpDistance(Wasserstein())) @ (Gaussian() + 0.5 * Laplacian()), 3.0),
        (paper_kernel + 4.0 * paper_kernel, 5.0),
        (Callable(lambda x, y: 1.0), None),
        (Gaussian() + Callable(lambda x, y: 1.0), None),
        (Joint(lambda p, y, q, z: np.ones((len(y), len(z)))), None),
        (2.0 * SIGNED, None),
    ],
    ids=repr,
)
def test_largest_value(kernel: Any, largest: float | None) -> None:
    assert kernel.supremum == (largest if largest is None else pytest.approx(largest))


def test_a_users_own_radial_kernel_is_not_trusted() -> None:
    class Doubled(Radial):
        def radial(self, ops: Any, squared: Any) -> Any:
            return 2.0 * ops.exp(-squared)

    assert Doubled().supremum is None


def test_two_is_the_largest_value_of_h() -> None:
    """Certain of class 0 where class 1 occurs, in two cases alike: the bound is attained."""
    setup = make_setup(np.array([1, 1]), wc.Bernoulli(np.zeros(2)), ON_CLASSES)
    h = setup.problem.h(setup.problem.rows, setup.problem.rows)
    np.testing.assert_allclose(h, bound_of_h(ON_CLASSES))


def test_kernels_of_both_signs_reach_four_times_their_largest_value() -> None:
    pred = wc.Samples(np.ones((2, 1)), kind="atoms")
    setup = make_setup(np.array([-1.0, -1.0]), pred, SIGNED)
    np.testing.assert_allclose(setup.problem.h(setup.problem.rows, setup.problem.rows), 4.0)
    for estimator in ("block", "biased"):
        with pytest.raises(ValueError, match=r"\|h\| <= 2, but .* is 4; give a larger bound"):
            DistributionFree(estimator, bound=2.0).run(setup)
        assert DistributionFree(estimator, bound=4.0).run(setup).pvalue < 1.0


def test_unknown_bounds_are_asked_for() -> None:
    pred = wc.Samples(np.ones((4, 2)), kind="atoms")
    with pytest.raises(ValueError, match=r"bound of \|h\| is not known for .*DistributionFree\(bound="):
        DistributionFree().run(make_setup(np.ones(4), pred, SIGNED))


@pytest.mark.parametrize("estimator", ["block", "biased"])
def test_p_is_one_without_evidence(estimator: str) -> None:
    y = np.tile([0, 1], 10)
    outcome = DistributionFree(estimator).run(make_setup(y, wc.Bernoulli(np.full(20, 0.5)), ON_CLASSES))
    assert outcome.statistic <= 0.0 if estimator == "block" else outcome.statistic < 1e-15
    assert outcome.pvalue == 1.0


def test_pairs_of_odd_blocks() -> None:
    setup = make_setup(np.ones(23, int), wc.Bernoulli(np.full(23, 0.1)), ON_CLASSES)
    found = DistributionFree(block_size=5).run(setup).provenance
    assert found["independent_pairs"] == 4 * 2
    assert found["block_size"] == 5


def test_scaling_a_kernel_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    mu = rng.normal(size=40)
    for estimator in ("block", "biased"):
        plain, scaled = (
            DistributionFree(estimator).run(make_setup(mu + 1.0, wc.Normal(mu, np.ones(40)), kernel)).pvalue
            for kernel in (paper_kernel, 7.0 * paper_kernel)
        )
        assert plain < 1.0
        assert scaled == pytest.approx(plain, rel=1e-9)


def mixture_case() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    components = [wc.Normal(rng.normal(size=8), np.ones(8)) for _ in range(2)]
    return rng.normal(size=8), wc.Mixture(components), ExpDistance(MixtureWasserstein()) @ Gaussian()


def test_biased_bound_needs_a_positive_definite_kernel() -> None:
    y, pred, kernel = mixture_case()
    assert kernel.guarantees(pred).positive_definite is False
    with pytest.raises(ValueError, match=r'positive definite kernel.*estimator="block"'):
        DistributionFree("biased").run(make_setup(y, pred, kernel))
    assert 0.0 < DistributionFree().run(make_setup(y, pred, kernel)).pvalue <= 1.0


def test_biased_bound_says_where_definiteness_is_not_proven() -> None:
    pred = wc.Samples(np.ones((4, 2)), kind="atoms")
    outcome = DistributionFree("biased", bound=4.0).run(make_setup(-np.ones(4), pred, SIGNED))
    assert "not proven" in outcome.provenance["note"]
    proven = DistributionFree("biased").run(
        make_setup(np.ones(4, int), wc.Bernoulli(np.full(4, 0.5)), ON_CLASSES)
    )
    assert "note" not in proven.provenance


def test_pooled_draws_stay_within_the_bound() -> None:
    """Draws far from their targets: h is near 2, and no factor of pooling is left in it."""
    rng = np.random.default_rng(0)
    draws = rng.normal(0.0, 0.01, (6, 3))
    kernel = ExpDistance(wc.kernels.MaximumMeanDiscrepancy(Gaussian()), 1e3, 2.0) @ Gaussian()
    setup = make_setup(np.full(6, 50.0), wc.Samples(draws), kernel, pool=True)
    for estimator in ("block", "biased"):
        outcome = DistributionFree(estimator).run(setup)
        assert outcome.statistic == pytest.approx(2.0, rel=1e-3)


def test_p_is_valid_where_errors_are_as_large_as_they_can_be() -> None:
    """Fair coins: n SKCE_B is far from normal for few cases, and the bound holds all the same."""
    levels = np.array([0.05, 0.2, 0.5])
    rng = np.random.default_rng(1)
    pvalues = {"block": [], "biased": []}
    for _ in range(150):
        setup = make_setup(rng.integers(0, 2, 6), wc.Bernoulli(np.full(6, 0.5)), ON_CLASSES)
        for estimator, found in pvalues.items():
            found.append(DistributionFree(estimator).run(setup).pvalue)
    for found in pvalues.values():
        assert np.all(np.mean(np.array(found)[:, None] <= levels, axis=0) <= levels)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"estimator": "unbiased"}, ValueError, "unknown estimator 'unbiased'; known are block, biased"),
        ({"bound": -1.0}, ValueError, "bound must be positive"),
        ({"bound": "large"}, TypeError, "bound must be a number"),
    ],
)
def test_wrong_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        DistributionFree(**options)
