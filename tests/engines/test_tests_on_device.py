"""Tests whose sets of targets are drawn and summed on a device: the same sums, and the same distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist

import wellcal as wc
from wellcal._arrays.chunks import budget, limited
from wellcal._arrays.namespaces import to_numpy
from wellcal.hypotests import setup as setups
from wellcal.hypotests.parts.families import parts_of
from wellcal.hypotests.resampling.components import (
    Component,
    choose_locations,
    location_component,
    part_component,
    skce_component,
)
from wellcal.hypotests.resampling.targets import placed_sets, target_sets
from wellcal.hypotests.setup import Setup, make_setup
from wellcal.problem import defaults
from wellcal.problem.target_resampling import sets_on_device

N = 300


def _case(name: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    loc, scale = rng.normal(size=N), np.exp(0.3 * rng.normal(size=N))
    many: dict[str, Callable[[], Any]] = {
        "Normal": lambda: wc.Normal(loc, scale),
        "Laplace": lambda: wc.Laplace(loc, scale),
        "Bernoulli": lambda: wc.Bernoulli(rng.random(N)),
        "Categorical": lambda: wc.Categorical(rng.dirichlet(np.ones(4), N)),
        "DiagonalNormal": lambda: wc.DiagonalNormal(rng.normal(size=(N, 3)), np.full((N, 3), 0.7)),
        "Gamma": lambda: wc.Gamma(np.full(N, 2.0), scale),
        "Mixture": lambda: wc.Mixture([wc.Normal(loc, scale), wc.Normal(loc + 1.0, scale)], [0.8, 0.2]),
    }
    pred = many[name]()
    return pred.sample(rng=rng), pred


NAMES = ("Normal", "Laplace", "Bernoulli", "Categorical", "DiagonalNormal", "Gamma", "Mixture")
DRAWN = ("Normal", "Laplace", "Bernoulli", "Categorical", "DiagonalNormal")


def _components(setup: Setup) -> list[Component]:
    parts = parts_of(setup.predictions)
    assert parts is not None
    locations = location_component(setup, choose_locations(setup, 12))
    return [part_component(parts), locations, skce_component(setup, pairs=False)]


@pytest.mark.parametrize("name", NAMES)
def test_sums_of_tensors_are_those_of_numpy(name: str) -> None:
    setup = make_setup(*_case(name), rng=0, n_resamples=6)
    sets = np.concatenate(list(target_sets(setup)))
    for component in _components(setup):
        assert component.in_tensors
        expected = to_numpy(component.remember(sets))
        for work in (budget.work, 1000):
            with limited(work=work):
                found = component.remember(torch.tensor(sets))
            assert isinstance(found, torch.Tensor)
            np.testing.assert_allclose(
                to_numpy(found), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max()
            )


@pytest.mark.parametrize("name", DRAWN)
def test_targets_drawn_by_tensors_are_those_of_the_predictions(name: str) -> None:
    """Levels of 200 sets are uniform: their means and variances over all cases are those of 60,000 draws."""
    y, pred = _case(name)
    setup = make_setup(y, pred, rng=0)
    place = torch.empty(0, dtype=torch.float64)
    drawn = sets_on_device(setup.predictions, setup.targets, 200, np.random.default_rng(1), place)
    values = to_numpy(torch.cat(list(drawn)))
    assert values.shape == (200, *setup.targets.shape)
    assert values.dtype == setup.targets.dtype
    mean, variance = _moments(pred)
    z = (values - mean) / np.sqrt(variance)
    assert abs(z.mean()) < 4.0 / np.sqrt(z.size)
    assert abs((z**2).mean() - 1.0) < 4.0 * (z**2).std() / np.sqrt(z.size)
    again = sets_on_device(setup.predictions, setup.targets, 200, np.random.default_rng(1), place)
    assert np.array_equal(to_numpy(torch.cat(list(again))), values)


def _moments(pred: Any) -> tuple[Any, Any]:
    if not isinstance(pred, (wc.Bernoulli, wc.Categorical)):
        return pred.mean(), pred.variance()
    classes = np.asarray(pred.class_probs())
    numbers = np.arange(classes.shape[1])
    mean = classes @ numbers
    return mean, classes @ numbers**2 - mean**2


def test_impossible_classes_are_not_drawn() -> None:
    probs = np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    place = torch.empty(0, dtype=torch.float64)
    pred, rng = wc.Categorical(probs), np.random.default_rng(0)
    values = to_numpy(torch.cat(list(sets_on_device(pred, np.zeros(4, dtype=np.int64), 2000, rng, place))))
    assert (probs[np.arange(4), values] > 0.0).all()


def test_a_test_of_tensors_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors of the processor stand in for those of a device: p-values agree but for noise of resamples."""
    monkeypatch.setattr(setups, "is_on_accelerator", lambda x: isinstance(x, torch.Tensor))
    monkeypatch.setattr(setups, "FEWEST_ON_DEVICE", 100)
    rng = np.random.default_rng(0)
    loc = rng.normal(size=2000)
    y = rng.normal(loc, 1.03)
    tensors = torch.tensor(y), wc.Normal(torch.tensor(loc), torch.ones(2000, dtype=torch.float64))
    placed = make_setup(*tensors, rng=0, n_resamples=5)
    assert all(isinstance(sets, torch.Tensor) for sets in placed_sets(placed))
    options: dict[str, Any] = {"rng": 0, "n_resamples": 499, "progress": False}
    here = wc.calibration_test(y, wc.Normal(loc, np.ones(2000)), **options)
    there = wc.calibration_test(*tensors, **options)
    for name, expected in here.provenance["pvalues"].items():
        assert there.provenance["pvalues"][name] == pytest.approx(expected, abs=0.1)


def test_few_cases_and_other_targets_stay_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    few = make_setup(torch.zeros(5), wc.Normal(torch.zeros(5), torch.ones(5)))
    assert few.place is None
    monkeypatch.setattr(setups, "is_on_accelerator", lambda x: True)
    assert make_setup(torch.zeros(5), wc.Normal(torch.zeros(5), torch.ones(5))).place is None


@pytest.mark.parametrize("name", NAMES)
def test_default_kernels_of_tensors(name: str) -> None:
    _, pred = _case(name)
    expected = wc.default_kernel(pred)
    for entries in (budget.device, 1000):
        with limited(device=entries):
            found = wc.default_kernel(pred.map_arrays(lambda a: torch.tensor(np.array(a))))
        assert found.predictions.lengthscale == pytest.approx(expected.predictions.lengthscale, rel=1e-9)


@pytest.mark.gpu
def test_a_test_on_a_graphics_card() -> None:
    rng = np.random.default_rng(0)
    loc = rng.normal(size=20_000)
    y = rng.normal(loc)
    tensors = (
        torch.tensor(y, device="cuda"),
        wc.Normal(torch.tensor(loc, device="cuda"), torch.ones(20_000, dtype=torch.float64, device="cuda")),
    )
    options: dict[str, Any] = {"rng": 0, "n_resamples": 199, "progress": False}
    here = wc.calibration_test(y, wc.Normal(loc, np.ones(20_000)), **options)
    there = wc.calibration_test(*tensors, **options)
    for name, expected in here.provenance["pvalues"].items():
        assert there.provenance["pvalues"][name] == pytest.approx(expected, abs=0.15)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 100, 101])
@pytest.mark.parametrize("entries", [10, 2**23])
def test_the_median_distance_of_points_on_a_device_is_that_of_all_pairs(n: int, entries: int) -> None:
    """Even and odd numbers of cases, in one chunk and in many."""
    rng = np.random.default_rng(n)
    loc, scale, probs = rng.normal(size=n), np.exp(rng.normal(size=n)), rng.dirichlet(np.ones(3), n)
    normals = wc.Normal(torch.from_numpy(loc), torch.from_numpy(scale))
    classes = wc.Categorical(torch.from_numpy(probs))
    points = np.column_stack([loc, scale])
    with limited(device=entries):
        by_scale = defaults.median_distance(wc.kernels.Wasserstein(), normals)
        by_classes = defaults.median_distance(wc.kernels.TotalVariation(), classes)
    assert by_scale == pytest.approx(np.sqrt(np.median(pdist(points, "sqeuclidean"))), rel=1e-14)
    assert by_classes == pytest.approx(0.5 * np.median(pdist(probs, "cityblock")), rel=1e-14)


@pytest.mark.parametrize("order", ["as drawn", "nearest first", "two places", "nearly all in one place"])
def test_the_median_of_many_distances_is_that_of_all_pairs(order: str) -> None:
    """Also where most of them tie, and where distances come in order."""
    rng = np.random.default_rng(4)
    mean = rng.normal(size=401)
    if order == "nearest first":
        mean = np.sort(mean) ** 3
    elif order != "as drawn":
        mean = np.where(np.arange(401) < (200 if order == "two places" else 120), 1.0, 0.0)
        mean += 1e-3 * rng.normal(size=401) * (order == "two places")
    found = defaults.median_distance(wc.kernels.Wasserstein(), wc.Normal(mean, np.ones(401)))
    expected = np.sqrt(np.median(pdist(mean[:, None], "sqeuclidean"))) or 1.0
    assert found == pytest.approx(expected, rel=1e-10)
