"""Every library that the tests cover is there: a missing one must fail, not skip."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "array_api_strict",
        "dask",
        "distributed",
        "jax",
        "matplotlib",
        "mpmath",
        "numpy",
        "ot",
        "scipy",
        "scoringrules",
        "sklearn",
        "threadpoolctl",
        "torch",
        "torchmetrics",
        "typer",
    ],
)
def test_library_is_installed(name: str, monkeypatch: pytest.MonkeyPatch):
    if name == "scoringrules":  # which compiles all that it has where numba is there, for seconds
        monkeypatch.setitem(sys.modules, "numba", None)
    assert importlib.import_module(name).__version__
