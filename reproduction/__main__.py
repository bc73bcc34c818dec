"""Command line: ``python -m reproduction [EXPERIMENT] [--quick] [--out FOLDER]``, or ``make reproduce``."""

from __future__ import annotations

if __name__ == "__main__":
    from wellcal.__main__ import run_module

    run_module("reproduction.__main__")

import functools
from pathlib import Path
from typing import Annotated

import rich.console
import rich.progress
import typer

from reproduction.catalogue import EXPERIMENTS
from reproduction.page.write import write_page
from reproduction.run import Finished, Run, machine_of, results_folder
from reproduction.schedule import worker_pool
from reproduction.store import StoreError
from reproduction.tasks import Settings

ALL = "all"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def _known(name: str) -> str:
    if name != ALL and name not in EXPERIMENTS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(EXPERIMENTS)} and {ALL}")
    return name


@app.command()
def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            callback=_known, metavar="EXPERIMENT", help=f"One of {', '.join(EXPERIMENTS)}, or {ALL}."
        ),
    ] = ALL,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for reproduction.md, and for results and figures next to it; if not given, docs, or "
            "build/reproduction for a quick run."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small versions, within a minute.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; as many as there are cores if not given.")
    ] = None,
) -> None:
    """Run the paper's experiments, draw its figures, and set our numbers beside the published ones.

    Results are written as they come. A run that was interrupted goes on where it stopped when the same
    command is given again. Results depend on the seed, and on nothing else. The command ends with 1 if a
    published number is not matched, or a planted error is not caught.
    """
    console = rich.console.Console()
    folder = out or Path("build/reproduction" if quick else "docs")
    settings = Settings(seed, quick)
    chosen = [each for name, each in EXPERIMENTS.items() if experiment in (name, ALL)]
    runs = [Run(each, settings, folder) for each in chosen]
    try:
        machine = machine_of(results_folder(settings, folder))
        found = _finish(runs, workers, console)
    except KeyboardInterrupt:
        console.print("Stopped. What was done is kept: give the same command again to go on.")
        raise typer.Exit(130) from None
    except StoreError as error:
        console.print(str(error), style="red", soft_wrap=True, markup=False)
        raise typer.Exit(1) from None
    console.print("Drawing figures.")
    page = write_page(settings, found, folder, machine)
    for each in found:
        if each.verdict is not None:
            ranking = each.verdict.ranking
            console.print(
                f"{each.experiment.name}: {len(ranking.compared) - len(ranking.missed)} of "
                f"{len(ranking.compared)} published numbers matched, all together p = {ranking.pooled:.3f}",
                highlight=False,
            )
    console.print(f"Page: {page}", soft_wrap=True, highlight=False)
    problems = [problem for each in found for problem in each.problems]
    for problem in problems:
        console.print(problem, style="red", soft_wrap=True, markup=False, highlight=False)
    if problems:
        raise typer.Exit(1)


def _finish(runs: list[Run], workers: int | None, console: rich.console.Console) -> list[Finished]:
    """Finish all runs, one after the other, and show how far they are."""
    found: list[Finished] = []
    with worker_pool(workers) as pool, _progress(console) as progress:
        rows = [progress.add_task(run.experiment.name, total=run.cost, start=False) for run in runs]
        for run, row in zip(runs, rows, strict=True):
            progress.start_task(row)
            found.append(run.finish(pool, advance=functools.partial(progress.advance, row)))
            progress.update(row, completed=run.cost)
    return found


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


def main() -> None:
    """Run the command line."""
    app(prog_name="python -m reproduction")
