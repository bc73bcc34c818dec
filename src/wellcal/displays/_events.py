"""Events of predictions of classes: what is counted as having happened, and with which probability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.checks import one_of
from wellcal._arrays.namespaces import NDArray, stop_gradient, to_numpy, widen
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
    if predictions.kind != "classes":
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
    return list(_grades(index, probs, names, in_order(batch), grade))


def _named(name: Any, what: str) -> str:
    """A class in words: numbers say what they are."""
    return name if isinstance(name, str) else f"{what} {_plain(name)}"


def _usual(batch: Any, classes: int) -> str | None:
    """What is asked of predictions where nothing is said."""
    if classes == 2:
        return None
    return "cumulative" if getattr(batch, "support", None) is not None else "confidence"


def in_order(batch: Any) -> NDArray:
    """Indices of classes from the lowest grade to the highest: by the numbers that they stand for.

    Columns are in any order: scikit-learn has names by their letters.

    Examples
    --------
    >>> import wellcal as wc
    >>> in_order(wc.Categorical([[0.2, 0.3, 0.5]], classes=("high", "low", "mid"), support=(3, 1, 2)))
    array([1, 2, 0])
    """
    values = batch.support_values()
    if values is None:
        return np.arange(len(batch.labels()))
    if values.ndim > 1:
        raise ValueError("reduce: classes whose support are vectors have no order; take 'classwise'")
    return np.argsort(values, kind="stable")


def _grades(index: NDArray, probs: NDArray, names: list[Any], order: NDArray, grade: Any) -> Iterator[Event]:
    """At or above each grade but the lowest, or the given one."""
    ranks = np.argsort(order)
    # Sums from above, so that rare high grades keep their precision.
    upper = np.clip(np.cumsum(probs[:, order][:, ::-1], axis=1)[:, ::-1], 0.0, 1.0)
    wanted = range(1, len(names)) if grade is None else [int(ranks[_position(grade, names, "grade")])]
    for k in wanted:
        yield Event(f"{_plain(names[order[k]])} or above", (ranks[index] >= k).astype(float), upper[:, k])


def _plain(name: Any) -> str:
    return f"{name:g}" if isinstance(name, float) else f"{name}"


def _position(wanted: Any, names: list[Any], argument: str) -> int:
    for k, name in enumerate(names):
        if bool(np.all(name == wanted)):
            return k
    known = ", ".join(map(repr, names[:_MOST_SHOWN])) + (", ..." if len(names) > _MOST_SHOWN else "")
    raise ValueError(f"{argument} must be one of the classes, {known}, found {wanted!r}")
