"""Sums over pairs with derivatives in closed form: those of features and points, in one pass over the tiles.

Features and points depend on parameters of predictions in ways that PyTorch differentiates by itself, for n
cases and not for n^2 pairs. What it is given back is two matrices as large as these.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache, reduce
from operator import add
from typing import Any, NamedTuple

from wellcal._arrays.chunks import budget
from wellcal._arrays.namespaces import Array
from wellcal.engines import tensor_pairs
from wellcal.engines.line_gradients import line_differences
from wellcal.engines.pair_terms import PairTerm, as_pair_terms
from wellcal.kernels.parts import is_constant
from wellcal.problem.feature_form import differentiable_features
from wellcal.problem.problem import Problem

FEWEST = 128
"""Cases from which derivatives are taken in this way: below, closed forms are as quick."""

_MOST_COORDINATES = 64  # of L1 distances, whose derivatives are taken one by one


class Differentiated(NamedTuple):
    """A sum over pairs i < j that carries gradients, and sums of cases that do not."""

    total: Array
    rows: Array
    by_triton: str
    """What came from kernels of Triton: "pairs", "distances", or nothing."""


def sum_with_derivatives(problem: Problem, *, triton: bool = False) -> Differentiated | None:
    """The sum over all pairs, if somebody may ask for its gradient and there is a closed form of it.

    All of it for few cases, and L1 distances of more, is taken by kernels of Triton where `triton` says so.
    """
    torch = sys.modules["torch"]
    if not torch.is_grad_enabled() or not any(a.requires_grad for a in problem.arrays):
        return None
    if problem.n < FEWEST or not is_constant(problem.kernel):
        return None
    exact = differentiable_features(problem, budget.device, line_differences if triton else None)
    terms = None if exact is None else as_pair_terms(exact)
    if terms is None:
        return None
    if not triton and any(t.degree == 1 and t.points.shape[1] > _MOST_COORDINATES for t in terms):
        return None
    found = [_function().apply(term, triton, term.points, term.features) for term in terms]
    total, rows = (reduce(add, parts) for parts in zip(*found, strict=True))
    return Differentiated(total, rows, tensor_pairs.derived_in_triton(terms) if triton else "")


@cache
def _function() -> Any:
    # No type can be given: the base class is PyTorch's, which is not imported for its sake.
    torch = sys.modules["torch"]

    class PairSum(torch.autograd.Function):
        """Total and row sums of a term, from its points and features."""

        @staticmethod
        def forward(
            ctx: Any, term: PairTerm, triton: bool, points: Array, features: Array
        ) -> tuple[Array, Array]:
            plain = replace(term, points=points.detach(), features=features.detach())
            rows, by_features, by_points = tensor_pairs.pair_gradients(plain, triton=triton)
            ctx.term = plain
            ctx.save_for_backward(points, features, by_points, by_features)
            ctx.mark_non_differentiable(rows)
            ctx.set_materialize_grads(False)
            return 0.5 * rows.sum(), rows

        @staticmethod
        def backward(ctx: Any, *outputs: Array) -> tuple[Any, ...]:
            points, features, by_points, by_features = ctx.saved_tensors
            if not torch.is_grad_enabled():
                return None, None, outputs[0] * by_points, outputs[0] * by_features
            # Gradients that are to be differentiated again: only here a graph over all pairs is held.
            total = tensor_pairs.differentiable_sum(replace(ctx.term, points=points, features=features))
            found = torch.autograd.grad(
                total, (points, features), outputs[0], create_graph=True, materialize_grads=True
            )
            return (None, None, *found)

    return PairSum
