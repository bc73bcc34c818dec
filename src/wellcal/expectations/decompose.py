"""Predictions and targets as sums of elementary distributions.

An observed target is a Dirac distribution, a mixture is the sum of its components and a sample the
sum of its points: everything that :func:`wellcal.pairing` meets is a weighted sum of a few kinds of
elementary distributions, grouped by kind so that one rule serves a whole group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import array_api_compat as compat
import numpy as np

from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    from_numpy,
    namespace,
    take_rows,
    to_numpy,
    widen,
)
from wellcal.expectations.rules.elements import FullNormals, Laplaces, Normals, Points, Poissons
from wellcal.predictions import (
    Bernoulli,
    Categorical,
    DiagonalNormal,
    Laplace,
    Mixture,
    MultivariateNormal,
    Normal,
    Poisson,
    Predictions,
    Samples,
)

Rows = dict[str, Array]
"""Arrays whose first axis is the batch: what engines slice and hand to a form."""


def slice_rows(rows: Rows, index: Any) -> Rows:
    """The same rows for some of the cases: a slice or integer positions."""
    return {name: take_rows(value, index) for name, value in rows.items()}


def rows_under(rows: Rows, prefix: str) -> Rows:
    """Rows whose names begin with `prefix`, without it."""
    return {name[len(prefix) :]: value for name, value in rows.items() if name.startswith(prefix)}


@dataclass(frozen=True)
class Targets:
    """Observed targets as `check_targets` of their predictions returned them."""

    values: Array
    predictions: Predictions


Side = Predictions | Targets


@dataclass(frozen=True)
class Group:
    """K elementary distributions of one kind for each case.

    Parameters are arrays ``(n, K, ...)``; weights are ``(n, K)``, or one number for all.
    """

    kind: type
    parameters: Rows
    size: int
    weights: Array | float

    def scaled(self, factor: Array | float) -> Group:
        """Weights multiplied by a number or by ``(n, 1)``."""
        weights: Any = self.weights * factor
        if not isinstance(weights, float) and weights.shape[1] != self.size:
            weights = namespace(weights).broadcast_to(weights, (weights.shape[0], self.size))
        return replace(self, weights=weights)

    @property
    def constant(self) -> float | None:
        """The one weight of all, where there is one."""
        return self.weights if isinstance(self.weights, float) else None

    def weight_array(self) -> Array:
        """Weights as ``(n, K)``."""
        if not isinstance(self.weights, float):
            return self.weights
        like = next(iter(self.parameters.values()))
        shape = (like.shape[0], self.size)
        if is_objects(like):
            return np.full(shape, self.weights)
        return namespace(like).full(shape, self.weights, dtype=like.dtype, device=compat.device(like))


def is_objects(x: Array) -> bool:
    """Whether targets are labels or other objects, which only NumPy holds."""
    return isinstance(x, np.ndarray) and x.dtype.kind in "OUS"


def kind_of(predictions: Predictions) -> type | None:
    """Elementary distribution that a family is, or None."""
    kinds: dict[type[Predictions], type] = {
        Normal: Normals,
        DiagonalNormal: Normals,
        MultivariateNormal: FullNormals,
        Laplace: Laplaces,
        Poisson: Poissons,
    }
    return kinds.get(type(predictions))


def components_of(predictions: Predictions) -> list[tuple[Predictions, Array | None]]:
    """Families that a batch is made of, with their weights ``(n,)``; None is weight one."""
    if isinstance(predictions, Mixture):
        weights = widen(predictions.weights)
        return [(component, weights[:, k]) for k, component in enumerate(predictions.components)]
    return [(predictions, None)]


def elementary_group(predictions: Any) -> Group:
    """A batch of an elementary family as one group."""
    if isinstance(predictions, Normal):
        parameters = {
            "x": widen(predictions.loc)[:, None, None],
            "v": (widen(predictions.scale) ** 2)[:, None, None],
        }
    elif isinstance(predictions, DiagonalNormal):
        parameters = {
            "x": widen(predictions.loc)[:, None, :],
            "v": (widen(predictions.scale) ** 2)[:, None, :],
        }
    elif isinstance(predictions, MultivariateNormal):
        parameters = {
            "x": widen(predictions.loc)[:, None, :],
            "c": widen(predictions.cov)[:, None, :, :],
        }
    elif isinstance(predictions, Laplace):
        parameters = {"x": widen(predictions.loc)[:, None, None], "s": widen(predictions.scale)[:, None]}
    else:
        parameters = {"r": widen(predictions.rate)[:, None]}
    kind = kind_of(predictions)
    assert kind is not None
    return Group(kind, parameters, 1, 1.0)


def points_group(values: Array, weights: Array | None = None) -> Group:
    """Atoms ``(n, S)`` or ``(n, S, d)`` with weights ``(n, S)``, uniform where None."""
    size = int(values.shape[1])
    uniform = 1.0 / size
    if is_objects(values):
        return Group(Points, {"x": values}, size, uniform if weights is None else weights)
    x = widen(values)
    x = x[..., None] if x.ndim == 2 else x
    return Group(Points, {"x": x}, size, uniform if weights is None else widen(weights))


def class_labels(component: Bernoulli | Categorical) -> NDArray:
    """What the targets of a finite family look like: numbers where it has them."""
    values = component.support_values()
    if values is None:
        assert isinstance(component, Categorical)
        return np.asarray(component.labels())
    return np.asarray(values)


def class_group(component: Bernoulli | Categorical) -> Group:
    """Classes as atoms, for problems where a finite family meets others."""
    labels = class_labels(component)
    probabilities = widen(component.class_probs())
    n, size = len(component), len(labels)
    if is_objects(labels):
        values = np.broadcast_to(labels[None, :], (n, size))
        return Group(Points, {"x": values}, size, to_numpy(probabilities))
    numeric = asarray(
        labels.astype(np.float64),
        xp=namespace(probabilities),
        device=compat.device(probabilities),
        dtype=probabilities.dtype,
    )
    numeric = numeric[:, None] if numeric.ndim == 1 else numeric
    values = namespace(probabilities).broadcast_to(numeric[None, :, :], (n, *numeric.shape))
    return Group(Points, {"x": values}, size, probabilities)


def targets_are_indices(predictions: Predictions) -> bool:
    """Whether `check_targets` returned positions in the list of classes, rather than values."""
    if isinstance(predictions, Mixture):
        return predictions.shares_labels
    return isinstance(predictions, (Bernoulli, Categorical))


def target_group(side: Targets) -> Group:
    """Observed targets as one atom each."""
    family: Any = components_of(side.predictions)[0][0]
    values = side.values
    if targets_are_indices(side.predictions):
        labels = class_labels(family)
        if is_objects(labels):
            values = labels[to_numpy(values)]
        else:
            values = take_rows(from_numpy(labels.astype(np.float64), widen(family.probs)), values)
    return points_group(values[:, None, ...])


def merge_groups(groups: list[Group]) -> list[Group]:
    """One group for each kind, components side by side."""
    merged: dict[type, list[Group]] = {}
    for group in groups:
        merged.setdefault(group.kind, []).append(group)
    return [_side_by_side(same) for same in merged.values()]


def _side_by_side(groups: list[Group]) -> Group:
    if len(groups) == 1:
        return groups[0]
    first = groups[0]
    names = first.parameters
    parameters = {name: _concat([g.parameters[name] for g in groups]) for name in names}
    constants = {g.constant for g in groups}
    shared = constants.pop() if len(constants) == 1 else None
    weights = shared if shared is not None else _concat([g.weight_array() for g in groups])
    return Group(first.kind, parameters, sum(g.size for g in groups), weights)


def _concat(arrays: list[Array]) -> Array:
    if any(is_objects(a) for a in arrays):
        return np.concatenate(arrays, axis=1)
    return namespace(*arrays).concat(arrays, axis=1)


def is_atomic(component: Predictions) -> bool:
    """Whether a family is a sum of points as it stands."""
    return isinstance(component, (Samples, Bernoulli, Categorical))


def atomic_group(component: Any) -> Group:
    """The points of an atomic family."""
    if isinstance(component, Samples):
        return points_group(component.values, component.weights)
    return class_group(component)
