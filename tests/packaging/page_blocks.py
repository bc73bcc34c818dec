"""Code on pages and examples, and a program that runs it: ``python tests/packaging/page_blocks.py PAGE ...``.

The blocks of a page are run one after the other in the same names, each page in a process of its own. On
pages that Sphinx builds, ``testsetup`` blocks, which readers do not see, make what the code on the page is
about. What a block prints, and the value of its last line, must be the ``text`` block that follows it, if
there is one; blanks do not matter there, and an ellipsis stands for anything. What follows a piece of an
example must be what that example prints. ``picture`` blocks must leave a figure, which
`docs/_ext/pictures.py` shows.

What ends in ``.py``, with options behind it where it takes any, is run as it is, and must print something.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import os
import re
import runpy
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RUN = {"python", "{doctest}", "{testsetup}", "{picture}"}
"""Languages of blocks that are run."""

SHOWN = {"text", "console", "{eval-rst}", "{toctree}", "{literalinclude}", "{include}", "{image}"}
"""Languages of blocks that hold no code, or code that the tests of examples run."""

BUILT = {"np": "numpy", "wc": "wellcal"}
"""What is imported for all pages that Sphinx builds: see doctest_global_setup in docs/conf.py."""

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<language>[^\n`]*)$")
OPTION = re.compile(r":\w+:")
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass(frozen=True)
class Block:
    """A block with its language, what else is on that line, and the number of its first line."""

    language: str
    rest: str
    code: str
    line: int
    follows: bool
    """Whether nothing but blank lines is between this block and the one before."""


def pages() -> list[Path]:
    """All pages of the repository that people write."""
    docs = ROOT / "docs"
    folders = [ROOT, docs, docs / "api", docs / "research", ROOT / "reproduction" / "data", ROOT / "examples"]
    return [page for folder in folders for page in sorted(folder.glob("*.md"))]


def blocks(text: str) -> Iterator[Block]:
    """Fenced blocks of a page."""
    opened: re.Match[str] | None = None
    inside: list[str] = []
    start, quiet = 0, False
    for number, line in enumerate(text.splitlines(), start=1):
        found = FENCE.match(line)
        if opened is None:
            if found:
                opened, inside, start = found, [], number
            elif line.strip():
                quiet = False
        elif found and not found["language"].strip() and found["fence"].startswith(opened["fence"]):
            language, _, rest = opened["language"].strip().partition(" ")
            code = list(dropwhile(OPTION.match, inside)) if language == "{picture}" else inside
            yield Block(language, rest.strip(), "\n".join(code) + "\n", start, quiet)
            opened, quiet = None, True
        else:
            inside.append(line.removeprefix(opened["indent"]))
    if opened is not None:
        raise ValueError(f"the block in line {start} has no end")


def shown_outputs(page: Path) -> Iterator[Path]:
    """Examples of which a page shows what they print: it comes right after a piece of them."""
    before: Block | None = None
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "text" and block.follows and before and before.language == "{literalinclude}":
            yield (page.parent / before.rest).resolve()
        before = block


def shown_by(code: str, names: dict[str, Any], where: str) -> str:
    """What a block prints, with the value of its last line as in a notebook."""
    tree = ast.parse(code, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, where, "exec", dont_inherit=True), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), where, "eval", dont_inherit=True), names)
            if value is not None:
                print(repr(value))
    return printed.getvalue()


def run_page(page: Path) -> int:
    """Run all blocks of a page; how many there were. Raises at the first that fails."""
    built = page.is_relative_to(ROOT / "docs")
    names: dict[str, Any] = {"__name__": "__main__"}
    if built:
        names |= {name: __import__(module) for name, module in BUILT.items()}
    count, printed, example = 0, "", None
    for block in blocks(page.read_text(encoding="utf-8")):
        where = f"{page}, line {block.line}"
        if block.language == "{doctest}":
            test = doctest.DocTestParser().get_doctest(block.code, names, where, str(page), block.line)
            report = io.StringIO()
            failed, _ = doctest.DocTestRunner(optionflags=FLAGS).run(
                test, out=report.write, clear_globs=False
            )
            names.update(test.globs)
            if failed:
                raise AssertionError(report.getvalue())
        elif block.language in ("python", "{testsetup}", "{picture}"):
            printed = shown_by(block.code, names, where)
            if block.language == "{picture}" and not figures():
                raise AssertionError(f"{where}: this block leaves no figure")
        elif block.language == "text" and block.follows:
            printed = output_of(page.parent / example, []) if example else printed
            if printed and not _matches(block.code, printed):
                raise AssertionError(f"{where}: this is what is printed\n{printed}")
        count += block.language in RUN
        example = block.rest if block.language == "{literalinclude}" else None
        if block.language != "python":
            printed = ""
    return count


def figures() -> int:
    """How many figures there are, which are closed."""
    from matplotlib import pyplot

    found = len(pyplot.get_fignums())
    pyplot.close("all")
    return found


def _matches(shown: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(shown, printed, FLAGS)


def output_of(path: Path, options: list[str]) -> str:
    """What a program prints."""
    sys.argv[:] = [str(path), *options]
    sys.path[0] = str(path.parent)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(str(path), run_name="__main__")
    return printed.getvalue()


def run_example(path: Path, options: list[str]) -> int:
    """Run a program; how many lines it printed. Raises where it fails, or prints none."""
    lines = output_of(path, options).splitlines()
    if not any(map(str.strip, lines)):
        raise AssertionError(f"{path} printed nothing")
    return len(lines)


def run(argument: str) -> int:
    """Run a page or an example; how many blocks it has, or lines it printed."""
    name, *options = argument.split()
    return run_example(ROOT / name, options) if name.endswith(".py") else run_page(ROOT / name)


LIBRARIES = {
    "numpy": ["numpy"],
    "wellcal": ["wellcal.hypotests", "scipy.stats"],
    "torch": ["torch", "torch._dynamo"],  # optimisers import the second when they take their first step
    "torchmetrics": ["torchmetrics"],
    "{picture}": ["matplotlib.pyplot"],
    "wc.displays": ["scipy.signal"],
    "wc.report": ["wellcal.reporting"],
}
"""What takes long to import, by the word that tells who needs it.

Nothing here puts a name where code would find it that has not asked for it: `wellcal` has its rooms as
attributes anyway, and PyTorch and SciPy import their own parts when these are asked for.
"""


def main(arguments: list[str]) -> int:
    """Run pages and examples, each in a process that has imported the libraries already; 1 if any fails."""
    os.environ["MPLBACKEND"] = "agg"
    together = "".join((ROOT / argument.split()[0]).read_text(encoding="utf-8") for argument in arguments)
    for library, modules in LIBRARIES.items():
        if library in together:
            for module in modules:
                __import__(module)
    failures = 0
    for argument in arguments:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with tempfile.TemporaryDirectory() as folder:  # for what the blocks write
                    os.chdir(folder)
                    os.symlink(ROOT / "examples", "examples")
                    print(argument, run(argument), flush=True)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        failures += os.waitpid(child, 0)[1] != 0
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
