"""How expectations are found: by closed forms, on a common finite support, by features, or lowered to atoms.

`plan` decides, for a kernel and all the predictions and targets that meet in a problem, how each is
expanded. The plan then gives the rows of each measure and the form that evaluates them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from wellcal._arrays.checks import one_of
from wellcal._arrays.memo import Memo
from wellcal._arrays.namespaces import Array, NDArray, is_numpy, is_traced
from wellcal._arrays.rows import Rows
from wellcal.expectations.adaptive_quadrature import (
    FOR_FEATURES,
    Chosen,
    Effort,
    choose,
    effort_for,
    in_order,
)
from wellcal.expectations.atoms import LOWERINGS
from wellcal.expectations.bilinear import ElementForm, FiniteForm, Form, WeightRows, has_closed_form
from wellcal.expectations.features import MOST_FEATURES, FeatureGrid, mean_features, needed_features
from wellcal.expectations.grids import common_grid, grid_probabilities, one_hot, support_gram
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.pivots import Pivots, spanning_pivots
from wellcal.expectations.rules.elements import Normals, Points
from wellcal.expectations.signed_measures import (
    Components,
    Side,
    SignedSum,
    Targets,
    components_of,
    dimension_of,
    elementary_components,
    kind_of,
    merged,
    point_array,
    points,
    signed_sum,
    target_components,
    weighted_sum,
)
from wellcal.kernels.base import Kernel, TargetKernel, walk
from wellcal.kernels.targets import Delta, Gaussian
from wellcal.predictions import Predictions, Samples

Family: TypeAlias = type[Predictions]

_DEFAULT = Lowering()

_MANY_COUNTS = 256  # from here on features take less time than a product with the kernel matrix


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

    def add(self, other: Notes) -> None:
        """Take over what was recorded elsewhere."""
        self.rules += other.rules
        for text in other.lowered:
            self.add_lowering(text, other.error)

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


class Plan(Protocol):
    """How the measures of one problem are expanded under a kernel on targets."""

    def rows(self, measure: SignedSum) -> Rows:
        """Rows of a measure."""
        ...

    def form(self, left: Rows, right: Rows) -> Form:
        """The bilinear form between measures with rows like these."""
        ...


@dataclass(frozen=True)
class AtomChoice:
    """How atoms are chosen, and those of the batches that a plan was made for.

    Attributes
    ----------
    options, points, effort
        Options of a user; atoms of a vector; what may be spent.
    made
        What was chosen for which batch.
    """

    options: Lowering
    points: int
    effort: Effort
    made: list[tuple[Predictions, Chosen]] = field(default_factory=lambda: [], compare=False)

    @property
    def rules(self) -> tuple[Any, ...]:
        """What decides which atoms a batch has. Unlike this object it does not keep any batch alive."""
        return self.options, self.points, self.effort

    def of(self, kernel: Kernel, family: Predictions) -> Chosen:
        """The atoms of a batch, chosen once."""
        for batch, chosen in self.made:
            if batch is family:
                return chosen
        chosen = choose(family, kernel, self.options, self.points, self.effort)
        self.made.append((family, chosen))
        return chosen


@dataclass(frozen=True)
class ElementPlan:
    """Elementary distributions, pair by pair; what has no closed form is lowered to atoms.

    Attributes
    ----------
    lowered
        Families that become atoms.
    atoms
        How these are chosen.
    """

    kernel: Kernel
    dimension: int
    lowered: frozenset[Family] = frozenset()
    atoms: AtomChoice | None = None

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
            (part,) = (part for _, part in self.of_family(family))
            out.append(part if weight is None else part.scaled(weight[:, None]))
        return out

    def of_family(self, family: Predictions) -> list[tuple[NDArray | None, Components]]:
        """One family as elementary distributions, rows with equally many of them together.

        Each entry has the positions of its rows in the batch, None for all.
        """
        if self.atoms is None or type(family) not in self.lowered:
            return [(None, elementary_components(family))]
        parts = self.atoms.of(self.kernel, family).parts
        return [(rows, points(atoms.values, atoms.weights)) for rows, atoms in parts]

    def note(self, affected: list[Predictions], notes: Notes, left_out: float = 0.0) -> None:
        """Choose the atoms of families that need them, and note how and with which error."""
        assert self.atoms is not None
        for family in affected:
            found = self.atoms.of(self.kernel, family)
            error = found.error + left_out
            notes.add_lowering(f"{self.kernel!r} with {type(family).__name__}: {found.scheme}", error)


@dataclass(frozen=True)
class _FinitePlan:
    """A plan that knows coordinates of predictions and targets, whose bilinear form is a matrix product."""

    def form(self, left: Rows, right: Rows) -> FiniteForm:
        """Return the matrix product."""
        raise NotImplementedError

    def coordinates(self, side: Side) -> Array:
        """Return coordinates ``(n, M)`` of predictions or targets."""
        raise NotImplementedError

    def rows(self, measure: SignedSum) -> WeightRows:
        """Return coordinates of a measure."""
        return self.form(None, None).rows(signed_sum(measure, self.coordinates))


@dataclass(frozen=True)
class GridPlan(_FinitePlan):
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

    def form(self, left: Rows, right: Rows) -> FiniteForm:
        return FiniteForm(self.gram, len(self.grid))

    def coordinates(self, side: Side) -> Array:
        if isinstance(side, Targets):
            return one_hot(side, self.grid)
        return weighted_sum(side, lambda family: grid_probabilities(family, self.grid))


@dataclass(frozen=True)
class FeaturePlan(_FinitePlan):
    """Mean features of a Gaussian kernel: a matrix product, however many components there are.

    Attributes
    ----------
    elements, features
        What predictions consist of, and the features.
    """

    elements: ElementPlan
    features: FeatureGrid | Pivots

    def form(self, left: Rows, right: Rows) -> FiniteForm:
        return FiniteForm(None, self.features.size)

    def coordinates(self, side: Side) -> Array:
        if isinstance(side, Targets):
            return mean_features(self.features, target_components(side))
        return weighted_sum(side, self._of_family)

    def _of_family(self, family: Predictions) -> Array:
        """Return mean features of a batch, which keeps them for other kernels."""

        def compute() -> Array:
            parts = self.elements.of_family(family)
            return in_order([(rows, mean_features(self.features, part)) for rows, part in parts])

        if family.ops.differentiable:
            return compute()
        atoms, features = self.elements.atoms, self.features
        lines = features.centres if isinstance(features, FeatureGrid) else (features.points,)
        origin = features.origin if isinstance(features, FeatureGrid) else None
        rules = () if atoms is None else (*atoms.rules, LOWERINGS.find(type(family)))
        places = (features.lengthscale, origin, *(line.tobytes() for line in lines))
        key = (places, self.elements.lowered, *rules)
        return _mean_features.get(family, key, compute)


_mean_features: Memo[Array] = Memo()


def check_expectations(expectations: object) -> None:
    """Reject what is neither a word for how expectations are computed nor a `Lowering`."""
    if not isinstance(expectations, Lowering):
        one_of(expectations, "expectations", ("auto", "closed"), or_else="or a Lowering")


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
    check_expectations(expectations)
    notes = Notes() if notes is None else notes
    batches = [side.predictions if isinstance(side, Targets) else side for side in sides]
    families = [component for batch in batches for component in batch.parts]
    # Of targets only the values meet anything, not the predictions that they belong to.
    present = [component for side in sides if not isinstance(side, Targets) for component in side.parts]
    dimension = dimension_of(families[0])
    # Numbers and vectors fill the line or the space: only classes, counts and bins have a grid.
    discrete = families[0].target_kind not in ("real", "simplex")
    grid = common_grid(kernel, families, sides) if discrete else None
    lowered = _families_to_lower(kernel, families, dimension)
    options = expectations if isinstance(expectations, Lowering) else _DEFAULT
    counts = families[0].target_kind == "counts" and expectations != "closed"
    if grid is None or (counts and len(grid) > _MANY_COUNTS):
        if lowered and grid is None:
            _check_allowed(kernel, lowered, expectations, families[0])
        if lowered or not relative:
            features = _feature_plan(kernel, sides, families, present, lowered, options, notes, many)
            if features is not None:
                return features
    if grid is not None:
        gram = None if type(kernel) is Delta else support_gram(kernel, families[0], grid)
        notes.add_rule(kernel, f" on a finite support of {len(grid)} values: matrix product")
        return GridPlan(grid, gram)
    for family in dict.fromkeys(type(f) for f in families if type(f) not in lowered):
        notes.add_rule(kernel, f" with {family.__name__}: closed form")
    if not lowered:
        return ElementPlan(kernel, dimension)
    effort = effort_for(kernel, len(batches[0]))
    chosen = ElementPlan(kernel, dimension, lowered, AtomChoice(options, options.for_vectors, effort))
    chosen.note([f for f in present if type(f) in lowered], notes)
    return chosen


def _check_allowed(
    kernel: Kernel, lowered: frozenset[Family], expectations: str | Lowering, first: Predictions
) -> None:
    names = ", ".join(sorted(f.__name__ for f in lowered))
    if _contains_delta(kernel) and first.target_kind == "counts":
        why = (
            "under jax.jit it is not known which counts these are"
            if is_traced(first.like)
            else f"these {names} predictions lie so far apart that too many counts would be needed"
        )
        raise ValueError(
            f"Delta() needs the probabilities of single counts, and {why}; take a kernel such as Gaussian()"
        )
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
_MOST_COORDINATES = 4  # of vectors for which features are tried
_MOST_IN_A_PLANE = 3136  # features: with more, pairs of fewer atoms take less time
_ATOMS = 1024
_MOST_ENTRIES, _FEW_ENTRIES = 200_000_000, 20_000_000  # of the array of features: 1.6 GB, and a tenth of it


def _feature_plan(
    kernel: Kernel,
    sides: list[Side],
    families: list[Predictions],
    present: list[Predictions],
    lowered: frozenset[Family],
    options: Lowering,
    notes: Notes,
    many: bool,
) -> Plan | None:
    """Expand all that has many components into features of a Gaussian kernel, where few are enough."""
    dimension = dimension_of(families[0])
    if type(kernel) is not Gaussian or not isinstance(kernel.lengthscale, float) or not present:
        return None
    if dimension > (_MOST_COORDINATES if lowered else 2):
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

    def draft(atoms: int) -> ElementPlan:
        return ElementPlan(kernel, dimension, lowered | rest, AtomChoice(options, atoms, FOR_FEATURES))

    exact = not lowered
    # More atoms where they only make features; all libraries must decide alike, so that they have the same.
    many_atoms = options == _DEFAULT and dimension < 3
    elements = draft(_ATOMS if many_atoms else options.for_vectors)
    features, left_out = None, 0.0
    if dimension <= 2:
        cases = max(map(_length_of, sides))
        largest = MOST_FEATURES if dimension == 1 else _MOST_IN_A_PLANE
        most = min(largest, max(256, _MOST_ENTRIES // cases))
        if dimension == 1 and not exact:
            most = max(most, min(16 * MOST_FEATURES, _FEW_ENTRIES // cases))
        parts = [part for side in sides for part in _all_components(elements, side)]
        features, left_out = needed_features(
            kernel.lengthscale, parts, most, exact=exact, furthest=np.inf
        ) or (None, 0.0)
    if (
        features is None
        and dimension > 1
        and lowered
        and rest <= lowered
        and all(is_numpy(f.xp) for f in families)
    ):
        elements = draft(options.for_vectors)
        features = _pivots(elements, kernel.lengthscale, sides)
    if features is None:
        return None
    found = FeaturePlan(elements, features)
    elements.note([f for f in present if type(f) in lowered | rest], notes, left_out)
    notes.add_rule(kernel, f" by {features.size} features, exact to 1e-13")
    return found


def _length_of(side: Side) -> int:
    return len(side.predictions if isinstance(side, Targets) else side)


def _all_components(elements: ElementPlan, side: Side) -> list[Components]:
    if isinstance(side, Targets):
        return [target_components(side)]
    return [part for family in side.parts for _, part in elements.of_family(family)]


def _pivots(elements: ElementPlan, lengthscale: float, sides: list[Side]) -> Pivots | None:
    """Return features of vectors in NumPy that are spanned by some of the atoms and targets."""
    atoms: list[tuple[NDArray, NDArray | None]] = []
    targets: list[NDArray] = []
    for side in sides:
        for part in _all_components(elements, side):
            if part.kind is not Points:
                return None
            points = np.asarray(point_array(cast("Points", part.element)))
            if isinstance(side, Targets):
                targets.append(points[:, 0])
            else:
                atoms.append((points, None if isinstance(part.weights, float) else np.asarray(part.weights)))
    return spanning_pivots(lengthscale, atoms, targets)


def _component_count(predictions: Predictions) -> int:
    """Elementary distributions for each case."""
    parts = list(predictions.parts)
    return sum(p.values.shape[1] if isinstance(p, Samples) else 1 for p in parts)


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
