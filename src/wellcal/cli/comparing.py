"""``wellcal compare``: which model is better calibrated."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wellcal.cli.building import Command
from wellcal.cli.inputs import column_of, read
from wellcal.cli.options import ReadOptions, TestOptions
from wellcal.cli.results import conclude, lines_of

Names = Annotated[
    str | None, typer.Option(metavar="NAMES", help="Names of the models, such as forest,boosting.")
]


def run(given: ReadOptions, options: TestOptions, names: Names = None) -> None:
    """Compare models."""
    import wellcal as wc

    if not given.versus:
        raise ValueError("a second model is needed: name its columns, e.g. --versus-normal mu_b,sigma_b")
    cases = read(given, names_of(names))
    weights = column_of(cases, given.weights)
    models: dict[str, Any] = cases.models
    compare: Any = wc.compare
    given_models = tuple(models.values()) if len(models) == 2 and names is None else (models,)
    found = compare(cases.y, *given_models, weights=weights, rng=options.seed, n_resamples=options.resamples)
    differ = found.pvalue <= 1.0 - found.level if len(given_models) == 2 else bool(found.shown)
    rows = [(name, taken.partition("; ")[2]) for name, taken in cases.taken.items()]
    conclude(
        "compare",
        found.in_words().headline,
        lines_of(found, *rows, points=3),
        given=given,
        cases=cases,
        options=options,
        result=found,
        rejected=differ,
        bad=False,  # a difference is no error of a model
    )


def names_of(text: str | None) -> list[str] | None:
    """Names of models, as they are written with commas."""
    from wellcal.columns.selection import listed

    return None if text is None else listed(text)


COMMANDS = {
    "compare": Command(
        run,
        """Compare the calibration of models on the same cases; status 1 means that a difference is shown.""",
        (
            "wellcal compare preds.csv --target y --normal mu_a,sigma_a --versus-normal mu_b,sigma_b",
            "wellcal compare preds.csv --probs 'a_*' --versus-probs 'b_*' --versus-probs 'c_*' --names a,b,c",
        ),
        versus=True,
        refused={
            "groups": "the comparison takes cases as independent; wellcal test honours groups",
            "segments": "wellcal witness and wellcal report look at segments",
        },
    )
}
