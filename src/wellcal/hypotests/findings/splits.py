"""Groups of cases that show a trend best, named by a round number of the predicted centre or spread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.round_numbers import round_between

_LEAST = 10  # cases on either side
_PLACES, _ROOM = (0.25, 0.5, 0.75), 0.04  # shares at which cases are split, and how far a round number may be


class Summary(NamedTuple):
    """A number of each prediction, and what it is called."""

    name: str
    values: NDArray


class Split(NamedTuple):
    """Cases inside of a group, and names of the group and of its complement."""

    inside: NDArray
    name: str
    complement: str


def each_split(summaries: list[Summary]) -> Iterator[Split]:
    """Groups above a number, and between two."""
    for summary in summaries:
        cuts = [_cut(summary.values, place) for place in _PLACES]
        for cut in sorted({cut for cut in cuts if cut is not None}):
            yield from _kept(summary.values > cut, summary.name, f"above {cut:g}", f"below {cut:g}")
        low, high = cuts[0], cuts[-1]
        if low is not None and high is not None and low < high:
            inside = (summary.values > low) & (summary.values <= high)
            between = f"between {low:g} and {high:g}"
            yield from _kept(inside, summary.name, between, f"not {between}")


def _kept(inside: NDArray, name: str, where: str, elsewhere: str) -> Iterator[Split]:
    if _LEAST <= np.count_nonzero(inside) <= len(inside) - _LEAST:
        yield Split(inside, f"where the {name} is {where}", f"where the {name} is {elsewhere}")


def _cut(values: NDArray, place: float) -> float | None:
    """A round number about a quantile; None where values do not differ there."""
    low, high = np.quantile(values, [place - _ROOM, place + _ROOM])
    return round_between(float(low), float(high)) if low < high else None


class Side(NamedTuple):
    """A quantity in some cases: estimate, standard error, and what it is if the model is calibrated."""

    value: float
    error: float

    @property
    def off(self) -> float:
        """How far it is from zero, in standard errors."""
        return abs(self.value) / self.error if self.error > 0.0 else 0.0


class Contrast(NamedTuple):
    """A split and a quantity on both of its sides."""

    split: Split
    inside: Side
    outside: Side

    @property
    def difference(self) -> Side:
        """The quantity inside less that outside."""
        return Side(
            self.inside.value - self.outside.value, float(np.hypot(self.inside.error, self.outside.error))
        )


def mean_of(values: NDArray) -> Side:
    """A mean, and its standard error."""
    return Side(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


def log_spread_of(values: NDArray) -> Side:
    """The logarithm of the root mean square, and its standard error."""
    squares = values**2
    mean = max(float(squares.mean()), 1e-8)
    return Side(0.5 * float(np.log(mean)), 0.5 * float(squares.std(ddof=1) / mean / np.sqrt(len(values))))
