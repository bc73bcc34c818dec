"""The sections of a report, in the order of its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from wellcal._arrays.progress import reporter
from wellcal._arrays.round_numbers import how_many
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.findings.impossible import IMPOSSIBLE
from wellcal.hypotests.result import TestResult
from wellcal.measures.presentation import pvalue_sign
from wellcal.reporting.first_screen import sentence, tiles, verdict_of
from wellcal.reporting.pictures import ReportFigure
from wellcal.reporting.pieces import WorstGroup
from wellcal.reporting.rendering import picture_in
from wellcal.reporting.result import GROUP, ModelReport, Report
from wellcal.reporting.tables import (
    coverage_table,
    examples_table,
    mended_table,
    models_table,
    scores_table,
    segments_table,
    sizes_table,
)
from wellcal.reporting.telling import clearness, leaves, most_telling, shown_in
from wellcal.reporting.view import (
    Beside,
    Block,
    Code,
    Link,
    Note,
    Notes,
    Pairs,
    Part,
    Picture,
    Pictures,
    Table,
    TableBlock,
    Texts,
)

SEE_FIRST, SEE_ABOVE = "The first picture shows it", "A picture above shows it"

NOT_SEEN = (
    "No picture shows it: in those for this kind of error the model stays in the band of calibrated ones."
)
"""What is said of a finding that cannot be seen."""


def report_view(report: Report) -> dict[str, Any]:
    """What the template of reports is filled with."""
    album = Album(report)
    parts = [
        *_models(report, album),
        *_findings(report, album),
        *_size(report, album),
        *_where(report, album),
        *_segments(report, album),
        *_mending(report, album),
        *_scores(report, album),
        *_choices(report),
    ]
    album.told("pictures", album.total, album.total)
    return {
        "title": f"Calibration of {', '.join(model.name for model in report.models)} · wellcal",
        "said": verdict_of(report),
        "about": report.line.split(" · "),
        "hero": album.hero,
        "tiles": tiles(report.best, {part.anchor for part in parts}) if len(report.models) == 1 else [],
        "models": models_table(report) if len(report.models) > 1 else None,
        "parts": parts,
        "sampled": bool(report.sampled),
        "made": report.made,
    }


class Album:
    """Pictures of a report: each is shown once."""

    def __init__(self, report: Report) -> None:
        self.count, self.told = 0, reporter()
        self.all: dict[str, ReportFigure] = dict(report.figures)
        self.common = dict(self.all)
        self.above: dict[str, Picture] = {}  # those of them that are shown before all findings
        self.of_models: list[dict[str, ReportFigure]] = [dict(model.figures) for model in report.models]
        if len(report.models) > 1:  # what all models share a picture of is shown there
            for figures in self.of_models:
                for name in self.common:
                    figures.pop(name, None)
        self.total = len(self.common) + sum(map(len, self.of_models))
        # Groups that are largest by chance are no picture of a verdict that found nothing.
        aside = () if report.best.rejected else ("groups", "map")
        first = next((name for name in self.common if name not in aside), None)
        self.first = first
        self.hero = None if first is None else self.take(self.common, first)
        if first is not None and len(report.models) == 1:
            del self.of_models[0][first]

    def take(self, figures: dict[str, ReportFigure], name: str, of: str = "") -> Picture | None:
        """A picture that was not shown before; anchors are numbers, whatever names models have."""
        figure = figures.pop(name, None)
        if figure is None:
            return None
        self.told("pictures", min(self.count, self.total - 1), self.total)
        self.count += 1
        found = picture_in(figure, f"picture-{self.count}")
        if figures is self.common:
            self.above[name] = found
        return replace(found, kind=f"{found.kind}: {of}") if of and len(self.of_models) > 1 else found

    def showing(
        self,
        names: Sequence[str],
        figures: dict[str, ReportFigure],
        model: str | None,
        seen: dict[str, Picture],
    ) -> tuple[Picture | None, list[Link]]:
        """The picture beside a finding, or where else it is seen; neither where it is seen nowhere.

        It is seen where the model that it is about leaves its band. A picture of that model alone stands
        beside it, unless one that was shown before all findings shows it more clearly: a reader is sent
        there, or to one that stands beside another finding about that model.

        Parameters
        ----------
        names
            Of pictures that show findings of its kind, the usual one first.
        figures
            Those of the model alone that were not shown yet.
        model
            What pictures call the model: its name where they show several.
        seen
            Those beside other findings about it, by name.
        """
        shared = {name: self.all[name].reach(model) for name in names if name in self.above}
        clearest = most_telling(shared, shared.__getitem__)
        clear = 0.0 if clearest is None else clearness(shared[clearest])
        own = {name: figures[name].reach() for name in names if name in figures}
        name = next((name for name, far in own.items() if leaves(far) and clearness(far) >= clear), "")
        picture = self.take(figures, name)
        if picture is not None:
            seen[name] = picture
            return picture, []
        if clearest is not None:
            return None, [_see(self.above[clearest], SEE_FIRST if clearest == self.first else SEE_ABOVE)]
        return None, [_see(seen[name], SEE_ABOVE) for name in names if name in seen][:1]

    def all_of(self, figures: dict[str, ReportFigure], *names: str, of: str = "") -> list[Picture]:
        """Those of some names that were not shown before."""
        found = (self.take(figures, name, of) for name in names)
        return [picture for picture in found if picture is not None]


def _see(picture: Picture, where: str) -> Link:
    kind = f": {picture.kind}" if where == SEE_ABOVE else ""
    return Link(f"#{picture.anchor}", f"{where}{kind}")


def _by_model(report: Report, album: Album) -> Iterator[tuple[ModelReport, dict[str, ReportFigure], str]]:
    """Each model with its pictures, and the heading of what is said of it where there are several."""
    several = len(report.models) > 1
    for model, figures in zip(report.models, album.of_models, strict=True):
        yield model, figures, model.name if several else ""


# -- one section for each question -----------------------------------------------------------------


def _models(report: Report, album: Album) -> Iterator[Part]:
    if len(report.models) < 2:
        return
    shown = album.all_of(album.common, *list(album.common))
    if shown:
        yield Part("compared", "Models", "Models side by side", [Pictures(shown)])


def _findings(report: Report, album: Album) -> Iterator[Part]:
    blocks: list[Block] = []
    for model, figures, heading in _by_model(report, album):
        seen: dict[str, Picture] = {}
        there = {*figures, *album.all}
        findings = [finding for finding in model.findings if finding.kind != GROUP]  # which are told below
        if not findings:
            texts = (
                ["No kind of error holds for all cases alike: see where."]
                if model.rejected
                else [model.verdict]
            )
            blocks.append(Texts(texts, heading=heading))
        for number, finding in enumerate(findings):
            names = shown_in(finding, there, model.findings)
            picture, links = album.showing(names, figures, heading or None, seen)
            above = "" if number else heading
            title, texts = sentence(finding.sentence), _sureness(finding)
            if not picture and not links and there.intersection(names):
                texts.append(NOT_SEEN)
            tables = _impossible(model) if finding.kind == IMPOSSIBLE else []
            blocks.append(Beside(title, texts, picture, links=links, tables=tables, heading=above))
    wrong = any(model.findings for model in report.models)
    title = "What is wrong, finding by finding" if wrong else "What was looked for"
    lead = ["A calibrated model has any finding with probability 0.05 at most."] if wrong else []
    yield Part("findings", "Findings", title, blocks, lead)


def _impossible(model: ModelReport) -> list[Table]:
    """Cases whose outcome had no probability, for it is these that are to be looked into."""
    examples, more = model.impossible
    caption = f"Such cases, and {more:,} more" if more else "All such cases"
    found = examples_table(examples, caption)
    return [] if found is None else [found]


def _sureness(finding: Finding) -> list[str]:
    told = [f"by itself {pvalue_sign(finding.pvalue)}"]
    if finding.interval is not None:
        told.append(f"intervals in parentheses are {finding.level:.0%} confidence intervals")
    return [sentence("; ".join(told))]


def _size(report: Report, album: Album) -> Iterator[Part]:
    blocks: list[Block] = [TableBlock(sizes_table(report.models))]
    shown = [
        picture
        for model, figures, _ in _by_model(report, album)
        for picture in album.all_of(figures, "null", of=model.name)
    ]
    if shown:
        blocks.append(Pictures(shown))
    yield Part("size", "How large", "How large the error is", blocks)


def _where(report: Report, album: Album) -> Iterator[Part]:
    blocks: list[Block] = []
    for model, figures, heading in _by_model(report, album):
        if not model.rejected:
            blocks.append(Texts([model.not_searched], heading=heading))
            for name in ("groups", "map"):
                figures.pop(name, None)
            continue
        if not model.worst_groups:
            figures.pop("groups", None)  # of what is largest by chance
            told = model.not_searched or "No group of cases is shown to be worse than the others."
            blocks.append(Texts([told], heading=heading))
            heading = ""
        shown = album.all_of(figures, "groups", "map")
        if shown:
            blocks.append(Pictures(shown, heading=heading))
            heading = ""
        if model.worst_groups:
            blocks.append(Notes([_group(group) for group in model.worst_groups], heading=heading))
    yield Part("where", "Where", "Where: groups and examples", blocks)


def _group(group: WorstGroup) -> Note:
    chance = pvalue_sign(group.pvalue, group.pvalue_floor)
    sure = f"{how_many(group.n_samples)}, {group.share:.0%}; {chance}, adjusted for all groups"
    if group.searched is not None:
        sure += f"; found in {how_many(group.searched)} drawn at random, and seen in all"
    return Note(sentence(group.statement), f"{sure}.", examples_table(group.examples))


def _segments(report: Report, album: Album) -> Iterator[Part]:
    blocks: list[Block] = []
    hypotheses: dict[str, None] = {}
    for model, figures, heading in _by_model(report, album):
        if model.segments is None:
            continue
        hypotheses[model.segments.hypothesis] = None
        blocks.append(Texts([model.segments.verdict], heading=heading))
        shown = album.all_of(figures, "segments", of=model.name)
        blocks += [Pictures(shown)] if shown else []
        blocks.append(TableBlock(segments_table(model.segments)))
    if blocks:
        yield Part("segments", "Segments", "Segment by segment", blocks, [*map(sentence, hypotheses)])


def _mending(report: Report, album: Album) -> Iterator[Part]:
    blocks: list[Block] = []
    for model, figures, heading in _by_model(report, album):
        if model.mended is None:
            continue
        shown = album.all_of(figures, "mended")
        tables = [mended_table(model.mended)]
        some = f" of {how_many(model.mended.tested)}" if model.mended.tested < report.n_samples else ""
        texts = [
            f"On cases that the recalibration was not fitted to. The calibration test{some} has "
            f"{_chance(model.mended.cross_fitted.before)} before it, and after it, approximately, "
            f"{_chance(model.mended.cross_fitted.after)}."
        ]
        picture = shown[0] if shown else None
        blocks.append(Beside(sentence(model.mended.verdict), texts, picture, tables=tables, heading=heading))
    if blocks:
        yield Part("mending", "Mending", "What mending would do", blocks)


def _chance(test: TestResult) -> str:
    return pvalue_sign(test.pvalue, test.pvalue_floor)


def _scores(report: Report, album: Album) -> Iterator[Part]:
    blocks: list[Block] = []
    scores = scores_table(report.models)
    if scores is not None:
        blocks.append(TableBlock(scores))
    for model, figures, heading in _by_model(report, album):
        if model.coverage is not None:
            blocks.append(TableBlock(coverage_table(model.coverage), heading=heading or "Coverage"))
        shown = album.all_of(figures, *list(figures))
        if shown:
            blocks.append(Pictures(shown, heading="" if model.coverage is not None else heading))
    yield Part("scores", "Scores", "Scores and coverage", blocks)


def _choices(report: Report) -> Iterator[Part]:
    rows = [row for row in report.choices.rows if row[0] != "data"]
    several = len(report.models) > 1
    notes = [
        f"{model.name}: {text}" if several else sentence(text)
        for model in report.models
        for text in model.left_out
    ]
    blocks: list[Block] = [Pairs(rows)]
    if report.sampled:
        told = [sentence(text) for text in report.sampled]
        blocks.append(Texts(told, heading="Looked at in part, or not at all", anchor="sampled"))
    if notes:
        blocks.append(Texts(notes, heading="Left out"))
    yield Part("choices", "Choices", "Choices made", blocks)
    yield Part("cite", "Cite", "How to cite", [Code(report.citation)])
    data: list[Block] = [Pairs([("cases", f"{report.n_samples:,}"), ("SHA-256", report.choices.fingerprint)])]
    lead = ["The same targets and predictions have the same fingerprint."]
    yield Part("data", "Data", "The data’s fingerprint", data, lead)
