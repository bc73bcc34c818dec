"""Single cases in words: what the model said, and what happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.hypotests.findings.impossible import impossible_rows
from wellcal.measures.round_numbers import percent, short_number
from wellcal.predictions import Bernoulli, Quantiles
from wellcal.reporting.data import Data, ModelData
from wellcal.reporting.pieces import ExampleCase, WorstGroup
from wellcal.witnesses import Witness
from wellcal.witnesses.looking_again import Looked, as_computed
from wellcal.witnesses.result import Group

__all__ = [
    "called_impossible",
    "examples_of",
    "groups_of_all",
    "observed_in_words",
    "predicted_in_words",
    "worst_groups",
]

_EXAMPLES = 3
_TOP = 2  # classes that are told of a case
_COORDINATES = 4  # that are told of a vector
_SHOWN = 40  # characters of an object


def worst_groups(
    found: Witness, data: Data, model: ModelData, rows: NDArray | None
) -> tuple[WorstGroup, ...]:
    """Groups that a witness shows, with examples of cases; `rows` are those of its cases among all."""
    shown = [group for group in found.groups if group.pvalue <= found.alpha]
    told: set[int] = set()
    return tuple(
        _worst(group, found.n_samples, examples_of(found, group, data, model, rows, told)) for group in shown
    )


def groups_of_all(
    found: Witness, looked: Sequence[Looked], data: Data, model: ModelData, rows: NDArray
) -> tuple[WorstGroup, ...]:
    """The same of groups that were looked at again in all cases, and hold there."""
    told: set[int] = set()
    return tuple(
        replace(
            _worst(one.after, len(model), examples_of(found, one.before, data, model, rows, told)),
            interval=one.interval,
            searched=found.n_samples,
        )
        for one in looked
        if one.holds
    )


def _worst(group: Group, n: int, examples: tuple[ExampleCase, ...]) -> WorstGroup:
    return WorstGroup(
        group.statement,
        group.where,
        group.direction,
        group.observed,
        group.expected,
        group.pvalue,
        group.kind,
        group.n_samples,
        group.n_samples / n,
        examples,
        group.n_resamples,
    )


def examples_of(
    found: Witness,
    group: Group,
    data: Data,
    model: ModelData,
    rows: NDArray | None,
    told: set[int],
) -> tuple[ExampleCase, ...]:
    """Those of its cases that show what is said of it, but for those that other groups tell.

    Where something happens too often these are cases in which it did, though it was least expected; where it
    happens too rarely, those in which it did not, though it was most expected. Of cases that are alike the
    ones come first that contribute most to the error.
    """
    parts = np.asarray(to_numpy(found.contributions))[group.cases]
    side = 1.0 if group.observed > group.expected else -1.0
    off = np.zeros(len(parts)) if group.deviations is None else np.round(side * group.deviations, 9)
    ordered: list[int] = group.cases[np.lexsort((-parts, -off))].tolist()
    new = [case for case in ordered if case not in told]
    chosen = np.array((new or ordered)[:_EXAMPLES])
    told.update(chosen.tolist())
    places = chosen if rows is None else rows[chosen]
    about = None if group.rule is None else group.rule.label
    return tuple(_example(int(row), data.label(int(row)), model, about) for row in places)


def _example(row: int, label: str | None, model: ModelData, about: int | None = None) -> ExampleCase:
    said = predicted_in_words(model.predictions[row], about)
    return ExampleCase(row, label, said, observed_in_words(model.targets[row]))


def called_impossible(
    model: ModelData, label: Callable[[int], str | None]
) -> tuple[tuple[ExampleCase, ...], int]:
    """Some cases that had no probability to speak of for what happened, and how many more there are."""
    targets = as_computed(model.targets, model.predictions)
    rows = impossible_rows(targets, model.predictions).tolist()
    told = tuple(_example(row, label(row), model, int(targets[row])) for row in rows[:_EXAMPLES])
    return told, len(rows) - len(told)


def predicted_in_words(one: Any, about: int | None = None) -> str:
    """What a prediction says, a batch of one; first of the class `about` which something is said, if any.

    Examples
    --------
    >>> import wellcal as wc
    >>> predicted_in_words(wc.Categorical(np.array([[0.1, 0.7, 0.2]]), classes=["ant", "bee", "fly"]))
    '70% for bee, 20% for fly'
    >>> predicted_in_words(wc.Categorical(np.array([[0.1, 0.7, 0.2]]), classes=["ant", "bee", "fly"]), 0)
    '10% for ant, 70% for bee'
    >>> predicted_in_words(wc.Normal([3.0], [1.0]))
    'median 3, 90% between 1.36 and 4.64'
    >>> predicted_in_words(wc.DiagonalNormal([[1.0, 2.5]], [[1.0, 1.0]]))
    'mean (1, 2.5)'
    """
    if one.kind == "classes" and not isinstance(one, Quantiles):
        names = one.labels().tolist()
        probs = np.asarray(to_numpy(one.class_probs()))[0]
        first = [] if about is None else [about]
        first += [k for k in np.argsort(-probs, kind="stable").tolist() if k != about]
        order = [1] if isinstance(one, Bernoulli) else first[:_TOP]
        return ", ".join(
            f"{percent(float(probs[k]), digits=2)} for {observed_in_words(names[k])}" for k in order
        )
    if isinstance(one, Quantiles):
        levels = np.asarray(one.levels, dtype=float)
        values = np.asarray(to_numpy(one.values), dtype=float)[0]
        ends = sorted({0, int(np.argmin(np.abs(levels - 0.5))), len(levels) - 1})
        return ", ".join(f"{100 * levels[k]:.4g}% below {short_number(values[k])}" for k in ends)
    if one.event_shape == () and one.supports("quantile"):
        low, middle, high = (float(to_numpy(one.quantile(level))[0]) for level in (0.05, 0.5, 0.95))
        return f"median {short_number(middle)}, 90% between {short_number(low)} and {short_number(high)}"
    if one.supports("mean"):
        return f"mean {observed_in_words(np.asarray(to_numpy(one.mean()))[0])}"
    return repr(one)


def observed_in_words(target: Any) -> str:
    """An outcome.

    Examples
    --------
    >>> [observed_in_words(x) for x in (np.float64(2.34567), np.array([1.0, 2.0]), "cat")]
    ['2.35', '(1, 2)', 'cat']
    """
    plain = cast("Any", target).tolist() if isinstance(target, (np.generic, np.ndarray)) else target
    if isinstance(plain, (bool, int, str)):
        return str(plain)
    if isinstance(plain, float):
        return f"{plain:.0f}" if plain.is_integer() and abs(plain) < 1e6 else short_number(plain)
    if isinstance(plain, list):
        numbers = cast("list[Any]", plain)
        parts = [observed_in_words(part) for part in numbers[:_COORDINATES]]
        return f"({', '.join(parts)}{', ...' if len(numbers) > _COORDINATES else ''})"
    text = repr(plain)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
