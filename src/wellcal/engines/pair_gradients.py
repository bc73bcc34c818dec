"""Sums over pairs with derivatives in closed form: those of features and points, in one pass over the tiles.

Features and points depend on parameters of predictions in ways that PyTorch differentiates by itself, for n
cases and not for n^2 pairs. What it is given back is two matrices as large as these; of normals on a line it
is one number for each parameter instead.
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
from wellcal.engines.line_gradients import LineFeatures
from wellcal.engines.pair_terms import PairTerm, as_pair_terms
from wellcal.expectations.differences import OnALine
from wellcal.expectations.tensor_features import gradients_of
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
    lines = _Lines()
    exact = differentiable_features(problem, budget.device, lines.features if triton else None)
    terms = None if exact is None else as_pair_terms(exact, centred=False)
    if terms is None:
        return None
    if not triton and any(t.degree == 1 and t.points.shape[1] > _MOST_COORDINATES for t in terms):
        return None
    found: list[tuple[Array, Array]] = []
    for term in terms:
        line = lines.behind(term.features)
        sources = (term.features,) if line is None else (line.line.loc, line.line.variance)
        found.append(_function().apply(term, line, triton, term.points, *sources))
    total, rows = (reduce(add, parts) for parts in zip(*found, strict=True))
    return Differentiated(total, rows, tensor_pairs.derived_in_triton(terms) if triton else "")


class _Lines:
    """Features that kernels of Triton made, and what they were made of."""

    def __init__(self) -> None:
        self._made: list[tuple[Array, LineFeatures]] = []

    def features(self, line: OnALine) -> Array | None:
        """Those of normals on a line, without gradients; None where they are too many."""
        own = LineFeatures.of(line)
        if own is None:
            return None
        self._made.append((own.differences(), own))
        return self._made[-1][0]

    def behind(self, features: Array) -> LineFeatures | None:
        """What these very features were made of; None for others."""
        return next((own for made, own in self._made if made is features), None)


@cache
def _function() -> Any:
    # No type can be given: the base class is PyTorch's, which is not imported for its sake.
    torch = sys.modules["torch"]

    class PairSum(torch.autograd.Function):
        """Total and row sums of a term, from its points and features, or what is behind these on a line."""

        @staticmethod
        def forward(
            ctx: Any, term: PairTerm, line: LineFeatures | None, triton: bool, points: Array, *sources: Array
        ) -> tuple[Array, Array]:
            plain = replace(term, points=points.detach(), features=term.features.detach())
            rows, by_features, by_points = tensor_pairs.pair_gradients(plain, triton=triton)
            by_sources = (by_features,) if line is None else line.slopes(by_features)
            ctx.term, ctx.line = plain, line
            ctx.save_for_backward(points, *sources, by_points, *by_sources)
            ctx.mark_non_differentiable(rows)
            ctx.set_materialize_grads(False)
            return 0.5 * rows.sum(), rows

        @staticmethod
        def backward(ctx: Any, *outputs: Array) -> tuple[Any, ...]:
            saved = ctx.saved_tensors
            given, derivatives = saved[: len(saved) // 2], saved[len(saved) // 2 :]
            if not torch.is_grad_enabled():
                return None, None, None, *(outputs[0] * slope for slope in derivatives)
            # Gradients that are to be differentiated again: only here a graph over all pairs is held.
            points, *sources = given
            features = sources[0] if ctx.line is None else ctx.line.by_steps(*sources)
            total = tensor_pairs.differentiable_sum(replace(ctx.term, points=points, features=features))
            return None, None, None, *gradients_of(total, given, outputs[0])

    return PairSum
