"""How expectations are found: by closed forms, on a common finite support, by features, or lowered to atoms.

`plan` decides, for a kernel and all the predictions and targets that meet in a problem, how each is
expanded. The plan then gives the rows of each measure and the form that evaluates them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from wellcal._arrays.checks import one_of
from wellcal._arrays.namespaces import Array, NDArray
from wellcal._arrays.rows import Rows
from wellcal.expectations.bilinear import FiniteForm, Form, has_closed_form
from wellcal.expectations.decompose import Side, Targets, components_of, dimension_of, kind_of
from wellcal.expectations.element_plan import (
    AtomChoice,
    ElementPlan,
    Family,
    Notes,
    SignedSum,
    note_atoms,
    signed_sum,
)
from wellcal.expectations.feature_plan import DEFAULT, feature_plan
from wellcal.expectations.grids import common_grid, grid_probabilities, one_hot, support_gram
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.nodes import FOR_PAIRS
from wellcal.expectations.rules.elements import Points
from wellcal.kernels.base import Kernel, TargetKernel
from wellcal.kernels.parts import walk
from wellcal.kernels.targets import Delta
from wellcal.predictions import Predictions


class Plan(Protocol):
    """How the measures of one problem are expanded under a kernel on targets."""

    def rows(self, measure: SignedSum) -> Rows:
        """Rows of a measure."""
        ...

    def form(self, left: Rows, right: Rows) -> Form:
        """The bilinear form between measures with rows like these."""
        ...


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
        return self._form.rows(signed_sum(measure, self._weights))

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
    # Of targets only the values meet anything, not the predictions that they belong to.
    present = [
        component for side in sides if not isinstance(side, Targets) for component, _ in components_of(side)
    ]
    dimension = dimension_of(families[0])
    # Numbers and vectors fill the line or the space: only classes, counts and bins have a grid.
    discrete = families[0].target_kind not in ("real", "simplex")
    grid = common_grid(kernel, families, sides) if discrete else None
    if grid is not None:
        gram = None if type(kernel) is Delta else support_gram(kernel, families[0], grid)
        notes.add_rule(kernel, f" on a finite support of {len(grid)} values: matrix product")
        return GridPlan(grid, gram)
    lowered = _families_to_lower(kernel, families, dimension)
    options = expectations if isinstance(expectations, Lowering) else DEFAULT
    if lowered:
        _check_allowed(kernel, lowered, expectations)
    if lowered or not relative:
        by_features = feature_plan(kernel, sides, families, present, lowered, options, notes, many)
        if by_features is not None:
            return by_features
    for family in dict.fromkeys(type(f) for f in families if type(f) not in lowered):
        notes.add_rule(kernel, f" with {family.__name__}: closed form")
    if not lowered:
        return ElementPlan(kernel, dimension)
    chosen = ElementPlan(kernel, dimension, lowered, AtomChoice(options, options.points, FOR_PAIRS))
    note_atoms(chosen, [f for f in present if type(f) in lowered], notes)
    return chosen


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
