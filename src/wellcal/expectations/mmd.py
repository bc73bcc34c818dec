"""The MMD between predictions, ``d^2 = <P - Q, P - Q>_k``, from pairings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import array_api_compat as compat

from wellcal._arrays.namespaces import Array, is_jax, namespace, stop_gradient
from wellcal._arrays.ops import Ops
from wellcal.expectations._pairing import Lowering, Notes, plan
from wellcal.expectations.bilinear import ElementForm, FiniteForm, Form, Layout
from wellcal.expectations.decompose import Rows, rows_under, slice_rows
from wellcal.expectations.rules.covariance_differences import FullMove, full_gaussian_terms
from wellcal.expectations.rules.differences import (
    Move,
    gaussian_difference,
    gaussian_one_sided,
    gaussian_terms,
    laplace_discrepancy,
)
from wellcal.expectations.rules.elements import FullNormals, Laplaces, Normals, Points, Poissons
from wellcal.kernels.base import Kernel, Scaled, Sum
from wellcal.kernels.targets import Gaussian, Laplacian
from wellcal.predictions import Predictions

_NEAR = 1e-3  # relative to |P|^2 + |Q|^2: beyond, subtracting pairings keeps 13 digits
_MATCHED = 64  # components, where near pairs cannot be taken a few at a time
_MOST = 1024  # components: beyond, they rarely match one to one
_WORK = 1_000_000  # entries of a temporary array


def mean_discrepancy(
    kernel: Kernel, predictions: Predictions, expectations: str | Lowering, notes: Notes
) -> tuple[MeanDiscrepancy, Rows]:
    """Prepare the squared MMD for a batch: the distance, and the rows it reads."""
    scheme = plan(kernel, [predictions], expectations=expectations, notes=notes)
    rows, layout = scheme.rows([(1.0, predictions)])
    form = scheme.form(layout, layout)
    ops = predictions.ops
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
        exact = difference_of(self.form, ops)
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
            if exact is None:  # equal predictions at least are told apart from near ones
                return xp.where(xp.reshape(_identical(xp, left, right), shape), 0.0 * value, value)
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


def _identical(xp: Any, a: Rows, b: Rows) -> Array:
    """Which matching rows are equal in all their entries."""
    same: Array = None
    for name, value in a.items():
        flat = (value.shape[0], math.prod(value.shape[1:]))  # -1 has no meaning where no pair is near
        equal = xp.all(xp.reshape(value == b[name], flat), axis=1)
        same = equal if same is None else same & equal
    return same


Difference = Callable[[Ops, Rows, Rows], Array]


def difference_of(form: Form, ops: Ops) -> Difference | None:
    """A function ``(ops, a, b)`` for the squared MMD of matching rows that are near, or None."""
    if isinstance(form, FiniteForm):
        return _finite_difference
    if not isinstance(form, ElementForm):
        return None
    kinds = {kind for kind, _, _ in form.left.groups}
    size, eager = form.left.size, not is_jax(ops.xp)
    if kinds <= {Points, Normals, FullNormals} and _all_gaussian(form.kernel):
        work = size**2 * (form.dimension**2 if FullNormals in kinds else 1)
        if work <= _MATCHED**2 or (eager and size <= _MOST):
            step = max(1, _WORK // work) if eager else None
            return _in_pieces(lambda o, a, b: _gaussian(o, form.kernel, form.left, a, b), step)
    if size == 1 and kinds == {Laplaces} and isinstance(form.kernel, Laplacian):
        return lambda o, a, b: _laplacian(o, form.kernel, a, b)
    if eager and kinds <= {Laplaces, Normals, Poissons} and form.dimension == 1 and size <= _MATCHED:
        return lambda o, a, b: extrapolated(o, form, a, b)
    return None


def _in_pieces(function: Difference, step: int | None) -> Difference:
    """The same a few rows at a time: pairs of components take more memory than rows."""

    def piecewise(ops: Ops, a: Rows, b: Rows) -> Array:
        n = a["norm"].shape[0]
        if step is None or n <= step:
            return function(ops, a, b)
        pieces = [slice(start, min(start + step, n)) for start in range(0, n, step)]
        return ops.xp.concat([function(ops, slice_rows(a, rows), slice_rows(b, rows)) for rows in pieces])

    return piecewise


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
    """Squared MMD of mixtures of normals and points, stable where components match one to one."""
    if isinstance(kernel, Sum):
        parts = [_gaussian(ops, k, layout, a, b) for k in kernel.kernels]
        return sum(parts[1:], start=parts[0])
    if isinstance(kernel, Scaled):
        return kernel.factor * _gaussian(ops, kernel.kernel, layout, a, b)
    assert isinstance(kernel, Gaussian)
    xp = ops.xp
    full = any(kind is FullNormals for kind, _, _ in layout.groups)
    x_a, v_a, w_a = _normal_components(xp, layout, a, full)
    x_b, v_b, w_b = _normal_components(xp, layout, b, full)
    terms: Any = full_gaussian_terms if full else gaussian_terms
    ways: list[Any] = [lambda t: t[:, :, None, ...], lambda t: t[:, None, ...]]
    g, u, v, w = terms(ops, kernel.lengthscale, *(_move(full, way, x_b, v_b, x_a, v_a) for way in ways))
    # w_a A_k - w_b B_k = w_a (A_k - B_k) + (w_a - w_b) B_k for each component k.
    left, right = w_a[:, :, None], w_a[:, None, :]
    total = left * right * gaussian_difference(ops, g, u, v, w)
    change = w_a - w_b
    change_left, change_right = change[:, :, None], change[:, None, :]
    total = total + left * change_right * gaussian_one_sided(ops, g, u)
    total = total + change_left * right * gaussian_one_sided(ops, g, v)
    total = total + change_left * change_right * ops.exp(g)
    return xp.sum(total, axis=(1, 2))


def _move(full: bool, shape: Any, x: Array, v: Array, x_after: Array, v_after: Array) -> Any:
    """Components at (x, v) and their move, shaped to meet all others."""
    if full:
        return FullMove(shape(x), shape(v), shape(x_after - x), shape(v_after - v))

    def coordinates(array: Array) -> tuple[Array, ...]:
        return tuple(shape(array[:, :, c]) for c in range(array.shape[2]))

    return Move(coordinates(x), coordinates(v), coordinates(x_after - x), coordinates(v_after - v))


def _normal_components(xp: Any, layout: Layout, rows: Rows, full: bool) -> tuple[Array, Array, Array]:
    """Means ``(p, K, d)``, variances or covariances and weights ``(p, K)`` of all components.

    Points have no variance. Covariances ``(p, K, d, d)`` of all, where some have a full one.
    """
    means: list[Array] = []
    variances: list[Array] = []
    weights: list[Array] = []
    for index, (kind, size, constant) in enumerate(layout.groups):
        x = rows[f"{index}.x"]
        means.append(x)
        if kind is FullNormals:
            variances.append(rows[f"{index}.c"])
        else:
            variance = rows[f"{index}.v"] if kind is Normals else xp.zeros_like(x)
            identity = xp.eye(x.shape[2], dtype=x.dtype, device=compat.device(x))
            variances.append(variance[..., None] * identity if full else variance)
        weights.append(rows[f"{index}.w"] if constant is None else constant + xp.zeros_like(x[:, :size, 0]))
    return xp.concat(means, axis=1), xp.concat(variances, axis=1), xp.concat(weights, axis=1)


# -- everything else -------------------------------------------------------------------------

_STEP = 0.05  # largest relative move of a parameter at which plain subtraction is extrapolated from
_LEVELS = 5
_TINY = 1e-30  # relative moves below are none; a parameter that is zero moves by any amount at once


def extrapolated(ops: Ops, form: ElementForm, a: Rows, b: Rows) -> Array:
    """Squared MMD between near predictions from that between predictions further apart.

    With m halfway between the parameters of two predictions and h half their difference,
    ``f(t) = |P(m + t h) - P(m - t h)|^2 / t^2`` is wanted at t = 1, where subtraction leaves nothing. It
    is smooth in t: Neville's scheme takes it there from moves of a twentieth of the parameters' own
    scales and less, to about 10 digits.
    """
    xp = ops.xp
    names = [name for name in a if name != "norm"]
    middle = {name: 0.5 * (a[name] + b[name]) for name in names}
    half = {name: 0.5 * (a[name] - b[name]) for name in names}
    move = stop_gradient(_relative_move(ops, form, middle, half))
    moved = move > _TINY
    reach = _STEP / xp.where(moved, move, xp.ones_like(move))
    usable = moved & (reach > 1.0)
    nodes = [xp.where(usable, reach * 0.5**level, xp.ones_like(reach)) for level in range(_LEVELS)]
    values = [_between(ops, form, middle, half, t) / t**2 for t in nodes]
    for width in range(1, _LEVELS):
        for i in range(_LEVELS - width):
            far, near = nodes[i], nodes[i + width]
            apart = xp.where(usable, far - near, xp.ones_like(far))
            better = ((1.0 - near) * values[i] - (1.0 - far) * values[i + 1]) / apart
            values[i] = xp.where(usable, better, values[i])
    return xp.where(moved, values[0], 0.0 * values[0])


def _between(ops: Ops, form: ElementForm, middle: Rows, half: Rows, t: Array) -> Array:
    """Squared MMD between the predictions at ``middle + t half`` and ``middle - t half``, by subtraction."""

    def at(sign: float) -> Rows:
        return {
            name: middle[name] + sign * ops.xp.reshape(t, (-1, *([1] * (value.ndim - 1)))) * value
            for name, value in half.items()
        }

    plus, minus = at(1.0), at(-1.0)
    norms = form.paired(ops, plus, plus) + form.paired(ops, minus, minus)
    return norms - 2.0 * form.paired(ops, plus, minus)


def _relative_move(ops: Ops, form: ElementForm, middle: Rows, half: Rows) -> Array:
    """Largest change of a parameter, in units in which the pairing changes by about itself."""
    xp = ops.xp
    scale = smallest_scale(form.kernel)
    largest: Array = None
    for index, (kind, _, constant) in enumerate(form.left.groups):
        own, change = rows_under(middle, f"{index}."), rows_under(half, f"{index}.")
        ratios: list[Array] = []
        if kind is Poissons:
            rate = ops.maximum(own["r"], _TINY + 0.0 * own["r"])
            ratios.append(ops.abs(change["r"]) / ops.minimum(rate, ops.sqrt(rate)))
        else:
            laplace = kind is Laplaces
            spread, moved = (t["s"] if laplace else t["v"][:, :, 0] for t in (own, change))
            spread = ops.maximum(spread, _TINY + 0.0 * spread)
            ratios.append(ops.abs(moved) / spread)
            width = spread if laplace else ops.sqrt(spread)
            width = ops.minimum(width, scale + 0.0 * width)
            ratios.append(ops.abs(change["x"][:, :, 0]) / width)
        if constant is None:
            most = xp.max(ops.abs(own["w"]), axis=1)[:, None]
            ratios.append(ops.abs(change["w"]) / ops.maximum(most, _TINY + 0.0 * most))
        for ratio in ratios:
            greatest = xp.max(ratio, axis=1)
            largest = greatest if largest is None else ops.maximum(largest, greatest)
    return largest


def smallest_scale(kernel: Kernel) -> Any:
    """Smallest length scale in a kernel; 1 where it has none."""
    if isinstance(kernel, Sum):
        return min(smallest_scale(k) for k in kernel.kernels)
    if isinstance(kernel, Scaled):
        return smallest_scale(kernel.kernel)
    return getattr(kernel, "lengthscale", 1.0)
