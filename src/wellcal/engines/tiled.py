"""The engine for everything: any kernel, any family, NumPy, PyTorch, JAX and other array libraries.

All of them visit the same tiles of the same pure function. NumPy tiles fit the cache and run on
threads. PyTorch keeps only the inputs of a tile and recomputes it in the backward pass. JAX scans over
tiles of one size, so that compilation does not grow with n, and recomputes likewise.

Blocks of a few cases would make tiles of nothing but overhead: their pairs are listed, for many blocks
at a time.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, ClassVar, TypeVar

import numpy as np

from wellcal._arrays.checks import described, one_of, whole_number
from wellcal._arrays.chunks import (
    Chunk,
    Span,
    above_diagonal,
    budget,
    keep_freed_memory,
    tile_shape,
    told_chunks,
    triangle_tiles,
)
from wellcal._arrays.namespaces import (
    Array,
    concat_rows,
    device_of,
    float64,
    is_jax,
    is_numpy,
    is_torch,
    is_traced,
    namespace,
    stop_gradient,
    to_numpy,
)
from wellcal._arrays.ops import Ops
from wellcal._arrays.progress import reporter
from wellcal._arrays.rows import Rows, arrays_of, first_array, slice_rows
from wellcal._arrays.threads import MANY_CASES, one_blas_thread, usual_threads
from wellcal.engines.autograd import Pieces, counted, sum_with_gradient
from wellcal.engines.base import Engine, Support
from wellcal.engines.error_control import TOLERANCE, ErrorControl
from wellcal.engines.jax_loop import evened, scan_blocks, scan_tiles
from wellcal.engines.pair_blocks import PAIRS, Piece
from wellcal.engines.reductions import RowAccumulator, Sums
from wellcal.engines.single_precision import AUTO_FROM, PRECISIONS, in_single_precision
from wellcal.engines.torch_pairs import tensor_sums
from wellcal.expectations.bilinear import Form
from wellcal.kernels.base import calls_user_function
from wellcal.problem.feature_form import in_features
from wellcal.problem.problem import Problem

_AT_HAND = 4  # times the cache: evaluations, up to which NumPy is quicker than a compiled program is called
_TENSOR = 2  # times the cache: frameworks with a cost for each call want larger tiles
_DEVICE = 16  # times the cache: devices with thousands of cores want larger ones still
_BATCHES = 4  # times the cache for blocks at a time: calls cost more than memory
_HALVED = 48  # cases of a block from which pairs i > j cost more than another call
_LARGEST_TOGETHER = 64  # cases of a block of which a compiled program takes many at a time
_EVERYTHING = Support(True)

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Tiled(Engine):
    """Engine that evaluates tiles.

    Parameters
    ----------
    tile
        Height and width of a tile in cases; None fits it to the cache.
    threads
        Threads for NumPy; None takes the number of available cores, or ``OMP_NUM_THREADS`` of the environment
        where that is less, and one where a kernel calls a user's function.
    precision
        "float64"; "mixed": products in float32 once the four terms of h have cancelled, where the kernel on
        targets has features and the error (`control_error` in the provenance, in the unit that
        :func:`wellcal.skce` explains) is below 0.01; or "auto", which tries "mixed" for 20,000 cases or more.
        Tensors of PyTorch are rounded by "auto" on a graphics
        card only; for other libraries it is the precision of the arrays.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> pred = wc.Normal(np.linspace(-1.0, 1.0, 100), np.ones(100))
    >>> wc.skce(np.zeros(100), pred, engine=Tiled(tile=(32, 32), threads=1)).provenance["tile"]
    (32, 32)
    """

    tile: tuple[int, int] | None = None
    threads: int | None = None
    precision: str = "auto"
    name: ClassVar[str] = "tiled"

    def __post_init__(self) -> None:
        if self.tile is not None:
            pair = isinstance(self.tile, (tuple, list))  # pyright: ignore[reportUnnecessaryIsInstance]
            if not pair or len(self.tile) != 2:
                raise (ValueError if pair else TypeError)(
                    f"tile must be two positive numbers, height and width, found {described(self.tile)}"
                )
            object.__setattr__(self, "tile", tuple(whole_number(size, "tile", least=1) for size in self.tile))
        if self.threads is not None:
            whole_number(self.threads, "threads", least=1)
        one_of(self.precision, "precision", PRECISIONS)

    # -- public ------------------------------------------------------------------------------

    def supports(self, problem: Problem) -> Support:
        """It supports everything."""
        return _EVERYTHING

    def pays(self, problem: Problem) -> bool:
        """It does where no other engine is better."""
        return True

    def triangle(self, problem: Problem) -> Sums:
        """Sums of h over all pairs i < j."""
        problem.prepared.runs[self.name] = {}
        if self._takes_at_once(problem):
            return _at_once(problem)
        if is_torch(problem.xp) and self.tile is None:
            found = tensor_sums(problem, self.precision)
            if found is not None:
                problem.prepared.runs[self.name] = found[1]
                return found[0]
        return self._in_single_precision(problem) or self._summed(_prepared(problem), problem.n, 1)

    def at_precision(self, precision: str) -> Tiled:
        """The same engine with products in another precision."""
        return replace(self, precision=precision)

    def _in_single_precision(self, problem: Problem) -> Sums | None:
        """Sums in float32, where that is wanted and control rows agree."""
        wanted = self.precision == "mixed" or (self.precision == "auto" and problem.n >= AUTO_FROM)
        if not wanted or not is_numpy(problem.xp):
            return None
        rounded = in_single_precision(problem)
        if rounded is None:
            return self._note(problem, "h is no product of features, or distances cannot be rounded")
        sums = self._summed(rounded, problem.n, 1)
        with one_blas_thread():
            error = ErrorControl.of(_prepared(problem)).error(sums.rows)
        if error.value > TOLERANCE:
            return self._note(problem, f"float32 is off by {error.value:.1e} standard deviations")
        run = {"precision": "mixed: products in float32", **error.describe()}
        problem.prepared.runs[self.name] = run
        return sums

    def _note(self, problem: Problem, reason: str) -> None:
        if self.precision == "mixed":
            problem.prepared.runs[self.name] = {"precision_note": f"float64: {reason}"}

    def blocks(self, problem: Problem, block_size: int) -> Sums:
        """Sums of h over pairs i < j within consecutive complete blocks."""
        problem.prepared.runs[self.name] = {}
        count = problem.n // block_size
        return self._summed(
            _prepared(problem, 0.5 * count * block_size * (block_size - 1)), block_size, count
        )

    def map_tiles(self, problem: Problem, work: Callable[[Chunk, Chunk, Array], Result]) -> Iterator[Result]:
        """`work(i, j, h)` on tiles that cover all pairs i < j."""
        return super().map_tiles(_prepared(problem), work)

    def rectangle(self, form: Form, ops: Ops, a: Rows, b: Rows) -> Array:
        """Values of a form between all rows of two batches, ``(len(a), len(b))``; in NumPy by threads."""
        n, m = (first_array(rows).shape[0] for rows in (a, b))
        # A user's function was not written to run twice at a time.
        if not is_numpy(ops.xp) or form.cost.calls_user or n * m * form.cost.entries <= budget.cache:
            return super().rectangle(form, ops, a, b)

        def work(cases: Chunk) -> Array:
            with np.errstate(over="ignore", under="ignore"):
                return form(ops, slice_rows(a, cases), b)

        chunks = told_chunks(n, m * form.cost.entries, within=budget.cache, what="predictions")
        return concat_rows(list(self._by_threads(self._threads(), work, chunks)))

    def describe(self, problem: Problem) -> dict[str, Any]:
        """Name, tile and threads."""
        if self._takes_at_once(problem):
            return {"engine": self.name, "tile": (problem.n, problem.n), "threads": 1}
        found = problem.prepared.features
        run = problem if found is None else found.problem
        out: dict[str, Any] = {"engine": self.name, "tile": self.tile_shape(run)}
        if is_numpy(problem.xp):
            out["threads"] = self._thread_count(problem)
        if found is not None:
            out |= found.describe()
        if self.precision == "mixed" and not (is_numpy(problem.xp) or is_torch(problem.xp)):
            out["precision_note"] = "that of the arrays: this engine has mixed precision for NumPy only"
        return out | problem.prepared.runs.get(self.name, {})

    # -- resources ---------------------------------------------------------------------------

    def _takes_at_once(self, problem: Problem) -> bool:
        """Whether the whole triangle is one tile, which a single thread does."""
        pairs = problem.n**2 * problem.cost.entries
        if pairs > _AT_HAND * budget.cache or self.tile is not None or self.threads is not None:
            return False
        if is_numpy(problem.xp):
            return pairs <= budget.cache
        # Rows of JAX's that wait in NumPy: a program takes longer to be called than so few pairs do.
        return is_jax(problem.xp) and all(type(array) is np.ndarray for array in problem.arrays)

    def tile_shape(self, problem: Problem) -> tuple[int, int]:
        """Height and width of a tile in cases."""
        return tile_shape(problem.cost.entries, _elements(problem)) if self.tile is None else self.tile

    def _thread_count(self, problem: Problem) -> int:
        threads = self._threads()
        # A user's function was not written to run twice at a time.
        return 1 if threads > 1 and self.threads is None and calls_user_function(problem.kernel) else threads

    def _threads(self) -> int:
        return usual_threads() if self.threads is None else self.threads

    # -- pieces ------------------------------------------------------------------------------

    def _summed(self, problem: Problem, block_size: int, count: int) -> Sums:
        """Return sums over the triangles of `count` consecutive blocks."""
        height, width = self.tile_shape(problem)
        pairs = count * block_size * (block_size - 1) // 2
        if is_jax(problem.xp):
            scanned = _scanned(problem, block_size, count, (height, width))
            if scanned is not None:
                return scanned
        if self.tile is None:
            largest = block_size if block_size < _HALVED else -(-block_size // 2)
            height, width = min(height, largest), min(width, largest)
        at_once = max(1, _BATCHES * _elements(problem) // (problem.cost.entries * height * width))

        def pieces() -> Iterator[Piece]:
            for start in range(0, count, at_once):
                blocks = Span(start, min(start + at_once, count))
                for rows, columns in triangle_tiles(0, block_size, height, width):
                    yield Piece(blocks, block_size, rows, columns)

        shape = (count, block_size)
        if is_numpy(problem.xp) or is_jax(problem.xp):
            total, rows = self._sum_numpy(problem, pieces, shape, pairs)
        elif is_torch(problem.xp):

            def sums(given: Problem) -> tuple[Array, Array]:
                return _sum_tensor(given, pieces, shape, pairs)

            total, rows = sum_with_gradient(problem, pieces, pairs, sums)
        else:
            total, rows = _sum_tensor(problem, pieces, shape, pairs)
        if is_jax(problem.xp):
            total = problem.xp.asarray(total, dtype=float64(problem.xp))
        return Sums(total, _all_cases(to_numpy(rows), problem.n))

    # -- NumPy -------------------------------------------------------------------------------

    def _sum_numpy(
        self, problem: Problem, pieces: Pieces, shape: tuple[int, ...], pairs: int
    ) -> tuple[float, Array]:
        everything = slice(0, problem.n)

        def rows_of(cases: Chunk) -> Rows:
            return problem.rows if cases == everything else slice_rows(problem.rows, cases)

        def work(piece: Piece) -> tuple[Piece, tuple[Array, Array]]:
            # Far pairs overflow in an exponent and underflow in its exponential: both mean zero.
            rows = tuple(map(rows_of, piece.cases))
            with np.errstate(over="ignore", under="ignore"):
                return piece, piece.reduce(to_numpy(piece.value(problem, *rows)))

        sums, told, done = RowAccumulator(shape), reporter(), 0
        told(PAIRS, 0, pairs)
        with one_blas_thread() if self.threads == 1 else nullcontext():  # who asks for one means BLAS, too
            for piece, reduced in self.map_items(problem, work, pieces()):
                sums.add(*piece.places, *reduced)
                done += piece.pairs
                told(PAIRS, done, pairs)
        result = sums.result()
        return result.total, result.rows

    def map_items(
        self, problem: Problem, work: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[Result]:
        """`work` on each item, by threads; results come in the order of the items, however many threads."""
        return self._by_threads(self._thread_count(problem), work, items)

    def _by_threads(
        self, threads: int, work: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[Result]:
        rest = iter(items)
        first = list(islice(rest, 2))
        if threads == 1 or len(first) < 2:
            yield from map(work, chain(first, rest))
            return
        keep_freed_memory()
        with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
            waiting: deque[Future[Result]] = deque()
            try:
                for item in chain(first, rest):
                    waiting.append(pool.submit(work, item))
                    if len(waiting) > 8 * threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:  # whoever breaks it off waits for what is being done, and not for the rest
                for future in waiting:
                    future.cancel()


def _prepared(problem: Problem, pairs: float | None = None) -> Problem:
    """The same problem in feature form, where that is quicker."""
    found = in_features(problem, pairs)
    ready = problem if found is None else found.problem
    return evened(ready) if is_jax(problem.xp) else ready


def _at_once(problem: Problem) -> Sums:
    """Sums over the triangle of a small problem in one go: there is nothing to gain from tiles."""
    own = problem if is_numpy(problem.xp) else replace(problem, xp=namespace())
    # BLAS would start threads for products that take less time than these do to start.
    alone = one_blas_thread() if problem.n > MANY_CASES else nullcontext()
    with alone, np.errstate(over="ignore", under="ignore"):
        h = own.h(own.rows, own.rows)
    pairs = np.where(above_diagonal(problem.n, problem.n), h, 0.0)
    right = pairs.sum(axis=1)
    total: Array = float(right.sum())
    if own is not problem:
        total = problem.xp.asarray(total, dtype=float64(problem.xp))
    return Sums(total, right + pairs.sum(axis=0))


# -- choices ---------------------------------------------------------------------------------


def _elements(problem: Problem) -> int:
    """Entries that the arrays of a tile should have."""
    if is_numpy(problem.xp):
        return budget.cache * (2 if first_array(problem.rows).dtype == np.float32 else 1)
    if is_jax(problem.xp):
        on_host = sys.modules["jax"].default_backend() == "cpu"
    else:
        on_host = not is_torch(problem.xp) or all(a.device.type == "cpu" for a in arrays_of(problem.rows))
    return (_TENSOR if on_host else _DEVICE) * budget.cache


# -- other libraries -------------------------------------------------------------------------


def _scanned(problem: Problem, block_size: int, count: int, tile: tuple[int, int]) -> Sums | None:
    """Return sums by compiled loops; None where a user's function looks at values, which these lack."""

    def scan() -> Sums:
        if count > 1 and block_size <= _LARGEST_TOGETHER:
            return scan_blocks(problem, block_size, count, _BATCHES * tile[0] * tile[1])
        return scan_tiles(problem, block_size, count, min(tile))

    if is_traced(*arrays_of(problem.rows)) or not calls_user_function(problem.kernel):
        return scan()
    try:
        return scan()
    except sys.modules["jax"].errors.JAXTypeError:
        return None


def _sum_tensor(problem: Problem, pieces: Pieces, shape: tuple[int, ...], pairs: int) -> tuple[Array, Array]:
    """Pieces one after another. Sums stay on the device of the arrays, so that no piece waits for it.

    A device may be behind what is told of progress: pieces are counted when they are sent to it.
    """
    xp = problem.xp
    place: Any = {"dtype": float64(xp), "device": device_of(first_array(problem.rows))}
    total, sums = xp.zeros((), **place), RowAccumulator(shape, xp.zeros(shape, **place))
    for piece in counted(pieces, pairs):
        h = piece.value(problem, *(slice_rows(problem.rows, cases) for cases in piece.cases))
        total = total + xp.sum(h)
        sums.add_rows(*piece.places, *piece.reduce(stop_gradient(h)))
    return total, sums.rows


def _all_cases(rows: Array, n: int) -> Array:
    """Row sums for all n cases, from those of the cases visited."""
    flat = rows.reshape(-1)
    return flat if len(flat) == n else np.concatenate([flat, np.zeros(n - len(flat))])
