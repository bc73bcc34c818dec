"""Mixtures: the law of total variance, densities that sum, quantiles by bisection, and what may be mixed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import integrate, optimize

import wellcal.predictions as wp

RNG = np.random.default_rng(5)
N = 8
LOC, OTHER = RNG.normal(size=N), RNG.normal(2.0, 1.0, N)
SCALE, SHAPE = np.exp(RNG.normal(size=N)), 1.0 + np.exp(RNG.normal(size=N))
WEIGHTS = RNG.dirichlet(np.ones(3), N)
PARTS = [wp.Normal(LOC, SCALE), wp.Laplace(OTHER, 0.5), wp.Gamma(SHAPE, SCALE)]
PRED = wp.Mixture(PARTS, WEIGHTS)


def weighted(method: str, *arguments: Any) -> np.ndarray:
    return sum(WEIGHTS[:, k] * getattr(part, method)(*arguments) for k, part in enumerate(PARTS))


def test_distribution_is_the_weighted_sum() -> None:
    y = RNG.normal(size=(4, N))
    density = sum(WEIGHTS[:, k] * np.exp(part.log_prob(y)) for k, part in enumerate(PARTS))
    assert_allclose(PRED.log_prob(y), np.log(density), rtol=1e-13, atol=1e-14)
    assert_allclose(PRED.cdf(y), weighted("cdf", y), rtol=1e-14)
    assert_allclose(PRED.mean(), weighted("mean"), rtol=1e-14)


def test_moments_by_integration() -> None:
    one = PRED[0]
    mean = one.mean()[0]
    # The density has kinks at 0 and OTHER, and beyond 60 scales nothing is left of it.
    width = 60.0 * (SCALE[0] * SHAPE[0] + 1.0)
    ends = sorted(
        [
            mean - width,
            *one.quantile(np.linspace(0.001, 0.999, 9)[:, None])[:, 0],
            OTHER[0],
            0.0,
            mean + width,
        ]
    )

    def moment(power: int) -> float:
        def integrand(x: float) -> float:
            return (x - mean) ** power * float(np.exp(one.log_prob(x)[0]))

        return sum(integrate.quad(integrand, a, b, epsabs=1e-13)[0] for a, b in pairwise(ends))

    assert_allclose(moment(0), 1.0, rtol=1e-9)
    assert_allclose(moment(1), 0.0, atol=1e-8)
    assert_allclose(moment(2), one.variance()[0], rtol=1e-9)


def test_quantile_inverts_the_distribution_function_to_rounding() -> None:
    for u in (1e-9, 0.01, 0.25, 0.5, 0.9, 0.999):
        q = PRED.quantile(u)
        assert np.all(PRED.cdf(q) >= u)
        assert np.all(PRED.cdf(np.nextafter(q, -np.inf)) <= u)
        for i in range(N):
            low, high = q[i] - 5.0, q[i] + 5.0
            error = lambda x, i=i, u=u: PRED[i].cdf(x)[0] - u  # noqa: E731
            reference = optimize.brentq(error, low, high, xtol=1e-14, rtol=1e-14)
            assert_allclose(q[i], reference, rtol=1e-9, atol=1e-9)
    levels = RNG.uniform(size=(3, N))
    assert_allclose(PRED.quantile(levels)[1], PRED.quantile(levels[1:2])[0], rtol=0)
    with pytest.raises(ValueError, match="u must be numbers between 0 and 1"):
        PRED.quantile(1.5)
    assert_allclose(PRED.quantile(0.0), -np.inf)
    assert_allclose(PRED.quantile(1.0), np.inf)


def test_quantile_of_one_component_is_its_own() -> None:
    for weights in ([1.0], None):
        assert_allclose(wp.Mixture(PARTS[:1], weights).quantile(0.3), PARTS[0].quantile(0.3), rtol=1e-15)
    unused = wp.Mixture(PARTS, [0.0, 1.0, 0.0])
    assert_allclose(unused.quantile(0.3), PARTS[1].quantile(0.3), rtol=1e-15)


def test_quantile_of_atoms_is_an_atom() -> None:
    pred = wp.Mixture([wp.Poisson(SHAPE), wp.Poisson(3.0 * SHAPE), wp.NegativeBinomial(SHAPE, 2.0)])
    for u in (0.0, 0.2, 0.5, 0.9, 0.999):
        q = pred.quantile(u)
        assert np.array_equal(q, np.floor(q))
        assert np.all(pred.cdf(q) >= u)
        assert np.all((q == 0) | (pred.cdf(q - 1.0) < u))
    atoms = wp.Mixture([wp.Samples(RNG.normal(size=(N, 5))), wp.Samples(RNG.normal(size=(N, 3)))])
    values = np.concatenate([part.values for part in atoms.components], axis=1)
    assert np.all(np.isin(atoms.quantile(0.4), values))


def test_nested_mixtures_are_flattened() -> None:
    inner = wp.Mixture(PARTS[:2], WEIGHTS[:, :2] / WEIGHTS[:, :2].sum(1, keepdims=True))
    outer = wp.Mixture([inner, PARTS[2]], np.stack([1.0 - WEIGHTS[:, 2], WEIGHTS[:, 2]], axis=1))
    assert [type(part) for part in outer.components] == [type(part) for part in PARTS]
    assert_allclose(outer.weights, WEIGHTS, rtol=1e-14)
    assert_allclose(outer.log_prob(LOC), PRED.log_prob(LOC), rtol=1e-13)
    deep = wp.Mixture([outer, PARTS[0]], [1.0, 0.0])
    assert len(deep.components) == 4


def test_weights_in_all_forms() -> None:
    assert_allclose(wp.Mixture(PARTS).weights, np.full((N, 3), 1 / 3))
    assert_allclose(wp.Mixture(PARTS, [0.2, 0.3, 0.5]).weights, np.tile([0.2, 0.3, 0.5], (N, 1)))
    assert wp.Mixture(tuple(PARTS)).components == tuple(PARTS)
    tensor = wp.Mixture([wp.Normal(torch.zeros(2, dtype=torch.float64), 1.0)] * 2, [0.1, 0.9])
    assert tensor.weights[0].tolist() == [0.1, 0.9]


def test_indexing_reaches_the_components() -> None:
    part = PRED[[3, 1]]
    assert len(part) == 2
    assert [len(component) for component in part.components] == [2, 2, 2]
    assert_allclose(part.components[0].loc, LOC[[3, 1]])


def test_log_prob_does_not_under_or_overflow() -> None:
    far = wp.Mixture([wp.Normal([0.0], 1.0), wp.Normal([1000.0], 1.0)])
    assert_allclose(
        far.log_prob([-100.0]), wp.Normal([0.0], 1.0).log_prob([-100.0]) - np.log(2.0), rtol=1e-14
    )
    # A component without weight may be as likely as it likes.
    ignored = wp.Mixture([wp.Normal([0.0], 1.0), wp.Normal([1000.0], 1e-9)], [1.0, 0.0])
    assert_allclose(ignored.log_prob([1000.0]), wp.Normal([0.0], 1.0).log_prob([1000.0]), rtol=1e-14)
    impossible = wp.Mixture([wp.Gamma([1.0], 1.0), wp.Beta([1.0], 1.0)])
    assert impossible.log_prob([-1.0]) == -np.inf
    point = wp.Mixture([wp.Normal([0.0], 0.0), wp.Normal([0.0], 1.0)])
    assert point.log_prob([0.0]) == np.inf
    assert_allclose(point.log_prob([1.0]), wp.Normal([0.0], 1.0).log_prob([1.0]) - np.log(2.0))


def test_gradient_of_a_zero_weight_is_finite() -> None:
    weights = torch.tensor([[1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    loc = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    wp.Mixture([wp.Normal(loc, 1.0), wp.Normal(loc + 1.0, 2.0)], weights).log_prob([0.5]).sum().backward()
    density = np.exp([part.log_prob([0.5])[0] for part in (wp.Normal([0.0], 1.0), wp.Normal([1.0], 2.0))])
    assert_allclose(weights.grad.numpy()[0], density / density[0], rtol=1e-12)
    assert_allclose(loc.grad.numpy(), 0.5, rtol=1e-12)


def test_mixtures_of_classes_are_classes() -> None:
    p, q = RNG.dirichlet(np.ones(3), N), RNG.dirichlet(np.ones(3), N)
    pred = wp.Mixture([wp.Categorical(p, ["a", "b", "c"]), wp.Categorical(q, ["a", "b", "c"])], [0.3, 0.7])
    assert pred.shares_labels
    assert_allclose(pred.class_probs(), 0.3 * p + 0.7 * q, rtol=1e-14)
    assert pred.labels().tolist() == ["a", "b", "c"]
    assert pred.support_values() is None
    y = ["a", "b", "c", "a", "b", "c", "a", "b"]
    index = pred.check_targets(y)
    assert index.tolist() == [0, 1, 2, 0, 1, 2, 0, 1]
    assert_allclose(np.exp(pred.log_prob(y)), pred.class_probs()[np.arange(N), index], rtol=1e-13)
    pred.check_targets(pred.sample(0))
    with pytest.raises(TypeError, match=r"give the numbers .* as support="):
        pred.mean()


def test_bernoulli_mixes_with_its_two_class_categorical() -> None:
    p = RNG.uniform(size=N)
    pred = wp.Mixture([wp.Bernoulli(p), wp.Categorical(np.stack([p, 1.0 - p], axis=1))])
    assert pred.shares_labels
    assert_allclose(pred.class_probs(), 0.5)
    assert pred.check_targets([True] * N).tolist() == [1] * N
    assert pred.support_values().tolist() == [0.0, 1.0]


def test_numeric_supports_mix_with_numbers() -> None:
    half = np.full((N, 2), 0.5)
    pred = wp.Mixture([wp.Categorical(half, support=[0.0, 1.0]), wp.Categorical(half, support=[1.0, 3.0])])
    assert not pred.shares_labels
    assert_allclose(pred.mean(), 1.25)
    assert_allclose(pred.check_targets(LOC), LOC)
    assert_allclose(np.exp(pred.log_prob(1.0)), 0.5)
    assert_allclose(np.exp(pred.log_prob(np.full(N, 3.0))), 0.25)
    with pytest.raises(TypeError, match="no classes"):
        pred.class_probs()
    mixed = wp.Mixture([wp.Categorical(half, support=[0.0, 1.0]), wp.Normal(LOC, SCALE)])
    assert_allclose(mixed.cdf(0.5), 0.25 + 0.5 * PARTS[0].cdf(0.5))
    with pytest.raises(TypeError, match="some of its components are discrete and some are not"):
        mixed.log_prob(LOC)


def test_targets_are_checked_as_the_components_do() -> None:
    counts = wp.Mixture([wp.Poisson(SHAPE), wp.NegativeBinomial(SHAPE, 1.0)])
    with pytest.raises(ValueError, match="whole number in row 1"):
        counts.check_targets([0, 0.5, *range(6)])
    positive = wp.Mixture([wp.Gamma(SHAPE, 1.0), wp.LogNormal(LOC, 1.0)])
    with pytest.raises(ValueError, match="negative in row 0"):
        positive.check_targets(-np.ones(N))
    assert_allclose(PRED.check_targets(-np.ones(N)), -1.0)
    # An inner mixture of different families takes real numbers, and so does what contains it.
    assert_allclose(wp.Mixture([PRED, PARTS[2]]).check_targets(-np.ones(N)), -1.0)


def test_what_components_lack_the_mixture_lacks() -> None:
    with pytest.raises(TypeError, match="no log_prob: Samples has no log_prob"):
        wp.Mixture([wp.Samples(np.ones((N, 2)))]).log_prob(LOC)
    with pytest.raises(TypeError, match="no quantile: DiagonalNormal has no cdf"):
        wp.Mixture([wp.DiagonalNormal(np.ones((N, 2)), 1.0)]).quantile(0.5)


def test_vectors() -> None:
    a, b = wp.DiagonalNormal(np.zeros((N, 2)), 1.0), wp.DiagonalNormal(np.ones((N, 2)), 2.0)
    pred = wp.Mixture([a, b], [0.25, 0.75])
    assert pred.event_shape == (2,)
    assert_allclose(pred.mean(), 0.75)
    assert_allclose(pred.variance(), 0.25 * 1 + 0.75 * 4 + 0.25 * 0.75)
    assert_allclose(pred.interquartile_range(), 1.3489795003921634 * np.sqrt(pred.variance()))
    assert pred.sample(0, 5).shape == (5, N, 2)
