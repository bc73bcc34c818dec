"""Laws of pairings, kernels and families: linearity, limits, families that are special cases of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy import stats

import wellcal as wc
from wellcal.kernels import (
    Callable,
    Delta,
    ExpDistance,
    Gaussian,
    Kernel,
    Laplacian,
    Matern,
    MaximumMeanDiscrepancy,
    RationalQuadratic,
    RootCovariance,
    TotalVariation,
    Wasserstein,
)
from wellcal.problem.problem import prepare

law = settings(max_examples=25, derandomize=True, deadline=None)
few = settings(law, max_examples=10)
"""Where an example takes several estimates of mixtures or of lowered families."""

places = st.floats(-5.0, 5.0)
scales = st.floats(0.01, 10.0)
sizes = st.integers(2, 6)


def vector(n: int, elements: Any = places) -> Any:
    return arrays(np.float64, n, elements=elements)


def probabilities(n: int, classes: int) -> Any:
    def normalised(weights: np.ndarray) -> np.ndarray:
        return weights / weights.sum(axis=1, keepdims=True)

    return arrays(np.float64, (n, classes), elements=st.floats(0.01, 1.0)).map(normalised)


def normals(n: int) -> Any:
    return st.builds(wc.Normal, vector(n), vector(n, scales))


def laplaces(n: int) -> Any:
    return st.builds(wc.Laplace, vector(n), vector(n, scales))


def atoms(n: int) -> Any:
    return st.builds(
        lambda values, weights: wc.Samples(values, weights, kind="atoms"),
        arrays(np.float64, (n, 3), elements=places),
        probabilities(n, 3),
    )


def supports(n: int) -> Any:
    return probabilities(n, 3).map(lambda p: wc.Categorical(p, support=[-2.0, 0.5, 3.0]))


def mixtures(n: int) -> Any:
    return st.builds(lambda a, b, w: wc.Mixture([a, b], w), normals(n), laplaces(n), probabilities(n, 2))


families = st.sampled_from([normals, laplaces, atoms, supports, mixtures])
closed_kernels = st.sampled_from(
    [Gaussian(1.0), Gaussian(0.2), Laplacian(1.0), Laplacian(5.0), Gaussian() + Laplacian()]
)


@st.composite
def batches(draw: Any, count: int = 1) -> Any:
    """Batches of one length, each of a family of its own, all of scalar targets."""
    n = draw(sizes)
    drawn = [draw(draw(families)(n)) for _ in range(count)]
    return drawn[0] if count == 1 else drawn


def mmd(kernel: Kernel, power: float = 2.0) -> Kernel:
    """A kernel on pairs that sees nothing of a prediction but its distribution."""
    return ExpDistance(MaximumMeanDiscrepancy(kernel), power=power) @ kernel


def same_everywhere(y: Any, kernel: Kernel, *predictions: wc.Predictions, atol: float = 1e-12) -> None:
    """All batches have the same estimates; the biased one has the pairs of the unbiased, and the diagonal."""
    for estimator in ("biased", "block"):
        values = [float(wc.skce(y, pred, kernel=kernel, estimator=estimator)) for pred in predictions]
        assert_allclose(values[1:], values[0], rtol=0, atol=atol, err_msg=estimator)


# -- bilinear forms -----------------------------------------------------------------------------------------


@law
@given(batches(2), closed_kernels)
def test_pairings_are_symmetric(pair: Any, kernel: Kernel) -> None:
    P, Q = pair
    assert_allclose(wc.pairing(kernel, P, Q), wc.pairing(kernel, Q, P).T, rtol=1e-12, atol=1e-15)


@law
@given(batches(2), closed_kernels)
def test_pairings_obey_cauchy_and_schwarz(pair: Any, kernel: Kernel) -> None:
    P, Q = pair
    cross = wc.pairing(kernel, P, Q)
    own_p, own_q = np.diag(wc.pairing(kernel, P, P)), np.diag(wc.pairing(kernel, Q, Q))
    assert np.all(cross**2 <= own_p[:, None] * own_q[None, :] * (1 + 1e-12))
    assert np.all(cross >= 0)


@law
@given(batches(), closed_kernels)
def test_pairings_are_positive_semidefinite(P: Any, kernel: Kernel) -> None:
    values = wc.pairing(kernel, P, P)
    assert np.linalg.eigvalsh(values)[0] >= -1e-12 * len(values) * values.max()
    assert np.all(np.diag(values) <= sum(np.diag(kernel(np.zeros(1), np.zeros(1)))) * (1 + 1e-14))


@law
@given(batches(3), st.floats(0.0, 1.0), closed_kernels)
def test_pairings_are_linear_in_mixtures(triple: Any, weight: float, kernel: Kernel) -> None:
    P, Q, R = triple
    mixed = wc.Mixture([P, Q], [weight, 1.0 - weight])
    expected = weight * wc.pairing(kernel, P, R) + (1.0 - weight) * wc.pairing(kernel, Q, R)
    assert_allclose(wc.pairing(kernel, mixed, R), expected, rtol=1e-10, atol=1e-13)


@law
@given(batches(), vector(4), closed_kernels)
def test_targets_are_point_masses(P: Any, y: np.ndarray, kernel: Kernel) -> None:
    if isinstance(P, wc.Categorical):
        y = np.array([-2.0, 0.5, 3.0, 0.5])
    masses = wc.Samples(y[:, None], kind="atoms")
    assert_allclose(wc.pairing(kernel, P, y), wc.pairing(kernel, P, masses), rtol=1e-12, atol=1e-15)
    assert_allclose(wc.pairing(kernel, masses, masses), kernel(y, y), rtol=1e-13, atol=1e-300)


@law
@given(batches(2), closed_kernels, st.floats(0.01, 100.0))
def test_pairings_are_linear_in_the_kernel(pair: Any, kernel: Kernel, factor: float) -> None:
    P, Q = pair
    one, two = wc.pairing(kernel, P, Q), wc.pairing(Gaussian(3.0), P, Q)
    assert_allclose(wc.pairing(factor * kernel, P, Q), factor * one, rtol=1e-12)
    assert_allclose(wc.pairing(kernel + factor * Gaussian(3.0), P, Q), one + factor * two, rtol=1e-11)


@law
@given(arrays(np.float64, (12, 2), elements=places), st.floats(0.05, 20.0))
def test_kernels_are_positive_semidefinite(points: np.ndarray, lengthscale: float) -> None:
    for kernel in (
        Gaussian(lengthscale),
        Laplacian(lengthscale),
        Matern(0.5, lengthscale),
        Matern(2.5, lengthscale),
        Matern(0.8, lengthscale),
        RationalQuadratic(0.5, lengthscale),
        Delta(),
        Gaussian(lengthscale) * Laplacian() + 0.1 * Delta(),
    ):
        gram = kernel(points, points)
        assert_allclose(gram, gram.T, rtol=1e-13)
        assert np.linalg.eigvalsh(gram)[0] >= -1e-12 * len(points) * gram.max()


@law
@given(arrays(np.float64, 8, elements=places), st.floats(0.05, 20.0))
def test_kernels_that_are_each_others_special_case(x: np.ndarray, lengthscale: float) -> None:
    assert_allclose(Matern(0.5, lengthscale)(x, x), Laplacian(lengthscale)(x, x), rtol=1e-13)
    half = Gaussian(lengthscale) * Gaussian(lengthscale)
    assert_allclose(half(x, x), Gaussian(lengthscale)(x, x) ** 2, rtol=1e-12)
    own = Callable(
        lambda a, b: np.exp(-0.5 * (a[:, None] - b[None, :]) ** 2 / lengthscale**2), vectorized=True
    )
    assert_allclose(own(x, x), Gaussian(lengthscale)(x, x), rtol=1e-12)


# -- classes ------------------------------------------------------------------------------------------------


@law
@given(sizes, st.data())
def test_a_bernoulli_and_its_two_classes_agree(n: int, chosen: Any) -> None:
    p = chosen.draw(vector(n, st.integers(0, 256).map(lambda k: k / 256)))  # 1 - p is exact
    y = chosen.draw(arrays(np.int64, n, elements=st.integers(0, 1)))
    one, two = wc.Bernoulli(p), wc.Categorical(np.stack([1.0 - p, p], axis=1))
    for kernel in (None, ExpDistance(TotalVariation(), 0.3) @ Gaussian()):
        same_everywhere(y, kernel, one, two, atol=1e-14)  # type: ignore[arg-type]
    kernels = [wc.skce(y, pred).kernel for pred in (one, two)]
    assert repr(kernels[0]) == repr(kernels[1])


@law
@given(sizes, st.permutations(range(4)), st.data())
def test_the_order_of_classes_does_not_matter(n: int, order: list[int], chosen: Any) -> None:
    probs = chosen.draw(probabilities(n, 4))
    y = chosen.draw(arrays(np.int64, n, elements=st.integers(0, 3)))
    place = np.argsort(order)
    plain = float(wc.skce(y, probs))
    assert_allclose(float(wc.skce(place[y], probs[:, order])), plain, rtol=0, atol=1e-14)
    support = np.array([0.0, 1.0, 4.0, 9.0])
    values = [
        float(wc.skce(support[y], wc.Categorical(p, support=s)))
        for p, s in ((probs, support), (probs[:, order], support[order]))
    ]
    assert_allclose(values[1], values[0], rtol=0, atol=1e-13)


@law
@given(sizes, st.data())
def test_names_of_classes_do_not_matter(n: int, chosen: Any) -> None:
    probs = chosen.draw(probabilities(n, 3))
    y = chosen.draw(arrays(np.int64, n, elements=st.integers(0, 2)))
    plain = float(wc.skce(y, probs))
    for names in (["cat", "ant", "bee"], [7, -1, 3], [True, "yes", 2.5]):
        labels = np.array(names, dtype=object if len({type(k) for k in names}) > 1 else None)
        given_names = float(wc.skce(labels[y], wc.Categorical(probs, classes=labels)))
        assert_allclose(given_names, plain, rtol=0, atol=1e-15)


@law
@given(sizes, st.data())
def test_a_class_that_cannot_occur_changes_nothing(n: int, chosen: Any) -> None:
    probs = chosen.draw(probabilities(n, 3))
    y = chosen.draw(arrays(np.int64, n, elements=st.integers(0, 2)))
    more = np.concatenate([probs, np.zeros((n, 2))], axis=1)
    assert_allclose(float(wc.skce(y, more)), float(wc.skce(y, probs)), rtol=0, atol=1e-14)


@law
@given(sizes, st.data())
def test_numeric_classes_are_weighted_atoms(n: int, chosen: Any) -> None:
    probs = chosen.draw(probabilities(n, 3))
    support = np.array([-1.0, 0.0, 2.5])
    y = support[chosen.draw(arrays(np.int64, n, elements=st.integers(0, 2)))]
    by_class = wc.Categorical(probs, support=support)
    by_atom = wc.Samples(np.tile(support, (n, 1)), probs, kind="atoms")
    for kernel in (Gaussian(), Laplacian(2.0), Gaussian() * Laplacian()):
        same_everywhere(y, mmd(kernel), by_class, by_atom)


@few
@given(st.integers(2, 4), st.data())
def test_a_poisson_distribution_is_a_categorical_one_over_counts(n: int, chosen: Any) -> None:
    rate = chosen.draw(vector(n, st.floats(0.0, 4.0)))
    y = chosen.draw(arrays(np.float64, n, elements=st.integers(0, 10).map(float)))
    counts = np.arange(60.0)
    probs = stats.poisson.pmf(counts, rate[:, None])
    finite = wc.Categorical(probs / probs.sum(axis=1, keepdims=True), support=counts)
    for kernel in (Gaussian(2.0), Laplacian(), Delta()):
        same_everywhere(y, mmd(kernel), wc.Poisson(rate), finite)


# -- mixtures -----------------------------------------------------------------------------------------------


@few
@given(batches(), st.data())
def test_a_mixture_of_one_component_is_that_component(P: Any, chosen: Any) -> None:
    y = P.sample(chosen.draw(st.integers(0, 1000)))
    for kernel in (Gaussian(), Laplacian()):
        same_everywhere(y, mmd(kernel), P, wc.Mixture([P]))


@few
@given(batches(2), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(0, 1000))
def test_splitting_a_component_changes_nothing(pair: Any, weight: float, share: float, seed: int) -> None:
    P, Q = pair
    whole = wc.Mixture([P, Q], [weight, 1.0 - weight])
    split = wc.Mixture([P, Q, P], [weight * share, 1.0 - weight, weight * (1.0 - share)])
    y = whole.sample(seed)
    for kernel in (Gaussian(), Laplacian()):
        same_everywhere(y, mmd(kernel), whole, split)


@few
@given(batches(2), st.integers(0, 1000))
def test_components_of_weight_zero_and_their_order_change_nothing(pair: Any, seed: int) -> None:
    P, Q = pair
    y = wc.Mixture([P, Q]).sample(seed)
    same_everywhere(y, mmd(Gaussian()), wc.Mixture([P, Q], [0.4, 0.6]), wc.Mixture([Q, P], [0.6, 0.4]))
    padded = wc.Mixture([P, Q, wc.Normal(np.full(len(P), 100.0), 1.0)], [0.4, 0.6, 0.0])
    same_everywhere(y, mmd(Gaussian()), wc.Mixture([P, Q], [0.4, 0.6]), padded)


@law
@given(sizes, st.data())
def test_a_mixture_of_class_probabilities_is_their_average(n: int, chosen: Any) -> None:
    first, second = (chosen.draw(probabilities(n, 3)) for _ in range(2))
    y = chosen.draw(arrays(np.int64, n, elements=st.integers(0, 2)))
    ensemble = wc.Mixture([wc.Categorical(first), wc.Categorical(second)], [0.25, 0.75])
    average = wc.Categorical(0.25 * first + 0.75 * second)
    for kernel in (mmd(Delta()), ExpDistance(TotalVariation()) @ Delta()):
        same_everywhere(y, kernel, ensemble, average)


# -- samples ------------------------------------------------------------------------------------------------


@law
@given(sizes, st.data())
def test_a_point_prediction_that_comes_true_has_no_error(n: int, chosen: Any) -> None:
    y = chosen.draw(vector(n))
    other = chosen.draw(vector(n))
    points = wc.Samples(y[:, None], kind="atoms")
    for kernel in (Gaussian(), Laplacian(), Matern(1.5), Delta()):
        problem = prepare(y, points, mmd(kernel))
        assert np.all(problem.h(problem.rows, problem.rows) == 0.0)
    same_everywhere(other, mmd(Gaussian()), points, wc.Normal(y, np.zeros(n)), atol=1e-14)


@few
@given(sizes, st.data())
def test_weightless_repeated_and_reordered_atoms_change_nothing(n: int, chosen: Any) -> None:
    values, weights = (
        chosen.draw(arrays(np.float64, (n, 3), elements=places)),
        chosen.draw(probabilities(n, 3)),
    )
    y = chosen.draw(vector(n))
    plain = wc.Samples(values, weights, kind="atoms")
    padding = np.full((n, 2), 77.0)
    padded = wc.Samples(
        np.concatenate([values, padding], axis=1),
        np.concatenate([weights, 0.0 * padding], axis=1),
        kind="atoms",
    )
    turned = wc.Samples(values[:, ::-1], weights[:, ::-1], kind="atoms")
    halves = wc.Samples(np.tile(values, 2), np.tile(0.5 * weights, 2), kind="atoms")
    for kernel in (Gaussian(), Laplacian(), Delta()):
        same_everywhere(y, mmd(kernel), plain, padded, turned, halves)


@law
@given(sizes, st.data())
def test_uniform_weights_are_no_weights(n: int, chosen: Any) -> None:
    values = chosen.draw(arrays(np.float64, (n, 3), elements=places))
    y = chosen.draw(vector(n))
    uniform = wc.Samples(values, np.full((n, 3), 1 / 3), kind="atoms")
    same_everywhere(y, mmd(Laplacian()), wc.Samples(values, kind="atoms"), uniform)


# -- densities ----------------------------------------------------------------------------------------------


@law
@given(sizes, st.data())
def test_a_normal_of_vanishing_scale_tends_to_a_point(n: int, chosen: Any) -> None:
    loc, y = chosen.draw(vector(n)), chosen.draw(vector(n))
    points = wc.Samples(loc[:, None], kind="atoms")
    limit = float(wc.skce(y, points, kernel=mmd(Gaussian())))
    assert_allclose(float(wc.skce(y, wc.Normal(loc, np.zeros(n)), kernel=mmd(Gaussian()))), limit, atol=1e-14)
    for scale in (1e-2, 1e-4, 1e-6):
        near = float(wc.skce(y, wc.Normal(loc, np.full(n, scale)), kernel=mmd(Gaussian())))
        # Pairings change by O(scale^2), and k_P by as much: |h| moves by at most a few scale^2.
        assert abs(near - limit) <= 20 * scale**2 + 1e-14


@few
@given(sizes, st.data())
def test_one_coordinate_is_a_scalar(n: int, chosen: Any) -> None:
    loc, scale, y = (chosen.draw(vector(n, e)) for e in (places, scales, places))
    scalar, diagonal = wc.Normal(loc, scale), wc.DiagonalNormal(loc[:, None], scale[:, None])
    full = wc.MultivariateNormal(loc[:, None], (scale**2)[:, None, None])
    for kernel in (ExpDistance(RootCovariance()) @ Gaussian(0.7), mmd(Gaussian(2.0))):
        for estimator in ("unbiased", "biased"):
            expected = float(wc.skce(y, scalar, kernel=kernel, estimator=estimator))
            for pred in (diagonal, full):
                found = float(wc.skce(y[:, None], pred, kernel=kernel, estimator=estimator))
                assert_allclose(found, expected, rtol=0, atol=1e-11)
    assert_allclose(float(wc.skce(y[:, None], diagonal)), float(wc.skce(y, scalar)), rtol=0, atol=1e-13)


@few
@given(sizes, st.integers(2, 3), st.data())
def test_independent_coordinates_are_a_diagonal_covariance(n: int, d: int, chosen: Any) -> None:
    loc, y = (chosen.draw(arrays(np.float64, (n, d), elements=places)) for _ in range(2))
    scale = chosen.draw(arrays(np.float64, (n, d), elements=scales))
    diagonal = wc.DiagonalNormal(loc, scale)
    full = wc.MultivariateNormal(loc, scale[:, :, None] ** 2 * np.eye(d))
    for kernel in (
        ExpDistance(RootCovariance()) @ Gaussian(0.7),
        ExpDistance(Wasserstein(), 2.0, 2.0) @ Gaussian(),
    ):
        same_everywhere(y, kernel, diagonal, full, atol=1e-11)


@law
@given(sizes, st.data())
def test_a_rotation_of_all_coordinates_changes_nothing(n: int, chosen: Any) -> None:
    loc, y = (chosen.draw(arrays(np.float64, (n, 2), elements=places)) for _ in range(2))
    factor = chosen.draw(arrays(np.float64, (n, 2, 2), elements=st.floats(-1.0, 1.0)))
    cov = factor @ factor.transpose(0, 2, 1) + 0.1 * np.eye(2)
    angle = chosen.draw(st.floats(0.0, 6.3))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    kernel = ExpDistance(RootCovariance()) @ Gaussian()
    plain = wc.skce(y, wc.MultivariateNormal(loc, cov), kernel=kernel)
    turned = wc.skce(y @ turn.T, wc.MultivariateNormal(loc @ turn.T, turn @ cov @ turn.T), kernel=kernel)
    assert_allclose(float(turned), float(plain), rtol=0, atol=1e-11)


@few
@given(sizes, st.floats(-100.0, 100.0), st.data())
def test_a_common_shift_and_a_reflection_change_nothing(n: int, shift: float, chosen: Any) -> None:
    loc, scale, y = (chosen.draw(vector(n, e)) for e in (places, st.floats(0.1, 10.0), places))
    for family in (wc.Normal, wc.Laplace):
        for kernel in (
            ExpDistance(Wasserstein()) @ Gaussian(),
            ExpDistance(Wasserstein()) @ Laplacian(),
            mmd(Laplacian()),
        ):
            plain = float(wc.skce(y, family(loc, scale), kernel=kernel))
            moved = float(wc.skce(y + shift, family(loc + shift, scale), kernel=kernel))
            turned = float(wc.skce(-y, family(-loc, scale), kernel=kernel))
            assert_allclose(moved, plain, rtol=0, atol=1e-10)
            assert_allclose(turned, plain, rtol=0, atol=1e-14)


@settings(law, max_examples=2)
@given(sizes, st.data())
def test_power_exponentials_of_shape_one_and_two_are_laplace_and_normal(n: int, chosen: Any) -> None:
    loc, scale, y = (chosen.draw(vector(n, e)) for e in (places, st.floats(0.5, 3.0), places))
    kernel = ExpDistance(Wasserstein(1)) @ Gaussian()
    for shape, other in ((1.0, wc.Laplace(loc, scale)), (2.0, wc.Normal(loc, scale / np.sqrt(2.0)))):
        expected = float(wc.skce(y, other, kernel=kernel))
        found = float(wc.skce(y, wc.PowerExponential(loc, scale, shape), kernel=kernel))
        # Four pairings, each of which is lowered to an error of at most 1e-6.
        assert_allclose(found, expected, rtol=0, atol=4e-6)


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_mmd_of_equal_predictions_is_zero(power: float) -> None:
    P = wc.Mixture([wc.Normal(np.zeros(3), np.ones(3)), wc.Normal(np.ones(3), np.ones(3))])
    y = np.array([0.0, 1.0, -2.0])
    ones = Callable(lambda A, B: np.ones((len(A), len(B)))) @ Gaussian()
    same_everywhere(y, mmd(Gaussian(), power), P)
    assert_allclose(
        float(wc.skce(y, P, kernel=mmd(Gaussian(), power))),
        float(wc.skce(y, P, kernel=ones)),
        rtol=0,
        atol=1e-14,
    )
