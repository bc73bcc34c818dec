"""Blocks of columns of features of Gaussian kernels, each with the cases that reach it.

Sharp predictions have many features, and each case has few of them: those near its own prediction and target.
Sums over pairs are sums over features, so they add up from blocks of neighbouring features.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.rows import slice_rows
from wellcal.expectations.bilinear import ElementForm, Form, Measure
from wellcal.expectations.features import (
    FeatureGrid,
    features_on,
    gaussian_summands,
    reach_of,
    step_of,
    width_of,
)
from wellcal.expectations.rules.elements import Laplaces, Normals, Points

_COLUMNS = 64  # of a block: each case meets about twice as many as it reaches
_WIDEST = 16  # blocks that a case may reach: with more, pairs are quicker
_FURTHEST = 2.0**32  # columns from the origin, where centres are exact to 1e-6 of a step


@dataclass(frozen=True)
class FeatureBlocks:
    """Features of the measures of n cases, in blocks of columns.

    Attributes
    ----------
    rows
        The measures.
    blocks
        For each block the cases that reach it, the root factor of its kernel, and its columns.
    """

    rows: Measure
    blocks: list[tuple[NDArray, float, FeatureGrid]]

    def __iter__(self) -> Iterator[tuple[NDArray, NDArray]]:
        """Yield positions of cases, and their features in a block."""
        for cases, root, grid in self.blocks:
            own: Measure = slice_rows(self.rows, cases)
            yield cases, np.asarray(features_on([(root, grid)], own, slice(0, len(cases))))


def blocks_of_features(form: Form, rows: Measure) -> FeatureBlocks | None:
    """Return features in blocks; None where there are none, or where cases reach too many of them.

    Examples
    --------
    >>> from wellcal.expectations.signed_measures import Components
    >>> from wellcal.kernels import Gaussian
    >>> at = Components(Points((np.array([[0.0], [0.5], [700.0], [701.0]]),)), 1.0)
    >>> blocks = blocks_of_features(ElementForm.between(Gaussian(), 1, (at,), (at,)), (at,))
    >>> total = np.zeros((4, 4))
    >>> for cases, features in blocks:
    ...     total[np.ix_(cases, cases)] += features @ features.T
    >>> bool(abs(total[0, 1] - np.exp(-0.125)) < 1e-12), float(total[0, 2])
    (True, 0.0)
    """
    summands = (
        gaussian_summands(form.kernel) if isinstance(form, ElementForm) and form.dimension == 1 else None
    )
    if summands is None or not {part.kind for part in rows} <= {Points, Normals, Laplaces}:
        return None
    blocks: list[tuple[NDArray, float, FeatureGrid]] = []
    for factor, kernel in summands:
        lengthscale = float(cast("float", kernel.lengthscale))
        origin = float(np.median(np.asarray(cast("Any", rows[0].element).x[0])))
        members = _members(rows, lengthscale, origin)
        if members is None:
            return None
        columns = (np.arange(_COLUMNS) - 0.5 * _COLUMNS) * step_of(lengthscale)
        for number, cases in members.items():
            # Centres are counted from within the block: what is small is rounded less.
            middle = origin + (number + 0.5) * _COLUMNS * step_of(lengthscale)
            blocks.append((cases, math.sqrt(factor), FeatureGrid(lengthscale, (columns,), (middle,))))
    return FeatureBlocks(rows, blocks)


def _members(rows: Measure, lengthscale: float, origin: float) -> dict[int, NDArray] | None:
    """Return the cases that reach each block; None where one reaches too many, or blocks too far away."""
    n, width = len(rows[0].leaf), _COLUMNS * step_of(lengthscale)
    reached: list[NDArray] = []
    for part in rows:
        element: Any = part.element
        x = np.asarray(element.x[0]) - origin
        reach = reach_of(lengthscale, part.kind, width_of(element, 0))
        first, last = np.floor((x - reach) / width), np.floor((x + reach) / width)
        if max(-first.min(), last.max()) * _COLUMNS > _FURTHEST or (last - first).max() > _WIDEST:
            return None
        case = np.broadcast_to(np.arange(n)[:, None], x.shape)
        for k in range(int((last - first).max()) + 1):
            some = first + k <= last
            reached.append((first[some] + k).astype(np.int64) * n + case[some])
    meetings = np.unique(np.concatenate(reached))
    numbers, starts = np.unique(meetings // n, return_index=True)
    return dict(zip(numbers.tolist(), np.split(meetings % n, starts[1:]), strict=True))
