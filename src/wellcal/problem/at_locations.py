"""Deviations from calibration at locations: the calibration mean embedding (paper, appendix of that name).

    D_ij = k((P_i, y_i), T_j) - E k((P_i, Z_i), T_j),  Z_i ~ P_i,   for locations T_j = (p_j, t_j)

A kernel that is a sum of tensor products takes k_P(P_i, p_j) and E k_Y(Z_i, t_j) once; only k_Y(y_i, t_j)
depends on the targets, so that many sets of targets cost n J kernel values each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, cast

import numpy as np
from scipy.spatial.distance import cdist

from wellcal._arrays.chunks import Chunk, budget, entries_for, in_chunks, rows_within
from wellcal._arrays.memo import on_device
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    concat_rows,
    from_numpy,
    is_numpy,
    is_traced,
    namespace,
    take_rows,
    to_numpy,
    widen,
)
from wellcal._arrays.ops import ops_for
from wellcal._arrays.rows import slice_rows
from wellcal._arrays.threads import one_blas_thread
from wellcal.expectations.bilinear import ElementForm
from wellcal.expectations.expansion import Notes, plan
from wellcal.expectations.joint import joint_atoms
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.prediction_kernels import prediction_kernel
from wellcal.expectations.rules.elements import Points
from wellcal.expectations.signed_measures import (
    Targets,
    class_labels,
    dimension_of,
    flat_points,
    is_objects,
    merged,
    points,
    target_components,
)
from wellcal.kernels.algebra import Tensor
from wellcal.kernels.base import Kernel, Radial, Scale, TargetKernel
from wellcal.kernels.matrix import contains_callable, label_matrix, values_matrix
from wellcal.kernels.targets import Gaussian, Joint, check_returned
from wellcal.predictions import Predictions, Quantiles
from wellcal.predictions.batches import concatenate
from wellcal.problem.locations import Locations, as_locations
from wellcal.problem.problem import check_pair_kernel, expand
from wellcal.problem.rectangles import InChunks, VisitsRectangles

Column = Callable[[int], Array]
"""Kernel values ``(R, m)`` of R sets of m targets at location j."""

_FEW_COUNTS = 512  # so many need not be looked for
_FARTHEST = 3e3  # squared distances, in units of the squared length scale, that rounding leaves 1e-12 of

# -- tensor products -------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorTerm:
    """factor * k_P * k_Y: weights factor * k_P(P_i, p_j), and k_Y at targets.

    `mean` holds E k_Y(Z_i, t_j), ``(n, J)``. `table` holds k_Y between classes (or bins) and the locations,
    ``(C, J)``, where there are such; `points` are the targets of locations, by their numbers where there is
    a table.
    """

    engine: VisitsRectangles

    weights: Array
    mean: Array
    kernel: Kernel
    predictions: Predictions
    points: Array
    table: Array | None

    def values(self, targets: Array) -> Array:
        """Weighted values ``(n, J)`` for targets of all cases."""
        if self.table is not None:
            return self.weights * take_rows(self.table, self._codes(targets, slice(None)))
        return self.weights * self._matrix(targets)

    def at_points(self) -> Array:
        """k_Y between the targets of the locations, ``(J, J)``."""
        if self.table is not None:
            return take_rows(self.table, self.points)
        return self._matrix(self.points)

    def columns(self, targets: Array, cases: slice) -> Column:
        """Values of k_Y at each location for sets of targets ``(R, m)`` of some cases."""
        if not is_numpy(namespace(targets)):
            return self._columns_of_tensors(targets, cases)
        table = self.table
        codes: Array = None
        if table is not None:
            codes = self._codes(targets, cases)
        elif self._by_matrix(targets):
            table = self._matrix(targets.reshape(-1, *targets.shape[2:]))
            codes = cast("NDArray", np.arange(len(table)).reshape(targets.shape[:2]))
        elif self.predictions.target_kind == "counts":
            low, high = float(targets.min()), float(targets.max())
            if high - low < max(_FEW_COUNTS, targets.size):
                table, codes = self._matrix(np.arange(low, high + 1.0)), (targets - low).astype(np.intp)
        if table is not None and codes is not None:
            by_location = np.ascontiguousarray(table.T)
            return lambda j: by_location[j].take(codes)
        return self._elementwise(targets)

    def _columns_of_tensors(self, targets: Array, cases: slice) -> Column:
        """The same for numbers, or codes of classes, on a device."""
        if self.table is not None:
            table, codes = on_device(self.table, targets), self._codes(targets, cases)
            return lambda j: table[:, j][codes]
        ops, kernel = ops_for(namespace(targets)), cast("TargetKernel", self.kernel)
        own = (targets,) if targets.ndim == 2 else tuple(targets[:, :, c] for c in range(targets.shape[2]))
        places = np.reshape(self.points, (len(self.points), -1)).tolist()
        return lambda j: kernel.at(ops, own, tuple(places[j]))

    def _elementwise(self, targets: NDArray) -> Column:
        ops, kernel = ops_for(namespace(targets)), cast("TargetKernel", self.kernel)
        at = kernel.at
        if targets.ndim == 2:
            return lambda j: at(ops, (targets,), (self.points[j],))
        if isinstance(kernel, Radial) and targets.shape[2] > 4:
            by_product = _squared_distances(kernel, self.points, targets)
            if by_product is not None:
                return lambda j: kernel.radial(ops, by_product[j])
            radial, shape, flat = kernel.radial, targets.shape[:2], targets.reshape(-1, targets.shape[2])
            return lambda j: radial(ops, cdist(self.points[j : j + 1], flat, "sqeuclidean").reshape(shape))
        own = tuple(np.ascontiguousarray(targets[:, :, c]) for c in range(targets.shape[2]))
        return lambda j: at(ops, own, tuple(self.points[j]))

    def _codes(self, targets: Array, cases: slice) -> Array:
        return self.predictions[cases].bins(targets) if isinstance(self.predictions, Quantiles) else targets

    def _by_matrix(self, targets: Array) -> bool:
        return is_objects(targets) or contains_callable(self.kernel)

    def _matrix(self, targets: Array) -> Array:
        """k_Y between m targets and the locations, ``(m, J)``."""
        if not is_objects(targets):
            rows, at = ((points(side[:, None, ...]),) for side in (targets, self.points))
            form = ElementForm.between(self.kernel, dimension_of(self.predictions), rows, at)
            return self.engine.rectangle(form, ops_for(namespace(targets)), rows, at)
        # A user's function is slow, and resampled targets are the same few objects again and again.
        _, first, codes = np.unique([id(item) for item in targets], return_index=True, return_inverse=True)
        ops = ops_for(namespace(targets))
        return np.asarray(values_matrix(ops, self.kernel, targets[first], self.points))[codes]


def _squared_distances(kernel: Radial, at: NDArray, targets: NDArray) -> NDArray | None:
    """Between J points ``(J, d)`` and sets of targets ``(R, m, d)``: ``(J, R, m)``, from one matrix product.

    Rounding is that of squared lengths, in units of the kernel's: harmless where that is smooth at zero, and
    targets lie not too far apart. None elsewhere.
    """
    if type(kernel) is not Gaussian:
        return None
    centre = at.mean(axis=0)
    flat, points = targets.reshape(-1, targets.shape[2]) - centre, at - centre
    lengths, own = np.einsum("id,id->i", flat, flat), np.einsum("jd,jd->j", points, points)
    if max(lengths.max(initial=0.0), own.max(initial=0.0)) > _FARTHEST * float(kernel.lengthscale) ** 2:
        return None
    found = points @ flat.T
    found *= -2.0
    found += lengths
    found += own[:, None]
    return np.maximum(found, 0.0, out=found).reshape(len(at), *targets.shape[:2])


def tensor_term(
    factor: Scale,
    kernel: Tensor,
    predictions: Predictions,
    locations: Locations,
    engine: VisitsRectangles,
    expectations: str | Lowering,
    notes: Notes,
) -> tuple[TensorTerm, Array]:
    """The term, and its expectations ``(n, J)``."""
    n, ops = len(predictions), predictions.ops
    if locations.drawn is not None and locations.drawn[0] is predictions:
        k_P, own = prediction_kernel(kernel.predictions, predictions, expectations=expectations, notes=notes)
        other = slice_rows(own, locations.drawn[1])
    else:
        both = concatenate((predictions, locations.predictions), ("pred", "locations"), "pred and locations")
        k_P, rows = prediction_kernel(kernel.predictions, both, expectations=expectations, notes=notes)
        own, other = slice_rows(rows, slice(0, n)), slice_rows(rows, slice(n, len(both)))
    weights = engine.rectangle(k_P, ops, own, other)
    weights = weights if isinstance(factor, float) and factor == 1.0 else factor * weights
    if is_numpy(predictions.xp):
        weights = np.asfortranarray(weights)  # sums over cases go location by location
    at = Targets(locations.targets, locations.predictions)
    # The cost is linear in n: closed forms are taken to full relative precision, also in far tails.
    scheme = plan(kernel.targets, [predictions, at], expectations=expectations, notes=notes, relative=True)
    left, right = scheme.rows([(1.0, predictions)]), scheme.rows([(1.0, at)])
    mean = engine.rectangle(scheme.form(left, right), ops, left, right)
    table, places = _class_table(kernel.targets, predictions, locations)
    if table is None:
        places = at.values if is_objects(at.values) else widen(at.values)
    return TensorTerm(engine, weights, mean, kernel.targets, predictions, places, table), weights * mean


def _class_table(kernel: Kernel, predictions: Predictions, locations: Locations) -> tuple[Array, Array]:
    """k_Y between classes, or bins, and the targets of locations, ``(C, J)``, and which of them these are.

    None for other targets.
    """
    first: Any = predictions.parts[0]
    at: Any = locations.predictions
    if isinstance(first, Quantiles):
        edges = np.concatenate([[0.0], first.levels, [1.0]])
        labels, chosen = 0.5 * (edges[1:] + edges[:-1]), at.bins(locations.targets)
    elif predictions.kind == "classes":
        labels, chosen = class_labels(first), locations.targets
    else:
        return None, None
    like = widen(first.like)
    rows, places = None, chosen
    if not is_traced(chosen):
        # No square of as many classes as there may be, and no user's function twice for the same two.
        rows, places = np.unique(to_numpy(chosen), return_inverse=True)
    matrix = label_matrix(ops_for(namespace(like)), kernel, labels, like, rows)
    return namespace(matrix).matrix_transpose(take_rows(matrix, places)), chosen


# -- joint kernels ---------------------------------------------------------------------------


@dataclass(frozen=True)
class JointTerm:
    """factor * k for a kernel on pairs that does not factor."""

    weights: Array
    kernel: Joint
    predictions: Predictions
    at: Predictions
    points: Array

    def values(self, targets: Array) -> Array:
        """Weighted values ``(n, J)`` for targets of all cases."""
        return self.weights * self.evaluate(self.predictions, _as_points(targets, self.predictions))

    def columns(self, targets: NDArray, cases: slice) -> Column:
        """Values of k at each location for sets of targets ``(R, m)`` of some cases."""
        sets, m = targets.shape[:2]
        repeated = self.predictions[np.tile(np.arange(len(self.predictions))[cases], sets)]
        flat = targets.reshape(-1, *targets.shape[2:])
        values = np.asarray(self.evaluate(repeated, _as_points(flat, repeated)))
        return lambda j: values[:, j].reshape(sets, m)

    def evaluate(self, predictions: Predictions, points: Array) -> Array:
        """The user's function, whose result is checked."""
        values = self.kernel.function(predictions, points, self.at, self.points)
        return check_returned(self.kernel, values, (len(predictions), len(self.at)))


Term = TensorTerm | JointTerm
"""A summand of a kernel."""


def _as_points(targets: Array, predictions: Predictions) -> Array:
    """Targets as a user's function sees them: labels, support values or numbers."""
    element = target_components(Targets(targets, predictions)).element
    assert isinstance(element, Points)
    return flat_points(element)


def joint_term(
    factor: Scale,
    kernel: Joint,
    predictions: Predictions,
    locations: Locations,
    expectations: str | Lowering,
    notes: Notes,
) -> tuple[JointTerm, Array]:
    """The term, and its expectations ``(n, J)`` as sums over atoms."""
    (together,) = merged(joint_atoms(kernel, predictions, expectations, notes))
    notes.add_rule(kernel, f": sum over {together.size} atoms")
    atoms, mass, size = Points(*together.element), together.weight_array(), together.size
    xp, count = namespace(mass), len(locations)
    at = locations.predictions
    full = factor * xp.ones_like(mass[:, :1] + xp.zeros_like(mass[:1, :1]))
    weights = xp.broadcast_to(full, (len(predictions), count))
    term = JointTerm(weights, kernel, predictions, at, _as_points(locations.targets, at))
    parts: list[Array] = []
    for rows in in_chunks(len(predictions), 16 * size * count):
        repeated = predictions[np.repeat(np.arange(rows.start, rows.stop), size)]
        values = term.evaluate(repeated, flat_points(slice_rows(atoms, rows)))
        shaped = xp.reshape(values, (rows.stop - rows.start, size, count))
        parts.append(xp.sum(shaped * mass[rows, :][:, :, None], axis=1))
    return term, weights * concat_rows(parts)


# -- deviations at locations ---------------------------------------------------------------------

_ROUNDING = 1e-13  # of expectations in closed form, relative to the largest at a location


def deviations(
    kernel: Kernel,
    predictions: Predictions,
    targets: Array,
    locations: Locations | tuple[object, object],
    expectations: str | Lowering = "auto",
) -> Array:
    """D ``(n, J)``, for targets as `check_targets` of the predictions returned them."""
    return location_kernel(kernel, predictions, locations, expectations=expectations).deviations(targets)


def location_kernel(
    kernel: Kernel,
    predictions: Predictions,
    locations: Locations | tuple[object, object],
    *,
    engine: VisitsRectangles | None = None,
    expectations: str | Lowering = "auto",
) -> LocationKernel:
    """Do the work on predictions and locations once, for any number of targets.

    Parameters
    ----------
    kernel
        Kernel on pairs of prediction and target.
    predictions
        Predictions of the n cases.
    locations
        From :func:`draw_locations`, or a tuple ``(predictions, targets)`` as a user gives it.
    engine
        Evaluates kernels between cases and locations; None does so in plain chunks.
    expectations
        As in :func:`ucme`.
    """
    visitor = InChunks() if engine is None else engine
    notes = Notes()
    locations = as_locations(locations, predictions, None)
    terms: list[Term] = []
    expected: Array = None
    for factor, part in expand(check_pair_kernel(kernel)):
        if isinstance(part, Joint):
            term, mean = joint_term(factor, part, predictions, locations, expectations, notes)
        else:
            term, mean = tensor_term(factor, part, predictions, locations, visitor, expectations, notes)
        terms.append(term)
        expected = mean if expected is None else expected + mean
    return LocationKernel(locations, tuple(terms), expected, notes)


@dataclass(frozen=True)
class LocationKernel:
    """A kernel between cases and locations, prepared for targets that are yet to come.

    Attributes
    ----------
    locations
        The J locations.
    expected
        E k((P_i, Z_i), T_j), ``(n, J)``.
    notes
        How expectations were obtained.
    """

    locations: Locations
    terms: tuple[Term, ...]
    expected: Array
    notes: Notes

    @property
    def n(self) -> int:
        """Number of cases."""
        return int(self.expected.shape[0])

    @property
    def precision(self) -> NDArray:
        """How exact deviations at each location are, ``(J,)``, in NumPy: rounding, numerical schemes."""
        rounding = _ROUNDING * np.max(np.abs(self.expected), axis=0)
        error = 0.0 if np.isnan(self.notes.error) else self.notes.error
        return rounding + error * sum(np.max(np.abs(term.weights), axis=0) for term in self.terms)

    def weighted(self, weights: Array) -> LocationKernel:
        """The same with D_ij multiplied by the weight ``(n,)`` of case i."""
        if bool((weights == 1.0).all()):
            return self
        column = weights[:, None]
        terms = tuple(replace(term, weights=term.weights * column) for term in self.terms)
        return replace(self, terms=terms, expected=self.expected * column)

    def values(self, targets: Array) -> Array:
        """k((P_i, y_i), T_j), ``(n, J)``, for targets in internal form, in any array library."""
        total: Array = None
        for term in self.terms:
            part = term.values(targets)
            total = part if total is None else total + part
        return total

    def deviations(self, targets: Array) -> Array:
        """D, ``(n, J)``, for targets in internal form, in any array library."""
        return self.values(targets) - self.expected

    def __call__(self, targets: NDArray) -> NDArray:
        """`sums` of D: the numerators of a statistic, for sets of targets."""
        return self.sums(targets)

    def sums(
        self,
        targets: Array,
        *,
        centred: bool = True,
        progress: Callable[[float, float], None] | None = None,
    ) -> Array:
        """Sums of D over cases, ``(R, J)``, for R sets of targets ``(R, n)`` or ``(R, n, d)``.

        Targets are arrays of NumPy, or tensors, whose sums are made on their device.

        Without `centred` the expectations, which are the same for all sets, are not subtracted. O(R n J)
        operations, in memory that does not grow with R n.
        """
        count = len(self.locations)
        if not is_numpy(namespace(targets)):
            return self._sums_of_tensors(targets, centred=centred)
        out = np.zeros((len(targets), count))
        weights = [np.ascontiguousarray(term.weights.T) for term in self.terms]
        # Products with single vectors are too small for the threads of BLAS.
        with np.errstate(over="ignore", under="ignore"), one_blas_thread():
            for sets, cases in self._chunks(len(targets), budget.cache // 4):
                part = targets[sets, cases]
                for term, by_location in zip(self.terms, weights, strict=True):
                    column = term.columns(part, cases)
                    for j in range(count):
                        out[sets, j] += column(j) @ by_location[j, cases]
                if progress is not None:
                    progress(sets.stop, len(targets))
        return out - np.sum(self.expected, axis=0) if centred else out

    def _sums_of_tensors(self, targets: Array, *, centred: bool) -> Array:
        """`sums` for numbers on a device: one location after the other, as many sets as there is room for."""
        xp, count = namespace(targets), len(self.locations)
        found: list[Array] = []
        for sets in in_chunks(targets.shape[0], targets[0].numel(), within=entries_for(targets)):
            total: Array = 0.0
            for term in self.terms:
                column = term.columns(targets[sets], slice(0, self.n))
                weights = on_device(term.weights, targets)
                total = total + xp.stack([column(j) @ weights[:, j] for j in range(count)], axis=1)
            found.append(total)
        out = concat_rows(found)
        return out - from_numpy(np.sum(self.expected, axis=0), targets) if centred else out

    def moments(
        self, targets: NDArray, *, progress: Callable[[float, float], None] | None = None
    ) -> tuple[NDArray, NDArray]:
        """Means ``(R, J)`` and covariances ``(R, J, J)`` of D over cases, likewise; n - 1 in the divisor."""
        count = len(self.locations)
        means = np.zeros((len(targets), count))
        products = np.zeros((len(targets), count, count))
        with np.errstate(over="ignore", under="ignore"), one_blas_thread():
            for sets, cases in self._chunks(len(targets), rows_within(count, 4 * budget.cache)):
                centred = self._stack(targets[sets, cases], cases)
                own = np.mean(centred, axis=2)
                centred -= own[:, :, None]
                gap = own - means[sets]
                before, now = cases.start, cases.stop - cases.start
                # Moments of two parts of the cases combine without cancellation (Chan, Golub, LeVeque, 1983).
                between = (before * now / cases.stop) * gap[:, :, None] * gap[:, None, :]
                products[sets] += centred @ np.swapaxes(centred, 1, 2) + between
                means[sets] += (now / cases.stop) * gap
                if progress is not None:
                    progress(sets.stop, len(targets))
        return means, products / max(1, self.n - 1)

    def _chunks(self, sets: int, size: int) -> Iterator[tuple[Chunk, Chunk]]:
        """Sets and cases that are handled at a time, about `size` targets of them."""
        yield from product(in_chunks(sets, self.n, within=size), list(in_chunks(self.n, within=size)))

    def _stack(self, targets: NDArray, cases: slice) -> NDArray:
        """D of some sets and cases, ``(R, J, m)``."""
        count = len(self.locations)
        out = np.empty((len(targets), count, cases.stop - cases.start))
        out[...] = -self.expected[cases].T
        for term in self.terms:
            column, weights = term.columns(targets, cases), term.weights
            for j in range(count):
                out[:, j, :] += column(j) * weights[cases, j]
        return out
