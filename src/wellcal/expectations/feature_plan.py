"""Predictions as mean features of a Gaussian kernel, where few are enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, is_numpy, is_traced, namespace
from wellcal._arrays.rows import Rows
from wellcal.expectations.bilinear import FiniteForm
from wellcal.expectations.decompose import (
    Components,
    Side,
    Targets,
    components_of,
    dimension_of,
    kind_of,
    point_array,
    target_components,
)
from wellcal.expectations.element_plan import (
    AtomChoice,
    ElementPlan,
    Family,
    Notes,
    SignedSum,
    note_atoms,
    signed_sum,
)
from wellcal.expectations.feature_cells import Cells, cells_of, common_cells
from wellcal.expectations.gaussian_features import FeatureGrid, feature_grid, mean_features, normal_extent
from wellcal.expectations.low_rank import LowRank, spanned
from wellcal.expectations.lowering import LOWERINGS, Atoms, Lowering, lower
from wellcal.expectations.nodes import FOR_FEATURES, in_order
from wellcal.expectations.rules.elements import Normals, Points
from wellcal.kernels.base import Kernel
from wellcal.kernels.targets import Gaussian
from wellcal.predictions import Predictions, Samples

DEFAULT = Lowering()


@dataclass(frozen=True)
class FeaturePlan:
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

    def rows(self, measure: SignedSum) -> Rows:
        """Mean features of a measure."""
        return self._form.rows(signed_sum(measure, self._features))

    def form(self, left: Rows, right: Rows) -> FiniteForm:
        """The matrix product."""
        return self._form

    @property
    def _form(self) -> FiniteForm:
        return FiniteForm(None, self.features.size)

    def _features(self, side: Side) -> Array:
        if isinstance(side, Targets):
            return mean_features(self.features, target_components(side))
        total: Array = None
        for family, weight in components_of(side):
            own = self._of_family(family)
            own = own if weight is None else own * weight[:, None]
            total = own if total is None else total + own
        return total

    def _of_family(self, family: Predictions) -> Array:
        for batch, cells in self.known:
            if batch is family:
                return cells.on(cast("FeatureGrid", self.features)) if isinstance(cells, Cells) else cells
        parts = self.elements.of_family(family)
        return in_order([(rows, mean_features(self.features, part)) for rows, part in parts])


_MANY_COMPONENTS = 4  # for each case: from here on features are cheaper than pairs of components


def feature_plan(
    kernel: Kernel,
    sides: list[Side],
    families: list[Predictions],
    present: list[Predictions],
    lowered: frozenset[Family],
    options: Lowering,
    notes: Notes,
    many: bool,
) -> FeaturePlan | None:
    """Expand all that has many components into features of a Gaussian kernel, where few are enough."""
    dimension = dimension_of(families[0])
    if type(kernel) is not Gaussian or not isinstance(kernel.lengthscale, float):
        return None
    if dimension > (_MAX_DIMENSION if lowered else 2):
        return None
    sizes = [_component_count(side) for side in sides if not isinstance(side, Targets)]
    if not lowered and not many and max(sizes, default=1) < _MANY_COMPONENTS:
        return None
    if any(is_traced(f.like) for f in families):
        return None
    # Only points and independent normals have features in closed form.
    rest = {type(f) for f in families if kind_of(f) not in (Points, Normals)}
    if rest and not lowered:
        return None  # what has a closed form is not lowered for speed alone
    affected = [f for f in present if type(f) in lowered | rest]
    atoms = max(options.points, 1024) if options == DEFAULT else options.points
    chosen = ElementPlan(kernel, dimension, lowered | rest, AtomChoice(options, atoms, FOR_FEATURES))
    found = None
    if lowered and present and not any(f.ops.differentiable or not is_numpy(f.xp) for f in present):
        way = _in_cells if dimension == 1 else _in_span
        found = way(chosen, kernel.lengthscale, sides, present)
    if found is None:
        if dimension > 2:
            return None
        other = feature_grid(kernel.lengthscale, _extents(chosen, sides), exact=not lowered)
        if other is None:
            return None
        found = FeaturePlan(chosen, other[0]), other[1]
    features, left_out = found
    note_atoms(chosen, affected, notes, left_out)
    notes.add_rule(kernel, f" by {features.features.size} features, exact to 1e-13")
    return features


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
        key = (chosen.lowered, chosen.atoms, LOWERINGS.find(type(family)))
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

    def atoms() -> Atoms:
        return choice.of(chosen.kernel, family).single

    key = (choice, LOWERINGS.find(type(family)))
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
        mean = features.more_of_points(np.asarray(atoms().values), np.asarray(atoms().weights), mean)
    return FeaturePlan(chosen, features, ((family, mean),)), 0.0


_MAX_DIMENSION = 4  # of vectors for which features are tried
_SPANNING_ROWS, _SPANNING_POINTS = 64, 64


def _as_column(side: Targets) -> NDArray:
    return target_components(side).leaf


def _component_count(predictions: Predictions) -> int:
    """Elementary distributions for each case."""
    parts = [component for component, _ in components_of(predictions)]
    return sum(p.values.shape[1] if isinstance(p, Samples) else 1 for p in parts)


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
