"""The examples that users are shown run as they stand, each in a fresh interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..processes import run_python

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
QUICK = {"training_with_skce": ["--quick"]}
"""Options of examples that are studies."""


def test_there_is_one_for_each_thing_of_ones_own() -> None:
    names = {path.stem for path in EXAMPLES}
    assert {f"your_own_{thing}" for thing in ("engine", "family", "kernel", "test")} <= names


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path: Path) -> None:
    done = run_python("-W", "error::RuntimeWarning", str(path), *QUICK.get(path.stem, []))
    assert done.stdout.strip()
