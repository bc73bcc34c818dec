"""Pages: results as one HTML file that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping

from wellcal.measures.presentation import Presentable
from wellcal.reporting.pictures import ReportFigure
from wellcal.reporting.rendering import picture_in, render
from wellcal.reporting.result import Report
from wellcal.reporting.sections import report_view
from wellcal.reporting.view import Picture

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def page_of(result: Presentable) -> str:
    """The page of any result: what its `to_html` returns and writes."""
    return report_page(result) if isinstance(result, Report) else result_page(result)


def report_page(report: Report) -> str:
    """The page of a report, as text."""
    return render("report.html", report_view(report))


def result_page(result: Presentable) -> str:
    """The page of any other result: what notebooks show, and its pictures."""
    shown = result.in_words()
    return render(
        "result.html",
        {
            "title": f"{shown.headline} · wellcal",
            "kind": _CAPITAL.sub(" ", type(result).__name__).lower(),
            "headline": shown.headline,
            "points": shown.points,
            "rows": shown.rows,
            "tables": [],
            "pictures": _drawn(result.figures),
        },
    )


def _drawn(figures: Mapping[str, ReportFigure]) -> list[Picture]:
    return [
        picture_in(figure, f"picture-{number}") for number, figure in enumerate(figures.values(), start=1)
    ]
