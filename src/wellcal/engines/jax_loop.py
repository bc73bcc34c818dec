"""Tiles and blocks in JAX: one compiled loop over pieces of equal shape, whatever the number of cases.

Rows are padded to one of a few lengths, and so is the list of pieces, so that nearby numbers of cases share
a program. Forms, terms and kernels are trees of JAX: length scales, factors and arrays are arguments of the
program, everything else is its structure. Pieces are evaluated again in the backward pass, so that its memory
does not grow with the number of pairs. Sums are compensated, so that single precision loses little.
"""

from __future__ import annotations

import types
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from wellcal._arrays.namespaces import Array, Namespace, NDArray, float64, is_array, is_traced, to_numpy
from wellcal._arrays.progress import reporter
from wellcal._arrays.rows import NODE, Rows, arrays_of, first_array, map_rows
from wellcal.engines.pair_blocks import PAIRS
from wellcal.engines.reductions import Sums
from wellcal.expectations.bilinear import FiniteForm, WeightRows
from wellcal.expectations.mmd import MeanDiscrepancy
from wellcal.expectations.prediction_kernels import ExpDistanceForm
from wellcal.expectations.rules.elements import CLOSED_FORMS
from wellcal.kernels.base import walk
from wellcal.predictions import Predictions
from wellcal.problem.problem import Problem, Term, TermRows

Evaluated: TypeAlias = tuple[Array, list[tuple[Array, Array]]]
"""Total of a piece, and its row sums with the case at which each begins."""

Carry: TypeAlias = tuple[Array, Array, Array]
"""Total, what was lost in rounding it, and row sums."""

UNTOLD = 1 << 26  # pairs: a part of a second, after which progress is reported
_SMALLEST = 64  # cases of a tile: smaller ones are not worth a step of the loop
_PARTS = 4  # tiles that a power of two of cases is cut into; and long lengths between it and the next
_LONG = 65_536  # cases, from which their memory counts
_PLAIN = (bool, int, float, str, bytes, type, types.NoneType)


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
    """Return the largest power of two that is not larger."""
    return 1 << (max(1, count).bit_length() - 1)


def _length(n: int) -> int:
    """Return one of few lengths: a power of two, and above 65,536 at most a quarter more than n.

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
    """Kind of pieces, a value that can be hashed."""

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
    """Import JAX and its NumPy, whose own annotations leave type parameters open."""
    import jax
    import jax.numpy as jnp

    return jax, jnp


def _part(rows: Rows, start: Array, size: int) -> Rows:
    jax, _ = _jax()
    return map_rows(lambda value: jax.lax.dynamic_slice_in_dim(value, start, size, axis=0), rows)


# -- the loop ----------------------------------------------------------------------------------


def _run(problem: Problem, kind: _Kind, descriptions: NDArray, reach: int, pairs: int) -> Sums:
    """Sums over the pieces that are described, each of which reads `reach` cases in a row and has `pairs`."""
    jax, jnp = _jax()
    length, steps, told = _length(problem.n + reach), len(descriptions), reporter()
    rows = map_rows(lambda array: _padded(array, length), problem.rows)
    terms, trees = problem.terms, _trees(problem.kernel, problem.terms, rows)
    if trees is not None:
        terms, rows = trees
    leaves = jax.tree_util.tree_leaves((terms, rows))
    traced, size = is_traced(*arrays_of(problem.rows), *leaves), _length(steps)
    size = size if traced else min(size, max(1, UNTOLD // pairs))
    zero: NDArray = np.zeros((), float64(jnp))
    total, carry = zero, cast("Carry", (zero, zero, np.zeros(length, zero.dtype)))
    fixed = (kind, problem.xp, CLOSED_FORMS.changes)
    for first in range(0, steps, size):
        if not traced:
            told(PAIRS, first * pairs, steps * pairs)
        pieces = np.zeros((size, descriptions.shape[1]), np.int32)
        some = descriptions[first : first + size]
        pieces[: len(some)] = some
        total, carry = _advance(trees is not None, fixed, terms, rows, pieces, len(some), carry)
        if steps > size:
            total.block_until_ready()
    if not traced:
        told(PAIRS, steps * pairs, steps * pairs)
    sums = carry[2]
    return Sums(total, sums[: problem.n] if is_traced(sums) else to_numpy(sums)[: problem.n])


def _padded(array: Array, length: int) -> Array:
    """Repeat the first case: pieces may reach beyond the last one, where values are masked but valid."""
    xp: Namespace = np if type(array) is np.ndarray else _jax()[1]
    return xp.concatenate([array, xp.repeat(array[:1], length - array.shape[0], axis=0)])


def _advance(compiled: bool, *arguments: Any) -> tuple[Array, Carry]:
    """Add pieces to the sums by the compiled loop; without it where a closed form looks at a length scale."""
    if compiled:
        try:
            return _program()(*arguments)
        except _jax()[0].errors.JAXTypeError:
            pass
    return _loop(*arguments)


@cache
def _program() -> Any:
    return _jax()[0].jit(_loop, static_argnums=0)


def _loop(
    fixed: tuple[_Kind, Namespace, int], terms: Any, rows: Rows, pieces: Array, steps: Array, carry: Carry
) -> tuple[Array, Carry]:
    """Add the first `steps` of the pieces to the sums, each evaluated again in the backward pass."""
    jax, jnp = _jax()
    nothing: Any = None
    kind, xp, _ = fixed
    own = cast("tuple[Term, ...]", _without_marks(terms))

    def evaluate(rows: Rows, piece: Array) -> Evaluated:
        plain = _without_marks(rows)
        problem = Problem(first_array(plain).shape[0], plain, own, nothing, nothing, xp, None)
        return kind.evaluate(problem, plain, piece)

    def zeros(rows: Rows, piece: Array) -> Evaluated:
        return jax.tree_util.tree_map(jnp.zeros_like, jax.eval_shape(evaluate, rows, piece))

    @jax.checkpoint
    def unless_padding(rows: Rows, k: Array, piece: Array) -> Evaluated:
        return jax.lax.cond(k < steps, evaluate, zeros, rows, piece)

    def step(carry: Carry, item: tuple[Array, Array]) -> tuple[Carry, None]:
        return _added(carry, unless_padding(rows, *item)), None

    total, lost, sums = jax.lax.scan(step, carry, (jnp.arange(pieces.shape[0]), jnp.asarray(pieces)))[0]
    return total + lost, (total, lost, sums)


def _added(carry: Carry, evaluated: Evaluated) -> Carry:
    """Add the sums of a piece by Neumaier's compensated sum."""
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


# -- trees of JAX ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Static:
    """Fact that is part of a program's structure; 1, 1.0 and True are equal, and differ."""

    kind: type
    value: Any


def _trees(kernel: Any, terms: Any, rows: Rows) -> tuple[Any, Rows] | None:
    """Terms and rows as trees of JAX with numbers as leaves; None if these cannot be told from the rest.

    A kernel that is not pure may hold an array that its fields do not show.
    """
    if not all(part.pure for part in walk(kernel)) or not (_is_known(terms) and _is_known(rows)):
        return None
    return _with_marks(terms), _with_marks(rows)


def _is_known(value: Any) -> bool:
    """Return True if all of a value is numbers and structure; its classes are then registered with JAX."""
    if is_array(value):
        return not isinstance(value, np.ndarray) or cast("Any", value).dtype.kind in "fiub"
    if isinstance(value, NODE):
        return all(map(_is_known, value))
    if isinstance(value, types.FunctionType):
        return value.__closure__ is None
    if is_dataclass(value) and not isinstance(value, (type, Predictions)):
        _register(value.__class__)
        return all(_is_known(getattr(value, field.name)) for field in fields(value))
    return isinstance(value, _PLAIN)


def _with_marks(value: Any) -> Any:
    """Mark facts within tuples as static, which JAX would take for numbers."""
    if isinstance(value, NODE):
        parts = [_with_marks(part) for part in value]
        return value.__class__(*parts) if hasattr(value, "_fields") else tuple(parts)
    if value is None or is_array(value) or _is_branch(value):
        return value
    _register(_Static)
    return _Static(value.__class__, value)


def _without_marks(value: Any) -> Any:
    if isinstance(value, NODE):
        parts = [_without_marks(part) for part in value]
        return value.__class__(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value.value if isinstance(value, _Static) else value


@cache
def _register(cls: type) -> None:
    """Register a dataclass as a tree of JAX: scales, arrays, tuples and dataclasses are its data."""
    scales = {field.name for field in fields(cls) if field.type == "Scale"}
    names = [field.name for field in fields(cls)]

    def flatten(value: Any) -> tuple[list[Any], Any]:
        given = {name: getattr(value, name) for name in names}
        data = {
            name: part if name in scales else _with_marks(part)
            for name, part in given.items()
            if name in scales or is_array(part) or isinstance(part, NODE) or _is_branch(part)
        }
        rest = tuple((name, part.__class__, part) for name, part in given.items() if name not in data)
        return list(data.values()), (tuple(data), rest)

    def unflatten(structure: Any, data: Any) -> Any:
        # Without the constructor, which looks at values: they were checked when the first one was made.
        made, (names, rest) = cast("Any", object.__new__(cls)), structure
        for name, part in [*zip(names, data, strict=True), *((name, part) for name, _, part in rest)]:
            object.__setattr__(made, name, _without_marks(part))
        return made

    with suppress(ValueError):  # a kernel that its author registered
        _jax()[0].tree_util.register_pytree_node(cls, flatten, unflatten)


def _is_branch(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


# -- features ----------------------------------------------------------------------------------

_FEW, _MANY = 16, 64  # features: so few, or a multiple of so many


def evened(problem: Problem) -> Problem:
    """Pad features with zeros to one of few numbers.

    How many there are depends on the data: 27 to 49 for most, other draws of which differ by four or five. A
    program would be compiled for each number, and again wherever a boundary is crossed, so that
    boundaries are far apart: 16, 64, 128, 192 and so on. A product of 64 takes a tenth longer than one of 48.
    """
    terms: list[Term] = []
    rows: list[TermRows] = []
    for term, own in zip(problem.terms, problem.rows, strict=True):
        on_targets, targets = _evened(term.on_targets, own.on_targets)
        on_predictions, predictions = _evened(term.on_predictions, own.on_predictions)
        terms.append(replace(term, on_targets=on_targets, on_predictions=on_predictions))
        rows.append(TermRows(targets, predictions))
    return replace(problem, terms=tuple(terms), rows=tuple(rows))


def _evened(form: Any, rows: Rows) -> tuple[Any, Rows]:
    if isinstance(form, ExpDistanceForm) and isinstance(form.inner, MeanDiscrepancy):
        inner, own = _evened(form.inner.form, rows.inner)
        return replace(form, inner=replace(form.inner, form=inner)), rows._replace(inner=own)
    weights = getattr(rows, "weights", None)
    if not isinstance(form, FiniteForm) or form.gram is not None or type(weights) is not np.ndarray:
        return form, rows
    size = weights.shape[1]
    missing = _FEW - size if size <= _FEW else -size % _MANY
    return FiniteForm(None, form.size + missing), WeightRows(np.pad(weights, ((0, 0), (0, missing))))
