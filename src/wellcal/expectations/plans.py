"""How expectations are found: by closed forms, on a common finite support, by features, or lowered to atoms.

`plan` decides, for a kernel and all the predictions and targets that meet in a problem, how each is
expanded. The plan then gives the rows of each measure and the form that evaluates them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from wellcal._arrays.checks import one_of
from wellcal._arrays.namespaces import Array, NDArray, is_traced, namespace, to_numpy
from wellcal._arrays.ops import ops_for
from wellcal._arrays.rows import Rows
from wellcal.expectations.bilinear import ElementForm, FiniteForm, Form, has_closed_form
from wellcal.expectations.decompose import (
    Components,
    Side,
    Targets,
    components_of,
    dimension_of,
    elementary_components,
    kind_of,
    merged,
    points,
    target_components,
)
from wellcal.expectations.gaussian_features import FeatureGrid, feature_grid, mean_features, normal_extent
from wellcal.expectations.grids import common_grid, grid_probabilities, one_hot, support_gram
from wellcal.expectations.lowering import Lowering, is_scalar_rule, lower
from wellcal.expectations.rules.elements import Normals, Points
from wellcal.kernels.base import Kernel, TargetKernel
from wellcal.kernels.parts import walk
from wellcal.kernels.targets import Delta, Gaussian
from wellcal.predictions import Predictions, Samples

Family: TypeAlias = type[Predictions]

_DEFAULT = Lowering()


@dataclass
class Notes:
    """How expectations were obtained, for the provenance of a result."""

    rules: list[tuple[Kernel, str]] = field(default_factory=lambda: [])
    lowered: list[str] = field(default_factory=lambda: [])
    error: float = 0.0

    def add_rule(self, kernel: Kernel, text: str) -> None:
        """Record a closed form of a kernel. Kernels are put into words when somebody asks for them."""
        self.rules.append((kernel, text))

    def add_lowering(self, text: str, error: float) -> None:
        """Record a numerical scheme once, and the largest error estimate."""
        if text not in self.lowered:
            self.lowered.append(text)
        self.error = error if np.isnan(error) else max(self.error, error)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for `Estimate.provenance`."""
        out: dict[str, Any] = {
            "expectations": "lowered" if self.lowered else "closed",
            "rules": list(dict.fromkeys(f"{kernel!r}{text}" for kernel, text in self.rules)),
        }
        if self.lowered:
            out["lowered"] = list(self.lowered)
            out["expectation_error"] = self.error
        return out


SignedSum: TypeAlias = list[tuple[float, Side]]
"""A signed sum of predictions and targets, such as P - d(y)."""


class Plan(Protocol):
    """How the measures of one problem are expanded under a kernel on targets."""

    def rows(self, measure: SignedSum) -> Rows:
        """Rows of a measure."""
        ...

    def form(self, left: Rows, right: Rows) -> Form:
        """The bilinear form between measures with rows like these."""
        ...


@dataclass(frozen=True)
class ElementPlan:
    """Elementary distributions, pair by pair; what has no closed form is lowered to atoms.

    Attributes
    ----------
    lowered
        Families that become atoms.
    nodes, points
        Atoms for each scalar, and for each vector.
    """

    kernel: Kernel
    dimension: int
    lowered: frozenset[Family] = frozenset()
    nodes: int = 0
    points: int = 0

    def rows(self, measure: SignedSum) -> tuple[Components, ...]:
        """Components of a measure by kind."""
        parts = [(sign, part) for sign, side in measure for part in self.components(side)]
        return merged([part if sign == 1.0 else part.scaled(sign) for sign, part in parts])

    def form(self, left: Rows, right: Rows) -> ElementForm:
        """The bilinear form between measures with components like these."""
        return ElementForm.between(self.kernel, self.dimension, left, right)

    def components(self, side: Side) -> list[Components]:
        """Predictions or targets as elementary distributions."""
        if isinstance(side, Targets):
            return [target_components(side)]
        out: list[Components] = []
        for family, weight in components_of(side):
            part = self._of_family(family)
            out.append(part if weight is None else part.scaled(weight[:, None]))
        return out

    def _of_family(self, family: Predictions) -> Components:
        if type(family) in self.lowered:
            atoms = lower(family, self.nodes, self.points)
            return points(atoms.values, atoms.weights)
        return elementary_components(family)


@dataclass(frozen=True)
class GridPlan:
    """A finite set on which all measures of the problem live: a matrix product of weights.

    Attributes
    ----------
    grid
        The M values.
    gram
        Kernel matrix between them; None where it is the identity.
    """

    grid: NDArray
    gram: Array | None

    def rows(self, measure: SignedSum) -> Rows:
        """Weights of a measure on the grid."""
        return self._form.rows(_signed_sum(measure, self._weights))

    def form(self, left: Rows, right: Rows) -> FiniteForm:
        """The matrix product."""
        return self._form

    @property
    def _form(self) -> FiniteForm:
        return FiniteForm(self.gram, len(self.grid))

    def _weights(self, side: Side) -> Array:
        if isinstance(side, Targets):
            return one_hot(side, self.grid)
        total: Array = None
        for component, weight in components_of(side):
            part = grid_probabilities(component, self.grid)
            part = part if weight is None else part * weight[:, None]
            total = part if total is None else total + part
        return total


@dataclass(frozen=True)
class FeaturePlan:
    """Mean features of a Gaussian kernel: a matrix product, however many components there are."""

    elements: ElementPlan
    features: FeatureGrid

    def rows(self, measure: SignedSum) -> Rows:
        """Mean features of a measure."""
        return self._form.rows(_signed_sum(measure, self._features))

    def form(self, left: Rows, right: Rows) -> FiniteForm:
        """The matrix product."""
        return self._form

    @property
    def _form(self) -> FiniteForm:
        return FiniteForm(None, self.features.size)

    def _features(self, side: Side) -> Array:
        total: Array = None
        for part in self.elements.components(side):
            own = mean_features(self.features, part)
            total = own if total is None else total + own
        return total


def _signed_sum(measure: SignedSum, values_of: Callable[[Side], Array]) -> Array:
    total: Array = None
    for sign, side in measure:
        part = values_of(side)
        if total is None:
            total = part if sign == 1.0 else sign * part
        else:
            total = total + sign * part
    return total


def plan(
    kernel: Kernel,
    sides: list[Side],
    *,
    expectations: str | Lowering = "auto",
    notes: Notes | None = None,
    relative: bool = False,
    many: bool = False,
) -> Plan:
    """Decide how the measures of a problem are expanded under `kernel`.

    Parameters
    ----------
    kernel
        Kernel on targets.
    sides
        All predictions and targets that will meet.
    expectations
        "auto" lowers what has no closed form, "closed" forbids it, a `Lowering` says how.
    notes
        Where to record the choice.
    relative
        Closed forms must be right to 1e-12 relative to each value, however small; sums over pairs need
        that only relative to the largest.
    many
        The same predictions will meet many sets of targets, for which features are cheaper than pairs.
    """
    if kernel.space != "targets":
        raise TypeError(f"kernel: a kernel on targets is needed here, found {kernel!r}")
    if not isinstance(expectations, Lowering):
        one_of(expectations, "expectations", ("auto", "closed"), or_else="or a Lowering")
    notes = Notes() if notes is None else notes
    batches = [side.predictions if isinstance(side, Targets) else side for side in sides]
    families = [component for batch in batches for component, _ in components_of(batch)]
    dimension = dimension_of(families[0])
    # Numbers and vectors fill the line or the space: only classes, counts and bins have a grid.
    discrete = families[0].target_kind not in ("real", "simplex")
    grid = common_grid(kernel, families, sides) if discrete else None
    if grid is not None:
        gram = None if type(kernel) is Delta else support_gram(kernel, families[0], grid)
        notes.add_rule(kernel, f" on a finite support of {len(grid)} values: matrix product")
        return GridPlan(grid, gram)
    lowered = _families_to_lower(kernel, families, dimension)
    options = expectations if isinstance(expectations, Lowering) else _DEFAULT
    if lowered:
        _check_allowed(kernel, lowered, expectations)
    if lowered or not relative:
        by_features = _feature_plan(kernel, sides, families, lowered, options, notes, many)
        if by_features is not None:
            return by_features
    for family in dict.fromkeys(type(f) for f in families if type(f) not in lowered):
        notes.add_rule(kernel, f" with {family.__name__}: closed form")
    if not lowered:
        return ElementPlan(kernel, dimension)
    draft = ElementPlan(kernel, dimension, lowered, options.nodes or 32, options.points)
    return _choose_nodes(draft, [f for f in families if type(f) in lowered], options, notes)


def _check_allowed(kernel: Kernel, lowered: frozenset[Family], expectations: str | Lowering) -> None:
    names = ", ".join(sorted(f.__name__ for f in lowered))
    if _contains_delta(kernel):
        raise ValueError(
            f"Delta() compares targets for equality, which says nothing about these {names} predictions; "
            "take a kernel such as Gaussian() for numeric targets"
        )
    if expectations == "closed":
        raise ValueError(
            f"no closed form of {kernel!r} for {names}; allow numerical expectations with "
            "expectations='auto', or take a kernel that has one"
        )


def _contains_delta(kernel: Kernel) -> bool:
    """Whether equality takes part: atoms that stand for a density would be found equal to themselves."""
    return any(isinstance(part, TargetKernel) and part.tests_equality for part in walk(kernel))


# -- features --------------------------------------------------------------------------------

_MANY_COMPONENTS = 4  # for each case: from here on features are cheaper than pairs of components
_FEATURE_NODES = (32, 64, 128, 256, 512)


def _feature_plan(
    kernel: Kernel,
    sides: list[Side],
    families: list[Predictions],
    lowered: frozenset[Family],
    options: Lowering,
    notes: Notes,
    many: bool,
) -> FeaturePlan | None:
    """Expand all that has many components into features of a Gaussian kernel, where few are enough."""
    dimension = dimension_of(families[0])
    if type(kernel) is not Gaussian or not isinstance(kernel.lengthscale, float) or dimension > 2:
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
    affected = [f for f in families if type(f) in lowered | rest]
    scalar = all(is_scalar_rule(f) for f in affected)
    atoms = max(options.points, 1024) if options == _DEFAULT else options.points
    draft = ElementPlan(kernel, dimension, lowered | rest, options.nodes or _FEATURE_NODES[0], atoms)
    candidates = _FEATURE_NODES if options.nodes is None and scalar and affected else (draft.nodes,)
    chosen, error = draft, 0.0
    for nodes in candidates:
        chosen = replace(draft, nodes=nodes)
        error = max((_estimate_error(chosen, f) for f in affected), default=0.0)
        if error <= _FEATURE_TOLERANCE:
            break
    extents = [_extent(part, kernel.lengthscale) for side in sides for part in chosen.components(side)]
    found = feature_grid(kernel.lengthscale, extents, exact=not lowered)
    if found is None:
        return None
    grid, left_out = found
    error = max(error, left_out)
    for family in affected:
        scheme = lower(family[:1], chosen.nodes, chosen.points).scheme
        notes.add_lowering(f"{kernel!r} with {type(family).__name__}: {scheme}", error)
    notes.add_rule(kernel, f" by {grid.size} features, exact to 1e-13")
    return FeaturePlan(chosen, grid)


_FEATURE_TOLERANCE = 1e-7


def _component_count(predictions: Predictions) -> int:
    """Elementary distributions for each case."""
    parts = [component for component, _ in components_of(predictions)]
    return sum(p.values.shape[1] if isinstance(p, Samples) else 1 for p in parts)


def _extent(part: Components, lengthscale: float) -> tuple[Array, Array | None]:
    """Points ``(n, S, d)`` that mark where components have mass, with the weights they carry."""
    element: Any = part.element
    xp = namespace(*element.x)
    if isinstance(element, Points):
        return xp.stack(element.x, axis=-1), None if isinstance(part.weights, float) else part.weights
    x, v = (xp.stack([xp.reshape(c, (-1,)) for c in of], axis=-1) for of in (element.x, element.v))
    return normal_extent(x, v, lengthscale), None


# -- lowering --------------------------------------------------------------------------------


def _families_to_lower(kernel: Kernel, families: list[Predictions], dimension: int) -> frozenset[Family]:
    """Families without a closed form against points, or against another family that has one."""
    kinds: dict[Family, type] = {}
    lowered: set[Family] = set()
    for predictions in families:
        kind = kind_of(predictions)
        if kind is None or not has_closed_form(kernel, kind, Points, dimension):
            lowered.add(type(predictions))
        else:
            kinds[type(predictions)] = kind
    others = [*kinds.values(), Points]
    for family, kind in kinds.items():
        if kind is not Points and not all(
            has_closed_form(kernel, kind, other, dimension) for other in others
        ):
            lowered.add(family)
    return frozenset(lowered)


def _choose_nodes(
    draft: ElementPlan, affected: list[Predictions], options: Lowering, notes: Notes
) -> ElementPlan:
    """Take the smallest rule whose estimated error is small enough, and note that estimate."""
    adaptive = options.nodes is None and all(is_scalar_rule(f) for f in affected)
    candidates = [16, 24, 32, 48, 64, 96, 128, 192, 256] if adaptive else [draft.nodes]
    chosen, error = draft, float("nan")
    if any(is_traced(f.like) for f in affected):
        # Under tracing values cannot be looked at: a middling rule, and no estimate of its error.
        chosen = replace(draft, nodes=options.nodes or 64)
    else:
        for nodes in candidates:
            chosen = replace(draft, nodes=nodes)
            error = max(_estimate_error(chosen, f) for f in affected)
            if error <= options.tolerance:
                break
    for family in affected:
        scheme = lower(family[:1], chosen.nodes, chosen.points).scheme
        notes.add_lowering(f"{draft.kernel!r} with {type(family).__name__}: {scheme}", error)
    return chosen


_PROBE = 8  # predictions on which the error of lowering is estimated


def _estimate_error(candidate: ElementPlan, predictions: Predictions) -> float:
    """Largest change of a pairing when half of the atoms are left out, over a few predictions.

    Pairings with points are tried too, at three atoms of each prediction: they are less smooth.
    """
    probes = _PROBE if is_scalar_rule(predictions) else 3  # vectors have many more atoms
    index = np.unique(np.linspace(0, len(predictions) - 1, probes).astype(int))
    atoms = lower(predictions[index], candidate.nodes, candidate.points)
    if atoms.exact:
        return 1e-13
    size = atoms.values.shape[1]
    some = atoms.values[:, 7 * size // 16 : 9 * size // 16 + 1 : max(1, size // 16), ...]  # near the middle
    single = namespace(some).reshape(some, (some.shape[0] * some.shape[1], 1, *some.shape[2:]))
    at = (points(single),)
    values: list[tuple[NDArray, ...]] = []
    for version in (atoms, atoms.coarser()):
        ops = ops_for(namespace(version.weights))
        rows = (points(version.values, version.weights),)
        found = [candidate.form(rows, other).tile(ops, rows, other) for other in (rows, at)]
        values.append(tuple(map(to_numpy, found)))
    return max(float(np.abs(fine - coarse).max()) for fine, coarse in zip(*values, strict=True))
