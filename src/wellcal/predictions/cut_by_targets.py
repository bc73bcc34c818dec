"""Columns beside the targets that are the targets themselves: cases must not be cut by their outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, is_array, to_numpy
from wellcal.columns.frames import is_frame

SEGMENTS = (
    "cases that are cut by their outcome differ from their predictions however good these are, so that every "
    "model would be rejected: cut by what was known before, such as an input or the prediction"
)
GROUPS = (
    "clusters are cases that depend on each other, such as those of one person, and the outcome does not say "
    "which do: give the label of who or what a case belongs to"
)
"""Why the targets are refused."""

_FIRST = 64  # cases that tell most columns from the targets


def refuse_targets(column: Any, argument: str, targets: Any, why: str = SEGMENTS) -> None:
    """Raise an error where a column has the value of the target for each case, or of one coordinate of it.

    Parameters
    ----------
    column
        What was given for each case, in the order of the targets.
    argument
        What it is called.
    targets
        As users give them, ``(n,)`` or ``(n, d)``.
    why
        What is wrong with that.

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
    """The same function that brings a column of segments into order, which refuses the targets."""

    def checked(column: Any, argument: str) -> Any:
        found = in_order(column, argument)
        refuse_targets(found, argument, targets)
        return found

    return checked


def is_same(column: Any, targets: Any) -> bool:
    """Whether two columns are the same for each case, and not the same for all of them.

    Examples
    --------
    >>> is_same([0, 1], np.array([0.0, 1.0])), is_same([0, 1], [1, 0]), is_same([1, 1], [1, 1])
    (True, False, False)
    """
    values, y = _plain(column), _plain(targets)
    if values is None or y is None or values.ndim != 1 or y.ndim not in (1, 2) or len(values) != len(y):
        return False
    for one in (y,) if y.ndim == 1 else y.T:
        if _equal(values[:_FIRST], one[:_FIRST]) and _equal(values, one):
            return not _equal(one, one[[0] * len(one)])
    return False


def _equal(a: NDArray, b: NDArray) -> bool:
    if a.dtype.kind in "biuf" and b.dtype.kind in "biuf":
        return np.array_equal(a, b)
    try:
        return bool(a.tolist() == b.tolist())
    except Exception:  # of a user's objects, which may have no equality
        return False


def _plain(x: Any) -> NDArray | None:
    """In NumPy; None where it is nothing of the kind, which others say."""
    try:
        if is_frame(x):
            return None
        return to_numpy(x) if is_array(x) else np.asarray(x)
    except Exception:  # whatever a user's object does: who reads it says what is wrong
        return None
