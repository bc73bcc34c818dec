"""Parts of the default test for cases in partitions: sums of each partition, in units of all cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.special import bounded_probability
from wellcal.dask.functions import IN_MEMORY
from wellcal.dask.partitioned import Cases, Partition, Task, computed_sum, on
from wellcal.dask.ranks import levels_of
from wellcal.hypotests.parts import binary, contrasts
from wellcal.hypotests.parts.binary import BinaryParts, smooth_columns
from wellcal.hypotests.parts.classes import ClassParts, ClassTotals, slope_sums
from wellcal.hypotests.parts.contrasts import Contrasts, add_orthogonal, lines_and_curves
from wellcal.hypotests.parts.families import parts_beside, ranked_summaries
from wellcal.hypotests.parts.part import Parts
from wellcal.predictions import Predictions, Quantiles
from wellcal.predictions.misspecification import centre_and_scale

_REFINED = 2  # times that columns are made orthogonal once more, for rounding


@dataclass(frozen=True)
class PartsOfAll:
    """Parts of all cases.

    Attributes
    ----------
    parts
        Which make statistics of the sums over all cases.
    make
        Makes parts, for their sums, of the predictions of a partition and of what is its own.
    own
        What each partition needs besides its predictions: levels of these among all cases, or None.
    """

    parts: Parts
    make: Callable[[Predictions, Any], Parts]
    own: list[Task]


def parts_of(cases: Cases, sample: Predictions) -> PartsOfAll:
    """The parts of cases in partitions; `sample` has some of the predictions."""
    if sample.kind != "classes":
        return _of_numbers(cases, sample)
    if _probabilities(sample).shape[1] == 2:
        return _of_two_classes(cases, sample)
    return _of_classes(cases, sample)


# -- numbers and vectors -----------------------------------------------------------------------


def _of_numbers(cases: Cases, sample: Predictions) -> PartsOfAll:
    values = cases.map(_summaries)
    levels = levels_of(values, cases.n, _ranked(sample))
    gram = _Gram(_raw_contrasts, levels, 1.0 / cases.n)
    size = gram.size
    # Of numbers, two curves come after centre and spread.
    lines = size - 1 if sample.event_shape else 2
    unit = list(np.eye(size))
    columns, (trend, bend) = gram.orthogonal(
        [unit[0]], [unit[1 : 1 + lines], unit[1 + lines :]], contrasts.LEAST_SHARE
    )
    make = _BesideContrasts(columns, trend, bend)
    # Statistics look at the number of cases and columns; zeros that take no memory stand for the latter.
    outline = Contrasts(np.broadcast_to(0.0, (cases.n, columns.shape[1])), trend, bend)
    return PartsOfAll(parts_beside(sample, outline), make, levels)


def _summaries(block: Partition) -> NDArray:
    """What is ranked of a partition, ``(n, k)``."""
    if not isinstance(block.predictions, Quantiles):
        check_spreads(block.predictions)
    return _ranked(block.predictions)


def check_spreads(predictions: Predictions) -> None:
    """Refuse predictions without any spread beside others."""
    if np.any(centre_and_scale(predictions)[1] <= 0.0):
        raise ValueError(
            "some predictions have no spread, which is measured in the unit of all others: not supported for "
            f"cases in partitions; leave these cases out, or {IN_MEMORY}"
        )


def _ranked(predictions: Predictions) -> NDArray:
    centre, spread = ranked_summaries(predictions)
    return np.column_stack([centre, spread])


def _raw_contrasts(levels: NDArray) -> tuple[NDArray, NDArray | float]:
    """Columns that contrasts are made of, and their weights."""
    lines, curves = lines_and_curves(list(levels.T))
    return np.stack([np.ones(len(levels)), *lines, *curves], axis=1), 1.0


@dataclass(frozen=True)
class _BesideContrasts:
    columns: NDArray
    trend: list[int]
    bend: list[int]

    def __call__(self, predictions: Predictions, levels: NDArray) -> Parts:
        own = _raw_contrasts(levels)[0] @ self.columns
        return parts_beside(predictions, Contrasts(own, self.trend, self.bend))


# -- classes -----------------------------------------------------------------------------------


def _of_two_classes(cases: Cases, sample: Predictions) -> PartsOfAll:
    some = _probabilities(sample)[:, 1]
    levels = levels_of(cases.map(_bounded), cases.n, bounded_probability(some)[:, None])
    both = [on(_beside, block, own) for block, own in zip(cases.blocks, levels, strict=True)]
    gram = _Gram(_raw_smooth, both, 1.0)
    columns, _ = gram.orthogonal([], [list(np.eye(gram.size))], binary.LEAST_SHARE)
    outline = BinaryParts(some[:1], np.full(1, 0.5), np.zeros((1, columns.shape[1])))
    return PartsOfAll(outline, _BesideSmooth(columns), levels)


def _bounded(block: Partition) -> NDArray:
    return bounded_probability(_probabilities(block.predictions)[:, 1])[:, None]


def _beside(block: Partition, levels: NDArray) -> tuple[NDArray, NDArray]:
    return _probabilities(block.predictions)[:, 1], levels[:, 0]


def _raw_smooth(both: tuple[NDArray, NDArray]) -> tuple[NDArray, NDArray | float]:
    raw, weights, _ = smooth_columns(*both)
    return raw, weights[:, None]


@dataclass(frozen=True)
class _BesideSmooth:
    columns: NDArray

    def __call__(self, predictions: Predictions, levels: NDArray) -> Parts:
        both = _probabilities(predictions)[:, 1], levels[:, 0]
        return BinaryParts(*both, _raw_smooth(both)[0] @ self.columns)


def _of_classes(cases: Cases, sample: Predictions) -> PartsOfAll:
    total, weighted = cases.total(_slope_sums)
    centre = weighted / np.maximum(total, 1e-300)
    totals = ClassTotals(*cases.total(_class_totals, centre=centre))
    outline = ClassParts(_probabilities(sample)[:1], centre, totals)
    return PartsOfAll(outline, _BesideCentre(centre), [None] * len(cases.blocks))


def _slope_sums(block: Partition) -> tuple[NDArray, NDArray]:
    return slope_sums(_probabilities(block.predictions))


def _class_totals(block: Partition, centre: NDArray) -> tuple[Any, ...]:
    return tuple(ClassParts(_probabilities(block.predictions), centre).totals)


@dataclass(frozen=True)
class _BesideCentre:
    centre: NDArray

    def __call__(self, predictions: Predictions, own: None) -> Parts:
        return ClassParts(_probabilities(predictions), self.centre)


def _probabilities(predictions: Any) -> NDArray:
    return np.asarray(to_numpy(predictions.class_probs()), dtype=np.float64)


# -- columns that are orthogonal over all cases ------------------------------------------------


@dataclass(frozen=True)
class _Gram:
    """Products of columns over all cases.

    Attributes
    ----------
    columns
        From what a partition has to columns and their weights.
    own
        What each partition has.
    unit
        Which products are multiplied by.
    """

    columns: Callable[[Any], tuple[NDArray, NDArray | float]]
    own: list[Task]
    unit: float

    def of(self, coefficients: NDArray | None = None) -> NDArray:
        """Products of columns, or of sums of columns with coefficients ``(m, k)``."""
        return self.unit * computed_sum([on(_products, self.columns, own, coefficients) for own in self.own])

    @property
    def size(self) -> int:
        """How many columns there are."""
        return len(self.first)

    @property
    def first(self) -> NDArray:
        """Products of the columns themselves."""
        if "first" not in self.__dict__:
            self.__dict__["first"] = self.of()
        return self.__dict__["first"]

    def orthogonal(
        self, kept: list[NDArray], more: list[list[NDArray]], least: float
    ) -> tuple[NDArray, list[list[int]]]:
        """Coefficients ``(m, k)`` of orthogonal columns, by `add_orthogonal`, and where each list is.

        Products of columns that are nearly the same lose digits: what is made of them is looked at again.
        """
        gram = self.first
        where = [add_orthogonal(kept, some, lambda a, b: a @ gram @ b, least) for some in more]
        found = np.stack(kept, axis=1)
        for _ in range(_REFINED):
            found = found @ _orthogonalised(self.of(found))
        return found, where


def _products(
    columns: Callable[[Any], tuple[NDArray, NDArray | float]], own: Any, coefficients: NDArray | None
) -> NDArray:
    raw, weights = columns(own)
    found = raw if coefficients is None else raw @ coefficients
    return (found * weights).T @ found


def _orthogonalised(gram: NDArray) -> NDArray:
    """Coefficients that make columns with nearly orthogonal products orthogonal, each about itself."""
    kept: list[NDArray] = []
    add_orthogonal(kept, list(np.eye(len(gram))), lambda a, b: a @ gram @ b, 0.0)
    return np.stack(kept, axis=1)
