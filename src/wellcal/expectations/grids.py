"""Finite supports: problems whose families all live on one finite set meet in matrix products."""

from __future__ import annotations

import numpy as np

from wellcal._arrays.chunks import budget, told_chunks
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    device_of,
    is_numpy,
    namespace,
    to_numpy,
    widen,
)
from wellcal._arrays.ops import ops_for
from wellcal.expectations.count_atoms import count_grid
from wellcal.expectations.rules.elements import Points, known_form
from wellcal.expectations.signed_measures import (
    Side,
    Targets,
    class_labels,
    kind_of,
)
from wellcal.kernels.base import Kernel
from wellcal.kernels.matrix import label_matrix
from wellcal.predictions import Bernoulli, Categorical, Predictions, Quantiles


def common_grid(kernel: Kernel, families: list[Predictions], sides: list[Side]) -> NDArray | None:
    """The finite set that all families live on, where there is one of moderate size."""
    first = families[0]
    if isinstance(first, Quantiles):
        if not all(isinstance(f, Quantiles) and np.array_equal(f.levels, first.levels) for f in families):
            raise ValueError("Quantiles can meet only Quantiles of the same levels")
        edges = np.concatenate([[0.0], to_numpy(first.levels), [1.0]])
        return 0.5 * (edges[1:] + edges[:-1])
    if isinstance(first, (Bernoulli, Categorical)):
        labels = class_labels(first)
        same = all(
            isinstance(f, (Bernoulli, Categorical)) and _same(class_labels(f), labels) for f in families
        )
        return labels if same else None
    if all(f.target_kind == "counts" for f in families):
        if all(has_rule(kernel, f) for f in families):
            return None  # a closed form, even a Bessel function, is cheaper than a grid
        return count_grid(families, [side.values for side in sides if isinstance(side, Targets)])
    return None


def has_rule(kernel: Kernel, family: Predictions) -> bool:
    """Whether a family meets points in a closed form of its own."""
    kind = kind_of(family)
    return kind is not None and known_form(type(kernel), kind, Points, 1) is not None


def _same(a: NDArray, b: NDArray) -> bool:
    return a.shape == b.shape and bool(np.all(a == b))


def support_gram(kernel: Kernel, family: Predictions, grid: NDArray) -> Array:
    """Kernel matrix between the values of a finite support."""
    like = widen(family.like)
    return label_matrix(ops_for(namespace(like)), kernel, grid, like)


# -- weights on the support ------------------------------------------------------------------


def grid_positions(side: Targets, grid: NDArray) -> Array:
    """Where targets ``(n,)`` or ``(r, n)`` stand on a finite support."""
    family = side.predictions.parts[0]
    if isinstance(family, Quantiles):
        return family.bins(side.values)
    if side.predictions.kind == "classes":
        return side.values
    return np.searchsorted(grid, to_numpy(side.values))


def one_hot(side: Targets, grid: NDArray) -> Array:
    """Targets as weights on the support, ``(n, M)``."""
    like = widen(side.predictions.parts[0].like)
    xp, device = namespace(like), device_of(like)
    positions = asarray(np.arange(len(grid)), xp=xp, device=device)
    index = xp.astype(asarray(grid_positions(side, grid), xp=xp, device=device), positions.dtype)
    return xp.astype(index[:, None] == positions[None, :], like.dtype)


def grid_probabilities(component: Predictions, grid: NDArray) -> Array:
    """Predictions as weights on the support, ``(n, M)``."""
    if isinstance(component, (Bernoulli, Categorical)):
        return widen(component.class_probs())
    like = widen(component.like)
    xp, device = namespace(like), device_of(like)
    if isinstance(component, Quantiles):
        probabilities = asarray(component.bin_probs(), xp=xp, device=device, dtype=like.dtype)
        return xp.broadcast_to(probabilities[None, :], (len(component), len(grid)))
    counts = asarray(grid, xp=xp, device=device, dtype=like.dtype)

    def of(some: Predictions) -> Array:
        wide = xp.broadcast_to(counts[:, None], (len(grid), len(some)))
        return xp.permute_dims(xp.exp(widen(some.log_prob(wide))), (1, 0))

    if not is_numpy(xp):
        return of(component)
    out = np.empty((len(component), len(grid)))
    for rows in told_chunks(len(component), len(grid), within=budget.cache):
        out[rows] = of(component[rows])
    return out
