"""``wellcal test``: whether it is chance."""

from __future__ import annotations

from typing import Annotated

import typer

from wellcal.cli.building import Command
from wellcal.cli.inputs import column_of, read
from wellcal.cli.options import ReadOptions, TestOptions
from wellcal.cli.results import conclude, lines_of

NO_WEIGHTS = (
    "a calibrated model has no error under any weights, so that the test has none; wellcal scores, compare "
    "and witness take them"
)
NO_SEGMENTS = "wellcal witness and wellcal report look at segments"


def run(
    given: ReadOptions,
    options: TestOptions,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="KCE",
            help="Test whether the calibration error is above this, and not whether it is zero.",
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="Of the test, as in wellcal.calibration_test.")
    ] = "auto",
) -> None:
    """Run the test."""
    import wellcal as wc

    cases = read(given)
    (pred,) = cases.models.values()
    result = wc.calibration_test(
        cases.y,
        pred,
        method=method,
        groups=column_of(cases, given.groups),
        tolerance=tolerance,
        rng=options.seed,
        n_resamples=options.resamples,
    )
    rejected = result.rejected
    conclude(
        "test",
        result.verdict,
        lines_of(result, ("columns", next(iter(cases.taken.values()))), ("seed", str(options.seed))),
        given=given,
        cases=cases,
        options=options,
        result=result,
        rejected=rejected,
    )


COMMANDS = {
    "test": Command(
        run,
        """Test whether predictions are calibrated: is the error more than chance?""",
        (
            "wellcal test preds.csv --target label --probs 'p_*' --json -",
            "wellcal test preds.parquet --target y --normal mu,sigma --fail-on-reject",
            "wellcal test preds.csv --samples draw_0:draw_99 --groups patient",
            "cat preds.csv | wellcal test - --tolerance 0.05",
        ),
        refused={"weights": NO_WEIGHTS, "segments": NO_SEGMENTS},
    )
}
