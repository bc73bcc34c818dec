"""Outcomes that fall on their own quantiles, of which quantiles do not say how probable they are."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, namespace, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.row_errors import Row, RowError

_FEW = 3  # targets that may fall on a quantile by rounding, however few cases there are
_UNSEEN = 0.5  # standard deviations by which ties may move the share below a quantile
# How near quantiles come that solve an equation: root finders stop at such a distance, and at such a share.
_SEARCHED = 1e-11
_LAST_DIGITS = 4 * float(np.finfo(np.float64).eps)

_WHY = ": where outcomes fall on quantiles, more than the level lies at or below them, calibrated or not"
_REMEDY = (
    "predict counts with Poisson, NegativeBinomial or Categorical(support=), and amounts that are often "
    "zero with draws (Samples); where numbers were rounded, add centred noise as wide as the rounding to y; "
    "or were the quantiles fitted to these very cases? judge held-out ones"
)


@dataclass(frozen=True)
class Ties:
    """How many targets equal their own quantiles, level by level: of parts they add up.

    Attributes
    ----------
    cases
        Number of cases.
    levels, counts
        Levels of the quantiles, and ties at each of them.
    first
        Which case is the first of them at each level, -1 where there is none; empty where cases of before
        were stored, which are no rows of anything that is at hand.
    """

    cases: int
    levels: tuple[float, ...]
    counts: tuple[int, ...]
    first: tuple[int, ...] = field(default=(), repr=False, compare=False)

    def joined(self, earlier: Ties | None) -> Ties:
        """With those of earlier cases."""
        if earlier is None:
            return self
        if earlier.levels != self.levels:
            raise ValueError(
                f"levels of quantiles must be the same in all parts, found {_listed(self.levels)} after "
                f"{_listed(earlier.levels)}"
            )
        counts = tuple(a + b for a, b in zip(self.counts, earlier.counts, strict=True))
        both = zip(earlier.first, self.first, strict=False)  # none where either is not known
        first = tuple(a if a >= 0 or b < 0 else b + earlier.cases for a, b in both)
        return Ties(self.cases + earlier.cases, self.levels, counts, first)

    def merged(self, later: Ties) -> Ties:
        """With those of later cases."""
        return later.joined(self)

    def worst(self) -> int | None:
        """The level that calibration cannot be told at, by its place; None where there is none."""
        levels, counts = np.array(self.levels), np.array(self.counts)
        allowed = np.maximum(_FEW, _UNSEEN * np.sqrt(self.cases * levels * (1.0 - levels)))
        return None if np.all(counts <= allowed) else int(np.argmax(counts / allowed))

    def refusal(self) -> str | None:
        """Why calibration cannot be told, of cases that are no longer at hand; None where it can."""
        worst = self.worst()
        return None if worst is None else f"{self.told(worst)}{_WHY}; {_REMEDY}"

    def refuse(self, *, located: bool = False) -> None:
        """An error where there are too many, of cases no longer at hand; with the first if `located`."""
        worst = self.worst()
        if worst is None:
            return
        if located and self.first:
            raise self.error(worst, ", first in ", self.first[worst])
        raise ValueError(self.refusal())

    def error(self, worst: int, where: str, row: int) -> RowError:
        """The error about a level, with a row that is an example, after the words `where`."""
        return RowError(self.told(worst), where, Row(row), _WHY, argument="y", remedy=_REMEDY)

    def told(self, place: int) -> str:
        """How many there are at a level."""
        return (
            f"y equals its own quantile of level {self.levels[place]:g} in {self.counts[place]:,} of "
            f"{how_many(self.cases)}"
        )


_counted_only: ContextVar[bool] = ContextVar("counted_only", default=False)


@contextmanager
def counted_only() -> Generator[None]:
    """Within it ties are counted and not refused: for parts of cases that are judged when all were seen."""
    token = _counted_only.set(True)
    try:
        yield
    finally:
        _counted_only.reset(token)


def refuse_ties(targets: Array, levels: NDArray, values: Array, earlier: Ties | None = None) -> Ties:
    """Ties of all cases; an error where there are so many that calibration cannot be told.

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
    earlier
        Ties of the cases before these, where all are judged together.

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
    ties = ties.joined(earlier)
    worst = ties.worst()
    if worst is None or _counted_only.get():
        return ties
    where = ", first in " if earlier is None else ", with those before; among the new ones first in "
    raise ties.error(worst, where, int(places[worst]))


def _listed(levels: tuple[float, ...]) -> str:
    return ", ".join(f"{level:g}" for level in levels)


def _equal(targets: Array, values: Array) -> NDArray:
    """Whether targets are their own quantiles ``(n, L)``, but for the rounding of either.

    They are if they are the same in the coarser of the two types of numbers. Those that solve an equation are
    near only to so much. How near is said by what is compared, and never by the far end of a case: a distance
    below one, and below the span of the quantiles, and a share of the smaller number unless that is zero, of
    which there are no shares.
    """
    xp = namespace(values)
    coarser = max((targets.dtype, values.dtype), key=lambda dtype: float(xp.finfo(dtype).eps))
    rounded, size = xp.astype(targets, coarser), xp.abs(targets)
    equal: list[NDArray] = []
    with np.errstate(over="ignore"):  # a quantile may be as far off as numbers go, for "no limit"
        first, last = values[:, 0], values[:, -1]
        span = xp.clip(last - first if values.shape[1] > 1 else xp.abs(last), None, 1.0)
        for k in range(values.shape[1]):  # one level at a time takes less memory
            q = values[:, k]
            smaller = xp.minimum(size, xp.abs(q))
            scale = xp.minimum(span, xp.where(smaller > 0, smaller, xp.ones_like(smaller)))
            near = xp.abs(targets - q) <= _SEARCHED * scale + _LAST_DIGITS * xp.abs(q)
            equal.append(to_numpy((rounded == xp.astype(q, coarser)) | near))
    return np.stack(equal, axis=1)
