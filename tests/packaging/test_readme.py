"""What the README and the examples promise is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run(*arguments: str) -> str:
    """Standard output of a fresh interpreter in which every warning is an error."""
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_readme_has_code():
    assert BLOCKS


def test_first_block_is_short_and_on_the_first_screen():
    first = BLOCKS[0]
    lines = [line for line in first.splitlines() if line.strip()]
    assert len(lines) <= 10
    assert README[: README.index(first)].count("\n") < 25


@pytest.mark.parametrize("index", range(len(BLOCKS)))
def test_readme_code_runs(index: int):
    # Later blocks may go on from earlier ones, as a reader would.
    run("-c", "\n".join(BLOCKS[: index + 1]))


def test_readme_output_is_what_is_printed():
    """The lines shown after ``prints`` are those that the first block prints."""
    shown = re.search(r"^```text\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    assert shown
    assert run("-c", BLOCKS[0]) == shown.group(1)


def test_readme_names_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make (\w+)", README):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path):
    assert run(str(path)).strip()
