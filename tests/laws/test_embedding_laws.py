"""Laws of the calibration mean embedding: units, order, bounds, linearity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import wellcal as wc
from wellcal import ucme
from wellcal.hypotests.methods.mean_embedding import MeanEmbedding
from wellcal.hypotests.setup import make_setup
from wellcal.kernels import ExpDistance, Gaussian, Laplacian, TotalVariation, Wasserstein
from wellcal.problem.at_locations import deviations
from wellcal.problem.locations import draw_locations

from .test_equivariance import FAST, SLOW, Make, targets

A, B = 1000.0, 5.0
law = settings(max_examples=20, derandomize=True, deadline=None)


def both(make: Make, seed: int) -> tuple[Any, Any]:
    """Predictions in two units."""
    return make(np.random.default_rng(seed), 1.0, 0.0), make(np.random.default_rng(seed), A, B)


def is_class(pred: Any) -> bool:
    return isinstance(pred, wc.Categorical)


@pytest.mark.parametrize("make", FAST + SLOW, ids=lambda f: f.__name__)
def test_drawn_locations_follow_the_unit(make: Make) -> None:
    plain, moved = both(make, 0)
    before, after = (draw_locations(p, 12, rng=3) for p in (plain, moved))
    expected = before.targets if is_class(plain) else A * before.targets + B
    spread = float(np.ptp(np.asarray(expected, dtype=float)))
    assert_allclose(after.targets, expected, rtol=1e-9, atol=1e-9 * spread)
    assert_allclose(
        np.asarray(after.predictions.sample(1), dtype=float),
        A * np.asarray(before.predictions.sample(1), dtype=float) + B,
        rtol=1e-9,
        atol=1e-9 * spread + 1e-9,
    )


@pytest.mark.parametrize("make", FAST, ids=lambda f: f.__name__)
def test_values_and_p_values_do_not_depend_on_the_unit(make: Make) -> None:
    plain, moved = both(make, 0)
    y, z = targets(make, 0, 1.0, 0.0), targets(make, 0, A, B)
    before, after = ucme(y, plain, locations=6, rng=2), ucme(z, moved, locations=6, rng=2)
    assert after.value == pytest.approx(before.value, rel=1e-8)
    first, second = (
        MeanEmbedding(4).run(make_setup(t, p, rng=2, pool=True)) for t, p in ((y, plain), (z, moved))
    )
    assert second.pvalue == pytest.approx(first.pvalue, rel=1e-5)


# -- any data ---------------------------------------------------------------------------------------------


def normal_case(seed: int, n: int = 9) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), wc.Normal(rng.normal(size=n), rng.uniform(0.1, 3.0, n)), rng


KERNEL = ExpDistance(Wasserstein(), 1.2) @ Gaussian(0.8)
seeds = st.integers(0, 10_000)


@law
@given(seed=seeds, count=st.integers(1, 12))
def test_never_negative_and_never_above_the_biased_skce(seed: int, count: int) -> None:
    """Deviations are inner products of the mean embeddings' difference with functions of norm one."""
    y, pred, _ = normal_case(seed)
    value = ucme(y, pred, locations=count, kernel=KERNEL, rng=seed).value
    assert 0.0 <= value <= wc.skce(y, pred, kernel=KERNEL, estimator="biased").value * (1.0 + 1e-9)


@law
@given(seed=seeds)
def test_order_does_not_matter(seed: int) -> None:
    y, pred, rng = normal_case(seed)
    at = draw_locations(pred, 5, rng)
    expected = ucme(y, pred, locations=(at.predictions, at.targets), kernel=KERNEL).value
    cases, places = rng.permutation(9), rng.permutation(5)
    found = ucme(
        y[cases], pred[cases], locations=(at.predictions[places], at.targets[places]), kernel=KERNEL
    ).value
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-18)


@law
@given(seed=seeds)
def test_cases_twice_change_nothing(seed: int) -> None:
    y, pred, rng = normal_case(seed)
    at = draw_locations(pred, 5, rng)
    twice = np.tile(np.arange(9), 2)
    values = [
        ucme(t, p, locations=(at.predictions, at.targets), kernel=KERNEL).value
        for t, p in ((y, pred), (y[twice], pred[twice]))
    ]
    assert values[1] == pytest.approx(values[0], rel=1e-10, abs=1e-18)


@law
@given(seed=seeds, factor=st.floats(0.01, 100.0))
def test_deviations_are_linear_in_the_kernel(seed: int, factor: float) -> None:
    y, pred, rng = normal_case(seed)
    at = draw_locations(pred, 5, rng)
    other = ExpDistance(Wasserstein(), 0.5) @ Laplacian(2.0)
    together = deviations(factor * KERNEL + other, pred, y, at)
    apart = factor * deviations(KERNEL, pred, y, at) + deviations(other, pred, y, at)
    assert_allclose(together, apart, rtol=1e-10, atol=1e-12)


@law
@given(seed=seeds)
def test_zero_where_targets_are_the_atoms_in_turn(seed: int) -> None:
    """Each prediction as often as it has atoms, and each atom once as its target: nothing deviates."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(size=(4, 3))
    pred = wc.Samples(np.repeat(atoms, 3, axis=0), kind="atoms")
    assert ucme(atoms.reshape(-1), pred, locations=6, rng=seed).value < 1e-30
    assert ucme(atoms.reshape(-1) + 0.5, pred, locations=6, rng=seed).value > 1e-8


@law
@given(seed=seeds)
def test_two_classes_are_one_probability(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, y = rng.uniform(size=8), rng.integers(2, size=8)
    at, t = rng.uniform(size=3), rng.integers(2, size=3)
    kernel = ExpDistance(TotalVariation()) @ wc.kernels.Delta()
    one = ucme(y, wc.Bernoulli(p), locations=(wc.Bernoulli(at), t), kernel=kernel).value
    two = ucme(
        y,
        wc.Categorical(np.stack([1.0 - p, p], axis=1)),
        locations=(wc.Categorical(np.stack([1.0 - at, at], axis=1)), t),
        kernel=kernel,
    ).value
    assert two == pytest.approx(one, rel=1e-10, abs=1e-18)


@law
@given(seed=seeds)
def test_one_member_is_no_mixture(seed: int) -> None:
    y, pred, rng = normal_case(seed)
    at = draw_locations(pred, 4, rng)
    plain = ucme(y, pred, locations=(at.predictions, at.targets)).kernel
    values = [
        ucme(y, wrap(pred), locations=(wrap(at.predictions), at.targets), kernel=kernel_of(plain)).value
        for wrap in (lambda p: p, lambda p: wc.Mixture([p]))
    ]
    assert values[1] == pytest.approx(values[0], rel=1e-9, abs=1e-18)


def kernel_of(kernel: Any) -> Any:
    """The kernel on targets with one on predictions that mixtures have too."""
    metric = wc.kernels.MaximumMeanDiscrepancy(kernel.targets)
    return ExpDistance(metric, power=2.0) @ kernel.targets
