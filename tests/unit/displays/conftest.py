"""Figures are closed after each test, and none is run for their titles unless that is what is looked at."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import pytest
from matplotlib import pyplot

from wellcal.displays import base

mpl.use("agg")


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.fixture(autouse=True)
def _untitled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without verdicts, but for tests that ask for them by ``@pytest.mark.usefixtures("titled")``."""
    if "titled" not in request.fixturenames:
        monkeypatch.setattr(base, "TESTED", 0)


@pytest.fixture
def titled() -> None:
    """With verdicts, as users see them."""
