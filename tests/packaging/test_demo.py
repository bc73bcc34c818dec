"""The demonstration: a stranger's first contact."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from wellcal.cli import app
from wellcal.demo import main

from ..processes import run_python


@pytest.fixture(scope="module")
def printed() -> str:
    """What ``python -m wellcal.demo`` prints."""
    done = run_python("-m", "wellcal.demo")
    assert not done.stderr
    return done.stdout


def test_fits_a_terminal(printed: str):
    lines = printed.splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 40


def test_is_repeatable_and_the_same_from_the_command_line(printed: str):
    assert CliRunner().invoke(app, ["demo"]).output == printed


def test_names_the_remedy_where_scikit_learn_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert main() == 1
    assert "pip install 'wellcal[demo]'" in capsys.readouterr().err
