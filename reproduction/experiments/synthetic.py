"""The paper's synthetic models (appendix "Empirical properties and computational efficiency")."""

from __future__ import annotations

import numpy as np

from reproduction.tasks import FloatArray
from wellcal import DiagonalNormal

SPREAD = 0.1
SHIFTED_MEAN = 0.1


def draw_cases(
    rng: np.random.Generator, n: int, dimension: int, model: str
) -> tuple[FloatArray, DiagonalNormal]:
    """Targets ``(n, d)`` and predictions N(c 1_d, 0.1^2 I), c uniform on [0, 1].

    Targets are drawn from the predictions; in the uncalibrated model the mean of their first coordinate
    is 0.1 instead of c.

    Examples
    --------
    >>> y, pred = draw_cases(np.random.default_rng(0), 5, 3, "uncalibrated")
    >>> y.shape, len(pred)
    ((5, 3), 5)
    """
    centre = np.repeat(rng.uniform(size=(n, 1)), dimension, axis=1)
    mean = centre.copy()
    if model == "uncalibrated":
        mean[:, 0] = SHIFTED_MEAN
    return rng.normal(mean, SPREAD), DiagonalNormal(centre, np.full(centre.shape, SPREAD))


def draw_test_locations(
    rng: np.random.Generator, count: int, dimension: int
) -> tuple[DiagonalNormal, FloatArray]:
    """Predictions N(m, 0.1^2 I), m uniform on the unit cube, and targets from N(0, 0.1^2 I)."""
    centre = rng.uniform(size=(count, dimension))
    return DiagonalNormal(centre, np.full(centre.shape, SPREAD)), rng.normal(0.0, SPREAD, centre.shape)
