"""A command that is killed leaves no half-written file: the old one is there, or the new one, or none."""

from __future__ import annotations

import os
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
    if moment == "link":  # the file is whole by now
        before(*given, **options)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(os, moment, killed)
CliRunner().invoke(app, arguments, catch_exceptions=False)
sys.exit("it was not killed")
"""
"""Kills itself while its output is written: when the bytes are there, and when the file has a name."""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no such signal")
@pytest.mark.parametrize("moment", ["fsync", "link"])
def test_killed_while_it_writes(folder: Path, tmp_path: Path, moment: str) -> None:
    try:
        os.close(os.open(tmp_path, getattr(os, "O_TMPFILE", os.O_RDWR) | os.O_WRONLY))
    except OSError:
        pytest.skip("this file system has no files without a name")
    out = tmp_path / "recalibrated.csv"
    out.write_text("the old one\n")
    given = ("--target", "y", "--normal", "mu,sigma", "--resamples", "19", "--folds", "2")
    run_python("-c", KILLED, moment, "recalibrate", str(folder / "stream.csv"), *given, "--out", str(out),
               expect=-signal.SIGKILL)  # fmt: skip
    assert out.read_text() == "the old one\n"
    left = [path for path in tmp_path.iterdir() if path != out]
    if moment == "fsync":
        assert not left
    for path in left:  # what has a name is whole
        assert len(path.read_text().splitlines()) == 61
