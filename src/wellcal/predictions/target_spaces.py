"""The space that the targets of a batch live in, and whether those of two batches can be compared at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wellcal.predictions.base import Predictions
from wellcal.predictions.discrete import Categorical


def check_one_space(batches: Sequence[Predictions], names: Sequence[str]) -> None:
    """Reject batches whose targets live in different spaces: no kernel compares those.

    Numbers of all kinds (counts, classes with a support, 0 and 1) meet numbers, and vectors meet vectors of
    the same length. Classes without numbers meet the same classes, in any order; bins between quantiles those
    of the same levels; objects meet objects and names of classes.

    Parameters
    ----------
    batches
        Batches of any families.
    names
        What errors call each of them.

    Examples
    --------
    >>> from wellcal.predictions import DiagonalNormal, Normal
    >>> check_one_space([Normal(np.zeros(2), 1.0), DiagonalNormal(np.zeros((3, 2)), 1.0)], ["P", "Q"])
    Traceback (most recent call last):
    ValueError: P and Q must predict targets of one kind: P (Normal) predicts numbers and Q (DiagonalNormal) \
predicts vectors of length 2
    """
    first = batches[0]
    for name, batch in zip(names[1:], batches[1:], strict=True):
        if batch is not first and not all(_meet(a, b) for a in first.parts for b in batch.parts):
            found = " and ".join(
                f"{called} ({type(of).__name__}) predicts {_described(of.parts[0])}"
                for called, of in ((names[0], first), (name, batch))
            )
            remedy = _remedy([*first.parts, *batch.parts])
            raise ValueError(f"{names[0]} and {name} must predict targets of one kind: {found}{remedy}")


def _remedy(parts: list[Predictions]) -> str:
    kinds = {part.kind for part in parts}
    if any(map(_is_nominal, parts)):
        return (
            "; give both the same classes" if kinds == {"classes"} else "; give classes numbers by support="
        )
    return "; give quantiles at the same levels" if kinds == {"quantiles"} else ""


def _meet(a: Any, b: Any) -> bool:
    """True if targets of two families, which are no mixtures, can be compared."""
    if a.event_shape != b.event_shape:
        return False
    kinds = a.kind, b.kind
    if "quantiles" in kinds:
        return kinds == ("quantiles", "quantiles") and np.array_equal(a.levels, b.levels)
    if "objects" in (a.target_kind, b.target_kind):  # which meet names of classes
        return all(
            part.target_kind == "objects" or (part.kind == "classes" and part.support_values() is None)
            for part in (a, b)
        )
    if _is_nominal(a) or _is_nominal(b):
        return kinds == ("classes", "classes") and set(a.labels().tolist()) == set(b.labels().tolist())
    return True


def _is_nominal(part: Any) -> bool:
    """True if targets are classes that no numbers were given for."""
    return isinstance(part, Categorical) and part.support is None


def _described(part: Any) -> str:
    if part.kind == "quantiles":
        return f"bins between quantiles at {len(part.levels)} levels"
    if part.target_kind == "objects":
        return "objects"
    if _is_nominal(part):
        labels = part.labels().tolist()
        return f"the classes {', '.join(map(repr, labels[:6]))}{', ...' if len(labels) > 6 else ''}"
    return f"vectors of length {part.event_shape[0]}" if part.event_shape else "numbers"
