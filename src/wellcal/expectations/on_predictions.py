"""Kernels on predictions, as forms that engines can tile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wellcal import kernels
from wellcal._arrays.compiled import l1_distances
from wellcal._arrays.namespaces import Array, NDArray, asarray, device_of, is_numpy, namespace
from wellcal._arrays.ops import Ops
from wellcal._arrays.powers import quick_exponential
from wellcal._arrays.rows import Rows, slice_rows
from wellcal.expectations.bilinear import Distance, FiniteForm, Form, Prepared, cost_of, in_batches, room_of
from wellcal.expectations.distances import EmbeddingDistance, distance, without_repetition
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.mmd import MeanDiscrepancy, NormedRows
from wellcal.expectations.plans import Notes
from wellcal.kernels.algebra import Product, Scaled, Sum
from wellcal.kernels.base import Kernel, Radial, Scale
from wellcal.kernels.metrics import Euclidean, ExpDistance
from wellcal.kernels.targets import check_returned
from wellcal.predictions import Predictions

_FRESH = (EmbeddingDistance, MeanDiscrepancy)  # distances whose tiles nobody else has


@dataclass(frozen=True)
class _FunctionOfDistance:
    """A function of a prepared distance, whose values are ``d ** degree``."""

    inner: Distance

    @property
    def width(self) -> int:
        """That of the distance."""
        return self.inner.width

    @property
    def cost(self) -> float:
        """That of the distance, and of an exponential."""
        return 2.0 + cost_of(self.inner)

    @property
    def room(self) -> int:
        """That of the distance."""
        return room_of(self.inner)

    @property
    def calls_user(self) -> bool:
        """Whether the distance does."""
        return self.inner.calls_user

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """All pairs of rows."""
        return self.value(ops, self.inner.tile(ops, a, b))

    @property
    def in_batches(self) -> bool:
        """Whether the distance comes in batches."""
        return in_batches(self.inner)

    def batched(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """All pairs of rows within each batch."""
        distance: Any = self.inner
        return self.value(ops, distance.batched(ops, a, b))

    def paired(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """Matching rows."""
        return self.value(ops, self.inner.paired(ops, a, b))

    def value(self, ops: Ops, raised: Array) -> Array:
        """The function."""
        raise NotImplementedError


@dataclass(frozen=True)
class ExpDistanceForm(_FunctionOfDistance):
    """``exp(-(d / lengthscale) ** power)``."""

    lengthscale: Scale
    power: float

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """All pairs of rows."""
        if is_numpy(ops.xp) and self._has_products():
            return self._by_products(a, b)
        if is_numpy(ops.xp) and self._has_loop():
            exp = quick_exponential(a.dtype)
            return exp.in_place(l1_distances(a, b, exp.scale * self._rate))
        return super().tile(ops, a, b)

    @property
    def _rate(self) -> Any:
        return -(self.lengthscale**-self.power)

    def _has_loop(self) -> bool:
        """Whether exponents are distances that a compiled loop can scale as it goes."""
        inner = self.inner
        compiled = isinstance(inner, EmbeddingDistance) and inner.compiled
        return compiled and self.power == inner.degree and isinstance(self.lengthscale, float)

    def _has_products(self) -> bool:
        """Whether exponents are products of coordinates, once squared norms are among these."""
        inner = self.inner
        if not isinstance(inner, MeanDiscrepancy) or self.power != inner.degree:
            return False
        finite = isinstance(inner.form, FiniteForm) and inner.form.gram is None
        return finite and isinstance(self.lengthscale, float)

    def _by_products(self, a: NormedRows, b: NormedRows) -> NDArray:
        """The kernel in two passes: ``2 <x, y> - |x|^2 - |y|^2`` is one product of matrices."""
        left, right = (np.asarray(rows.inner.weights) for rows in (a, b))
        exp = quick_exponential(left.dtype)
        rate = exp.scale * float(self.lengthscale) ** -self.power  # pyright: ignore[reportArgumentType]
        size = left.shape[1]
        wide, other = (np.ones((len(x), size + 2), dtype=x.dtype) for x in (left, right))
        np.multiply(left, 2.0 * rate, out=wide[:, :size])
        np.multiply(a.norm, -rate, out=wide[:, size])
        other[:, :size] = right
        np.multiply(b.norm, -rate, out=other[:, size + 1])
        return exp.in_place(wide @ other.T)

    def value(self, ops: Ops, raised: Array) -> Array:
        """The kernel at a distance."""
        rate = self._rate
        exponent = self.power / self.inner.degree
        if isinstance(self.inner, _FRESH) and is_numpy(ops.xp) and raised.ndim > 1:
            own: NDArray = raised
            if exponent == 0.5:
                np.sqrt(own, out=own)
            elif exponent != 1.0:
                np.power(own, exponent, out=own)
            if own.dtype == np.float32:
                exp = quick_exponential(own.dtype)
                own *= exp.scale * rate
                return exp.in_place(own)
            own *= rate
            return np.exp(own, out=own)
        return ops.exp((raised if exponent == 1.0 else ops.power(raised, exponent)) * rate)


@dataclass(frozen=True)
class RadialForm(_FunctionOfDistance):
    """A radial kernel of the Euclidean distance between parameters."""

    kernel: Radial

    def value(self, ops: Ops, raised: Array) -> Array:
        """The kernel at a squared distance."""
        return self.kernel.radial(ops, raised)


@dataclass(frozen=True)
class CombinedForm:
    """Sum or product of forms, each reading a part of the rows."""

    parts: tuple[Form, ...]
    product: bool
    factor: Scale = 1.0

    @property
    def width(self) -> int:
        """All parts together."""
        return sum(part.width for part in self.parts)

    @property
    def cost(self) -> float:
        """All parts together."""
        return sum(cost_of(part) for part in self.parts)

    @property
    def room(self) -> int:
        """All parts together."""
        return sum(room_of(part) for part in self.parts)

    @property
    def calls_user(self) -> bool:
        """Whether a part does."""
        return any(part.calls_user for part in self.parts)

    def tile(self, ops: Ops, a: tuple[Rows, ...], b: tuple[Rows, ...]) -> Array:
        """All pairs of rows."""
        return self._combine([p.tile(ops, x, y) for p, x, y in zip(self.parts, a, b, strict=True)])

    def paired(self, ops: Ops, a: tuple[Rows, ...], b: tuple[Rows, ...]) -> Array:
        """Matching rows."""
        return self._combine([p.paired(ops, x, y) for p, x, y in zip(self.parts, a, b, strict=True)])

    def _combine(self, values: list[Array]) -> Array:
        total = values[0]
        for value in values[1:]:
            total = total * value if self.product else total + value
        return self.factor * total


@dataclass(frozen=True)
class CallableForm:
    """A user's function of two batches of predictions; rows are their positions."""

    function: Callable[[Predictions, Predictions], Array]
    predictions: Predictions
    width: int = 16
    calls_user = True

    def tile(self, ops: Ops, a: Array, b: Array) -> Array:
        """All pairs of rows."""
        return self.function(self.predictions[a], self.predictions[b])

    def paired(self, ops: Ops, a: Array, b: Array) -> Array:
        """Matching rows."""
        single = (slice(k, k + 1) for k in range(a.shape[0]))
        values = [self.tile(ops, slice_rows(a, k), slice_rows(b, k)) for k in single]
        return ops.xp.concat(values, axis=0)[:, 0]


def in_few_columns(form: Form, rows: Rows) -> Prepared:
    """The same kernel of cases that are all there: what all of them share need not be looked at."""
    if not isinstance(form, _FunctionOfDistance):
        return Prepared(form, rows)
    inner, fewer = without_repetition(form.inner, rows)
    return Prepared(form if inner is form.inner else replace(form, inner=inner), fewer)


def prediction_kernel(
    kernel: Kernel,
    predictions: Predictions,
    *,
    expectations: str | Lowering = "auto",
    notes: Notes | None = None,
) -> Prepared:
    """Prepare a kernel on predictions for a batch: the form, and the rows it reads."""
    if isinstance(kernel, ExpDistance):
        inner, rows = distance(kernel.metric, predictions, expectations=expectations, notes=notes)
        return Prepared(ExpDistanceForm(inner, kernel.lengthscale, kernel.power), rows)
    if isinstance(kernel, Radial):
        inner, rows = distance(Euclidean(), predictions)
        return Prepared(RadialForm(inner, kernel), rows)
    if isinstance(kernel, (Sum, Product, Scaled)):
        parts = (kernel.kernel,) if isinstance(kernel, Scaled) else kernel.kernels
        prepared = [prediction_kernel(k, predictions, expectations=expectations, notes=notes) for k in parts]
        factor = kernel.factor if isinstance(kernel, Scaled) else 1.0
        form = CombinedForm(tuple(part.form for part in prepared), isinstance(kernel, Product), factor)
        return Prepared(form, tuple(part.rows for part in prepared))
    if isinstance(kernel, kernels.Callable):
        like = predictions.like
        positions = asarray(np.arange(len(predictions)), xp=namespace(like), device=device_of(like))

        def checked(left: Predictions, right: Predictions) -> Array:
            return check_returned(kernel, kernel.function(left, right), (len(left), len(right)))

        return Prepared(CallableForm(checked, predictions), positions)
    raise TypeError(f"{kernel!r} is not a kernel on predictions; take ExpDistance(metric)")
