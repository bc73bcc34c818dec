"""The first screen of a report: the verdict, one line, and three answers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from wellcal._arrays.round_numbers import how_many
from wellcal.reporting.mending import NOT_TRIED
from wellcal.reporting.pieces import Mended, Segments
from wellcal.reporting.result import NOT_SEARCHED, ModelReport, Report
from wellcal.reporting.view import Said, Tile, said

WRONG, SLIGHT, OPEN, COMPARED = "wrong", "slight", "open", "compared"


def kind_of(model: ModelReport) -> str:
    """What colour a verdict has."""
    if not model.rejected:
        return OPEN
    size = model.yardstick
    return SLIGHT if size is not None and size.slight else WRONG


def verdict_of(report: Report) -> Said:
    """The verdict in its pieces: of several models, what differs between them is the first."""
    kind = kind_of(report.best) if report.comparison is None else COMPARED
    if report.comparison is None:
        return said(report.verdict, kind)
    compared, between, best = report.verdict.rpartition(f". {report.best.name}: ")
    return (
        Said(f"{compared}.", "", "", f"{report.best.name}: {best}", kind)
        if between
        else said(report.verdict, kind)
    )


def sentence(text: str) -> str:
    """A phrase as a sentence, with a capital letter and a full stop.

    Examples
    --------
    >>> sentence("spreads are 21% too small"), sentence("No group stands out."), sentence("")
    ('Spreads are 21% too small.', 'No group stands out.', '')
    """
    return text and text[0].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def tiles(model: ModelReport, anchors: Collection[str]) -> list[Tile]:
    """How large, where, and what mending would do; links lead to what there is."""
    found = (how_large(model), where(model), mending(model))
    return [tile if tile.href.removeprefix("#") in anchors else replace(tile, href="") for tile in found]


def how_large(model: ModelReport) -> Tile:
    """The size of the error."""
    title, href, go = "How large", "#size", "The numbers"
    if not model.rejected:
        known = model.test.smallest_error
        told = "" if known is None else sentence(str(known))
        return Tile(title, "No error is shown", told, href, go)
    size = model.yardstick
    if size is None:
        interval = model.kce.confidence_interval()
        between = f"{interval.level:.0%} interval {interval.low:.2g} to {interval.high:.2g}"
        return Tile(title, f"Calibration error {float(model.kce):.2g}", f"KCE; {between}", href, go)
    return Tile(title, size.word.capitalize(), sentence(size.sentence), href, go)


def where(model: ModelReport) -> Tile:
    """The worst group."""
    title, href = "Where", "#where"
    go = "Picture and examples" if model.worst_groups else "What was looked at"
    if not model.worst_groups:
        if model.rejected and model.placed is not None:
            depends = "It depends on the prediction"
            return Tile(title, depends, sentence(model.placed.short), "#findings", "Picture")
        if model.segments is not None and model.segments.rejected:
            return _in_segments(title, model.segments)
        if why := model.not_searched:
            told = sentence(why.removeprefix(f"{NOT_SEARCHED}: "))
            return Tile(title, "Not looked for", told, "", "")
    some = "" if model.searched is None else f" Looked for in {how_many(model.searched)} drawn at random"
    if not model.worst_groups:
        told = "No group of cases is shown to be worse than the others."
        return Tile(title, "No group stands out", told + some + ("." if some else ""), href, go)
    worst = model.worst_groups[0]
    if worst.kind == "all" and model.segments is not None and model.in_some_segments:
        return _in_segments(title, model.segments)
    which = f"{worst.where}: {how_many(worst.n_samples)}, {worst.share:.0%}"
    which = sentence(worst.where if worst.kind == "all" else which)
    which += f"{some}, and seen in all." if some else ""
    return Tile(title, sentence(worst.direction).rstrip("."), which, href, go)


def _in_segments(title: str, segments: Segments) -> Tile:
    main, _, which = segments.verdict.partition(": ")
    return Tile(title, main, sentence(which), "#segments", "Segment by segment")


def mending(model: ModelReport) -> Tile:
    """What would be gained."""
    title, href, go = "What mending would do", "#mending", "Before and after"
    found = model.mended
    if found is None:
        why = next((text for text in model.left_out if text.startswith(NOT_TRIED)), "")
        told = (
            sentence(why.removeprefix(f"{NOT_TRIED}: "))
            if why
            else "Ask for it with recalibrate=True, or --recalibrate."
        )
        return Tile(title, "Not tried" if why else "Not looked at", told, href, go)
    return Tile(title, _gain(found), sentence(found.verdict), href, go)


def _gain(found: Mended) -> str:
    """How much better the score becomes, in a few words."""
    low, high = found.interval.low, found.interval.high
    if low <= 0.0 <= high:
        return "No gain is shown"
    size = abs(found.gained)
    return f"{found.score} {size:.2g} {'lower' if found.gained > 0 else 'higher'}"
