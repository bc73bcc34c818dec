"""A problem as differences of expected features, where its kernel on targets has finitely many.

Tiles of such a problem are one matrix product times the kernel on predictions, for every family: a problem
whose kernels on targets are `FiniteForm`s without a kernel matrix. Engines that visit many pairs ask for it;
closed forms stay for few pairs, for kernels without finite features, and as what features are tested against.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from wellcal._arrays.chunks import Chunk
from wellcal._arrays.namespaces import Array, NDArray, is_numpy, is_torch, namespace, take_rows
from wellcal._arrays.rows import Rows
from wellcal._arrays.threads import one_blas_thread
from wellcal.expectations.bilinear import ElementForm, FiniteForm, Form, WeightRows
from wellcal.expectations.compression import Compressed, compressed, effort, rank_of_some, with_likely_rank
from wellcal.expectations.differences import FeatureSource, source_of
from wellcal.expectations.mmd import MeanDiscrepancy, NormedRows
from wellcal.expectations.on_predictions import ExpDistanceForm
from wellcal.expectations.separable import by_products
from wellcal.problem.problem import Problem, Term, TermRows
from wellcal.problem.weights import WeightedForm, WeightedRows

FEWEST = 1000
"""Cases from which features are looked for: below, finding them takes longer than all pairs do."""

_FEWEST_PAIRS = 8.0  # of a case, whose features take as long as a hundred evaluations
_FOR_THE_MEAN = 256  # cases
_OF_A_CLOSED_FORM, _OF_A_PRODUCT = 0.75, 0.4  # shares of their time that features save, as a rule
_LARGE = 2048  # features, as there are in a plane
_IN_A_PLANE = 4.0  # evaluations of a product that take as long as one of a closed form between measures there
_TERMS = 16.0  # of a matrix product that take as long as one evaluation


@dataclass(frozen=True)
class FeatureProblem:
    """A problem in feature form.

    Attributes
    ----------
    problem
        The same cases and the same h, by products of features.
    size
        Features of the term that has most; zero where only exponents are products.
    lost
        Largest share of the energy of features, the sum of their squares, that is left out.
    """

    problem: Problem
    size: int
    lost: float

    def describe(self) -> dict[str, Any]:
        """For the provenance of a result."""
        return {"features": self.size, "lost_energy": self.lost} if self.size else {}


@contextmanager
def closed_forms() -> Generator[None]:
    """Without features within a ``with`` block, for all threads: for comparisons.

    Examples
    --------
    >>> import wellcal as wc
    >>> from wellcal.problem.problem import prepare
    >>> y, pred = np.linspace(-1.0, 1.0, 2000), wc.Normal(np.zeros(2000), np.ones(2000))
    >>> with closed_forms():
    ...     in_features(prepare(y, pred)) is None
    True
    """
    before = _allowed.features
    _allowed.features = False
    try:
        yield
    finally:
        _allowed.features = before


@dataclass
class _Allowed:
    features: bool = True


_allowed = _Allowed()


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
    if not _allowed.features or not (_in_numpy(problem) or (tensors and _in_tensors(problem))):
        return None
    if "features" not in problem.kept:
        with one_blas_thread():
            problem.kept["features"] = _find(problem, visited)
    return cast("FeatureProblem | None", problem.kept["features"])


def _in_numpy(problem: Problem) -> bool:
    return all(isinstance(array, np.ndarray) for array in problem.arrays)


def _in_tensors(problem: Problem) -> bool:
    return is_torch(problem.xp) and not any(
        isinstance(array, np.ndarray) or array.requires_grad for array in problem.arrays
    )


def in_products(problem: Problem, *, tensors: bool = False) -> Problem | None:
    """The problem, if all four terms of h cancel before rows meet: targets meet as products of features."""
    found = in_features(problem, tensors=tensors)
    exact = problem if found is None else found.problem
    forms = [term.on_targets for term in exact.terms]
    return exact if all(isinstance(form, FiniteForm) and form.gram is None for form in forms) else None


def differentiable_features(problem: Problem, most: int) -> Problem | None:
    """The problem with features of all cases as they come, for tensors whose gradients flow through them.

    None where targets or predictions have no finite features, or these have more than `most` entries.
    """
    if not _allowed.features or not is_torch(problem.xp):
        return None
    terms: list[Term] = []
    rows: list[TermRows] = []
    for term, own in zip(problem.terms, problem.rows, strict=True):
        source = _source(term.on_targets, own.on_targets)
        if source is None or source.size * source.n > most:
            return None
        features = source.of(slice(0, source.n))
        term = replace(term, on_targets=FiniteForm(None, source.size))
        own = own._replace(on_targets=WeightRows(features))
        form = term.on_predictions
        if isinstance(form, ExpDistanceForm) and isinstance(form.inner, MeanDiscrepancy):
            distance, inner = form.inner, cast("NormedRows", own.on_predictions)
            source = source_of(distance.form, inner.inner)
            if source is None or source.size * source.n > most:
                return None
            found = NormedRows(inner.norm, WeightRows(source.of(slice(0, source.n))))
            nearer = replace(distance, form=FiniteForm(None, source.size))
            term = replace(term, on_predictions=replace(form, inner=nearer))
            own = own._replace(on_predictions=found)
        terms.append(term)
        rows.append(own)
    return replace(problem, terms=tuple(terms), rows=tuple(rows))


def known_features(problem: Problem) -> FeatureProblem | None:
    """The feature form, if anybody has asked for it and there is one."""
    return cast("FeatureProblem | None", problem.kept.get("features"))


def _find(problem: Problem, pairs: float) -> FeatureProblem | None:
    terms: list[Term] = []
    rows: list[TermRows] = []
    size, lost, changed = 0, 0.0, False
    for term, own in zip(problem.terms, problem.rows, strict=True):
        products = None
        if (
            isinstance(term.on_targets, ElementForm)
            and is_numpy(problem.xp)
            and term.on_targets.dimension > 1
        ):
            products = by_products(term.on_targets, own.on_targets)
        found = _on_targets(term.on_targets, own.on_targets, pairs) if products is None else None
        nearer = _on_predictions(term.on_predictions, own.on_predictions, pairs)
        if found is not None:
            term, own = replace(term, on_targets=found[0]), own._replace(on_targets=found[1])
            size, lost, changed = max(size, found[0].size), max(lost, found[2]), True
        elif products is not None:
            term, own = replace(term, on_targets=products[0]), own._replace(on_targets=products[1])
            changed = True
        if nearer is not None:
            term, own = replace(term, on_predictions=nearer[0]), own._replace(on_predictions=nearer[1])
            lost, changed = max(lost, nearer[2]), True
        terms.append(term)
        rows.append(own)
    if not changed:
        return None
    return FeatureProblem(replace(problem, terms=tuple(terms), rows=tuple(rows)), size, lost)


def _on_targets(form: Form, rows: Rows, pairs: float) -> tuple[FiniteForm, WeightRows, float] | None:
    """The pairing as a product of differences, where that is quicker for so many pairs."""
    source = _source(form, rows)
    if source is None or not _promises(source, form, pairs):
        return None
    found = compressed(source)
    if not _shortens(found, form, source):
        return None
    return FiniteForm(None, found.values.shape[1]), WeightRows(found.values), found.lost


def _promises(source: FeatureSource, form: Form, pairs: float) -> bool:
    """Whether making features takes less time than they are likely to save."""
    saved = (_OF_A_PRODUCT if isinstance(form, FiniteForm) else _OF_A_CLOSED_FORM) * pairs
    if source.size <= _LARGE:
        if effort(source) >= saved * _cost(form):
            return False
        # Some cases tell whether all of them have too many directions, as sharp predictions do.
        return source.size / _TERMS < _cost(form) or rank_of_some(source) / _TERMS < _cost(form)
    # They are worth it only if they are few in the end, and a look at that is worth it only for many pairs.
    cost = _cost(form) if isinstance(form, FiniteForm) else _IN_A_PLANE * _cost(form)
    if source.n * (source.each + source.size / _TERMS) > saved * cost:
        return False
    known = with_likely_rank(source)
    assert known.rank is not None
    return known.rank / _TERMS < 0.5 * cost and effort(known) < saved * cost


def _shortens(found: Compressed, form: Form, source: FeatureSource) -> bool:
    """Whether the product takes less time than the form."""
    slow = source.size > _LARGE and not isinstance(form, FiniteForm)
    return found.values.shape[1] / _TERMS < _cost(form) * (_IN_A_PLANE if slow else 1.0)


def _cost(form: Form) -> float:
    if not isinstance(form, FiniteForm):
        return form.cost.evaluations
    return form.size / _TERMS


def _source(form: Form, rows: Rows) -> FeatureSource | None:
    if not isinstance(form, WeightedForm):
        return source_of(form, rows)
    weighted = cast("WeightedRows", rows)
    inner = _source(form.inner, weighted.inner)
    if inner is None:
        return None
    weights, plain = weighted.weights, inner

    def of(cases: Chunk | NDArray) -> Array:
        return take_rows(weights, cases)[:, None] * plain.of(cases)

    return replace(plain, of=of)


def _on_predictions(form: Form | None, rows: Rows, pairs: float) -> tuple[Form, Rows, float] | None:
    """A kernel of the MMD between predictions by features, about their mean and in few coordinates."""
    if not isinstance(form, ExpDistanceForm):
        return None
    distance = form.inner
    if not isinstance(distance, MeanDiscrepancy):
        return None
    source = source_of(distance.form, cast("NormedRows", rows).inner)
    if source is None or not _promises(source, distance.form, pairs):
        return None
    plain = source
    some: NDArray = np.unique(np.linspace(0, source.n - 1, _FOR_THE_MEAN).astype(int))
    centre: Array = plain.of(some).mean(axis=0)

    def about_the_mean(cases: Chunk | NDArray) -> Array:
        return plain.of(cases) - centre

    found = compressed(replace(plain, of=about_the_mean))
    if not _shortens(found, distance.form, source):
        return None
    xp = namespace(found.values)
    norms = xp.sum(found.values**2, axis=1)
    nearer = replace(distance, form=FiniteForm(None, found.values.shape[1]))
    return replace(form, inner=nearer), NormedRows(norms, WeightRows(found.values)), found.lost
