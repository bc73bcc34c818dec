"""Every command on the page about the command line is run, and prints what is shown there."""

from __future__ import annotations

import doctest
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import wellcal as wc
from wellcal.cli.group import COMMANDS
from wellcal.cli.screen import MOST_LINES

PAGE = Path(__file__).parents[3] / "docs" / "command_line.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
REFUSED = "wellcal test preds.csv --target y --normal mu,sigm"

WANTED = """
wellcal report preds.parquet --target y --normal mu,sigma --out report.html
wellcal test preds.csv --target label --probs 'p_*' --json -
wellcal compare preds.csv --target y --normal mu_a,sigma_a --versus-normal mu_b,sigma_b
wellcal recalibrate preds.csv --target y --normal mu,sigma --out recalibrated.parquet
wellcal monitor stream.csv --target y --normal mu,sigma --state monitor.json
wellcal plot reliability preds.csv --target label --probs 'p_*' --out r.svg
"""
"""Lines that must work as they are."""


def shown() -> Iterator[tuple[str, str]]:
    """Commands, and what is shown below each."""
    inside, command, lines = False, "", list[str]()
    for line in PAGE.read_text().splitlines():
        if line.startswith("```"):
            if inside and command:
                yield command, "\n".join(lines) + "\n"
            inside, command, lines = line == "```console", "", []
        elif inside and line.startswith("$ "):
            if command:
                yield command, "\n".join(lines) + "\n"
            command, lines = line[2:], []
        elif inside:
            lines.append(line)


LINES = dict(shown())


def test_all_commands_are_on_the_page() -> None:
    assert set(WANTED.strip().splitlines()) <= set(LINES)
    shown_commands = {line.split()[1] for line in LINES}
    assert shown_commands == set(COMMANDS) - {"demo", "reproduce"}


@pytest.mark.parametrize("line", LINES)
def test_it_prints_what_is_shown(
    run: Callable[..., Any], folder: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "monitor.json").unlink(missing_ok=True)
    # The pages themselves have tests of their own, and take their time.
    monkeypatch.setattr(wc.Report, "to_html", lambda report, path: Path(path).write_text("page"))
    done = run(*shlex.split(line)[1:], expect=2 if line == REFUSED else 0)
    # What the pattern shows of the beginning, and whatever follows.
    wanted = LINES[line].replace("\n  ...\n", "\n...\n")
    wanted = wanted if wanted.rstrip().endswith("...") or line == REFUSED else wanted + "...\n"
    found = done.output
    assert doctest.OutputChecker().check_output(wanted, found, FLAGS), found
    lines = done.stdout.splitlines()
    if "--json" not in line and line != REFUSED:
        assert 1 < len(lines) <= 1 + MOST_LINES
        assert "\x1b" not in done.stdout, "colour is for terminals"
