"""Sums over pairs with derivatives in closed form: those of features and points, in one pass over the tiles.

Features and points depend on parameters of predictions in ways that PyTorch differentiates by itself, for n
cases and not for n^2 pairs. What it is given back is two matrices as large as these.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from wellcal._arrays.chunks import budget
from wellcal._arrays.namespaces import Array
from wellcal.engines import tensor_pairs
from wellcal.engines.pair_terms import PairTerm, pair_terms
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


def sum_with_derivatives(problem: Problem) -> Differentiated | None:
    """The sum over all pairs, if somebody may ask for its gradient and there is a closed form of it."""
    torch = sys.modules["torch"]
    if not torch.is_grad_enabled() or not any(a.requires_grad for a in problem.arrays):
        return None
    if problem.n < FEWEST or not is_constant(problem.kernel):
        return None
    exact = differentiable_features(problem, most=budget.device)
    terms = None if exact is None else pair_terms(exact)
    if terms is None or any(t.degree == 1 and t.points.shape[1] > _MOST_COORDINATES for t in terms):
        return None
    total: Array = 0.0
    rows: Array = 0.0
    for term in terms:
        own, of_cases = _function().apply(term, term.points, term.features)
        total, rows = total + own, rows + of_cases
    return Differentiated(total, rows)


@cache
def _function() -> Any:
    # No type can be given: the base class is PyTorch's, which is not imported for its sake.
    torch = sys.modules["torch"]

    class PairSum(torch.autograd.Function):
        """Total and row sums of a term, from its points and features."""

        @staticmethod
        def forward(ctx: Any, term: PairTerm, points: Array, features: Array) -> tuple[Array, Array]:
            plain = replace(term, points=points.detach(), features=features.detach())
            total, by_features, by_points = tensor_pairs.pair_gradients(plain)
            ctx.term = plain
            ctx.save_for_backward(points, features, by_points, by_features)
            # Each pair is in the sums of both of its cases, linear in the features of either.
            rows = (by_features * plain.features).sum(dim=1)
            ctx.mark_non_differentiable(rows)
            return total, rows

        @staticmethod
        def backward(ctx: Any, *outputs: Array) -> tuple[Any, ...]:
            points, features, by_points, by_features = ctx.saved_tensors
            if not torch.is_grad_enabled():
                return None, outputs[0] * by_points, outputs[0] * by_features
            # Gradients that are to be differentiated again: only here a graph over all pairs is held.
            total = tensor_pairs.differentiable_sum(replace(ctx.term, points=points, features=features))
            found = torch.autograd.grad(
                total, (points, features), outputs[0], create_graph=True, materialize_grads=True
            )
            return (None, *found)

    return PairSum
