from __future__ import annotations

from collections.abc import Iterator

import dask
import pytest

BLOCK = 2048
"""Cases of a block of random numbers here, an eighth of what they are."""


@pytest.fixture(autouse=True)
def _one_after_the_other() -> Iterator[None]:
    """Tasks run in this process unless a test says otherwise: quick, and errors are seen where they are."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def few_cases_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many blocks, and the same choices, for an eighth of the cases."""
    monkeypatch.setattr("wellcal.problem.target_resampling.BLOCK", BLOCK)
    monkeypatch.setattr("wellcal.hypotests.automatic.PAIRS_BUDGET", 1e8 / 64)
    monkeypatch.setattr("wellcal.hypotests.setup.LINEAR_ESTIMATE_BUDGET", 1e8 / 64)
