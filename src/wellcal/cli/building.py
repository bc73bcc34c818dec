"""Commands from functions: groups of options become options, and each family has a flag."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Annotated, Any, cast, get_type_hints

import typer

from wellcal._arrays.files import no_folder
from wellcal.cli.options import ReadOptions
from wellcal.cli.screen import ending_well

ROLE, VERSUS = "role_", "versus_"
WRITTEN = ("out", "json", "state", "scaling")
"""Options that name a file to be written."""

PREDICTED, SECOND = "Predictions, one of", "The model that it is compared with, one of"


@dataclass(frozen=True)
class Command:
    """A command, before typer knows of it.

    Parameters
    ----------
    function
        What it does. Parameters that are annotated with a dataclass of options stand for all of these.
    help
        What it says of itself.
    examples
        Lines that work.
    versus
        Whether it takes the predictions of further models.
    refused
        Options that have no meaning for it, each with the reason.
    hidden, settings
        For typer.
    """

    function: Callable[..., Any]
    help: str
    examples: Sequence[str] = ()
    versus: bool = False
    refused: Mapping[str, str] = field(default_factory=lambda: {})
    hidden: bool = False
    settings: dict[str, Any] = field(default_factory=lambda: {})

    @property
    def epilog(self) -> str:
        """Examples, one in each line."""
        lines = ["Examples:", *(line.replace("[", r"\[") for line in self.examples)]
        return "\n\n".join(lines) if self.examples else ""


def expanded(name: str, command: Command, *, families: bool) -> Callable[..., Any]:
    """The function with a parameter for each option, as typer reads it."""
    hints = get_type_hints(command.function, include_extras=True)
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command.function).parameters.values():
        hint = hints[parameter.name]
        if is_dataclass(hint):
            groups[parameter.name] = cast("type[Any]", hint)
            parameters += _options_of(hint)
        else:
            parameters.append(parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY))
    reads = any(issubclass(group, ReadOptions) for group in groups.values())
    if reads and families:
        parameters += family_flags(versus=command.versus)

    def called(**given: Any) -> None:
        with ending_well(name):
            made = {at: _made(group, given, command) for at, group in groups.items()}
            rest = {at: value for at, value in given.items() if at in hints and at not in made}
            if reads:
                _refuse_lost_folders(given)
                _refuse_lost_files(given)
            command.function(**made, **rest)

    # Arguments first: typer takes them in this order.
    parameters.sort(key=lambda item: item.default is not inspect.Parameter.empty)
    called.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    called.__annotations__ = {item.name: item.annotation for item in parameters}
    called.__doc__ = command.help
    return called


def _refuse_lost_folders(given: Mapping[str, Any]) -> None:
    """Refuse what cannot be written before anything is computed: that may take minutes."""
    for name in WRITTEN:
        path = given.get(name)
        if path is None or (name == "json" and path == "-"):
            continue
        if path in ("", "-"):
            raise ValueError(f"--{name} {path or repr(path)}: it is written to a file; give the name of one")
        if os.path.isdir(path):
            raise ValueError(f"--{name} {path}: is a folder; give the name of a file in it")
        if said := no_folder(path):
            raise ValueError(f"--{name} {path}: {said}")


def _refuse_lost_files(given: Mapping[str, Any]) -> None:
    """Refuse to write over what is read, or twice to one file: something would be gone without a word."""
    taken = {"": given["file"]}
    for name in WRITTEN:
        path = given.get(name)
        if path is None:
            continue
        for other, there in taken.items():
            if _same_file(path, there):
                what = f"--{other} writes it, too" if other else "the file that is read would be lost"
                raise ValueError(f"--{name} {path}: {what}; give another name")
        taken[name] = path


def _same_file(path: str, other: str) -> bool:
    if "-" in (path, other):
        return False
    if os.path.exists(path) and os.path.exists(other):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


def _options_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            item.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if item.default is MISSING else item.default,
            annotation=hints[item.name],
        )
        for item in fields(group)
        if hasattr(hints[item.name], "__metadata__")
    ]


def _made(group: type[Any], given: Mapping[str, Any], command: Command) -> Any:
    """The group of options from what was given for each."""
    names = [parameter.name for parameter in _options_of(group)]
    values = {name: given[name] for name in names}
    if issubclass(group, ReadOptions):
        for name, reason in command.refused.items():
            if values.get(name) or given.get(name):
                raise ValueError(f"--{name.replace('_', '-')} has no meaning here: {reason}")
        values["roles"] = {
            name.removeprefix(ROLE): text
            for name, text in given.items()
            if name.startswith(ROLE) and text is not None
        }
        values["versus"] = [
            (name.removeprefix(VERSUS), text)
            for name, texts in given.items()
            if name.startswith(VERSUS)
            for text in texts or ()
        ]
    return group(**values)


def family_flags(*, versus: bool) -> list[inspect.Parameter]:
    """A flag for each family that there is, a user's own among them."""
    from wellcal.predictions.column_roles import roles_by_keyword

    found: list[inspect.Parameter] = []
    for keyword, role in roles_by_keyword().items():
        flag = keyword.replace("_", "-")
        shape = _shape(role)
        what = (inspect.getdoc(role.family) or role.family.__name__).partition("\n")[0].replace("`", "")
        found.append(
            _parameter(
                f"{ROLE}{keyword}", str | None, f"--{flag}", shape, what.replace("[", r"\["), PREDICTED
            )
        )
        if versus:
            found.append(
                _parameter(
                    f"{VERSUS}{keyword}", list[str] | None, f"--versus-{flag}", "...", f"As --{flag}.", SECOND
                )
            )
    return found


def _parameter(name: str, kind: Any, flag: str, shape: str, text: str, panel: str) -> inspect.Parameter:
    option = typer.Option(flag, metavar=shape, help=text, rich_help_panel=panel)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option]
    )


def _shape(role: Any) -> str:
    """What is written after the flag."""
    if role.of_roles:
        return "PART+PART"
    names = [name.upper() for name in role.needed]
    vectors = any(role.parameters[name].ndim > 1 for name in role.needed)
    return (";" if vectors else ",").join(f"{name}_*" if vectors else name for name in names)
