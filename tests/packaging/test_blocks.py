"""Every block of code on every page is run, and every example, and says what it does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..processes import run_python
from .page_blocks import ROOT, RUN, SHOWN, blocks, pages, shown_outputs

RUNNER = str(Path(__file__).with_name("page_blocks.py"))
PAGES = pages()
EXAMPLES = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}
QUICK = {"training_with_skce": " --quick"}
"""Options of examples that are studies."""
BY_SPHINX = {"{doctest}", "{testsetup}", "{picture}"}
"""Blocks that `make docs` runs: pages that have no others are not run a second time."""
CODE = re.compile(r"^\s*(>>>|from \S+ import |import \w|def \w|class \w|with \w|@\w)", re.MULTILINE)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def counts() -> dict[str, int]:
    """Blocks to be run, by page."""
    found = {
        name_of(page): [b.language for b in blocks(page.read_text()) if b.language in RUN] for page in PAGES
    }
    return {name: len(languages) for name, languages in found.items() if not BY_SPHINX.issuperset(languages)}


def test_pages_are_found() -> None:
    names = {name_of(page) for page in PAGES}
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/index.md", "docs/api/index.md"} <= names
    assert sum(counts().values()) > 35, "the scan must find the blocks"


def problems(text: str) -> list[str]:
    """Code on a page that would not be run."""
    found = list(blocks(text))
    wrong = [f"line {b.line}: no language" for b in found if not b.language]
    wrong += [f"line {b.line}: {b.language}" for b in found if b.language and b.language not in RUN | SHOWN]
    wrong += [
        f"line {b.line}: code in {b.language}"
        for b in found
        if b.language in ("text", "console", "{eval-rst}") and CODE.search(b.code)
    ]
    included = [b.rest for b in found if b.language == "{literalinclude}"]
    wrong += [f"{path} is not run" for path in included if not path.startswith("../examples/")]
    outside = text
    for block in found:
        outside = outside.replace(block.code, "\n")
    wrong += [
        f"indented: {m[0].strip()}" for m in re.finditer(r"(?<=\n\n)    +\S.*", outside) if CODE.match(m[0])
    ]
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_code_is_left_out(page: Path) -> None:
    assert not problems(page.read_text(encoding="utf-8"))


def test_the_scan_sees_what_is_left_out() -> None:
    for text, expected in {
        "```\nx\n```\n": "line 1: no language",
        "```py\nx\n```\n": "line 1: py",
        "```text\n>>> x\n```\n": "line 1: code in text",
        "```{literalinclude} ../src/a.py\n```\n": "../src/a.py is not run",
        "words:\n\n    import wellcal as wc\n": "indented: import wellcal as wc",
        "- in a list:\n\n  ~~~python3\n  x\n  ~~~\n": "line 3: python3",
    }.items():
        assert problems(text) == [expected]
    assert not problems("```python\nimport os\n```\n\n```text\nwords\n```\n")
    with pytest.raises(ValueError, match="has no end"):
        problems("```python\n")


def test_there_is_an_example_for_each_thing_of_ones_own() -> None:
    assert {f"your_own_{thing}" for thing in ("engine", "family", "kernel", "test")} <= EXAMPLES.keys()


def test_blocks_and_examples_run_and_print_what_is_shown() -> None:
    """All of them: each page says how many it has run. The README has a stricter test of its own.

    Examples whose output a page shows are run with that page.
    """
    wanted = counts()
    assert wanted.pop("README.md")
    shown = {path for page in PAGES for path in shown_outputs(page)}
    assert EXAMPLES["your_own_kernel"] in shown, "the scan must find an output"
    programs = {name_of(path) + QUICK.get(name, "") for name, path in EXAMPLES.items() if path not in shown}
    done = run_python("-W", "error::RuntimeWarning", RUNNER, *wanted, *sorted(programs))
    found = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert all(int(found.pop(program)) for program in programs)
    assert found == {name: str(count) for name, count in wanted.items()}


def test_a_block_that_fails_is_noticed(tmp_path: Path) -> None:
    pages = {
        "raises": "```python\n1 / 0\n```\n",
        "prints": "```python\nprint('one')\n```\n\n```text\ntwo\n```\n",
        "shows": "```python\n'one'\n```\n\n```text\n'two'\n```\n",
        "names": "```{doctest}\n>>> nothing\n```\n",
        "example": "```{doctest}\n>>> 1 + 1\n3\n```\n",
        "picture": "```{picture}\n:alt: nothing\nx = 1\n```\n",
        "included": "```{literalinclude} talks.py\n```\n\n```text\nnothing\n```\n",
    }
    for name, text in pages.items():
        (tmp_path / f"{name}.md").write_text(text)
    programs = {"divides": "1 / 0\n", "silent": "print()\n", "leaves": "raise SystemExit(2)\n"}
    for name, text in programs.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "good.md").write_text(
        "```python\nx = 1\nx\n```\n\n```text\n1\n```\n\n```python\nassert x == 1\n```\n"
    )
    (tmp_path / "talks.py").write_text("import sys\nif __name__ == '__main__':\n    print(sys.argv[1:])\n")
    given = [str(path) for path in sorted(tmp_path.iterdir())]
    done = run_python(RUNNER, *given[:-1], f"{given[-1]} --quick", expect=1)
    assert done.stdout == f"{tmp_path}/good.md 2\n{tmp_path}/talks.py --quick 1\n"
    assert done.stderr.count(", in main\n") == len(pages) + len(programs)
