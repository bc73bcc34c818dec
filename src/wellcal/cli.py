"""The command ``wellcal``."""

from __future__ import annotations

import enum
import functools
import sys
from pathlib import Path
from typing import Annotated, Any

try:
    import rich.console
    import rich.progress
    import typer
except ImportError:
    sys.exit("the command line needs typer and rich: pip install 'wellcal[cli]'")

import wellcal

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"wellcal {wellcal.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Tell whether a probabilistic model's predictions can be taken at their word."""


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
    ] = Path("reproduction"),
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
    from wellcal.reproduce.page import verdicts, write_page
    from wellcal.reproduce.run import EXPERIMENTS, Outcome, draw_figures, make_experiment, run_experiment
    from wellcal.reproduce.schedule import worker_pool
    from wellcal.reproduce.store import StoreError
    from wellcal.reproduce.tasks import Settings

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


def _progress(console: Any) -> Any:
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
    app()
