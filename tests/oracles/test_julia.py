"""SKCE beside numbers that the authors' own implementation prints.

They stand in the README of pycalibration, which calls CalibrationErrors.jl; the inputs there come from seeded
generators of Python and NumPy, and are drawn again here. Its estimator is the unbiased one.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import wellcal as wc
from wellcal.kernels import Delta, Euclidean, ExpDistance, Gaussian, Wasserstein

CLASSES = ExpDistance(Euclidean()) @ Delta()
NUMBERS = ExpDistance(Wasserstein()) @ Gaussian()


def holds(estimate: wc.Estimate, published: float) -> None:
    assert float(estimate) == pytest.approx(published, rel=1e-13)


def test_two_outcomes() -> None:
    rng = np.random.default_rng(1234)
    pred = wc.Bernoulli(rng.random(100))
    holds(wc.skce(rng.choice([True, False], 100), pred, kernel=CLASSES), 0.03320398246523166)


def test_classes() -> None:
    rng = np.random.default_rng(1234)
    pred = wc.Categorical(rng.dirichlet((3, 2, 5), 100))
    holds(wc.skce(rng.integers(1, 4, 100) - 1, pred, kernel=CLASSES), 0.02015240706950358)


def test_two_cases() -> None:
    pred = wc.Categorical([[0.1, 0.8, 0.1], [0.2, 0.5, 0.3]])
    holds(wc.skce([1, 2], pred, kernel=CLASSES), -0.10317943453412069)


def test_normals() -> None:
    rng = random.Random(1234)
    mu, sigma = np.array([(rng.gauss(0, 1), rng.random()) for _ in range(100)]).T
    y = np.array([rng.gauss(0, 1) for _ in range(100)])
    holds(wc.skce(y, wc.Normal(mu, sigma), kernel=NUMBERS), 0.02203618235964146)
