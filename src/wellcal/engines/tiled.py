"""The engine for everything: any kernel, any family, NumPy, PyTorch, JAX and other array libraries.

All of them visit the same tiles of the same pure function. NumPy tiles fit the cache and run on
threads. PyTorch keeps only the inputs of a tile and recomputes it in the backward pass. JAX scans over
tiles of one size, so that compilation does not grow with n, and recomputes likewise.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import array_api_compat as compat
import numpy as np

from wellcal._array import Array, is_jax, is_numpy, is_torch, stop_gradient, to_numpy
from wellcal.expansion import Rows, slice_rows
from wellcal.problem import Problem
from wellcal.reductions import RowAccumulator, Sums
from wellcal.tiling import Interval, tile_shape, triangle_tiles

_CACHE_ELEMENTS = 32_768  # 256 KiB of float64: a few such arrays fit the second-level cache
_TENSOR_ELEMENTS = 262_144  # frameworks with a cost for each call want larger tiles
_ACCELERATOR_ELEMENTS = 8_388_608  # an accelerator needs millions of elements to be busy
_SMALL_BLOCK = 64  # up to here the pairs of a block are listed, beyond they are tiled


@dataclass(frozen=True)
class Tiled:
    """Engine that evaluates tiles.

    Parameters
    ----------
    tile
        Height and width of a tile in cases; None fits it to the cache.
    threads
        Threads for NumPy tiles; None takes the number of available cores.
    """

    tile: tuple[int, int] | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.tile is not None and (len(self.tile) != 2 or min(self.tile) < 1):
            raise ValueError(f"tile must be two positive numbers, found {self.tile}")
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads must be at least 1, found {self.threads}")

    # -- public ------------------------------------------------------------------------------

    def triangle(self, problem: Problem) -> Sums:
        """Sums of h over all pairs i < j."""
        height, width = self._tile_shape(problem)
        if is_jax(problem.xp):
            return _scan_tiles(problem, min(max(height, width), problem.n), problem.n)
        return self._run(problem, triangle_tiles(0, problem.n, height, width))

    def blocks(self, problem: Problem, block_size: int) -> Sums:
        """Sums of h over pairs i < j within consecutive complete blocks."""
        count = problem.n // block_size
        if count == 1 and not is_jax(problem.xp):
            height, width = self._tile_shape(problem)
            return self._run(problem, triangle_tiles(0, block_size, height, width))
        if block_size <= _SMALL_BLOCK or is_jax(problem.xp):
            return _listed_blocks(problem, block_size, self._pairs_at_once(problem))
        height, width = self._tile_shape(problem)
        tiles = [
            tile
            for b in range(count)
            for tile in triangle_tiles(b * block_size, (b + 1) * block_size, height, width)
        ]
        return self._run(problem, tiles)

    def describe(self, problem: Problem) -> dict[str, Any]:
        """Name, tile and threads."""
        out: dict[str, Any] = {"engine": "tiled", "tile": self._tile_shape(problem)}
        if is_numpy(problem.xp):
            out["threads"] = self._thread_count()
        return out

    # -- shapes ------------------------------------------------------------------------------

    def _tile_shape(self, problem: Problem) -> tuple[int, int]:
        if self.tile is not None:
            return self.tile
        return tile_shape(problem.width, _elements(problem))

    def _pairs_at_once(self, problem: Problem) -> int:
        return max(256, 8 * _TENSOR_ELEMENTS // max(4, problem.width))

    def _thread_count(self) -> int:
        if self.threads is not None:
            return self.threads
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    # -- eager libraries ---------------------------------------------------------------------

    def _run(self, problem: Problem, tiles: list[tuple[Interval, Interval]]) -> Sums:
        if is_numpy(problem.xp):
            return self._run_numpy(problem, tiles)
        return _run_tensor(problem, tiles)

    def _run_numpy(self, problem: Problem, tiles: list[tuple[Interval, Interval]]) -> Sums:
        def work(tile: tuple[Interval, Interval]) -> tuple[Any, Any]:
            h = _masked_tile(problem, problem.rows, *tile)
            return h.sum(axis=1), h.sum(axis=0)

        sums = RowAccumulator(problem.n)
        _keep_freed_memory()
        with np.errstate(under="ignore"), _one_blas_thread():
            # Results are merged in the order of the tiles, so that threads cannot change a bit of them.
            for (i, j), (right, down) in zip(tiles, self._map(work, tiles), strict=True):
                sums.add(i.index, j.index, right, down)
        return sums.result()

    def _map(self, work: Callable[[Any], Any], items: list[Any]) -> Iterator[Any]:
        threads = min(self._thread_count(), len(items))
        if threads <= 1:
            yield from map(work, items)
            return
        with ThreadPoolExecutor(threads) as pool:
            chunk = 64 * threads  # bounds the results that wait for their turn
            for start in range(0, len(items), chunk):
                yield from pool.map(work, items[start : start + chunk])


def _elements(problem: Problem) -> int:
    """Entries of the arrays of a tile that suit the library and the device."""
    if is_numpy(problem.xp):
        return _CACHE_ELEMENTS
    device = str(compat.device(next(iter(problem.rows.values()))))
    return _TENSOR_ELEMENTS if "cpu" in device.lower() else _ACCELERATOR_ELEMENTS


def _keep_freed_memory() -> None:
    """Let the C library keep freed tiles instead of returning each to the system.

    Its threshold for doing so adapts to the largest block freed; without this, page faults take
    longer than the arithmetic.
    """
    np.empty(_CACHE_ELEMENTS * 64)


def _one_blas_thread() -> AbstractContextManager[Any]:
    """Keep BLAS from starting threads inside ours, where threadpoolctl is installed to say so."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    return threadpool_limits(1, user_api="blas")


def _masked_tile(problem: Problem, rows: Rows, i: Interval, j: Interval) -> Array:
    """h on a tile, zero where not i < j."""
    h = problem.tile(slice_rows(rows, i.index), slice_rows(rows, j.index))
    if i.stop <= j.start:
        return h
    xp = problem.xp
    left = np.arange(i.start, i.stop)[:, None]
    above = left < np.arange(j.start, j.stop)[None, :]
    if is_numpy(xp):
        return np.where(above, h, 0.0)
    mask = xp.asarray(above, device=compat.device(h))
    return xp.where(mask, h, xp.zeros_like(h))


def _run_tensor(problem: Problem, tiles: list[tuple[Interval, Interval]]) -> Sums:
    """Tiles one after another, recomputed in the backward pass where gradients are recorded."""
    xp = problem.xp
    names = sorted(problem.rows)
    arrays = [problem.rows[name] for name in names]

    def tile_sums(i: Interval, j: Interval, *values: Array) -> tuple[Array, Array]:
        h = _masked_tile(problem, dict(zip(names, values, strict=True)), i, j)
        return xp.sum(h, axis=1), xp.sum(h, axis=0)

    evaluate = _recomputed(tile_sums) if is_torch(xp) and _records_gradient(arrays) else tile_sums
    accumulator = RowAccumulator(problem.n)
    total: Array = None
    for i, j in tiles:
        right, down = evaluate(i, j, *arrays)
        part = xp.sum(right)
        total = part if total is None else total + part
        accumulator.add(i.index, j.index, to_numpy(right), to_numpy(down))
    return Sums(total, accumulator.rows)


def _records_gradient(arrays: list[Array]) -> bool:
    torch = sys.modules["torch"]
    return torch.is_grad_enabled() and any(a.requires_grad for a in arrays)


def _recomputed(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, keeping only its inputs for the backward pass."""
    from torch.utils.checkpoint import checkpoint

    def call(*arguments: Any) -> Any:
        return checkpoint(function, *arguments, use_reentrant=False, preserve_rng_state=False)

    return call


# -- blocks ----------------------------------------------------------------------------------


def _listed_blocks(problem: Problem, block_size: int, at_once: int) -> Sums:
    """Pairs of small blocks as a list of matching rows, some millions at a time."""
    xp = problem.xp
    count = problem.n // block_size
    inner_i, inner_j = np.triu_indices(block_size, 1)
    per_chunk = max(1, at_once // len(inner_i))
    totals: list[Array] = []
    rows = np.zeros(problem.n)
    collected: list[Array] = []
    for start in range(0, count, per_chunk):
        offsets = np.arange(start, min(start + per_chunk, count))[:, None] * block_size
        i, j = (offsets + inner_i).reshape(-1), (offsets + inner_j).reshape(-1)
        h = _paired_recomputed(problem, i, j)
        totals.append(xp.sum(h))
        collected.append(stop_gradient(h))
        if not is_jax(xp):
            values = to_numpy(collected.pop())
            rows += np.bincount(i, values, problem.n) + np.bincount(j, values, problem.n)
    total = totals[0]
    for part in totals[1:]:
        total = total + part
    if is_jax(xp):
        return Sums(total, _rows_from_blocks(problem, collected, block_size, count))
    return Sums(total if not is_numpy(xp) else float(total), rows)


def _paired_recomputed(problem: Problem, i: np.ndarray[Any, Any], j: np.ndarray[Any, Any]) -> Array:
    names = sorted(problem.rows)
    arrays = [problem.rows[name] for name in names]

    def evaluate(*values: Array) -> Array:
        rows = dict(zip(names, values, strict=True))
        return problem.paired(slice_rows(rows, i), slice_rows(rows, j))

    if is_torch(problem.xp) and _records_gradient(arrays):
        return _recomputed(evaluate)(*arrays)
    return evaluate(*arrays)


def _rows_from_blocks(problem: Problem, values: list[Array], block_size: int, count: int) -> Array:
    """Row sums of listed blocks under tracing, where nothing can be written in place."""
    xp = problem.xp
    h = xp.concat(values) if len(values) > 1 else values[0]
    h = xp.reshape(h, (count, -1))
    inner_i, inner_j = np.triu_indices(block_size, 1)
    member = np.zeros((len(inner_i), block_size))
    member[np.arange(len(inner_i)), inner_i] = 1.0
    member[np.arange(len(inner_i)), inner_j] = 1.0
    rows = xp.reshape(xp.matmul(h, xp.asarray(member, dtype=h.dtype)), (-1,))
    missing = problem.n - count * block_size
    return xp.concat([rows, xp.zeros(missing, dtype=h.dtype)]) if missing else rows


# -- JAX -------------------------------------------------------------------------------------


def _scan_tiles(problem: Problem, size: int, n: int) -> Sums:
    """One compiled loop over square tiles, with a compensated sum so that float32 loses little."""
    import jax
    import jax.numpy as jnp

    count = -(-n // size)
    padded = {
        name: jnp.concatenate([value, jnp.repeat(value[:1], count * size - n, axis=0)])
        for name, value in problem.rows.items()
    }
    pairs = np.array([(i, j) for i in range(count) for j in range(i, count)])

    @jax.checkpoint
    def tile(rows: Rows, i: Array, j: Array) -> tuple[Array, Array]:
        def part(value: Array, k: Array) -> Array:
            return jax.lax.dynamic_slice_in_dim(value, k * size, size, axis=0)

        h = problem.tile({k: part(v, i) for k, v in rows.items()}, {k: part(v, j) for k, v in rows.items()})
        left = i * size + jnp.arange(size)[:, None]
        right = j * size + jnp.arange(size)[None, :]
        h = jnp.where((left < right) & (right < n), h, 0.0)
        return jnp.sum(h, axis=1), jnp.sum(h, axis=0)

    def step(carry: tuple[Array, Array, Array], pair: Array) -> tuple[tuple[Array, Array, Array], None]:
        total, compensation, row_sums = carry
        right, down = tile(padded, pair[0], pair[1])
        value = jnp.sum(right)
        new = total + value
        larger = jnp.abs(total) >= jnp.abs(value)
        lost = jnp.where(larger, (total - new) + value, (value - new) + total)
        row_sums = row_sums.at[pair[0] * size + jnp.arange(size)].add(jax.lax.stop_gradient(right))
        row_sums = row_sums.at[pair[1] * size + jnp.arange(size)].add(jax.lax.stop_gradient(down))
        return (new, compensation + lost, row_sums), None

    dtype = jnp.result_type(*[v for v in padded.values() if jnp.issubdtype(v.dtype, jnp.floating)])
    start = (jnp.zeros((), dtype), jnp.zeros((), dtype), jnp.zeros(count * size, dtype))
    (total, compensation, row_sums), _ = jax.lax.scan(step, start, jnp.asarray(pairs))
    return Sums(total + compensation, row_sums[:n])
