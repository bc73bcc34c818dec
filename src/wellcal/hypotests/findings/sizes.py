"""Findings and the yardstick beside them: one size and one direction, or words that tell them apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from scipy import special

from wellcal.hypotests.findings.classes import CONFIDENCE
from wellcal.hypotests.findings.finding import LEVEL, Finding
from wellcal.hypotests.findings.impossible import IMPOSSIBLE
from wellcal.hypotests.findings.levels import SURPRISE
from wellcal.hypotests.findings.trends import CENTRE_TREND, SPREAD_TREND
from wellcal.measures import yardstick
from wellcal.measures.estimate import Estimate
from wellcal.measures.wording import share_of
from wellcal.measures.yardstick import SLIGHT, Yardstick
from wellcal.predictions.misspecification import MEANS, SPREADS, TEMPERATURE

OF_ALL_CASES = {
    SPREADS: {"spread": 1, "dispersion": -1, "coverage": 1, "range": -1, SURPRISE: 1},
    TEMPERATURE: {"slope": 1, "temperature": -1, CONFIDENCE: 1, SURPRISE: 1},
    MEANS: {"shift": 0},
}
"""Findings about all cases that give a kind of yardstick its direction.

1 where a size below 1, or one below what is expected, means predictions that are too small, -1 where it means
too large, and 0 where the likelihood of the targets says it.
"""

OF_SOME_CASES: Mapping[str, Mapping[str, tuple[int, float]]] = {
    SPREADS: {SPREAD_TREND: (1, 1.0)},
    TEMPERATURE: {},
    MEANS: {CENTRE_TREND: (-1, 0.0)},
}
"""The same for findings about some cases that know of the others, too; and the size that is right."""


def yardstick_with(estimate: Estimate, findings: Sequence[Finding], level: float = LEVEL) -> Yardstick | None:
    """The yardstick of an estimate beside what was found: they say the same, or it has no direction.

    An error in spreads, temperature or means that all cases have alike, and no other, is its own yardstick:
    a model with just this error is as far off. The size that the finding has from the likelihood is the one
    that is told, not the one that a KCE leads to, which is the same but for chance. With other errors beside
    it KCE says how far off all of them are together, which is no less than that one alone. Where it is
    larger than errors to that side can make it, both sides are told.

    Counts that are more dispersed than predicted are measured by spreads that are too small. `level` is that
    of the interval, which is wider than usual where several of them are to hold together.
    """
    own = _own(findings, level)
    if own is not None and len(findings) == 1:
        return own
    size = _by_error(estimate, SPREADS, level) if _too_dispersed(findings) else None
    size = _by_error(estimate, None, level) if size is None else size
    if size is None:
        return None if own is None else replace(own, overall=True)
    size = _directed(size, findings)
    alike = own is not None and own.kind == size.kind and size.directed
    if own is not None and alike and _farther(own, size) and not size.surely_beyond:
        return replace(own, overall=True)
    either = replace(size, directed=False)
    if size.beyond and not all(side.beyond for side in either.sides):
        size = either  # what no error to this side is as far off as, one to the other side is
    return replace(size, overall=alike or _told_in_part(size.kind, findings))


def surely_not_slight(estimate: Estimate, findings: Sequence[Finding]) -> bool:
    """Whether the yardstick beside what was found is not slight, for less than it takes to find it."""
    own = _own(findings)
    if own is not None and (len(findings) == 1 or share_of(own.ratio) >= SLIGHT):
        return not own.slight
    cases = estimate.cases
    if cases is None or estimate.known_yardstick is not None:  # nothing to find, or found already
        return False
    root = float(estimate) if estimate.name == "KCE" else math.sqrt(max(float(estimate), 0.0))
    kinds = (SPREADS, None) if _too_dispersed(findings) else (None,)
    return all(yardstick.surely_not_slight(cases, root, kind) for kind in kinds)


def _by_error(estimate: Estimate, kind: str | None, level: float) -> Yardstick | None:
    """The yardstick that a calibration error leads to; the estimate keeps that of the usual level."""
    if level != LEVEL:
        return estimate.yardstick_at(level, kind)
    return estimate.yardstick if kind is None else estimate.yardstick_of(kind)


def widened(value: float, ends: tuple[float, float], level: float, known: float) -> tuple[float, float]:
    """The interval of a positive number at a `level`, from that at a `known` one, by normal quantiles.

    Examples
    --------
    >>> low, high = widened(0.8, (0.7, 0.95), 0.99, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.669, 0.997)
    """
    if level == known or not 0.0 < known < 1.0:
        return ends
    farther = float(special.ndtri(0.5 + 0.5 * level) / special.ndtri(0.5 + 0.5 * known))
    low, high = (value + farther * (end - value) for end in ends)
    return max(low, 0.0), high


def _own(findings: Sequence[Finding], level: float = LEVEL) -> Yardstick | None:
    """The first finding that is an error which yardsticks are made of, as a yardstick."""
    for found in findings:
        kind = next((kind for kind, known in OF_ALL_CASES.items() if found.kind in known), None)
        if kind is not None and found.ratio is not None:
            ratio = found.ratio[0]
            low, high = widened(ratio, found.ratio[1:], level, found.level)
            near, far = (high, low) if ratio < 1.0 else (low, high)
            reaches = (near - 1.0) * (ratio - 1.0) <= 0.0  # what is right, or the other side
            return Yardstick(kind, ratio, 1.0 if reaches else near, far, level, unit=found.unit)
    return None


def _farther(one: Yardstick, other: Yardstick) -> bool:
    """Whether an error is larger than another."""
    first, second = (abs(math.log(max(size.ratio, 1e-300))) for size in (one, other))
    return first >= second


def _directed(size: Yardstick, findings: Sequence[Finding]) -> Yardstick:
    """A yardstick in the direction that findings have, or in none where they have none, or both."""
    # Shares are off where targets are shifted, too: they have a direction where nothing is clearer. That
    # something was called impossible says nothing of one.
    known = [found for found in findings if found.kind != IMPOSSIBLE]
    clear = [found for place, found in enumerate(known) if place == 0 or found.expected is None]
    sides = set[int]().union(*(_sides(size, found) for found in clear))
    return size.towards(sides.pop() if len(sides) == 1 else None)


def _sides(size: Yardstick, found: Finding) -> set[int]:
    """Sides that a finding knows an error on, -1 for too small; none where it is about something else."""
    everywhere, somewhere = OF_ALL_CASES[size.kind], OF_SOME_CASES[size.kind]
    if found.size is None or not _of_this_kind(size.kind, found):
        return set()
    if found.kind in everywhere:
        sign, right, sizes = everywhere[found.kind], 1.0, [found.size]
        if sign == 0:
            return {1 if size.high > 1.0 else -1}
    elif found.elsewhere is None:  # how cases differ, and not how far any of them are off
        return {-1, 1}
    else:
        sign, right = somewhere[found.kind]
        sizes = [found.size, found.elsewhere[0]]
    right = right if found.expected is None else found.expected
    if found.elsewhere is not None and found.elsewhere[1] <= right <= found.elsewhere[2]:
        sizes = sizes[:1]  # what may be right is on no side
    return {sign if value > right else -sign for value in sizes}


def _told_in_part(kind: str, findings: Sequence[Finding]) -> bool:
    """Whether a finding tells an error of this kind in some cases or coordinates, by another number."""
    told = [found for found in findings if _of_this_kind(kind, found) and found.expected is None]
    return bool(told) and (len(findings) > 1 or told[0].kind not in OF_ALL_CASES[TEMPERATURE])


def _of_this_kind(kind: str, found: Finding) -> bool:
    return found.kind in OF_ALL_CASES[kind] or found.kind in OF_SOME_CASES[kind]


def _too_dispersed(findings: Sequence[Finding]) -> bool:
    """Whether counts are more dispersed than predicted, and not shifted: errors in spreads measure that."""
    first = next((found for found in findings if found.kind in ("shift", "dispersion")), None)
    return first is not None and first.kind == "dispersion" and (first.size or 0.0) > 1.0
