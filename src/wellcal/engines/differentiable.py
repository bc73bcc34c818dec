"""Sums over pieces in PyTorch, with a backward pass that evaluates each piece again.

Only the rows of the problem are kept between the two passes: no graph of the pieces is recorded,
which for n cases would hold n^2 numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from itertools import count
from typing import Any

from wellcal._array import Array
from wellcal.engines.pieces import Piece
from wellcal.expansion import Rows, slice_rows
from wellcal.problem import Problem

Pieces = Callable[[], Iterable[Piece]]
"""Pieces, from the first one on at each call: the backward pass visits them again."""

Sum = Callable[[Problem, Pieces, tuple[int, ...]], tuple[Array, Array]]
"""From a problem, its pieces and the shape of row sums to the total and the row sums."""


def needs_gradient(problem: Problem) -> bool:
    """Whether PyTorch would record a graph of what is computed from the rows or the kernel."""
    torch = sys.modules["torch"]
    if not torch.is_grad_enabled():
        return False
    return any(_requires_gradient(value) for value in problem.rows.values()) or _kernel_requires_gradient(
        problem
    )


def sum_with_gradient(
    problem: Problem, pieces: Pieces, shape: tuple[int, ...], plain_sum: Sum
) -> tuple[Array, Array]:
    """`plain_sum`, which loops over pieces, with a backward pass that evaluates them again."""
    if _kernel_requires_gradient(problem):
        # Tensors inside of the kernel are not arguments that a function could return gradients for.
        return plain_sum(_recomputing(problem), pieces, shape)
    names = list(problem.rows)
    return _sum_function().apply(problem, pieces, shape, plain_sum, names, *problem.rows.values())


def _requires_gradient(value: Any) -> bool:
    return bool(getattr(value, "requires_grad", False))


def _kernel_requires_gradient(problem: Problem) -> bool:
    """Whether h depends on tensors that are not in the rows, such as a length scale that is learned."""
    torch = sys.modules["torch"]
    first = {name: _detached(value) for name, value in slice_rows(problem.rows, slice(0, 1)).items()}
    with torch.enable_grad():
        return _requires_gradient(problem.paired(first, first))


def _detached(value: Any) -> Any:
    return value.detach() if hasattr(value, "detach") else value


# -- gradients of rows -----------------------------------------------------------------------


@lru_cache(maxsize=1)
def _sum_function() -> Any:
    torch = sys.modules["torch"]

    class PieceSum(torch.autograd.Function):
        @staticmethod
        def forward(
            ctx: Any,
            problem: Problem,
            pieces: Pieces,
            shape: tuple[int, ...],
            plain_sum: Sum,
            names: list[str],
            *values: Array,
        ) -> tuple[Array, Array]:
            ctx.given = problem, pieces, shape, plain_sum, names
            ctx.save_for_backward(*values)
            total, rows = plain_sum(problem, pieces, shape)
            ctx.mark_non_differentiable(rows)
            return total, rows

        @staticmethod
        def backward(ctx: Any, *outputs: Array) -> tuple[Any, ...]:
            problem, pieces, shape, plain_sum, names = ctx.given
            rows = dict(zip(names, ctx.saved_tensors, strict=True))
            wanted = [name for name, needed in zip(names, ctx.needs_input_grad[5:], strict=True) if needed]
            if torch.is_grad_enabled():  # the gradient itself is to be differentiated
                total, _ = plain_sum(_recomputing(problem), pieces, shape)
                found = torch.autograd.grad(
                    total, [rows[name] for name in wanted], outputs[0], create_graph=True
                )
                gradients = dict(zip(wanted, found, strict=True))
            else:
                gradients = _gradients(problem, pieces(), rows, wanted, outputs[0])
            return (None,) * 5 + tuple(gradients.get(name) for name in names)

    return PieceSum


def _gradients(
    problem: Problem, pieces: Iterable[Piece], rows: Rows, wanted: list[str], factor: Array
) -> Rows:
    """Gradient of `factor` times the sum of h over `pieces`, by rows."""
    torch = sys.modules["torch"]
    total = {name: torch.zeros_like(rows[name]) for name in wanted}
    for piece in pieces:
        parts = [_leaves(slice_rows(rows, cases), wanted) for cases in piece.cases]
        with torch.enable_grad():
            value = torch.sum(piece.value(problem, *parts))
        leaves = [part[name] for part in parts for name in wanted]
        found = iter(torch.autograd.grad(value, leaves, factor, allow_unused=True))
        for cases in piece.cases:
            for name in wanted:
                change = next(found)
                if change is not None:
                    total[name][cases] += change
    return total


def _leaves(rows: Rows, wanted: list[str]) -> Rows:
    return {name: value.detach().requires_grad_(name in wanted) for name, value in rows.items()}


# -- gradients of anything -------------------------------------------------------------------


def _recomputing(problem: Problem) -> Problem:
    """The same problem, recording a graph that holds no tensors of tiles and pairs: they are recomputed."""
    return _RecomputingProblem(**{name: getattr(problem, name) for name in problem.__dataclass_fields__})


class _RecomputingProblem(Problem):
    @cached_property
    def _recalled(self) -> list[dict[int, Array]]:
        return [{}]

    def tile(self, a: Rows, b: Rows) -> Array:
        return _recompute(super().tile, a, b, self._recalled)

    def paired(self, a: Rows, b: Rows) -> Array:
        return _recompute(super().paired, a, b, self._recalled)


def _recompute(function: Callable[..., Array], a: Rows, b: Rows, recalled: list[dict[int, Array]]) -> Array:
    """``function(a, b)``, keeping only its arguments for the backward pass.

    The graph that it records holds a number in place of each tensor. When the backward pass asks for
    one of them, the function runs again, and all of them are there; `recalled` holds those of the
    call that did so last. ``torch.utils.checkpoint`` does the same, but imports the compiler behind
    ``torch.compile``: seconds, and more memory than our tiles.
    """
    torch = sys.modules["torch"]
    hooks = torch.autograd.graph.saved_tensors_hooks
    numbers = count()
    tensors: dict[int, Array] = {}

    def keep(tensor: Array) -> None:
        tensors[len(tensors)] = tensor.detach()

    def recall(number: int) -> Array:
        if number not in tensors:
            tensors.clear()
            recalled[0].clear()
            recalled[0] = tensors
            with torch.enable_grad(), hooks(keep, _never):
                function(a, b)
        return tensors.pop(number)

    with hooks(lambda _: next(numbers), recall):
        return function(a, b)


def _never(_: None) -> Array:
    raise AssertionError("a graph that is only recomputed is never walked")
