"""Maximum mean discrepancy between predictions, ``d^2 = <P - Q, P - Q>_k``, from pairings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from wellcal._arrays.memo import Memo
from wellcal._arrays.namespaces import Array
from wellcal._arrays.ops import Ops
from wellcal._arrays.rows import Rows
from wellcal.expectations.atoms import LOWERINGS
from wellcal.expectations.bilinear import Cost, FiniteForm, Form, matching
from wellcal.expectations.expansion import Notes, plan
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel
from wellcal.predictions import Predictions

_ROUNDING = 1e-14
"""Differences below this share of what is subtracted, squared norms or weights, are rounding errors."""


class NormedRows(NamedTuple):
    """Rows of predictions with their squared norms <P, P>."""

    norm: Array
    inner: Rows


@dataclass(frozen=True)
class MeanDiscrepancy:
    """Squared MMD by expanding the square; zero for distances below 1e-7 of the norms.

    Attributes
    ----------
    form
        The pairing.
    """

    form: Form
    degree: float = 2.0

    @property
    def cost(self) -> Cost:
        """Those of the pairing, and an evaluation for the squared norms."""
        inner = self.form.cost
        return Cost(inner.evaluations + 1.0, inner.entries, inner.calls_user)

    def __call__(self, ops: Ops, a: NormedRows, b: NormedRows) -> Array:
        """Return the squared distances of all pairs of rows."""
        norms = a.norm[..., :, None] + b.norm[..., None, :]
        return _squared(ops, norms, self.form(ops, a.inner, b.inner))


def _squared(ops: Ops, norms: Array, pairing: Array) -> Array:
    squared = norms - 2.0 * pairing
    return ops.where(squared > _ROUNDING * norms, squared, 0.0 * squared)


def _about_the_mean(ops: Ops, weights: Array) -> Array:
    """Return deviations from the mean, without those that are rounding errors."""
    if weights.shape[-1] == 0:  # far apart, so that no feature reaches any of them
        return weights
    deviations = weights - ops.xp.mean(weights, axis=0)
    return ops.where(abs(deviations) > _ROUNDING * ops.xp.max(abs(weights)), deviations, 0.0 * deviations)


_Prepared = tuple[MeanDiscrepancy, NormedRows]
_memo: Memo[tuple[_Prepared, Notes]] = Memo()


def mean_discrepancy(
    kernel: Kernel, predictions: Predictions, expectations: str | Lowering, notes: Notes
) -> _Prepared:
    """Prepare the squared MMD for a batch: the distance, and the rows it reads.

    A batch in NumPy keeps them: the default length scale, a measure and the blocks of a test ask for them.
    """

    def prepare() -> tuple[_Prepared, Notes]:
        own = Notes()
        scheme = plan(kernel, [predictions], expectations=expectations, notes=own)
        rows = scheme.rows([(1.0, predictions)])
        form = scheme.form(rows, rows)
        if isinstance(form, FiniteForm):  # about their mean no digits of near predictions cancel
            rows = form.rows(_about_the_mean(predictions.ops, rows.weights))
        norms = matching(form, predictions.ops, rows, rows)
        return (MeanDiscrepancy(form), NormedRows(norms, rows)), own

    if predictions.ops.differentiable:
        prepared, own = prepare()
    else:
        key = (kernel, expectations, LOWERINGS.find(type(predictions)))
        prepared, own = _memo.get(predictions, key, prepare)
    notes.add(own)
    return prepared
