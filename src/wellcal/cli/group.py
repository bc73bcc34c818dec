"""The group of all commands: each is imported when it is asked for, and errors are one paragraph."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

import wellcal
from wellcal.__main__ import INTERRUPTED
from wellcal.cli.building import Command, expanded
from wellcal.cli.screen import BAD_INPUT, say_error

COMMANDS: dict[str, str] = {
    "report": "reporting",
    "test": "testing",
    "compare": "comparing",
    "witness": "witnessing",
    "scores": "scoring",
    "recalibrate": "recalibrating",
    "monitor": "watching",
    "plot": "plotting",
    "demo": "demonstrating",
    "reproduce": "demonstrating",
}
"""Commands, and the module of this room that each is in."""

IMPORTS = "WELLCAL_IMPORT"
"""Environment variable with modules to import, as ``--import`` names them."""


class Commands(TyperGroup):
    """Commands that are made when they are needed: options of families come from those that there are."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: dict[str, Any] = dict.fromkeys(COMMANDS)
        self._only_listed = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, with its options unless it is only listed."""
        if cmd_name not in COMMANDS:
            return None
        return made_command(cmd_name, families=not self._only_listed)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._only_listed = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._only_listed = False

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and end with its status; what was called wrongly ends with one paragraph."""
        try:
            status = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            told: Any = error
            ctx = getattr(error, "ctx", None)
            path = "wellcal" if ctx is None else _path(ctx)
            command = path.removeprefix("wellcal").strip()
            say_error(command, f"{told.format_message()} ({path} --help says more)")
            status = BAD_INPUT
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        if standalone_mode:
            sys.exit(status if isinstance(status, int) else 0)
        return status


def _path(ctx: Any) -> str:
    """How the command was called, from the name of the program on."""
    names = [str(ctx.info_name)]
    while (ctx := ctx.parent) is not None:
        names.append("wellcal" if ctx.parent is None else str(ctx.info_name))
    return " ".join(reversed(names)) if len(names) > 1 else "wellcal"


def made_command(name: str, *, families: bool) -> Any:
    """A command as typer has it."""
    found: dict[str, Command] = importlib.import_module(f"wellcal.cli.{COMMANDS[name]}").COMMANDS
    command = found[name]
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command(
        name,
        help=command.help,
        epilog=command.epilog,
        hidden=command.hidden,
        context_settings=command.settings,
    )(expanded(name, command, families=families))
    return get_command(alone)


app = typer.Typer(
    cls=Commands,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"wellcal {wellcal.__version__}")
        raise typer.Exit


def _import_modules(given: list[str] | None) -> list[str]:
    """Import what registers families of a user's own, before options are made."""
    names = [*(given or []), *filter(None, os.environ.get(IMPORTS, "").split(","))]
    if names and "" not in sys.path:
        sys.path.insert(0, "")
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            raise typer.BadParameter(f"the module {name!r} cannot be imported ({told})") from error
    return names


@app.callback()
def common(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            callback=_import_modules,
            is_eager=True,
            help=f"Import a module that defines families of your own; also {IMPORTS}=MODULE,MODULE.",
        ),
    ] = None,
) -> None:
    """Tell whether a probabilistic model's predictions can be taken at their word.

    A file has a column for the target, and columns for what was predicted. Start with

    wellcal report predictions.csv
    """
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def main() -> None:
    """Run the command line."""
    app(prog_name="wellcal")
