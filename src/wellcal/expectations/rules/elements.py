"""Elementary distributions as rules see them: parameters as arrays that broadcast.

Every prediction is a weighted sum of these (a mixture of its components, a sample of its points, an
observed target of one point), so a rule is needed only between these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wellcal._arrays.namespaces import Array
from wellcal._arrays.ops import Ops
from wellcal.kernels.base import Coordinates, Kernel


@dataclass(frozen=True)
class Points:
    """Dirac distributions at x in R^d."""

    x: Coordinates


@dataclass(frozen=True)
class Normals:
    """Normal distributions in R^d with independent coordinates: means x, variances v."""

    x: Coordinates
    v: Coordinates


@dataclass(frozen=True)
class FullNormals:
    """Normal distributions in R^d: means x, covariances as rows of their lower triangles."""

    x: Coordinates
    cov: tuple[Coordinates, ...]


@dataclass(frozen=True)
class Laplaces:
    """Laplace distributions on the line: location x, scale."""

    x: Coordinates
    scale: Array


@dataclass(frozen=True)
class Poissons:
    """Poisson distributions."""

    rate: Array


Element = Points | Normals | FullNormals | Laplaces | Poissons
Rule = Callable[[Ops, Any, Any, Any], Array]

RULES: dict[tuple[type[Kernel], type, type], Rule] = {}
"""Closed forms of E k(Z, Z') by kernel and the two elementary distributions."""

SCALAR_ONLY: set[tuple[type[Kernel], type, type]] = set()
"""Those that hold for scalar targets only."""


def rule(kernel: type[Kernel], left: type, right: type, *, scalar: bool = False) -> Callable[[Rule], Rule]:
    """Register ``f(ops, kernel, a, b)`` as the closed form between `left` and `right`, both ways round."""

    def register(function: Rule) -> Rule:
        def swapped(ops: Ops, k: Kernel, a: Any, b: Any) -> Array:
            return function(ops, k, b, a)

        RULES[kernel, right, left] = swapped
        RULES[kernel, left, right] = function
        if scalar:
            SCALAR_ONLY.update({(kernel, left, right), (kernel, right, left)})
        return function

    return register


def find_rule(kernel: type[Kernel], left: type, right: type, dimension: int) -> Rule | None:
    """Registered closed form, or None. A subclass of a registered kernel is not that kernel."""
    key = (kernel, left, right)
    if dimension > 1 and key in SCALAR_ONLY:
        return None
    return RULES.get(key)
