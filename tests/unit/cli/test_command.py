"""The command ``wellcal``: what it offers, and how it ends."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wellcal
from wellcal.cli.group import COMMANDS
from wellcal.predictions.column_roles import roles_by_keyword

from ...processes import run_python

Run = Callable[..., Any]


def test_as_a_module_it_shows_its_version() -> None:
    command = [sys.executable, "-m", "wellcal", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"wellcal {wellcal.__version__}\n"


@pytest.mark.parametrize("arguments", [(), ("--help",)], ids=["nothing", "help"])
def test_help_names_the_commands(run: Run, arguments: tuple[str, ...]) -> None:
    shown = run(*arguments).output
    assert all(f" {name} " in shown for name in COMMANDS if name != "reproduce")
    assert "reproduce" not in shown


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("reproduce", "demo")])
def test_help_of_a_command_has_examples_and_a_flag_for_each_family(run: Run, command: str) -> None:
    shown = run(command, "--help").output
    assert "Examples:" in shown
    assert f"wellcal {command} " in shown.partition("Examples:")[2]
    for keyword in roles_by_keyword():
        assert f"--{keyword.replace('_', '-')} " in shown
        assert (f"--versus-{keyword.replace('_', '-')} " in shown) == (
            command in ("compare", "plot", "report")
        )


def test_help_is_quick() -> None:
    """Of libraries that take long to import none is; neither is what reads files or draws."""
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom wellcal.cli import app\n"
        "assert CliRunner().invoke(app, sys.argv[1:]).exit_code == 0\nprint(*sys.modules)"
    )
    loaded = set(run_python("-c", code, "--help").stdout.split())
    heavy = {"torch", "jax", "matplotlib", "pandas", "polars", "sklearn", "pyarrow", "scipy.stats"}
    assert not loaded & {*heavy, "numpy"}
    loaded = set(run_python("-c", code, "test", "--help").stdout.split())
    assert "wellcal.predictions.scalar" in loaded, "the probe itself must see what is imported"
    assert not loaded & heavy


@pytest.mark.parametrize("status", [0, 1])
def test_demo_runs_the_demonstration_and_hands_on_its_status(
    run: Run, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    folders: list[str] = []
    monkeypatch.setattr("wellcal.demo.main", lambda *folder: folders.extend(folder) or status)
    run("demo", expect=status)
    run("demo", "--out", "reports", expect=status)
    assert folders == ["reports"]


@pytest.mark.parametrize("arguments", [(), ("all", "--quick", "--out", "docs"), ("--help-me",)])
def test_reproduce_says_where_the_experiments_have_gone(run: Run, arguments: tuple[str, ...]) -> None:
    found = run("reproduce", *arguments, expect=2)
    assert found.output.count("\n") == 1
    assert "make reproduce" in found.output


def test_names_the_remedy_where_typer_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "wellcal.cli")
    with pytest.raises(SystemExit, match=r"pip install 'wellcal\[cli\]'"):
        importlib.import_module("wellcal.cli")


# -- called wrongly ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tset", "preds.csv"), "No such command 'tset'. Did you mean 'test'?"),
        (("test",), "Missing argument 'FILE'"),
        (("test", "preds.csv", "--nomal", "mu,sigma"), "--nomal"),
        (("test", "preds.csv", "--seed", "x"), "--seed"),
        (
            ("test", "preds.csv", "--normal", "mu,sigma", "--bernoulli", "mu"),
            "found --bernoulli and --normal",
        ),
        (("test", "preds.csv", "--target", "y", "--normal", "mu"), "normal takes loc"),
        (
            ("test", "preds.csv", "--target", "y", "--diagonal-normal", "mu,sigma"),
            "write a semicolon between them, such as 'loc_*;scale_*', found 'mu,sigma'",
        ),
        (("test", "preds.csv", "--target", "y", "--normal", "mu,sigmo"), "did you mean 'sigma'"),
        (("test", "stream.csv", "--method", "guess"), "unknown method 'guess'"),
        (("test", "stream.csv", "--memory", "much"), "memory must be a size such as 4GB"),
        (("plot", "pie", "preds.csv"), "pie"),
        (
            ("plot", "pit", "stream.csv", "--out", "a.doc"),
            "a.doc: a picture is written as .svg, .png or .pdf",
        ),
        (
            ("report", "stream.csv", "--out", "a.doc"),
            "a.doc: a report is written as .html or .htm",
        ),
        (("recalibrate", "stream.csv", "--out", "a.doc"), "a.doc: a table is written as .csv"),
        (("recalibrate", "stream.csv", "--scaling", "a.doc"), "a.doc: a recalibrator is written as .json"),
        (("monitor", "stream.csv", "--state", "a.doc"), "a.doc: a monitor is written as .json"),
        (("monitor", "stream.csv", "--state", "-"), "--state -: it is written to a file"),
        (("test", "stream.csv", "--json", ""), "--json '': it is written to a file"),
        (("compare", "stream.csv"), "a second model is needed"),
        (("--import", "no_such_module_of_mine", "test", "stream.csv"), "cannot be imported"),
    ],
)
def test_an_error_is_one_paragraph(run: Run, arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments, expect=2)
    assert not done.stdout
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Guessed")]
    assert len(lines) == 1
    assert said in lines[0]
    assert lines[0].startswith("wellcal")


WEIGHTED = {"scores", "compare", "witness"}
SEGMENTED = {"witness", "report"}
GROUPED = {"test", "report"}


@pytest.mark.parametrize(
    ("option", "column", "able"),
    [("weights", "weight", WEIGHTED), ("segments", "region", SEGMENTED), ("groups", "patient", GROUPED)],
)
def test_options_without_a_meaning_are_refused_with_the_reason(
    run: Run, option: str, column: str, able: set[str]
) -> None:
    refusing = set(COMMANDS) - able - {"demo", "reproduce", "plot"}
    for command in refusing:
        done = run(command, "preds.csv", f"--{option}", column, expect=2)
        assert done.stderr.startswith(f"wellcal {command}: --{option} has no meaning here: ")
        assert len(done.stderr) > 70
        assert "Guessed" not in done.stderr, "it is refused before anything is read"
    done = run("plot", "pit", "stream.csv", "--weights", "sigma", expect=2)
    assert "--weights has no meaning for this figure" in done.stderr


def test_families_of_a_users_own_have_a_flag_too(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "my_families.py").write_text(
        "import numpy as np, wellcal as wc\n"
        "from wellcal.extend import family, parameter, positive\n"
        "@family\n"
        "class ShiftedNormal(wc.Normal):\n"
        "    '''Normals of my own.'''\n"
    )
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom wellcal.cli import app\n"
        "done = CliRunner().invoke(app, sys.argv[1:])\nprint(done.output)\nsys.exit(done.exit_code)"
    )
    found = run_python(
        "-c", code, "--import", "my_families", "test", str(folder / "stream.csv"), "--target", "y",
        "--shifted-normal", "mu,sigma", "--resamples", "99", PYTHONPATH=_path(tmp_path),
    )  # fmt: skip
    assert found.stdout.startswith("Miscalibrated")
    assert "shifted_normal: loc = mu" in found.stdout


def _path(first: Path) -> str:
    import os

    return os.pathsep.join(filter(None, [str(first), os.environ.get("PYTHONPATH")]))


def test_shells_complete_commands_and_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    for words, wanted in (
        ("wellcal re", "recalibrate"),
        ("wellcal compare --versus-norm", "--versus-normal"),
    ):
        code = "import sys; sys.argv = ['wellcal']; from wellcal.__main__ import main; main()"
        done = run_python(
            "-c", code, _WELLCAL_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(words.count(" "))
        )
        assert wanted in done.stdout.split()
