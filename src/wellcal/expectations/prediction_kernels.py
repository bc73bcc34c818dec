"""Kernels on predictions, as forms that engines can tile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from wellcal import kernels
from wellcal._arrays.namespaces import Array, NDArray, asarray, device_of, is_numpy, namespace
from wellcal._arrays.ops import Ops
from wellcal._arrays.rows import Rows
from wellcal.expectations.bilinear import Cost, Distance, FiniteForm, Form, Prepared, each_batch
from wellcal.expectations.distances import distance, without_repetition
from wellcal.expectations.expansion import Notes
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.mmd import MeanDiscrepancy, NormedRows
from wellcal.kernels.algebra import Product, Scaled, Sum
from wellcal.kernels.base import Kernel, Radial, Scale
from wellcal.kernels.metrics import Euclidean, ExpDistance
from wellcal.kernels.targets import check_returned
from wellcal.predictions import Predictions


@dataclass(frozen=True)
class _FunctionOfDistance:
    """A function of a prepared distance, whose values are ``d ** degree``."""

    inner: Distance

    @property
    def cost(self) -> Cost:
        """That of the distance, and of an exponential."""
        inner = self.inner.cost
        return Cost(2.0 + inner.evaluations, inner.entries, inner.calls_user)

    def __call__(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """Return values of all pairs of rows."""
        return self.value(ops, self.inner(ops, a, b))

    def value(self, ops: Ops, raised: Array) -> Array:
        """The function."""
        raise NotImplementedError


@dataclass(frozen=True)
class ExpDistanceForm(_FunctionOfDistance):
    """``exp(-(d / lengthscale) ** power)``."""

    lengthscale: Scale
    power: float

    def __call__(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """Return values of all pairs of rows."""
        if is_numpy(ops.xp) and self._has_products() and a.norm.ndim == 1:
            return self._by_products(a, b)
        return super().__call__(ops, a, b)

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
        rate = float(self.lengthscale) ** -self.power  # pyright: ignore[reportArgumentType]
        size = left.shape[1]
        wide, other = (np.ones((len(x), size + 2), dtype=x.dtype) for x in (left, right))
        np.multiply(left, 2.0 * rate, out=wide[:, :size])
        np.multiply(a.norm, -rate, out=wide[:, size])
        other[:, :size] = right
        np.multiply(b.norm, -rate, out=other[:, size + 1])
        product = wide @ other.T
        return np.exp(product, out=product)

    def value(self, ops: Ops, raised: Array) -> Array:
        """Return the kernel at a distance."""
        rate = -(self.lengthscale**-self.power)
        exponent = self.power / self.inner.degree
        if exponent != 1.0:
            raised = ops.power(raised, exponent)
        if not is_numpy(ops.xp):
            return ops.exp(raised * rate)
        scaled = np.multiply(raised, rate, out=raised if exponent != 1.0 else None)
        return np.exp(scaled, out=scaled)


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
    def cost(self) -> Cost:
        """All parts together."""
        return reduce(Cost.__add__, (part.cost for part in self.parts))

    def __call__(self, ops: Ops, a: tuple[Rows, ...], b: tuple[Rows, ...]) -> Array:
        """Return values of all pairs of rows."""
        return self._combine([p(ops, x, y) for p, x, y in zip(self.parts, a, b, strict=True)])

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

    @property
    def cost(self) -> Cost:
        """A call of the user's function."""
        return Cost(16.0, entries=16, calls_user=True)

    def __call__(self, ops: Ops, a: Array, b: Array) -> Array:
        """Return values of all pairs of rows."""
        if max(a.ndim, b.ndim) > 1:
            return each_batch(self, ops, a, b)
        return self.function(self.predictions[a], self.predictions[b])


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
