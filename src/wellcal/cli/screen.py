"""What a command shows: the verdict first, then at most twelve lines; notes and errors on standard error."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import typer

import wellcal
from wellcal.__main__ import CANNOT, sentence, was_interrupted
from wellcal._arrays.characters import writable
from wellcal._arrays.files import write_whole
from wellcal._arrays.progress import following
from wellcal._arrays.row_errors import RowError
from wellcal.cli.bars import on_terminal

BAD_INPUT = CANNOT
REJECTED = 1
MOST_LINES = 12
_WRITTEN = ("page", "written", "scaling")  # rows that name a file
"""Below the verdict."""

DEBUG = "WELLCAL_TRACEBACK"
"""Environment variable that shows where errors come from."""


def say(text: str) -> None:
    """A note on standard error."""
    with contextlib.suppress(OSError):
        print(writable(text), file=sys.stderr, flush=True)


def say_error(command: str, message: str) -> None:
    """An error, as one paragraph that begins with the command."""
    said = " ".join(in_options(message).split())
    say(f"wellcal {command}: {said}" if command else f"wellcal: {said}")


@contextlib.contextmanager
def ending_well(command: str) -> Generator[None]:
    """End with status 2 and a paragraph where something was wrong with what was given; warnings are notes."""
    _notes.clear()
    try:
        with warnings.catch_warnings(), following(on_terminal()), _naming_what_was_read():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _note
            yield
        say_notes()
    except typer.Exit:  # with a result that counts as a failure
        say_notes()
        raise
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, ImportError, MemoryError, OSError) as error:
        if os.environ.get(DEBUG):
            raise
        if was_interrupted(error):
            raise KeyboardInterrupt from error
        said = sentence(error) if isinstance(error, OSError) else str(error)
        if isinstance(error, MemoryError):
            said = f"there is not enough memory for it{_amount(error)}; {_IN_PARTS}"
        say_error(command, said or type(error).__name__)
        raise typer.Exit(BAD_INPUT) from error


_notes: list[str] = []
"""What was noted on the way to a result. Where there is an error instead, that is all there is to say."""


def say_notes() -> None:
    """Say what was noted: before a result is shown, and at the end."""
    while _notes:
        say(_notes.pop(0))


_IN_PARTS = "wellcal scores reads a file of any size in parts"


def _amount(error: MemoryError) -> str:
    """How much was asked for, where NumPy says it."""
    found = re.search(r"Unable to allocate ([\d.]+ \w+)", str(error))
    return "" if found is None else f": an array of {found[1]} did not fit"


_read: ContextVar[tuple[Any, ...] | None] = ContextVar("_read", default=None)


def read_from(path: str, rows: Any, format: str | None) -> None:
    """Remember the file that cases are from, which rows of it: errors about single cases name both."""
    _read.set((path, 0, rows, format))


@contextlib.contextmanager
def _naming_what_was_read() -> Generator[None]:
    _read.set(None)
    try:
        yield
    except RowError:
        known = _read.get()
        if known is None:
            raise
        from wellcal.reading.places import naming_file

        with naming_file(*known):
            raise


def _note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, UserWarning):
        _notes.append(f"Note: {' '.join(in_options(str(message)).split())}")


_VALUE = r"(\([^()]*\)|\[[^\[\]]*\]|\{[\d.]+: [^{}]*\}|'[^']*'|\"[^\"]*\"|True|\d+|)"
_QUOTED = re.compile(r"(?:([\d.]+): )?(?:'([^']*)'|\"([^\"]*)\")")  # with the level before it, of a quantile
_NUMBERS = re.compile(r"\[(\d+(?:, (?:\d+|\.\.\.))*)\]")
_ARGUMENT = re.compile(rf"(?<![\w.-])([a-z_]+)={_VALUE}(?![={{])")
_OF_SHELLS = re.compile(r"[^\w@%+=:,./-]")
"""Signs that shells do not pass on as they are, such as blanks and stars."""

_ORDER_WANTED = "give their order with --grades, from the lowest to the highest"
_DIVIDE = "divide each row of probs by its sum"
_FRAME = re.compile(rf"(?:wc\.)?as_predictions\(frame, ([a-z_]+={_VALUE})\)")
_FAMILY = re.compile(r"\bwc\.([A-Z]\w*)\(x\)")
_READING = (
    "target",
    "classes",
    "grades",
    "format",
    "decimal",
    "delimiter",
    "encoding",
    "columns",
    "groups",
    "segments",
    "weights",
    "tolerance",
    "drop_missing",
    "sort",
    "normalise",
    "objective",
)
_DISPLAYS = {
    "PITDisplay": "wellcal plot pit",
    "ReliabilityDisplay": "wellcal plot reliability",
    "WitnessDisplay": "wellcal plot witness",
    "CoordinatesDisplay": "wellcal plot coordinates",
}
"""Pictures that errors name, and the commands that draw them."""

_OTHERWISE = {"n_resamples": "resamples", "rng": "seed"}
"""Arguments whose options have other names."""


def in_options(message: str) -> str:
    """A message of the library, with options of the command line in the place of arguments of Python.

    Examples
    --------
    >>> in_options("read the file with decimal=','; say which, e.g. normal=('mu', 'sigma')")
    "read the file with --decimal ','; say which, e.g. --normal mu,sigma"
    >>> in_options("give sort=True to sort each row, or quantiles={0.1: 'low', 0.9: 'high'}")
    'give --sort to sort each row, or --quantiles 0.1=low,0.9=high'
    >>> print(in_options("say which, e.g. normal=('mu, kg', 'sigma')"))
    say which, e.g. --normal '"mu, kg",sigma'
    >>> in_options("draws from the predictions are wc.Samples(x)")
    'draws from the predictions are --samples'
    >>> print(in_options('give as_predictions(frame, probs="p_*"), or target="# y"'))
    give --probs 'p_*', or --target '# y'
    """
    from wellcal.predictions.class_names import NUMBERS_WANTED

    message = message.replace("wellcal.reading.drop_missing", "--drop-missing")
    message = message.replace(NUMBERS_WANTED, _ORDER_WANTED)
    for display, command in _DISPLAYS.items():
        for both in (f"{display}, {command}", f"{display} ({command})", display):
            message = message.replace(both, command)
    message = _FRAME.sub(r"\1", message)
    message = message.replace(_DIVIDE, f"{_DIVIDE}: --normalise does so where rounding explains it")
    if "=" not in message and "wc." not in message:
        return message
    from wellcal.predictions.column_roles import roles_by_keyword

    roles = roles_by_keyword()
    known = {*_READING, *_OTHERWISE, *roles}
    flags = {role.family.__name__: f"--{keyword.replace('_', '-')}" for keyword, role in roles.items()}
    message = _FAMILY.sub(lambda match: flags.get(match[1], match[0]), message)

    def option(match: re.Match[str]) -> str:
        name, value = match.groups()
        if name not in known:
            return match[0]
        names = [f"{level}={a or b}" if level else a or b for level, a, b in _QUOTED.findall(value)]
        numbers = _NUMBERS.fullmatch(value)
        plain = value if name in ("decimal", "delimiter") or value.isdecimal() else _line_of(names)
        plain = numbers[1].replace(" ", "") if numbers else plain
        return f"--{_OTHERWISE.get(name, name).replace('_', '-')} {plain}".rstrip()

    return _ARGUMENT.sub(option, message)


def _line_of(names: Sequence[str]) -> str:
    """Names as an option takes them, one with a comma among others in quotes; and as a shell takes them."""
    quoted = len(names) > 1 and any("," in name for name in names)
    line = ",".join(f'"{name}"' if quoted and "," in name else name for name in names)
    return shlex.quote(line) if _OF_SHELLS.search(line) else line


def in_commands(sentence: str) -> str:
    """A sentence of a result, with the command that says more in the place of a function of Python.

    Examples
    --------
    >>> in_commands("No single kind of error stands out: wc.witness(y, pred) says for which cases.")
    'No single kind of error stands out: wellcal witness says for which cases.'
    """
    from wellcal.hypotests.findings.reasons import WITNESS
    from wellcal.witnesses.result import TESTED_TOGETHER

    found = sentence.replace(WITNESS, "wellcal witness says for which cases")
    return found.replace(TESTED_TOGETHER, "for all cases together: wellcal test")


def show(
    command: str,
    verdict: str,
    lines: Sequence[str],
    *,
    to: str | None,
    content: Callable[[], Mapping[str, Any]],
    bad: bool = False,
) -> None:
    """Show a result, and write all of it as JSON where that is wanted.

    Parameters
    ----------
    command
        Its name.
    verdict, lines
        The first line, and those below it.
    to
        Where JSON goes: a path, "-" for standard output, in the place of all else, or None.
    content
        Makes what JSON holds beside the command, version and verdict: of many cases that takes seconds.
    bad
        Whether the verdict is about an error of the model: shown in red on a terminal.
    """
    say_notes()
    if to is not None:
        everything = {"command": command, "wellcal": wellcal.__version__, "verdict": verdict, **content()}
        text = json.dumps(everything, allow_nan=False, indent=2) + "\n"
        if to == "-":
            sys.stdout.write(text)
            return
        write_whole(to, text)
    _print_verdict(writable(in_commands(verdict)), bad)
    for line in _cut([writable(in_commands(line)) for line in lines]):
        print(line)


def _cut(lines: Sequence[str]) -> list[str]:
    """As many lines as a screen has; what was written, and where, is always among them."""
    if len(lines) <= MOST_LINES:
        return list(lines)
    kept = [line for line in lines if line.split(maxsplit=1)[0] in _WRITTEN]
    others = [line for line in lines if line not in kept]
    room = max(MOST_LINES - 1 - len(kept), 0)
    word = f"  ... and {len(others) - room} lines more: --json - shows everything"
    return [*others[:room], *kept, word]


def _print_verdict(verdict: str, bad: bool) -> None:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        print(verdict)
        return
    from rich.console import Console
    from rich.text import Text

    style = "bold red" if bad else "bold"
    Console(highlight=False, soft_wrap=True).print(Text(verdict, style))


def end(rejected: bool, fail: bool) -> None:
    """End with status 1 where a hypothesis was rejected and that is to count as a failure."""
    if rejected and fail:
        raise typer.Exit(REJECTED)
