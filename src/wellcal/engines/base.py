"""What an engine does: visit pairs of cases in tiles and reduce, never storing the n x n matrix."""

from __future__ import annotations

from typing import Any, Protocol

from wellcal.problem import Problem
from wellcal.reductions import Sums


class Engine(Protocol):
    """Evaluates a prepared problem over sets of pairs."""

    def triangle(self, problem: Problem) -> Sums:
        """Sums over all pairs i < j."""
        ...

    def blocks(self, problem: Problem, block_size: int) -> Sums:
        """Sums over pairs i < j within consecutive blocks; the incomplete last block is not visited."""
        ...

    def describe(self, problem: Problem) -> dict[str, Any]:
        """How the problem is run, for the provenance of a result."""
        ...
