"""``wellcal demo``, and where the paper's experiments have gone."""

from __future__ import annotations

from typing import Annotated

import typer

from wellcal.cli.building import Command


def run(
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Where the reports go; made where it is not there.")
    ] = None,
) -> None:
    """Run the demonstration."""
    from wellcal.demo import main

    raise typer.Exit(main() if out is None else main(out))


def reproduce() -> None:
    """Say where the paper's experiments have gone, whatever the options."""
    typer.echo("The paper's experiments are run in a source checkout: make reproduce", err=True)
    raise typer.Exit(2)


COMMANDS = {
    "demo": Command(
        run,
        "Train small models on real data, write reports on them, and say which keep their promises.",
        ("wellcal demo", "wellcal demo --out reports"),
    ),
    "reproduce": Command(
        reproduce,
        "Say where the paper's experiments have gone.",
        hidden=True,
        settings={"allow_extra_args": True, "ignore_unknown_options": True},
    ),
}
