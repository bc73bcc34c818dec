"""Outcomes that fall on their own quantiles, of which quantiles do not say how probable they are."""

from __future__ import annotations

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.row_errors import Row, RowError

_FEW = 3  # targets that may fall on a quantile by rounding, however few cases there are
_UNSEEN = 0.5  # standard deviations by which ties may move the share below a quantile

_REMEDY = (
    "predict counts with Poisson, NegativeBinomial or Categorical(support=), and amounts that are often "
    "zero with draws (Samples); to numbers that were rounded finely, add noise as wide as the rounding"
)


def refuse_ties(targets: Array, levels: NDArray, values: Array) -> None:
    """An error where so many targets equal one of their own quantiles that calibration cannot be told.

    Where q is the quantile of level l, calibration says that outcomes lie below q with probability l at most,
    and at q or below it with probability l at least. Only where none falls on q are these the same, and say
    how often outcomes fall below it. A few ties, which move that share by less than chance does, are counted
    as below: `Quantiles.bins` has the one rule.

    Parameters
    ----------
    targets
        Numbers ``(n,)``.
    levels, values
        Of the quantiles, ``(L,)`` and ``(n, L)``.

    Examples
    --------
    >>> levels, values = np.array([0.1, 0.9]), np.tile([0.0, 2.0], (8, 1))
    >>> refuse_ties(np.array([0.0, 0.5, 0.7, 1.0, 1.1, 1.3, 1.9, 2.5]), levels, values)
    >>> refuse_ties(np.array([1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]), levels, values)
    Traceback (most recent call last):
    wellcal.RowError: y equals its own quantile of level 0.1 in 4 of 8 cases, first in row 1: ...
    """
    equal = to_numpy(targets[:, None] == values)
    counts, n = equal.sum(axis=0), len(equal)
    allowed = np.maximum(_FEW, _UNSEEN * np.sqrt(n * levels * (1.0 - levels)))
    if np.all(counts <= allowed):
        return
    worst = int(np.argmax(counts / allowed))
    raise RowError(
        f"y equals its own quantile of level {levels[worst]:g} in {counts[worst]:,} of {how_many(n)}, ",
        "first in ",
        Row(int(np.argmax(equal[:, worst]))),
        ": where outcomes fall on quantiles, more than the level lies at or below them, calibrated or not",
        argument="y",
        remedy=_REMEDY,
    )
