"""The command ``wellcal``."""

from __future__ import annotations

import sys
from typing import Annotated

try:
    import typer
except ImportError:
    sys.exit("the command line needs typer: pip install 'wellcal[cli]'")

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


@app.command()
def demo() -> None:
    """Train four small models on real data, and say which of them keep their promises."""
    from wellcal.demo import main

    raise typer.Exit(main())


@app.command(hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def reproduce() -> None:
    """Say where the paper's experiments have gone, whatever the options."""
    typer.echo("The paper's experiments are run in a source checkout: make reproduce", err=True)
    raise typer.Exit(2)


def main() -> None:
    """Run the command line."""
    app(prog_name="wellcal")
