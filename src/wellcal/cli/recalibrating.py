"""``wellcal recalibrate``: what mending does, and the mended predictions."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wellcal.cli.building import Command
from wellcal.cli.inputs import read
from wellcal.cli.options import ReadOptions, TestOptions
from wellcal.cli.results import conclude

Out = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Where the recalibrated predictions go, with all other columns as they are: .csv, .tsv, "
        ".parquet, .arrow, .jsonl or .npz.",
    ),
]


def run(
    given: ReadOptions,
    options: TestOptions,
    out: Out = None,
    scaling: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Write the recalibration, fitted to all cases, as JSON."),
    ] = None,
    objective: Annotated[str, typer.Option(metavar="NAME", help="nll or skce.")] = "nll",
    folds: Annotated[
        int | None,
        typer.Option(metavar="K", min=2, help="Parts that cases are cut into; five, or fewer of few cases."),
    ] = None,
) -> None:
    """Recalibrate."""
    from wellcal._arrays.files import check_suffix
    from wellcal.measures.presentation import text_rows
    from wellcal.reading.writing import prediction_columns, with_columns, write_table, written_format
    from wellcal.recalibration import cross_fit

    passed_on, to_text = "inferred", out is not None and written_format(out) in ("csv", "tsv")
    if scaling is not None:
        check_suffix(scaling, "a recalibrator", ".json", "")
    if out is not None:
        passed_on = "written" if to_text and given.decimal == "." else "spelled"  # as numbers are there
    cases = read(given, other_columns=passed_on)
    ((name, pred),) = cases.models.items()
    found = cross_fit(
        cases.y, pred, objective=objective, folds=folds, rng=options.seed, n_resamples=options.resamples
    )
    wrote: list[tuple[str, str]] = []
    if out is not None:
        columns = prediction_columns(cases.readings[name], found.predictions, cases.frame.column_names)
        are_kept = to_text and (passed_on == "written" or cases.y.dtype.kind not in "iuf")
        write_table(with_columns(cases.frame, {**(cases.written if are_kept else {}), **columns}), out)
        wrote.append(("written", f"{out}: recalibrated {_listed(columns)}, each case without its own target"))
    if scaling is not None:
        found.scaling.save(scaling)
        wrote.append(("scaling", f"{scaling}: fitted to all cases, for new ones"))
    conclude(
        "recalibrate",
        found.verdict,
        text_rows([*rows(found), *wrote, ("columns", cases.taken[name])]),
        given=given,
        cases=cases,
        options=options,
        result=found,
        rejected=found.after.rejected,
    )


def _listed(columns: dict[str, Any]) -> str:
    names = list(columns)
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} .. {names[-1]} ({len(names)} columns)"


def rows(found: Any) -> list[tuple[str, str]]:
    """What was found before and after."""
    each = ", ".join(f"{t:.3g}" for t in found.temperatures)
    return [
        ("before", found.before.verdict),
        ("after", f"{found.after.verdict} The p-value is approximate: folds share fitting data."),
        ("temperature", f"{found.scaling.temperature_:.4g} on all cases; {each} in folds"),
        ("cases", f"{found.before.n_samples:,} in {len(found.temperatures)} folds"),
    ]


COMMANDS = {
    "recalibrate": Command(
        run,
        """Recalibrate by one temperature, and say what that does for cases that it has not seen.""",
        (
            "wellcal recalibrate preds.csv --target y --normal mu,sigma --out recalibrated.parquet",
            "wellcal recalibrate preds.csv --target label --probs 'p_*' --scaling scaling.json",
        ),
        refused={
            "weights": "the temperature is that of cases that count alike; wellcal scores takes weights",
            "groups": "folds are drawn from independent cases; wellcal test honours groups",
            "segments": "one temperature serves all cases; wellcal report looks at segments",
        },
    )
}
