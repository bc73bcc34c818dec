"""The demonstration: a stranger's first contact."""

from __future__ import annotations

import subprocess
import sys

import pytest

from wellcal.demo import main


@pytest.fixture(scope="module")
def printed() -> str:
    """What ``python -m wellcal.demo`` prints."""
    done = subprocess.run([sys.executable, "-m", "wellcal.demo"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def test_fits_a_terminal(printed: str):
    lines = printed.splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 40


def test_is_repeatable_and_the_same_from_the_command_line(printed: str):
    command = [sys.executable, "-m", "wellcal", "demo"]
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout == printed


def test_names_the_remedy_where_scikit_learn_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert main() == 1
    assert "pip install 'wellcal[demo]'" in capsys.readouterr().err
