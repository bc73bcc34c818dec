"""Bilinear forms between sums of elementary distributions, evaluated on blocks of rows.

Forms are pure functions of rows of arrays, so that engines can tile, compile and differentiate
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from wellcal._arrays.namespaces import Array, namespace
from wellcal._arrays.ops import Ops
from wellcal.expectations.decompose import Group, Rows, is_objects, rows_under
from wellcal.expectations.rules import discrete, gaussian, laplacian
from wellcal.expectations.rules.elements import (
    Element,
    FullNormals,
    Laplaces,
    Normals,
    Points,
    Poissons,
    Rule,
    find_rule,
)
from wellcal.kernels.base import Kernel, Scaled, Sum, TargetKernel
from wellcal.kernels.matrix import as_objects, contains_callable, values_matrix

RULE_MODULES = (discrete, gaussian, laplacian)
"""Modules that register closed forms when they are imported."""


class Form(Protocol):
    """A prepared bilinear form between measures, or a kernel between predictions."""

    @property
    def width(self) -> int:
        """Elementary evaluations for one pair, from which engines choose the size of a tile."""
        ...

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """All pairs of rows: ``(len(a), len(b))``."""
        ...

    def paired(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """Matching rows: ``(len(a),)``."""
        ...


# -- closed forms ----------------------------------------------------------------------------


def evaluate(ops: Ops, kernel: Kernel, a: Element, b: Element, dimension: int) -> Array:
    """E k(Z, Z') between two elements, by linearity in the kernel."""
    if isinstance(kernel, Sum):
        total = evaluate(ops, kernel.kernels[0], a, b, dimension)
        for part in kernel.kernels[1:]:
            total = total + evaluate(ops, part, a, b, dimension)
        return total
    if isinstance(kernel, Scaled):
        return kernel.factor * evaluate(ops, kernel.kernel, a, b, dimension)
    if isinstance(a, Points) and isinstance(b, Points) and isinstance(kernel, TargetKernel):
        return kernel.at(ops, a.x, b.x)
    found: Rule | None = find_rule(type(kernel), type(a), type(b), dimension)
    if found is None:
        raise TypeError(f"no closed form of {kernel!r} between {type(a).__name__} and {type(b).__name__}")
    return found(ops, kernel, a, b)


def has_closed_form(kernel: Kernel, left: type, right: type, dimension: int) -> bool:
    """Whether `evaluate` knows the pairing."""
    if isinstance(kernel, Sum):
        return all(has_closed_form(k, left, right, dimension) for k in kernel.kernels)
    if isinstance(kernel, Scaled):
        return has_closed_form(kernel.kernel, left, right, dimension)
    if left is Points and right is Points:
        return isinstance(kernel, TargetKernel)
    return find_rule(type(kernel), left, right, dimension) is not None


# -- elementwise -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """Kind, size and constant weight (None: weights are in the rows) of the groups of a measure."""

    groups: tuple[tuple[type, int, float | None], ...]

    @property
    def size(self) -> int:
        """Elementary distributions for each case."""
        return sum(size for _, size, _ in self.groups)


def rows_of(groups: list[Group]) -> tuple[Rows, Layout]:
    """Groups of a measure as rows, with the layout that reads them."""
    rows: Rows = {}
    for index, group in enumerate(groups):
        rows.update({f"{index}.{name}": value for name, value in group.parameters.items()})
        if group.constant is None:
            rows[f"{index}.w"] = group.weights
    return rows, Layout(tuple((g.kind, g.size, g.constant) for g in groups))


@dataclass(frozen=True)
class ElementForm:
    """Bilinear form through elementwise rules between groups."""

    kernel: Kernel
    dimension: int
    left: Layout
    right: Layout

    @property
    def width(self) -> int:
        """Elementary evaluations for one pair."""
        return self.left.size * self.right.size * max(1, self.dimension // 4)

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """All pairs of rows."""
        return self._sum(ops, a, b, self._outer, _contract)

    def paired(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """Matching rows."""
        return self._sum(ops, a, b, self._matching, _contract_matching)

    def batched(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """All pairs of rows within each of r batches: ``(r, n, ...)`` and ``(r, m, ...)`` to ``(r, n, m)``.

        A batch axis of length one is shared by the batches of the other side.
        """
        return self._sum(ops, a, b, self._outer_batched, _contract_batched)

    def _sum(
        self, ops: Ops, a: Rows, b: Rows, values_of: Callable[..., Array], contract: Callable[..., Array]
    ) -> Array:
        total: Array = None
        for g, (kind_a, size_a, constant_a) in enumerate(self.left.groups):
            for k, (kind_b, size_b, constant_b) in enumerate(self.right.groups):
                values = values_of(ops, rows_under(a, f"{g}."), kind_a, rows_under(b, f"{k}."), kind_b)
                part = contract(ops, values, a.get(f"{g}.w"), b.get(f"{k}.w"), size_a, size_b)
                factor = (1.0 if constant_a is None else constant_a) * (
                    1.0 if constant_b is None else constant_b
                )
                total = _add(total, part, factor)
        return total

    def _outer(self, ops: Ops, a: Rows, kind_a: type, b: Rows, kind_b: type) -> Array:
        if kind_a is kind_b is Points and _by_matrix(self.kernel, a["x"]):
            return values_matrix(ops, self.kernel, _flat_points(a["x"]), _flat_points(b["x"]))
        left = _element(kind_a, a, lambda v: ops.xp.reshape(v, (-1, 1)))
        right = _element(kind_b, b, lambda v: ops.xp.reshape(v, (1, -1)))
        return evaluate(ops, self.kernel, left, right, self.dimension)

    def _outer_batched(self, ops: Ops, a: Rows, kind_a: type, b: Rows, kind_b: type) -> Array:
        xp = ops.xp
        first_a, first_b = next(iter(a.values())), next(iter(b.values()))
        if kind_a is kind_b is Points and _by_matrix(self.kernel, first_a):
            count = max(first_a.shape[0], first_b.shape[0])
            blocks = [
                self._outer(ops, _one_batch(a, r), kind_a, _one_batch(b, r), kind_b) for r in range(count)
            ]
            return xp.stack(blocks)
        left = _element(kind_a, a, lambda v: xp.reshape(v, (v.shape[0], -1, 1)))
        right = _element(kind_b, b, lambda v: xp.reshape(v, (v.shape[0], 1, -1)))
        return evaluate(ops, self.kernel, left, right, self.dimension)

    def _matching(self, ops: Ops, a: Rows, kind_a: type, b: Rows, kind_b: type) -> Array:
        if kind_a is kind_b is Points and _by_matrix(self.kernel, a["x"]):
            pairs = zip(a["x"], b["x"], strict=True)
            blocks = [values_matrix(ops, self.kernel, _point_list(x), _point_list(y)) for x, y in pairs]
            return ops.xp.stack(blocks)
        left = _element(kind_a, a, lambda v: v[:, :, None])
        right = _element(kind_b, b, lambda v: v[:, None, :])
        return evaluate(ops, self.kernel, left, right, self.dimension)


def _add(total: Array | None, part: Array, factor: float) -> Array:
    """``total + factor * part`` without a pass for factors of one."""
    if total is None:
        return part if factor == 1.0 else factor * part
    if factor == 1.0:
        return total + part
    return total - part if factor == -1.0 else total + factor * part


def _by_matrix(kernel: Kernel, x: Array) -> bool:
    return contains_callable(kernel) or is_objects(x)


def _flat_points(x: Array) -> Array:
    """(I, K, d) as (I K, d), or (I K,) for scalars and objects."""
    if is_objects(x):
        return x.reshape(-1)
    flat = namespace(x).reshape(x, (-1, x.shape[2]))
    return flat[:, 0] if x.shape[2] == 1 else flat


def _point_list(x: Array) -> Array:
    if is_objects(x):
        return as_objects(x)
    return x[:, 0] if x.shape[1] == 1 else x


def _one_batch(rows: Rows, r: int) -> Rows:
    return {name: value[r if value.shape[0] > 1 else 0] for name, value in rows.items()}


def _element(kind: type, rows: Rows, shape: Callable[[Array], Array]) -> Element:
    """Parameters of a group as arrays that broadcast against the other side's."""
    if kind is Poissons:
        return Poissons(shape(rows["r"]))
    d = rows["x"].shape[-1]
    x = tuple(shape(rows["x"][..., c]) for c in range(d))
    if kind is Points:
        return Points(x)
    if kind is Normals:
        return Normals(x, tuple(shape(rows["v"][..., c]) for c in range(d)))
    if kind is Laplaces:
        return Laplaces(x, shape(rows["s"]))
    cov = tuple(tuple(shape(rows["c"][..., i, j]) for j in range(i + 1)) for i in range(d))
    return FullNormals(x, cov)


def _contract(
    ops: Ops, values: Array, left: Array | None, right: Array | None, size_a: int, size_b: int
) -> Array:
    """Sum ``(I K, J L)`` values over components with their weights, to ``(I, J)``."""
    xp = ops.xp
    if size_b > 1:
        values = xp.reshape(values, (values.shape[0], -1, size_b))
        values = xp.sum(values if right is None else values * right[None, :, :], axis=2)
    elif right is not None:
        values = values * xp.reshape(right, (1, -1))
    if size_a > 1:
        values = xp.reshape(values, (-1, size_a, values.shape[1]))
        return xp.sum(values if left is None else values * left[:, :, None], axis=1)
    return values if left is None else values * left


def _contract_batched(
    ops: Ops, values: Array, left: Array | None, right: Array | None, size_a: int, size_b: int
) -> Array:
    """Sum ``(r, I K, J L)`` values over components with their weights, to ``(r, I, J)``."""
    xp = ops.xp
    if size_b > 1 or right is not None:
        values = xp.reshape(values, (*values.shape[:2], -1, size_b))
        values = xp.sum(values if right is None else values * right[:, None, :, :], axis=3)
    if size_a > 1 or left is not None:
        values = xp.reshape(values, (values.shape[0], -1, size_a, values.shape[2]))
        values = xp.sum(values if left is None else values * left[:, :, :, None], axis=2)
    return values


def _contract_matching(
    ops: Ops, values: Array, left: Array | None, right: Array | None, size_a: int, size_b: int
) -> Array:
    """Sum ``(p, K, L)`` values over components with their weights, to ``(p,)``."""
    if left is not None:
        values = values * left[:, :, None]
    if right is not None:
        values = values * right[:, None, :]
    return ops.xp.sum(values, axis=(1, 2))


# -- finite supports -------------------------------------------------------------------------


@dataclass(frozen=True)
class FiniteForm:
    """Bilinear form between measures on one finite set: a matrix product of weights.

    Rows hold the weights u ``(n, M)`` and their products g = u K with the kernel matrix K; g is
    left out for Delta, whose matrix is the identity.
    """

    gram: Array | None
    size: int

    @property
    def width(self) -> int:
        """A matrix product costs about a sixteenth of an elementwise evaluation for each term."""
        return max(1, self.size // 16)

    def rows(self, weights: Array) -> Rows:
        """Rows of a measure with weights ``(n, M)``."""
        if self.gram is None:
            return {"u": weights}
        return {"u": weights, "g": namespace(weights).matmul(weights, self.gram)}

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """All pairs of rows."""
        return ops.xp.matmul(a.get("g", a["u"]), ops.xp.matrix_transpose(b["u"]))

    def paired(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """Matching rows."""
        return ops.xp.sum(a.get("g", a["u"]) * b["u"], axis=1)
