"""Pages: results as one HTML file that needs nothing else."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from wellcal.measures.presentation import Presentable

if TYPE_CHECKING:
    from wellcal.reporting.result import Report


def page_of(result: Presentable) -> str:
    """The page of any result: what its `to_html` returns and writes."""
    from wellcal.reporting.result import Report

    return report_page(result) if isinstance(result, Report) else result_page(result)


def report_page(report: Report) -> str:
    """The page of a report, as text."""
    return result_page(report)


def result_page(result: Presentable) -> str:
    """The page of any other result: what notebooks show, and its pictures."""
    pictures = "".join(
        f"<figure>{picture.svg()}<figcaption>{html.escape(picture.question)}</figcaption></figure>"
        for picture in result.figures.values()
    )
    title = html.escape(result.in_words().headline)
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
        f"<body>{result._repr_html_()}{pictures}</body></html>\n"  # pyright: ignore[reportPrivateUsage]
    )
