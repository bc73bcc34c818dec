"""Scores that only NumPy can evaluate, made to work in every array library, with derivatives.

Derivatives by parameters, which have no closed form in general, are five-point differences; those by targets
are exact.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from wellcal._arrays.chunks import rows_within, told_chunks
from wellcal._arrays.derivatives import right_derivatives
from wellcal._arrays.domains import real, simplex
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    is_floating,
    is_jax,
    is_numpy,
    is_torch,
    namespace,
    stop_gradient,
    widen,
)
from wellcal._arrays.special import on_numpy, quiet
from wellcal.predictions import Predictions
from wellcal.predictions.fields import Parameter

RowFunction = Callable[[Any, NDArray], NDArray]
"""Scores ``(n,)`` of a NumPy batch and its targets ``(n,)``, each by its own row."""

_ENTRIES = 32  # numbers that a row may need
_STEP = 1e-3  # of differences, relative: the error of order h^4 is then as small as rounding


def by_rows(function: RowFunction) -> Callable[[Any, Array], Array]:
    """Decorator of a NumPy function of predictions and targets, row by row.

    The result takes arrays of any library, under ``jax.jit`` too, and has derivatives by parameters and
    targets.

    Examples
    --------
    >>> from wellcal.predictions import Normal
    >>> @by_rows
    ... def squared_error(batch, y):
    ...     return (batch.loc - y) ** 2
    >>> squared_error(Normal(np.zeros(2), 1.0), np.array([1.0, 2.0]))
    array([1., 4.])
    """

    @wraps(function)
    def rule(predictions: Any, y: Array) -> Array:
        n = len(predictions)
        if n <= rows_within(_ENTRIES) or not is_numpy(namespace(y, predictions.like)):
            return _evaluated(function, predictions, y)
        chunks = told_chunks(n, _ENTRIES)
        return np.concatenate([_evaluated(function, predictions[rows], y[rows]) for rows in chunks])

    return rule


def _evaluated(function: RowFunction, predictions: Predictions, y: Array) -> Array:
    given: list[Array] = []
    predictions.map_arrays(given.append)
    leaves = [widen(leaf) if is_floating(leaf) else leaf for leaf in given]
    known = list(_leaves(predictions))
    y, n = widen(y), len(predictions)

    def rebuilt(arrays: tuple[NDArray, ...]) -> Any:
        rest = iter(arrays)
        return predictions.map_arrays(lambda _: _as_double(next(rest)))

    @quiet
    def value(*arrays: NDArray) -> NDArray:
        return function(rebuilt(arrays[:-1]), _as_double(arrays[-1]))

    @quiet
    def target_slope(*arrays: NDArray) -> NDArray:
        return 2.0 * rebuilt(arrays[:-1]).cdf(_as_double(arrays[-1])) - 1.0

    def evaluate(*arrays: Array) -> Array:
        return on_numpy(value, *arrays, shape=(n,))

    def derivatives(arrays: tuple[Array, ...]) -> list[Array]:
        found = [
            on_numpy(_difference(value, k, known[k]), *arrays, shape=tuple(leaf.shape))
            for k, leaf in enumerate(leaves)
        ]
        if predictions.continuous:
            by_target = on_numpy(target_slope, *arrays, shape=(n,))
        else:
            by_target = 0.0 * stop_gradient(arrays[-1])  # counts cannot move a little
        return [*found, by_target]

    xp = namespace(y)
    if is_jax(xp):
        return _in_jax(evaluate, derivatives, leaves, y)
    result = evaluate(*leaves, y)
    return _in_torch(result, derivatives, leaves, y) if is_torch(xp) else result


def _as_double(array: NDArray) -> NDArray:
    """`array` in double precision; positions stay whole numbers."""
    return np.asarray(array, dtype=np.float64 if np.asarray(array).dtype.kind == "f" else None)


def _in_torch(result: Array, derivatives: Any, leaves: list[Array], y: Array) -> Array:
    arrays = (*leaves, y)
    if not any(a.requires_grad for a in arrays) or not sys.modules["torch"].is_grad_enabled():
        return result
    for array, slope in zip(arrays, derivatives(arrays), strict=True):
        if array.requires_grad:
            moving = right_derivatives(array, 1, "the parameters of this score")
            result = result + _row_sums(slope * (moving - array.detach()))
    return result


def _in_jax(evaluate: Any, derivatives: Any, leaves: list[Array], y: Array) -> Array:
    jax = sys.modules["jax"]

    @jax.custom_jvp
    def score(*arrays: Array) -> Array:
        return evaluate(*arrays)

    @score.defjvp
    def slope(primals: Any, tangents: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        moved = sum(_row_sums(d * t) for d, t in zip(derivatives(primals), tangents, strict=True))
        return score(*primals), moved

    return score(*leaves, y)


def _row_sums(x: Array) -> Array:
    """Sums over all axes but the first."""
    return x if x.ndim == 1 else namespace(x).sum(x, axis=tuple(range(1, x.ndim)))


# -- differences -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Leaf:
    """An array of a batch: what it was declared with, and the position of the array that is its unit."""

    declared: Parameter
    unit: int | None

    def step(self, values: NDArray, arrays: list[NDArray], leaf: NDArray) -> NDArray:
        """How far to move, for a column of the array."""
        if self.unit is not None:
            unit = arrays[self.unit]
            return _STEP * np.where(unit > 0, unit, 1.0)
        if self.declared.domain is simplex:
            return np.full(len(values), _STEP)
        if self.declared.domain is not real:
            return _STEP * np.where(values > 0, values, 0.01)
        if leaf.ndim == 1:
            return _STEP * np.maximum(np.abs(values), 1.0)
        spread = np.ptp(leaf.reshape(len(values), -1), axis=1)
        return _STEP * np.where(spread > 0, spread, 1.0)

    @property
    def one_sided(self) -> bool:
        """Whether a value of zero can only grow."""
        return self.declared.domain not in (real, simplex)


def _leaves(batch: Predictions, start: int = 0) -> Iterator[_Leaf]:
    """Arrays of a batch in the order in which its `map_arrays` meets them."""
    names = [name for name in batch.array_fields if getattr(batch, name) is not None]
    for name in names:
        declared = batch.parameter_fields.get(name, Parameter())
        has_unit = declared.unit in names
        yield _Leaf(declared, start + names.index(declared.unit) if has_unit else None)  # pyright: ignore[reportArgumentType]
    start += len(names)
    for field in batch.batch_fields:
        for child in getattr(batch, field):
            below = list(_leaves(child, start))
            start += len(below)
            yield from below


def _difference(value: Callable[..., NDArray], k: int, known: _Leaf) -> Callable[..., NDArray]:
    """Derivatives of row functions by argument k, one trailing entry at a time."""

    @quiet
    def slope(*given: NDArray) -> NDArray:
        arrays = [_as_double(a) for a in given]
        leaf = arrays[k]
        if leaf.dtype.kind != "f":
            return np.zeros(leaf.shape)  # positions do not move
        flat = leaf.reshape(len(leaf), -1)
        out = np.empty_like(flat)

        def at(column: int, shift: NDArray) -> NDArray:
            moved = flat.copy()
            moved[:, column] += shift
            return value(*arrays[:k], moved.reshape(leaf.shape), *arrays[k + 1 :])

        for column in range(flat.shape[1]):
            h = known.step(flat[:, column], arrays, leaf)
            centred = (
                8.0 * (at(column, h) - at(column, -h)) - (at(column, 2.0 * h) - at(column, -2.0 * h))
            ) / 12.0
            edge = (flat[:, column] == 0) & known.one_sided
            forward = 2.0 * at(column, h) - 1.5 * at(column, 0.0 * h) - 0.5 * at(column, 2.0 * h)
            out[:, column] = np.where(edge, forward, centred) / h
        return out.reshape(leaf.shape)

    return slope
