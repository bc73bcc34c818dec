"""What an error may depend on: ranks of predicted centre and spread, as columns over cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.parts.polynomials import legendre
from wellcal.measures.ranks import middle_ranks

LEAST_SHARE = 1e-3
"""Share of a column of ranks that is something new."""


class Contrasts(NamedTuple):
    """Columns over cases, orthonormal: their squares have mean 1, and their products mean 0.

    Attributes
    ----------
    columns
        ``(n, k)``: ones first.
    trend
        Which columns follow centre or spread up or down.
    bend
        Which columns are a curve of the centre.
    """

    columns: NDArray
    trend: list[int]
    bend: list[int]


def contrasts_of(centre: NDArray, spread: NDArray) -> Contrasts:
    """Columns from centres ``(n,)`` or ``(n, d)`` and spreads ``(n,)`` of predictions.

    Ranks make them robust: predicted centres may have any distribution. Columns that others explain, such as
    the spread of predictions that all have the same, or one that follows the centre, are left out.

    Examples
    --------
    >>> found = contrasts_of(np.arange(5.0), np.ones(5))
    >>> found.columns.shape, found.trend, found.bend
    ((5, 4), [1], [2, 3])
    """
    centres = np.reshape(centre, (len(centre), -1))
    lines, curves = lines_and_curves([middle_ranks(column) for column in (*centres.T, spread)])
    kept: list[NDArray] = [np.ones(len(centres))]
    inner = weighted_products(1.0 / len(centres))
    trend, bend = (add_orthogonal(kept, columns, inner, LEAST_SHARE) for columns in (lines, curves))
    return Contrasts(np.stack(kept, axis=1), trend, bend)


def lines_and_curves(levels: list[NDArray]) -> tuple[list[NDArray], list[NDArray]]:
    """What errors may follow, up or down and curved: from levels of each centre, then of the spread."""
    curves = list(legendre(levels[0], 3))[1:] if len(levels) == 2 else []
    return [level - 0.5 for level in levels], curves


Inner = Callable[[NDArray, NDArray], Any]
"""A product of two columns."""


def weighted_products(weights: NDArray | float) -> Inner:
    """Weighted sums over cases of products of columns ``(n,)``, by weights ``(n,)`` or a number."""
    return lambda a, b: np.sum(a * b * weights)


def add_orthogonal(kept: list[NDArray], columns: list[NDArray], inner: Inner, least: float) -> list[int]:
    """Append what is new in columns, and say where.

    Parameters
    ----------
    kept
        Columns whose product with themselves is 1, and with each other 0: more are added.
    columns
        Columns ``(n,)``; or coefficients of columns, whose products are known.
    inner
        Products of two columns.
    least
        Share of a column that must be left once others are taken out of it.
    """
    first = len(kept)
    for column in columns:
        rest, size = column, np.sqrt(inner(column, column))
        for _ in range(2):  # once more, for rounding
            for known in kept:
                rest = rest - inner(rest, known) * known
        left = np.sqrt(np.maximum(inner(rest, rest), 0.0))
        if left > least * size and left > 0.0:
            kept.append(rest / left)
    return list(range(first, len(kept)))
