"""Elementary distributions, and the closed forms between them.

Every prediction is a weighted sum of these (a mixture of its components, a sample of its points, an
observed target of one point), so a rule is needed only between these. An element is a named tuple of arrays:
``(n, K)`` where it stands for K distributions of each of n cases, and shaped so that two sides broadcast
where a rule reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from wellcal._arrays.namespaces import Array
from wellcal._arrays.ops import Ops
from wellcal._arrays.registry import Rules
from wellcal.kernels.base import Coordinates, Kernel


class Points(NamedTuple):
    """Dirac distributions at x in R^d."""

    x: Coordinates


class Normals(NamedTuple):
    """Normal distributions in R^d with independent coordinates: means x, variances v."""

    x: Coordinates
    v: Coordinates


class FullNormals(NamedTuple):
    """Normal distributions in R^d: means x, covariances as rows of their lower triangles."""

    x: Coordinates
    cov: tuple[Coordinates, ...]


class Laplaces(NamedTuple):
    """Laplace distributions on the line: location x, scale."""

    x: Coordinates
    scale: Array


class Poissons(NamedTuple):
    """Poisson distributions."""

    rate: Array


Element: TypeAlias = tuple[Any, ...]
"""One of the above, or a named tuple of a user's own."""

Rule: TypeAlias = Callable[[Ops, Any, Any, Any], Array]
"""``f(ops, kernel, a, b)``: E k(Z, Z') for elements a and b, elementwise over arrays that broadcast."""


class ClosedForm(NamedTuple):
    """A rule between two elements.

    Attributes
    ----------
    rule
        What was registered.
    scalar
        Whether it holds for scalar targets only.
    swapped
        Whether it takes the two elements the other way round.
    """

    rule: Rule
    scalar: bool
    swapped: bool = False


CLOSED_FORMS: Rules[ClosedForm] = Rules("a closed form", exact=True)
"""Closed forms of E k(Z, Z') by kernel and the two elementary distributions."""


def rule(
    kernel: type[Kernel], left: type, right: type, *, scalar: bool = False, replace: bool = False
) -> Callable[[Rule], Rule]:
    """Register ``f(ops, kernel, a, b)`` as the closed form between `left` and `right`, both ways round."""

    def register(function: Rule) -> Rule:
        if left is not right:
            CLOSED_FORMS.register(kernel, right, left, replace=replace)(ClosedForm(function, scalar, True))
        CLOSED_FORMS.register(kernel, left, right, replace=replace)(ClosedForm(function, scalar))
        return function

    return register


def known_form(kernel: type[Kernel], left: type, right: type, dimension: int) -> ClosedForm | None:
    """Registered closed form, or None. A subclass of a registered kernel is not that kernel."""
    found = CLOSED_FORMS.find(kernel, left, right)
    return None if found is None or (found.scalar and dimension > 1) else found
