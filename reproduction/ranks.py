"""Whether published numbers could have come from our code: their ranks among repeats of our own.

The published experiment and our repeats of it are, if we do what the authors did, exchangeable: nothing
tells one from the others. So a statistic that treats them alike has, for the published one, every rank among
them with the same probability, whatever the distribution of the numbers and however they depend on each
other. Two such tests are made for each experiment, each at half of `ALPHA`:

- of each cell: its distance from the others, in their standard deviations, is ranked among the largest
  distance over all cells of each repeat, so that all cells together raise a false alarm with that
  probability at most;
- of all cells together: x' (S + I)^-1 x of the distances x, with S their correlations. Many small shifts, and
  combinations that repeats do not have, show there. It is taken over all cells and over each group of them
  (the cells of one method, whose mistakes they share), each in standard deviations over repeats; the largest
  of these is ranked among repeats.

A cell whose bounds cover every possible value cannot fail, and is left out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from reproduction.tasks import FloatArray

ALPHA = 0.02
"""Probability of a false alarm in an experiment: half of it for cells, half for the pooled test."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Scale:
    """Where distances are measured, so that repeats spread about evenly.

    Attributes
    ----------
    there, back
        To the scale, and from it.
    smallest, largest
        Possible values of the number itself.
    floor
        Smallest standard deviation on the scale: what differs by less is not worth a word. It keeps the first
        of two hundred repeats with a single rejection from being infinitely far from the others.
    """

    there: Callable[[Any], Any]
    back: Callable[[Any], Any]
    smallest: float = -math.inf
    largest: float = math.inf
    floor: float = 0.0


LINEAR = Scale(np.asarray, np.asarray)
LOGARITHM = Scale(np.log, lambda at: np.exp(np.clip(at, -700.0, 700.0)), smallest=0.0)


def asinh_scale(width: float) -> Scale:
    """Linear for values below `width`, logarithmic above it."""
    return Scale(lambda x: np.arcsinh(x / width), lambda at: width * np.sinh(np.clip(at, -700.0, 700.0)))


def proportion_scale(count: int) -> Scale:
    """For proportions of `count`: Anscombe's angle.

    Their standard deviation is about 1 / (2 sqrt(count)) there. The floor is 0.7 times that: a proportion
    that is the same in all repeats but one is no surprise there.
    """
    total = count + 0.75

    def back(at: Any) -> Any:
        return np.clip((np.sin(np.clip(at, 0.0, 0.5 * np.pi)) ** 2 * total - 0.375) / count, 0.0, 1.0)

    return Scale(
        lambda x: np.arcsin(np.sqrt((np.asarray(x) * count + 0.375) / total)),
        back,
        0.0,
        1.0,
        0.35 / math.sqrt(count),
    )


@dataclass(frozen=True)
class Repeated:
    """A published number, and the same number in each of our repeats.

    Attributes
    ----------
    published
        The published number.
    repeats
        Ours, ``(R,)``.
    scale
        On which they are compared.
    estimate
        Our number to show beside it, if that is not the mean of the repeats.
    """

    published: float
    repeats: FloatArray
    scale: Scale = LINEAR
    estimate: float | None = None

    @property
    def ours(self) -> float:
        """Our number."""
        return float(np.mean(self.repeats)) if self.estimate is None else self.estimate


@dataclass(frozen=True)
class Placed:
    """Where a published number lies among ours.

    Attributes
    ----------
    published, ours
        The published number, and ours.
    below, count
        Repeats below it (half of those that are equal), of how many.
    low, high
        Where it would have been accepted, all cells considered.
    corrected
        Its p-value, corrected for the number of cells; nan where it is left out.
    left_out
        Whether its bounds cover all possible values, so that it could not have failed.
    matched
        Whether it is accepted.
    """

    published: float
    ours: float
    below: float
    count: int
    low: float
    high: float
    corrected: float
    left_out: bool
    matched: bool

    @property
    def rank_pvalue(self) -> float:
        """The two-sided p-value of its rank, by itself."""
        beyond = min(self.below, self.count - self.below)
        return min(1.0, 2.0 * (beyond + 1.0) / (self.count + 1.0))


@dataclass(frozen=True)
class Ranking(Generic[Key]):
    """Published numbers of an experiment among our repeats.

    Attributes
    ----------
    cells
        Each of them.
    pooled
        p-value of the test of all cells together, without those left out and those set aside.
    set_aside
        Cells that the pooled test was told to do without.
    """

    cells: dict[Key, Placed]
    pooled: float
    set_aside: frozenset[Key]

    @property
    def compared(self) -> dict[Key, Placed]:
        """Cells that could have failed."""
        return {key: cell for key, cell in self.cells.items() if not cell.left_out}

    @property
    def left_out(self) -> list[Key]:
        """Cells that could not."""
        return [key for key, cell in self.cells.items() if cell.left_out]

    @property
    def missed(self) -> list[Key]:
        """Cells that did."""
        return [key for key, cell in self.cells.items() if not cell.matched]

    @property
    def pooled_matched(self) -> bool:
        """Whether the pooled test accepts."""
        return self.pooled > 0.5 * ALPHA

    @property
    def matched(self) -> bool:
        """Whether nothing was found."""
        return self.pooled_matched and not self.missed


def rank(
    cells: Mapping[Key, Repeated],
    *,
    group: Callable[[Key], Hashable] | None = None,
    set_aside: frozenset[Key] = frozenset(),
) -> Ranking[Key]:
    """Place published numbers among repeats.

    Parameters
    ----------
    cells
        Numbers by name; repeat r of all cells belongs together.
    group
        To which group a cell belongs; None: all are one.
    set_aside
        Cells that are placed, but are no part of the pooled test.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> repeats = rng.normal(size=(199, 2))
    >>> found = rank({"a": Repeated(0.3, repeats[:, 0]), "b": Repeated(9.0, repeats[:, 1])})
    >>> found.missed, found.pooled
    (['b'], 0.005)
    """
    keys = list(cells)
    rows = np.stack([_column(cell) for cell in cells.values()], axis=1)
    floors = np.array([cell.scale.floor for cell in cells.values()])
    count = len(rows) - 1
    if (count + 1) * 0.5 * ALPHA < 1.0:
        raise ValueError(f"{count} repeats cannot show anything at level {0.5 * ALPHA:g}: take 99 or more")
    kept = ~_covers_all(cells, rows, floors)
    distances = _distances(rows, floors)
    largest = np.max(distances[:, kept], axis=1, initial=0.0)
    limit = _limit(largest[1:], count)
    placed: dict[Key, Placed] = {}
    for index, (key, cell) in enumerate(cells.items()):
        left_out, distance = not kept[index], distances[0, index]
        others = rows[1:, index]
        half = limit * max(float(np.std(others, ddof=1)), floors[index])
        corrected = (1.0 + float(np.sum(largest[1:] >= distance))) / (count + 1.0)
        placed[key] = Placed(
            cell.published,
            cell.ours,
            float(np.sum(others < rows[0, index]) + 0.5 * np.sum(others == rows[0, index])),
            count,
            float(cell.scale.back(others.mean() - half)),
            float(cell.scale.back(others.mean() + half)),
            math.nan if left_out else corrected,
            left_out,
            left_out or corrected > 0.5 * ALPHA,
        )
    pooled = [index for index, key in enumerate(keys) if kept[index] and key not in set_aside]
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for place, index in enumerate(pooled):
        groups[None if group is None else group(keys[index])].append(place)
    return Ranking(placed, _pooled_pvalue(rows[:, pooled], floors[pooled], list(groups.values())), set_aside)


def _column(cell: Repeated) -> FloatArray:
    """The published number, then ours, on the scale of the cell."""
    return np.asarray(cell.scale.there(np.concatenate([[cell.published], cell.repeats])), float)


def _limit(largest: FloatArray, count: int) -> float:
    """Distance up to which a cell is accepted, from the largest distance of each repeat."""
    allowed = math.floor(0.5 * ALPHA * (count + 1.0) + 1e-9)  # the published one is among them
    return float(np.sort(largest)[-allowed])


def _distances(rows: FloatArray, floors: FloatArray) -> FloatArray:
    """Distance of each row from the mean of the others, in their standard deviations."""
    n = len(rows)
    gaps = (rows - rows.mean(axis=0)) * (n / (n - 1.0))
    total = np.sum((rows - rows.mean(axis=0)) ** 2, axis=0)
    variances = np.maximum(total - gaps**2 * (n - 1.0) / n, 0.0) / (n - 2.0)
    # What is left of a variance after such a difference may be rounding.
    deviations = np.sqrt(np.where(variances > 1e-13 * total, variances, 0.0))
    deviations = np.maximum(deviations, floors)
    gaps = np.where(np.abs(gaps) > 1e-12 * np.max(np.abs(rows), axis=0), np.abs(gaps), 0.0)
    return np.divide(gaps, deviations, out=np.where(gaps > 0.0, np.inf, 0.0), where=deviations > 0.0)


def _covers_all(cells: Mapping[Key, Repeated], rows: FloatArray, floors: FloatArray) -> Any:
    """Cells whose bounds cover all possible values; the published row is treated like the others."""
    largest = np.max(_distances(rows, floors), axis=1)
    limit = _limit(largest, len(rows) - 1)
    centres = rows.mean(axis=0)
    halves = limit * np.maximum(np.std(rows, axis=0, ddof=1), floors)
    ends = [(cell.scale.smallest, cell.scale.largest) for cell in cells.values()]
    covered = [
        math.isfinite(low)
        and math.isfinite(high)
        and float(cell.scale.there(low)) >= centre - half
        and float(cell.scale.there(high)) <= centre + half
        for (low, high), cell, centre, half in zip(ends, cells.values(), centres, halves, strict=True)
    ]
    return np.array(covered)


def _pooled_pvalue(rows: FloatArray, floors: FloatArray, groups: list[list[int]]) -> float:
    """Rank of the largest quadratic form among all rows: of all columns, and of each group of them."""
    deviations = np.std(rows, axis=0, ddof=1)
    deviations = np.maximum(np.where(np.ptp(rows, axis=0) > 0.0, deviations, 0.0), floors)
    centred = rows - rows.mean(axis=0)
    x = np.divide(centred, deviations, out=np.zeros_like(centred), where=deviations > 0.0)
    largest = _quadratic_form(x)
    for group in groups if len(groups) > 1 else []:
        largest = np.maximum(largest, _quadratic_form(x[:, group]))
    return int(np.count_nonzero(largest >= largest[0] - 1e-10)) / len(rows)


def _quadratic_form(x: FloatArray) -> FloatArray:
    """x' (S + I)^-1 x of each row, S the mean of x x', in standard deviations over rows."""
    inner = x.T @ x / len(x) + np.eye(x.shape[1])
    solved: FloatArray = np.linalg.solve(inner, x.T)
    values: FloatArray = np.einsum("ij,ji->i", x, solved)
    deviation = float(np.std(values, ddof=1))
    return (values - values.mean()) / deviation if deviation > 0.0 else np.zeros(len(x))
