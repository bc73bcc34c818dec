"""Groups that were found among some of the cases, seen in all of them.

The most striking of many groups looks worse than it is: in other cases it is seen as it is. What a group is,
and what is looked at in it, was chosen without these, so that sums over them need no adjustment for all that
was searched. They are linear in the number of cases, and add up over parts of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal.hypotests.findings.finding import LEVEL
from wellcal.predictions import Predictions, Samples
from wellcal.problem.target_resampling import pool_draws
from wellcal.witnesses.directions import Direction, directions_in, directions_of_draws
from wellcal.witnesses.result import Group, Rule, Witness
from wellcal.witnesses.summaries import Overview, Side, summaries_of_draws
from wellcal.witnesses.wording import shares_text

AT_A_TIME = 50_000
"""Cases that are looked at together."""

_LEAST = 1e-16  # p-value that is told


@dataclass
class Totals:
    """Sums over the cases of a group: they add up over parts of the cases.

    Attributes
    ----------
    observed, expected, variance
        Of the direction, and of its variance under calibration.
    count
        Number of cases.
    """

    observed: float = 0.0
    expected: float = 0.0
    variance: float = 0.0
    count: int = 0

    def plus(self, other: Totals) -> Totals:
        """Of both parts."""
        return Totals(
            self.observed + other.observed,
            self.expected + other.expected,
            self.variance + other.variance,
            self.count + other.count,
        )

    def shifted(self, shift: float) -> Totals:
        """The same, where so much more is expected of each case."""
        return replace(self, expected=self.expected + shift * self.count)

    def add(self, direction: Direction, targets: NDArray, inside: NDArray) -> None:
        """Some cases, those `inside`."""
        found = np.asarray(direction.of(targets[None])[0], dtype=np.float64)[inside]
        expected = direction.expected[inside]
        known = expected * (1.0 - expected) if direction.happens else (found - expected) ** 2
        self.observed += float(found.sum())
        self.expected += float(expected.sum())
        self.variance += float(known.sum())
        self.count += len(found)

    @property
    def z(self) -> float:
        """Standardised difference of what was observed and expected; zero where nothing varies."""
        return (self.observed - self.expected) / self.variance**0.5 if self.variance > 0.0 else 0.0


@dataclass(frozen=True)
class Looked:
    """A group as it was found, and as it is in all cases.

    Attributes
    ----------
    before, after
        Both. Cases of the latter are positions among all.
    holds
        Whether it is still shown: others are chance, or too small to be told from it.
    interval
        Confidence interval of what was observed, where that is a share; else None.
    """

    before: Group
    after: Group
    holds: bool
    interval: tuple[float, float] | None


@dataclass
class _Sums:
    """A group, and its sums over those cases that it was found in, and over the others."""

    group: Group
    rule: Rule
    first: Totals = field(default_factory=Totals)
    others: Totals = field(default_factory=Totals)
    cases: list[NDArray] = field(default_factory=lambda: [])
    direction: Direction | None = None
    swapped: Totals = field(default_factory=Totals)

    def look(
        self,
        found: Sequence[Direction],
        targets: NDArray,
        start: int,
        searched: NDArray,
        pool: NDArray | None = None,
    ) -> None:
        """Add some cases; `pool` are targets pooled with their draws, where predictions are draws."""
        direction = next((one for one in found if one.name == self.rule.direction), None)
        if direction is None:
            return
        self.direction = direction
        inside = _inside(self.rule.sides, direction)
        self.first.add(direction, targets, inside & searched)
        self.others.add(direction, targets, inside & ~searched)
        self.cases.append(start + np.flatnonzero(inside))
        if pool is not None and self.rule.sides:
            for k in range(pool.shape[1]):
                self.swapped.add(direction, pool[:, k], _inside(self.rule.sides, direction, k))

    @property
    def _shift(self) -> float:
        """By how much members of pooled sets that are in the group are beyond what is expected of them."""
        return (self.swapped.observed - self.swapped.expected) / max(self.swapped.count, 1)

    def result(self, alpha: float, searched: int, n: int, groups: int) -> Looked:
        """What the group is in all cases."""
        sign = 1.0 if self.group.statistic > 0.0 else -1.0
        others, total = self.others.shifted(self._shift), self.first.plus(self.others).shifted(self._shift)
        alone = float(special.ndtr(-sign * others.z))
        for_all = -np.expm1(groups * np.log1p(-min(alone, 1.0 - _LEAST)))  # of independent looks (Sidak)
        pvalue = combined(self.group.pvalue, float(for_all), searched, n - searched)
        count = total.count
        observed, expected = total.observed / max(count, 1), total.expected / max(count, 1)
        assert self.direction is not None
        what, numbers = self.direction.describe(observed, expected)
        ends = _share_ends(observed, count) if self.direction.happens else None
        if ends is not None:
            share, low, high, right = shares_text(observed, *ends, expected)
            numbers = f"{share}, {low} to {high}, instead of {right}"
        after = replace(
            self.group,
            statement=f"{what} {self.group.where} ({numbers}; {how_many(count)})",
            direction=what,
            observed=observed,
            expected=expected,
            statistic=total.z,
            pvalue=pvalue,
            cases=np.concatenate([np.zeros(0, dtype=np.intp), *self.cases]),
            n_resamples=None,
        )
        holds = pvalue <= alpha and sign * (observed - expected) > 0.0
        return Looked(self.group, after.described_by(self.rule), holds, ends)


def second_look(
    found: Witness, targets: NDArray, predictions: Predictions, searched: NDArray
) -> tuple[Looked, ...]:
    """Groups that a witness shows for some cases, looked at in all of them.

    Parameters
    ----------
    found
        The witness.
    targets, predictions
        All cases, in NumPy, and targets as computations use them.
    searched
        Positions of those that the witness has seen, in their order.

    Returns
    -------
    tuple
        One for each group that has a rule and is significant; others stay what they are.
    """
    shown = [group for group in found.groups if group.pvalue <= found.alpha]
    sums = [_Sums(group, rule) for group in shown if (rule := group.rule) is not None]
    if not sums:
        return ()
    levels = sorted({level for one in sums for level in one.rule.levels})
    n = len(predictions)
    seen = np.zeros(n, dtype=bool)
    seen[searched] = True
    overview = Overview.of(predictions[searched])  # the witness has seen these
    for start in range(0, n, AT_A_TIME):
        part = slice(start, min(start + AT_A_TIME, n))
        batch, own = predictions[part], targets[part]
        pool: NDArray | None = None
        if isinstance(batch, Samples) and batch.kind == "draws":
            pooled = pool_draws(own, batch)
            pool = np.asarray(pooled.values)
            directions = directions_of_draws(pooled, levels, summaries_of_draws(pooled))
        else:
            directions = directions_in(batch, levels, overview, None)
        for one in sums:
            one.look(directions, own, start, seen[part], pool)
    known = [one for one in sums if one.direction is not None]
    return tuple(one.result(found.alpha, len(searched), n, len(known)) for one in known)


def combined(first: float, second: float, cases: int, others: int) -> float:
    """One p-value of two, of different cases, weighted by their numbers (Stouffer's method).

    The first is adjusted for all that was searched. Where there are many other cases these decide; where
    there are few, they cannot take back what was found.

    Examples
    --------
    >>> round(combined(0.001, 0.5, 5000, 1), 4), round(combined(0.001, 0.5, 5000, 995_000), 2)
    (0.001, 0.41)
    """
    z = [-float(special.ndtri(min(max(p, _LEAST), 1.0 - _LEAST))) for p in (first, second)]
    both = (z[0] * math.sqrt(cases) + z[1] * math.sqrt(others)) / math.sqrt(cases + others)
    return max(float(special.ndtr(-both)), _LEAST)


def _inside(sides: Sequence[Side], direction: Direction, member: int | None = None) -> NDArray:
    """Which cases are within all sides, ``(n,)``; if a `member` of their pooled sets were the target."""
    known = {summary.name: summary for summary in direction.summaries}
    inside = np.ones(len(direction.expected), dtype=bool)
    for side in sides:
        summary = known[side.summary]
        swapped = summary.swapped
        values = np.asarray(summary.values if member is None or swapped is None else swapped[:, member])
        inside &= (values > side.low) & (values <= side.high)
    return inside


def _share_ends(share: float, count: int) -> tuple[float, float]:
    """Wilson's interval of a share."""
    z, n = float(special.ndtri(0.5 + 0.5 * LEVEL)), max(count, 1)
    middle = (share + 0.5 * z**2 / n) / (1.0 + z**2 / n)
    half = z / (1.0 + z**2 / n) * float(np.sqrt(share * (1.0 - share) / n + 0.25 * (z / n) ** 2))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def as_computed(targets: Any, predictions: Predictions) -> NDArray:
    """Targets as computations use them: classes are numbered."""
    return np.asarray(to_numpy(predictions.check_targets(targets)))
