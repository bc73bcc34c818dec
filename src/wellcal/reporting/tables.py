"""Tables of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

from wellcal.comparison import Comparisons
from wellcal.comparison.differences import Difference
from wellcal.comparison.several import Pair
from wellcal.comparison.shares import called, clearest, explained, opposite_of
from wellcal.hypotests.e_values import e_value_text
from wellcal.measures.estimate import Estimate
from wellcal.measures.presentation import pvalue_sign
from wellcal.reporting.first_screen import how_large, mending, sentence, where
from wellcal.reporting.numbers import INFINITE, known_interval
from wellcal.reporting.pieces import ExampleCase, Mended, SegmentReport, Segments
from wellcal.reporting.result import ModelReport, Report
from wellcal.reporting.view import NOTHING, Cell, Table, number_cell

_FEW_CASES = 50  # below, Student's intervals of skewed scores hold the truth in less than 93 of 100 samples


def models_table(report: Report) -> Table:
    """What tiles say of one model, a row for each; ties are called ties."""
    mended = any(model.mended is not None for model in report.models)
    names = ["Model", "Verdict", "How large", "Where", *(["Mending"] if mended else [])]
    header = [Cell(name) for name in names]
    told: list[str] = []
    if report.comparison is not None:
        told = explained([report.comparison.measure])
        measured = called(report.comparison.measure)
        named = f"{measured[0].upper()}{measured[1:]}, less that of {report.best.name}"
        header.append(Cell(named, number=True))
    rows = [_row(report, rank, model, mended) for rank, model in enumerate(report.models)]
    return Table(header, rows, "; ".join([f"Best first{_order(report)}", *told]))


def _order(report: Report) -> str:
    """By what models are ordered, where that is not the difference to the best one."""
    found, best = report.comparison, report.best.name
    others = [] if found is None else [_less_best(found, best, model.name)[2] for model in report.models[1:]]
    if not report.tied and all(before <= after for before, after in pairwise([0.0, *others])):
        return ""
    return "; where none is shown to be better: not miscalibrated, then better scores first"


def _row(report: Report, rank: int, model: ModelReport, mended: bool) -> list[Cell]:
    size = model.yardstick if model.rejected else None
    found = "Miscalibrated" if model.rejected else "No miscalibration found"
    large, place, gain = how_large(model), where(model), mending(model)
    cells = [
        Cell(model.name, value=rank),
        Cell(found, value=model.test.pvalue, under=_pvalue(model)),
        Cell(large.main, value=0.0 if size is None else size.share, under=large.more),
        Cell(place.main, under=place.more),
        *([Cell(gain.main, under=gain.more)] if mended else []),
    ]
    if report.comparison is not None:
        cells.append(_difference(report.comparison, report.best.name, model.name))
    return cells


def _pvalue(model: ModelReport) -> str:
    return pvalue_sign(model.test.pvalue, model.test.pvalue_floor)


def estimate_cell(estimate: Estimate | None) -> Cell:
    """A number with its interval below it, where there is one."""
    if estimate is None:
        return NOTHING
    interval = known_interval(estimate)
    under = str(estimate.provenance.get(INFINITE, ""))
    if interval is not None:
        under = f"{interval.low:.4g} to {interval.high:.4g}"
    return number_cell(f"{float(estimate):.4g}", float(estimate), under)


def _difference(comparison: Comparisons, best: str, name: str) -> Cell:
    if name == best:
        return Cell("tied for best" if comparison.tied else "best", value=0.0, number=True)
    pair, found, off = _less_best(comparison, best, name)
    sign = 1.0 if pair.second == best else -1.0
    interval = found.confidence_interval()
    low, high = sorted((sign * interval.low, sign * interval.high))
    value = f"{off:+.2g}"
    if pair not in comparison.shown:
        told = f"{value} ({low:.2g} to {high:.2g})" if found.holds else "both may be calibrated"
        return number_cell("a tie", off, told)
    under = f"{low:.2g} to {high:.2g}"
    if (other := opposite_of(found.measure, pair.differences)) is not None:
        under += f"; the opposite by {other.measure}"
    elif low <= 0.0 <= high:
        under += f"; shown by {clearest(pair.differences).measure}"
    return number_cell(value, off, under)


def _less_best(comparison: Comparisons, best: str, name: str) -> tuple[Pair, Difference, float]:
    """The pair of a model and the best one, their difference in the measure that is shown, and its number."""
    pair = _pair(comparison, best, name)
    found = next(gap for gap in pair.differences if gap.measure == comparison.measure)
    return pair, found, found.value if pair.second == best else -found.value


def _pair(comparison: Comparisons, first: str, second: str) -> Pair:
    return next(pair for pair in comparison.pairs if {pair.first, pair.second} == {first, second})


def sizes_table(models: Sequence[ModelReport]) -> Table:
    """How large the error is, in several measures: a row for each, and a column for each model."""
    columns = [_sizes(model) for model in models]
    names = list(dict.fromkeys(name for column in columns for name in column))
    header = [Cell(""), *(Cell(model.name) for model in models)] if len(models) > 1 else []
    rows = [[Cell(name), *(column.get(name, NOTHING) for column in columns)] for name in names]
    return Table(header, rows, sortable=False)


def _sizes(model: ModelReport) -> dict[str, Cell]:
    test, ends = model.test, model.kce.confidence_interval()
    found: dict[str, Cell] = {}
    large = how_large(model)
    found["In words"] = Cell(large.main, under=large.more)
    between = f"{ends.level:.0%} interval {ends.low:.3g} to {ends.high:.3g}"
    found["Calibration error (KCE)"] = Cell(f"{float(model.kce):.3g}", under=between)
    if not model.rejected and model.size is not None:
        what, _, most = model.size.partition(": ")
        found[sentence(what).rstrip(".")] = Cell(sentence(most))
    if model.ece is not None:
        how = "from bins of predicted probabilities; by chance above 0 also if calibrated"
        found["Expected calibration error (ECE)"] = Cell(f"{float(model.ece):.3g}", under=how)
    _, _, why = test.pvalue_statement.partition(", ")
    found["p-value"] = Cell(_pvalue(model), under=why)
    if test.effect_size is not None:
        meaning = "about 0 if calibrated, 1 if all targets err alike"
        found["Effect size"] = Cell(f"{test.effect_size:.3g}", under=meaning)
    if not math.isnan(test.log_e_value):
        found["e-value"] = Cell(e_value_text(test.log_e_value), under="about 1 or less if calibrated")
    return found


def scores_table(models: Sequence[ModelReport]) -> Table | None:
    """Proper scores: a row for each, and a column for each model."""
    names = list(dict.fromkeys(name for model in models for name in model.scores))
    if not names:
        return None
    header = [
        Cell("Score (lower is better)"),
        *(Cell(model.name if len(models) > 1 else "Mean", number=True) for model in models),
    ]
    rows = [[Cell(name), *(estimate_cell(model.scores.get(name)) for model in models)] for name in names]
    caption = "Mean over cases, with 95% intervals"
    if min(score.n_samples for model in models for score in model.scores.values()) < _FEW_CASES:
        caption += ", which are too narrow where a few of so few cases score far worse than the others"
    return Table(header, rows, caption)


def coverage_table(found: Any) -> Table:
    """How many outcomes lie in the intervals of each level."""
    header = [
        Cell("Interval", number=True),
        Cell("Outcomes in it", number=True),
        Cell("95% limits", number=True),
        Cell("If calibrated", number=True),
        Cell("Mean width", number=True),
    ]
    columns = (found.coverage, found.low, found.high, found.expected, found.widths)
    # Few draws, and counts that are nearly always zero, have one interval for several levels.
    same = groupby(zip(found.levels, zip(*columns, strict=True), strict=True), key=itemgetter(1))
    rows: list[list[Cell]] = []
    for (covered, low, high, expected, width), some in same:
        levels = [level for level, _ in some]
        rows.append(
            [
                number_cell(_levels_in_words(levels), levels[0]),
                number_cell(f"{100 * covered:.1f}%", covered),
                number_cell(f"{100 * low:.1f}% to {100 * high:.1f}%", low),
                number_cell(f"{100 * expected:.1f}%", expected),
                number_cell(f"{width:.4g}", width),
            ]
        )
    return Table(header, rows, "How many outcomes the predicted intervals hold")


def _levels_in_words(levels: Sequence[float]) -> str:
    """One level, or from the first to the last of some.

    Examples
    --------
    >>> _levels_in_words([0.5]), _levels_in_words([0.5, 0.8, 0.95])
    ('50%', '50% to 95%')
    """
    ends = (levels[0], levels[-1]) if len(levels) > 1 else levels
    return " to ".join(f"{100 * level:.4g}%" for level in ends)


def mended_table(found: Mended) -> Table:
    """Scores before and after."""
    columns = ("As it is", "Mended", "Gained")
    header = [Cell("Lower is better"), *(Cell(name, number=True) for name in columns)]
    rows: list[list[Cell]] = []
    for gap in found.differences:
        ends = gap.confidence_interval()
        told = "no change" if gap.is_none else f"{ends.low:.2g} to {ends.high:.2g}"
        gained = number_cell(f"{gap.value:.2g}", gap.value, told)
        values = (number_cell(f"{value:.4g}", value) for value in (gap.first, gap.second))
        rows.append([Cell(gap.measure), *values, gained])
    return Table(header, rows, "Mean scores on held-out cases, and what is gained with 95% intervals")


def segments_table(found: Segments) -> Table:
    """A row for each segment."""
    header = [
        Cell("Segment"),
        Cell("Cases", number=True),
        Cell("p-value, adjusted", number=True),
        Cell("Found"),
    ]
    rows = [
        [
            Cell(sentence(one.where).rstrip("."), value=one.where),
            number_cell(f"{one.n_samples:,}", one.n_samples),
            NOTHING if one.test is None else number_cell(_adjusted(one), one.pvalue),
            Cell(one.verdict, under=one.note if one.test is not None else ""),
        ]
        for one in found.segments
    ]
    return Table(header, rows)


def _adjusted(one: SegmentReport) -> str:
    """An adjusted p-value below the name of its column, which has no room for more than a sign."""
    return pvalue_sign(one.pvalue, one.pvalue_floor).removeprefix("p ").removeprefix("= ")


def examples_table(examples: Sequence[ExampleCase], caption: str = "Cases that show it") -> Table | None:
    """Some cases, as the model saw them and as they were."""
    header = [Cell("Case"), Cell("What the model said"), Cell("What happened")]
    rows = [[Cell(case.name), Cell(case.predicted), Cell(case.observed)] for case in examples]
    return Table(header, rows, caption, sortable=False) if rows else None
