"""Kernels on pairs that do not factor, on finite supports and atoms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    device_of,
    from_numpy,
    is_array,
    is_traced,
    namespace,
    stop_gradient,
    to_numpy,
)
from wellcal._arrays.ops import Ops
from wellcal._arrays.rows import slice_rows
from wellcal.expectations.adaptive_quadrature import points_amid
from wellcal.expectations.atoms import Atoms
from wellcal.expectations.bilinear import Cost, each_batch
from wellcal.expectations.expansion import Notes, check_expectations
from wellcal.expectations.lowering import Lowering, lower
from wellcal.expectations.rules.elements import Points
from wellcal.expectations.signed_measures import (
    Components,
    Targets,
    components_of,
    elementary_components,
    flat_points,
    is_objects,
    kind_of,
    merged,
    points,
    target_components,
)
from wellcal.kernels.targets import Joint, check_returned
from wellcal.predictions import Predictions

_DEFAULT = Lowering(nodes=32)


class AtomRows(NamedTuple):
    """Positions of predictions ``(n,)``, and the signed atoms of P - d(y)."""

    positions: Array
    atoms: Points
    weights: Array


@dataclass(frozen=True)
class JointForm:
    """Signed sum of k((P_i, z), (P_j, z')) over the atoms of P - d(y)."""

    kernel: Joint
    predictions: Predictions
    size: int
    draws: bool

    @property
    def cost(self) -> Cost:
        """Evaluations of the user's function for one pair."""
        return Cost(self.size**2, self.size**2, calls_user=True)

    @classmethod
    def prepare(
        cls,
        kernel: Joint,
        predictions: Predictions,
        targets: Targets,
        expectations: str | Lowering,
        notes: Notes,
    ) -> tuple[JointForm, AtomRows]:
        """Expand predictions and targets into atoms."""
        atoms = joint_atoms(kernel, predictions, expectations, notes)
        (together,) = merged([*atoms, target_components(targets).scaled(-1.0)])
        assert isinstance(together.element, Points)
        like = predictions.like
        index: Array = np.arange(len(predictions))
        if is_array(like) and not is_objects(like):
            index = asarray(index, xp=namespace(like), device=device_of(like))
        draws = predictions.kind == "draws"
        notes.add_rule(kernel, f": sum over {together.size - 1} atoms")
        rows = AtomRows(index, together.element, together.weight_array())
        return cls(kernel, predictions, together.size, draws), rows

    def __call__(self, ops: Ops, a: AtomRows, b: AtomRows) -> Array:
        """Return values of all pairs of rows."""
        if max(a.weights.ndim, b.weights.ndim) > 2:
            return each_batch(self, ops, a, b)
        values = self._values(a, b)
        shaped = ops.xp.reshape(values, (a.weights.shape[0], self.size, b.weights.shape[0], self.size))
        weighted = shaped * a.weights[:, :, None, None] * b.weights[None, None, :, :]
        return ops.xp.sum(weighted, axis=(1, 3))

    def _values(self, a: AtomRows, b: AtomRows) -> Array:
        left, y = self._repeated(a)
        right, z = self._repeated(b)
        return check_returned(self.kernel, self.kernel.function(left, y, right, z), (len(left), len(right)))

    def _repeated(self, rows: AtomRows) -> tuple[Predictions, Array]:
        """Each prediction once for each of its atoms, and the atoms."""
        index = np.repeat(to_numpy(rows.positions), self.size)
        return self.predictions[index], flat_points(rows.atoms)

    def self_correction(self, rows: AtomRows) -> Array:
        """What leaving out pairs of a draw with itself adds to h_ii, for draws."""
        count = self.size - 1
        xp = namespace(rows.weights)
        if count < 2:
            return xp.full((rows.weights.shape[0],), float("nan"))
        out: list[Array] = []
        for k in range(rows.weights.shape[0]):
            row = slice_rows(rows, slice(k, k + 1))
            values = self._values(row, row)[:count, :count]
            mean = xp.sum(values) / count**2
            diagonal = xp.sum(xp.linalg.diagonal(values))
            out.append((count**2 * mean - diagonal) / (count * (count - 1.0)) - mean)
        return xp.stack(out)


def joint_atoms(
    kernel: Joint, predictions: Predictions, expectations: str | Lowering, notes: Notes
) -> list[Components]:
    """Predictions as atoms, one entry for each component of a mixture."""
    check_expectations(expectations)
    out: list[Components] = []
    for component, weight in components_of(predictions):
        part = _atoms(kernel, predictions, component, expectations, notes)
        out.append(part if weight is None else part.scaled(weight[:, None]))
    return out


def _atoms(
    kernel: Joint,
    predictions: Predictions,
    component: Predictions,
    expectations: str | Lowering,
    notes: Notes,
) -> Components:
    if kind_of(component) is Points:
        return elementary_components(component)
    if expectations == "closed":
        raise ValueError(
            f"{kernel!r} has no closed form for {type(component).__name__}; "
            "allow numerical expectations with expectations='auto'"
        )
    options = expectations if isinstance(expectations, Lowering) else _DEFAULT
    atoms = lower(component, options.nodes or 32, options.for_vectors)
    error = _error(kernel, predictions, atoms)
    notes.add_lowering(f"{kernel!r} with {type(component).__name__}: {atoms.scheme}", error)
    return points(atoms.values, atoms.weights)


def _error(kernel: Joint, predictions: Predictions, atoms: Atoms) -> float:
    """Largest change of the mean of k((P, z), (P, y)) over atoms z when there are fewer of them; NaN in jit.

    On every row, at atoms y amid its mass and halfway to their neighbours: the kernel is smaller elsewhere.
    """
    if atoms.exact:
        return 1e-13
    if is_traced(predictions.like, atoms.values):
        return float("nan")  # nobody may look at values there
    rules = [(stop_gradient(rule.values), stop_gradient(rule.weights)) for rule in (atoms, atoms.coarser())]
    at = points_amid(atoms)
    largest = 0.0
    for k in range(len(predictions)):
        of_points = predictions[np.full(at.shape[1], k)]
        y = from_numpy(at[k], atoms.values)
        means: list[NDArray] = []
        for values, weights in rules:
            left = predictions[np.full(values.shape[1], k)]
            table = kernel.function(left, values[k, ...], of_points, y)
            table = check_returned(kernel, table, (len(left), at.shape[1]))
            means.append(to_numpy(weights[k, :]) @ to_numpy(table))
        largest = max(largest, float(np.abs(means[0] - means[1]).max()))
    return largest
