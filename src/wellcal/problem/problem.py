"""A calibration problem, prepared: O(n) work once, then pure tiles of the function h.

    h_ij = k_P(P_i, P_j) * < P_i - d(y_i), P_j - d(y_j) >_kY

summed over the terms of the kernel. Engines see rows of arrays and two pure functions of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import Array, Namespace, NDArray, is_array, namespace, take_rows
from wellcal._arrays.ops import Ops, ops_for
from wellcal.expectations._pairing import Lowering, Notes, plan
from wellcal.expectations.bilinear import ElementForm, Form, Layout, rows_of
from wellcal.expectations.decompose import Rows, Targets, atomic_group, components_of, rows_under, slice_rows
from wellcal.expectations.joint import JointForm
from wellcal.expectations.on_predictions import prediction_kernel
from wellcal.kernels.base import Kernel, Scaled, Sum, Tensor, space_of
from wellcal.kernels.targets import Joint
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.adapters import as_predictions
from wellcal.predictions.inputs import check_truth_first
from wellcal.problem.defaults import default_kernel


@dataclass(frozen=True)
class Term:
    """One summand of h: factor * k_P * pairing, each reading the rows under its own prefix."""

    factor: Any
    on_predictions: Any | None
    on_targets: Form

    @property
    def width(self) -> int:
        """Elementary evaluations for one pair."""
        own = 0 if self.on_predictions is None else self.on_predictions.width
        return own + self.on_targets.width


@dataclass(frozen=True)
class Problem:
    """What engines work on.

    Attributes
    ----------
    rows
        Arrays with the cases along the first axis.
    terms
        How `tile` reads them.
    kernel, notes
        The kernel used, and how its expectations were obtained.
    """

    n: int
    rows: Rows
    terms: tuple[Term, ...]
    kernel: Kernel
    notes: Notes
    xp: Namespace
    self_correction: Array | None

    @property
    def ops(self) -> Ops:
        """Operations of the library the rows live in."""
        return ops_for(self.xp)

    @property
    def width(self) -> int:
        """Elementary evaluations for one pair."""
        return sum(term.width for term in self.terms)

    def tile(self, a: Rows, b: Rows) -> Array:
        """h for all pairs of rows, ``(len(a), len(b))``."""
        return self._sum(a, b, "tile")

    def paired(self, a: Rows, b: Rows) -> Array:
        """h for matching rows, ``(len(a),)``."""
        # A distance that overflows is one at which the kernel is zero.
        with np.errstate(over="ignore", under="ignore"):
            return self._sum(a, b, "paired")

    def diagonal(self) -> Array:
        """h_ii, ``(n,)``. For draws, pairs of a draw with itself are left out."""
        value = self.paired(self.rows, self.rows)
        return value if self.self_correction is None else value + self.self_correction

    def _sum(self, a: Rows, b: Rows, how: str) -> Array:
        total: Array = None
        for index, term in enumerate(self.terms):
            value = getattr(term.on_targets, how)(
                self.ops, rows_under(a, f"{index}y:"), rows_under(b, f"{index}y:")
            )
            if term.on_predictions is not None:
                left, right = rows_under(a, f"{index}p:"), rows_under(b, f"{index}p:")
                value = value * getattr(term.on_predictions, how)(self.ops, left, right)
            if not (isinstance(term.factor, float) and term.factor == 1.0):
                value = term.factor * value
            total = value if total is None else total + value
        return total


def prepare(
    y: object,
    pred: object,
    kernel: Kernel | None = None,
    *,
    expectations: str | Lowering = "auto",
) -> Problem:
    """Check input, choose the kernel if none is given, and do the O(n) work."""
    check_truth_first(y)
    predictions = as_predictions(pred)
    checked = predictions.check_targets(y)
    chosen = default_kernel(predictions, expectations=expectations) if kernel is None else kernel
    return prepare_checked(checked, predictions, chosen, expectations=expectations)


def check_pair_kernel(kernel: object) -> Kernel:
    """`kernel` if it acts on pairs of prediction and target, else an error."""
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"kernel must be a kernel such as ExpDistance(Wasserstein()) @ Gaussian(), found {kernel!r}"
        )
    if space_of(kernel) != "pairs":
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
) -> Problem:
    """The same for targets as `check_targets` of the predictions returned them."""
    chosen = check_pair_kernel(kernel)
    targets = Targets(checked, predictions)
    notes = Notes()
    terms: list[Term] = []
    rows: Rows = {}
    correction: Array | None = None
    for index, (factor, part) in enumerate(expand(chosen)):
        if isinstance(part, Joint):
            form, target_rows = JointForm.prepare(part, predictions, targets, expectations, notes)
            term, prediction_rows = Term(factor, None, form), {}
            own = form.self_correction(target_rows)
        else:
            on_predictions, prediction_rows = prediction_kernel(
                part.predictions, predictions, expectations=expectations, notes=notes
            )
            scheme = plan(part.targets, [predictions, targets], expectations=expectations, notes=notes)
            target_rows, layout = scheme.rows([(1.0, predictions), (-1.0, targets)])
            term = Term(factor, on_predictions, scheme.form(layout, layout))
            own = _draws_correction(part.targets, predictions)
            if own is not None:
                own = own * on_predictions.paired(ops_for(predictions.xp), prediction_rows, prediction_rows)
        terms.append(term)
        rows.update({f"{index}y:{name}": value for name, value in target_rows.items()})
        rows.update({f"{index}p:{name}": value for name, value in prediction_rows.items()})
        if own is not None:
            correction = factor * own if correction is None else correction + factor * own
    return Problem(len(predictions), rows, tuple(terms), chosen, notes, _library(predictions), correction)


def _library(predictions: Predictions) -> Namespace:
    like = predictions.like
    return namespace(like) if is_array(like) else namespace()


def expand(kernel: Kernel) -> list[tuple[Any, Tensor | Joint]]:
    """A kernel on pairs as a weighted sum of tensor products and joint kernels."""
    if isinstance(kernel, Sum):
        return [term for part in kernel.kernels for term in expand(part)]
    if isinstance(kernel, Scaled):
        return [(kernel.factor * factor, part) for factor, part in expand(kernel.kernel)]
    if isinstance(kernel, (Tensor, Joint)):
        return [(1.0, kernel)]
    raise TypeError(f"{kernel!r} cannot be used as a kernel on pairs")


def _draws_correction(kernel: Kernel, predictions: Predictions) -> Array | None:
    """What leaving out pairs of a draw with itself adds to <P_i, P_i>, or None without draws.

    For S draws the mean V over all pairs becomes the mean over distinct ones, (S^2 V - D) / (S (S - 1))
    with D the sum of k(x_s, x_s).
    """
    total: Array | None = None
    for component, weight in components_of(predictions):
        if not isinstance(component, Samples) or component.kind != "draws":
            continue
        part = _component_correction(kernel, component)
        part = part if weight is None else part * weight**2
        total = part if total is None else total + part
    return total


def _component_correction(kernel: Kernel, samples: Samples) -> Array:
    count = samples.values.shape[1]
    n = len(samples)
    library = namespace(samples.values)
    if count < 2:
        return library.full((n,), float("nan"))  # one draw says nothing about <P, P>
    group = atomic_group(samples)
    rows, layout = rows_of([group])
    ops = ops_for(library)
    mean = ElementForm(kernel, _dimension(samples), layout, layout).paired(ops, rows, rows)
    single = Layout(((group.kind, 1, 1.0),))
    x = rows["0.x"]
    alone = {"0.x": library.reshape(x, (n * count, 1, *x.shape[2:]))}
    own = ElementForm(kernel, _dimension(samples), single, single).paired(ops, alone, alone)
    diagonal = library.sum(library.reshape(own, (n, count)), axis=1)
    return (count**2 * mean - diagonal) / (count * (count - 1.0)) - mean


def _dimension(predictions: Predictions) -> int:
    return predictions.event_shape[0] if predictions.event_shape else 1


def reordered(problem: Problem, order: NDArray) -> Problem:
    """The same problem with its cases in another order."""
    rows = slice_rows(problem.rows, order)
    correction = problem.self_correction
    return replace(
        problem, rows=rows, self_correction=None if correction is None else take_rows(correction, order)
    )
