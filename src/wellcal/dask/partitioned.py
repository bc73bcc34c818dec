"""Predictions in partitions, and cases: targets and predictions of the same partitions.

A partition is a value of Dask's (`Delayed`): it is made where it is needed, again if a worker is lost. What
is computed of partitions is small: sums that add up, or single rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self, cast

import dask
import numpy as np

from wellcal._arrays.checks import whole_number
from wellcal._arrays.namespaces import NDArray, attribute, taker_of, to_numpy
from wellcal._arrays.progress import Progress, following
from wellcal._arrays.row_errors import retell
from wellcal._arrays.seeds import as_generator
from wellcal.dask.watching import computed
from wellcal.predictions import Predictions
from wellcal.predictions.base import check_inputs
from wellcal.predictions.batches import concatenate, in_numpy
from wellcal.problem.weights import check_weights
from wellcal.witnesses.segments import segment_labels

Task = Any
"""A value of Dask's that is computed when it is asked for."""

FAN_IN = 8
"""Results that are added up at a time."""

_SILENT = Progress(False)


class Partition(NamedTuple):
    """The cases of one partition, in memory and in NumPy.

    Attributes
    ----------
    given
        Targets as users give them: labels of classes.
    targets
        Targets as computations use them.
    predictions
        A batch.
    weights
        How much each case counts, or None.
    labels
        Columns of segments.
    """

    given: NDArray
    targets: NDArray
    predictions: Predictions
    weights: NDArray | None = None
    labels: tuple[NDArray, ...] = ()

    def rows(self, index: slice | NDArray) -> Partition:
        """Some of the cases."""
        weights = None if self.weights is None else self.weights[index]
        labels = tuple(column[index] for column in self.labels)
        return Partition(self.given[index], self.targets[index], self.predictions[index], weights, labels)


@dataclass(frozen=True)
class Unread:
    """Cases of a partition that every task reads for itself: nobody keeps them between tasks.

    Attributes
    ----------
    number
        Of the partition.
    y, pred
        Descriptions of targets and predictions, with a method `load`.
    """

    number: int
    y: Any
    pred: Any

    def load(self) -> Partition | None:
        """The cases, in memory."""
        return _block(self.number, (), self.y, self.pred, None)


@dataclass(frozen=True, eq=False)
class Partitioned:
    """Predictions in partitions that are not in memory, of one family.

    It stands where a batch of predictions stands: ``wc.skce(y, pred)``, with targets `y` in the same
    partitions. :func:`wellcal.as_predictions` makes it of collections of Dask's, and
    :func:`wellcal.dask.read_parquet` of files.

    Attributes
    ----------
    parts
        Each a batch of predictions, or something with a method `load` that returns one, once it is computed.
    sizes
        Cases of each partition, where they are known.

    Examples
    --------
    >>> import dask.array as da, wellcal as wc
    >>> mu = da.zeros(10, chunks=4)
    >>> wc.as_predictions((mu, mu + 1.0))
    <Partitioned: 3 partitions, 10 cases>
    """

    parts: tuple[Task, ...]
    sizes: tuple[int, ...] | None = None

    def __repr__(self) -> str:
        cases = "" if self.sizes is None else f", {sum(self.sizes):,} cases"
        count = len(self.parts)
        return f"<Partitioned: {count} partition{'s' if count > 1 else ''}{cases}>"

    def __wellcal_function__(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """What functions of the package do with it."""
        from wellcal.dask.functions import __wellcal_function__

        return __wellcal_function__(name, arguments, options)

    def compute(self) -> Predictions:
        """All of it as one batch in memory."""
        found = [part for part in computed([on(batch_of, part) for part in self.parts]) if part is not None]
        return joined(found)


@dataclass(frozen=True, eq=False)
class Cases:
    """Targets and predictions in partitions.

    Attributes
    ----------
    blocks
        Each a `Partition` once it is computed, or None where a partition is empty; or `Unread`.
    """

    blocks: tuple[Task, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Cases of each partition: one pass, in which all input is checked."""
        found = tuple(int(size) for size in computed(self.map(_size)))
        if not sum(found):
            raise ValueError("pred is empty: none of its partitions has a case")
        return found

    @property
    def n(self) -> int:
        """Number of cases."""
        return sum(self.sizes)

    @property
    def starts(self) -> NDArray:
        """The place of the first case of each partition, and the number of cases."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def map(self, function: Callable[..., Any], *by_part: Sequence[Any], **shared: Any) -> list[Task]:
        """``function(block, *own, **shared)`` on each partition, with its own entries of `by_part`."""
        return [on(function, *own, **shared) for own in zip(self.blocks, *by_part, strict=True)]

    def total(self, function: Callable[..., Any], *by_part: Sequence[Any], **shared: Any) -> Any:
        """The sum of what a function finds in each partition: numbers, arrays, or tuples of these."""
        return computed_sum(self.map(function, *by_part, **shared))

    def rows(self, index: NDArray) -> Partition:
        """Cases at some places, in their order."""
        places = np.asarray(index)
        part = np.searchsorted(self.starts, places, side="right") - 1
        own = [places[part == k] - start for k, start in enumerate(self.starts[:-1].tolist())]
        tasks = [on(_rows, block, some) for block, some in zip(self.blocks, own, strict=True) if len(some)]
        found = joined_blocks(computed(tasks))
        # Blocks come one partition after the other; a stable order brings each row back to its place.
        return found.rows(np.argsort(np.argsort(part, kind="stable"), kind="stable"))

    def sampled(self, count: int, rng: int | np.random.Generator | None) -> NDArray:
        """Places of some cases at random, in the order of all; all of them where there are no more."""
        return np.sort(as_generator(rng).choice(self.n, min(count, self.n), replace=False))

    def gathered(self) -> Partition:
        """All cases, in memory."""
        return joined_blocks([block for block in computed(self.map(itself)) if block is not None])

    def aligned(self, multiple: int) -> Self:
        """The same cases in the same order, cut so that each partition begins with a multiple of a number.

        Partitions keep about their size, and only what lies beside their ends moves.
        """
        starts = self.starts
        ends = np.unique(np.minimum(-(-starts[1:] // multiple) * multiple, self.n))
        ends = ends[ends > 0]  # that is where partitions without cases end, if they come first
        blocks: list[Task] = []
        sizes: list[int] = []
        for low, high in pairwise([0, *ends.tolist()]):
            first, last = (int(np.searchsorted(starts, at, side="right")) - 1 for at in (low, high - 1))
            pieces: list[Task] = []
            for k in range(first, last + 1):
                start, stop = max(low - starts[k], 0), min(high - starts[k], self.sizes[k])
                whole = start == 0 and stop == self.sizes[k]
                if stop > start:
                    pieces.append(self.blocks[k] if whole else on(_rows, self.blocks[k], slice(start, stop)))
            blocks.append(pieces[0] if len(pieces) == 1 else on(_joined, *pieces))
            sizes.append(high - low)
        found = replace(self, blocks=tuple(blocks))
        found.__dict__["sizes"] = tuple(sizes)
        return found


def cases_of(
    y: Sequence[Task],
    pred: Partitioned,
    weights: Sequence[Task] | None = None,
    labels: Mapping[str, Sequence[Task]] | None = None,
) -> Cases:
    """Cases from targets in the partitions of predictions; labels have the names of their columns."""
    w = [None] * len(y) if weights is None else weights
    columns = labels or {}
    every = enumerate(zip(y, pred.parts, w, *columns.values(), strict=True))
    plain = weights is None and not columns
    found = Cases(
        tuple(
            Unread(k, *parts[:2])
            if plain and _described(*parts[:2])
            else on(_block, k, tuple(columns), *parts)
            for k, parts in every
        )
    )
    if pred.sizes is not None and sum(pred.sizes):
        found.__dict__["sizes"] = pred.sizes
    return found


def _described(*parts: Any) -> bool:
    """Whether partitions are descriptions of what is to be read."""
    return all(attribute(part, "load") is not None and taker_of(part) is None for part in parts)


def sample_cases(
    y: object, pred: object, count: int, *, rng: int | np.random.Generator | None = None
) -> tuple[NDArray, Predictions]:
    """Some cases at random, in memory: for what is not computed of partitions.

    Parameters
    ----------
    y, pred
        Targets and predictions in partitions, as :func:`wellcal.skce` takes them.
    count
        How many cases; all of them where there are no more.
    rng
        Seed or generator. The choice depends on it and on the number of cases, not on the partitions.

    Returns
    -------
    targets, predictions
        As if these had been all cases.

    Examples
    --------
    >>> import dask.array as da, wellcal as wc
    >>> mu = da.arange(100, chunks=30)
    >>> y, pred = sample_cases(mu + 0.5, (mu, da.ones(100, chunks=30)), 5, rng=0)
    >>> bool((y - pred.loc == 0.5).all()), len(pred)
    (True, 5)
    """
    from wellcal.dask.building import as_cases

    number = whole_number(count, "count", least=1)
    cases = as_cases(y, pred)
    found = cases.rows(cases.sampled(number, rng))
    return found.given, found.predictions


# -- what runs where the partitions are --------------------------------------------------------


def loaded(value: Any) -> Any:
    """A partition in memory: of a file it is a description, so that nothing but what is needed is kept."""
    load = getattr(value, "load", None)
    return value if load is None else load()


def _block(
    number: int, names: tuple[str, ...], y: Any, pred: Any, weights: Any, *labels: Any
) -> Partition | None:
    """A partition as cases, checked; `names` are those of labels in errors."""
    from wellcal.dask.building import Unmade

    try:
        targets, made = loaded(y), loaded(pred)
        if len(targets) == 0 and (made is None or len(made) == 0):
            return None
        if isinstance(made, Unmade):
            made = made.batch()
        if made is None:
            raise ValueError(f"y and predictions must have the same length, found {len(targets)} and 0")
        checked, predictions = check_inputs(targets, made)
        given = np.asarray(to_numpy(predictions.align(targets)))
        w = None if weights is None else np.asarray(to_numpy(loaded(weights)))
        if w is not None:
            w = check_weights(w, len(predictions), w, at_least=0, relative=False)
        columns = tuple(
            segment_labels(loaded(column), name, len(predictions))
            for name, column in zip(names, labels, strict=True)
        )
        return Partition(given, np.asarray(to_numpy(checked)), in_numpy(predictions), w, columns)
    except (TypeError, ValueError) as error:
        file = attribute(y, "path")
        retell(error, f"partition {number}{'' if file is None else f' ({file})'}: ")


def batch_of(part: Any) -> Predictions | None:
    """The predictions of a partition, in memory; None where it is empty."""
    from wellcal.dask.building import Unmade

    found = loaded(part)
    return found.batch() if isinstance(found, Unmade) else found


def itself(value: Any) -> Any:
    """What a task is given."""
    return value


def _size(block: Partition | None) -> int:
    return 0 if block is None else len(block.targets)


def _rows(block: Partition, index: slice | NDArray) -> Partition:
    return block.rows(index)


def _joined(*blocks: Partition) -> Partition:
    return joined_blocks(blocks)


def joined(batches: Sequence[Predictions]) -> Predictions:
    """Batches of partitions as one."""
    if not batches:
        raise ValueError("pred is empty: none of its partitions has a case")
    names = [f"partition {k}" for k in range(len(batches))]
    return batches[0] if len(batches) == 1 else concatenate(batches, names, "partitions")


def joined_blocks(blocks: Sequence[Partition]) -> Partition:
    """Blocks as one."""
    if len(blocks) == 1:
        return blocks[0]
    weights = None
    if blocks[0].weights is not None:
        weights = np.concatenate([cast("NDArray", block.weights) for block in blocks])
    return Partition(
        np.concatenate([block.given for block in blocks]),
        np.concatenate([block.targets for block in blocks]),
        joined([block.predictions for block in blocks]),
        weights,
        tuple(np.concatenate(columns) for columns in zip(*(b.labels for b in blocks), strict=True)),
    )


# -- Dask --------------------------------------------------------------------------------------


def on(function: Callable[..., Any], *values: Any, **shared: Any) -> Task:
    """A function of values that may be Dask's, as a value of Dask's."""
    return cast("Any", dask).delayed(called, pure=False)(function, *values, **shared)


def called(function: Callable[..., Any], *values: Any, **shared: Any) -> Any:
    """What is unread is read where it is needed, and forgotten. Tasks are counted, and say nothing."""
    with following(_SILENT):
        return function(*(value.load() if isinstance(value, Unread) else value for value in values), **shared)


def summed(tasks: Sequence[Task]) -> Task:
    """Their sum, a few at a time, always in the same order, as a value of Dask's."""
    level = list(tasks)
    while len(level) > 1:
        level = [
            on(added, *level[k : k + FAN_IN]) if len(level) > k + 1 else level[k]
            for k in range(0, len(level), FAN_IN)
        ]
    return level[0]


def computed_sum(tasks: Sequence[Task]) -> Any:
    """The same, computed."""
    return computed([summed(tasks)])[0]


def added(*values: Any) -> Any:
    """The sum of what is not None: numbers, arrays, what has `merged`, or tuples of these entry by entry."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    total: Any = known[0]
    for value in known[1:]:
        if attribute(total, "merged") is not None:
            total = total.merged(value)
        elif isinstance(total, tuple):
            total = tuple(added(*pair) for pair in zip(cast("tuple[Any, ...]", total), value, strict=True))
        else:
            total = total + value
    return total
