"""The reference lists what is public, all of it has examples, and the pages name what exists."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import runpy
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = (
    "",
    "kernels",
    "hypotests",
    "engines",
    "displays",
    "conformance",
    "recalibration",
    "reading",
    "extend",
    "torch",
    "jax",
    "dask",
)


def listed() -> Iterator[str]:
    """Names in the tables of the reference."""
    for page in sorted((ROOT / "docs" / "api").glob("*.md")):
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if found := re.match(r"\.\. (?:currentmodule|automodule):: (\S+)", line):
                module = found[1]
            elif found := re.fullmatch(r"   (\w+)", line):
                yield f"{module}.{found[1]}"


def resolve(name: str) -> Any:
    module, _, leaf = name.rpartition(".")
    return getattr(importlib.import_module(module), leaf)


def test_what_is_listed_exists_and_is_listed_once() -> None:
    names = list(listed())
    assert len(names) > 100, "the scan must find the tables"
    assert len(set(names)) == len(names)
    for name in names:
        resolve(name)


@pytest.mark.parametrize("room", ROOMS)
def test_public_functions_and_classes_are_listed(room: str) -> None:
    """Under one of the paths that lead to them."""
    known = {id(resolve(name)) for name in listed()}
    module = importlib.import_module(f"wellcal.{room}".rstrip("."))
    public = {name: getattr(module, name) for name in module.__all__}
    missing = [
        name
        for name, value in public.items()
        if (inspect.isclass(value) or inspect.isfunction(value)) and id(value) not in known
    ]
    assert not missing


def test_files_that_pages_name_exist() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "research").glob("*.md"), *ROOT.glob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    named = set(re.findall(r"`((?:examples|benchmarks|docs|src|tests|reproduction)/[\w/.]+\.\w+)`", text))
    assert "examples/training_with_skce.py" in named, "the scan must find a file"
    assert not [path for path in sorted(named) if not (ROOT / path).exists()]


def test_links_of_pages_outside_the_site_lead_somewhere() -> None:
    """Sphinx checks those of the site when it is built."""
    broken: list[str] = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "examples").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")]:
        for address in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            target = address.partition("#")[0]
            if target and "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.name}: {address}")
    assert not broken


def test_what_the_reference_leaves_out_exists() -> None:
    """A name that is left out of it and nowhere to be found hides something else one day."""
    import wellcal as wc

    left_out = runpy.run_path(str(ROOT / "docs" / "_ext" / "reference.py"))
    assert not [name for name in left_out["OF_FAMILIES"] if not hasattr(wc.Predictions, name)]
    results = (wc.Estimate, wc.TestResult, wc.Report)
    assert not [name for name in left_out["OF_RESULTS"] if not any(hasattr(kind, name) for kind in results)]


def undescribed(value: Any) -> list[str]:
    """Parameters that neither the docstring nor those of base classes name, but for their examples."""
    described = inspect.getmro(value) if inspect.isclass(value) else [value]
    text = "\n".join((inspect.getdoc(part) or "").partition("\nExamples\n---")[0] for part in described)
    given = inspect.signature(value).parameters
    return [name for name in given if not name.startswith("_") and not re.search(rf"\b{name}\b", text)]


def test_every_parameter_is_described() -> None:
    """An error has those of Python's own."""
    values = [
        value
        for value in map(resolve, listed())
        if not (inspect.isclass(value) and issubclass(value, Exception))
    ]
    assert len(values) > 130
    assert not {value.__qualname__: left for value in values if (left := undescribed(value))}


def test_a_parameter_that_is_not_described_is_found() -> None:
    def one(described: int, forgotten: int) -> None:
        """Takes `described`.

        Examples
        --------
        >>> one(1, forgotten=2)
        """

    assert undescribed(one) == ["forgotten"]


# -- examples -----------------------------------------------------------------------------------------


def public_objects() -> dict[int, Any]:
    """Functions and classes with a public name."""
    modules = [importlib.import_module(f"wellcal.{room}".rstrip(".")) for room in ROOMS]
    values = [getattr(module, name) for module in modules for name in module.__all__]
    return {id(value): value for value in values if inspect.isclass(value) or inspect.isfunction(value)}


@cache
def examples_of(module: str) -> dict[str, int]:
    """How many lines of examples pytest finds in a module, by the name of what they belong to."""
    found = doctest.DocTestFinder().find(sys.modules[module])
    return {test.name: len(test.examples) for test in found}


def test_every_public_function_and_class_has_an_example_that_is_run() -> None:
    """In its own docstring: without exception."""
    everything = public_objects()
    assert len(everything) > 130
    names = {f"{value.__module__}.{value.__qualname__}": value for value in everything.values()}
    lacking = [name for name, value in names.items() if not examples_of(value.__module__).get(name)]
    assert not lacking
