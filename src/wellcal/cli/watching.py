"""``wellcal monitor``: since when."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from wellcal.cli.building import Command
from wellcal.cli.inputs import batches
from wellcal.cli.options import ReadOptions, TestOptions
from wellcal.cli.results import lines_of
from wellcal.cli.screen import end, show

TOGETHER = 4096
"""Cases between two lines of progress."""


def run(
    given: ReadOptions,
    options: TestOptions,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Go on from this file where it is there, and keep the state in it."
        ),
    ] = None,
    run_length: Annotated[
        float | None,
        typer.Option(metavar="N", help="Mean number of cases until a false alarm, in the place of alpha."),
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew with the first case of the file.")
    ] = False,
) -> None:
    """Take in the cases of a file, in the order of time."""
    import wellcal as wc
    from wellcal._arrays.files import check_suffix
    from wellcal._arrays.progress import reporter
    from wellcal.reading.places import naming_file
    from wellcal.reading.sizes import file_size

    if state is not None:
        check_suffix(state, "a monitor", ".json", "")
    kept = state is not None and Path(state).exists()
    if kept and run_length is not None:
        raise ValueError(
            f"--run-length was chosen when {state} was begun; leave it out, or take another file"
        )

    def begun() -> Any:
        found = wc.Monitor.load(str(state)) if kept else wc.Monitor(run_length=run_length, rng=options.seed)
        if restart:
            found.restart()
        return found

    monitor = begun()
    if monitor.status.refused is not None:
        raise ValueError(f"--state {state}: {monitor.status.refused} (--restart, or another file)")
    before = monitor.n_samples
    size, progress, first = file_size(given.file, given.format), reporter(), None
    passed: int = 0
    try:
        for part in batches(given):
            first = part if first is None else first
            for start in range(0, len(part.y), TOGETHER):
                rows = slice(start, start + TOGETHER)
                left = None if part.rows is None else part.rows[start:]
                with naming_file(given.file, passed + (start if left is None else 0), left, given.format):
                    monitor.update(part.y[rows], part.pred[rows])
                seen = monitor.n_samples - before
                total = seen + 1 if size is None or size.rows is None else max(size.rows, seen + 1)
                progress("monitor", seen, total)
            passed += len(part.y) + int(part.dropped)
    except ValueError:
        # A run that failed has counted no cases. But that outcomes fall on their own quantiles is kept: were
        # the next file taken without these, its cases would be a selection.
        if state is not None and monitor.status.refused is not None:
            kept_back = begun()
            kept_back.refuse_as(monitor)
            _keep(kept_back, state, new=not kept)
        raise
    progress("monitor", 1, 1)
    status = monitor.status
    new = monitor.n_samples - before
    rows = [("cases", f"{new:,} new" + (f", {before:,} before" if before else ""))]
    if state is not None:
        rows.append(("state", f"{state}: the next file goes on from here"))
    if first is not None:
        rows.append(("columns", first.taken))
    change = monitor.change(rng=options.seed, n_resamples=options.resamples or 999) if status.alarm else None
    points = [] if change is None else [f"  - {finding}" for finding in change.findings[:4]]
    show(
        "monitor",
        status.verdict,
        [*points, *lines_of(status, *rows)],
        to=options.json,
        content=lambda: _content(given, options, status, change, new),
        bad=status.alarm,
    )
    sys.stdout.flush()
    if state is not None:  # last: a run that failed is run again, and must not have counted its cases
        _keep(monitor, state, new=not kept)
    end(status.alarm, options.fail_on_reject)


def _keep(monitor: Any, state: str, *, new: bool) -> None:
    from wellcal.monitoring.kept import ChangedError

    try:
        monitor.save(state, new=new)
    except ChangedError:
        raise ValueError(
            f"--state {state}: another run has written it since this one began; what is shown above was not "
            "kept: run the command again, and it goes on from there"
        ) from None


def _content(given: Any, options: Any, status: Any, change: Any, new: int) -> dict[str, Any]:
    return {
        "file": given.file,
        "new": new,
        "seed": options.seed,
        "rejected": bool(status.alarm),
        "result": status.to_dict(),
        "change": None if change is None else change.to_dict(),
    }


COMMANDS = {
    "monitor": Command(
        run,
        """Watch predictions case by case, in the order of time: an alarm says since when they are wrong.""",
        (
            "wellcal monitor stream.csv --target y --normal mu,sigma --state monitor.json",
            "tail -n +1 today.csv | wellcal monitor - --state monitor.json --fail-on-reject",
        ),
        refused={
            "weights": "the evidence is a product over cases, of one bet on every case",
            "groups": "each case is judged given all before it, which is more than groups",
            "segments": "monitor each segment in a file and a state of its own",
            "memory": "the file is read in parts, so that it may be of any size",
        },
    )
}
