"""What all simulations share."""

from __future__ import annotations

import pytest

from wellcal.hypotests.resampling import more_resamples


@pytest.fixture(autouse=True)
def no_more_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is rejected at alpha needs no more resamples than were asked for."""
    monkeypatch.setattr(more_resamples, "MOST_DRAWS", 0)
