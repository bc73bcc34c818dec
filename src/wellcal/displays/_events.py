"""Events of predictions of classes: what is counted as having happened, and with which probability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.checks import one_of
from wellcal._arrays.namespaces import NDArray, stop_gradient, to_numpy, widen
from wellcal.expectations.decompose import targets_are_indices
from wellcal.measures._confidence import confidence
from wellcal.predictions.base import check_inputs

REDUCTIONS = ("confidence", "classwise", "cumulative")
_MOST_SHOWN = 6


@dataclass(frozen=True)
class Event:
    """Whether something happened, 0 or 1, and its probabilities, both ``(n,)``; and what it is, in words."""

    words: str
    hits: NDArray
    probs: NDArray


def events_of(y: object, pred: object, reduce: str | None, label: Any, grade: Any) -> list[Event]:
    """The events that are asked for.

    Examples
    --------
    >>> y, pred = [0, 2], np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]])
    >>> [event.words for event in events_of(y, pred, "cumulative", None, None)]
    ['1 or above', '2 or above']
    >>> events_of(y, pred, None, None, None)[0].probs
    array([0.7, 0.6])
    """
    if sum(x is not None for x in (reduce, label, grade)) > 1:
        raise ValueError("give one of reduce, label and grade: each says what counts as an event")
    if reduce is not None:
        one_of(reduce, "value of reduce", REDUCTIONS, or_else="or None")
    found, predictions = check_inputs(y, pred)
    if not targets_are_indices(predictions):
        raise TypeError(
            f"pred: a reliability diagram is for predictions of classes, found {type(predictions).__name__}; "
            "PITDisplay is for numbers, counts and samples"
        )
    batch: Any = predictions
    names: list[Any] = np.asarray(batch.labels()).tolist()
    index = to_numpy(found)
    probs = np.asarray(to_numpy(stop_gradient(widen(batch.class_probs()))), dtype=np.float64)
    if label is not None:
        k = _position(label, names, "label")
        return [Event(_named(names[k], "class"), (index == k).astype(float), probs[:, k])]
    kind = "cumulative" if grade is not None else reduce or _usual(batch, len(names))
    if kind is None:
        return [Event(_named(names[1], "outcome"), (index == 1).astype(float), probs[:, 1])]
    if kind == "confidence":
        correct, top = confidence(y, predictions)
        p = np.asarray(to_numpy(stop_gradient(widen(top.probs))), dtype=np.float64)
        return [Event("the most probable class was right", to_numpy(correct).astype(float), p)]
    if kind == "classwise":
        return [
            Event(_named(names[k], "class"), (index == k).astype(float), probs[:, k])
            for k in range(len(names))
        ]
    return list(_grades(index, probs, names, grade))


def _named(name: Any, what: str) -> str:
    """A class in words: numbers say what they are."""
    return name if isinstance(name, str) else f"{what} {_plain(name)}"


def _usual(batch: Any, classes: int) -> str | None:
    """What is asked of predictions where nothing is said."""
    if classes == 2:
        return None
    return "cumulative" if getattr(batch, "support", None) is not None else "confidence"


def _grades(index: NDArray, probs: NDArray, names: list[Any], grade: Any) -> Iterator[Event]:
    """At or above each grade but the lowest, or the given one."""
    if any(isinstance(name, list) for name in names):
        raise ValueError("reduce: classes whose support are vectors have no order; take 'classwise'")
    order = np.argsort(np.array(names), kind="stable") if _numbers(names) else np.arange(len(names))
    ranks = np.argsort(order)
    # Sums from above, so that rare high grades keep their precision.
    upper = np.clip(np.cumsum(probs[:, order][:, ::-1], axis=1)[:, ::-1], 0.0, 1.0)
    wanted = range(1, len(names)) if grade is None else [int(ranks[_position(grade, names, "grade")])]
    for k in wanted:
        yield Event(f"{_plain(names[order[k]])} or above", (ranks[index] >= k).astype(float), upper[:, k])


def _numbers(names: list[Any]) -> bool:
    return all(isinstance(name, (int, float)) for name in names)


def _plain(name: Any) -> str:
    return f"{name:g}" if isinstance(name, float) else f"{name}"


def _position(wanted: Any, names: list[Any], argument: str) -> int:
    for k, name in enumerate(names):
        if bool(np.all(name == wanted)):
            return k
    known = ", ".join(map(repr, names[:_MOST_SHOWN])) + (", ..." if len(names) > _MOST_SHOWN else "")
    raise ValueError(f"{argument} must be one of the classes, {known}, found {wanted!r}")
