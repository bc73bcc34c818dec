"""The demonstration: a stranger's first contact."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def printed() -> str:
    done = subprocess.run([sys.executable, "-m", "wellcal.demo"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def test_fits_a_terminal(printed: str):
    lines = printed.splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 40


def test_is_repeatable(printed: str):
    again = subprocess.run([sys.executable, "-m", "wellcal.demo"], capture_output=True, text=True, check=True)
    assert again.stdout == printed


def test_names_the_remedy_where_scikit_learn_is_missing():
    hide = (
        "import runpy, sys\n"
        "sys.modules['sklearn'] = None\n"
        "runpy.run_module('wellcal.demo', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install" in done.stderr
    assert "Traceback" not in done.stderr
