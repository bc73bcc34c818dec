"""Normal scores of counts, which are few: each is computed once, and looked up for all sets of targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.namespaces import Array, NDArray, is_numpy, namespace
from wellcal.predictions import Predictions
from wellcal.predictions.batches import on_device_of

_SPREADS = 4.5
"""Standard deviations around the mean whose counts are remembered, at most. Others are computed."""

_FEWEST = 1.0
"""Fewer than so many are not worth remembering."""

_WAIT = 4
"""A table is made when so many times the targets seen are more than its counts."""

_TABLES = 4
"""Tables may be so many times as large as other arrays that are made on the way."""

Scores = Callable[[Any, Array], Array]
"""Scores ``(..., m)`` of targets under m predictions."""


class CountScores:
    """Scores of sets of counts: the very numbers that `scores` computes, without computing them again.

    Distribution functions of counts are incomplete gamma and beta functions, a microsecond for each number,
    and a test asks for those of a thousand sets of targets. A case sees few different counts in all of them.

    Parameters
    ----------
    predictions
        A batch of counts.
    scores
        What is remembered.

    Examples
    --------
    >>> from wellcal.predictions import Poisson
    >>> remembered = CountScores(Poisson(np.array([1.0, 2.0])), lambda batch, k: batch.cdf(k))
    >>> remembered(np.array([[0.0, 1.0], [1.0, 30.0]])).round(3)
    array([[0.368, 0.406],
           [0.736, 1.   ]])
    """

    def __init__(self, predictions: Predictions, scores: Scores) -> None:
        self._predictions, self._scores = predictions, scores
        self._seen = 0
        self._table: _Table | None = None

    def __call__(self, targets: Array) -> Array:
        """Scores ``(..., n)`` of sets of targets."""
        batch: Any = on_device_of(self._predictions, targets)
        if not is_numpy(namespace(targets)):
            return self._scores(batch, targets)
        self._seen += targets.size
        if self._table is None:
            # One set of targets, or two, are quicker without a table.
            if self._seen <= 2 * len(batch) or not _WAIT * self._seen > _counts_within(batch):
                return self._scores(batch, targets)
            self._table = _Table.of(batch, self._scores)
        return self._table.scores(targets)


@dataclass(frozen=True)
class _Table:
    """Scores of the counts that each case is likely to see, those of a case one after the other.

    Attributes
    ----------
    low
        The least count of each case, ``(n,)``.
    start
        Where the scores of each case begin, and where the last ones end, ``(n + 1,)``.
    known
        All scores.
    """

    batch: Any
    compute: Scores
    low: NDArray
    start: NDArray
    known: NDArray

    @classmethod
    def of(cls, batch: Any, compute: Scores) -> _Table:
        mean, reach = np.asarray(batch.mean(), dtype=np.float64), _reach(batch)
        low = np.maximum(np.floor(mean - reach), 0.0)
        counts = (np.ceil(mean + reach) - low).astype(np.int64) + 1
        start = np.concatenate([[0], np.cumsum(counts)])
        known = np.empty(start[-1])
        for some in in_chunks(len(mean), float(np.mean(counts)), within=budget.cache):
            rows = np.repeat(np.arange(some.start, some.stop), counts[some])
            first, last = int(start[some.start]), int(start[some.stop])
            k = low[rows] + (np.arange(first, last) - start[rows])
            known[first:last] = compute(batch[rows], k)
        return cls(batch, compute, low, start, known)

    def scores(self, targets: NDArray) -> NDArray:
        """Looked up, but for counts that are not in the table."""
        place = targets - self.low
        inside = (place >= 0.0) & (place < np.diff(self.start)) & (place == np.floor(place))
        found = self.known.take(np.where(inside, place, 0.0).astype(np.intp) + self.start[:-1])
        if not np.all(inside):
            others = np.nonzero(~inside)
            found[others] = self.compute(self.batch[others[-1]], targets[others])
        return found


def _reach(batch: Any) -> NDArray:
    """How far from their mean counts are remembered, for each case; nowhere where they are too many."""
    spreads = np.sqrt(np.asarray(batch.variance(), dtype=np.float64))
    total = float(np.sum(spreads))
    room = _TABLES * budget.work - 3.0 * len(batch)
    width = min(_SPREADS, 0.5 * room / total) if total > 0.0 else _SPREADS
    return width * spreads if width >= _FEWEST else np.full(len(batch), np.inf)


def _counts_within(batch: Any) -> float:
    """About how many counts would be remembered: infinitely many, where they are too many."""
    return float(np.sum(2.0 * _reach(batch) + 1.0))
