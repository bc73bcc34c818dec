"""What the README promises is what happens."""

from __future__ import annotations

import re
from pathlib import Path

from ..processes import run_python

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def run(*arguments: str) -> str:
    """Standard output of a fresh interpreter in which every warning is an error."""
    return run_python("-W", "error::RuntimeWarning", *arguments).stdout


def test_readme_has_code():
    assert BLOCKS


def test_first_block_is_short_and_on_the_first_screen():
    first = BLOCKS[0]
    lines = [line for line in first.splitlines() if line.strip()]
    assert len(lines) <= 10
    assert README[: README.index(first)].count("\n") < 25


def test_readme_code_prints_what_is_shown():
    """All blocks, one after the other as a reader would; the lines shown are those that the first prints."""
    shown = re.search(r"^```text\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    assert shown
    first, *later = BLOCKS
    printed = run("-c", "\n".join([first, "print('-- later')", *later]))
    assert printed.split("-- later\n")[0] == shown.group(1)


def test_readme_names_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make (\w+)", README):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
