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
from wellcal.expectations.decompose import Components, flat_points, is_objects, point_array
from wellcal.expectations.rules.elements import CALL, CLOSED_FORMS, COSTS, Element, Lines, Normals, Points
from wellcal.kernels.algebra import Scaled, Sum
from wellcal.kernels.base import Kernel, TargetKernel
from wellcal.kernels.matrix import as_objects, values_matrix
from wellcal.kernels.targets import calls_for_each_pair


class Form(Protocol):
    """A function of two rows: a bilinear form of measures, a kernel or a distance between predictions."""

    @property
    def width(self) -> int:
        """Elementary evaluations for one pair."""
        ...

    @property
    def calls_user(self) -> bool:
        """Whether values come from a user's function, which threads must not call at the same time."""
        ...

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """All pairs of rows: ``(len(a), len(b))``."""
        ...

    def paired(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """Matching rows: ``(len(a),)``."""
        ...


def cost_of(form: Form) -> float:
    """What one pair takes, in evaluations of about 1.5 nanoseconds: for choices between methods.

    As many as there are elementary evaluations, unless a form knows what its own cost.
    """
    return float(getattr(form, "cost", form.width))


def room_of(form: Form) -> int:
    """Numbers that one pair fills on the way, from which engines choose the size of a tile.

    As many as there are evaluations, unless a form says that it makes do with less: a matrix product of
    any length fills one.
    """
    return int(getattr(form, "room", form.width))


def in_batches(form: Form | None) -> bool:
    """Whether a form has `batched(ops, a, b)`: all pairs of rows within each of r batches, ``(r, n, m)``.

    Rows have the batches along the first axis then, ``(r, n, ...)`` and ``(r, m, ...)``. None has nothing
    to do.
    """
    return form is None or bool(getattr(form, "in_batches", False))


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

Evaluation: TypeAlias = Callable[[Ops, Element, Element], Array]


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
    def width(self) -> int:
        """Elementary evaluations for one pair."""
        return self.pairs * max(1, self.dimension // 4)

    @property
    def cost(self) -> float:
        """What one pair takes, in evaluations."""
        return self.each * self.width

    @property
    def calls_user(self) -> bool:
        """Whether the kernel does."""
        return not self.kernel.elementwise

    @property
    def in_batches(self) -> bool:
        """Whether `batched` is more than a loop."""
        return self.kernel.elementwise

    def tile(self, ops: Ops, a: Measure, b: Measure) -> Array:
        """All pairs of rows."""
        xp = ops.xp
        reshape: Callable[..., Array] = np.ndarray.reshape if is_numpy(xp) else xp.reshape
        single = all(part.size == 1 for part in a)  # arrays (n, 1) are columns as they stand
        plain = single and a is b and all(isinstance(part.weights, float) for part in a)
        return self._sum(
            ops,
            a,
            b,
            None if single else lambda v: reshape(v, (-1, 1)),
            lambda v: reshape(v, (1, -1)),
            self._outer_matrix,
            _as_they_are if plain else _contract,
            mirror=xp.matrix_transpose if a is b else None,
        )

    def paired(self, ops: Ops, a: Measure, b: Measure) -> Array:
        """Matching rows."""
        if is_numpy(ops.xp) and all(part.size == 1 for part in (*a, *b)):  # which match as they stand
            left, right = (tuple(map(_in_lines, side)) for side in (a, b))
            return self._sum(ops, left, right, None, None, self._matching_matrix, _contract_single)
        return self._sum(
            ops,
            a,
            b,
            lambda v: v[:, :, None],
            lambda v: v[:, None, :],
            self._matching_matrix,
            _contract_matching,
        )

    def batched(self, ops: Ops, a: Measure, b: Measure) -> Array:
        """All pairs of rows within each of r batches: ``(r, n, ...)`` and ``(r, m, ...)`` to ``(r, n, m)``.

        A batch axis of length one is shared by the batches of the other side.
        """
        xp = ops.xp
        reshape: Callable[..., Array] = np.ndarray.reshape if is_numpy(xp) else xp.reshape
        return self._sum(
            ops,
            a,
            b,
            None if all(part.leaf.shape[2] == 1 for part in a) else lambda v: reshape(v, (v.shape[0], -1, 1)),
            lambda v: reshape(v, (v.shape[0], 1, -1)),
            self._batched_matrix,
            _contract_batched,
            mirror=xp.matrix_transpose if a is b else None,
        )

    def _sum(
        self,
        ops: Ops,
        a: Measure,
        b: Measure,
        first: Callable[[Array], Array] | None,
        second: Callable[[Array], Array] | None,
        by_matrix: Evaluation,
        contract: Callable[..., Array],
        mirror: Callable[[Array], Array] | None = None,
    ) -> Array:
        """Sum over all pairs of kinds, whose arrays `first` and `second` shape so that they broadcast.

        Where both sides are the same, `mirror` turns the pairs of two kinds into those the other way round.
        """
        total: Array = None
        right = [(part, _shaped(second, part)) for part in b]
        for g, left in enumerate(a):
            shaped = _shaped(first, left)
            for k, (other, element) in enumerate(right):
                if mirror is not None and k < g:
                    continue
                if _by_matrix(self.kernel, left, other):
                    values = by_matrix(ops, left.element, other.element)
                else:
                    values = evaluate(ops, self.kernel, shaped, element, self.dimension)
                part = contract(ops, values, left, other)
                if mirror is not None and k > g:
                    part = part + mirror(part)
                total = _add(total, part, _factor(left) * _factor(other))
        return total

    def _outer_matrix(self, ops: Ops, a: Element, b: Element) -> Array:
        return values_matrix(ops, self.kernel, flat_points(Points(*a)), flat_points(Points(*b)))

    def _matching_matrix(self, ops: Ops, a: Element, b: Element) -> Array:
        rows = zip(point_array(Points(*a)), point_array(Points(*b)), strict=True)
        return ops.xp.stack([values_matrix(ops, self.kernel, _listed(x), _listed(y)) for x, y in rows])

    def _batched_matrix(self, ops: Ops, a: Element, b: Element) -> Array:
        count = max(first_array(a).shape[0], first_array(b).shape[0])
        blocks = [self._outer_matrix(ops, _one_batch(a, r), _one_batch(b, r)) for r in range(count)]
        return ops.xp.stack(blocks)


def _factor(part: Components) -> float:
    return part.weights if isinstance(part.weights, float) else 1.0


def _weights(part: Components) -> Array | None:
    return None if isinstance(part.weights, float) else part.weights


def _add(total: Array | None, part: Array, factor: float) -> Array:
    """``total + factor * part`` without a pass for factors of one."""
    if total is None:
        return part if factor == 1.0 else factor * part
    if factor == 1.0:
        return total + part
    return total - part if factor == -1.0 else total + factor * part


def _shaped(function: Callable[[Array], Array] | None, part: Components) -> Element:
    """The element as rules read it; objects stay as they are, since no rule reads them."""
    if function is None or _has_objects(part):
        return part.element
    return map_rows(once_each(function), part.element)


def _has_objects(part: Components) -> bool:
    return is_objects(part.leaf)


def _by_matrix(kernel: TargetKernel, a: Components, b: Components) -> bool:
    """Whether values are those of a user's function, or of objects, and not elementwise."""
    if not (isinstance(a.element, Points) and isinstance(b.element, Points)):
        return False
    return not kernel.elementwise or _has_objects(a)


def _listed(x: Array) -> Array:
    return as_objects(x) if is_objects(x) else x


def _one_batch(element: Element, r: int) -> Element:
    return map_rows(lambda value: value[r if value.shape[0] > 1 else 0], element)


def _as_they_are(ops: Ops, values: Array, a: Components, b: Components) -> Array:
    """Values of single components without weights of their own, of which there is nothing to sum."""
    return values


def _contract(ops: Ops, values: Array, a: Components, b: Components) -> Array:
    """Sum ``(I K, J L)`` values over components with their weights, to ``(I, J)``."""
    xp, left, right = ops.xp, _weights(a), _weights(b)
    if b.size > 1:
        values = xp.reshape(values, (values.shape[0], -1, b.size))
        values = xp.sum(values if right is None else values * right[None, :, :], axis=2)
    elif right is not None:
        values = values * xp.reshape(right, (1, -1))
    if a.size > 1:
        values = xp.reshape(values, (-1, a.size, values.shape[1]))
        return xp.sum(values if left is None else values * left[:, :, None], axis=1)
    return values if left is None else values * left


def _contract_batched(ops: Ops, values: Array, a: Components, b: Components) -> Array:
    """Sum ``(r, I K, J L)`` values over components with their weights, to ``(r, I, J)``."""
    xp, left, right = ops.xp, _weights(a), _weights(b)
    size_a, size_b = a.leaf.shape[2], b.leaf.shape[2]
    if size_b > 1 or right is not None:
        values = xp.reshape(values, (*values.shape[:2], -1, size_b))
        values = xp.sum(values if right is None else values * right[:, None, :, :], axis=3)
    if size_a > 1 or left is not None:
        values = xp.reshape(values, (values.shape[0], -1, size_a, values.shape[2]))
        values = xp.sum(values if left is None else values * left[:, :, :, None], axis=2)
    return values


def _contract_matching(ops: Ops, values: Array, a: Components, b: Components) -> Array:
    """Sum ``(p, K, L)`` values over components with their weights, to ``(p,)``."""
    left, right = _weights(a), _weights(b)
    if left is not None:
        values = values * left[:, :, None]
    if right is not None:
        values = values * right[:, None, :]
    return ops.xp.sum(values, axis=(1, 2))


def _contract_single(ops: Ops, values: Array, a: Components, b: Components) -> Array:
    """Values ``(p, 1)`` with their weights, to ``(p,)``."""
    values = values.reshape(-1)
    for weights in (_weights(a), _weights(b)):
        values = values if weights is None else values * weights[:, 0]
    return values


_FEW_CASES = 2048  # whose coordinates are copied side by side in no time


def _in_lines(part: Components) -> Components:
    """The same, if it is made of vectors of few cases, with coordinates that rules read all at once."""
    element = part.element
    if isinstance(element, (Normals, Points)) and len(element.x) > 1 and len(part.leaf) <= _FEW_CASES:
        return Components(element._replace(x=Lines(element.x)), part.weights)
    return part


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
    calls_user = False
    in_batches = True

    @property
    def width(self) -> int:
        """A matrix product costs about a sixteenth of an elementwise evaluation for each term."""
        return max(1, self.size // 16)

    @property
    def room(self) -> int:
        """A product fills one number, however long it is."""
        return 1

    def rows(self, weights: Array) -> WeightRows:
        """Rows of a measure with weights ``(n, M)``."""
        if self.gram is None:
            return WeightRows(weights)
        return WeightRows(weights, namespace(weights).matmul(weights, self.gram))

    def tile(self, ops: Ops, a: WeightRows, b: WeightRows) -> Array:
        """All pairs of rows."""
        left = a.weights if a.image is None else a.image
        return ops.xp.matmul(left, ops.xp.matrix_transpose(b.weights))

    batched = tile

    def paired(self, ops: Ops, a: WeightRows, b: WeightRows) -> Array:
        """Matching rows."""
        return ops.xp.sum((a.weights if a.image is None else a.image) * b.weights, axis=1)
