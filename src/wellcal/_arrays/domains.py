"""Sets of values that parameters and targets may come from, each with its check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wellcal._arrays.checks import LEAST, MOST, check_rows
from wellcal._arrays.namespaces import Array, namespace


@dataclass(frozen=True, eq=False)
class Domain:
    """A set of finite real numbers, or of rows of them.

    Parameters
    ----------
    name
        What its members are called: families whose targets have the same name check them alike.
    contains
        Where the entries of an array are members: an array of booleans of the same shape, or of its leading
        axes. None where all are.
    problem
        What is wrong with the others, to be read after a name: "must be positive".
    remedy
        What to do about them.
    discrete
        Whether its members are isolated, so that a distribution on them has probabilities and no density.

    Examples
    --------
    >>> import numpy as np
    >>> even = Domain("even numbers", lambda x: x % 2 == 0, "must be even", "double it", discrete=True)
    >>> even.check(np.array([2.0, 3.0]), "y")
    Traceback (most recent call last):
    wellcal.RowError: y must be even in row 1: found 3.; double it
    """

    name: str
    contains: Callable[[Array], Array] | None = None
    problem: str = ""
    remedy: str = "check the model's output"
    discrete: bool = False

    def check(self, array: Array, name: str, remedy: str = "") -> None:
        """Reject an array with an entry outside, naming the first bad row."""
        if self.contains is not None:
            check_rows(name, array, self.contains(array), self.problem, remedy or self.remedy)


class _Simplex(Domain):
    """Rows that are probability vectors: two conditions, each with its own remedy."""

    def check(self, array: Array, name: str, remedy: str = "") -> None:
        nonnegative.check(array, name, remedy)
        total = namespace(array).sum(array, axis=-1)
        # Softmax outputs in single precision over thousands of classes miss one by about 1e-4.
        tolerance = 1e-6 if array.dtype == namespace(array).float64 else 1e-3
        check_rows(
            f"the sum of {name}",
            total,
            abs(total - 1.0) <= tolerance,
            f"must be one within {tolerance:g}",
            remedy or f"divide each row of {name} by its sum",
            argument=name,
        )


class _Scale(Domain):
    """Numbers whose squares are floating-point numbers: two conditions, each with its own remedy."""

    def check(self, array: Array, name: str, remedy: str = "") -> None:
        super().check(array, name, remedy)
        least = (
            LEAST if self.name == "positive" else 0.0
        )  # a smaller spread has a square of zero, and is zero
        most = min(MOST, float(namespace(array).finfo(array.dtype).max))
        inside = (array >= least) & (array <= most)
        check_rows(name, array, inside, f"must lie between {least:g} and {MOST:g}", "change the unit")


def _whole(x: Array) -> Array:
    return (x >= 0) & (namespace(x).floor(x) == x)


LARGEST_LOGARITHM = 347.0

real = Domain("real")
positive = _Scale("positive", lambda x: x > 0, "must be positive")
nonnegative = Domain("nonnegative", lambda x: x >= 0, "must not be negative")
logarithm = Domain(
    "real",
    lambda x: abs(x) <= LARGEST_LOGARITHM,
    f"must lie between {-LARGEST_LOGARITHM:g} and {LARGEST_LOGARITHM:g}",
    "it is the logarithm of a scale; change the unit",
)
"""Numbers whose exponentials can be squared."""

spread = _Scale("nonnegative", lambda x: x >= 0, "must not be negative")
"""Scales that may be zero."""

unit_interval = Domain(
    "unit interval",
    lambda x: (x >= 0) & (x <= 1),
    "must lie in [0, 1]",
    "check its values and units",
)
whole_numbers = Domain(
    "counts", _whole, "must be a non-negative whole number", "counts are 0, 1, 2, ...", discrete=True
)
simplex = _Simplex("simplex")
