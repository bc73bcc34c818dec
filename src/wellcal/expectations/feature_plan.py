"""Predictions as mean features of a Gaussian kernel, where few are enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, is_numpy, namespace
from wellcal.expectations.atoms import LOWERINGS
from wellcal.expectations.bilinear import FiniteForm
from wellcal.expectations.decompose import (
    Components,
    Side,
    Targets,
    components_of,
    dimension_of,
    point_array,
    target_components,
    weighted_sum,
)
from wellcal.expectations.feature_cells import Cells, cells_of, common_cells, exact_features
from wellcal.expectations.finite_plan import FinitePlan
from wellcal.expectations.gaussian_features import FeatureGrid, mean_features
from wellcal.expectations.low_rank import LowRank, spanned
from wellcal.expectations.lowering import Lowering, lower
from wellcal.expectations.needed_features import feature_grid, normal_extent
from wellcal.expectations.nodes import Part, in_order
from wellcal.expectations.rules.elements import Points
from wellcal.kernels.targets import Gaussian
from wellcal.predictions import Predictions

if TYPE_CHECKING:
    from wellcal.expectations.plans import ElementPlan


@dataclass(frozen=True)
class FeaturePlan(FinitePlan):
    """Mean features of a Gaussian kernel: a matrix product, however many components there are.

    Attributes
    ----------
    elements, features
        What predictions consist of, and the features.
    known
        Mean features of batches that have them already.
    """

    elements: ElementPlan
    features: FeatureGrid | LowRank
    known: tuple[tuple[Predictions, Cells | NDArray], ...] = ()

    def finite_form(self) -> FiniteForm:
        return FiniteForm(None, self.features.size)

    def coordinates(self, side: Side) -> Array:
        """Mean features of predictions or targets."""
        if isinstance(side, Targets):
            return mean_features(self.features, target_components(side))
        return weighted_sum(side, self._of_family)

    def _of_family(self, family: Predictions) -> Array:
        for batch, cells in self.known:
            if batch is family:
                return cells.on(cast("FeatureGrid", self.features)) if isinstance(cells, Cells) else cells
        parts, grid = self.elements.of_family(family), self.features
        plain = is_numpy(family.xp) and not self.elements.lowered
        if plain and isinstance(grid, FeatureGrid) and len(grid.centres) == 1:

            def extents() -> list[NDArray]:
                return [_with_weight(*_extent(part, grid.lengthscale)) for _, part in parts]

            return exact_features(family, parts, extents, grid)
        return in_order([(rows, mean_features(grid, part)) for rows, part in parts])


def by_features(
    draft: Callable[[int], ElementPlan],
    lengthscale: float,
    sides: list[Side],
    present: list[Predictions],
    options: Lowering,
    *,
    exact: bool,
) -> tuple[FeaturePlan, float] | None:
    """Expand measures into features, where few are enough; and the weight of what has none.

    Parameters
    ----------
    draft
        Predictions as elementary distributions, given the number of atoms of a vector.
    lengthscale
        Of the Gaussian kernel.
    sides, present
        What meets, and the batches of predictions among it.
    options
        Options of a user.
    exact
        Whether nothing is lowered, and nothing may be left out.
    """
    dimension = dimension_of(present[0]) if present else 0
    # More atoms where they only make features; all libraries must decide alike, so that they have the same.
    atoms = 1024 if options == Lowering() and dimension < 3 else options.for_vectors
    chosen = draft(atoms)
    plain = not exact and not any(f.ops.differentiable or not is_numpy(f.xp) for f in present)
    found = _in_cells(chosen, lengthscale, sides, present) if plain and dimension == 1 else None
    if found is None and dimension < 3:
        grid = feature_grid(lengthscale, _extents(chosen, sides), exact=exact)
        found = None if grid is None else (FeaturePlan(chosen, grid[0]), grid[1])
    if found is None and plain and dimension > 1:
        return _in_span(draft(options.for_vectors), lengthscale, sides, present)
    return found


def _in_cells(
    chosen: ElementPlan, lengthscale: float, sides: list[Side], families: list[Predictions]
) -> tuple[FeaturePlan, float] | None:
    """Features that batches of scalars in NumPy remember, and the weight of what has none."""
    assert chosen.atoms is not None
    known: list[tuple[Predictions, Cells]] = []
    for family in families:
        if any(batch is family for batch, _ in known):
            continue
        parts = chosen.of_family(family)
        extents = [_extent(part, lengthscale) for _, part in parts]
        on_line = [(values[:, :, 0], weights) for values, weights in extents]
        key = (chosen.lowered, *chosen.atoms.rules, LOWERINGS.find(type(family)))
        cells = cells_of(family, key, parts, on_line, lengthscale)
        if cells is None:
            return None
        known.append((family, cells))
    targets = [_as_column(side) for side in sides if isinstance(side, Targets)]
    grid = common_cells(lengthscale, [cells for _, cells in known], targets)
    if grid is None:
        return None
    return FeaturePlan(chosen, grid, tuple(known)), max(cells.left_out for _, cells in known)


def _in_span(
    chosen: ElementPlan, lengthscale: float, sides: list[Side], families: list[Predictions]
) -> tuple[FeaturePlan, float] | None:
    """Features of vectors of one batch in NumPy, spanned by a few of its atoms and by targets."""
    choice, family = chosen.atoms, families[0]
    assert choice is not None
    if any(f is not family for f in families) or type(family) not in chosen.lowered:
        return None
    rows = np.unique(np.linspace(0, len(family) - 1, _SPANNING_ROWS).astype(int))
    some = np.asarray(lower(family[rows], choice.options.nodes or 32, _SPANNING_POINTS).values)

    def atoms() -> tuple[Part, ...]:
        return choice.of(chosen.kernel, family).parts

    key = (*choice.rules, LOWERINGS.find(type(family)))
    found = spanned(family, key, some.reshape(-1, chosen.dimension), lengthscale, atoms)
    if found is None:
        return None
    targets = [
        point_array(cast("Points", target_components(s).element)) for s in sides if isinstance(s, Targets)
    ]
    features, mean = found.features, found.mean
    for values in targets:
        wider = features.extended(np.asarray(values)[:, 0, :])
        if wider is None:
            return None
        features = wider
    if features is not found.features:
        mean = features.more_of_parts(atoms(), mean)
    return FeaturePlan(chosen, features, ((family, mean),)), 0.0


MAX_DIMENSION = 4
"""Coordinates of vectors for which features are tried."""

_SPANNING_ROWS, _SPANNING_POINTS = 64, 64


def _with_weight(points: NDArray, weights: NDArray | None) -> NDArray:
    """Those of the points ``(n, S, 1)`` that carry weight."""
    return points if weights is None else points[np.broadcast_to(weights, points.shape[:2]) != 0.0]


def _as_column(side: Targets) -> NDArray:
    return target_components(side).leaf


def _extents(chosen: ElementPlan, sides: list[Side]) -> list[tuple[Array, Array | None]]:
    """Points ``(n, S, d)`` that mark where measures have mass, with the weights they carry."""
    parts: list[Components] = []
    for side in sides:
        if isinstance(side, Targets):
            parts.append(target_components(side))
        else:
            parts += [part for family, _ in components_of(side) for _, part in chosen.of_family(family)]
    lengthscale = cast("Gaussian", chosen.kernel).lengthscale
    return [_extent(part, cast("float", lengthscale)) for part in parts]


def _extent(part: Components, lengthscale: float) -> tuple[Array, Array | None]:
    """Points ``(n, S, d)`` that mark where components have mass, with the weights they carry."""
    element: Any = part.element
    xp = namespace(*element.x)
    if isinstance(element, Points):
        return xp.stack(element.x, axis=-1), None if isinstance(part.weights, float) else part.weights
    x, v = (xp.stack([xp.reshape(c, (-1,)) for c in of], axis=-1) for of in (element.x, element.v))
    return normal_extent(x, v, lengthscale), None
