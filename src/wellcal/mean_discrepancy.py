"""The MMD between predictions, ``d^2 = <P - Q, P - Q>_k``, from pairings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import array_api_compat as compat

from wellcal._array import Array, namespace
from wellcal._ops import Ops
from wellcal.closed_forms.differences import (
    Move,
    gaussian_difference,
    gaussian_one_sided,
    gaussian_terms,
    laplace_discrepancy,
)
from wellcal.closed_forms.elements import Laplaces, Normals, Points
from wellcal.expansion import Rows
from wellcal.forms import ElementForm, FiniteForm, Form, Layout
from wellcal.kernels.base import Kernel, Scaled, Sum
from wellcal.kernels.targets import Gaussian, Laplacian
from wellcal.pairing import Lowering, Notes, plan
from wellcal.predictions import Predictions

_NEAR = 1e-3  # relative to |P|^2 + |Q|^2: beyond, subtracting pairings keeps 13 digits
_MATCHED = 64  # components: beyond, they rarely match one to one and comparing all pairs is dear


def mean_discrepancy(
    kernel: Kernel, predictions: Predictions, expectations: str | Lowering, notes: Notes
) -> tuple[MeanDiscrepancy, Rows]:
    """Prepare the squared MMD for a batch: the distance, and the rows it reads."""
    scheme = plan(kernel, [predictions], expectations=expectations, notes=notes)
    rows, layout = scheme.rows([(1.0, predictions)])
    form = scheme.form(layout, layout)
    ops = predictions._ops
    return MeanDiscrepancy(form), {**rows, "norm": form.paired(ops, rows, rows)}


@dataclass(frozen=True)
class MeanDiscrepancy:
    """Squared MMD by expanding the square, and by stable differences for near predictions."""

    form: Form
    degree: float = 2.0

    @property
    def width(self) -> int:
        """That of the pairing."""
        return self.form.width

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array:
        norms = a["norm"][:, None] + b["norm"][None, :]
        squared = norms - 2.0 * self.form.tile(ops, a, b)
        i, j = _positions(a)[:, None], _positions(b)[None, :]
        return self._refine(ops, squared, norms, a, b, i, j)

    def paired(self, ops: Ops, a: Rows, b: Rows) -> Array:
        norms = a["norm"] + b["norm"]
        squared = norms - 2.0 * self.form.paired(ops, a, b)
        i = _positions(a)
        return self._refine(ops, squared, norms, a, b, i, i)

    def _refine(self, ops: Ops, squared: Array, norms: Array, a: Rows, b: Rows, i: Array, j: Array) -> Array:
        """Replace the squared distance of near pairs by one that did not cancel."""
        near = squared < _NEAR * norms
        exact = difference_of(self.form)
        if exact is None:
            return ops.maximum(squared, 0.0 * squared)
        xp = ops.xp
        i, j = xp.broadcast_arrays(i, j)
        # Where a branch is evaluated everywhere (JAX), far pairs are compared with themselves.
        i = xp.where(near, i, xp.zeros_like(i))
        j_far = xp.where(near, j, xp.zeros_like(j))

        def refined(near_i: Array, near_j: Array, flag: Array, value: Array) -> Array:
            shape = near_i.shape
            left = _take(a, xp.reshape(near_i, (-1,)))
            right = _take(b, xp.reshape(near_j, (-1,)))
            keep = xp.reshape(flag, (-1,))
            right = {name: _keep(xp, keep, right[name], left[name]) for name in left}
            return xp.reshape(exact(ops, left, right), shape)

        def expanded(near_i: Array, near_j: Array, flag: Array, value: Array) -> Array:
            return value

        result = ops.select(near, (i, j_far, near, squared), refined, expanded)
        return ops.maximum(result, 0.0 * result)


def _positions(rows: Rows) -> Array:
    norm = rows["norm"]
    return namespace(norm).arange(norm.shape[0], device=compat.device(norm))


def _take(rows: Rows, index: Array) -> Rows:
    return {name: namespace(value).take(value, index, axis=0) for name, value in rows.items()}


def _keep(xp: Any, flag: Array, value: Array, otherwise: Array) -> Array:
    shaped = xp.reshape(flag, (-1, *([1] * (value.ndim - 1))))
    return xp.where(shaped, value, otherwise)


def difference_of(form: Form) -> Any:
    """A function ``(ops, a, b)`` for the squared MMD of matching rows that are near, or None."""
    if isinstance(form, FiniteForm):
        return _finite_difference
    if not isinstance(form, ElementForm):
        return None
    kinds = {kind for kind, _, _ in form.left.groups}
    if kinds <= {Points, Normals} and _all_gaussian(form.kernel) and form.left.size <= _MATCHED:
        return lambda ops, a, b: _gaussian(ops, form.kernel, form.left, a, b)
    single = len(form.left.groups) == 1 and form.left.size == 1
    if single and kinds == {Laplaces} and isinstance(form.kernel, Laplacian):
        return lambda ops, a, b: _laplacian(ops, form.kernel, a, b)
    return None


def _finite_difference(ops: Ops, a: Rows, b: Rows) -> Array:
    change = a["u"] - b["u"]
    image = a["g"] - b["g"] if "g" in a else change
    return ops.xp.sum(change * image, axis=1)


def _laplacian(ops: Ops, kernel: Any, a: Rows, b: Rows) -> Array:
    z = ops.abs(a["0.x"][:, 0, 0] - b["0.x"][:, 0, 0])
    return laplace_discrepancy(ops, z, 1.0 / a["0.s"][:, 0], 1.0 / b["0.s"][:, 0], 1.0 / kernel.lengthscale)


def _all_gaussian(kernel: Kernel) -> bool:
    if isinstance(kernel, Sum):
        return all(_all_gaussian(k) for k in kernel.kernels)
    return _all_gaussian(kernel.kernel) if isinstance(kernel, Scaled) else isinstance(kernel, Gaussian)


def _gaussian(ops: Ops, kernel: Kernel, layout: Layout, a: Rows, b: Rows) -> Array:
    """Squared MMD of mixtures of normals and points whose components match one to one."""
    if isinstance(kernel, Sum):
        parts = [_gaussian(ops, k, layout, a, b) for k in kernel.kernels]
        return sum(parts[1:], start=parts[0])
    if isinstance(kernel, Scaled):
        return kernel.factor * _gaussian(ops, kernel.kernel, layout, a, b)
    assert isinstance(kernel, Gaussian)
    xp = ops.xp
    x_a, v_a, w_a = _normal_components(xp, layout, a)
    x_b, v_b, w_b = _normal_components(xp, layout, b)
    d = x_b.shape[2]

    def move(shape: Any) -> Move:
        return Move(
            x=tuple(shape(x_b[:, :, c]) for c in range(d)),
            v=tuple(shape(v_b[:, :, c]) for c in range(d)),
            dx=tuple(shape(x_a[:, :, c] - x_b[:, :, c]) for c in range(d)),
            dv=tuple(shape(v_a[:, :, c] - v_b[:, :, c]) for c in range(d)),
        )

    g, u, v, w = gaussian_terms(
        ops, kernel.lengthscale, move(lambda t: t[:, :, None]), move(lambda t: t[:, None, :])
    )
    # w_a A_k - w_b B_k = w_a (A_k - B_k) + (w_a - w_b) B_k for each component k.
    left, right = w_a[:, :, None], w_a[:, None, :]
    total = left * right * gaussian_difference(ops, g, u, v, w)
    change = w_a - w_b
    change_left, change_right = change[:, :, None], change[:, None, :]
    total = total + left * change_right * gaussian_one_sided(ops, g, u)
    total = total + change_left * right * gaussian_one_sided(ops, g, v)
    total = total + change_left * change_right * ops.exp(g)
    return xp.sum(total, axis=(1, 2))


def _normal_components(xp: Any, layout: Layout, rows: Rows) -> tuple[Array, Array, Array]:
    """Means, variances ``(p, K, d)`` and weights ``(p, K)`` of all components; points have no variance."""
    means: list[Array] = []
    variances: list[Array] = []
    weights: list[Array] = []
    for index, (kind, size, constant) in enumerate(layout.groups):
        x = rows[f"{index}.x"]
        means.append(x)
        variances.append(rows[f"{index}.v"] if kind is Normals else xp.zeros_like(x))
        weights.append(rows[f"{index}.w"] if constant is None else constant + xp.zeros_like(x[:, :size, 0]))
    return xp.concat(means, axis=1), xp.concat(variances, axis=1), xp.concat(weights, axis=1)
