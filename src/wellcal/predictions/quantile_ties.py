"""Targets that equal their own predicted quantiles: too many ties leave calibration undecided."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, namespace, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.row_errors import Row, RowError

_FEW = 3  # targets that rounding may put on a quantile, however few cases there are
_UNSEEN = 0.5  # standard deviations by which ties may move the share below a quantile
_SOLVED = 1e-11  # distance from the exact quantile at which root finders stop

_WHY = ": where outcomes fall on quantiles, more than the level lies at or below them, calibrated or not"
_REMEDY = (
    "predict counts with Poisson, NegativeBinomial or Categorical(support=), and amounts that are often "
    "zero with draws (Samples); where numbers were rounded, add centred noise as wide as the rounding to y; "
    "or were the quantiles fitted to these very cases? judge held-out ones"
)


@dataclass(frozen=True)
class Ties:
    """Numbers of targets that equal their own quantiles, by level.

    Attributes
    ----------
    cases
        Number of cases.
    levels, counts
        Levels of the quantiles, and ties at each of them.
    first
        Position of the first tie at each level, -1 without any; empty for stored cases.
    """

    cases: int
    levels: tuple[float, ...]
    counts: tuple[int, ...]
    first: tuple[int, ...] = field(default=(), repr=False, compare=False)

    def merged(self, later: Ties) -> Ties:
        """Add the ties of later cases."""
        if self.levels != later.levels:
            texts = [", ".join(f"{level:g}" for level in ties.levels) for ties in (later, self)]
            raise ValueError(
                f"levels of quantiles must be the same in all parts, found {texts[0]} after {texts[1]}"
            )
        counts = tuple(a + b for a, b in zip(self.counts, later.counts, strict=True))
        both = zip(self.first, later.first, strict=False)  # stored cases have no positions
        first = tuple(a if a >= 0 or b < 0 else b + self.cases for a, b in both)
        return Ties(self.cases + later.cases, self.levels, counts, first)

    def worst(self) -> int | None:
        """Position of the level with too many ties by the largest factor; None without any."""
        levels, counts = np.array(self.levels), np.array(self.counts)
        allowed = np.maximum(_FEW, _UNSEEN * np.sqrt(self.cases * levels * (1.0 - levels)))
        return None if np.all(counts <= allowed) else int(np.argmax(counts / allowed))

    def refusal(self) -> str | None:
        """Reason why calibration cannot be judged, without a row; None if it can."""
        worst = self.worst()
        return None if worst is None else f"{self._count_text(worst)}{_WHY}; {_REMEDY}"

    def refuse(self, *, located: bool = False) -> None:
        """Raise if there are too many ties; the error names the first row if `located`."""
        worst = self.worst()
        if worst is not None and located and self.first:
            raise self.error(worst, ", first in ", self.first[worst])
        if worst is not None:
            raise ValueError(self.refusal())

    def error(self, worst: int, where: str, row: int) -> RowError:
        """Make the error about the level at position `worst`, with an example row."""
        return RowError(self._count_text(worst), where, Row(row), _WHY, argument="y", remedy=_REMEDY)

    def _count_text(self, k: int) -> str:
        cases = how_many(self.cases)
        return f"y equals its own quantile of level {self.levels[k]:g} in {self.counts[k]:,} of {cases}"


_counted_only: ContextVar[bool] = ContextVar("counted_only", default=False)


@contextmanager
def counted_only() -> Generator[None]:
    """Count ties within the block without refusing them, for parts of cases that are judged at the end."""
    token = _counted_only.set(True)
    try:
        yield
    finally:
        _counted_only.reset(token)


def refuse_ties(targets: Array, levels: NDArray, values: Array, earlier: Ties | None = None) -> Ties:
    """Count ties of all cases, and raise if calibration cannot be judged because of them.

    Calibration says of the quantile q of level l that outcomes lie below q with probability at most l, and at
    or below q with probability at least l. Both agree only without ties. A few ties, which move the share by
    less than chance does, count as below.

    Parameters
    ----------
    targets
        Numbers ``(n,)``.
    levels, values
        Levels ``(L,)`` and quantiles ``(n, L)``.
    earlier
        Ties of the cases before these, if all are judged together.

    Examples
    --------
    >>> levels, values = np.array([0.1, 0.9]), np.tile([0.0, 2.0], (8, 1))
    >>> refuse_ties(np.array([0.0, 0.5, 0.7, 1.0, 1.1, 1.3, 1.9, 2.5]), levels, values)
    Ties(cases=8, levels=(0.1, 0.9), counts=(1, 0))
    >>> refuse_ties(np.array([1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]), levels, values)
    Traceback (most recent call last):
    wellcal.RowError: y equals its own quantile of level 0.1 in 4 of 8 cases, first in row 1: ...
    """
    equal = _equal(targets, values)
    counts, places = equal.sum(axis=0), np.argmax(equal, axis=0)
    first = np.where(counts > 0, places, -1)
    ties = Ties(len(equal), tuple(levels.tolist()), tuple(counts.tolist()), tuple(first.tolist()))
    ties = ties if earlier is None else earlier.merged(ties)
    worst = ties.worst()
    if worst is not None and not _counted_only.get():
        where = ", first in " if earlier is None else ", with those before; among the new ones first in "
        raise ties.error(worst, where, int(places[worst]))
    return ties


def _equal(targets: Array, values: Array) -> NDArray:
    """Compare targets with their quantiles ``(n, L)`` up to rounding, and to the error of root finders.

    The tolerance depends on the quantile itself: another one may be as far off as numbers go.
    """
    xp, y = namespace(values), targets[:, None]
    coarser = max((targets.dtype, values.dtype), key=lambda dtype: float(xp.finfo(dtype).eps))
    with np.errstate(over="ignore"):
        span = values[:, -1:] - values[:, :1] if values.shape[1] > 1 else xp.abs(values)
        smaller = xp.minimum(xp.abs(y), xp.abs(values))
        scale = xp.minimum(xp.clip(span, None, 1.0), xp.where(smaller > 0, smaller, xp.ones_like(smaller)))
        rounding = 4 * float(np.finfo(np.float64).eps) * xp.abs(values)
        near = xp.abs(y - values) <= _SOLVED * scale + rounding
    return to_numpy(near | (xp.astype(y, coarser) == xp.astype(values, coarser)))
