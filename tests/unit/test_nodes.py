"""Nodes in place of predictions: chosen once, more of them for rows that need it, in every library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal import kernels as k
from wellcal.expectations import adaptive_quadrature as nodes
from wellcal.expectations.adaptive_quadrature import FOR_FEATURES, FOR_PAIRS, choose
from wellcal.expectations.pivots import spanning_pivots
from wellcal.hypotests.setup import make_setup
from wellcal.measures.target_sets.feature_terms import TableTerm
from wellcal.measures.target_sets.resampled import ResampledSKCE

MMD = k.ExpDistance(k.MaximumMeanDiscrepancy(k.Gaussian(0.8)), power=2.0)


def odd_betas(n: int = 12) -> wc.Beta:
    a = np.full(n, 2.0)
    a[n // 3] = 0.01
    return wc.Beta(a, a)


def unlike_gammas(n: int = 12) -> wc.Gamma:
    rng = np.random.default_rng(5)
    return wc.Gamma(rng.uniform(0.5, 3.0, n), np.exp(1.5 * rng.normal(size=n)))


def dirichlets(n: int = 12) -> wc.Dirichlet:
    return wc.Dirichlet(np.random.default_rng(6).uniform(0.3, 4.0, (n, 3)))


# -- once --------------------------------------------------------------------------------------------------


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of cases that nodes were chosen for."""
    found: list[int] = []
    choose_anew: Callable[..., Any] = nodes.choose_anew

    def counted(predictions: Any, *rest: Any) -> Any:
        found.append(len(predictions))
        return choose_anew(predictions, *rest)

    monkeypatch.setattr(nodes, "choose_anew", counted)
    return found


def test_what_is_large_is_made_once_for_a_problem(chosen: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels on predictions and on targets ask for the same."""
    n = 1000
    first, batch = unlike_gammas(n), unlike_gammas(n)
    kernel, y = MMD @ k.Gaussian(0.8), first.sample(rng=1)
    exact = wc.skce(y, first, kernel=kernel)
    monkeypatch.setattr("wellcal._arrays.memo.entries_of", lambda _: 10**9)
    chosen.clear()
    assert wc.skce(y, batch, kernel=kernel).value == exact.value
    assert chosen == [n]


@pytest.mark.parametrize("batch", [unlike_gammas(30), dirichlets(30), odd_betas(30)])
def test_nodes_are_chosen_once_in_a_test(batch: Any, chosen: list[int]) -> None:
    wc.calibration_test(batch.sample(rng=1), batch, n_resamples=119, rng=0)
    assert chosen == [30]


def test_functions_for_one_pair_get_few_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rough kernel takes all nodes that it gets: the number of calls is what is bounded."""
    monkeypatch.setattr(nodes, "MOST_CALLED", 12 * 24)
    calls: list[int] = []

    def rough(x: Any, y: Any) -> Any:
        calls.append(1)
        return np.exp(-np.sqrt(np.abs(np.subtract.outer(x, y))))

    batch = wc.Normal(np.linspace(-1.0, 1.0, 12), np.ones(12))
    kernel = k.ExpDistance(k.Wasserstein()) @ k.Callable(rough)
    with pytest.warns(UserWarning, match=r"called for one pair.*vectorized=True"):
        few = wc.skce(batch.loc, batch, kernel=kernel)
    assert "24 nodes" in few.provenance["lowered"][0]
    assert len(calls) < 12 * 12 * 24 * 24 + 50_000  # pairs of nodes, and the choice of these
    many = wc.skce(
        batch.loc, batch, kernel=k.ExpDistance(k.Wasserstein()) @ k.Callable(rough, vectorized=True)
    )
    assert few.provenance["expectation_error"] > many.provenance["expectation_error"]
    assert float(few) == pytest.approx(float(many), abs=0.3 * few.provenance["expectation_error"])


def test_another_lowering_is_another_choice() -> None:
    batch = unlike_gammas()
    kernel = k.Gaussian(0.8)
    fine = choose(batch, kernel, wc.Lowering(), 64, FOR_FEATURES)
    assert choose(batch, kernel, wc.Lowering(), 64, FOR_FEATURES) is fine
    for other in (
        choose(batch, k.Gaussian(0.7), wc.Lowering(), 64, FOR_FEATURES),
        choose(batch, kernel, wc.Lowering(nodes=32), 64, FOR_FEATURES),
        choose(batch[:], kernel, wc.Lowering(), 64, FOR_FEATURES),
    ):
        assert other is not fine


# -- as many as needed -------------------------------------------------------------------------------------


def test_rows_that_need_it_get_more_nodes() -> None:
    batch = odd_betas()
    found = choose(batch, k.Gaussian(0.3), wc.Lowering(), 64, FOR_FEATURES)
    sizes = {
        int(i): p.atoms.weights.shape[1]
        for p in found.parts
        for i in (range(12) if p.rows is None else p.rows)
    }
    assert sorted(sizes) == list(range(12))
    assert sizes[4] > 2 * max(size for row, size in sizes.items() if row != 4)
    for part in found.parts:
        np.testing.assert_allclose(np.sum(part.atoms.weights, axis=1), 1.0, rtol=1e-13)
    assert "1 of 12 rows by panels" in found.scheme


def test_pairs_of_nodes_have_equally_many() -> None:
    batch = odd_betas()
    atoms = choose(batch, k.Matern(1.5, 0.3), wc.Lowering(), 64, FOR_PAIRS).single
    assert atoms.weights.shape == atoms.values.shape
    assert atoms.weights.shape[0] == 12
    np.testing.assert_allclose(np.sum(atoms.weights, axis=1), 1.0, rtol=1e-13)


def test_given_nodes_are_taken_as_they_are() -> None:
    found = choose(odd_betas(), k.Gaussian(0.3), wc.Lowering(nodes=48), 64, FOR_FEATURES)
    assert found.single.weights.shape == (12, 48)
    assert found.error > 1e-3


# -- other libraries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_targets", [k.Gaussian(0.8), k.Matern(2.5, 0.8)])
@pytest.mark.parametrize("name", ["Gamma", "Beta"])
def test_rows_of_unlike_sizes_in_torch(name: str, on_targets: k.Kernel) -> None:
    plain: Any = unlike_gammas(6) if name == "Gamma" else odd_betas(6)
    y = plain.sample(rng=2)
    kernel = k.ExpDistance(k.MaximumMeanDiscrepancy(on_targets), power=2.0) @ on_targets
    fields = plain.array_fields
    family: Any = type(plain)
    given = [np.asarray(getattr(plain, f)) for f in fields]
    tensors = [torch.tensor(p, requires_grad=True) for p in given]
    value = wc.skce(torch.tensor(y), family(*tensors), kernel=kernel, estimator="biased").value
    expected = wc.skce(y, plain, kernel=kernel, estimator="biased")
    assert float(value.detach()) == pytest.approx(float(expected), rel=3e-6)
    gradients = [g.numpy() for g in torch.autograd.grad(value, tensors)]
    step = 1e-4

    def moved(by: float) -> float:
        parameters = [p * (1.0 + by) for p in given]
        return float(wc.skce(y, family(*parameters), kernel=kernel, estimator="biased"))

    along = sum(float(np.sum(g * p)) for g, p in zip(gradients, given, strict=True))
    size = sum(float(np.sum(np.abs(g * p))) for g, p in zip(gradients, given, strict=True))
    assert along == pytest.approx((moved(step) - moved(-step)) / (2.0 * step), abs=0.02 * size)


def test_rows_of_unlike_sizes_in_jax() -> None:
    """Two sizes: each compiles the same operations anew."""
    plain = wc.Gamma(np.full(4, 2.0), [1.0, 1.0, 20.0, 1.0])
    assert len(choose(plain, k.Gaussian(0.8), wc.Lowering(), 64, FOR_FEATURES).parts) == 2
    y = plain.sample(rng=2)
    kernel = MMD @ k.Gaussian(0.8)
    expected = float(wc.skce(y, plain, kernel=kernel))
    found = wc.skce(
        jax.numpy.asarray(y),
        wc.Gamma(jax.numpy.asarray(plain.shape), jax.numpy.asarray(plain.scale)),
        kernel=kernel,
    )
    assert float(found) == pytest.approx(expected, rel=2e-4)  # single precision


def test_one_parameter_that_is_traced_is_enough() -> None:
    """It need not be the first: nobody may look at the values of a batch then."""
    shape, y = np.full(5, 2.0), np.linspace(0.2, 3.0, 5)
    kernel = MMD @ k.Gaussian(0.8)

    def estimate(shape: Any, scale: Any) -> Any:
        return wc.skce(y, wc.Gamma(shape, scale), kernel=kernel, expectations=wc.Lowering(nodes=16))

    found = jax.jit(lambda scale: estimate(jax.numpy.asarray(shape), scale))(jax.numpy.ones(5))
    assert float(found) == pytest.approx(float(estimate(shape, np.ones(5))), rel=1e-3)
    assert np.isnan(found.provenance["expectation_error"])


def test_one_parameter_with_a_gradient_is_enough() -> None:
    scale = torch.ones(4, requires_grad=True)
    pred = wc.Gamma(torch.full((4,), 2.0), scale)
    with pytest.raises(ValueError, match="not differentiable"):
        wc.skce(torch.ones(4), pred, kernel=k.ExpDistance(k.Wasserstein()) @ k.Gaussian())


# -- many sets of targets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [unlike_gammas(20), dirichlets(20)])
def test_tables_give_the_skce_of_each_set(batch: Any) -> None:
    kernel = k.ExpDistance(k.MaximumMeanDiscrepancy(k.Gaussian(0.2)), power=2.0) @ k.Gaussian(0.2)
    sets = batch.sample(rng=3, size=4)
    setup = make_setup(sets[0], batch, kernel)
    found = ResampledSKCE(setup, [kernel])
    assert isinstance(found.terms[0][0].term, TableTerm)
    expected = [20 * float(wc.skce(y, batch, kernel=kernel)) for y in sets]
    for _ in range(2):  # the second time tables are there already
        np.testing.assert_allclose(found(sets)[:, 0], expected, rtol=0.0, atol=3e-6)


# -- features of vectors -----------------------------------------------------------------------------------


def test_spanned_features_reproduce_the_kernel() -> None:
    rng = np.random.default_rng(7)
    atoms, targets = rng.uniform(0.0, 1.0, (20, 20, 3)), rng.uniform(-1.0, 2.0, (50, 3))
    found = spanning_pivots(0.5, [(atoms, None)], [targets])
    assert found is not None
    both = np.concatenate([atoms.reshape(-1, 3), targets])
    features = found.of_points(both[:, None, :], None)
    squared = ((both[:, None] - both[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(features @ features.T, np.exp(-squared / 0.5), rtol=0.0, atol=2e-12)


def test_points_that_are_spread_out_have_no_features() -> None:
    atoms = np.random.default_rng(8).uniform(0.0, 100.0, (100, 20, 3))
    assert spanning_pivots(0.5, [(atoms, None)], []) is None


@pytest.mark.parametrize("scheme", ["auto", wc.Lowering(points=256)])
def test_vectors_by_features_and_by_pairs(scheme: Any) -> None:
    """A product of kernels with a constant has no features: the same number, atom by atom."""
    batch = dirichlets(10)
    y = batch.sample(rng=4)
    by_features = wc.skce(y, batch, kernel=MMD @ k.Gaussian(0.4), expectations=scheme)
    assert "features" in by_features.provenance["rules"][-1]
    points = wc.Lowering(points=64 if scheme == "auto" else 256)
    scaled = wc.skce(y, batch, kernel=MMD @ (2.0 * k.Gaussian(0.4)), expectations=points)
    assert float(scaled) == pytest.approx(2.0 * float(by_features), rel=1e-8)
