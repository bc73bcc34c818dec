"""Segments and groups that are the target itself: cases must not be divided by their outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import is_array, to_numpy

SEGMENTS = (
    "cases that are cut by their outcome differ from their predictions however good these are, so that every "
    "model would be rejected: cut by what was known before, such as an input or the prediction"
)
GROUPS = (
    "clusters are cases that depend on each other, such as those of one person, and the outcome does not say "
    "which do: give the label of who or what a case belongs to"
)
"""Reasons for refusing the target."""


def refuse_targets(column: Any, argument: str, targets: Any, why: str = SEGMENTS) -> None:
    """Raise if a column equals the targets, or one coordinate of them.

    Parameters
    ----------
    column
        One value for each case, in the order of the targets.
    argument
        Name of the column in the error.
    targets
        As users give them, ``(n,)`` or ``(n, d)``.
    why
        Reason for the refusal.

    Examples
    --------
    >>> refuse_targets(["N", "S"], "segments", [0, 1])
    >>> refuse_targets(["no", "yes"], "segments", np.array(["no", "yes"]))
    Traceback (most recent call last):
    ValueError: segments is the target itself, and cases that are cut by their outcome differ from their ...
    """
    if is_same(column, targets):
        raise ValueError(f"{argument} is the target itself, and {why}")


def without_targets(in_order: Callable[[Any, str], Any], targets: Any) -> Callable[[Any, str], Any]:
    """Wrap a function that orders a column of segments, and refuse the targets in it."""

    def checked(column: Any, argument: str) -> Any:
        ordered = in_order(column, argument)
        refuse_targets(ordered, argument, targets)
        return ordered

    return checked


def is_same(column: Any, targets: Any) -> bool:
    """True if two columns are equal in all cases and not constant.

    Examples
    --------
    >>> is_same([0, 1], np.array([0.0, 1.0])), is_same([0, 1], [1, 0]), is_same([1, 1], [1, 1])
    (True, False, False)
    """
    try:
        values, y = (to_numpy(x) if is_array(x) else np.asarray(x) for x in (column, targets))
        if values.ndim != 1 or y.ndim not in (1, 2):
            return False
        coordinates = y[None] if y.ndim == 1 else y.T
        return any(np.array_equal(values, one) and bool((one != one[0]).any()) for one in coordinates)
    except Exception:  # a user's object may refuse to be read or compared; its own check says so
        return False
