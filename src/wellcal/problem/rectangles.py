"""All pairs of two batches: values of a form between cases and locations."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from wellcal._arrays.chunks import told_chunks
from wellcal._arrays.namespaces import Array, concat_rows
from wellcal._arrays.ops import Ops
from wellcal._arrays.rows import Rows, first_array, slice_rows
from wellcal.expectations.bilinear import Form


class VisitsRectangles(Protocol):
    """An engine, as far as pairs of cases and locations are concerned."""

    def rectangle(self, form: Form, ops: Ops, a: Rows, b: Rows) -> Array:
        """Values of a form between all rows of two batches, ``(len(a), len(b))``."""
        ...


class InChunks:
    """Rows of the first batch a chunk at a time, against all of the second: used without an engine."""

    def rectangle(self, form: Form, ops: Ops, a: Rows, b: Rows) -> Array:
        """Values of a form between all rows of two batches, ``(len(a), len(b))``."""
        n, m = (first_array(rows).shape[0] for rows in (a, b))
        with np.errstate(over="ignore", under="ignore"):  # of an exponent: its exponential is zero
            chunks = told_chunks(n, m * form.cost.entries, what="predictions")
            return concat_rows([form(ops, slice_rows(a, cases), b) for cases in chunks])
