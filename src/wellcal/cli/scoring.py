"""``wellcal scores``: proper scores, ECE, coverage, PIT and SKCE of a file of any size."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from wellcal.cli.building import Command
from wellcal.cli.inputs import batches
from wellcal.cli.options import ReadOptions, RunOptions
from wellcal.cli.results import lines_of
from wellcal.cli.screen import show

MOST_PAIRED = 20_000
"""Cases up to which the SKCE with weights, which visits all pairs, is computed."""


def run(
    given: ReadOptions,
    options: RunOptions,
    measures: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Of nll, crps, brier, energy_score, mse, pinball_loss, ece, coverage, pit, skce; all that "
            "the predictions have, if not given.",
        ),
    ] = None,
    block_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=2,
            help="Cases of a block, for skce; if not given 100, and all pairs of up to 2,000 cases.",
        ),
    ] = None,
) -> None:
    """Compute measures part by part."""
    import wellcal as wc
    from wellcal._arrays.progress import reporter
    from wellcal._arrays.row_errors import RowError
    from wellcal.reading.places import RowsSeen, naming_file
    from wellcal.reading.sizes import file_size

    names = None if measures is None else [name.strip() for name in measures.split(",")]
    if given.weights is not None and block_size is not None and (names is None or "skce" in names):
        raise ValueError(
            "--block-size is for the SKCE without weights: with --weights it visits all pairs of cases; "
            "leave one of them out"
        )
    if given.weights is not None and names is not None and "skce" in names:
        names.remove("skce")
        paired: Paired | None = Paired(asked=True)
    else:
        paired = Paired() if given.weights is not None and names is None else None
    size, progress, taken, dropped = file_size(given.file, given.format), reporter(), "", 0
    running, place = wc.RunningMeasures(names or None, block_size=block_size, rng=options.seed), RowsSeen()
    for part in batches(given):
        weights = None if given.weights is None else part.others[given.weights]
        with naming_file(given.file, place.rows, part.rows, given.format):
            if names is None or names:
                running.update(part.y, part.pred, weights=weights)
            if paired is not None:
                paired.keep(part, weights)
        place.add(len(part.y), part.rows, part.dropped)
        taken, dropped = taken or part.taken, dropped + part.dropped
        seen = running.n_samples
        progress("scores", seen, max(seen + 1, (size.rows if size else None) or seen + 1))
    progress("scores", 1, 1)
    with naming_file(given.file, format=given.format):
        try:
            found = running.result() if running.n_samples else None
        except RowError as error:
            raise error.counted(place.row) from error
    weighted = None if paired is None else paired.estimate()
    if found is None:
        assert weighted is not None
        found = wc.Measured(weighted.n_samples, {"skce": weighted})
    elif weighted is not None:
        left = {name: reason for name, reason in found.left_out.items() if name != "skce"}
        found = replace(found, estimates={**found.estimates, "skce": weighted}, left_out=left)
    show(
        "scores",
        found.in_words().headline,
        lines_of(found, ("columns", taken)),
        to=options.json,
        content=lambda: {
            "file": given.file,
            "cases": found.n_samples,
            "dropped": dropped,
            "taken": taken,
            "seed": options.seed,
            "result": found.to_dict(),
        },
    )


class Paired:
    """Cases that are kept while they are few: the SKCE with weights visits all pairs of them."""

    def __init__(self, *, asked: bool = False) -> None:
        self.asked = asked
        self.parts: list[tuple[Any, Any, Any]] = []
        self.n = 0

    def keep(self, part: Any, weights: Any) -> None:
        """Remember a part, or forget all where they are too many."""
        self.n += len(part.y)
        if self.n <= MOST_PAIRED:
            self.parts.append((part.y, part.pred, weights))
            return
        self.parts = []
        if self.asked:
            raise ValueError(
                f"the SKCE with weights visits all pairs of cases, {MOST_PAIRED:,} at most; leave out "
                "--weights for the mean over blocks, or take fewer cases"
            )

    def estimate(self) -> Any:
        """The SKCE of all that was kept; None where there were too many."""
        if not self.parts:
            return None
        import numpy as np

        import wellcal as wc
        from wellcal.predictions.batches import concatenate

        y, pred, weights = zip(*self.parts, strict=True)
        batch = concatenate(list(pred), [f"part {k}" for k in range(len(pred))], "parts")
        return wc.skce(np.concatenate(y), batch, weights=np.concatenate(weights))


COMMANDS = {
    "scores": Command(
        run,
        """Compute proper scores, ECE, coverage, PIT and SKCE; the file may be larger than memory.""",
        (
            "wellcal scores large.parquet --target y --normal mu,sigma",
            "wellcal scores preds.csv --probs 'p_*' --weights exposure --measures nll,brier",
        ),
        refused={
            "groups": "means do not depend on groups; wellcal test honours them",
            "segments": "wellcal witness and wellcal report look at segments",
            "memory": "the file is read in parts, so that it may be of any size",
        },
    )
}
