"""The MMD between predictions, ``d^2 = <P - Q, P - Q>_k``, from pairings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from wellcal._arrays.namespaces import Array
from wellcal._arrays.ops import Ops
from wellcal._arrays.rows import Rows
from wellcal.expectations.bilinear import Form
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.plans import Notes, plan
from wellcal.kernels.base import Kernel
from wellcal.predictions import Predictions


class NormedRows(NamedTuple):
    """Rows of predictions with their squared norms <P, P>."""

    norm: Array
    inner: Rows


def mean_discrepancy(
    kernel: Kernel, predictions: Predictions, expectations: str | Lowering, notes: Notes
) -> tuple[MeanDiscrepancy, NormedRows]:
    """Prepare the squared MMD for a batch: the distance, and the rows it reads."""
    scheme = plan(kernel, [predictions], expectations=expectations, notes=notes)
    rows = scheme.rows([(1.0, predictions)])
    form = scheme.form(rows, rows)
    return MeanDiscrepancy(form), NormedRows(form.paired(predictions.ops, rows, rows), rows)


@dataclass(frozen=True)
class MeanDiscrepancy:
    """Squared MMD by expanding the square."""

    form: Form
    degree: float = 2.0

    @property
    def width(self) -> int:
        """That of the pairing."""
        return self.form.width

    @property
    def calls_user(self) -> bool:
        """Whether the pairing does."""
        return self.form.calls_user

    def tile(self, ops: Ops, a: NormedRows, b: NormedRows) -> Array:
        """All pairs of rows."""
        squared = a.norm[:, None] + b.norm[None, :] - 2.0 * self.form.tile(ops, a.inner, b.inner)
        return ops.maximum(squared, 0.0 * squared)

    def paired(self, ops: Ops, a: NormedRows, b: NormedRows) -> Array:
        """Matching rows."""
        squared = a.norm + b.norm - 2.0 * self.form.paired(ops, a.inner, b.inner)
        return ops.maximum(squared, 0.0 * squared)
