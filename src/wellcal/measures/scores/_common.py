"""What the scores share."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import check_ndim
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.expectations.decompose import components_of
from wellcal.predictions import Categorical, Predictions


def are_counts(predictions: Predictions) -> bool:
    """Whether all components are families of counts."""
    return all(part.target_kind == "counts" for part, _ in components_of(predictions))


def names_only(predictions: Predictions) -> bool:
    """Whether a component predicts classes that no numbers were given for."""
    parts = [part for part, _ in components_of(predictions)]
    return any(isinstance(part, Categorical) and part.support is None for part in parts)


def check_levels(levels: Any, *, open_interval: bool = False) -> NDArray:
    """Levels of quantiles as an array ``(T,)``, between 0 and 1, or strictly so."""
    array = np.asarray(to_numpy(levels), dtype=np.float64)
    check_ndim(array, "levels", (1,))
    inside = (array > 0) & (array < 1) if open_interval else (array >= 0) & (array <= 1)
    if len(array) == 0 or not inside.all():
        found = "none" if len(array) == 0 else array[~inside][0]
        raise ValueError(f"levels must be numbers between 0 and 1, found {found}")
    return array
