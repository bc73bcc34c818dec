"""Broken files through the command: status 2, and one sentence that says what and where."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from typer.testing import CliRunner

from wellcal.cli import app

from ..broken_files import BROKEN, FUZZED, GOOD, spoilt_files

Run = Callable[..., Any]
MODEL = ("--target", "y", "--normal", "mu,sigma")


def sentence(done: Any) -> str:
    """The one sentence of a command that was given bad input."""
    assert not done.stdout
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("command", ["test", "scores"])
def test_each_is_refused(run: Run, tmp_path: Path, what: str, command: str) -> None:
    """Read as a whole, and part by part; nothing is written where nothing was read."""
    name, content, _ = BROKEN[what]
    path = tmp_path / name
    path.write_bytes(content)
    said = sentence(run(command, str(path), *MODEL, "--json", str(tmp_path / "out.json"), expect=2))
    assert said.startswith(f"wellcal {command}: {path}: ")
    assert 20 < len(said) - len(str(path)) < 600
    assert [found.name for found in tmp_path.iterdir()] == [name]
    assert "decimal=" not in said
    assert "format=" not in said
    assert "encoding=" not in said


def test_what_is_said_is_that_of_the_readers(run: Run, tmp_path: Path) -> None:
    """Where it differs, it is in the options of the command."""
    for what, wanted in {
        "decimal commas": "read the file with --decimal ','",
        "wrong encoding": "line 3; give its encoding, e.g. --encoding latin-1",
        "Parquet called csv": "--format parquet",
        "infinity": "column 'mu' must hold finite numbers: found inf in row 2 (line 3)",
        "ragged": "row 2 ('3') has 1 entries where the header has 2",
        "duplicate names": "'mu' more than once",
        "header only": "there are columns but no rows",
        "empty": "the file is empty",
    }.items():
        name, content, _ = BROKEN[what]
        (tmp_path / name).write_bytes(content)
        assert wanted in sentence(run("test", str(tmp_path / name), *MODEL, expect=2))


def test_a_header_says_that_there_are_no_rows_also_where_roles_are_guessed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("y,mu,sigma,region\n")
    for command in (["test"], ["report"], ["scores"], ["witness", "--segments", "region"]):
        said = sentence(run(command[0], str(path), *command[1:], expect=2))
        assert "there are columns but no rows; write at least one case" in said


def test_what_is_no_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "is a folder" in sentence(run("test", str(tmp_path), expect=2))
    assert "there is no such file" in sentence(run("scores", str(tmp_path / "a.csv"), expect=2))
    closed = tmp_path / "closed.csv"
    closed.write_bytes(GOOD)
    closed.chmod(0)
    if os.access(closed, os.R_OK):  # nothing is closed to root

        def refuse(*_: object) -> object:
            raise PermissionError(13, "Permission denied", str(closed))

        monkeypatch.setattr("wellcal.reading.sources.opened", refuse)
    assert "may not be read by you" in sentence(run("test", str(closed), expect=2))


def test_ten_thousand_columns(run: Run, tmp_path: Path) -> None:
    """They are read, also part by part; a sentence about them stays short."""
    names = [f"p_{k}" for k in range(10_000)]
    path = tmp_path / "wide.csv"
    row = ",".join(["3", *["0.0001"] * 10_000]) + "\n"
    path.write_text(",".join(["y", *names]) + "\n" + 3 * row)
    assert "p_0 .. p_9999 (10000 columns)" in run("scores", str(path), "--measures", "nll").stdout
    said = sentence(run("scores", str(path), "--target", "y", "--bernoulli", "p_99999", expect=2))
    assert "did you mean" in said
    assert len(said) < 1000


def test_memory_that_is_not_there_is_said_by_its_amount(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wellcal.reading.read_models", lambda *_, **__: np.empty(10**15))
    said = sentence(run("test", "stream.csv", *MODEL, expect=2))
    assert "there is not enough memory for it: an array of 7.11 PiB did not fit" in said


def test_states_that_are_broken(run: Run, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text("{")
    said = sentence(run("monitor", "stream.csv", *MODEL, "--state", str(tmp_path / "m.json"), expect=2))
    assert "m.json" in said
    assert (tmp_path / "m.json").read_text() == "{"
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    sentence(run("monitor", "stream.csv", *MODEL, "--state", str(tmp_path / "binary.json"), expect=2))
    assert (
        "is a folder"
        in sentence(run("monitor", "stream.csv", *MODEL, "--state", str(tmp_path), expect=2)).lower()
    )


def test_what_was_noted_on_the_way_to_an_error_is_not_said(run: Run, tmp_path: Path) -> None:
    """Of a file that is read, and lacks what was asked for; where there is a result, it is said before it."""
    path = tmp_path / "p.csv"
    path.write_text("a, a,y,mu,sigma\n1,2,0.5,0.25,1.0\n3,4,0.1,0.25,1.0\n")
    noted = "'a', ' a' differ by blanks around them only"
    assert noted in run("scores", str(path), *MODEL, "--measures", "nll").stderr
    said = sentence(run("scores", str(path), "--target", "z", "--normal", "mu,sigma", expect=2))
    assert noted not in said
    assert "no column 'z'" in said


def test_control_characters_of_a_file_do_not_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    rows = "".join(f"{i % 9 / 4 - 0.7},0.25,1.0,blue\n{4 + i / 90},0.25,1.0,\x1b[31mred\n" for i in range(40))
    path.write_text(f"\x9by,mu,sigma,colour\n{rows}")
    model = ("--target", "\x9by", "--normal", "mu,sigma", "--segments", "colour")
    done = run("witness", str(path), *model, "--resamples", "99")
    said = done.stdout + done.stderr
    assert "\ufffd[31mred" in said
    assert "\x1b" not in said
    assert "\x9b" not in said


@settings(max_examples=FUZZED, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(file=spoilt_files())
def test_files_with_other_bytes_in_them(file: tuple[str, bytes], tmp_path: Path) -> None:
    name, content = file
    path = tmp_path / name
    path.write_bytes(content)
    done = CliRunner().invoke(app, ["scores", str(path), *MODEL, "--measures", "nll"], catch_exceptions=False)
    assert done.exit_code in (0, 2), done.output
    if done.exit_code:
        sentence(done)
