"""Pages: results as one HTML file that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wellcal.measures.presentation import Shown
from wellcal.measures.quantiles import IntervalCoverage
from wellcal.reporting.first_screen import verdict_of
from wellcal.reporting.pictures import ReportFigure
from wellcal.reporting.rendering import picture_in, render
from wellcal.reporting.result import Report
from wellcal.reporting.sections import report_view
from wellcal.reporting.tables import coverage_table
from wellcal.reporting.view import Picture

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def page_of(result: Shown) -> str:
    """The page of any result: what its `to_html` returns and writes."""
    return report_page(result) if isinstance(result, Report) else result_page(result)


def report_page(report: Report) -> str:
    """The page of a report, as text."""
    return render("report.html", report_view(report))


@dataclass(frozen=True)
class Entry:
    """A report in a list of them: where its page is, what it is about, in a few words and in more."""

    href: str
    title: str
    note: str
    report: Report


def index_page(title: str, entries: Sequence[Entry]) -> str:
    """A page that leads to several reports, with the verdict of each.

    Parameters
    ----------
    title
        What they are about.
    entries
        The reports.
    """
    shown = [
        {
            "href": entry.href,
            "title": entry.title,
            "note": entry.note,
            "said": verdict_of(entry.report),
            "line": entry.report.line,
        }
        for entry in entries
    ]
    return render("index.html", {"title": title, "entries": shown})


def result_page(result: Shown) -> str:
    """The page of any other result: what notebooks show, and its pictures."""
    shown = result.in_words()
    pictures = _drawn(result.figures)
    beside = bool(pictures) and not pictures[0].broad
    return render(
        "result.html",
        {
            "title": f"{shown.headline} · wellcal",
            "kind": _CAPITAL.sub(" ", type(result).__name__).lower(),
            "headline": shown.headline,
            "points": shown.points,
            "rows": shown.rows,
            "tables": [coverage_table(result)] if isinstance(result, IntervalCoverage) else [],
            "beside": pictures[0] if beside else None,
            "pictures": pictures[1:] if beside else pictures,
        },
    )


def _drawn(figures: Mapping[str, ReportFigure]) -> list[Picture]:
    return [
        picture_in(figure, f"picture-{number}") for number, figure in enumerate(figures.values(), start=1)
    ]
