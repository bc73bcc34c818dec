"""The sections of a report, in the order of its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wellcal.hypotests.e_values import e_value_text
from wellcal.hypotests.findings.finding import Finding
from wellcal.measures.presentation import pvalue_text
from wellcal.reporting.first_screen import about, kind_of, rejected, sentence, tiles
from wellcal.reporting.pictures import ReportFigure
from wellcal.reporting.pieces import Mended, Segments, WorstGroup
from wellcal.reporting.ranking import estimate_cell, models_table
from wellcal.reporting.rendering import picture_in
from wellcal.reporting.result import ModelReport, Report
from wellcal.reporting.view import (
    NOTHING,
    Beside,
    Block,
    Cell,
    Code,
    Pairs,
    Part,
    Picture,
    Pictures,
    Table,
    TableBlock,
    Texts,
    number_cell,
    said,
)

SHOWS: Mapping[str, tuple[str, ...]] = {
    "trend of the centre": ("residuals", "witness"),
    "trend of the spread": ("spreads", "residuals"),
    "class slope": ("classes", "reliability"),
    "swapped": ("classes", "reliability"),
    "confused": ("classes", "reliability"),
}
"""Pictures that show a kind of finding, the best one first; for others, the one beside the verdict."""


def report_view(report: Report) -> dict[str, Any]:
    """What the template of reports is filled with."""
    album = Album(report)
    parts = [
        *_models(report, album),
        *_findings(report, album),
        *_size(report, album),
        *_where(report, album),
        *_segments(report),
        *_mending(report, album),
        *_scores(report, album),
        *_choices(report),
    ]
    return {
        "title": f"Calibration of {', '.join(model.name for model in report.models)} · wellcal",
        "said": said(report.verdict, kind_of(report.best)),
        "about": about(report),
        "hero": album.hero,
        "tiles": tiles(report, {part.anchor for part in parts}),
        "parts": parts,
        "made": report.made,
    }


class Album:
    """Pictures of a report: each is shown once."""

    def __init__(self, report: Report) -> None:
        self.count = 0
        self.common = dict(report.figures)
        self.of_models = [dict(model.figures) for model in report.models]
        if len(report.models) == 1:
            self.of_models = [{**self.of_models[0], **self.common}]
        first = next(iter(self.common), None)
        self.hero = None if first is None else self.take(self.common, first, caption="")
        if first is not None and len(report.models) == 1:
            del self.of_models[0][first]

    def take(self, figures: dict[str, ReportFigure], name: str, caption: str | None = None) -> Picture | None:
        """A picture that was not shown before; anchors are numbers, whatever names models have."""
        figure = figures.pop(name, None)
        if figure is None:
            return None
        self.count += 1
        label = f"{figure.title}: {figure.question}"
        below = figure.question if caption is None else caption
        return picture_in(figure.svg(), f"picture-{self.count}", label, below)

    def all_of(self, figures: dict[str, ReportFigure], *names: str) -> list[Picture]:
        """Those of some names that were not shown before."""
        found = (self.take(figures, name) for name in names)
        return [picture for picture in found if picture is not None]


def _by_model(report: Report, album: Album) -> Iterator[tuple[ModelReport, dict[str, ReportFigure], str]]:
    """Each model with its pictures, and the heading of what is said of it where there are several."""
    several = len(report.models) > 1
    for model, figures in zip(report.models, album.of_models, strict=True):
        yield model, figures, model.name if several else ""


# -- one section for each question -----------------------------------------------------------------


def _models(report: Report, album: Album) -> Iterator[Part]:
    if len(report.models) < 2:
        return
    blocks: list[Block] = [TableBlock(models_table(report))]
    shown = album.all_of(album.common, *list(album.common))
    if shown:
        blocks.append(Pictures(shown))
    lead = [] if report.comparison is None else [sentence(report.comparison.verdict)]
    yield Part("models", "Models", "Models side by side", blocks, lead)


def _findings(report: Report, album: Album) -> Iterator[Part]:
    blocks: list[Block] = []
    for model, figures, heading in _by_model(report, album):
        if not model.findings:
            blocks.append(Texts([model.verdict], heading))
        for number, finding in enumerate(model.findings):
            picture = next(iter(album.all_of(figures, *SHOWS.get(finding.kind, ()))), None)
            blocks.append(
                Beside(
                    sentence(finding.sentence), _sureness(finding), picture, heading="" if number else heading
                )
            )
    wrong = any(model.findings for model in report.models)
    title = "What is wrong, finding by finding" if wrong else "What was looked for"
    lead = ["A calibrated model has any finding with probability 0.05 at most."] if wrong else []
    yield Part("findings", "Findings", title, blocks, lead)


def _sureness(finding: Finding) -> list[str]:
    told = [f"by itself p = {pvalue_text(finding.pvalue)}"]
    if finding.interval is not None:
        told.append(f"intervals in parentheses are {finding.level:.0%} confidence intervals")
    return [sentence("; ".join(told))]


def _size(report: Report, album: Album) -> Iterator[Part]:
    blocks: list[Block] = []
    for model, figures, heading in _by_model(report, album):
        blocks.append(Pairs(_sizes(model), heading))
        shown = album.all_of(figures, "null")
        if shown:
            blocks.append(Pictures(shown))
    yield Part("size", "How large", "How large the error is", blocks)


def _sizes(model: ModelReport) -> list[tuple[str, str]]:
    test, interval = model.test, model.kce.confidence_interval()
    rows: list[tuple[str, str]] = []
    if model.yardstick is not None and rejected(model):
        rows.append(("in words", sentence(f"{model.yardstick.size}: {model.yardstick.sentence}")))
    elif test.smallest_error is not None:
        rows.append(("would have been found", sentence(str(test.smallest_error))))
    between = f"{interval.level:.0%} interval {interval.low:.3g} to {interval.high:.3g}"
    rows += [
        ("calibration error (KCE)", f"{float(model.kce):.3g}, {between}"),
        ("p-value", test.pvalue_statement),
    ]
    if test.effect_size is not None:
        meaning = "about 0 if calibrated, 1 if all targets err alike"
        rows.append(("effect size", f"{test.effect_size:.3g} ({meaning})"))
    if test.log_e_value == test.log_e_value:
        rows.append(("e-value", f"{e_value_text(test.log_e_value)} (about 1 or less if calibrated)"))
    return rows


def _where(report: Report, album: Album) -> Iterator[Part]:
    blocks: list[Block] = []
    for model, figures, heading in _by_model(report, album):
        if not rejected(model):
            texts = ["No group of cases is shown to be off. What is largest by chance is no finding."]
            blocks.append(Texts(texts, heading))
            continue
        shown = album.all_of(figures, "witness", "witness_map")
        if shown:
            blocks.append(Pictures(shown, heading))
            heading = ""
        for group in model.worst_groups:
            blocks.append(_group(group, heading))
            heading = ""
    yield Part("where", "Where", "Where: groups and examples", blocks)


def _group(group: WorstGroup, heading: str) -> Beside:
    sure = f"{group.n_samples:,} cases, {group.share:.0%}; p = {pvalue_text(group.pvalue)}, adjusted for all"
    header = [Cell("Case"), Cell("What the model said"), Cell("What happened")]
    rows = [[Cell(case.name), Cell(case.predicted), Cell(case.observed)] for case in group.examples]
    tables = [Table(header, rows, "Cases that contribute most")] if rows else []
    return Beside(sentence(group.statement), [f"{sure} groups."], tables=tables, heading=heading)


def _segments(report: Report) -> Iterator[Part]:
    blocks: list[Block] = []
    hypotheses: dict[str, None] = {}
    for model in report.models:
        if model.segments is None:
            continue
        hypotheses[model.segments.hypothesis] = None
        heading = model.name if len(report.models) > 1 else ""
        blocks += [Texts([model.segments.verdict], heading), TableBlock(_segments_table(model.segments))]
    if blocks:
        yield Part("segments", "Segments", "Segment by segment", blocks, [*map(sentence, hypotheses)])


def _segments_table(found: Segments) -> Table:
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
            NOTHING if one.test is None else number_cell(pvalue_text(one.pvalue), one.pvalue),
            Cell(one.verdict, under=one.note if one.test is not None else ""),
        ]
        for one in found.segments
    ]
    return Table(header, rows)


def _mending(report: Report, album: Album) -> Iterator[Part]:
    blocks: list[Block] = []
    for model, figures, heading in _by_model(report, album):
        if model.mended is None:
            continue
        shown = album.all_of(figures, "recalibration")
        tables = [_mended_table(model.mended)]
        texts = ["On cases that the recalibration was not fitted to; the p-value after it is approximate."]
        picture = shown[0] if shown else None
        blocks.append(Beside(sentence(model.mended.verdict), texts, picture, tables=tables, heading=heading))
    if blocks:
        yield Part("mending", "Mending", "What mending would do", blocks)


def _mended_table(found: Mended) -> Table:
    header = [Cell(""), Cell("As it is", number=True), Cell("Mended", number=True)]
    rows = [
        [Cell(f"{found.score} (lower is better)"), estimate_cell(found.before), estimate_cell(found.after)],
        [
            Cell("p-value of the calibration test"),
            number_cell(pvalue_text(found.pvalue_before), found.pvalue_before),
            number_cell(pvalue_text(found.pvalue_after), found.pvalue_after),
        ],
    ]
    return Table(header, rows)


def _scores(report: Report, album: Album) -> Iterator[Part]:
    blocks: list[Block] = []
    names = list(dict.fromkeys(name for model in report.models for name in model.scores))
    if names:
        header = [
            Cell("Score (lower is better)"),
            *(Cell(model.name, number=True) for model in report.models),
        ]
        rows = [
            [Cell(name), *(estimate_cell(model.scores.get(name)) for model in report.models)]
            for name in names
        ]
        blocks.append(TableBlock(Table(header, rows, "Mean over cases, with 95% intervals")))
    for model, figures, heading in _by_model(report, album):
        if model.coverage is not None:
            blocks.append(TableBlock(_coverage_table(model), heading or "Coverage"))
        shown = album.all_of(figures, *list(figures))
        if shown:
            blocks.append(Pictures(shown, "" if model.coverage is not None else heading))
    yield Part("scores", "Scores", "Scores and coverage", blocks)


def _coverage_table(model: ModelReport) -> Table:
    found: Any = model.coverage
    header = [
        Cell("Interval", number=True),
        Cell("Outcomes in it", number=True),
        Cell("95% limits", number=True),
        Cell("If calibrated", number=True),
        Cell("Mean width", number=True),
    ]
    columns = (found.levels, found.coverage, found.low, found.high, found.expected, found.widths)
    rows = [
        [
            number_cell(f"{100 * level:.4g}%", level),
            number_cell(f"{100 * covered:.1f}%", covered),
            number_cell(f"{100 * low:.1f}% to {100 * high:.1f}%", low),
            number_cell(f"{100 * expected:.1f}%", expected),
            number_cell(f"{width:.4g}", width),
        ]
        for level, covered, low, high, expected, width in zip(*columns, strict=True)
    ]
    return Table(header, rows, "How many outcomes the predicted intervals hold")


def _choices(report: Report) -> Iterator[Part]:
    rows = [row for row in report.choices.rows if row[0] != "data"]
    notes = [f"{model.name}: {text}" for model in report.models for text in model.left_out]
    blocks: list[Block] = [Pairs(rows)]
    if report.sampled:
        blocks.append(Texts([sentence(text) for text in report.sampled], "Looked at in a part of the cases"))
    if notes:
        blocks.append(Texts([sentence(text) for text in notes], "Left out"))
    yield Part("choices", "Choices", "Choices made", blocks)
    yield Part("cite", "Cite", "How to cite", [Code(report.citation)])
    data: list[Block] = [Pairs([("cases", f"{report.n_samples:,}"), ("SHA-256", report.choices.fingerprint)])]
    lead = ["The same targets and predictions have the same fingerprint."]
    yield Part("data", "Data", "The data’s fingerprint", data, lead)
