"""Frames of many columns: what is asked of each column does not look at all of them."""

from __future__ import annotations

import narwhals
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from wellcal.columns.frames import Table
from wellcal.reading import drop_missing


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_are_counted_once(make: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of all columns are asked for a few times, however many columns are looked at."""
    table = Table(make({f"p_{k}": [0.5, 0.25] for k in range(200)}))
    asked: list[int] = []
    columns = narwhals.DataFrame.columns
    monkeypatch.setattr(
        narwhals.DataFrame, "columns", property(lambda frame: asked.append(1) or columns.__get__(frame))
    )
    assert all(table.is_numeric(name) for name in table.names)
    assert not any(table.missing(name).any() for name in table.names)
    assert len(asked) < 10
    assert drop_missing(table.native).total == 2
