"""Tiles and blocks in JAX: one compiled loop over pieces of equal shape, whatever the number of cases.

Sums are compensated, so that single precision loses little. Each piece is recomputed in the backward
pass, so that its memory does not grow with the number of pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from wellcal._arrays.chunks import triangle_tiles
from wellcal._arrays.namespaces import Array, Namespace, NDArray, float64
from wellcal._arrays.rows import Rows, arrays_of, map_rows, with_arrays
from wellcal.engines.reductions import Sums
from wellcal.problem.problem import Problem

Evaluated: TypeAlias = tuple[Array, list[tuple[Array, Array]]]
"""The total of a piece, and its row sums with where each begins."""

Evaluation: TypeAlias = Callable[[Rows, Array], Evaluated]
"""From rows and the description of a piece to its sums."""

Carry: TypeAlias = tuple[Array, Array, Array]
"""What the loop takes along: the total, what was lost in rounding it, and row sums."""


def scan_tiles(problem: Problem, block_size: int, count: int, size: int) -> Sums:
    """Sums over the triangles of `count` consecutive blocks, by square tiles of `size` cases."""
    jax, jnp = _jax()

    # First row, first column, and the end of the block.
    starts = [
        (i.start, j.start, (b + 1) * block_size)
        for b in range(count)
        for i, j in triangle_tiles(b * block_size, (b + 1) * block_size, size, size)
    ]

    def tile(rows: Rows, start: Array) -> Evaluated:
        i, j, stop = start[0], start[1], start[2]
        h = problem.tile(_part(rows, i, size), _part(rows, j, size))
        left, right = i + jnp.arange(size)[:, None], j + jnp.arange(size)[None, :]
        h = jnp.where((left < right) & (right < stop), h, 0.0)
        along = jnp.sum(h, axis=1)
        return jnp.sum(along), [(i, along), (j, jnp.sum(jax.lax.stop_gradient(h), axis=0))]

    return _scan(problem, tile, np.array(starts, dtype=np.int32).reshape(-1, 3), problem.n + size)


def scan_listed_blocks(problem: Problem, block_size: int, count: int, at_once: int) -> Sums:
    """The same by lists of pairs, whole blocks at a time, about `at_once` pairs."""
    jax, jnp = _jax()

    inner_i, inner_j = np.triu_indices(block_size, 1)
    blocks = min(count, max(1, at_once // len(inner_i)))
    cases = blocks * block_size

    def some_blocks(rows: Rows, first: Array) -> Evaluated:
        part = _part(rows, first * block_size, cases)
        h = problem.paired(_members(part, block_size, inner_i), _members(part, block_size, inner_j))
        h = jnp.reshape(h, (blocks, -1))
        complete = first + jnp.arange(blocks) < count
        h = jnp.where(complete[:, None], h, 0.0)
        fixed = jax.lax.stop_gradient(h)
        sums = jnp.zeros((blocks, block_size), h.dtype).at[:, inner_i].add(fixed).at[:, inner_j].add(fixed)
        return jnp.sum(jnp.sum(h, axis=1)), [(first * block_size, jnp.reshape(sums, (-1,)))]

    return _scan(problem, some_blocks, np.arange(0, count, blocks, dtype=np.int32), problem.n + cases)


def _jax() -> tuple[Any, Namespace]:
    """JAX and its NumPy, whose own annotations leave type parameters open."""
    import jax
    import jax.numpy as jnp

    return jax, jnp


def _part(rows: Rows, start: Array, size: int) -> Rows:
    jax, _ = _jax()
    return map_rows(lambda value: jax.lax.dynamic_slice_in_dim(value, start, size, axis=0), rows)


def _members(rows: Rows, block_size: int, inner: NDArray) -> Rows:
    """The same members of each of some blocks, one after another."""

    def pick(value: Array) -> Array:
        shape = value.shape[1:]
        return value.reshape(-1, block_size, *shape)[:, inner].reshape(-1, *shape)

    return map_rows(pick, rows)


def _scan(problem: Problem, evaluation: Evaluation, descriptions: NDArray, length: int) -> Sums:
    jax, jnp = _jax()

    def padded(value: Array) -> Array:
        # Pieces may reach beyond the last case; what stands there is masked, but must be valid.
        return jnp.concatenate([value, jnp.repeat(value[:1], length - problem.n, axis=0)])

    arrays = [padded(array) for array in arrays_of(problem.rows)]

    def evaluate(given: list[Array], description: Array) -> Evaluated:
        return evaluation(with_arrays(problem.rows, given), description)

    recomputed: Callable[[list[Array], Array], Evaluated] = jax.checkpoint(evaluate)

    def step(carry: Carry, description: Array) -> tuple[Carry, None]:
        total, compensation, sums = carry
        value, parts = recomputed(arrays, description)
        new = total + value
        lost = jnp.where(jnp.abs(total) >= jnp.abs(value), (total - new) + value, (value - new) + total)
        for start, part in parts:
            before = jax.lax.dynamic_slice_in_dim(sums, start, part.shape[0])
            after = before + jax.lax.stop_gradient(part)
            sums = jax.lax.dynamic_update_slice_in_dim(sums, after, start, axis=0)
        return (new, compensation + jax.lax.stop_gradient(lost), sums), None

    dtype = float64(problem.xp)
    zero = jnp.zeros((), dtype)
    (total, compensation, sums), _ = jax.lax.scan(
        step, (zero, zero, jnp.zeros(length, dtype)), jnp.asarray(descriptions)
    )
    return Sums(total + compensation, sums[: problem.n])
