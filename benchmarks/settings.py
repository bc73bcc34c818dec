"""How thorough a run is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Sizes and patience.

    Attributes
    ----------
    normals
        Numbers of univariate normal predictions.
    classes
        Numbers of predictions and of classes.
    memory
        Number of normal predictions for the limits on memory.
    budget
        Seconds after which a competitor is not run again on a case; it always runs at least once.
    rounds
        Most runs of a competitor on a case.
    """

    normals: tuple[int, ...] = (1_024, 10_000, 50_000)
    classes: tuple[tuple[int, int], ...] = ((10_000, 10), (10_000, 1_000))
    memory: int = 20_000
    budget: float = 30.0
    rounds: int = 25


FULL = Settings()
QUICK = Settings(normals=(1_024, 4_000), classes=((2_000, 10),), memory=4_000, budget=1.5, rounds=5)
