"""Kernels on pairs that do not factor, on finite supports and atoms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import array_api_compat as compat
import numpy as np

from wellcal._arrays.namespaces import Array, asarray, is_array, namespace, to_numpy
from wellcal._arrays.ops import Ops, ops_for
from wellcal.expectations.decompose import (
    Group,
    Rows,
    Targets,
    atomic_group,
    components_of,
    is_atomic,
    is_objects,
    merge_groups,
    points_group,
    slice_rows,
    target_group,
)
from wellcal.expectations.lowering import Lowering, lower
from wellcal.kernels.targets import Joint
from wellcal.predictions import Predictions, Samples

_DEFAULT = Lowering(nodes=32)


@dataclass(frozen=True)
class JointForm:
    """Signed sum of k((P_i, z), (P_j, z')) over the atoms of P - d(y)."""

    kernel: Joint
    predictions: Predictions
    size: int
    draws: bool

    @property
    def width(self) -> int:
        """Evaluations of the user's function for one pair."""
        return self.size**2

    @classmethod
    def prepare(
        cls,
        kernel: Joint,
        predictions: Predictions,
        targets: Targets,
        expectations: str | Lowering,
        notes: Any,
    ) -> tuple[JointForm, Rows]:
        """Expand predictions and targets into atoms."""
        groups: list[Group] = []
        for component, weight in components_of(predictions):
            group = _atoms(kernel, component, expectations, notes)
            groups.append(group if weight is None else group.scaled(weight[:, None]))
        merged = merge_groups([*groups, target_group(targets).scaled(-1.0)])[0]
        like = predictions.like
        index: Array = np.arange(len(predictions))
        if is_array(like) and not is_objects(like):
            index = asarray(index, xp=namespace(like), device=compat.device(like))
        draws = isinstance(predictions, Samples) and predictions.kind == "draws"
        notes.add_rule(f"{kernel!r}: sum over {merged.size - 1} atoms")
        rows = {"i": index, "x": merged.parameters["x"], "w": merged.weight_array()}
        return cls(kernel, predictions, merged.size, draws), rows

    def tile(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """All pairs of rows."""
        values = self._values(ops, a, b)
        shaped = ops.xp.reshape(values, (a["w"].shape[0], self.size, b["w"].shape[0], self.size))
        weighted = shaped * a["w"][:, :, None, None] * b["w"][None, None, :, :]
        return ops.xp.sum(weighted, axis=(1, 3))

    def paired(self, ops: Ops, a: Rows, b: Rows) -> Array:
        """Matching rows."""
        rows = [
            self.tile(ops, slice_rows(a, slice(k, k + 1)), slice_rows(b, slice(k, k + 1)))
            for k in range(a["w"].shape[0])
        ]
        return ops.xp.concat(rows, axis=0)[:, 0]

    def _values(self, ops: Ops, a: Rows, b: Rows) -> Array:
        left, y = self._repeated(a)
        right, z = self._repeated(b)
        values = self.kernel.function(left, y, right, z)
        shape = (len(left), len(right))
        if tuple(np.shape(values)) != shape:
            raise ValueError(f"{self.kernel!r} returned shape {np.shape(values)}, expected {shape}")
        return values

    def _repeated(self, rows: Rows) -> tuple[Predictions, Array]:
        """Each prediction once for each of its atoms, beside the atoms."""
        index = np.repeat(to_numpy(rows["i"]), self.size)
        x = rows["x"]
        if is_objects(x):
            return self.predictions[index], x.reshape(-1)
        flat = namespace(x).reshape(x, (-1, x.shape[2]))
        return self.predictions[index], flat[:, 0] if x.shape[2] == 1 else flat

    def self_correction(self, rows: Rows) -> Array | None:
        """What leaving out pairs of a draw with itself adds to h_ii, or None without draws."""
        if not self.draws:
            return None
        count = self.size - 1
        xp = namespace(rows["w"])
        if count < 2:
            return xp.full((rows["w"].shape[0],), float("nan"))
        ops = ops_for(xp)
        out: list[Array] = []
        for k in range(rows["w"].shape[0]):
            row = slice_rows(rows, slice(k, k + 1))
            values = self._values(ops, row, row)[:count, :count]
            mean = xp.sum(values) / count**2
            diagonal = xp.sum(xp.linalg.diagonal(values))
            out.append((count**2 * mean - diagonal) / (count * (count - 1.0)) - mean)
        return xp.stack(out)


def _atoms(kernel: Joint, component: Predictions, expectations: str | Lowering, notes: Any) -> Group:
    if is_atomic(component):
        return atomic_group(component)
    if expectations == "closed":
        raise ValueError(
            f"{kernel!r} has no closed form for {type(component).__name__}; "
            "allow numerical expectations with expectations='auto'"
        )
    options = expectations if isinstance(expectations, Lowering) else _DEFAULT
    atoms = lower(component, options.nodes or 32, options.points)
    notes.add_lowering(f"{kernel!r} with {type(component).__name__}: {atoms.scheme}", float("nan"))
    return points_group(atoms.values, atoms.weights)
