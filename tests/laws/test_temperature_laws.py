"""What temperature scaling leaves unchanged, for every family and generated temperatures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wellcal as wc
from wellcal.recalibration import apply_temperature

rng = np.random.default_rng(5)
N, D = 7, 3
factor = rng.normal(size=(N, D, D))
COV = factor @ factor.transpose(0, 2, 1) + 0.2 * np.eye(D)
LOC, SCALE, LOCS = rng.normal(size=N), np.exp(rng.normal(size=N)), rng.normal(size=(N, D))
SHAPE = rng.uniform(0.7, 3.0, N)

KEEP_MEAN: dict[str, Any] = {
    "Normal": wc.Normal(LOC, SCALE),
    "DiagonalNormal": wc.DiagonalNormal(LOCS, np.exp(rng.normal(size=(N, D)))),
    "MultivariateNormal": wc.MultivariateNormal(LOCS, COV),
    "Laplace": wc.Laplace(LOC, SCALE),
    "PowerExponential": wc.PowerExponential(LOC, SCALE, SHAPE),
    "PowerExponential of vectors": wc.PowerExponential(LOCS, shape=SHAPE, cov=COV),
    "Beta": wc.Beta(SCALE, SHAPE),
    "Dirichlet": wc.Dirichlet(np.exp(rng.normal(size=(N, D)))),
    "Mixture": wc.Mixture([wc.Normal(LOC, SCALE), wc.Laplace(-LOC, SCALE)], rng.dirichlet(np.ones(2), N)),
}
CLASSES: dict[str, Any] = {
    "Bernoulli": wc.Bernoulli(rng.uniform(size=N)),
    "Categorical": wc.Categorical(rng.dirichlet(np.ones(4), N)),
    "Categorical with support": wc.Categorical(rng.dirichlet(np.ones(3), N), support=[1.0, 2.0, 5.0]),
    "Categorical with classes": wc.Categorical(rng.dirichlet(np.ones(3), N), classes=["a", "b", "c"]),
}
ALL = {**KEEP_MEAN, **CLASSES}
temperatures = st.floats(0.05, 20.0)


def parameters(pred: Any) -> list[np.ndarray]:
    found: list[np.ndarray] = []

    def collect(array: np.ndarray) -> np.ndarray:
        found.append(array)
        return array

    pred.map_arrays(collect)
    return found


@pytest.mark.parametrize("name", KEEP_MEAN)
@given(T=temperatures)
@settings(max_examples=15)
def test_means_stay(name: str, T: float) -> None:
    """The paper: scaling does not affect the mean squared error of these families."""
    pred = KEEP_MEAN[name]
    np.testing.assert_allclose(apply_temperature(pred, T).mean(), pred.mean(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", CLASSES)
@given(T=temperatures)
@settings(max_examples=15)
def test_the_order_of_classes_stays(name: str, T: float) -> None:
    before, after = (p.class_probs() for p in (CLASSES[name], apply_temperature(CLASSES[name], T)))
    assert np.array_equal(np.argsort(before, axis=1), np.argsort(after, axis=1))
    np.testing.assert_allclose(after.sum(axis=1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("name", ALL)
@given(S=temperatures, T=temperatures)
@settings(max_examples=10)
def test_temperatures_multiply(name: str, S: float, T: float) -> None:
    pred = ALL[name]
    twice = apply_temperature(apply_temperature(pred, S), T)
    for a, b in zip(parameters(twice), parameters(apply_temperature(pred, S * T)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", ALL)
def test_temperature_one_changes_nothing(name: str) -> None:
    for a, b in zip(parameters(apply_temperature(ALL[name], 1.0)), parameters(ALL[name]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=0)


@pytest.mark.parametrize("name", ALL)
def test_rows_are_scaled_one_by_one(name: str) -> None:
    rows = np.array([3, 0, 5])
    pairs = zip(
        parameters(apply_temperature(ALL[name][rows], 2.5)),
        parameters(apply_temperature(ALL[name], 2.5)[rows]),
        strict=True,
    )
    assert all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("name", ["Normal", "Laplace", "PowerExponential", "Beta", "Dirichlet", "Bernoulli"])
def test_heat_makes_uncertain(name: str) -> None:
    variances = [apply_temperature(ALL[name], T).variance() for T in (0.5, 1.0, 2.0)]
    assert np.all(variances[0] < variances[1])
    assert np.all(variances[1] < variances[2])


@given(T=temperatures)
@settings(max_examples=15)
def test_bernoulli_is_a_categorical_of_two_classes(T: float) -> None:
    pred = CLASSES["Bernoulli"]
    as_two = apply_temperature(wc.Categorical(pred.class_probs()), T)
    np.testing.assert_allclose(apply_temperature(pred, T).class_probs(), as_two.probs, rtol=1e-12, atol=1e-15)


@given(T=temperatures)
@settings(max_examples=15)
def test_families_that_contain_each_other(T: float) -> None:
    normal = apply_temperature(wc.Normal(LOC, SCALE), T)
    power = apply_temperature(wc.PowerExponential(LOC, np.sqrt(2.0) * SCALE, 2.0), T)
    np.testing.assert_allclose(power.scale, np.sqrt(2.0) * normal.scale, rtol=1e-13)
    laplace = apply_temperature(wc.Laplace(LOC, SCALE), T)
    power = apply_temperature(wc.PowerExponential(LOC, SCALE, 1.0), T)
    np.testing.assert_allclose(power.scale, laplace.scale, rtol=1e-13)
    full = apply_temperature(wc.MultivariateNormal(LOCS, COV), T)
    power = apply_temperature(wc.PowerExponential(LOCS, shape=2.0, cov=COV), T)
    np.testing.assert_allclose(power.cov, full.cov, rtol=1e-13)
    np.testing.assert_allclose(power.chol @ power.chol.transpose(0, 2, 1), power.cov, rtol=1e-12, atol=1e-14)
    beta = apply_temperature(wc.Beta(SCALE, SHAPE), T)
    pair = apply_temperature(wc.Dirichlet(np.stack([SCALE, SHAPE], axis=1)), T)
    np.testing.assert_allclose(pair.concentration, np.stack([beta.a, beta.b], axis=1), rtol=1e-14)
