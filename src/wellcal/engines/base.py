"""What an engine does: visit pairs of cases in tiles and reduce, never storing the n x n matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from wellcal._arrays.namespaces import Array
from wellcal.engines.reductions import Sums
from wellcal.problem.problem import Problem

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Evaluates a prepared problem over sets of pairs."""

    def triangle(self, problem: Problem) -> Sums:
        """Sums over all pairs i < j."""
        ...

    def blocks(self, problem: Problem, block_size: int) -> Sums:
        """Sums over pairs i < j within consecutive blocks; the incomplete last block is not visited."""
        ...

    def map_tiles(self, problem: Problem, work: Callable[[slice, slice, Array], Result]) -> Iterator[Result]:
        """`work(i, j, h)` on tiles that cover all pairs i < j, for reductions of their own; NumPy only."""
        ...

    def map_items(
        self, problem: Problem, work: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[Result]:
        """`work` on each item, by threads, results in the order of the items; NumPy only."""
        ...

    def describe(self, problem: Problem) -> dict[str, Any]:
        """How the problem is run, for the provenance of a result."""
        ...
