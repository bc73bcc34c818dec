"""Sums over pairs in PyTorch with a backward pass that evaluates each piece again.

Only the rows of the problem are kept between the two passes: a graph of the pieces would hold n^2 numbers
for n cases. (``torch.utils.checkpoint`` for each piece does record a graph without numbers; its many small
nodes, made between large arrays, break up the memory that these come from, and its first call imports the
compiler behind ``torch.compile``.)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import Array, stop_gradient
from wellcal._arrays.progress import reporter
from wellcal._arrays.rows import Rows, arrays_of, map_rows, slice_rows, with_arrays
from wellcal.engines.pair_blocks import PAIRS, Piece
from wellcal.kernels.base import is_constant
from wellcal.problem.problem import Problem

Pieces = Callable[[], Iterable[Piece]]
"""Pieces, from the first one on at each call: the backward pass visits them again."""

Summation = Callable[[Problem], tuple[Array, Array]]
"""From a problem to the total and the row sums, by operations that PyTorch differentiates."""

ClosedForm = Callable[[Problem], "tuple[Array, Array, list[Array | None]]"]
"""From a problem to the total, the row sums, and derivatives of the total by each array; None for zero."""

_PROBE = 8  # cases whose pairs show which tensors the kernel depends on


def counted(pieces: Pieces, pairs: int) -> Iterator[Piece]:
    """Yield the pieces of so many pairs; progress is reported when the next is asked for."""
    told, done = reporter(), 0
    told(PAIRS, 0, pairs)
    for piece in pieces():
        yield piece
        done += piece.pairs
        told(PAIRS, done, pairs)


def sum_with_gradient(
    problem: Problem, pieces: Pieces, pairs: int, plain_sum: Summation, closed: ClosedForm | None = None
) -> tuple[Array, Array]:
    """Total and row sums by `plain_sum`, a loop over `pieces`, whose backward pass evaluates these again.

    With a `closed` form of the derivatives they are computed together with the sums instead.
    """
    torch = sys.modules["torch"]
    if not torch.is_grad_enabled():
        return plain_sum(problem)
    learned = [] if is_constant(problem.kernel) else _learned_by_kernel(problem)
    arrays = arrays_of(problem.rows)
    if not learned and not any(getattr(array, "requires_grad", False) for array in arrays):
        return plain_sum(problem)
    job = _Job(problem, pieces, pairs, plain_sum, closed, len(arrays))
    return _sum_function().apply(job, *arrays, *learned)


def _learned_by_kernel(problem: Problem) -> list[Array]:
    """Tensors that h depends on and that are not in the rows, such as a length scale that is learned."""
    torch = sys.modules["torch"]
    some = np.unique(np.linspace(0, problem.n - 1, _PROBE).astype(int))
    rows = map_rows(stop_gradient, slice_rows(problem.rows, some))
    with torch.enable_grad():
        return _leaves_behind(problem.h(rows, rows))


def _leaves_behind(result: Array) -> list[Array]:
    """Tensors with a gradient of their own that a result was computed from."""
    leaves: list[Array] = []
    rest, seen = [result.grad_fn], {None}
    while rest:
        node = rest.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        rest.extend(before for before, _ in node.next_functions)
    return leaves


@dataclass(frozen=True)
class _Job:
    """A sum over pairs, apart from tensors; `count` arrays of rows come before those the kernel learns."""

    problem: Problem
    pieces: Pieces
    pairs: int
    plain_sum: Summation
    closed: ClosedForm | None
    count: int


@cache
def _sum_function() -> Any:
    # No type can be given: the base class is PyTorch's, which is not imported for its sake.
    torch = sys.modules["torch"]

    class PieceSum(torch.autograd.Function):
        """Total and row sums of a job, from its rows and the tensors that its kernel learns."""

        @staticmethod
        def forward(ctx: Any, job: _Job, *tensors: Array) -> tuple[Array, Array]:
            ctx.job, slopes = job, []
            if job.closed is None:
                total, rows = job.plain_sum(job.problem)
            else:
                total, rows, slopes = job.closed(job.problem)
            ctx.save_for_backward(*tensors, *slopes)
            ctx.mark_non_differentiable(rows)
            return total, rows

        @staticmethod
        def backward(ctx: Any, *outputs: Array) -> tuple[Any, ...]:
            count = len(ctx.needs_input_grad) - 1
            given, slopes = list(ctx.saved_tensors[:count]), ctx.saved_tensors[count:]
            wanted = [k for k, needed in enumerate(ctx.needs_input_grad[1:]) if needed]
            if torch.is_grad_enabled():
                gradients = _gradients_with_graph(ctx.job, given, wanted, outputs[0])
            elif slopes:
                gradients = [None if slopes[k] is None else outputs[0] * slopes[k] for k in wanted]
            else:
                gradients = _gradients(ctx.job, given, wanted, outputs[0])
            places = dict(zip(wanted, gradients, strict=True))
            return (None, *(places.get(k) for k in range(count)))

    return PieceSum


def _gradients_with_graph(job: _Job, given: list[Array], wanted: list[int], factor: Array) -> list[Array]:
    """Gradients that are to be differentiated again: only here a graph over all pairs is held."""
    torch = sys.modules["torch"]
    # Some rows are made of others, or of what the kernel learns, and hand on what they get: gradients are
    # those by each of them alone. Views of rows are behind none of the others.
    views = [array.view_as(array) for array in given[: job.count]]
    total, _ = job.plain_sum(replace(job.problem, rows=with_arrays(job.problem.rows, views)))
    of_rows = [views[k] for k in wanted if k < job.count]
    learned = [given[k] for k in wanted if k >= job.count]
    options = {"create_graph": True, "materialize_grads": True}
    gradients = list(torch.autograd.grad(total, of_rows + learned, factor, **options))
    if not learned or not of_rows:
        return gradients
    by_rows, by_kernel = gradients[: len(of_rows)], gradients[len(of_rows) :]
    through_rows = torch.autograd.grad(of_rows, learned, by_rows, **options)
    return by_rows + [whole - part for whole, part in zip(by_kernel, through_rows, strict=True)]


def _gradients(job: _Job, given: list[Array], wanted: list[int], factor: Array) -> list[Array]:
    """Gradients of `factor` times the total, piece by piece, for the given tensors that are wanted."""
    torch = sys.modules["torch"]
    rows = with_arrays(job.problem.rows, given[: job.count])
    of_rows = [k for k in wanted if k < job.count]
    learned = [given[k] for k in wanted if k >= job.count]
    gradients = [torch.zeros_like(given[k]) for k in wanted]
    expected = {id(tensor) for tensor in given[job.count :]}
    for piece in counted(job.pieces, job.pairs):
        parts = [_with_leaves(slice_rows(rows, cases), of_rows) for cases in piece.cases]
        leaves = [arrays[k] for arrays, _ in parts for k in of_rows]
        with torch.enable_grad():
            value = torch.sum(piece.value(job.problem, *(part for _, part in parts)))
        _check_complete(value, expected | {id(leaf) for leaf in leaves})
        # Graphs behind tensors of the kernel serve the next piece too.
        options = {"retain_graph": bool(expected), "materialize_grads": True}
        changes = iter(torch.autograd.grad(value, leaves + learned, factor, **options))
        for cases in piece.cases:
            for gradient in gradients[: len(of_rows)]:
                gradient[cases] += next(changes)
        for gradient in gradients[len(of_rows) :]:
            gradient += next(changes)
    return gradients


def _with_leaves(rows: Rows, wanted: list[int]) -> tuple[list[Array], Rows]:
    """Arrays without history, the wanted ones with a gradient of their own; as a list and as rows."""
    arrays = [array.detach().requires_grad_(k in wanted) for k, array in enumerate(arrays_of(rows))]
    return arrays, with_arrays(rows, arrays)


def _check_complete(value: Array, expected: set[int]) -> None:
    """Refuse to return part of a gradient."""
    if any(id(leaf) not in expected for leaf in _leaves_behind(value)):
        raise RuntimeError(
            "the kernel depends on a tensor for some pairs of predictions only, and its gradient would be "
            "incomplete; let its function depend on the same tensors for all pairs, or detach() them"
        )
