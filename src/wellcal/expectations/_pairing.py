"""``pairing(k, P, Q)``: E k(Z, Z') for all pairs, from one rule for each elementary pair.

`plan` decides, for a kernel and all the predictions and targets that meet in a problem, how each is
expanded: by closed forms, on a common finite support, or lowered to atoms. The plan then gives the
rows of each measure and the form that evaluates them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, is_array, is_traced, namespace, to_numpy
from wellcal._arrays.ops import ops_for
from wellcal.expectations.bilinear import ElementForm, FiniteForm, Form, Layout, has_closed_form, rows_of
from wellcal.expectations.decompose import (
    Group,
    Rows,
    Side,
    Targets,
    atomic_group,
    components_of,
    elementary_group,
    is_atomic,
    kind_of,
    merge_groups,
    points_group,
    target_group,
)
from wellcal.expectations.gaussian_features import FeatureGrid, feature_grid, normal_extent
from wellcal.expectations.grids import common_grid, grid_probabilities, one_hot, support_gram
from wellcal.expectations.lowering import Lowering, is_scalar_rule, lower
from wellcal.expectations.rules.elements import Normals, Points
from wellcal.kernels.base import Kernel, Product, Scaled, Sum, space_of
from wellcal.kernels.targets import Delta, Gaussian
from wellcal.predictions import (
    Predictions,
    Samples,
)
from wellcal.predictions.adapters import as_predictions

Family = type[Predictions]


@dataclass
class Notes:
    """How expectations were obtained, for the provenance of a result."""

    rules: list[str] = field(default_factory=lambda: [])
    lowered: list[str] = field(default_factory=lambda: [])
    error: float = 0.0

    def add_rule(self, text: str) -> None:
        """Record a closed form once."""
        if text not in self.rules:
            self.rules.append(text)

    def add_lowering(self, text: str, error: float) -> None:
        """Record a numerical scheme once, and the largest error estimate."""
        if text not in self.lowered:
            self.lowered.append(text)
        self.error = error if np.isnan(error) else max(self.error, error)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for `Estimate.provenance`."""
        out: dict[str, Any] = {
            "expectations": "lowered" if self.lowered else "closed",
            "rules": list(self.rules),
        }
        if self.lowered:
            out["lowered"] = list(self.lowered)
            out["expectation_error"] = self.error
        return out


Measure = list[tuple[float, Side]]
"""A signed sum of predictions and targets, such as P - d(y)."""


@dataclass(frozen=True)
class Plan:
    """How the measures of one problem are expanded under a kernel."""

    kernel: Kernel
    dimension: int
    grid: NDArray | None = None
    gram: Array | None = None
    lowered: frozenset[Family] = frozenset()
    nodes: int = 0
    points: int = 0
    features: FeatureGrid | None = None

    def rows(self, measure: Measure) -> tuple[Rows, Layout]:
        """Rows of a measure, and how a form reads them."""
        if self.grid is not None:
            total = _signed_sum(measure, self._grid_weights)
            return FiniteForm(self.gram, len(self.grid)).rows(total), Layout(())
        if self.features is not None:
            total = _signed_sum(measure, self._mean_features)
            return FiniteForm(None, self.features.size).rows(total), Layout(())
        groups = [g.scaled(sign) for sign, side in measure for g in self._groups(side)]
        return rows_of(merge_groups(groups))

    def form(self, left: Layout, right: Layout) -> Form:
        """The bilinear form between measures of these layouts."""
        if self.grid is not None:
            return FiniteForm(self.gram, len(self.grid))
        if self.features is not None:
            return FiniteForm(None, self.features.size)
        return ElementForm(self.kernel, self.dimension, left, right)

    def _groups(self, side: Side) -> list[Group]:
        if isinstance(side, Targets):
            return [target_group(side)]
        out: list[Group] = []
        for component, weight in components_of(side):
            group = self._component(component)
            out.append(group if weight is None else group.scaled(weight[:, None]))
        return out

    def _component(self, component: Predictions) -> Group:
        if is_atomic(component):
            return atomic_group(component)
        if type(component) in self.lowered:
            atoms = lower(component, self.nodes, self.points)
            return points_group(atoms.values, atoms.weights)
        return elementary_group(component)

    def _mean_features(self, side: Side) -> Array:
        assert self.features is not None
        total: Array = None
        for group in self._groups(side):
            part = group_features(self.features, group)
            total = part if total is None else total + part
        return total

    def _grid_weights(self, side: Side) -> Array:
        assert self.grid is not None
        grid = self.grid
        if isinstance(side, Targets):
            return one_hot(side, grid)
        total: Array = None
        for component, weight in components_of(side):
            part = grid_probabilities(component, grid)
            part = part if weight is None else part * weight[:, None]
            total = part if total is None else total + part
        return total


def _signed_sum(measure: Measure, values_of: Callable[[Side], Array]) -> Array:
    total: Array = None
    for sign, side in measure:
        part = values_of(side)
        if total is None:
            total = part if sign == 1.0 else sign * part
        else:
            total = total + sign * part
    return total


def group_features(grid: FeatureGrid, group: Group) -> Array:
    """Weighted sum of the mean features of a group of points or normals, ``(n, M)``."""
    if group.kind is Points:
        constant = group.constant
        if constant is not None:
            return (constant * group.size) * grid.of_points(group.parameters["x"], None)
        return grid.of_points(group.parameters["x"], group.weights)
    x, v, weights = group.parameters["x"], group.parameters["v"], group.weight_array()
    total: Array = None
    for k in range(group.size):
        part = grid.of_normals(x[:, k, :], v[:, k, :]) * weights[:, k, None]
        total = part if total is None else total + part
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
    if space_of(kernel) != "targets":
        raise TypeError(f"a kernel on targets is needed here, found {kernel!r}")
    if isinstance(expectations, str) and expectations not in ("auto", "closed"):
        raise ValueError(f'expectations must be "auto", "closed" or a Lowering, found {expectations!r}')
    notes = Notes() if notes is None else notes
    batches = [side.predictions if isinstance(side, Targets) else side for side in sides]
    families = [component for batch in batches for component, _ in components_of(batch)]
    first = families[0]
    dimension = first.event_shape[0] if first.event_shape else 1
    grid = common_grid(kernel, families, sides)
    if grid is not None:
        gram = None if isinstance(kernel, Delta) else support_gram(kernel, first, grid)
        notes.add_rule(f"{kernel!r} on a finite support of {len(grid)} values: matrix product")
        return Plan(kernel, dimension, grid, gram)
    lowered = _families_to_lower(kernel, families, dimension)
    options = expectations if isinstance(expectations, Lowering) else Lowering()
    if lowered:
        _check_allowed(kernel, lowered, expectations)
    if lowered or not relative:
        by_features = _feature_plan(kernel, sides, families, lowered, options, notes, many)
        if by_features is not None:
            return by_features
    for family in dict.fromkeys(type(f) for f in families if type(f) not in lowered):
        notes.add_rule(f"{kernel!r} with {family.__name__}: closed form")
    if not lowered:
        return Plan(kernel, dimension)
    draft = Plan(kernel, dimension, lowered=lowered, nodes=options.nodes or 32, points=options.points)
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
    if isinstance(kernel, (Sum, Product)):
        return any(_contains_delta(k) for k in kernel.kernels)
    return _contains_delta(kernel.kernel) if isinstance(kernel, Scaled) else isinstance(kernel, Delta)


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
) -> Plan | None:
    """Expand all that has many components into features of a Gaussian kernel, where few are enough."""
    dimension = families[0].event_shape[0] if families[0].event_shape else 1
    if not isinstance(kernel, Gaussian) or not isinstance(kernel.lengthscale, float) or dimension > 2:
        return None
    if any(is_traced(f.like) for f in families):
        return None
    sizes = [_component_count(side) for side in sides if not isinstance(side, Targets)]
    if not lowered and not many and max(sizes, default=1) < _MANY_COMPONENTS:
        return None
    # Only points and independent normals have features in closed form.
    rest = {type(f) for f in families if not is_atomic(f) and kind_of(f) is not Normals}
    if rest and not lowered:
        return None  # what has a closed form is not lowered for speed alone
    affected = [f for f in families if type(f) in lowered | rest]
    scalar = all(is_scalar_rule(f) for f in affected)
    points = max(options.points, 1024) if options == Lowering() else options.points
    draft = Plan(
        kernel, dimension, lowered=lowered | rest, nodes=options.nodes or _FEATURE_NODES[0], points=points
    )
    candidates = _FEATURE_NODES if options.nodes is None and scalar and affected else (draft.nodes,)
    chosen, error = draft, 0.0
    for nodes in candidates:
        chosen = replace(draft, nodes=nodes)
        error = max((_estimate_error(chosen, f) for f in affected), default=0.0)
        if error <= _FEATURE_TOLERANCE:
            break
    extents = [_extent(g, kernel.lengthscale) for side in sides for g in chosen._groups(side)]
    found = feature_grid(kernel.lengthscale, extents, exact=not lowered)
    if found is None:
        return None
    grid, left_out = found
    error = max(error, left_out)
    for family in affected:
        scheme = lower(family[:1], chosen.nodes, chosen.points).scheme
        notes.add_lowering(f"{kernel!r} with {type(family).__name__}: {scheme}", error)
    notes.add_rule(f"{kernel!r} by {grid.size} features, exact to 1e-13")
    return replace(chosen, features=grid)


_FEATURE_TOLERANCE = 1e-7


def _component_count(predictions: Predictions) -> int:
    """Elementary distributions for each case."""
    parts = [component for component, _ in components_of(predictions)]
    return sum(p.values.shape[1] if isinstance(p, Samples) else 1 for p in parts)


def _extent(group: Group, lengthscale: float) -> tuple[Array, Array | None]:
    """Points that mark where a group has mass, with the weights they carry."""
    if group.kind is Points:
        return group.parameters["x"], None if group.constant is not None else group.weights
    x, v = group.parameters["x"], group.parameters["v"]
    xp = namespace(x)
    flat = (-1, x.shape[2])
    return normal_extent(xp.reshape(x, flat), xp.reshape(v, flat), lengthscale), None


# -- lowering --------------------------------------------------------------------------------


def _families_to_lower(kernel: Kernel, families: list[Predictions], dimension: int) -> frozenset[Family]:
    """Families without a closed form against points, or against another family that has one."""
    kinds: dict[Family, type] = {}
    lowered: set[Family] = set()
    for predictions in families:
        kind = Points if is_atomic(predictions) else kind_of(predictions)
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


def _choose_nodes(draft: Plan, affected: list[Predictions], options: Lowering, notes: Notes) -> Plan:
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


def _estimate_error(candidate: Plan, predictions: Predictions) -> float:
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
    points, point_layout = rows_of([points_group(single)])
    values: list[tuple[NDArray, ...]] = []
    for version in (atoms, atoms.coarser()):
        ops = ops_for(namespace(version.weights))
        rows, layout = rows_of([points_group(version.values, version.weights)])
        pairs = ElementForm(candidate.kernel, candidate.dimension, layout, layout).tile(ops, rows, rows)
        at = ElementForm(candidate.kernel, candidate.dimension, layout, point_layout).tile(ops, rows, points)
        values.append((to_numpy(pairs), to_numpy(at)))
    return max(float(np.abs(fine - coarse).max()) for fine, coarse in zip(*values, strict=True))


# -- public ----------------------------------------------------------------------------------


def pairing(kernel: Kernel, P: object, Q: object, *, expectations: str | Lowering = "auto") -> Array:
    """E k(Z, Z') for Z ~ P_i and Z' ~ Q_j, for all pairs.

    Parameters
    ----------
    kernel
        Kernel on targets.
    P
        n predictions.
    Q
        m predictions, or an array of m targets of predictions like P.
    expectations
        "auto", "closed" (refuse what has no closed form) or a :class:`wellcal.Lowering`.

    Returns
    -------
    array
        ``(n, m)``, in the library of the predictions and in float64.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.kernels import Gaussian
    >>> P = wc.Normal(np.zeros(2), np.ones(2))
    >>> wc.pairing(Gaussian(), P, np.array([0.0])).round(4)
    array([[0.7071],
           [0.7071]])
    """
    left = as_predictions(P)
    right: Side = Targets(_check_targets(left, Q), left) if _is_targets(Q) else as_predictions(Q)
    scheme = plan(kernel, [left, right], expectations=expectations, relative=True)
    rows_a, layout_a = scheme.rows([(1.0, left)])
    rows_b, layout_b = scheme.rows([(1.0, right)])
    with np.errstate(over="ignore", under="ignore"):  # of an exponent: its exponential is zero
        return scheme.form(layout_a, layout_b).tile(ops_for(left.xp), rows_a, rows_b)


def _is_targets(Q: object) -> bool:
    return is_array(Q) or isinstance(Q, list) or hasattr(Q, "__array__")


def _check_targets(predictions: Predictions, targets: Any) -> Array:
    """Any number of targets, checked against the family rather than row by row."""
    count = targets.shape[0] if is_array(targets) else len(targets)
    return predictions[np.zeros(count, dtype=int)].check_targets(targets, "Q")
