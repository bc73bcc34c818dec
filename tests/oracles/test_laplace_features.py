"""Polynomials for expected features of Laplace distributions: the closed form, and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

from wellcal._arrays.namespaces import namespace
from wellcal._arrays.ops import ops_for
from wellcal.expectations import laplace_features
from wellcal.expectations.bilinear import evaluate
from wellcal.expectations.laplace_features import LaplaceFeatures
from wellcal.expectations.rules.elements import Laplaces, Points
from wellcal.kernels import Gaussian

STEP, WIDTH = 0.4, 6.1
CELLS = np.concatenate([np.arange(-60.0, 61.0), np.arange(200.0, 230.0)])  # two runs of features, and a gap


def _closed(away: np.ndarray, scale: np.ndarray) -> np.ndarray:
    ops = ops_for(namespace(away))
    at = Points((np.zeros((1, 1)),))
    return np.asarray(evaluate(ops, Gaussian(1.0 / np.sqrt(2.0)), Laplaces((away,), scale), at, 1))


def _cases(least: float, largest: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.uniform(-20.0, 20.0, 3000), np.exp(rng.uniform(np.log(least), np.log(largest), 3000))


@pytest.mark.parametrize(("least", "largest"), [(1e-4, 1.9e-4), (0.25, 0.5), (0.8, 3.0), (6.0, 7.0)])
def test_polynomials_are_the_closed_form_to_rounding(
    least: float, largest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laplace_features, "FEWEST", 500)
    x, scale = _cases(least, largest)
    found = LaplaceFeatures.of(x, scale, CELLS, STEP, WIDTH, _closed)
    assert found.tables
    exact = _closed(x[:, None] - CELLS * STEP, scale[:, None])
    assert np.abs(found.at(x, scale) - exact).max() < 2e-14
    some = np.arange(0, 3000, 7)
    assert np.abs(found.at(x[some], scale[some]) - exact[some]).max() < 2e-14


def test_the_closed_form_is_an_expectation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laplace_features, "FEWEST", 500)
    x, scale = _cases(0.3, 0.9)
    found = LaplaceFeatures.of(x, scale, CELLS, STEP, WIDTH, _closed).at(x[:1], scale[:1])[0]
    centre = int(np.argmax(found))
    for k in (centre - 3, centre, centre + 2):
        c, m, b = float(CELLS[k]) * STEP, float(x[0]), float(scale[0])

        def density(z: float, c: float = c, m: float = m, b: float = b) -> float:
            return float(np.exp(-((z - c) ** 2) - abs(z - m) / b) / (2.0 * b))

        expected = integrate.quad(density, c - 12.0, c + 12.0, points=[m], epsabs=1e-14, limit=200)[0]
        assert found[k] == pytest.approx(expected, abs=1e-12)


def test_few_cases_and_polynomials_that_do_not_agree_are_left_to_the_closed_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, scale = _cases(0.25, 0.5)
    exact = _closed(x[:, None] - CELLS * STEP, scale[:, None])
    few = LaplaceFeatures.of(x[:100], scale[:100], CELLS, STEP, WIDTH, _closed)
    assert not few.tables
    assert np.array_equal(few.at(x[:100], scale[:100]), exact[:100])
    monkeypatch.setattr(laplace_features, "IN_SCALE", 6)
    rough = LaplaceFeatures.of(x, scale, CELLS, STEP, WIDTH, _closed)
    assert not rough.tables
    assert np.array_equal(rough.at(x, scale), exact)
