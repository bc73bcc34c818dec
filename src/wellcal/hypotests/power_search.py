"""The search for the number of cases at which a test has a given power."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from scipy import optimize, special

from wellcal._arrays.namespaces import NDArray

FEWEST = 5
"""Cases with which the search begins at least."""

ROUND = 20
"""Data sets between two looks."""

_STRIDE = 3.0  # by which the number of cases changes at most between two looks


class Search:
    """Numbers of cases that were tried, and the curve through what was found with them.

    Examples
    --------
    >>> search = Search(0.8, 1000)
    >>> for n, found in ((50, 8), (100, 15), (150, 19)):
    ...     search.add(n, 20, found)
    >>> 80 < search.next(150) < 130
    True
    """

    def __init__(self, power: float, most: int) -> None:
        self.power, self.most = power, most
        self.tried: list[tuple[int, int, int]] = []

    def add(self, n: int, data_sets: int, found: int) -> None:
        """Remember how often the error was found."""
        self.tried.append((n, data_sets, found))

    @property
    def hopeless(self) -> bool:
        """Whether even the largest number of cases is clearly too small."""
        at_most = [(sets, found) for n, sets, found in self.tried if n == self.most]
        sets, found = (sum(column) for column in zip(*at_most, strict=True)) if at_most else (0, 0)
        return sets >= 2 * ROUND and float(special.bdtrc(found, sets, self.power)) > 0.999

    def next(self, n: int) -> int:
        """The number of cases to try next, not too far from the last."""
        found = self._solve(*self._fit()[0])
        bounded = min(max(found, n / _STRIDE), n * _STRIDE)
        return int(min(max(round(bounded), FEWEST), self.most))

    def answer(self) -> tuple[int | None, int | None, int | None]:
        """The number of cases, and the ends of its 95% interval.

        None for what is beyond the largest number that was considered, of which nothing is known.
        """
        (a, b), covariance = self._fit()
        found = self._solve(a, b)
        if found > self.most:
            return None, None, None
        root = math.sqrt(found)
        # The derivative of (z - a) / b with respect to a and b.
        slope = np.array([-1.0 / b, -root / b])
        error = math.sqrt(max(float(slope @ covariance @ slope), 0.0))
        low, high = (max(root + side * 1.96 * error, 1.0) ** 2 for side in (-1.0, 1.0))
        upper = math.ceil(high) if high <= self.most else None
        return max(math.ceil(found), 2), max(math.floor(low), 2), upper

    def _solve(self, a: float, b: float) -> float:
        root = (float(special.ndtri(self.power)) - a) / b
        return max(root, 1.0) ** 2

    def _fit(self) -> tuple[tuple[float, float], NDArray]:
        """a and b of ``Phi(a + b sqrt(n))``, with a weak prior, and their covariance.

        A test that sees nothing rejects with its error rate: a is near -1.6, unless the data say otherwise.
        """
        n, sets, found = (np.array(column, float) for column in zip(*self.tried, strict=True))
        root = np.sqrt(n)
        centre = float((special.ndtri(self.power) + 1.6) / root.mean())

        def loss(x: NDArray) -> float:
            curve = cast("NDArray", special.ndtr(x[0] + math.exp(x[1]) * root))
            p = np.clip(curve, 1e-9, 1.0 - 1e-9)
            fit = -float(np.sum(found * np.log(p) + (sets - found) * np.log1p(-p)))
            return fit + 0.5 * ((x[0] + 1.6) / 1.0) ** 2 + 0.5 * ((x[1] - math.log(centre)) / 2.0) ** 2

        best: Any = optimize.minimize(loss, np.array([-1.6, math.log(centre)]), method="BFGS")
        b = math.exp(float(best.x[1]))
        jacobian = np.diag([1.0, b])
        return (float(best.x[0]), b), jacobian @ np.asarray(best.hess_inv) @ jacobian
