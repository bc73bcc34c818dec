"""Columns that are put into a table: as if they were set one after the other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from wellcal.reading.writing import with_columns


def test_many_columns_at_once_are_those_set_one_by_one() -> None:
    fields = [pa.field("y", pa.int64(), metadata={"unit": "m"}), pa.field("s", pa.float32(), nullable=False)]
    table = pa.table([[1, 2], [0.5, 0.25]], schema=pa.schema(fields, metadata={"made": "here"}))
    table = pa.concat_tables([table, table])  # in chunks
    rng = np.random.default_rng(0)
    new = {"s": rng.normal(size=4), "t": np.arange(8.0)[::2], "u": np.array(["a", "b", "c", "d"])}
    expected = table
    for name, values in new.items():
        array = pa.array(np.ascontiguousarray(values))
        if name in expected.column_names:
            expected = expected.set_column(expected.column_names.index(name), name, array)
        else:
            expected = expected.append_column(name, array)
    found = with_columns(table, new)
    assert found.equals(expected)
    assert found.schema.equals(expected.schema, check_metadata=True)
    lists = with_columns(table, {"l": np.arange(8.0).reshape(4, 2)})
    assert lists["l"].to_pylist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    assert with_columns(table, {}).equals(table)
