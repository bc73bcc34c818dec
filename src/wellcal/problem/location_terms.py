"""Summands of a kernel between cases and locations: tensor products, and joint kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.spatial.distance import cdist

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.memo import on_device
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    concat_rows,
    is_numpy,
    is_traced,
    namespace,
    take_rows,
    to_numpy,
    widen,
)
from wellcal._arrays.ops import ops_for
from wellcal._arrays.rows import slice_rows
from wellcal.expectations.bilinear import ElementForm
from wellcal.expectations.decompose import (
    Targets,
    class_labels,
    dimension_of,
    flat_points,
    is_objects,
    merged,
    points,
    target_components,
)
from wellcal.expectations.joint import joint_atoms
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.on_predictions import prediction_kernel
from wellcal.expectations.plans import Notes, plan
from wellcal.expectations.rules.elements import Points
from wellcal.kernels.algebra import Tensor
from wellcal.kernels.base import Kernel, Radial, Scale, TargetKernel
from wellcal.kernels.matrix import contains_callable, label_matrix, values_matrix
from wellcal.kernels.targets import Gaussian, Joint, check_returned
from wellcal.predictions import Predictions, Quantiles
from wellcal.predictions.batches import concatenate
from wellcal.problem.locations import Locations
from wellcal.problem.rectangles import VisitsRectangles

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
