"""The command ``wellcal``: what it offers, what it says, and the status it ends with."""

import importlib
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import wellcal
from wellcal.cli import app


def run(*arguments):
    return CliRunner().invoke(app, arguments)


def test_as_a_module_it_shows_its_version():
    command = [sys.executable, "-m", "wellcal", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"wellcal {wellcal.__version__}\n"


@pytest.mark.parametrize("arguments", [(), ("--help",)], ids=["nothing", "help"])
def test_help_names_the_commands(arguments):
    shown = run(*arguments).output
    assert "demo" in shown
    assert "reproduce" not in shown


@pytest.mark.parametrize("status", [0, 1])
def test_demo_runs_the_demonstration_and_hands_on_its_status(monkeypatch, status):
    monkeypatch.setattr("wellcal.demo.main", lambda: status)
    assert run("demo").exit_code == status


@pytest.mark.parametrize("arguments", [(), ("all", "--quick", "--out", "docs"), ("--help-me",)])
def test_reproduce_says_where_the_experiments_have_gone(arguments):
    found = run("reproduce", *arguments)
    assert found.exit_code == 2
    assert found.output.count("\n") == 1
    assert "make reproduce" in found.output


def test_names_the_remedy_where_typer_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "wellcal.cli")
    with pytest.raises(SystemExit, match=r"pip install 'wellcal\[cli\]'"):
        importlib.import_module("wellcal.cli")
