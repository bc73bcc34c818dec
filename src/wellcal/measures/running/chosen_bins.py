"""Expected calibration error in bins that the first predictions choose, for the cases that follow too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.expectations.count_atoms import COUNT_TAIL
from wellcal.measures.binned.binning import Binning, CutBins, EqualMassBins, compact
from wellcal.measures.binned.calibration_error import Binned, DiscreteTarget, discrete_targets
from wellcal.measures.binned.discrepancies import Discrepancy
from wellcal.measures.binned.tables import BinTable
from wellcal.predictions.base import Predictions
from wellcal.predictions.batches import concatenate

CHOOSING = 20_000
"""Cases whose predictions choose the bins of all. Up to so many are kept, and measured like any others."""

MOST_COUNTS = 1_000
"""Different counts that a prediction may spread over on average, for all are gone through."""


@dataclass(frozen=True)
class _Bin:
    """Sums over the cases of one bin: their number, and probabilities and frequencies of each target."""

    size: float
    targets: NDArray
    predicted: NDArray
    observed: NDArray

    def plus(self, other: _Bin) -> _Bin:
        """Of this one and of another, which may span other targets."""
        targets = np.union1d(self.targets, other.targets)
        predicted, observed = np.zeros(len(targets)), np.zeros(len(targets))
        for part in (self, other):
            place = np.searchsorted(targets, part.targets)
            predicted[place] += part.predicted
            observed[place] += part.observed
        return _Bin(self.size + other.size, targets, predicted, observed)

    def table(self) -> BinTable:
        """Shares, as :func:`wellcal.ece` has them."""
        shares = (part[None, :] / self.size for part in (self.predicted, self.observed))
        return BinTable(np.array([self.size]), *shares)


@dataclass(frozen=True)
class _Stream:
    """Cases of one stream, with the bins that its first ones have chosen."""

    rule: CutBins
    bins: dict[int, _Bin]

    def plus(self, y: Any, pred: Any) -> _Stream:
        """With some cases more."""
        (question,) = discrete_targets(y, pred, None)[1]
        used, places = compact(self.rule.cells(_features(question)))
        bins = dict(self.bins)
        for number, found in zip(used.tolist(), _bins(question, places), strict=True):
            bins[number] = bins[number].plus(found) if number in bins else found
        return replace(self, bins=bins)


@dataclass(frozen=True)
class ChosenBins:
    """Sums in bins of equal mass, of counts and quantiles.

    Bins must hold similar predictions, and may be chosen by looking at these, but not at targets: they are
    those of equal mass among the first `CHOOSING` cases. Fewer cases have the bins of :func:`wellcal.ece`.
    Streams that are merged keep the bins of each.

    Parameters
    ----------
    rule
        How bins are chosen.
    """

    rule: EqualMassBins
    waiting: tuple[tuple[NDArray, Predictions], ...] = ()
    streams: tuple[_Stream, ...] = ()

    def updated(self, y: Any, pred: Any) -> ChosenBins:
        """With some cases more."""
        if self.streams:
            return replace(self, streams=(self.streams[0].plus(y, pred), *self.streams[1:]))
        room = CHOOSING - sum(len(batch) for _, batch in self.waiting)
        if not self.waiting:
            _refuse_many_counts(pred)
        found = replace(self, waiting=(*self.waiting, (y[:room], pred[:room])))
        if len(pred) < room:
            return found
        found = found._chosen()
        return found if len(pred) == room else found.updated(y[room:], pred[room:])

    def _chosen(self) -> ChosenBins:
        """With bins, and nothing that waits for them."""
        y, pred = _together(self.waiting)
        (question,) = discrete_targets(y, pred, None)[1]
        stream = _Stream(self.rule.cuts(_features(question)), {}).plus(y, pred)
        return replace(self, waiting=(), streams=(*self.streams, stream))

    def merged(self, other: ChosenBins) -> ChosenBins:
        """Of both: what waits in one is seen by the other."""
        if self.rule != other.rule:
            raise ValueError("ECE: the parts have other bins")
        first, second = (self, other) if self.streams or not other.streams else (other, self)
        found = replace(first, streams=(*first.streams, *second.streams))
        for y, pred in second.waiting:
            found = found.updated(y, pred)
        return found

    def binned(self, measure: Discrepancy, n: int) -> Binned:
        """Distances in all bins."""
        if not self.streams:
            y, pred = _together(self.waiting)
            (question,) = discrete_targets(y, pred, None)[1]
            rule: Binning = self.rule
            tables = question.tables(rule, False)
        else:
            rule = self.streams[0].rule
            tables = [part.table() for stream in self.streams for part in stream.bins.values()]
        sizes, values = ([np.asarray(to_numpy(part)) for part in parts] for parts in _parts(tables, measure))
        return Binned(np.concatenate(sizes), np.concatenate(values), rule, None, n)


def _parts(tables: Sequence[BinTable], measure: Discrepancy) -> tuple[list[Any], list[Any]]:
    return [table.sizes for table in tables], [measure.plug_in(table) for table in tables]


def _features(question: DiscreteTarget) -> NDArray:
    return np.asarray(to_numpy(question.features))


def _bins(question: DiscreteTarget, places: NDArray) -> list[_Bin]:
    """Sums in all bins that have cases, in their order, from the place of each case among them."""
    found: list[_Bin] = []
    for table in question.tables(places, False):
        for size, predicted, observed in zip(table.sizes, table.predicted, table.observed, strict=True):
            targets = np.arange(len(predicted), dtype=np.float64) if table.targets is None else table.targets
            found.append(
                _Bin(float(size), targets, np.asarray(predicted) * size, np.rint(np.asarray(observed) * size))
            )
    return found


def _together(parts: Sequence[tuple[NDArray, Predictions]]) -> tuple[NDArray, Predictions]:
    if len(parts) == 1:
        return parts[0]
    batch = concatenate([pred for _, pred in parts], [f"part {k}" for k in range(len(parts))], "parts")
    return np.concatenate([y for y, _ in parts]), batch


def _refuse_many_counts(pred: Any) -> None:
    """Refuse counts that are nearly continuous: their probabilities are gone through one by one."""
    if pred.target_kind != "counts":
        return
    some = pred[: min(len(pred), 1000)]
    low, high = (
        np.asarray(to_numpy(some.quantile(level)), dtype=np.float64)
        for level in (COUNT_TAIL, 1.0 - COUNT_TAIL)
    )
    width = float(np.mean(high - low))
    if not width <= MOST_COUNTS:
        raise ValueError(
            f"ECE compares the frequency of each count with its probability, and these predictions spread "
            f"over {width:,.0f} counts on average, {MOST_COUNTS:,} at most; take SKCE, or wc.ece for some of "
            "the cases"
        )
