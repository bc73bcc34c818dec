"""The house: how far a call goes, what is shown at the door, and who looks behind it.

Numbers and lists here are what is true now. They may become smaller, never larger.
"""

from __future__ import annotations

import ast
import importlib
import io
import pkgutil
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein

ROOT = Path(__file__).parents[2]

FILES_OF_A_CALL, FILES_WITH_A_DEFAULT_KERNEL = 15, 24
"""Files that a small call of `skce` passes through, with a given kernel and without."""

CODE_LINES = {
    "_arrays": 2116,
    "columns": 515,
    "predictions": 3977,
    "kernels": 1109,
    "expectations": 3996,
    "problem": 1473,
    "engines": 1951,
    "conformance": 734,
    "recalibration": 632,
    "torch": 274,
}
"""Lines of code by room, without blank lines, comments and docstrings."""

NUMBERS = 319
"""Numbers written into `expectations`, `problem` and `engines`, other than 0 to 4, 0.5, 10 and 100."""

PRIVATE_NAMES = Path(__file__).with_name("private_names.txt")
"""Private names of rooms that tests still use, a file and a name in each line; wanted are none."""


# -- a call -------------------------------------------------------------------------------------------


def files_passed(call: Any) -> set[str]:
    """Files of the package in which any function runs."""
    package = str(Path(wc.__file__).parent)
    found: set[str] = set()

    def on_event(frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code.co_filename.startswith(package):
            found.add(frame.f_code.co_filename[len(package) + 1 :])

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


def test_a_small_call_passes_few_files() -> None:
    """16 normals, a given kernel and a batch that is already built."""
    pred, y = wc.Normal(np.linspace(-1.0, 1.0, 16), np.ones(16)), np.zeros(16)
    kernel = ExpDistance(Wasserstein()) @ Gaussian()
    wc.skce(y, pred, kernel=kernel)  # what is imported or remembered on the first call
    passed = files_passed(lambda: wc.skce(y, pred, kernel=kernel))
    assert "measures/_skce.py" in passed, "the probe itself must see the call"
    assert len(passed) <= FILES_OF_A_CALL, sorted(passed)


def test_a_small_call_with_a_default_kernel_passes_few_files() -> None:
    pred, y = wc.Normal(np.linspace(-1.0, 1.0, 16), np.ones(16)), np.zeros(16)
    wc.skce(y, pred)
    passed = files_passed(lambda: wc.skce(y, pred))
    assert "problem/defaults.py" in passed
    assert len(passed) <= FILES_WITH_A_DEFAULT_KERNEL, sorted(passed)


# -- sizes ---------------------------------------------------------------------------------------------


def code_lines(path: Path) -> int:
    """Lines with code: neither blank, nor comments, nor docstrings."""
    text = path.read_text(encoding="utf-8")
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and ast.get_docstring(node) is not None
        ):
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT and not (token.type == tokenize.STRING and token.start[0] in docstrings):
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines)


LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def steering_numbers(path: Path) -> int:
    """Numbers in a file other than the plainest ones."""
    return sum(
        isinstance(node, ast.Constant)
        and type(node.value) in (int, float)
        and node.value not in (0, 1, 2, 3, 4, 0.5, 10, 100)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


@pytest.mark.parametrize("room", CODE_LINES)
def test_rooms_do_not_grow(room: str) -> None:
    files = list((ROOT / "src" / "wellcal" / room).rglob("*.py"))
    assert files
    assert sum(map(code_lines, files)) <= CODE_LINES[room]


def test_numbers_that_steer_do_not_grow() -> None:
    rooms = ("expectations", "problem", "engines")
    files = [path for room in rooms for path in (ROOT / "src" / "wellcal" / room).rglob("*.py")]
    assert sum(map(steering_numbers, files)) <= NUMBERS


# -- what is shown ------------------------------------------------------------------------------------


def modules() -> Iterator[tuple[str, ModuleType]]:
    for module in pkgutil.walk_packages(wc.__path__, prefix="wellcal."):
        yield module.name, importlib.import_module(module.name)


def test_the_door_shows_public_names() -> None:
    shown = {name for name in dir(wc) if not (name.startswith("__") and name.endswith("__"))}
    assert set(wc.__all__) - {"__version__"} <= shown
    public_rooms = {"kernels", "engines", "hypotests", "displays", "conformance", "recalibration"}
    public_rooms |= {"torch", "jax", "dask"}
    assert not shown - set(wc.__all__) - public_rooms


def test_no_public_module_is_shadowed() -> None:
    shadowed: set[str] = set()
    for name, _ in modules():
        parent, _, leaf = name.rpartition(".")
        if not leaf.startswith("_") and not isinstance(getattr(sys.modules[parent], leaf), ModuleType):
            shadowed.add(name)
    assert not shadowed


def test_modules_with_a_function_of_their_name_are_private() -> None:
    found = {
        name
        for name, module in modules()
        if not (leaf := name.rpartition(".")[2]).startswith("_") and callable(getattr(module, leaf, None))
    }
    assert not found


def test_fifteen_layers() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    assert len(contract["layers"]) <= 15
    rooms = {room for layer in contract["layers"] for room in layer.replace("|", ":").split(":")}
    assert all(":" not in room and "." not in room.strip() for room in rooms), "modules are not layers"


# -- who looks behind it ------------------------------------------------------------------------------


def is_private(name: str) -> bool:
    """Whether any part of a dotted name begins with an underscore; `_arrays` is a room like others."""
    parts = name.removeprefix("wellcal._arrays").split(".")
    return any(part.startswith("_") and not part.startswith("__") for part in parts)


def imported_names(nodes: list[ast.AST]) -> dict[str, str]:
    """What stands for something of the package in a file, and what it stands for."""
    known: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "wellcal":
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            ours = [alias for alias in node.names if alias.name.split(".")[0] == "wellcal"]
            known |= {alias.asname or alias.name: alias.name for alias in ours}
    return known


def private_names(tree: ast.AST) -> Iterator[str]:
    """Private names of rooms in a file: imported, reached through what is imported, or replaced by name."""
    nodes = list(ast.walk(tree))
    known = imported_names(nodes)
    yield from filter(is_private, known.values())
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr != "_arrays":
            first, _, rest = ast.unparse(node.value).partition(".")
            if first in known:
                yield ".".join(filter(None, (known[first], rest, node.attr)))
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("setattr", "delattr"):
            texts = [str(part.value) for part in node.args[:2] if isinstance(part, ast.Constant)]
            for text in filter(is_private, texts):
                yield text if "." in text else f"{ast.unparse(node.args[0])}.{text}"


def test_the_scan_sees_what_it_should() -> None:
    code = """
import wellcal as wc
from wellcal import measures
from wellcal._arrays.namespaces import to_numpy
from wellcal.engines import tiled
from wellcal.engines.tiled import Tiled, _better_listed
from wellcal.measures._ucme import ucme
monkeypatch.setattr(tiled, "_SIZE", 3)
monkeypatch.setattr("wellcal.engines.tiled._OTHER", 3)
tiled._elements(Tiled()._run(wc.Normal(0, 1)))
wc.problem._prepare
"""
    assert set(private_names(ast.parse(code))) == {
        "wellcal.engines.tiled._better_listed",
        "wellcal.measures._ucme.ucme",
        "tiled._SIZE",
        "wellcal.engines.tiled._OTHER",
        "wellcal.engines.tiled._elements",
        "wellcal.problem._prepare",
    }


def found_private_names() -> set[str]:
    found: set[str] = set()
    for path in sorted((ROOT / "tests").rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        found |= {f"{where} {name}" for name in private_names(ast.parse(path.read_text()))}
    return found


def test_tests_use_names_of_rooms() -> None:
    """A test that needs a private name keeps its room from being rebuilt."""
    allowed = set(PRIVATE_NAMES.read_text().splitlines())
    assert not found_private_names() - allowed, "use a public name, or a name of the room"
