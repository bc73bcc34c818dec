from __future__ import annotations

from collections.abc import Iterator

import dask
import pytest


@pytest.fixture(autouse=True)
def _one_after_the_other() -> Iterator[None]:
    """Tasks run in this process unless a test says otherwise: quick, and errors are seen where they are."""
    with dask.config.set(scheduler="synchronous"):
        yield
