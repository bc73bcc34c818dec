"""No test is run for the titles of figures, unless that is what is looked at."""

from __future__ import annotations

import matplotlib as mpl
import pytest

from wellcal.displays import base

mpl.use("agg")


@pytest.fixture(autouse=True)
def _untitled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without verdicts, but for tests that ask for them by ``@pytest.mark.usefixtures("titled")``."""
    if "titled" not in request.fixturenames:
        monkeypatch.setattr(base, "TESTED", 0)


@pytest.fixture
def titled() -> None:
    """With verdicts, as users see them."""
