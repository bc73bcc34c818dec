"""What a user gets by installing the package."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import wellcal
import wellcal.conformance
import wellcal.dask
import wellcal.displays
import wellcal.hypotests
import wellcal.jax
import wellcal.kernels
import wellcal.predictions
import wellcal.recalibration
import wellcal.torch

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
PUBLIC_MODULES = (
    wellcal,
    wellcal.conformance,
    wellcal.dask,
    wellcal.displays,
    wellcal.hypotests,
    wellcal.kernels,
    wellcal.predictions,
    wellcal.reading,
    wellcal.recalibration,
    wellcal.jax,
    wellcal.torch,
)
HEAVY = {"torch", "jax", "pandas", "polars", "pyarrow", "narwhals", "matplotlib", "sklearn", "ot", "dask"}
HEAVY |= {"numba", "typer", "rich"}


def imported_after(statement: str) -> set[str]:
    """Modules present in a fresh interpreter after `statement`."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def every_module() -> list[str]:
    found = pkgutil.walk_packages(wellcal.__path__, prefix="wellcal.")
    return sorted(module.name for module in found)


def test_import_loads_no_framework():
    loaded = imported_after("import wellcal, wellcal.kernels, wellcal.predictions")
    assert "numpy" in loaded, "the probe itself must see what is imported"
    assert not loaded.intersection(HEAVY)


def test_estimating_with_numpy_loads_no_framework():
    loaded = imported_after(
        "import numpy as np, wellcal as wc\n"
        "wc.skce(np.zeros(4), wc.Normal(np.arange(4.0), np.ones(4)))\n"
        "wc.skce(np.zeros(4, int), wc.Categorical(np.full((4, 3), 1 / 3)))"
    )
    assert not loaded.intersection(HEAVY)
    # Half of the second that the first estimate would take, for functions that it does not call.
    assert not loaded.intersection({"scipy.stats", "scipy.optimize"})


def test_version_is_the_same_everywhere():
    assert wellcal.__version__ == PROJECT["version"]
    assert importlib.metadata.version("wellcal") == PROJECT["version"]
    assert f"version: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text()


def test_types_are_shipped():
    assert importlib.resources.files("wellcal").joinpath("py.typed").is_file()


@pytest.mark.parametrize("folder", ["benchmarks", "reproduction"])
def test_experiments_are_in_the_source_distribution_and_not_installed(folder: str):
    targets = SETTINGS["tool"]["hatch"]["build"]["targets"]
    assert (ROOT / folder / "__main__.py").is_file()
    assert folder in targets["sdist"]["include"]
    assert targets["wheel"]["packages"] == ["src/wellcal"]


def test_core_needs_four_packages_only():
    names = {re.split(r"[<>=\[ ]", requirement)[0] for requirement in PROJECT["dependencies"]}
    assert names == {"numpy", "scipy", "array-api-compat", "array-api-extra"}


@pytest.mark.parametrize("module", PUBLIC_MODULES, ids=lambda module: module.__name__)
def test_public_names_exist_once_and_are_documented(module: ModuleType):
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value) or callable(value):
            # A class without its own docstring would show its parent's, or a dataclass its signature.
            own = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
            assert own, f"{module.__name__}.{name} has no docstring"
            assert not own.startswith(f"{name}("), f"{module.__name__}.{name} has a generated docstring"


@pytest.mark.parametrize("module", PUBLIC_MODULES, ids=lambda module: module.__name__)
def test_public_methods_are_documented(module: ModuleType):
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value):
            for attribute, member in vars(value).items():
                if not attribute.startswith("_") and inspect.isfunction(member):
                    assert inspect.getdoc(getattr(value, attribute)), f"{name}.{attribute} has no docstring"


def test_every_module_imports_and_says_what_it_is_for():
    names = every_module()
    assert "wellcal.predictions.scalar" in names
    for name in names:
        assert importlib.import_module(name).__doc__, f"{name} has no docstring"
