"""The power of probabilities that fits targets best."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, special

from wellcal.measures.sharpness import best_sharpness

RNG = np.random.default_rng(3)
LOGS = special.log_softmax(RNG.normal(size=(40, 4)), axis=1)


@pytest.mark.parametrize("true", [0.3, 1.0, 4.0])
def test_it_is_the_maximum_of_the_likelihood(true: float) -> None:
    levels = RNG.uniform(size=(40, 1))
    targets = np.minimum((special.softmax(true * LOGS, axis=1).cumsum(axis=1) < levels).sum(axis=1), 3)
    weights = RNG.dirichlet(np.ones(40))

    def loss(log_power: float) -> float:
        return -float(weights @ special.log_softmax(np.exp(log_power) * LOGS, axis=1)[range(40), targets])

    best = optimize.minimize_scalar(loss, bounds=(-3.5, 3.5), method="bounded", options={"xatol": 1e-9})
    found = best_sharpness(LOGS, targets, weights)
    assert np.log(found.power) == pytest.approx(best.x, abs=1e-5)
    assert abs(weights @ found.slope) < 1e-12
    step = 1e-4
    bent = (2.0 * loss(np.log(found.power)) - loss(np.log(found.power + step))) - loss(
        np.log(found.power - step)
    )
    assert weights @ found.bend == pytest.approx(-bent / step**2, rel=1e-3)


def test_targets_that_no_power_is_best_for() -> None:
    """Always the most probable class, or the unlikeliest: the power ends at a bound, and nothing is nan."""
    for targets, end in ((LOGS.argmax(axis=1), 4.0), (LOGS.argmin(axis=1), -4.0)):
        found = best_sharpness(LOGS, targets)
        assert np.log(found.power) == pytest.approx(end)
        assert np.isfinite(found.slope).all()
