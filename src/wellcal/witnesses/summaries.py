"""What groups of cases are made of: summaries of predictions, and segments.

Groups are made from predictions, or given by the user, and never look at targets: whatever is found in
them by chance is found as often in targets that are drawn from the predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from wellcal._arrays.group_labels import label_of_each, sortable
from wellcal._arrays.namespaces import NDArray, attribute, has, to_numpy
from wellcal.expectations.decompose import targets_are_indices
from wellcal.predictions import Predictions, Quantiles, Samples

MOST_CLASSES = 20
"""Classes that are looked at one by one: those with the largest predicted probability in total."""

_MOST_COORDINATES = 5
_MOST_SEGMENTS = 1000


@dataclass(frozen=True)
class Cases:
    """A group of cases.

    Attributes
    ----------
    where
        What they have in common, such as "where the predicted mean is above 4".
    mask
        Which they are, ``(n,)``.
    kind
        "all", "segment", "split" (above or below a number), "interval" or "box".
    """

    where: str
    mask: NDArray
    kind: str


@dataclass(frozen=True)
class Summary:
    """A number for each prediction, ``(n,)``, and what to call it."""

    name: str
    values: NDArray


def summaries_of(predictions: Predictions) -> list[Summary]:
    """Summaries that groups for directions of all kinds are made of; classes have those of their own."""
    family: Any = predictions
    if targets_are_indices(predictions) or (isinstance(predictions, Samples) and predictions.holds_objects):
        return []
    if isinstance(predictions, Quantiles):
        return _of_quantiles(predictions)
    with np.errstate(invalid="ignore", over="ignore"):
        mean = np.asarray(to_numpy(family.mean()), dtype=np.float64)
        spread = np.sqrt(np.asarray(to_numpy(family.variance()), dtype=np.float64))
    if predictions.event_shape == ():
        if not (np.isfinite(mean).all() and np.isfinite(spread).all()):
            median = np.asarray(to_numpy(family.quantile(0.5)))
            return [
                Summary("the predicted median", median),
                Summary(
                    "the predicted interquartile range", np.asarray(to_numpy(family.interquartile_range()))
                ),
            ]
        return [
            Summary("the predicted mean", mean),
            Summary("the predicted standard deviation", spread),
        ]
    found = [
        Summary(f"the predicted mean of coordinate {c + 1}", mean[:, c])
        for c in range(min(mean.shape[1], _MOST_COORDINATES))
    ]
    return [*found, Summary("the predicted standard deviation", np.sqrt(np.mean(spread**2, axis=1)))]


def _of_quantiles(predictions: Quantiles) -> list[Summary]:
    levels = predictions.levels
    middle = int(np.argmin(np.abs(levels - 0.5)))
    found = [Summary(f"the predicted {levels[middle]:.0%} quantile", predictions.values[:, middle])]
    if len(levels) > 1:
        width = predictions.values[:, -1] - predictions.values[:, 0]
        found.append(
            Summary(f"the distance from the {levels[0]:.0%} to the {levels[-1]:.0%} quantile", width)
        )
    return found


# -- segments --------------------------------------------------------------------------------


def segments_of(
    segments: Any, n: int, in_order: Callable[[Any, str], Any] = lambda column, name: column
) -> list[Cases]:
    """Segments that a user gave, as groups of cases.

    A list, array or column of labels; or a dictionary, or a data frame, of several such columns by name.
    `in_order` brings a column, with its name in errors, into the order of the cases.
    """
    if segments is None:
        return []
    named = _columns(segments)
    found: list[Cases] = []
    for name, column in named:
        argument = "segments" if name is None else f"segments[{name!r}]"
        labels = segment_labels(in_order(column, argument), argument, n)
        distinct, first, codes = np.unique(labels, return_index=True, return_inverse=True)
        if len(distinct) > _MOST_SEGMENTS:
            raise ValueError(
                f"{argument} has {len(distinct)} different labels for {n} cases; give at most "
                f"{_MOST_SEGMENTS}, for example classes of a number instead of the number"
            )
        for k in np.argsort(first):
            where = segment_in_words(name, labels[first[k]])
            found.append(Cases(where, codes == k, "segment"))
    return found


def _columns(segments: Any) -> list[tuple[Any, Any]]:
    if isinstance(segments, str):
        raise TypeError(f"segments must be one label for each case, found the one string {segments!r}")
    if isinstance(segments, Mapping):
        return list(cast("Mapping[Any, Any]", segments).items())
    names: Any = attribute(segments, "columns")
    if names is not None and has(segments, "__getitem__"):  # a data frame of any library
        return [(name, segments[name]) for name in names]
    name = attribute(segments, "name")  # of a column of a data frame
    return [(name if isinstance(name, str) and name else None, segments)]


def segment_labels(column: Any, argument: str, n: int) -> NDArray:
    """Labels or numbers ``(n,)`` that can be sorted."""
    remedy = 'give such cases a label of their own, such as "unknown", or leave them out'
    return sortable(label_of_each(column, argument, n, remedy))


def segment_in_words(name: Any, label: Any) -> str:
    """Cases of a segment, as a person would name them.

    Examples
    --------
    >>> segment_in_words("region", "North"), segment_in_words("late", np.False_), segment_in_words(None, "b")
    ('for region = North', 'where not late', "in segment 'b'")
    """
    plain = cast("Any", label).item() if isinstance(label, np.generic) else label
    if name is None:
        return f"in segment {plain!r}"
    if isinstance(plain, bool):
        return f"where {name}" if plain else f"where not {name}"
    return f"for {name} = {plain:g}" if isinstance(plain, float) else f"for {name} = {plain}"
