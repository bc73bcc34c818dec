"""A command that is killed leaves no half-written file: the old one is there, or the new one, or none."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from ...processes import run_python

KILLED = """
import os, signal, sys
from typer.testing import CliRunner
from wellcal.cli import app

moment, *arguments = sys.argv[1:]
before = getattr(os, moment)

def killed(*given, **options):
    if moment == "replace":  # the file has its name by now
        before(*given, **options)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(os, moment, killed)
CliRunner().invoke(app, arguments, catch_exceptions=False)
sys.exit("it was not killed")
"""
"""Kills itself while its output is written: before the file has its name, and after."""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no such signal")
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_killed_while_it_writes(folder: Path, tmp_path: Path, moment: str) -> None:
    out = tmp_path / "recalibrated.csv"
    out.write_text("the old one\n")
    given = ("--target", "y", "--normal", "mu,sigma", "--resamples", "19", "--folds", "2")
    run_python("-c", KILLED, moment, "recalibrate", str(folder / "stream.csv"), *given, "--out", str(out),
               expect=-signal.SIGKILL)  # fmt: skip
    if moment == "fsync":
        assert out.read_text() == "the old one\n"
    else:
        assert len(out.read_text().splitlines()) == 61
    left = [path.name for path in tmp_path.iterdir() if path != out]
    assert all(name.startswith(".recalibrated.csv.") for name in left), "temporary files alone"
