"""Products in float32, after the four terms of h have cancelled.

Differences of features are rounded once, and so are the points that distances between predictions are taken
of. Rounding errors of pairs hardly line up; control rows tell how far the sum is off.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.rows import Rows, map_rows
from wellcal.expectations.bilinear import FiniteForm, Form
from wellcal.expectations.distances import EmbeddingDistance
from wellcal.expectations.mmd import MeanDiscrepancy
from wellcal.expectations.prediction_kernels import ExpDistanceForm
from wellcal.problem.feature_form import in_products
from wellcal.problem.problem import Problem, Term, TermRows

PRECISIONS = ("auto", "float64", "mixed")

AUTO_FROM = 20_000
"""Cases from which "auto" tries float32: with fewer, float64 takes less than two seconds."""

_DROPPED = 1e-11  # share of the energy of features that is left out: less than rounding them


def in_single_precision(problem: Problem) -> Problem | None:
    """Return the problem in float32; None where h is no product of features, or distances have no points."""
    exact = in_products(problem)
    if exact is None or not all(map(_can_be_rounded, exact.terms)):
        return None
    terms: list[Term] = []
    rows: list[TermRows] = []
    for term, own in zip(exact.terms, exact.rows, strict=True):
        form, predictions = cast("ExpDistanceForm", term.on_predictions), own.on_predictions
        if isinstance(form.inner, EmbeddingDistance):
            # Distances do not depend on the origin, and what is small is rounded less.
            predictions = predictions - np.median(predictions, axis=0)
        weights = own.on_targets.weights
        targets = own.on_targets._replace(weights=weights[:, large_columns(weights)])
        on_targets = FiniteForm(None, targets.weights.shape[1])
        terms.append(replace(term, on_predictions=form, on_targets=on_targets))
        rows.append(TermRows(_single(targets), _single(predictions)))
    return replace(exact, terms=tuple(terms), rows=tuple(rows))


def _can_be_rounded(term: Term) -> bool:
    form: Form | None = term.on_predictions
    if not isinstance(form, ExpDistanceForm):
        return False
    if not (isinstance(form.lengthscale, float) and isinstance(term.factor, float)):
        return False
    if isinstance(form.inner, MeanDiscrepancy):
        return isinstance(form.inner.form, FiniteForm) and form.inner.form.gram is None
    return isinstance(form.inner, EmbeddingDistance)


def large_columns(weights: NDArray) -> NDArray:
    """Return columns that hold all but a negligible part of the sum of squares, ascending."""
    squares = np.einsum("nm,nm->m", weights, weights)
    order = np.argsort(squares)
    return np.sort(order[np.cumsum(squares[order]) > _DROPPED * squares.sum()])


def _single(rows: Rows) -> Rows:
    return map_rows(lambda array: array.astype(np.float32), rows)
