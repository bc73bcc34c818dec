"""What an engine does: visit pairs of cases in tiles and reduce, never storing the n x n matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from wellcal._arrays.chunks import Chunk, Span, budget, tile_shape, triangle_tiles
from wellcal._arrays.namespaces import Array, concat_rows
from wellcal._arrays.ops import Ops
from wellcal._arrays.rows import Rows, slice_rows
from wellcal.engines.pair_blocks import Piece
from wellcal.engines.reductions import Sums
from wellcal.expectations.bilinear import Form
from wellcal.problem.problem import Problem, some_cases
from wellcal.problem.rectangles import InChunks

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Support:
    """Whether an engine can run a problem, and why not; true where it can.

    Attributes
    ----------
    possible
        Whether it can.
    reason
        Why not, in words that errors and results repeat.

    Examples
    --------
    >>> bool(Support(True)), Support(False, "it needs a GPU").reason
    (True, 'it needs a GPU')
    """

    possible: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.possible


class Engine(ABC):
    """Evaluates a prepared problem over sets of pairs.

    Derive from this class to bring an engine of your own: `name` and :meth:`triangle` are all that is
    needed, and every function that takes ``engine=`` accepts it. What is not overridden is done in plain
    loops on the library that the arrays come from. :func:`register_engine` makes it known by its name.

    Attributes
    ----------
    name
        How results call it.

    Examples
    --------
    All pairs at once, for as many cases as memory holds:

    >>> import numpy as np, wellcal as wc
    >>> class AtOnce(Engine):
    ...     name = "at once"
    ...
    ...     def triangle(self, problem):
    ...         everything = slice(0, problem.n)
    ...         h = np.asarray(problem.values(everything, everything))
    ...         above = np.triu(h, 1)
    ...         return Sums(above.sum(), above.sum(axis=0) + above.sum(axis=1))
    >>> y, pred = np.linspace(-1.0, 1.0, 50), wc.Normal(np.zeros(50), np.ones(50))
    >>> estimate = wc.skce(y, pred, engine=AtOnce())
    >>> estimate.provenance["engine"], abs(float(estimate) - float(wc.skce(y, pred))) < 1e-12
    ('at once', True)

    ``examples/your_own_engine.py`` has one that says what it supports.
    """

    name: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in vars(cls):
            cls.name = cls.__name__.lower()

    def supports(self, problem: Problem) -> Support:
        """Whether the engine can run this problem, with the reason where it cannot."""
        return Support(True)

    def pays(self, problem: Problem) -> bool:
        """Whether ``engine="auto"`` should take it for this problem, if it supports it."""
        return True

    @abstractmethod
    def triangle(self, problem: Problem) -> Sums:
        """Sums over all pairs i < j."""

    def total(self, problem: Problem) -> Array:
        """The sum over all pairs i < j alone, for whoever needs no sums of cases."""
        return self.triangle(problem).total

    def blocks(self, problem: Problem, block_size: int) -> Sums:
        """Sums over pairs i < j within consecutive blocks; the incomplete last block is not visited."""
        starts = range(0, problem.n - block_size + 1, block_size)
        found = [self.triangle(some_cases(problem, slice(i, i + block_size))) for i in starts]
        left_out = problem.n - len(found) * block_size
        # Zeros in the library and on the device of the sums, for cases that were not visited.
        rest = [0.0 * sums.rows for sums in found[: -(-left_out // block_size)]]
        rows = concat_rows([*(sums.rows for sums in found), *rest])[: problem.n]
        return Sums(sum((sums.total for sums in found[1:]), start=found[0].total), rows)

    def rectangle(self, form: Form, ops: Ops, a: Rows, b: Rows) -> Array:
        """Values of a form between all rows of two batches, ``(len(a), len(b))``."""
        return InChunks().rectangle(form, ops, a, b)

    def map_tiles(self, problem: Problem, work: Callable[[Chunk, Chunk, Array], Result]) -> Iterator[Result]:
        """`work(i, j, h)` on tiles that cover all pairs i < j, for reductions other than sums; NumPy only.

        `i` and `j` are slices of cases and `h` their values, zero where not i < j.
        """

        def on_tile(spans: tuple[Span, Span]) -> Result:
            tile = Piece(Span(0, 1), problem.n, *spans)
            rows, columns = tile.cases
            with np.errstate(over="ignore", under="ignore"):
                h = tile.value(problem, slice_rows(problem.rows, rows), slice_rows(problem.rows, columns))
                return work(rows, columns, h)

        return self.map_items(problem, on_tile, triangle_tiles(0, problem.n, *self.tile_shape(problem)))

    def map_items(
        self, problem: Problem, work: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[Result]:
        """`work` on each item, results in the order of the items; NumPy only."""
        return map(work, items)

    def tile_shape(self, problem: Problem) -> tuple[int, int]:
        """Height and width of the tiles of :meth:`map_tiles`."""
        return tile_shape(problem.cost.entries, budget.cache)

    def at_precision(self, precision: str) -> Engine:
        """The engine with products in another precision: "float64", "mixed", or "auto" for its own choice."""
        if precision == "mixed":
            raise ValueError(
                f"the engine {self.name!r} has no mixed precision; "
                'take precision="float64", or engine="tiled"'
            )
        return self

    def describe(self, problem: Problem) -> dict[str, Any]:
        """How the problem is run, for the provenance of a result."""
        return {"engine": self.name}
