"""A closer look at what a part of a test saw, where the first look does not tell it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.progress import reporter
from wellcal.hypotests.findings.binary import GROUPED, SLOPE, BinaryClaims, FineGroups
from wellcal.hypotests.findings.claims import LOOKED_FOR, Claims, certain, evidence, likely, significant
from wellcal.hypotests.findings.class_slopes import ClassSlopes, class_slope
from wellcal.hypotests.findings.classes import (
    CONFIDENCE,
    TEMPERATURE,
    ClassClaims,
    temperature_is_right,
    tempered,
)
from wellcal.hypotests.findings.confusions import Confusions
from wellcal.hypotests.findings.counts import CountClaims
from wellcal.hypotests.findings.draws import DrawClaims, QuantileClaims
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.findings.joint import (
    CentreTrends,
    CorrelationTrends,
    OtherCentres,
    SpreadTrends,
)
from wellcal.hypotests.findings.levels import LevelClaims, SurpriseClaims, has_tenths
from wellcal.hypotests.findings.pooled_joint import (
    PooledCentreTrends,
    PooledCorrelationTrends,
    PooledSpreadTrends,
)
from wellcal.hypotests.findings.pooled_vectors import PooledVectors
from wellcal.hypotests.findings.reasons import ALPHA, Reasons, Seen
from wellcal.hypotests.findings.scalars import TAILS, ShapeClaims
from wellcal.hypotests.findings.trends import CENTRE_TREND, CORRELATION_TREND, SPREAD_TREND
from wellcal.hypotests.findings.vectors import TOGETHER, VectorClaims
from wellcal.hypotests.parts.surprise import Surprise, surprise_of
from wellcal.measures.normal_scores import standing_of
from wellcal.problem.target_resampling import TargetStream

RESAMPLES, MOST_DRAWS = 499, 5 * 10**6
"""Sets of targets that are drawn, and numbers in them, at most: but 99 sets at least."""

_CLOSER = 199  # sets for a closer look
_SEED = 20211  # findings depend on targets and predictions, not on how a test was drawn
_STREAM = TargetStream((_SEED, 0))
_BESIDE = 0.2 * ALPHA  # error rate of what is told beside other findings


def drawn_sets(seen: Seen, most: int = RESAMPLES) -> Iterator[NDArray]:
    """Sets of targets drawn from the predictions."""
    count = max(min(most, MOST_DRAWS // max(seen.targets.size, 1)), 99)
    tell, done = reporter(), 0
    tell(LOOKED_FOR, done, count)
    for drawn in _STREAM.sets(seen.predictions, seen.targets, count):
        yield drawn
        done += len(drawn)
        tell(LOOKED_FOR, done, count)


class _Look(NamedTuple):
    """Claims for some parts of a test.

    Attributes
    ----------
    parts
        The parts that call for it.
    instead
        Kinds of findings that make it needless; None where any does.
    make
        The claims, or None where there are none.
    """

    parts: frozenset[str]
    instead: frozenset[str] | None
    make: Callable[[], Claims | None]


def closer_look(
    seen: Seen, claims: Claims, found: Sequence[Finding], reasons: Reasons, perhaps: bool = False
) -> list[Finding]:
    """Findings and those of a closer look at the parts that rejected; with `perhaps` at the leading one."""
    parts = set(reasons.all if perhaps else reasons.clear)
    if not parts:
        return list(found)
    if isinstance(claims, ClassClaims):
        return _of_classes(seen, claims, list(found), parts, perhaps)
    out = list(found)
    for look in _looks(seen, claims):
        kinds = {finding.kind for finding in out}
        if not look.parts & parts or (kinds if look.instead is None else kinds & look.instead):
            continue
        made = look.make()
        if made is not None and made.names:
            out += _told(seen, made, ALPHA if not out else _BESIDE, perhaps)
    if isinstance(claims, BinaryClaims):
        out = _without_groups_on_a_line(seen, claims, out)
    return sorted(_without_consequences(out), key=_pvalue)


def _without_groups_on_a_line(seen: Seen, claims: BinaryClaims, found: list[Finding]) -> list[Finding]:
    """Without single groups of probabilities where slope and frequency, which are told, explain them."""
    if not {finding.kind for finding in found} >= {SLOPE, GROUPED}:
        return found
    fine = FineGroups(claims)
    explained = fine.lie_on_a_line(seen.targets, _BESIDE)
    return [finding for finding in found if not explained or finding.kind != GROUPED]


def _without_consequences(found: list[Finding]) -> list[Finding]:
    """Without heavy tails of a coordinate whose spread goes with the prediction of another."""
    mixed = {finding.sentence.split(": ")[0] for finding in found if finding.kind == SPREAD_TREND}
    mixed |= {TOGETHER.split(": ")[0]} if mixed else set()
    return [
        finding for finding in found if finding.kind != TAILS or finding.sentence.split(": ")[0] not in mixed
    ]


def _told(seen: Seen, claims: Claims, alpha: float = ALPHA, perhaps: bool = False) -> list[Finding]:
    every = evidence(claims.within(seen.groups), seen.targets, drawn_sets(seen, _CLOSER))
    if perhaps:
        return likely(claims, every, seen.targets, claims.tested)
    return certain(claims, every, seen.targets, claims.tested, alpha=alpha)


def _looks(seen: Seen, claims: Claims) -> Iterable[_Look]:
    if isinstance(claims, VectorClaims):
        yield from _of_vectors(seen, claims)
    elif isinstance(claims, BinaryClaims):
        fine = partial(FineGroups, claims)
        yield _Look(frozenset({"curve"}), frozenset({GROUPED}), fine)
        yield _Look(frozenset({"groups", "SKCE", "locations"}), None, fine)
        yield _Look(frozenset({"surprise"}), None, lambda: _surprise(seen))
    elif not isinstance(claims, QuantileClaims):  # whose levels are told
        of = "draws" if isinstance(claims, DrawClaims) else "predictions"
        parts = frozenset({"distribution", "levels", "shape", "tails", "spread"})
        if isinstance(claims, (CountClaims, DrawClaims)):
            yield _Look(parts, None, lambda: _shape(seen, claims))
        yield _Look(parts, None, lambda: _levels(seen, of))


def _levels(seen: Seen, of: str) -> Claims | None:
    standing = standing_of(seen.predictions)
    if standing is None:
        return None
    return LevelClaims(standing, of, exact=has_tenths(seen.predictions, standing))


def _shape(seen: Seen, claims: CountClaims | DrawClaims) -> Claims | None:
    standing = standing_of(seen.predictions)
    return None if standing is None else ShapeClaims(standing, claims.columns, claims.summaries)


def _surprise(seen: Seen) -> Claims | None:
    if seen.predictions.kind == "classes":
        return SurpriseClaims(_of_labels(np.asarray(to_numpy(seen.predictions.class_probs()))))
    surprise = surprise_of(seen.predictions)
    return None if surprise is None else SurpriseClaims(surprise)


# -- vectors -----------------------------------------------------------------------------------------


def _of_vectors(seen: Seen, claims: VectorClaims) -> Iterable[_Look]:
    def draw(size: int) -> NDArray:
        return np.concatenate(list(_STREAM.sets(seen.predictions, seen.targets, size)))

    looks: list[Callable[[], Claims | None]] = (
        [partial(look, claims) for look in (PooledCorrelationTrends, PooledCentreTrends, PooledSpreadTrends)]
        if isinstance(claims, PooledVectors)
        else [
            partial(CorrelationTrends, claims, draw),
            partial(CentreTrends, claims),
            partial(SpreadTrends, claims),
        ]
    )
    for kind, look in zip((CORRELATION_TREND, CENTRE_TREND, SPREAD_TREND), looks, strict=True):
        yield _Look(frozenset({kind}), frozenset({kind}), look)
    yield _Look(frozenset({"centre"}), frozenset({"shift", CENTRE_TREND}), lambda: OtherCentres(claims))
    yield _Look(frozenset({"surprise", "spread", "shape"}), None, lambda: _surprise(seen))


# -- classes -----------------------------------------------------------------------------------------


def _of_classes(
    seen: Seen, claims: ClassClaims, found: list[Finding], parts: set[str], perhaps: bool
) -> list[Finding]:
    """Classes that are taken for each other, single classes that are too extreme, or one in place of another.

    These make the temperature of all classes look wrong. Where it is right for the others it is not told.
    """
    p, clipped, targets = claims.probabilities, claims.clipped, seen.targets
    hot = any(finding.kind == TEMPERATURE for finding in found)
    right = tempered(clipped, targets) if hot else p
    cells = Confusions(right, claims.labels).within(seen.groups)
    known = evidence(cells, targets, drawn_sets(seen, _CLOSER)) if cells.names else {}
    pairs = cells.swaps(significant(known)) or cells.likelier_swaps(known, targets)
    if pairs:
        plain = Confusions(p, claims.labels).within(seen.groups)
        every = evidence(plain, targets, drawn_sets(seen, _CLOSER))
        both = {k for pair in pairs for k in pair}
        # Each of them occurs as often as the other was predicted, which is no error of its own.
        found = [one for one in found if one.kind != "class" or not both & set(one.classes or ())]
        return _first([plain.swapped(a, b, every) for a, b in pairs], found, seen, clipped, both)
    slopes = ClassSlopes(clipped, claims.labels).within(seen.groups)
    if hot or "slopes" in parts:
        every = evidence(slopes, targets, drawn_sets(seen, _CLOSER))
        if not hot:
            found = sorted([*found, *certain(slopes, every, targets, slopes.tested)], key=_pvalue)
        else:
            alone = _extreme(seen, ClassSlopes(right, claims.labels), clipped)
            if alone is not None and every[alone].pvalue <= ALPHA:
                told = [class_slope(claims.labels, int(alone), every[alone])]
                return _first(told, found, seen, clipped, {int(alone)})
        if not found and perhaps:
            found = likely(slopes, every, targets, slopes.tested)
    if found or not known:
        return found
    return (likely if perhaps else certain)(cells, known, targets, cells.tested) or (
        _told(seen, SurpriseClaims(_of_labels(p)), ALPHA, perhaps) if "surprise" in parts else []
    )


def _extreme(seen: Seen, slopes: ClassSlopes, p: NDArray) -> str | None:
    """The class that is clearest off with the temperature put right, where without it nothing is."""
    told = significant(evidence(slopes.within(seen.groups), seen.targets, drawn_sets(seen, _CLOSER)))
    name = next(iter(told), None)
    if name is None or not temperature_is_right(p, seen.targets, [int(name)]):
        return None
    return name


def _first(
    told: list[Finding], found: list[Finding], seen: Seen, p: NDArray, classes: set[int]
) -> list[Finding]:
    """Findings about some classes before those that follow from them."""
    if temperature_is_right(p, seen.targets, sorted(classes)):
        found = [finding for finding in found if finding.kind not in (TEMPERATURE, CONFIDENCE)]
    clearest = min(finding.pvalue for finding in [*told, *found])
    return [*(replace(finding, pvalue=min(finding.pvalue, clearest)) for finding in told), *found]


def _of_labels(p: NDArray) -> Surprise:
    logs = np.log(np.maximum(p, 1e-300))
    return lambda targets: -logs[np.arange(len(p)), targets]


def _pvalue(finding: Finding) -> float:
    return finding.pvalue
