"""Tiles and blocks in JAX: compiled loops over pieces of equal shape, whatever the number of cases.

Rows are padded to one of a few lengths, and what a program is compiled for is the structure of the problem:
nearby numbers of cases and other length scales find the program that there is. Where values are known, the
loop takes as many steps as there are pieces. Under a transformation of the user's, ``jit`` or ``grad``, it is
one that JAX can differentiate; each piece is recomputed in the backward pass, so that its memory does not
grow with the number of pairs.

Sums are compensated, so that single precision loses little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeAlias

import numpy as np

from wellcal._arrays.namespaces import Array, Namespace, NDArray, float64, is_traced, to_numpy
from wellcal._arrays.progress import reporter
from wellcal._arrays.rows import Rows, arrays_of, map_rows, with_arrays
from wellcal.engines.pieces import PAIRS
from wellcal.engines.reductions import Sums
from wellcal.engines.structures import Structure, split
from wellcal.problem.problem import Problem

Evaluated: TypeAlias = tuple[Array, list[tuple[Array, Array]]]
"""The total of a piece, and its row sums with where each begins."""

Carry: TypeAlias = tuple[Array, Array, Array]
"""What the loop takes along: the total, what was lost in rounding it, and row sums."""

_SMALLEST = 64  # cases of a tile: smaller ones are not worth a step of the loop
_PARTS = 4  # tiles that a power of two of cases is cut into; and long lengths between it and the next
UNTOLD = 1 << 26  # pairs: a part of a second, after which progress is told
_LONG = 65_536  # cases, from which their memory counts


def scan_tiles(problem: Problem, block_size: int, count: int, largest: int) -> Sums:
    """Sums over the triangles of `count` consecutive blocks, by square tiles of at most `largest` cases."""
    size = min(largest, max(_SMALLEST, _power_of_two(block_size) // _PARTS))
    # First row, first column, and the end of the block.
    i, j = (size * index for index in np.triu_indices(-(-block_size // size)))
    inner = np.stack([i, j, np.full_like(i, block_size)], axis=1)
    starts = inner[None, :, :] + block_size * np.arange(count)[:, None, None]
    return _run(problem, _Tiles(size), starts.reshape(-1, 3), size, size**2)


def scan_blocks(problem: Problem, block_size: int, count: int, at_once: int) -> Sums:
    """Return sums over the triangles of `count` blocks, whole blocks at a time, about `at_once` pairs."""
    blocks = _power_of_two(min(count, max(1, at_once // block_size**2)))
    # First block, and how many there are.
    first = np.arange(0, count, blocks)
    descriptions = np.stack([first, np.full_like(first, count)], axis=1)
    return _run(
        problem, _Blocks(block_size, blocks), descriptions, blocks * block_size, blocks * block_size**2
    )


def _power_of_two(count: int) -> int:
    """The largest that is not larger."""
    return 1 << (max(1, count).bit_length() - 1)


def _length(n: int) -> int:
    """One of few lengths: a power of two, and above 65,536 at most a quarter more than n.

    Examples
    --------
    >>> [_length(n) for n in (1000, 1001, 1025, 70_000)]
    [1024, 1024, 2048, 81920]
    """
    power = _power_of_two(n)
    step = power if n <= _LONG else power // _PARTS
    return -(-n // step) * step


# -- pieces ------------------------------------------------------------------------------------


class _Kind(Protocol):
    """A kind of pieces, a value that can be hashed."""

    def evaluate(self, problem: Problem, rows: Rows, description: Array) -> Evaluated:
        """Sums of a piece."""
        ...


@dataclass(frozen=True)
class _Tiles:
    """Square tiles; described by first row, first column, and the end of their block."""

    size: int

    def evaluate(self, problem: Problem, rows: Rows, description: Array) -> Evaluated:
        jax, jnp = _jax()
        i, j, stop = description[0], description[1], description[2]
        h = problem.h(_part(rows, i, self.size), _part(rows, j, self.size))
        left, right = i + jnp.arange(self.size)[:, None], j + jnp.arange(self.size)[None, :]
        h = jnp.where((left < right) & (right < stop), h, 0.0)
        along = jnp.sum(h, axis=1)
        return jnp.sum(along), [(i, along), (j, jnp.sum(jax.lax.stop_gradient(h), axis=0))]


@dataclass(frozen=True)
class _Blocks:
    """All pairs of several blocks; described by the first block, and how many there are in all."""

    block_size: int
    blocks: int

    def evaluate(self, problem: Problem, rows: Rows, description: Array) -> Evaluated:
        jax, jnp = _jax()
        first, count = description[0], description[1]
        part = _part(rows, first * self.block_size, self.blocks * self.block_size)
        # No case comes after the last one, and none before the first.
        h = problem.h(self._members(part, slice(0, -1)), self._members(part, slice(1, None)))
        complete = first + jnp.arange(self.blocks) < count
        above = np.triu(np.ones(h.shape[1:], dtype=bool))
        h = jnp.where(complete[:, None, None] & above, h, 0.0)
        fixed = jax.lax.stop_gradient(h)
        zeros = jnp.zeros((self.blocks, self.block_size), h.dtype)
        sums = zeros.at[:, :-1].add(fixed.sum(axis=2)).at[:, 1:].add(fixed.sum(axis=1))
        return jnp.sum(jnp.sum(h, axis=(1, 2))), [(first * self.block_size, jnp.reshape(sums, (-1,)))]

    def _members(self, rows: Rows, some: slice) -> Rows:
        """Members of each block."""
        return map_rows(lambda v: v.reshape(self.blocks, self.block_size, *v.shape[1:])[:, some], rows)


def _jax() -> tuple[Any, Namespace]:
    """JAX and its NumPy, whose own annotations leave type parameters open."""
    import jax
    import jax.numpy as jnp

    return jax, jnp


def _part(rows: Rows, start: Array, size: int) -> Rows:
    jax, _ = _jax()
    return map_rows(lambda value: jax.lax.dynamic_slice_in_dim(value, start, size, axis=0), rows)


# -- programs ----------------------------------------------------------------------------------

Evaluation: TypeAlias = Callable[[list[Array], list[Array], Array], Evaluated]
"""From numbers, arrays of rows and the description of a piece to its sums."""


@dataclass(frozen=True)
class _Program:
    """What is compiled, apart from numbers: a value by which JAX finds it again."""

    structure: Structure
    kind: _Kind
    xp: Namespace

    def evaluate(self, numbers: list[Array], arrays: list[Array], description: Array) -> Evaluated:
        """Sums of a piece."""
        problem = self.structure.problem(numbers, arrays, self.xp)
        return self.kind.evaluate(problem, problem.rows, description)


def _run(problem: Problem, kind: _Kind, descriptions: NDArray, reach: int, pairs: int) -> Sums:
    """Sums over the pieces that are described, each of which reads `reach` cases in a row and has `pairs`."""
    length = _length(problem.n + reach)
    arrays = [_padded(array, length) for array in arrays_of(problem.rows)]
    pieces = descriptions.astype(np.int32)
    total, sums = _by_program(problem, kind, arrays, pieces, pairs) or _once(problem, kind, arrays, pieces)
    return Sums(total, sums[: problem.n] if is_traced(sums) else to_numpy(sums)[: problem.n])


def _padded(array: Array, length: int) -> Array:
    """Pieces may reach beyond the last case: what stands there is masked, but must be valid."""
    xp: Namespace = np if type(array) is np.ndarray else _jax()[1]
    return xp.concatenate([array, xp.repeat(array[:1], length - array.shape[0], axis=0)])


def _by_program(
    problem: Problem, kind: _Kind, arrays: list[Array], pieces: NDArray, pairs: int
) -> tuple[Array, Array] | None:
    """The total and row sums by a program that is compiled once; None where none can be."""
    jax, _ = _jax()
    found = split(problem)
    if found is None:
        return None
    structure, numbers = found
    program = _Program(structure, kind, problem.xp)
    try:
        if is_traced(*arrays, *numbers):
            return _scanned()(program, numbers, arrays, pieces)
        steps = len(pieces)
        room = np.zeros((_length(steps) - steps, pieces.shape[1]), np.int32)
        return _in_parts(program, numbers, arrays, np.concatenate([pieces, room]), steps, pairs)
    except jax.errors.JAXTypeError:
        return None  # a closed form of a user's own looks at the value of a length scale


def _in_parts(
    program: _Program, numbers: list[Array], arrays: list[Array], pieces: NDArray, steps: int, pairs: int
) -> tuple[Array, Array]:
    """The compiled loop, broken off now and then where it takes long, to tell how far it is."""
    told, at_a_time = reporter(), max(1, UNTOLD // pairs)
    dtype = float64(_jax()[1])
    zero: NDArray = np.zeros((), dtype)
    carry: Any = (zero, zero, np.zeros(arrays[0].shape[0], dtype))
    total: Array = zero
    told(PAIRS, 0, steps * pairs)
    for first in range(0, steps, at_a_time):
        last = min(first + at_a_time, steps)
        total, carry = _looped()(program, numbers, arrays, pieces, first, last, carry)
        if steps > at_a_time:
            total.block_until_ready()
        told(PAIRS, last * pairs, steps * pairs)
    return total, carry[2]


def _once(problem: Problem, kind: _Kind, arrays: list[Array], pieces: NDArray) -> tuple[Array, Array]:
    """The same by a program for these numbers alone."""

    def evaluate(_: list[Array], given: list[Array], description: Array) -> Evaluated:
        return kind.evaluate(problem, with_arrays(problem.rows, given), description)

    return _scan(evaluate, [], arrays, pieces)


@cache
def _looped() -> Any:
    """A compiled loop over any of the pieces, which goes on from what was found before."""
    jax, _ = _jax()

    def run(
        program: _Program,
        numbers: list[Array],
        arrays: list[Array],
        pieces: Array,
        first: Array,
        last: Array,
        carry: Carry,
    ) -> tuple[Array, Carry]:
        def step(k: Array, carry: Carry) -> Carry:
            return _added(carry, program.evaluate(numbers, arrays, pieces[k]))

        found = jax.lax.fori_loop(first, last, step, carry)
        return _finished(found)[0], found

    return jax.jit(run, static_argnums=0)


@cache
def _scanned() -> Any:
    """A compiled loop with derivatives, one step for each piece."""
    jax, _ = _jax()

    def run(
        program: _Program, numbers: list[Array], arrays: list[Array], pieces: Array
    ) -> tuple[Array, Array]:
        return _scan(program.evaluate, numbers, arrays, pieces)

    return jax.jit(run, static_argnums=0)


def _scan(
    evaluate: Evaluation, numbers: list[Array], arrays: list[Array], pieces: Array
) -> tuple[Array, Array]:
    jax, jnp = _jax()
    recomputed: Evaluation = jax.checkpoint(evaluate)

    def step(carry: Carry, description: Array) -> tuple[Carry, None]:
        return _added(carry, recomputed(numbers, arrays, description)), None

    return _finished(jax.lax.scan(step, _start(arrays), jnp.asarray(pieces))[0])


def _start(arrays: list[Array]) -> Carry:
    _, jnp = _jax()
    dtype = float64(jnp)
    zero = jnp.zeros((), dtype)
    return zero, zero, jnp.zeros(arrays[0].shape[0], dtype)


def _added(carry: Carry, evaluated: Evaluated) -> Carry:
    """The carry after one more piece."""
    jax, jnp = _jax()
    total, compensation, sums = carry
    value, parts = evaluated
    new = total + value
    lost = jnp.where(jnp.abs(total) >= jnp.abs(value), (total - new) + value, (value - new) + total)
    for start, part in parts:
        before = jax.lax.dynamic_slice_in_dim(sums, start, part.shape[0])
        after = before + jax.lax.stop_gradient(part)
        sums = jax.lax.dynamic_update_slice_in_dim(sums, after, start, axis=0)
    return new, compensation + jax.lax.stop_gradient(lost), sums


def _finished(carry: Carry) -> tuple[Array, Array]:
    total, compensation, sums = carry
    return total + compensation, sums
