"""Features of a Gaussian kernel on a line in bands: each with the cases that reach it, and no others.

Of sharp predictions there are many features, and each case has few of them: those near its own prediction and
target. Sums over pairs are sums over features, so that they add up from bands of neighbouring features, in
which only those cases meet that reach them. What that takes grows with the number of cases, however many
features there are between the first and the last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.rows import slice_rows
from wellcal.expectations.bilinear import ElementForm, Form, Measure
from wellcal.expectations.differences import (
    FURTHEST,
    MOST_FEATURES,
    FeatureSource,
    extremes_of,
    features_on,
    gaussian_summands,
    reach_of,
    width_of,
)
from wellcal.expectations.gaussian_features import FeatureGrid, step_of
from wellcal.expectations.rules.elements import Laplaces, Normals, Points

_IN_A_BAND = 64  # features: each case meets about twice as many as it reaches
_FEW = 256.0  # features, that are best taken all at once
_BEYOND = 1.25  # times the usual reach: a case just outside of a band meets others well inside of it
_WIDEST = 512  # features that a case may reach in any case
_SHARE = (
    4.0  # cases for each feature that one of them may reach: beyond, its pairs are fewer than its features
)
_FURTHEST_BAND = (
    2.0**32
)  # cells: further away from the origin they are not where they should be, to 1e-6 of a step
_MOST_MEETINGS = 64  # of a case with bands, on average


_OF_A_TREE = 130.0  # features that take as long to make as all else that multipoles do for a case
_SPARED = 0.7  # share of the work that bands take: with more, they are not worth it


def _work(features: float, trees: float) -> float:
    return features + _OF_A_TREE * trees


class Band(NamedTuple):
    """Some of the features.

    Attributes
    ----------
    cases
        Positions of the cases that reach them, ascending.
    source
        Their features.
    """

    cases: NDArray
    source: FeatureSource


@dataclass(frozen=True)
class Bands:
    """Features of the measures of n cases, in bands.

    Attributes
    ----------
    n, size
        Number of cases, and of features that two of them reach.
    together
        Features without bands, those that only one case reaches among them; infinite for too many.
    meetings
        Features in the bands of a case, summed over cases.
    alone
        Cases that reach so many features that their pairs are less work; they are in no band.
    lines
        What bands are made of, one for each Gaussian kernel.
    """

    n: int
    size: int
    together: float
    meetings: float
    alone: NDArray
    lines: tuple[_Line, ...]

    @property
    def count(self) -> int:
        """Number of bands."""
        return sum(len(line.members) for line in self.lines)

    @property
    def visits(self) -> int:
        """Bands of a case, summed over cases."""
        return sum(len(cases) for line in self.lines for cases in line.members)

    @property
    def pays(self) -> bool:
        """Whether bands take less than all features at once: a case is in the tree of each of its bands."""
        return _work(self.meetings, self.visits) <= _SPARED * self.n * _work(self.together, 1.0)

    def __iter__(self) -> Iterator[Band]:
        for line in self.lines:
            yield from line.bands()


def bands_of(form: Form, rows: Measure) -> Bands | None:
    """Features in bands; None where there are none, where cases reach too many, or most of all there are.

    Parameters
    ----------
    form, rows
        A bilinear form and the measures that meet in it, in NumPy.

    Examples
    --------
    >>> from wellcal.expectations.decompose import Components
    >>> from wellcal.kernels import Gaussian
    >>> at = Components(Points((np.array([[0.0], [0.5], [700.0], [701.0]]),)), 1.0)
    >>> found = bands_of(ElementForm.between(Gaussian(), 1, (at,), (at,)), (at,))
    >>> total = np.zeros((4, 4))
    >>> for band in found:
    ...     features = band.source.of(slice(0, len(band.cases)))
    ...     total[np.ix_(band.cases, band.cases)] += features @ features.T
    >>> found.size < 100, bool(abs(total[0, 1] - np.exp(-0.125)) < 1e-12)
    (True, True)
    >>> float(total[0, 2])
    0.0
    """
    if not isinstance(form, ElementForm) or form.dimension != 1:
        return None
    summands = gaussian_summands(form.kernel)
    if summands is None or not {part.kind for part in rows} <= {Points, Normals, Laplaces}:
        return None
    n = len(rows[0].leaf)
    scales = [(math.sqrt(factor), float(cast("float", kernel.lengthscale))) for factor, kernel in summands]
    reached = [_Reached.of(lengthscale, rows) for _, lengthscale in scales]
    if all(each.span < _FEW for each in reached):
        return None
    likely = [1.0 + each.widest / _IN_A_BAND for each in reached]  # bands that a run of cells falls into
    if sum(_work(_IN_A_BAND * trees, trees) for trees in likely) > _work(sum(e.span for e in reached), 1.0):
        return None  # without looking for them
    alone = np.flatnonzero(np.any([each.too_far(n) for each in reached], axis=0))
    lines: list[_Line] = []
    for (root, lengthscale), each in zip(scales, reached, strict=True):
        line = _line(root, lengthscale, rows, each.without(alone))
        if line is None:
            return None
        lines.append(line)
    size = sum(len(line.cells) for line in lines)
    together = sum(each.together for each in reached)
    return Bands(n, size, together, sum(line.meetings for line in lines), alone, tuple(lines))


class _Reached(NamedTuple):
    """Cells that components reach, from the first to the last of each, and the cases that they belong to."""

    first: NDArray
    last: NDArray
    case: NDArray
    origin: float
    widest: float  # cells of the widest component of a case, on average

    @classmethod
    def of(cls, lengthscale: float, rows: Measure) -> _Reached:
        step = step_of(lengthscale)
        origin = float(np.median(np.asarray(cast("Any", rows[0].element).x[0])))
        found: list[tuple[NDArray, NDArray, NDArray]] = []
        widest = np.zeros(1)
        for part in rows:
            element: Any = part.element
            x = np.asarray(element.x[0]) - origin
            reach = _BEYOND * reach_of(lengthscale, part.kind, width_of(element, 0))
            case = np.broadcast_to(np.arange(len(x))[:, None], x.shape)
            ends = np.floor((x - reach) / step), np.ceil((x + reach) / step)
            widest = np.maximum(widest, np.max(ends[1] - ends[0], axis=1))
            found.append((ends[0].reshape(-1), ends[1].reshape(-1), case.reshape(-1)))
        first, last, case = (np.concatenate([each[k] for each in found]) for k in range(3))
        return cls(first, last, case, origin, float(widest.mean()))

    @property
    def span(self) -> float:
        """Cells from the first to the last."""
        return float(self.last.max() - self.first.min())

    @property
    def together(self) -> float:
        """Cells that anything reaches; infinite where features of all of them cannot be had."""
        starts, stops = _runs(self, 1)
        count = float(np.sum(stops - starts))
        near = max(-float(self.first.min()), float(self.last.max())) < FURTHEST
        return count if near and count <= MOST_FEATURES else math.inf

    def too_far(self, n: int) -> NDArray:
        """Whether cases reach so much, or so far away, that they are better left alone."""
        cells = np.bincount(self.case, self.last - self.first, n)
        away = np.maximum(np.abs(self.first), np.abs(self.last)) >= _FURTHEST_BAND
        return (cells > max(_WIDEST, n / _SHARE)) | (np.bincount(self.case, away, n) > 0.0)

    def without(self, alone: NDArray) -> _Reached:
        if not len(alone):
            return self
        kept = ~np.isin(self.case, alone)
        return self._replace(first=self.first[kept], last=self.last[kept], case=self.case[kept])


@dataclass(frozen=True)
class _Line:
    """Features of one Gaussian kernel.

    Attributes
    ----------
    root, lengthscale, origin
        The root of what the kernel is multiplied by, its length scale, and from where cells are counted.
    rows
        Measures of all cases.
    cells
        Cells that have features, ascending.
    members
        Cases of each band, and which bands these are.
    """

    root: float
    lengthscale: float
    origin: float
    rows: Measure
    cells: NDArray
    members: list[NDArray]
    numbers: NDArray

    @property
    def meetings(self) -> float:
        """Features in the bands of a case, summed over cases."""
        ends = np.minimum((self.numbers + 1) * _IN_A_BAND, len(self.cells)) - self.numbers * _IN_A_BAND
        return float(sum(len(some) * size for some, size in zip(self.members, ends.tolist(), strict=True)))

    def bands(self) -> Iterator[Band]:
        step = step_of(self.lengthscale)
        for number, cases in zip(self.numbers.tolist(), self.members, strict=True):
            cells = self.cells[number * _IN_A_BAND : (number + 1) * _IN_A_BAND]
            # Counted from within the band: what is small is rounded less.
            middle = float(cells[len(cells) // 2])
            grid = FeatureGrid(self.lengthscale, ((cells - middle) * step,), (self.origin + middle * step,))
            own: Measure = slice_rows(self.rows, cases)
            each = 2.0 * sum(part.size for part in own) * grid.size
            of = features_on([(self.root, grid)], own)
            yield Band(cases, FeatureSource(len(cases), grid.size, of, each, extremes_of(own)))


def _line(root: float, lengthscale: float, rows: Measure, reached: _Reached) -> _Line | None:
    starts, stops = _runs(reached, 2)
    offsets = np.append(0.0, np.cumsum(stops - starts))
    if offsets[-1] > _MOST_MEETINGS * len(reached.case):
        return None
    first, last = _positions(reached, starts, stops, offsets)
    some = first <= last
    low = (first[some] // _IN_A_BAND).astype(np.int64)
    count = (last[some] // _IN_A_BAND).astype(np.int64) - low + 1
    if count.sum() > _MOST_MEETINGS * len(reached.case):
        return None
    total = len(rows[0].leaf)
    begun = np.cumsum(count) - count
    band = np.repeat(low - begun, count) + np.arange(int(count.sum()))
    # Sorted by hand: `np.unique` looks at millions of different numbers one by one.
    meeting = np.sort(band * total + np.repeat(reached.case[some], count))
    meeting = meeting[np.append(True, meeting[1:] != meeting[:-1])] if len(meeting) else meeting
    numbers, where = np.unique(meeting // total, return_index=True)
    members = np.split(meeting % total, where[1:])
    pairs = [k for k, cases in enumerate(members) if len(cases) > 1]
    lengths = (stops - starts).astype(np.int64)
    within = np.arange(int(lengths.sum())) - np.repeat(offsets[:-1], lengths)
    cells = np.repeat(starts, lengths) + within
    return _Line(root, lengthscale, reached.origin, rows, cells, [members[k] for k in pairs], numbers[pairs])


def _runs(reached: _Reached, least: int) -> tuple[NDArray, NDArray]:
    """Runs of cells that so many components reach: the first of each, and the one after the last."""
    edges = np.concatenate([reached.first, reached.last + 1.0])
    order = np.argsort(edges, kind="stable")
    open_ones = np.cumsum(np.where(order < len(reached.first), 1, -1))
    edges = edges[order]
    # Only after the last of equal edges it is known how many are open.
    final = np.append(edges[1:] != edges[:-1], True)
    edges, shared = edges[final], open_ones[final] >= least
    change = np.diff(shared.astype(np.int8), prepend=0)
    return edges[change == 1], edges[change == -1]


def _positions(
    reached: _Reached, starts: NDArray, stops: NDArray, offsets: NDArray
) -> tuple[NDArray, NDArray]:
    """The first and the last of the shared cells that components reach, by their numbers."""
    if not len(starts):
        return np.ones(len(reached.first)), np.zeros(len(reached.first))
    after = np.searchsorted(stops, reached.first, side="right")
    run = np.minimum(after, len(starts) - 1)
    first = offsets[run] + np.maximum(reached.first - starts[run], 0.0)
    first = np.where(after == len(starts), offsets[-1], first)
    before = np.searchsorted(starts, reached.last, side="right") - 1
    run = np.maximum(before, 0)
    last = offsets[run] + np.minimum(reached.last, stops[run] - 1.0) - starts[run]
    return first, np.where(before < 0, -1.0, last)
