"""The demonstration: a stranger's first contact."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from wellcal.cli import app
from wellcal.demo import main

from ..processes import run_python


def test_fits_a_terminal_and_is_repeatable():
    """As a module, and from the command line."""
    done = run_python("-m", "wellcal.demo")
    assert not done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 40
    assert CliRunner().invoke(app, ["demo"]).output == done.stdout


def test_names_the_remedy_where_scikit_learn_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert main() == 1
    assert "pip install 'wellcal[demo]'" in capsys.readouterr().err
