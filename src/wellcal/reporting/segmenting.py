"""Segments: groups of cases that a user names, each tested by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np

from wellcal._arrays.frames import Table, is_frame
from wellcal._arrays.namespaces import NDArray, attribute
from wellcal._arrays.round_numbers import round_between
from wellcal.hypotests import calibration_test
from wellcal.hypotests.findings.reasons import ALPHA
from wellcal.hypotests.pvalues import advise_of_few_resamples, holm
from wellcal.hypotests.result import TestResult
from wellcal.reporting.data import ModelData, at_most
from wellcal.reporting.pieces import SegmentReport, Segments
from wellcal.witnesses.summaries import segment_in_words, segment_labels

PARTS = 4
"""Groups that numbers are cut into, of about equally many cases."""

MOST_VALUES = 10
"""Different numbers up to which each is a group of its own."""

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

    Parameters
    ----------
    given
        Labels or numbers, one for each case, by the name of the variable: a dictionary, a data frame of
        pandas, polars or pyarrow, or a single column.
    n
        Number of cases.
    in_order
        Brings a column, with its name in errors, into the order of the cases.
    """
    found: list[Segment] = []
    left_out: list[str] = []
    columns = _columns(given)
    if not columns:
        raise ValueError("segments has no columns: give one at least, or None")
    if len(columns) > MOST_VARIABLES:
        raise ValueError(f"segments has {len(columns)} variables; a report tests {MOST_VARIABLES} at most")
    for name, column in columns:
        argument = f"segments[{name!r}]" if len(columns) > 1 or isinstance(given, Mapping) else "segments"
        values = segment_labels(in_order(column, argument), argument, n)
        groups = _cut(name, values) if _is_measured(values) else _by_label(name, values)
        most = max(PARTS, min(MOST_GROUPS, MOST_SEGMENTS // len(columns)))
        if len(groups) > most:
            largest = sorted(range(len(groups)), key=lambda k: -len(groups[k].rows))[:most]
            left_out.append(f"Of the {len(groups):,} groups of {name} the {most} largest were tested.")
            groups = [groups[k] for k in sorted(largest)]
        found.extend(groups)
    return found, left_out


def _columns(given: Any) -> list[tuple[str, Any]]:
    if isinstance(given, str):
        raise TypeError(f"segments must be one label or number for each case, found the one string {given!r}")
    if isinstance(given, Mapping):
        return [(str(name), column) for name, column in cast("Mapping[Any, Any]", given).items()]
    if is_frame(given):
        table = Table(given)
        if attribute(given, "iloc") is not None:  # columns of pandas keep their index
            return [(name, given.iloc[:, k]) for k, name in enumerate(table.names)]
        return [(name, table.labels(name)) for name in table.names]
    name = attribute(given, "name")  # of a column of a data frame
    return [(name if isinstance(name, str) and name else "segment", given)]


def _is_measured(values: NDArray) -> bool:
    """Whether values are numbers of which there are too many for groups of their own."""
    return values.dtype.kind in "iuf" and len(np.unique(values)) > MOST_VALUES


def _by_label(name: str, values: NDArray) -> list[Segment]:
    distinct, first, codes = np.unique(values, return_index=True, return_inverse=True)
    # Numbers from small to large, texts in the order in which they come.
    order = range(len(distinct)) if values.dtype.kind in "iuf" else np.argsort(first).tolist()
    return [Segment(name, segment_in_words(name, distinct[k]), np.flatnonzero(codes == k)) for k in order]


def _cut(name: str, values: NDArray) -> list[Segment]:
    """Numbers in groups of about equally many cases, with short numbers between them."""
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"segments[{name!r}] must hold finite numbers: found {values[row]} in row {row}; leave such "
            "cases out, or give labels"
        )
    ordered = np.sort(values.astype(np.float64))
    n = len(ordered)
    cuts: list[float] = []
    for k in range(1, PARTS):
        # Within a tenth of the cases around the share, wherever the number is shortest.
        low, high = (ordered[int(np.clip(n * (k / PARTS + side), 0, n - 1))] for side in (-0.05, 0.05))
        cut = round_number(float(low), float(high)) if low < high else float(low)
        if ordered[0] < cut <= ordered[-1] and (not cuts or cut > cuts[-1]):
            cuts.append(cut)
    edges = [-np.inf, *cuts, np.inf]
    found: list[Segment] = []
    for low, high in pairwise(edges):
        rows = np.flatnonzero((values >= low) & (values < high))
        if len(rows):
            found.append(Segment(name, _between(name, low, high), rows))
    return found


def round_number(low: float, high: float) -> float:
    """A round number between two others, the nearest to their middle: 40 or 35 rather than 34.

    Examples
    --------
    >>> (
    ...     round_number(32.0, 39.0),
    ...     round_number(0.131, 0.164),
    ...     round_number(-7.2, 4.0),
    ...     round_number(48.2, 48.7),
    ... )
    (35.0, 0.15, 0.0, 48.5)
    """
    middle = low + 0.5 * (high - low)
    largest = math.floor(math.log10(max(abs(low), abs(high), high - low))) + 1
    for exponent in range(largest, largest - 12, -1):
        for step in (10.0, 5.0, 2.0):
            per_unit = 10.0 ** (1 - exponent) / step
            found = round(middle * per_unit) / per_unit
            if low < found < high:
                return found
    return round_between(low, high)


def _between(name: str, low: float, high: float) -> str:
    """A range of numbers, in words.

    Examples
    --------
    >>> _between("age", 30.0, 45.0), _between("age", -np.inf, 30.0), _between("age", 60.0, np.inf)
    ('where age is between 30 and 45', 'where age is below 30', 'where age is 60 or above')
    """
    if np.isinf(low):
        return f"where {name} is below {high:g}"
    return (
        f"where {name} is {low:g} or above"
        if np.isinf(high)
        else f"where {name} is between {low:g} and {high:g}"
    )


def by_segment(
    model: ModelData, segments: Sequence[Segment], seed: int, n_resamples: int | None = None
) -> Segments:
    """Each segment by the same test as all cases, with p-values adjusted for their number."""
    results: list[TestResult | None] = []
    notes: list[str] = []
    most = most_cases(segments)
    for segment in segments:
        rows, note = segment.rows, ""
        if len(rows) < FEWEST_CASES:
            results.append(None)
            notes.append(f"{len(rows)} cases are too few, {FEWEST_CASES} are needed")
            continue
        part = at_most(len(rows), most, np.random.default_rng(seed))
        if part is not None:
            note, rows = f"{most:,} of {len(rows):,} cases, drawn at random, were tested", rows[part]
        some = model.some(rows)
        options: dict[str, Any] = {"rng": seed, "n_resamples": n_resamples, "progress": False}
        if some.clusters is not None and len(np.unique(some.clusters)) < 2:
            results.append(None)
            notes.append("all cases are of one cluster, two are needed")
            continue
        results.append(calibration_test(some.targets, some.predictions, groups=some.clusters, **options))
        notes.append(note)
    count = sum(result is not None for result in results)
    tested = [result for result in results if result is not None]
    advise_of_few_resamples(tested, count, ALPHA, f"an error in one of {count} segments")
    adjusted = iter(holm([result.pvalue for result in tested]))
    return Segments(
        tuple(
            SegmentReport(
                segment.variable,
                segment.where,
                len(segment.rows),
                result,
                1.0 if result is None else next(adjusted),
                count,
                note,
            )
            for segment, result, note in zip(segments, results, notes, strict=True)
        ),
        _hypothesis(segments),
    )


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
    return [f"{which} tested on {most:,} of their cases, drawn at random."]


def _hypothesis(segments: Sequence[Segment]) -> str:
    names = list(dict.fromkeys(segment.variable for segment in segments))
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    which = "it" if len(names) == 1 else "them"
    return (
        f"targets follow their predictions within each segment of {listed}: more than calibration where the "
        f"model did not use {which}, so that a calibrated model may fail here; p-values are adjusted for all "
        "segments together (Holm)"
    )
