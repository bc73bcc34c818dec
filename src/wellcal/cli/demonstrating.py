"""``wellcal demo``, and where the paper's experiments have gone."""

from __future__ import annotations

import typer

from wellcal.cli.building import Command


def run() -> None:
    """Run the demonstration."""
    from wellcal.demo import main

    raise typer.Exit(main())


def reproduce() -> None:
    """Say where the paper's experiments have gone, whatever the options."""
    typer.echo("The paper's experiments are run in a source checkout: make reproduce", err=True)
    raise typer.Exit(2)


COMMANDS = {
    "demo": Command(
        run,
        "Train small models on real data, and say which of them keep their promises.",
        ("wellcal demo",),
    ),
    "reproduce": Command(
        reproduce,
        "Say where the paper's experiments have gone.",
        hidden=True,
        settings={"allow_extra_args": True, "ignore_unknown_options": True},
    ),
}
