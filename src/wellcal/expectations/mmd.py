"""The MMD between predictions, ``d^2 = <P - Q, P - Q>_k``, from pairings.

Expanding the square subtracts numbers of size one: of predictions that differ by a relative 1e-8 nothing
would be left. Weights on a finite support and mean features are subtracted before they are multiplied.
Parameters of distributions are moved further apart, to where subtraction is harmless, and the result is
taken back from there by extrapolation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple, cast

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.equality import first_equal
from wellcal._arrays.memo import Memo
from wellcal._arrays.namespaces import (
    Array,
    device_of,
    is_jax,
    is_numpy,
    is_traced,
    namespace,
    stop_gradient,
    to_numpy,
)
from wellcal._arrays.ops import Ops
from wellcal._arrays.rows import Rows, arrays_of, map_both, map_rows
from wellcal.expectations.atoms import LOWERINGS
from wellcal.expectations.bilinear import ElementForm, FiniteForm, Form, Measure, WeightRows, cost_of, room_of
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.moves import MOVE, is_movable, is_smooth, largest_move, summands
from wellcal.expectations.plans import Notes, plan
from wellcal.kernels.base import Kernel
from wellcal.predictions import Predictions

_COARSE = 1e-3  # of the squared norms: rounding is 1e-13 of anything that is compared with this


class NormedRows(NamedTuple):
    """Rows of predictions with their squared norms <P, P>."""

    norm: Array
    inner: Rows


def mean_discrepancy(
    kernel: Kernel, predictions: Predictions, expectations: str | Lowering, notes: Notes
) -> tuple[MeanDiscrepancy, NormedRows]:
    """Prepare the squared MMD for a batch: the distance, and the rows it reads.

    A batch in NumPy remembers what was lowered: the default length scale, a measure and the parts of a test
    all ask for it.
    """
    if predictions.ops.differentiable:
        return _prepared(kernel, predictions, expectations, notes)
    key = (kernel, expectations, LOWERINGS.find(type(predictions)))

    def prepare() -> tuple[MeanDiscrepancy, NormedRows, Notes]:
        own = Notes()
        return (*_prepared(kernel, predictions, expectations, own), own)

    distance, rows, own = _discrepancies.get(predictions, key, prepare)
    notes.add(own)
    return distance, rows


_discrepancies: Memo[tuple[MeanDiscrepancy, NormedRows, Notes]] = Memo()


def _prepared(
    kernel: Kernel, predictions: Predictions, expectations: str | Lowering, notes: Notes
) -> tuple[MeanDiscrepancy, NormedRows]:
    scheme = plan(kernel, [predictions], expectations=expectations, notes=notes)
    rows = scheme.rows([(1.0, predictions)])
    form = scheme.form(rows, rows)
    if isinstance(form, FiniteForm) and form.gram is None and is_numpy(predictions.xp):
        finite, weights = _in_fewer_coordinates(form, cast("WeightRows", rows))
        norms = finite.paired(predictions.ops, weights, weights)
        return MeanDiscrepancy(finite, movable=False), NormedRows(norms, weights)
    movable = isinstance(form, ElementForm) and is_movable(form.kernel, rows)
    return MeanDiscrepancy(form, movable), NormedRows(form.paired(predictions.ops, rows, rows), rows)


def _in_fewer_coordinates(form: FiniteForm, rows: WeightRows) -> tuple[FiniteForm, WeightRows]:
    """The same inner products and differences, of n vectors in n coordinates: those of a rotation."""
    n, features = rows.weights.shape
    if max(_FEW_FEATURES, 2 * n) > features:
        return form, rows
    triangle = np.asarray(cast("Any", np.linalg.qr(rows.weights.T, mode="r")))
    rotated = np.ascontiguousarray(triangle.T)
    return FiniteForm(None, n), WeightRows(rotated[first_equal(rows.weights)])


_FEW_FEATURES = 256  # up to here a rotation gains nothing


@dataclass(frozen=True)
class MeanDiscrepancy:
    """Squared MMD by expanding the square, and once more without cancellation for near predictions.

    Attributes
    ----------
    form
        The pairing.
    movable
        Whether parameters of the predictions can be moved apart.
    relative
        Whether near predictions are looked at once more. Without, the error is that of subtraction, a few
        units in the last place of the squared norms.
    """

    form: Form
    movable: bool
    relative: bool = True
    degree: float = 2.0

    def within(self, rows: NormedRows, square: object) -> MeanDiscrepancy:
        """The same for whoever compares squared distances with `square`, by the shortest way that serves."""
        if not isinstance(square, float) or is_traced(rows.norm) or rows.norm.shape[0] == 0:
            return self
        enough = square >= _COARSE * float(to_numpy(namespace(rows.norm).max(rows.norm)))
        return replace(self, relative=False) if enough else self

    @property
    def width(self) -> int:
        """That of the pairing."""
        return self.form.width

    @property
    def cost(self) -> float:
        """That of the pairing, and an evaluation for the squared norms."""
        return 1.0 + cost_of(self.form)

    @property
    def room(self) -> int:
        """That of the pairing, and the squared norms."""
        return 1 + room_of(self.form)

    @property
    def calls_user(self) -> bool:
        """Whether the pairing does."""
        return self.form.calls_user

    def tile(self, ops: Ops, a: NormedRows, b: NormedRows) -> Array:
        """All pairs of rows."""
        if not self.relative:
            return _by_subtraction(
                ops, a.norm[:, None], b.norm[None, :], self.form.tile(ops, a.inner, b.inner)
            )
        norms = a.norm[:, None] + b.norm[None, :]
        i, j = ops.xp.broadcast_arrays(_positions(a)[:, None], _positions(b)[None, :])
        return self._squared(ops, norms, self.form.tile(ops, a.inner, b.inner), a, b, i, j)

    def paired(self, ops: Ops, a: NormedRows, b: NormedRows) -> Array:
        """Matching rows."""
        if not self.relative:
            return _by_subtraction(ops, a.norm, b.norm, self.form.paired(ops, a.inner, b.inner))
        i = _positions(a)
        return self._squared(ops, a.norm + b.norm, self.form.paired(ops, a.inner, b.inner), a, b, i, i)

    def _squared(
        self, ops: Ops, norms: Array, pairing: Array, a: NormedRows, b: NormedRows, i: Array, j: Array
    ) -> Array:
        xp = ops.xp
        squared = norms - 2.0 * pairing
        # At the limit, subtraction leaves three quarters of the digits.
        near = squared < float(xp.finfo(squared.dtype).eps) ** 0.25 * norms

        def again(i: Array, j: Array, value: Array) -> Array:
            flat_i, flat_j, flat = (xp.reshape(t, (-1,)) for t in (i, j, value))
            entries = 0 if is_jax(xp) else 16 * self.form.width  # what is compiled must not be unrolled
            parts = [
                self._difference(ops, _take(a.inner, flat_i[some]), _take(b.inner, flat_j[some]), flat[some])
                for some in in_chunks(flat.shape[0], entries)
            ]
            return xp.reshape(xp.concat(parts), i.shape)

        result = ops.amend(squared, near, (i, j, squared), again)
        return ops.maximum(result, 0.0 * result)

    def _difference(self, ops: Ops, a: Rows, b: Rows, value: Array) -> Array:
        """Squared MMD of matching rows that are near, given what subtraction made of it."""
        if isinstance(self.form, FiniteForm):
            return _between_weights(ops, a, b)
        if isinstance(self.form, ElementForm) and self.movable:
            return extrapolated(ops, self.form, a, b, value)
        return _unless_equal(ops, a, b, value)


def _by_subtraction(ops: Ops, a: Array, b: Array, pairing: Array) -> Array:
    """``|P|^2 + |Q|^2 - 2 <P, Q>``, not below zero."""
    if is_numpy(ops.xp):  # in the place of the pairing, which nobody else has
        pairing *= -2.0
        pairing += a
        pairing += b
        return np.maximum(pairing, 0.0, out=pairing)
    squared = a + b - 2.0 * pairing
    return ops.maximum(squared, 0.0 * squared)


def _positions(rows: NormedRows) -> Array:
    return namespace(rows.norm).arange(rows.norm.shape[0], device=device_of(rows.norm))


def _take(rows: Rows, index: Array) -> Rows:
    return map_rows(lambda value: namespace(value).take(value, index, axis=0), rows)


def _between_weights(ops: Ops, a: WeightRows, b: WeightRows) -> Array:
    change = a.weights - b.weights
    image = change if a.image is None or b.image is None else a.image - b.image
    return ops.xp.sum(change * image, axis=1)


def _unless_equal(ops: Ops, a: Rows, b: Rows, value: Array) -> Array:
    """Zero for equal predictions at least."""
    xp = ops.xp
    same: list[Array] = []
    for left, right in zip(arrays_of(a), arrays_of(b), strict=True):
        rest = math.prod(left.shape[1:])  # -1 has no meaning where no pair is near
        same.append(xp.all(xp.reshape(left == right, (-1, rest) if rest else (0, 0)), axis=1))
    return xp.where(reduce(xp.logical_and, same), 0.0 * value, value)


# -- extrapolation ---------------------------------------------------------------------------

_LEAST = 1e-30  # smaller changes count as zero
_NODES = (1.0, 0.75, 0.5, 0.3)  # parts of the largest change
_EVEN = (0, 2, 4, 6)  # powers of t in f(t), which is even
_KINKED = (0, 2, 3, 4)  # and not smooth at 0 where pairings have a kink |z|^5: Laplace, under a Laplacian


def extrapolated(ops: Ops, form: ElementForm, a: Measure, b: Measure, value: Array) -> Array:
    """Squared MMD between near predictions from that between predictions further apart.

    With m halfway between the parameters of two predictions and h half their difference,
    ``f(t) = |P(m + t h) - P(m - t h)|^2 / t^2`` is wanted at t = 1, where subtraction leaves nothing. It
    is smooth in t, and known well where t h is a few hundredths of the parameters' own scales: a polynomial
    in t takes it from there to t = 1, to about 10 digits. Predictions whose parameters are far apart
    although they are near, such as mixtures in another order, keep `value`.
    """
    xp = ops.xp
    middle, half = map_both(lambda x, y: 0.5 * (x + y), a, b), map_both(lambda x, y: 0.5 * (x - y), a, b)
    move = stop_gradient(largest_move(ops, form.kernel, middle, half))
    powers = _EVEN if all(map(is_smooth, summands(form.kernel))) else _KINKED
    coefficients = np.linalg.inv(np.array(_NODES) ** np.array(powers)[:, None]).tolist()

    def from_afar(index: Array, move: Array) -> Array:
        reach = MOVE / ops.minimum(ops.maximum(move, _LEAST + 0.0 * move), MOVE + 0.0 * move)
        t = [node * reach for node in _NODES]
        apart = _apart(ops, form, _take(middle, index), _take(half, index), xp.stack(t))
        total: Array = 0.0
        for k, row in enumerate(coefficients):
            weight = sum(entry * reach**-power for entry, power in zip(row, powers, strict=True))
            total = total + weight / t[k] ** 2 * apart[k, :]
        return total

    start = xp.where(move > 0.0, value, 0.0 * value)
    index = xp.arange(value.shape[0], device=device_of(value))
    return ops.amend(start, (move > 0.0) & (move < MOVE), (index, move), from_afar)


def _apart(ops: Ops, form: ElementForm, middle: Measure, half: Measure, t: Array) -> Array:
    """Squared MMD between the predictions at ``middle + t half`` and ``middle - t half``, by subtraction.

    For several t ``(k, p)``, and all in one evaluation: a program that is compiled stays small.
    """
    xp = ops.xp

    def rows(signs: tuple[float, ...]) -> Measure:
        moves = xp.concat([sign * t for sign in signs])

        def moved(centre: Array, step: Array) -> Array:
            by = xp.reshape(moves, (*moves.shape, *([1] * (step.ndim - 1))))
            return xp.reshape(centre + by * step, (-1, *step.shape[1:]))

        return map_both(moved, middle, half)

    values = form.paired(ops, rows((1.0, -1.0, 1.0)), rows((1.0, -1.0, -1.0)))
    plus, minus, between = (xp.reshape(values, (3, *t.shape))[k, ...] for k in range(3))
    return plus + minus - 2.0 * between
