"""Products in float32: how exact they are, and what results say about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal.engines import Engine, Tiled
from wellcal.engines.reductions import Sums
from wellcal.kernels import ExpDistance, Gaussian, Laplacian, Wasserstein
from wellcal.problem.problem import Problem, prepare

N = 1500


def _normals(offset: float = 0.0, spread: float = 1.0) -> tuple[np.ndarray, wc.Normal]:
    rng = np.random.default_rng(4)
    loc, scale = rng.normal(size=N), np.exp(0.3 * rng.normal(size=N))
    return offset + rng.normal(loc, spread * scale), wc.Normal(offset + loc, scale)


def _classes() -> tuple[np.ndarray, wc.Categorical]:
    rng = np.random.default_rng(5)
    probabilities = rng.dirichlet(np.full(6, 0.3), size=N)
    return np.argmax(rng.gumbel(size=(N, 6)) + np.log(probabilities), axis=1), wc.Categorical(probabilities)


def _ensembles() -> tuple[np.ndarray, wc.Samples]:
    rng = np.random.default_rng(6)
    centre = rng.normal(size=(N, 1))
    return rng.normal(centre[:, 0]), wc.Samples(centre + rng.normal(size=(N, 12)))


def _unit(problem: Problem) -> float:
    """What errors of the sum are measured in: for calibrated predictions its standard deviation."""
    h = np.asarray(problem.values(slice(0, 700), slice(700, 1400)))
    return float(np.sqrt(0.5 * N * (N - 1) * np.mean(h**2)))


CASES: dict[str, tuple[Any, Any]] = {
    "calibrated": _normals(),
    "wrong": _normals(spread=3.0),
    "far from the origin": _normals(offset=1e5),
    "classes": _classes(),
    "ensembles": _ensembles(),
}


@pytest.mark.parametrize("name", CASES)
def test_float32_is_as_exact_as_it_says(name: str) -> None:
    y, pred = CASES[name]
    problem = prepare(y, pred)
    exact = Tiled(precision="float64").triangle(problem)
    engine = Tiled(precision="mixed")
    found = engine.triangle(problem)
    said = engine.describe(problem)
    assert said["precision"].startswith("mixed")
    assert said["control_error"] < 1e-4
    unit = max(_unit(problem), float(np.sqrt(0.5 * N * np.var(exact.rows))))
    assert abs(found.total - exact.total) <= 3.0 * said["control_error"] * unit
    assert np.abs(found.rows - exact.rows).max() < 1e-5 * np.abs(exact.rows).max()


def test_auto_takes_float32_for_many_cases_only(monkeypatch: pytest.MonkeyPatch) -> None:
    y, pred = CASES["calibrated"]
    assert wc.skce(y, pred).provenance["precision"] == "float64"
    exact = wc.skce(y, pred, precision="float64").value
    assert wc.skce(y, pred).value == exact
    monkeypatch.setattr("wellcal.engines.tiled.AUTO_FROM", 1000)
    found = wc.skce(y, pred)
    assert found.provenance["precision"].startswith("mixed")
    assert found.value != exact
    assert found.value == wc.skce(y, pred).value
    assert wc.skce(y, pred, precision="float64").value == exact


def test_an_error_that_is_too_large_means_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    y, pred = CASES["calibrated"]
    exact = wc.skce(y, pred, precision="float64")
    monkeypatch.setattr("wellcal.engines.tiled.TOLERANCE", 1e-12)
    found = wc.skce(y, pred, precision="mixed")
    assert found.value == exact.value
    assert found.provenance["precision"] == "float64"
    assert "float32 is off by" in found.provenance["precision_note"]


def test_what_has_no_features_stays_in_float64() -> None:
    y, pred = CASES["calibrated"]
    kernel = ExpDistance(Wasserstein()) @ Laplacian()
    found = wc.skce(y, pred, kernel=kernel, precision="mixed")
    assert found.value == wc.skce(y, pred, kernel=kernel, precision="float64").value
    assert "no product of features" in found.provenance["precision_note"]
    some = (
        torch.as_tensor(y[:300]),
        wc.Normal(*(torch.tensor(value[:300]) for value in (pred.loc, pred.scale))),
    )
    assert wc.skce(*some, precision="mixed").provenance["precision"] == "float64"


class _Own(Engine):
    name = "own"

    def triangle(self, problem: Problem) -> Sums:
        return Tiled().triangle(problem)


def test_precision_is_checked() -> None:
    y, pred = CASES["calibrated"]
    with pytest.raises(ValueError, match="unknown precision"):
        wc.skce(y, pred, precision="single")
    with pytest.raises(ValueError, match="unknown precision"):
        Tiled(precision="float16")
    with pytest.raises(ValueError, match="'own' has no mixed precision"):
        wc.skce(y, pred, engine=_Own(), precision="mixed")
    kernel = ExpDistance(Wasserstein()) @ Gaussian()
    own = wc.skce(y[:99], pred[:99], kernel=kernel, engine=_Own(), precision="float64")
    assert own.value == wc.skce(y[:99], pred[:99], kernel=kernel).value
