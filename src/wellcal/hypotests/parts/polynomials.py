"""Orthonormal polynomials of where a target stands in its prediction, over any array library.

They are evaluated for millions of drawn targets: steps are taken in the array that they have just made.
"""

from __future__ import annotations

from collections.abc import Iterator

from wellcal._arrays.namespaces import Array

HERMITE, LEGENDRE = 4, 6
"""Highest degrees: beyond them sums over some hundred cases are far from normal, or see nothing ordinary."""


def hermite(z: Array, most: int = HERMITE) -> Iterator[Array]:
    """Polynomials of degree 1, 2 .. that are orthonormal for a standard normal variate.

    Examples
    --------
    >>> import numpy as np
    >>> [float(h.round(3)[0]) for h in hermite(np.array([2.0]))]
    [2.0, 2.121, 0.816, -1.021]
    """
    before, current = 1.0, z
    yield current
    for degree in range(1, most):
        step = z * current
        step -= degree**0.5 * before
        step /= (degree + 1.0) ** 0.5
        before, current = current, step
        yield current


def legendre(u: Array, most: int = LEGENDRE) -> Iterator[Array]:
    """Polynomials of degree 1, 2 .. that are orthonormal for a uniform variate on (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> [float(p.round(3)[0]) for p in legendre(np.array([1.0]), 3)]
    [1.732, 2.236, 2.646]
    """
    x = 2.0 * u - 1.0
    before, current = 1.0, 3.0**0.5 * x
    yield current
    for degree in range(1, most):
        twice = 2.0 * degree
        step = x * current
        step *= ((twice + 1.0) * (twice + 3.0)) ** 0.5 / (degree + 1.0)
        step -= degree / (degree + 1.0) * ((twice + 3.0) / (twice - 1.0)) ** 0.5 * before
        before, current = current, step
        yield current
