"""``wellcal report``: all that a person would ask, as lines and as a page."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from wellcal.cli.building import Command
from wellcal.cli.comparing import Names, names_of
from wellcal.cli.inputs import column_of, read, segment_columns
from wellcal.cli.options import ReadOptions, TestOptions
from wellcal.cli.results import conclude, lines_of


def run(
    given: ReadOptions,
    options: TestOptions,
    out: Annotated[str | None, typer.Option(metavar="PATH", help="Write a page, in one file: .html.")] = None,
    recalibrate: Annotated[
        bool, typer.Option("--recalibrate", help="Say what recalibration would do for held-out cases.")
    ] = False,
    names: Names = None,
) -> None:
    """Report."""
    from wellcal._arrays.files import check_suffix
    from wellcal.reading.places import called_by_row
    from wellcal.reporting._report import TESTED, report_of
    from wellcal.reporting.data import gathered

    if out is not None:
        check_suffix(out, "a report", ".html", ".htm")
    cases = read(given, names_of(names), tested=TESTED)
    models: Any = cases.models
    if len(cases.models) == 1 and names is None:
        (models,) = cases.models.values()
    found = report_of(
        replace(gathered(cases.y, models), called=called_by_row(cases.rows)),
        segments=segment_columns(cases, given),
        recalibrate=recalibrate,
        groups=column_of(cases, given.groups),
        rng=options.seed,
    )
    rows: list[tuple[str, str]] = []
    if out is not None:
        found.to_html(out)
        rows.append(("page", out))
    rejected = any(model.test.rejected for model in found.models)
    rows += [("columns", taken) for taken in cases.taken.values()][:2]
    conclude(
        "report",
        found.verdict,
        lines_of(found, *rows),
        given=given,
        cases=cases,
        options=options,
        result=found,
        rejected=rejected,
    )


COMMANDS = {
    "report": Command(
        run,
        """Report on calibration: the verdict, how large, where, and what mending would do.""",
        (
            "wellcal report preds.parquet --target y --normal mu,sigma --out report.html",
            "wellcal report preds.csv --target label --probs 'p_*' --segments region --recalibrate",
            "wellcal report preds.csv --normal mu_a,sigma_a --versus-normal mu_b,sigma_b --names a,b",
        ),
        versus=True,
        refused={
            "resamples": "a report draws as many as its parts need",
            "weights": "its tests, coverage and recalibration count all cases alike; scores, compare and "
            "witness take them",
        },
    )
}
