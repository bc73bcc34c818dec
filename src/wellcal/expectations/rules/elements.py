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
    """Dirac distributions at x in R^d, a tuple of d arrays.

    Examples
    --------
    >>> import numpy as np
    >>> Points((np.array([0.5, 1.5]),)).x[0]
    array([0.5, 1.5])
    """

    x: Coordinates


class Normals(NamedTuple):
    """Normal distributions in R^d with independent coordinates: d means x and d variances v.

    Examples
    --------
    >>> import numpy as np
    >>> standard = Normals(x=(np.zeros(3),), v=(np.ones(3),))
    >>> len(standard.x), standard.v[0]
    (1, array([1., 1., 1.]))
    """

    x: Coordinates
    v: Coordinates


class FullNormals(NamedTuple):
    """Normal distributions in R^d: d means x, and covariances cov as the d rows of their lower triangles.

    Examples
    --------
    >>> import numpy as np
    >>> one, half = np.ones(3), np.full(3, 0.5)
    >>> element = FullNormals(x=(one, one), cov=((one,), (half, one)))
    >>> [len(row) for row in element.cov]
    [1, 2]
    """

    x: Coordinates
    cov: tuple[Coordinates, ...]


class Laplaces(NamedTuple):
    """Laplace distributions on the line: the location, a tuple of one array x, and the scale.

    Examples
    --------
    >>> import numpy as np
    >>> Laplaces(x=(np.zeros(2),), scale=np.array([1.0, 2.0])).scale
    array([1., 2.])
    """

    x: Coordinates
    scale: Array


class Poissons(NamedTuple):
    """Poisson distributions, by their rate, an array.

    Examples
    --------
    >>> import numpy as np
    >>> Poissons(rate=np.array([0.5, 3.0])).rate
    array([0.5, 3. ])
    """

    rate: Array


COSTS: dict[type, float] = {Points: 2.0, Normals: 3.0, FullNormals: 20.0, Laplaces: 12.0, Poissons: 30.0}
"""What a closed form with an element costs, in evaluations.

An evaluation, the unit in which all work is counted, takes about 1.5 nanoseconds: sixteen terms of a matrix
product take one, an exponential and what belongs to it two. A user's own kind counts as an average.
"""

CALL = 500.0
"""What a call of a user's function for one pair of targets costs: a microsecond."""

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
    """Register the expectation of a kernel under two elementary distributions, in closed form.

    The function takes ``(ops, kernel, a, b)`` and returns E k(Z, Z') for Z from `a` and Z' from `b`: one
    elementwise expression over arrays that broadcast against each other. Functions of `ops` run on every
    array library; there are no branches on values but ``ops.where``. One order of the two is enough.

    Parameters
    ----------
    kernel
        The class of the kernel. The rule does not hold for classes derived from it.
    left, right
        The kinds of `a` and `b`: `Points`, `Normals`, `FullNormals`, `Laplaces`, `Poissons`, or your own.
    scalar
        Whether it holds for numbers only, not for vectors.
    replace
        Whether it takes the place of a rule that exists.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.extend import Normals, Points, closed_form
    >>> from wellcal.kernels import ExpDistance, Radial, Wasserstein
    >>> @dataclass(frozen=True)
    ... class Bell(Radial):
    ...     def radial(self, ops, squared):
    ...         return ops.exp(-squared)
    >>> @closed_form(Bell, Normals, Normals, scalar=True)
    ... @closed_form(Bell, Normals, Points, scalar=True)
    ... def bell_of_normals(ops, kernel, a, b):
    ...     variance = a.v[0] + (b.v[0] if isinstance(b, Normals) else 0.0)
    ...     return ops.exp(-((a.x[0] - b.x[0]) ** 2) / (1 + 2 * variance)) / ops.sqrt(1 + 2 * variance)
    >>> pred = wc.Normal(np.zeros(3), np.ones(3))
    >>> found = wc.skce([0.1, 0.2, 0.9], pred, kernel=ExpDistance(Wasserstein()) @ Bell())
    >>> found.provenance["expectations"]
    'closed'
    """

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
