"""Kernels on predictions, as forms that engines can tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import array_api_compat as compat
import numpy as np

from wellcal._arrays.namespaces import Array, asarray, namespace
from wellcal._arrays.ops import Ops
from wellcal.expectations._pairing import Lowering, Notes
from wellcal.expectations.decompose import Rows, rows_under, slice_rows
from wellcal.expectations.distances import Distance, distance
from wellcal.kernels.base import Kernel, Product, Radial, Scaled, Sum
from wellcal.kernels.metrics import Euclidean, ExpDistance
from wellcal.kernels.targets import Callable
from wellcal.predictions import Predictions


@dataclass(frozen=True)
class ExpDistanceForm:
    """``exp(-(d / lengthscale) ** power)`` of a prepared distance."""

    inner: Distance
    lengthscale: Any
    power: float

    @property
    def width(self) -> int:
        """That of the distance."""
        return self.inner.width

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array:
        return self._value(ops, self.inner.tile(ops, a, b))

    def paired(self, ops: Ops, a: Rows, b: Rows) -> Array:
        return self._value(ops, self.inner.paired(ops, a, b))

    def _value(self, ops: Ops, raised: Array) -> Array:
        degree = self.inner.degree
        return ops.exp(ops.power(raised, self.power / degree) * -(self.lengthscale**-self.power))


@dataclass(frozen=True)
class RadialForm:
    """A radial kernel of the Euclidean distance between parameters."""

    kernel: Radial
    inner: Distance

    @property
    def width(self) -> int:
        """That of the distance."""
        return self.inner.width

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array:
        return self.kernel.radial(ops, self.inner.tile(ops, a, b))

    def paired(self, ops: Ops, a: Rows, b: Rows) -> Array:
        return self.kernel.radial(ops, self.inner.paired(ops, a, b))


@dataclass(frozen=True)
class CombinedForm:
    """Sum or product of forms, each reading the rows under its own prefix."""

    parts: tuple[Any, ...]
    product: bool
    factor: Any = 1.0

    @property
    def width(self) -> int:
        """All parts together."""
        return sum(part.width for part in self.parts)

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array:
        return self._combine(
            [p.tile(ops, rows_under(a, f"{i}/"), rows_under(b, f"{i}/")) for i, p in enumerate(self.parts)]
        )

    def paired(self, ops: Ops, a: Rows, b: Rows) -> Array:
        return self._combine(
            [p.paired(ops, rows_under(a, f"{i}/"), rows_under(b, f"{i}/")) for i, p in enumerate(self.parts)]
        )

    def _combine(self, values: list[Array]) -> Array:
        total = values[0]
        for value in values[1:]:
            total = total * value if self.product else total + value
        return self.factor * total


@dataclass(frozen=True)
class CallableForm:
    """A user's function of two batches of predictions."""

    function: Any
    predictions: Predictions
    width: int = 16

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array:
        return self.function(self.predictions[a["i"]], self.predictions[b["i"]])

    def paired(self, ops: Ops, a: Rows, b: Rows) -> Array:
        values = [
            self.tile(ops, slice_rows(a, slice(k, k + 1)), slice_rows(b, slice(k, k + 1)))
            for k in range(a["i"].shape[0])
        ]
        return ops.xp.concat(values, axis=0)[:, 0]


def prediction_kernel(
    kernel: Kernel,
    predictions: Predictions,
    *,
    expectations: str | Lowering = "auto",
    notes: Notes | None = None,
) -> tuple[Any, Rows]:
    """Prepare a kernel on predictions for a batch: the form, and the rows it reads."""
    if isinstance(kernel, ExpDistance):
        inner, rows = distance(kernel.metric, predictions, expectations=expectations, notes=notes)
        return ExpDistanceForm(inner, kernel.lengthscale, kernel.power), rows
    if isinstance(kernel, Radial):
        inner, rows = distance(Euclidean(), predictions)
        return RadialForm(kernel, inner), rows
    if isinstance(kernel, (Sum, Product, Scaled)):
        parts = (kernel.kernel,) if isinstance(kernel, Scaled) else kernel.kernels
        prepared = [prediction_kernel(k, predictions, expectations=expectations, notes=notes) for k in parts]
        rows = {f"{i}/{name}": value for i, (_, part) in enumerate(prepared) for name, value in part.items()}
        factor = kernel.factor if isinstance(kernel, Scaled) else 1.0
        return CombinedForm(tuple(form for form, _ in prepared), isinstance(kernel, Product), factor), rows
    if isinstance(kernel, Callable):
        index = np.arange(len(predictions))
        like = predictions.like
        rows = {"i": asarray(index, xp=namespace(like), device=compat.device(like))}
        return CallableForm(kernel.function, predictions), rows
    raise TypeError(f"{kernel!r} is not a kernel on predictions; take ExpDistance(metric)")
