"""Bilinear forms between sums of elementary distributions, evaluated on blocks of rows.

Forms are pure functions of rows of arrays, so that engines can tile, compile and differentiate
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, cast

import numpy as np

from wellcal._arrays.namespaces import Array, is_numpy, namespace
from wellcal._arrays.ops import Ops
from wellcal._arrays.rows import Rows, first_array, map_rows, once_each
from wellcal.expectations.rules.elements import CALL, CLOSED_FORMS, COSTS, Element, Points
from wellcal.expectations.signed_measures import Components, flat_points, is_objects
from wellcal.kernels.algebra import Scaled, Sum
from wellcal.kernels.base import Kernel, TargetKernel
from wellcal.kernels.matrix import values_matrix
from wellcal.kernels.targets import calls_for_each_pair


@dataclass(frozen=True, slots=True)
class Cost:
    """Resources that the value of a form for one pair takes.

    Attributes
    ----------
    evaluations
        Time, in evaluations of about 1.5 nanoseconds: sixteen terms of a matrix product take one.
    entries
        Numbers that one pair fills on the way, from which engines choose the size of a tile: a matrix
        product of any length fills one.
    calls_user
        Whether values come from a user's function, which threads must not call at the same time.

    Examples
    --------
    >>> Cost(2.0) + Cost(1.0, entries=4, calls_user=True)
    Cost(evaluations=3.0, entries=5, calls_user=True)
    """

    evaluations: float
    entries: int = 1
    calls_user: bool = False

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.evaluations + other.evaluations,
            self.entries + other.entries,
            self.calls_user or other.calls_user,
        )


class Form(Protocol):
    """A function of two rows: a bilinear form of measures, a kernel or a distance between predictions."""

    @property
    def cost(self) -> Cost:
        """Resources for one pair."""
        ...

    def __call__(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """Return values of all pairs: rows ``(..., n, K)`` and ``(..., m, K)`` give ``(..., n, m)``.

        Axes before the last two of every array are batches, whose rows meet within each batch only. A
        batch axis of length one is shared by all batches of the other side.
        """
        ...


def matching(form: Form, ops: Ops, a: Rows, b: Rows) -> Array:
    """Return values of matching rows, ``(n,)``: those of n batches of one row each."""
    left, right = (map_rows(lambda value: value[:, None, ...], rows) for rows in (a, b))
    return form(ops, left, right)[:, 0, 0]


def each_batch(form: Callable[[Ops, Rows, Rows], Array], ops: Ops, a: Rows, b: Rows) -> Array:
    """Evaluate a form that takes rows without batches on one batch after another."""
    count = max(first_array(a).shape[0], first_array(b).shape[0])

    def batch(rows: Rows, r: int) -> Rows:
        return map_rows(lambda value: value[r if value.shape[0] > 1 else 0, ...], rows)

    return ops.xp.stack([form(ops, batch(a, r), batch(b, r)) for r in range(count)])


class Distance(Form, Protocol):
    """A prepared distance: a form whose values are ``d ** degree``."""

    @property
    def degree(self) -> float:
        """Power of the distance that is returned: squares need no root."""
        ...


class Prepared(NamedTuple):
    """A form, and the rows of a batch that it reads."""

    form: Form
    rows: Rows


# -- closed forms ----------------------------------------------------------------------------


def evaluate(ops: Ops, kernel: Kernel, a: Element, b: Element, dimension: int) -> Array:
    """E k(Z, Z') between two elements, by linearity in the kernel."""
    known = CLOSED_FORMS.found[type(kernel), type(a), type(b)]
    if known is not None and not (known.scalar and dimension > 1):
        return known.rule(ops, kernel, b, a) if known.swapped else known.rule(ops, kernel, a, b)
    if isinstance(kernel, Sum):
        total = evaluate(ops, kernel.kernels[0], a, b, dimension)
        for part in kernel.kernels[1:]:
            total = total + evaluate(ops, part, a, b, dimension)
        return total
    if isinstance(kernel, Scaled):
        return kernel.factor * evaluate(ops, kernel.kernel, a, b, dimension)
    if isinstance(a, Points) and isinstance(b, Points) and isinstance(kernel, TargetKernel):
        return kernel.at(ops, a.x, b.x)
    raise TypeError(f"no closed form of {kernel!r} between {type(a).__name__} and {type(b).__name__}")


def has_closed_form(kernel: Kernel, left: type, right: type, dimension: int) -> bool:
    """Whether `evaluate` knows the pairing."""
    if isinstance(kernel, Sum):
        return all(has_closed_form(k, left, right, dimension) for k in kernel.kernels)
    if isinstance(kernel, Scaled):
        return has_closed_form(kernel.kernel, left, right, dimension)
    if left is Points and right is Points:
        return isinstance(kernel, TargetKernel)
    known = CLOSED_FORMS.found[type(kernel), left, right]
    return known is not None and not (known.scalar and dimension > 1)


# -- elementwise -----------------------------------------------------------------------------

Measure: TypeAlias = tuple[Components, ...]
"""Rows of a signed sum of elementary distributions, one entry for each kind."""

_USUAL = 8.0  # what a closed form of a user's own kind costs


def measure_size(measure: Measure) -> int:
    """Elementary distributions for each case."""
    return sum(part.size for part in measure)


@dataclass(frozen=True)
class ElementForm:
    """Bilinear form through elementwise rules between components.

    Attributes
    ----------
    kernel, dimension
        Kernel on targets, and how many coordinates these have.
    pairs
        Pairs of elementary distributions for one pair of cases.
    each
        What the dearest of them costs, in evaluations.
    """

    kernel: TargetKernel
    dimension: int
    pairs: int
    each: float = COSTS[Points]

    @classmethod
    def between(cls, kernel: Kernel, dimension: int, left: Measure, right: Measure) -> ElementForm:
        """The form between measures like these."""
        on_targets = cast("TargetKernel", kernel)
        parts = left if left is right else (*left, *right)
        dearest = max((COSTS.get(part.kind, _USUAL) for part in parts), default=0.0)
        if not on_targets.elementwise and calls_for_each_pair(kernel):
            dearest = max(dearest, CALL)
        size = measure_size(left)
        pairs = size * (size if left is right else measure_size(right))
        return cls(on_targets, dimension, pairs, dearest)

    @property
    def cost(self) -> Cost:
        """An evaluation for each pair of components, and more in many coordinates."""
        entries = self.pairs * max(1, self.dimension // 4)
        return Cost(self.each * entries, entries, not self.kernel.elementwise)

    def __call__(self, ops: Ops, a: Measure, b: Measure) -> Array:
        """Return the sum over all pairs of kinds, components of `a` along columns and of `b` along rows.

        Where both sides are one object, pairs of two kinds are evaluated once and mirrored.
        """
        xp = ops.xp
        reshape: Callable[..., Array] = np.ndarray.reshape if is_numpy(xp) else xp.reshape
        total: Array = None
        right = [(part, _shaped(reshape, part, along_rows=True)) for part in b]
        for g, left in enumerate(a):
            columns = _shaped(reshape, left, along_rows=False)
            for k, (other, rows) in enumerate(right):
                if a is b and k < g:
                    continue
                if _by_matrix(self.kernel, left, other):
                    values = self._matrix(ops, left.element, other.element)
                else:
                    values = evaluate(ops, self.kernel, columns, rows, self.dimension)
                part = _contracted(ops, values, left, other)
                if a is b and k > g:
                    part = part + xp.matrix_transpose(part)
                total = _add(total, part, _factor(left) * _factor(other))
        return total

    def _matrix(self, ops: Ops, a: Element, b: Element) -> Array:
        """Values of a user's function between all components, batch by batch."""
        if max(first_array(a).ndim, first_array(b).ndim) > 2:
            return each_batch(self._matrix, ops, a, b)
        return values_matrix(ops, self.kernel, flat_points(Points(*a)), flat_points(Points(*b)))


def _factor(part: Components) -> float:
    return part.weights if isinstance(part.weights, float) else 1.0


def _weights(part: Components) -> Array | None:
    return None if isinstance(part.weights, float) else part.weights


def _add(total: Array | None, part: Array, factor: float) -> Array:
    """Return ``total + factor * part`` without a pass for factors of one."""
    if total is None:
        return part if factor == 1.0 else factor * part
    if factor == 1.0:
        return total + part
    return total - part if factor == -1.0 else total + factor * part


def _shaped(reshape: Callable[..., Array], part: Components, *, along_rows: bool) -> Element:
    """Lay components ``(..., n, K)`` out as ``(..., n K, 1)``, or ``(..., 1, n K)`` along rows.

    Objects stay as they are, since no rule reads them.
    """
    if (part.size == 1 and not along_rows) or is_objects(part.leaf):
        return part.element
    *batches, n, size = part.leaf.shape
    shape = (*batches, 1, n * size) if along_rows else (*batches, n * size, 1)
    return map_rows(once_each(lambda value: reshape(value, shape)), part.element)


def _by_matrix(kernel: TargetKernel, a: Components, b: Components) -> bool:
    """Whether values are those of a user's function, or of objects, and not elementwise."""
    if not (isinstance(a.element, Points) and isinstance(b.element, Points)):
        return False
    return not kernel.elementwise or is_objects(a.leaf)


def _contracted(ops: Ops, values: Array, a: Components, b: Components) -> Array:
    """Sum ``(..., n K, m L)`` values over components with their weights, to ``(..., n, m)``."""
    xp, left, right = ops.xp, _weights(a), _weights(b)
    if b.size > 1 or right is not None:
        values = xp.reshape(values, (*values.shape[:-1], values.shape[-1] // b.size, b.size))
        values = values if right is None else values * right[..., None, :, :]
        values = xp.sum(values, axis=-1) if b.size > 1 else values[..., 0]
    if a.size > 1 or left is not None:
        rows = values.shape[-2] // a.size
        values = xp.reshape(values, (*values.shape[:-2], rows, a.size, values.shape[-1]))
        values = values if left is None else values * left[..., None]
        values = xp.sum(values, axis=-2) if a.size > 1 else values[..., 0, :]
    return values


# -- finite supports -------------------------------------------------------------------------


class WeightRows(NamedTuple):
    """Rows of a measure on a finite set of M points, or of one given by M features.

    Attributes
    ----------
    weights
        ``(n, M)``.
    image
        Their products ``(n, M)`` with the kernel matrix; None where that is the identity.
    """

    weights: Array
    image: Array | None = None


@dataclass(frozen=True)
class FiniteForm:
    """Bilinear form between measures on one finite set: a matrix product of weights.

    Attributes
    ----------
    gram
        Kernel matrix between the points; None for the identity, as that of Delta.
    size
        Number of points.
    """

    gram: Array | None
    size: int

    @property
    def cost(self) -> Cost:
        """About a sixteenth of an elementwise evaluation for each term of a matrix product."""
        return Cost(max(1, self.size // 16))

    def rows(self, weights: Array) -> WeightRows:
        """Rows of a measure with weights ``(n, M)``."""
        if self.gram is None:
            return WeightRows(weights)
        return WeightRows(weights, namespace(weights).matmul(weights, self.gram))

    def __call__(self, ops: Ops, a: WeightRows, b: WeightRows) -> Array:
        """Return products of all pairs of rows."""
        left = a.weights if a.image is None else a.image
        if left.shape[-2] == b.weights.shape[-2] == 1:  # a product for each batch takes a call for each
            return ops.xp.sum(left * b.weights, axis=-1)[..., None]
        return ops.xp.matmul(left, ops.xp.matrix_transpose(b.weights))


# -- weighted measures -----------------------------------------------------------------------


class WeightedRows(NamedTuple):
    """Rows of weighted measures."""

    weights: Array
    inner: Rows


@dataclass(frozen=True)
class WeightedForm:
    """A form between weighted measures: ``w_i w_j`` times another."""

    inner: Form

    @property
    def cost(self) -> Cost:
        """That of the other form."""
        return self.inner.cost

    def __call__(self, ops: Ops, a: WeightedRows, b: WeightedRows) -> Array:
        """Return values of all pairs of rows."""
        return a.weights[..., :, None] * b.weights[..., None, :] * self.inner(ops, a.inner, b.inner)
