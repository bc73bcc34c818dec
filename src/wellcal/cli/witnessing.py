"""``wellcal witness``: where, and in which direction."""

from __future__ import annotations

from wellcal.cli.building import Command
from wellcal.cli.inputs import column_of, read, segment_columns
from wellcal.cli.options import ReadOptions, TestOptions
from wellcal.cli.results import conclude, lines_of


def run(given: ReadOptions, options: TestOptions) -> None:
    """Look for groups of cases that err."""
    import wellcal as wc

    cases = read(given, searched=True)
    (pred,) = cases.models.values()
    found = wc.witness(
        cases.y,
        pred,
        segments=segment_columns(cases, given),
        weights=column_of(cases, given.weights),
        rng=options.seed,
        n_resamples=options.resamples or 999,
    )
    rejected = found.pvalue <= found.alpha
    conclude(
        "witness",
        found.in_words().headline,
        lines_of(found, ("columns", next(iter(cases.taken.values()))), points=6),
        given=given,
        cases=cases,
        options=options,
        result=found,
        rejected=rejected,
    )


COMMANDS = {
    "witness": Command(
        run,
        """Say where predictions are miscalibrated: which groups of cases, and in which direction.""",
        (
            "wellcal witness preds.csv --target y --normal mu,sigma --segments region,channel",
            "wellcal witness preds.parquet --probs 'p_*' --weights exposure",
        ),
        refused={"groups": "the witness takes cases as independent; wellcal test honours groups"},
    )
}
