"""The first screen of a report: the verdict, one line, and three answers."""

from __future__ import annotations

from collections.abc import Collection

from wellcal.hypotests.findings.reasons import ALPHA
from wellcal.measures.presentation import pvalue_phrase
from wellcal.reporting.pieces import Mended
from wellcal.reporting.result import ModelReport, Report
from wellcal.reporting.view import Tile

WRONG, SLIGHT, OPEN = "wrong", "slight", "open"


def rejected(model: ModelReport) -> bool:
    """Whether the test found the model to be miscalibrated."""
    return model.test.pvalue <= ALPHA


def kind_of(model: ModelReport) -> str:
    """What colour a verdict has."""
    if not rejected(model):
        return OPEN
    size = model.yardstick
    return SLIGHT if size is not None and size.slight else WRONG


def sentence(text: str) -> str:
    """A phrase as a sentence, with a capital letter and a full stop.

    Examples
    --------
    >>> sentence("spreads are 21% too small"), sentence("No group stands out."), sentence("")
    ('Spreads are 21% too small.', 'No group stands out.', '')
    """
    return text and text[0].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def about(report: Report) -> list[str]:
    """The line below the verdict, in pieces."""
    if len(report.models) == 1:
        named = f"model “{report.best.name}”"
    else:
        named = f"{len(report.models)} models"
    return [f"{report.n_samples:,} cases", report.family, named, report.made]


def tiles(report: Report, anchors: Collection[str]) -> list[Tile]:
    """How large, where, and what mending would do, for the best model; links lead to what there is."""
    model = report.best
    suffix = f": {model.name}" if len(report.models) > 1 else ""

    def linked(tile: Tile) -> Tile:
        known = tile.href.removeprefix("#") in anchors
        title = f"{tile.title}{suffix}"
        return Tile(title, tile.main, tile.more, tile.href if known else "", tile.go)

    return [linked(_how_large(model)), linked(_where(model)), linked(_mending(model))]


def _how_large(model: ModelReport) -> Tile:
    title, href, go = "How large", "#size", "The numbers"
    size = model.yardstick
    if not rejected(model):
        known = model.test.smallest_error
        told = "" if known is None else sentence(str(known))
        return Tile(title, "No error is shown", told, href, go)
    if size is None:
        interval = model.kce.confidence_interval()
        between = f"{interval.level:.0%} interval {interval.low:.2g} to {interval.high:.2g}"
        return Tile(title, f"Calibration error {float(model.kce):.2g}", f"KCE; {between}", href, go)
    return Tile(title, size.size.capitalize(), sentence(size.sentence), href, go)


def _where(model: ModelReport) -> Tile:
    title, href, go = "Where", "#where", "Picture and examples"
    if not rejected(model):
        return Tile(title, "No group stands out", "What is largest by chance is no finding.", href, go)
    if not model.worst_groups:
        return Tile(title, "Everywhere alike", "No group of cases is worse than the others.", href, go)
    worst = model.worst_groups[0]
    share = f"{worst.n_samples:,} cases, {worst.share:.0%} of those looked at"
    return Tile(title, sentence(worst.where).rstrip("."), f"{sentence(worst.direction)} {share}.", href, go)


def _mending(model: ModelReport) -> Tile:
    title, href, go = "What mending would do", "#mending", "Before and after"
    found = model.mended
    if found is None:
        return Tile(title, "Not looked at", "report(..., recalibrate=True) says it.", href, go)
    return Tile(title, _gain(found), sentence(found.verdict), href, go)


def _gain(found: Mended) -> str:
    """How much better the score becomes, in a few words."""
    low, high = found.interval.low, found.interval.high
    if low <= 0.0 <= high:
        return "No gain is shown"
    size = abs(found.gained)
    return f"{found.score} {size:.2g} {'lower' if found.gained > 0 else 'higher'}"


def after_phrase(found: Mended) -> str:
    """The p-value afterwards, as a phrase."""
    return pvalue_phrase(found.pvalue_after)
