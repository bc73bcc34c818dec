"""Command line: ``python -m reproduction [EXPERIMENT] [--quick] [--out FOLDER]``, or ``make reproduce``."""

from __future__ import annotations

import enum
import functools
from pathlib import Path
from typing import Annotated

import rich.console
import rich.progress
import typer

from reproduction.page.write import verdicts, write_page
from reproduction.run import EXPERIMENTS, Outcome, draw_figures, make_experiment, run_experiment
from reproduction.schedule import worker_pool
from reproduction.store import StoreError
from reproduction.tasks import Settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Which(enum.StrEnum):
    """Experiments of the paper."""

    ols = "ols"
    estimators = "estimators"
    tests = "tests"
    friedman = "friedman"
    all = "all"


@app.command()
def reproduce(
    experiment: Annotated[Which, typer.Argument(help="Which experiment.")] = Which.all,
    out: Annotated[
        Path, typer.Option(help="Folder for reproduction.md, and for results and figures beside it.")
    ] = Path("build/reproduction"),
    quick: Annotated[bool, typer.Option("--quick", help="Small versions, within a minute.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; as many as there are cores if not given.")
    ] = None,
) -> None:
    """Run the paper's experiments, draw its figures, and set our numbers beside the published ones.

    Results are written as they come. A run that was interrupted goes on where it stopped when the same
    command is given again. Results depend on the seed, and on nothing else.
    """
    console = rich.console.Console()
    settings = Settings(seed, quick)
    names = EXPERIMENTS if experiment is Which.all else (experiment.value,)
    planned = [make_experiment(name, settings, out) for name in names]
    outcome = Outcome(settings)
    try:
        with worker_pool(workers) as pool, _progress(console) as progress:
            rows = [progress.add_task(each.name, total=each.cost, start=False) for each in planned]
            for each, row in zip(planned, rows, strict=True):
                progress.start_task(row)
                advance = functools.partial(progress.advance, row)
                run_experiment(each, out, outcome, pool, advance=advance)
                progress.update(row, completed=each.cost)
    except KeyboardInterrupt:
        console.print("Stopped. What was done is kept: give the same command again to go on.")
        raise typer.Exit(130) from None
    except StoreError as error:
        console.print(f"[red]{error}[/red]")
        raise typer.Exit(1) from None
    console.print("Drawing figures.")
    figures = draw_figures(outcome, out)
    page = write_page(outcome, figures, out)
    for line in verdicts(outcome):
        console.print(line, highlight=False)
    console.print(f"Page: {page}", soft_wrap=True, highlight=False)


def _progress(console: rich.console.Console) -> rich.progress.Progress:
    return rich.progress.Progress(
        rich.progress.TextColumn("{task.description:<10}"),
        rich.progress.BarColumn(),
        rich.progress.TaskProgressColumn(),
        rich.progress.TimeElapsedColumn(),
        rich.progress.TextColumn("left:"),
        rich.progress.TimeRemainingColumn(),
        console=console,
        speed_estimate_period=120.0,
    )


if __name__ == "__main__":
    app(prog_name="python -m reproduction")
