"""The space that the targets of a batch live in, and whether those of two batches can be compared at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.predictions.base import Predictions
from wellcal.predictions.discrete import Bernoulli, Categorical
from wellcal.predictions.mixture import Mixture
from wellcal.predictions.quantiles import Quantiles


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
        if batch is first:
            continue
        if not all(_meet(a, b) for a in _parts(first) for b in _parts(batch)):
            found = " and ".join(
                f"{called} ({type(of).__name__}) predicts {_described(of)}"
                for called, of in ((names[0], first), (name, batch))
            )
            remedy = _remedy([*_parts(first), *_parts(batch)])
            raise ValueError(f"{names[0]} and {name} must predict targets of one kind: {found}{remedy}")


def _remedy(parts: list[Predictions]) -> str:
    if any(map(_is_nominal, parts)):
        classes = all(isinstance(part, (Bernoulli, Categorical)) for part in parts)
        return "; give both the same classes" if classes else "; give classes numbers by support="
    return "; give quantiles at the same levels" if all(isinstance(p, Quantiles) for p in parts) else ""


def _parts(batch: Predictions) -> Sequence[Predictions]:
    return batch.components if isinstance(batch, Mixture) else (batch,)


def _meet(a: Any, b: Any) -> bool:
    if a.event_shape != b.event_shape:
        return False
    if isinstance(a, Quantiles) or isinstance(b, Quantiles):
        return isinstance(a, Quantiles) and isinstance(b, Quantiles) and np.array_equal(a.levels, b.levels)
    if "objects" in (a.target_kind, b.target_kind):
        return all(part.target_kind == "objects" or _has_names(part) for part in (a, b))
    if _is_nominal(a) or _is_nominal(b):
        classes = (Bernoulli, Categorical)
        return isinstance(a, classes) and isinstance(b, classes) and _same_set(a.labels(), b.labels())
    return True


def _is_nominal(part: Predictions) -> bool:
    """Whether targets are classes that no numbers were given for."""
    return isinstance(part, Categorical) and part.support is None


def _has_names(part: Predictions) -> bool:
    """Whether targets are classes whose names are not numbers."""
    return isinstance(part, Categorical) and part.support_values() is None


def _same_set(a: NDArray, b: NDArray) -> bool:
    return a.shape == b.shape and set(a.tolist()) == set(b.tolist())


def _described(batch: Predictions) -> str:
    part = _parts(batch)[0]
    if isinstance(part, Quantiles):
        return f"bins between quantiles at {len(part.levels)} levels"
    if part.target_kind == "objects":
        return "objects"
    if isinstance(part, Categorical) and part.support is None:
        labels = part.labels().tolist()
        return f"the classes {', '.join(map(repr, labels[:6]))}{', ...' if len(labels) > 6 else ''}"
    return f"vectors of length {part.event_shape[0]}" if part.event_shape else "numbers"
