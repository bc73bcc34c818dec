"""Packages that numbers are held against."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest


@pytest.fixture
def scoringrules(monkeypatch: pytest.MonkeyPatch) -> Any:
    """It compiles all that it has where numba is there when it is imported, which takes seconds."""
    monkeypatch.setitem(sys.modules, "numba", None)
    return importlib.import_module("scoringrules")
