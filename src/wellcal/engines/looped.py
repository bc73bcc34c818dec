"""Tiles whose sums come from one compiled loop, where all terms of a problem say that it is worth it."""

from __future__ import annotations

from typing import cast

import numpy as np

from wellcal._arrays.chunks import Span
from wellcal._arrays.compiled_pairs import compiled_by, pair_sums
from wellcal._arrays.namespaces import NDArray
from wellcal.engines.pieces import Piece
from wellcal.expectations.bilinear import WeightRows
from wellcal.expectations.on_predictions import ExpDistanceForm
from wellcal.problem.problem import Problem, ProblemRows

_KEY = "looped"


def is_looped(problem: Problem) -> bool:
    """Whether tiles of the problem are loops, which it then remembers for its provenance."""
    found = bool(problem.terms) and all(term.looped for term in problem.terms)
    if found:
        problem.kept[_KEY] = compiled_by()
    return found


def looped_sums(problem: Problem, tile: Piece, a: ProblemRows, b: ProblemRows) -> tuple[NDArray, NDArray]:
    """Sums of h along the rows and along the columns of a tile, pairs i < j alone."""
    first = _first(tile.rows, tile.columns)
    across, down = (np.zeros(some.stop - some.start) for some in (tile.rows, tile.columns))
    for term, x, y in zip(problem.terms, a, b, strict=True):
        form = cast("ExpDistanceForm", term.on_predictions)
        left, right = (cast("WeightRows", rows.on_targets).weights for rows in (x, y))
        rate = -1.0 / cast("float", form.lengthscale)
        found = pair_sums(x.on_predictions, y.on_predictions, left, right, rate, first)
        factor = cast("float", term.factor)
        across += factor * found[0]
        down += factor * found[1]
    return across, down


def _first(rows: Span, columns: Span) -> NDArray | None:
    """For each row the first column behind it; None where all are."""
    if rows.stop <= columns.start:
        return None
    return rows.numbers() + (1 - columns.start)


def described(problem: Problem) -> dict[str, str]:
    """For the provenance of a result, where there was a loop."""
    return {"compiled": problem.kept[_KEY]} if _KEY in problem.kept else {}
