"""What an error may depend on: ranks of predicted centre and spread, as columns over cases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.special import middle_ranks
from wellcal.hypotests.parts.polynomials import legendre

_LEAST = 1e-3  # share of a column of ranks that is something new


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
    lines = [*(_scaled_ranks(column) for column in centres.T), _scaled_ranks(spread)]
    curves = list(legendre(middle_ranks(centres[:, 0]), 3))[1:] if centres.shape[1] == 1 else []
    kept: list[NDArray] = [np.ones(len(centres))]
    trend, bend = (add_orthogonal(kept, columns, 1.0 / len(centres), _LEAST) for columns in (lines, curves))
    return Contrasts(np.stack(kept, axis=1), trend, bend)


def add_orthogonal(
    kept: list[NDArray], columns: list[NDArray], weights: NDArray | float, least: float
) -> list[int]:
    """Append what is new in columns, and say where.

    Parameters
    ----------
    kept
        Columns whose squares have the weighted sum 1, and whose products 0: more are added.
    columns
        Columns ``(n,)``.
    weights
        Of cases in sums, ``(n,)`` or a number.
    least
        Share of a column that must be left once others are taken out of it.
    """
    first = len(kept)
    for column in columns:
        rest, size = column, np.sqrt(np.sum(column**2 * weights))
        for _ in range(2):  # once more, for rounding
            for known in kept:
                rest = rest - np.sum(rest * known * weights) * known
        left = np.sqrt(np.sum(rest**2 * weights))
        if left > least * size and left > 0.0:
            kept.append(rest / left)
    return list(range(first, len(kept)))


def _scaled_ranks(values: NDArray) -> NDArray:
    return middle_ranks(values) - 0.5
