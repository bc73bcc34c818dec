"""A problem as differences of expected features, where its kernel on targets has finitely many.

Tiles of such a problem are one matrix product times the kernel on predictions, for every family: a problem
whose kernels on targets are `FiniteForm`s without a kernel matrix. Engines that visit many pairs ask for it;
closed forms stay for few pairs, for kernels without finite features, and as what features are tested against.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from operator import is_
from typing import cast

import numpy as np

from wellcal._arrays.namespaces import is_numpy, is_torch, namespace
from wellcal._arrays.rows import Rows
from wellcal._arrays.threads import one_blas_thread
from wellcal.expectations.bilinear import ElementForm, FiniteForm, Form, WeightRows
from wellcal.expectations.embedding import embed, features_of
from wellcal.expectations.mmd import MeanDiscrepancy, NormedRows
from wellcal.expectations.prediction_kernels import ExpDistanceForm
from wellcal.expectations.separable import by_products
from wellcal.problem.problem import FeatureProblem, Problem, Term, TermRows

FEWEST = 1000
"""Cases from which features are looked for: below, finding them takes longer than all pairs do."""

_FEWEST_PAIRS = 8.0  # of a case, whose features take as long as a hundred evaluations


@contextmanager
def closed_forms() -> Generator[None]:
    """Take closed forms instead of features within a ``with`` block, for comparisons.

    Examples
    --------
    >>> import wellcal as wc
    >>> from wellcal.problem.problem import prepare
    >>> y, pred = np.linspace(-1.0, 1.0, 2000), wc.Normal(np.zeros(2000), np.ones(2000))
    >>> with closed_forms():
    ...     in_features(prepare(y, pred)) is None
    True
    """
    token = _allowed.set(False)
    try:
        yield
    finally:
        _allowed.reset(token)


_allowed: ContextVar[bool] = ContextVar("_allowed", default=True)


def in_features(
    problem: Problem, pairs: float | None = None, *, tensors: bool = False
) -> FeatureProblem | None:
    """The problem in feature form; None where it has none, or where closed forms are quicker.

    Parameters
    ----------
    problem
        A problem whose rows are NumPy's; others keep their closed forms.
    pairs
        How many pairs will be visited, None for all. The first answer is remembered with the problem.
    tensors
        Whether rows may also be tensors without gradients: features are then made on their device.

    Examples
    --------
    >>> import wellcal as wc
    >>> from wellcal.problem.problem import prepare
    >>> rng = np.random.default_rng(0)
    >>> loc = rng.normal(size=2000)
    >>> problem = prepare(rng.normal(loc), wc.Normal(loc, np.ones(2000)))
    >>> found = in_features(problem)
    >>> found.size < 50, found.lost < 1e-13
    (True, True)
    >>> some = slice(0, 100)
    >>> bool(np.abs(found.problem.values(some, some) - problem.values(some, some)).max() < 1e-12)
    True
    """
    visited = 0.5 * problem.n**2 if pairs is None else pairs
    if problem.n < FEWEST or visited < max(0.5 * FEWEST**2, _FEWEST_PAIRS * problem.n):
        return None
    xp, arrays = problem.xp, problem.arrays
    in_numpy = all(isinstance(array, np.ndarray) for array in arrays)
    constant = tensors and is_torch(xp) and not any(getattr(a, "requires_grad", True) for a in arrays)
    if not _allowed.get() or not (in_numpy or constant):
        return None
    if not problem.prepared.asked:
        problem.prepared.asked = True
        with one_blas_thread():
            problem.prepared.features = _find(problem, visited)
    return problem.prepared.features


def in_products(problem: Problem, *, tensors: bool = False) -> Problem | None:
    """The problem, if all four terms of h cancel before rows meet: targets meet as products of features."""
    found = in_features(problem, tensors=tensors)
    exact = problem if found is None else found.problem
    forms = [term.on_targets for term in exact.terms]
    return exact if all(isinstance(form, FiniteForm) and form.gram is None for form in forms) else None


def differentiable_features(problem: Problem, most: int) -> Problem | None:
    """Return the problem with features of all cases as they come: gradients flow through those of tensors.

    None where targets or predictions have no finite features, or these have more than `most` entries.
    """
    if not _allowed.get() or not is_torch(problem.xp):
        return None

    def whole(form: Form, rows: Rows) -> tuple[FiniteForm, WeightRows] | None:
        features = features_of(form, rows)
        if features is None or features.size * features.n > most:
            return None
        return FiniteForm(None, features.size), WeightRows(features.of(slice(0, features.n)))

    terms: list[Term] = []
    rows: list[TermRows] = []
    for term, own in zip(problem.terms, problem.rows, strict=True):
        found = whole(term.on_targets, own.on_targets)
        if found is None:
            return None
        term, own = replace(term, on_targets=found[0]), own._replace(on_targets=found[1])
        form = term.on_predictions
        if isinstance(form, ExpDistanceForm) and isinstance(form.inner, MeanDiscrepancy):
            normed = cast("NormedRows", own.on_predictions)
            found = whole(form.inner.form, normed.inner)
            if found is None:
                return None
            term = replace(term, on_predictions=replace(form, inner=replace(form.inner, form=found[0])))
            own = own._replace(on_predictions=NormedRows(normed.norm, found[1]))
        terms.append(term)
        rows.append(own)
    return replace(problem, terms=tuple(terms), rows=tuple(rows))


def _find(problem: Problem, pairs: float) -> FeatureProblem | None:
    terms: list[Term] = []
    rows: list[TermRows] = []
    size, lost = 0, 0.0
    for term, own in zip(problem.terms, problem.rows, strict=True):
        form = term.on_targets
        products = None
        if isinstance(form, ElementForm) and form.dimension > 1 and is_numpy(problem.xp):
            products = by_products(form, own.on_targets)
        if products is not None:
            term, own = replace(term, on_targets=products[0]), own._replace(on_targets=products[1])
        elif (embedding := embed(form, own.on_targets, pairs)) is not None:
            width = int(embedding.values.shape[1])
            term = replace(term, on_targets=FiniteForm(None, width))
            own = own._replace(on_targets=WeightRows(embedding.values))
            size, lost = max(size, width), max(lost, embedding.lost)
        nearer = _on_predictions(term.on_predictions, own.on_predictions, pairs)
        if nearer is not None:
            term, own = replace(term, on_predictions=nearer[0]), own._replace(on_predictions=nearer[1])
            lost = max(lost, nearer[2])
        terms.append(term)
        rows.append(own)
    if all(map(is_, terms, problem.terms)):
        return None
    return FeatureProblem(replace(problem, terms=tuple(terms), rows=tuple(rows)), size, lost)


def _on_predictions(form: Form | None, rows: Rows, pairs: float) -> tuple[Form, Rows, float] | None:
    """A kernel of the MMD between predictions by features, about their mean and in few coordinates."""
    if not isinstance(form, ExpDistanceForm):
        return None
    distance = form.inner
    if not isinstance(distance, MeanDiscrepancy):
        return None
    found = embed(distance.form, cast("NormedRows", rows).inner, pairs, centred=True)
    if found is None:
        return None
    norms = namespace(found.values).sum(found.values**2, axis=1)
    nearer = replace(distance, form=FiniteForm(None, int(found.values.shape[1])))
    return replace(form, inner=nearer), NormedRows(norms, WeightRows(found.values)), found.lost
