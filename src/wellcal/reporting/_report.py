"""`report`: one call for what a person would ask."""

from __future__ import annotations

import numpy as np

from wellcal.reporting.result import Report


def report(
    y: object,
    pred: object,
    *,
    segments: object = None,
    recalibrate: bool = False,
    weights: object = None,
    rng: int | np.random.Generator | None = None,
) -> Report:
    """Report on the calibration of a model, or of several."""
    raise NotImplementedError
