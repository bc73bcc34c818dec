"""Segments: groups of cases that a user names, each tested by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.progress import Stages
from wellcal._arrays.round_numbers import how_many
from wellcal.hypotests import calibration_test
from wellcal.hypotests.findings.reasons import ALPHA
from wellcal.hypotests.pvalues import advise_of_few_resamples, holm
from wellcal.hypotests.result import TestResult
from wellcal.measures.presentation import at_floor
from wellcal.predictions.target_leakage import without_targets
from wellcal.reporting.data import ModelData, at_most, gathered
from wellcal.reporting.pieces import SegmentReport, Segments
from wellcal.witnesses.segments import PARTS, groups_by_column

MOST_GROUPS, MOST_SEGMENTS = 12, 60
"""Groups of one variable that are tested, the largest, and of all variables; those beyond are told."""

MOST_VARIABLES = 20

FEWEST_CASES = 10
"""Cases that a segment needs."""

MOST_CASES, ALL_CASES = 5_000, 50_000
"""Cases of a segment that are tested, and about how many of all of them; of more, a random part."""


@dataclass(frozen=True)
class Segment:
    """A group of cases.

    Attributes
    ----------
    variable, where
        Name of the variable, and the cases in words.
    rows
        Which they are.
    """

    variable: str
    where: str
    rows: NDArray


def segments_from(given: Any, n: int, in_order: Callable[[Any, str], Any]) -> tuple[list[Segment], list[str]]:
    """Groups of cases from what a user gave, and what was left out, in sentences.

    Arguments are those of :func:`wellcal.witnesses.segments.groups_by_column`.
    """
    found: list[Segment] = []
    alike: list[Segment] = []
    left_out: list[str] = []
    columns = groups_by_column(given, n, in_order)
    if len(columns) > MOST_VARIABLES:
        raise ValueError(f"segments has {len(columns)} variables; a report tests {MOST_VARIABLES} at most")
    for name, groups in columns:
        variable = name or "segment"
        most = max(PARTS, min(MOST_GROUPS, MOST_SEGMENTS // len(columns)))
        if len(groups) > most:
            largest = sorted(range(len(groups)), key=lambda k: -len(groups[k].rows))[:most]
            left_out.append(_left_out(variable, len(groups), [len(groups[k].rows) for k in largest]))
            groups = [groups[k] for k in sorted(largest)]
        segments = [Segment(variable, where, rows) for where, rows in groups]
        if len(segments) == 1:
            alike += segments
        else:
            found += segments
    if not found:
        return alike, left_out
    names = [segment.variable for segment in alike]
    return found, [*left_out, *(f"{name} is the same in all cases, and tells none apart." for name in names)]


def _left_out(variable: str, count: int, sizes: Sequence[int]) -> str:
    """Which of many groups were tested, by the sizes of the largest."""
    tested = sum(size >= FEWEST_CASES for size in sizes)
    if not tested:
        return f"None of the {count:,} groups of {variable} has the {FEWEST_CASES} cases that a test needs."
    which = "largest was" if tested == 1 else f"{tested} largest were"
    return f"Of the {count:,} groups of {variable} the {which} tested."


def by_segment(
    model: ModelData, segments: Sequence[Segment], seed: int, n_resamples: int | None = None
) -> Segments:
    """Each segment by the same test as all cases, with p-values adjusted for their number."""
    results: list[TestResult | None] = []
    notes: list[str] = []
    most = most_cases(segments)
    stages = Stages("segments", float(len(segments)))
    for segment in segments:
        rows, note = segment.rows, ""
        if len(rows) < FEWEST_CASES:
            results.append(None)
            few = "is" if len(rows) == 1 else "are"
            notes.append(f"{how_many(len(rows))} {few} too few, {FEWEST_CASES} are needed")
            continue
        part = at_most(len(rows), most, np.random.default_rng(seed))
        if part is not None:
            note, rows = f"{most:,} of {len(rows):,} cases, drawn at random, were tested", rows[part]
        some = model.some(rows)
        options: dict[str, Any] = {"rng": seed, "n_resamples": n_resamples}
        if some.clusters is not None and len(np.unique(some.clusters)) < 2:
            results.append(None)
            notes.append("all cases are of one cluster, two are needed")
            continue
        with stages.part(1.0):
            results.append(calibration_test(some.targets, some.predictions, groups=some.clusters, **options))
        notes.append(note)
    stages.end()
    tested = [result for result in results if result is not None]
    count = len(tested)
    advise_of_few_resamples(tested, count, ALPHA, f"an error in one of {count} segments")
    adjusted = iter(adjusted_pvalues(tested))
    return Segments(
        tuple(
            SegmentReport(
                segment.variable,
                segment.where,
                len(segment.rows),
                result,
                pvalue,
                count,
                note,
                floor,
            )
            for segment, result, note in zip(segments, results, notes, strict=True)
            for pvalue, floor in [(1.0, None) if result is None else next(adjusted)]
        ),
        _hypothesis(segments),
    )


def adjusted_pvalues(tests: Sequence[TestResult]) -> list[tuple[float, float | None]]:
    """p-values adjusted for their number, each with itself as its floor where it is no more than a bound.

    It is one where it would be smaller if those tests had a smaller p-value that cannot have one.
    """
    pvalues = holm([test.pvalue for test in tests])
    least = holm([0.0 if at_floor(test.pvalue, test.pvalue_floor) else test.pvalue for test in tests])
    return [(found, found if low < found else None) for found, low in zip(pvalues, least, strict=True)]


def segments_alone(
    y: object,
    pred: object,
    given: Any,
    *,
    groups: object = None,
    seed: int = 0,
    n_resamples: int | None = None,
) -> Segments:
    """The segments of one model alone, as a report has them.

    Examples
    --------
    >>> import wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu, region = rng.normal(size=200), np.repeat(["north", "south"], 100)
    >>> y = rng.normal(mu + (region == "north"), 1.0)
    >>> found = segments_alone(y, wc.Normal(mu, np.ones(200)), {"region": region}, n_resamples=199)
    >>> found.verdict
    'Miscalibrated in 1 segment of 2: for region = north.'
    """
    data = gathered(y, pred)
    data = data if groups is None else data.in_clusters(groups)
    parts, _ = segments_from(given, len(data), without_targets(data.in_order, data.models[0].targets))
    return by_segment(data.models[0], parts, seed, n_resamples)


def most_cases(segments: Sequence[Segment]) -> int:
    """Cases of a segment that are tested at most."""
    return int(np.clip(ALL_CASES // max(1, len(segments)), FEWEST_CASES, MOST_CASES))


def in_part(segments: Sequence[Segment]) -> list[str]:
    """That segments are tested in part, where they are."""
    most = most_cases(segments)
    count = sum(len(segment.rows) > most for segment in segments)
    if not count:
        return []
    which = "1 segment was" if count == 1 else f"{count} segments were"
    return [f"{which} tested on {most:,} of {'its' if count == 1 else 'their'} cases, drawn at random."]


def _hypothesis(segments: Sequence[Segment]) -> str:
    names = list(dict.fromkeys(segment.variable for segment in segments))
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    which = "it" if len(names) == 1 else "them"
    return (
        f"targets follow their predictions within each segment of {listed}: more than calibration where the "
        f"model did not use {which}, so that a calibrated model may fail here; p-values are adjusted for all "
        "segments together (Holm)"
    )
