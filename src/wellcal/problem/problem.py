"""A calibration problem, prepared: O(n) work once, then pure tiles of the function h.

    h_ij = k_P(P_i, P_j) * < P_i - d(y_i), P_j - d(y_j) >_kY

summed over the terms of the kernel. Engines see rows of arrays and two pure functions of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial, reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from wellcal._arrays.checks import described
from wellcal._arrays.chunks import in_chunks, keep_freed_memory
from wellcal._arrays.memo import keeping_large_values
from wellcal._arrays.namespaces import (
    Array,
    Namespace,
    NDArray,
    is_array,
    is_jax,
    is_numpy,
    namespace,
    take_rows,
)
from wellcal._arrays.ops import Ops, ops_for
from wellcal._arrays.rows import Rows, arrays_of, map_rows, slice_rows
from wellcal.expectations.bilinear import Cost, Form
from wellcal.expectations.expansion import Notes, plan
from wellcal.expectations.joint import JointForm
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.prediction_kernels import in_few_columns, prediction_kernel
from wellcal.expectations.signed_measures import (
    Targets,
)
from wellcal.kernels.algebra import Scaled, Sum, Tensor
from wellcal.kernels.base import Kernel, Scale, is_constant
from wellcal.kernels.targets import Joint
from wellcal.predictions import Predictions
from wellcal.predictions.base import check_inputs
from wellcal.predictions.batches import host_copies
from wellcal.problem.defaults import default_kernel
from wellcal.problem.target_resampling import draw_targets, unsampled_family
from wellcal.problem.v_to_u_statistic import correction_of_draws


class TermRows(NamedTuple):
    """Rows that a term reads."""

    on_targets: Rows
    on_predictions: Rows


ProblemRows: TypeAlias = tuple[TermRows, ...]
"""Rows of all terms of a kernel."""

Correction: TypeAlias = Callable[[], Array]
"""Gives a number for each case, ``(n,)``; few ask for it, and of S draws it takes S^2 evaluations a case."""


Redrawn: TypeAlias = "Callable[[NDArray], Problem | None]"
"""Gives the problem of some of the cases, by their positions, with other targets; None where it cannot."""


@dataclass(frozen=True)
class Term:
    """One summand of h: factor * k_P * pairing; a kernel that does not factor has no k_P."""

    factor: Scale
    on_predictions: Form | None
    on_targets: Form

    @property
    def cost(self) -> Cost:
        """Resources for one pair."""
        own = self.on_targets.cost
        return own if self.on_predictions is None else own + self.on_predictions.cost

    def __call__(self, ops: Ops, a: TermRows, b: TermRows) -> Array:
        """Return values of all pairs of rows, ``(..., n, ...)`` and ``(..., m, ...)`` to ``(..., n, m)``."""
        value = self.on_targets(ops, a.on_targets, b.on_targets)
        if self.on_predictions is not None:
            value = value * self.on_predictions(ops, a.on_predictions, b.on_predictions)
        return value if isinstance(self.factor, float) and self.factor == 1.0 else self.factor * value


@dataclass(frozen=True)
class Problem:
    """What engines work on: n cases, and h for any two of them.

    :meth:`values` is h for all pairs of some cases with some others, which is all that an engine needs.
    :meth:`h` takes rows that were sliced before: a pure function of arrays, to be compiled or
    differentiated.

    Attributes
    ----------
    n
        Number of cases.
    rows
        Arrays with the cases along the first axis, a part for each term. Those of a problem in JAX may
        wait in NumPy until a program takes them.
    terms
        How :meth:`h` reads them.
    kernel, notes
        The kernel used, and how its expectations were obtained.
    xp
        Array library.
    self_correction
        Gives what leaving out pairs of a draw with itself adds to h_ii, ``(n,)``; None without draws.
    redrawn
        Gives the problem of some of the cases with targets drawn from their predictions.
    prepared
        Values that were computed about the problem, for the next one who asks.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> pred = wc.Normal(np.zeros(3), np.ones(3))
    >>> problem = prepare([0.1, 0.2, 0.9], pred, wc.default_kernel(pred))
    >>> h = problem.values(slice(0, 3), slice(0, 3))
    >>> bool(np.allclose(h, h.T)), problem.n
    (True, 3)
    """

    n: int
    rows: ProblemRows
    terms: tuple[Term, ...]
    kernel: Kernel
    notes: Notes
    xp: Namespace
    self_correction: Correction | None
    redrawn: Redrawn | None = None
    prepared: Prepared = field(default_factory=lambda: Prepared(), init=False, repr=False, compare=False)

    @property
    def ops(self) -> Ops:
        """Operations of the library the rows live in."""
        return ops_for(self.xp)

    @cached_property
    def cost(self) -> Cost:
        """Resources for one pair."""
        return reduce(Cost.__add__, (term.cost for term in self.terms), Cost(0.0, entries=0))

    def h(self, a: ProblemRows, b: ProblemRows) -> Array:
        """Return h for all pairs of rows, ``(..., n, ...)`` and ``(..., m, ...)`` to ``(..., n, m)``.

        Axes before the last two are batches, whose rows meet within each batch only.
        """
        ops = self.ops
        return _total([term(ops, x, y) for term, x, y in zip(self.terms, a, b, strict=True)])

    def values(self, i: slice | NDArray, j: slice | NDArray) -> Array:
        """h for all pairs of some cases with some others, ``(len(i), len(j))``."""
        return self.h(slice_rows(self.rows, i), slice_rows(self.rows, j))

    @property
    def arrays(self) -> list[Array]:
        """All arrays that the values depend on, cases along the first axis."""
        return arrays_of(self.rows)

    def diagonal(self) -> Array:
        """h_ii, ``(n,)``. For draws, pairs of a draw with itself are left out."""
        value = self.own_values()
        return value if self.self_correction is None else value + self.self_correction()

    def own_values(self) -> Array:
        """Return h_ii, ``(n,)``, with pairs of a draw with itself; in NumPy for some cases at a time."""
        if not all(isinstance(array, np.ndarray) for array in self.arrays):
            return self._matching(self.rows)
        own = replace(self, xp=namespace())  # n values take less time where the rows are
        chunks = list(in_chunks(self.n, _OWN_NUMBERS))
        if len(chunks) < 2:
            return own._matching(self.rows)
        return np.concatenate([own._matching(slice_rows(self.rows, cases)) for cases in chunks])

    def _matching(self, rows: ProblemRows) -> Array:
        single = map_rows(lambda value: value[:, None, ...], rows)
        # A distance that overflows is one at which the kernel is zero.
        with np.errstate(over="ignore", under="ignore"):
            return self.h(single, single)[:, 0, 0]


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
        """Describe the features, for the provenance of a result."""
        return {"features": self.size, "lost_energy": self.lost} if self.size else {}


@dataclass
class Prepared:
    """Values that were computed about a problem.

    Attributes
    ----------
    asked, features
        True if the feature form was looked for, and that form; None where it is not worth its time.
    runs
        How engines made their last sums, by their names, for the provenance of a result.
    """

    asked: bool = False
    features: FeatureProblem | None = None
    runs: dict[str, dict[str, Any]] = field(default_factory=lambda: {})


def _total(parts: list[Array]) -> Array:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def prepare(
    y: object,
    pred: object,
    kernel: Kernel | None = None,
    *,
    expectations: str | Lowering = "auto",
) -> Problem:
    """Check input, choose the kernel if none is given, and do the O(n) work."""
    targets, predictions = check_inputs(y, pred)
    chosen = default_kernel(predictions, expectations=expectations) if kernel is None else kernel
    return prepare_checked(targets, predictions, chosen, expectations=expectations)


def check_pair_kernel(kernel: object) -> Kernel:
    """`kernel` if it acts on pairs of prediction and target, else an error."""
    if not isinstance(kernel, Kernel):
        raise TypeError(
            "kernel must be a kernel such as ExpDistance(Wasserstein()) @ Gaussian(), found "
            f"{described(kernel)}"
        )
    if kernel.space != "pairs":
        raise TypeError(
            f"kernel must act on pairs of prediction and target, found {kernel!r}; "
            "write kernel_on_predictions @ kernel_on_targets"
        )
    return kernel


def prepare_checked(
    checked: Array,
    predictions: Predictions,
    kernel: Kernel,
    *,
    expectations: str | Lowering = "auto",
    like: Problem | None = None,
    few_pairs: bool = False,
) -> Problem:
    """The same for targets as `check_targets` of the predictions returned them.

    `like` is the problem of the same predictions and kernel with other targets: what it knows of the kernel
    on predictions, which may take most of the time, is taken from it. Where a case meets `few_pairs` of all,
    as in blocks, it does not pay to look for what all predictions share.
    """
    chosen = check_pair_kernel(kernel)
    if len(predictions) < _LARGE:
        return _prepared(checked, predictions, chosen, expectations, like, few_pairs)
    keep_freed_memory()
    with keeping_large_values():
        return _prepared(checked, predictions, chosen, expectations, like, few_pairs)


def _prepared(
    checked: Array,
    predictions: Predictions,
    chosen: Kernel,
    expectations: str | Lowering,
    like: Problem | None,
    few_pairs: bool,
) -> Problem:
    library = _library(predictions)
    if is_jax(library) and is_constant(chosen):
        predictions, checked = host_copies(predictions, checked)
    targets = Targets(checked, predictions)
    notes = Notes()
    terms: list[Term] = []
    rows: list[TermRows] = []
    corrections: list[Correction] = []
    for position, (factor, part) in enumerate(expand(chosen)):
        if isinstance(part, Joint):
            form, own_rows = JointForm.prepare(part, predictions, targets, expectations, notes)
            term, term_rows = Term(factor, None, form), TermRows(own_rows, None)
            if form.draws:
                corrections.append(partial(_of_joint_draws, factor, form, own_rows))
        else:
            if like is not None:
                k_P, prediction_rows = like.terms[position].on_predictions, like.rows[position].on_predictions
                assert k_P is not None
            else:
                found = prediction_kernel(
                    part.predictions, predictions, expectations=expectations, notes=notes
                )
                k_P, prediction_rows = found if few_pairs else in_few_columns(*found)
            scheme = plan(part.targets, [predictions, targets], expectations=expectations, notes=notes)
            target_rows = scheme.rows([(1.0, predictions), (-1.0, targets)])
            term = Term(factor, k_P, scheme.form(target_rows, target_rows))
            term_rows = TermRows(target_rows, prediction_rows)
            if _has_draws(predictions):
                corrections.append(
                    partial(correction_of_draws, factor, part, predictions, k_P, prediction_rows)
                )
        terms.append(term)
        rows.append(term_rows)
    correction = cache(partial(_summed, corrections)) if corrections else None
    redrawn = partial(_redrawn, checked, predictions, chosen, expectations) if is_numpy(library) else None
    return Problem(len(predictions), tuple(rows), tuple(terms), chosen, notes, library, correction, redrawn)


def _redrawn(
    checked: Array, predictions: Predictions, kernel: Kernel, expectations: str | Lowering, some: NDArray
) -> Problem | None:
    """Some of the cases with targets drawn from their predictions, always the same."""
    if unsampled_family(predictions) is not None:
        return None
    own = predictions[some]
    targets = draw_targets(own, np.random.default_rng(0), 1, checked[some])[0]
    return prepare_checked(targets, own, kernel, expectations=expectations)


_LARGE = 1000  # cases, from which arrays are large enough to come straight from the system
_OWN_NUMBERS = 100  # that a case takes on the way to its h_ii, or about so many


def outline(targets: Array, predictions: Predictions, kernel: Kernel) -> Problem:
    """What an engine can be asked about before cases meet locations: number, library, arrays and kernel.

    It has no terms, so that there is nothing to evaluate.
    """
    arrays = [targets, *predictions.arrays()]
    rows = (TermRows(tuple(arrays), None),)
    return Problem(len(predictions), rows, (), kernel, Notes(), _library(predictions), None)


def _library(predictions: Predictions) -> Namespace:
    like = predictions.like
    return namespace(like) if is_array(like) else namespace()


def expand(kernel: Kernel) -> list[tuple[Scale, Tensor | Joint]]:
    """A kernel on pairs as a weighted sum of tensor products and joint kernels."""
    if isinstance(kernel, Sum):
        return [term for part in kernel.kernels for term in expand(part)]
    if isinstance(kernel, Scaled):
        return [(kernel.factor * factor, part) for factor, part in expand(kernel.kernel)]
    if isinstance(kernel, (Tensor, Joint)):
        return [(1.0, kernel)]
    raise TypeError(f"{kernel!r} cannot be used as a kernel on pairs")


def _has_draws(predictions: Predictions) -> bool:
    parts = predictions.parts
    return any(part.kind == "draws" for part in parts)


def _summed(corrections: list[Correction]) -> Array:
    return _total([own() for own in corrections])


def _of_joint_draws(factor: Scale, form: JointForm, rows: Rows) -> Array:
    return factor * form.self_correction(rows)


def some_cases(problem: Problem, index: slice | NDArray) -> Problem:
    """The problem of some of the cases, or of all in another order: a slice, or integer positions."""
    correction, redrawn = problem.self_correction, problem.redrawn
    n = len(range(problem.n)[index]) if isinstance(index, slice) else len(index)
    return replace(
        problem,
        n=n,
        rows=slice_rows(problem.rows, index),
        self_correction=None if correction is None else lambda: take_rows(correction(), index),
        redrawn=None if redrawn is None else partial(_of_these, redrawn, np.arange(problem.n)[index]),
    )


def _of_these(redrawn: Redrawn, index: NDArray, some: NDArray) -> Problem | None:
    return redrawn(index[some])
