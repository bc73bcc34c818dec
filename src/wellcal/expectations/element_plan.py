"""Predictions as elementary distributions, pair by pair, with atoms for those without a closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray
from wellcal._arrays.rows import Rows
from wellcal.expectations.bilinear import ElementForm
from wellcal.expectations.decompose import (
    Components,
    Side,
    Targets,
    components_of,
    elementary_components,
    merged,
    points,
    target_components,
)
from wellcal.expectations.lowering import Lowering
from wellcal.expectations.nodes import Chosen, Effort, choose
from wellcal.kernels.base import Kernel
from wellcal.predictions import Predictions

Family: TypeAlias = type[Predictions]


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


SignedSum: TypeAlias = list[tuple[float, Side]]
"""A signed sum of predictions and targets, such as P - d(y)."""


def signed_sum(measure: SignedSum, values_of: Callable[[Side], Array]) -> Array:
    """The sum of the values of its parts."""
    total: Array = None
    for sign, side in measure:
        part = values_of(side)
        if total is None:
            total = part if sign == 1.0 else sign * part
        else:
            total = total + sign * part
    return total


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


def note_atoms(chosen: ElementPlan, affected: list[Predictions], notes: Notes, left_out: float = 0.0) -> None:
    """Choose the atoms of all families that need them, and note how and with which error."""
    assert chosen.atoms is not None
    for family in affected:
        found = chosen.atoms.of(chosen.kernel, family)
        error = found.error + left_out
        notes.add_lowering(f"{chosen.kernel!r} with {type(family).__name__}: {found.scheme}", error)
