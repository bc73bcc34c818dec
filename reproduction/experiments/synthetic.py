"""The paper's synthetic models (appendix "Empirical properties and computational efficiency")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reproduction.experiments.plant import NOTHING, Plant
from reproduction.tasks import FloatArray
from wellcal import DiagonalNormal

SPREAD = 0.1
SHIFTED_MEAN = 0.1


@dataclass(frozen=True)
class DataSets:
    """Data sets of one size.

    Attributes
    ----------
    centres
        c of the predictions N(c 1_d, spread^2 I), ``(B, n)``.
    y
        Targets, ``(B, n, d)``.
    spread
        Standard deviation of the predictions.
    """

    centres: FloatArray
    y: FloatArray
    spread: float

    def predictions(self, index: int) -> DiagonalNormal:
        """Predictions of a data set."""
        centre = np.repeat(self.centres[index, :, None], self.y.shape[2], axis=1)
        return DiagonalNormal(centre, np.full(centre.shape, self.spread))


def draw_data_sets(
    rng: np.random.Generator, count: int, n: int, dimension: int, model: str, plant: Plant = NOTHING
) -> DataSets:
    """Data sets with c uniform on [0, 1] and targets from N(c 1_d, 0.1^2 I).

    In the uncalibrated model the mean of the targets' first coordinate is 0.1 instead of c.

    Examples
    --------
    >>> draw_data_sets(np.random.default_rng(0), 2, 5, 3, "uncalibrated").y.shape
    (2, 5, 3)
    """
    centres = rng.uniform(size=(count, n))
    y = rng.normal(0.0, SPREAD, (count, n, dimension))
    y += centres[:, :, None]
    if model == "uncalibrated":
        y[:, :, 0] += SHIFTED_MEAN - centres
    return DataSets(centres, y, SPREAD * plant.spread)


def draw_cases(
    rng: np.random.Generator, n: int, dimension: int, model: str, plant: Plant = NOTHING
) -> tuple[FloatArray, DiagonalNormal]:
    """Targets ``(n, d)`` and predictions of one data set.

    Examples
    --------
    >>> y, pred = draw_cases(np.random.default_rng(0), 5, 3, "uncalibrated")
    >>> y.shape, len(pred)
    ((5, 3), 5)
    """
    drawn = draw_data_sets(rng, 1, n, dimension, model, plant)
    return drawn.y[0], drawn.predictions(0)


def draw_test_locations(
    rng: np.random.Generator, count: int, dimension: int, plant: Plant = NOTHING
) -> tuple[DiagonalNormal, FloatArray]:
    """Predictions N(m, 0.1^2 I), m uniform on the unit cube, and targets from N(0, 0.1^2 I)."""
    centre = rng.uniform(size=(count, dimension))
    spread = np.full(centre.shape, SPREAD * plant.spread)
    return DiagonalNormal(centre, spread), rng.normal(0.0, SPREAD, centre.shape)
