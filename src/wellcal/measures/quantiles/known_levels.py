"""Levels at which something was predicted: all of them for a distribution, a few for `Quantiles`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wellcal._arrays.checks import check_levels
from wellcal._arrays.namespaces import Array, NDArray
from wellcal.predictions import Quantiles

COVERAGE_LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Of intervals, where nobody says which."""

_SAME = 1e-7  # levels nearer than that are equal: those of single precision are not exact


def interval_levels(
    predictions: Any,
    levels: Sequence[float] | Array | None,
    usual: Sequence[float] | NDArray = COVERAGE_LEVELS,
) -> tuple[NDArray, str | None]:
    """Levels of central intervals that the predictions have, and a remark where they are not the usual ones.

    Quantiles have those between two of them that lie as far from 0 as from 1. What is in between is no
    statement of theirs, and no interval of theirs ends there.

    Parameters
    ----------
    predictions
        Of any family.
    levels
        What was asked for; quantiles that do not have it are refused. None takes the usual ones, and of
        quantiles all that they have, or those nearest to the usual ones where there are more than of these.
    usual
        Levels where nobody says which.

    Examples
    --------
    >>> interval_levels(Quantiles([0.1, 0.5, 0.9], [[1.0, 2.0, 4.0]]), None)
    (array([0.8]), 'those between two of the predicted quantiles, not 50%, 90%, 95%')
    >>> interval_levels(Quantiles([0.1, 0.5, 0.9], [[1.0, 2.0, 4.0]]), [0.5])
    Traceback (most recent call last):
    ValueError: levels: no two of the predicted quantiles make a central interval of 0.5, found intervals ...
    """
    if not isinstance(predictions, Quantiles):
        return check_levels(usual if levels is None else levels, open_interval=True), None
    asked = None if levels is None else check_levels(levels, open_interval=True)
    known = _paired(predictions)
    if not len(known):
        raise ValueError(
            f"the predicted quantiles, of {_listed(predictions.levels)}, have no central interval: no two of "
            "them lie as far from 0 as from 1; predict such (0.05 and 0.95 make intervals of 0.9)"
        )
    if asked is not None:
        absent = asked[_distances(asked, known).min(axis=1) > _SAME]
        if len(absent):
            ends = " and ".join(f"{0.5 + sign * 0.5 * absent[0]:.7g}" for sign in (-1.0, 1.0))
            raise ValueError(
                f"levels: no two of the predicted quantiles make a central interval of {absent[0]:g}, found "
                f"intervals of {_listed(known)}; take these, or predict quantiles at {ends}"
            )
        return asked, None
    nearest = _distances(np.asarray(usual), known)
    if len(known) > len(usual):
        known = known[np.unique(nearest.argmin(axis=1))]
    without = [f"{level:.4g}%" for level in 100.0 * np.asarray(usual)[nearest.min(axis=1) > _SAME]]
    if not without:
        return known, None
    return known, f"those between two of the predicted quantiles, not {', '.join(without)}"


def has_intervals(predictions: Any) -> bool:
    """Whether predictions of numbers have central intervals: between one draw and itself lies nothing.

    Examples
    --------
    >>> has_intervals(Quantiles([0.2, 0.9], [[1.0, 2.0]])), has_intervals(Quantiles([0.2, 0.8], [[1.0, 2.0]]))
    (False, True)
    """
    if isinstance(predictions, Quantiles):
        return len(_paired(predictions)) > 0
    return not (getattr(predictions, "kind", "") == "draws" and int(predictions.values.shape[1]) == 1)


def interval_columns(predictions: Quantiles, level: float) -> tuple[int, int]:
    """Columns of quantiles at the ends of a central interval that they have."""
    low, high = (_distances(np.array([0.5 + sign * 0.5 * level]), predictions.levels) for sign in (-1.0, 1.0))
    return int(low.argmin()), int(high.argmin())


def quantile_columns(predictions: Quantiles, levels: NDArray) -> NDArray:
    """How many of the quantiles lie at or below each level; an error where one of these was not predicted.

    Below level 0 lies nothing, and below level 1 everything.

    Examples
    --------
    >>> pred = Quantiles([0.1, 0.5, 0.9], [[1.0, 2.0, 4.0]])
    >>> quantile_columns(pred, np.array([0.0, 0.5, 1.0]))
    array([0, 2, 4])
    >>> quantile_columns(pred, np.array([0.5, 0.25]))
    Traceback (most recent call last):
    ValueError: levels must be among the predicted ones, 0.1, 0.5, 0.9, found 0.25; levels=None takes them
    """
    known = np.concatenate([[0.0], predictions.levels, [1.0]])
    apart = _distances(levels, known)
    absent = levels[apart.min(axis=1) > _SAME]
    if len(absent):
        raise ValueError(
            f"levels must be among the predicted ones, {_listed(predictions.levels)}, found {absent[0]:g}; "
            "levels=None takes them"
        )
    return apart.argmin(axis=1)


def _paired(predictions: Quantiles) -> NDArray:
    """Levels of the central intervals between two quantiles, in increasing order."""
    levels = np.asarray(predictions.levels)
    below = levels[levels < 0.5][::-1]
    paired = below[_distances(1.0 - below, levels).min(axis=1) <= _SAME]
    return np.array([float(f"{1.0 - 2.0 * level:.7g}") for level in paired])


def _distances(some: NDArray, others: NDArray) -> NDArray:
    return np.abs(some[:, None] - others[None, :])


def _listed(levels: NDArray) -> str:
    return ", ".join(f"{level:.7g}" for level in levels)
