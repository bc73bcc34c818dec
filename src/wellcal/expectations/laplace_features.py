"""Expected features of many Laplace distributions: polynomials in place, and in the logarithm of the scale.

A feature is a Gaussian function about its centre, and centres are evenly spaced. So the expected features of
a Laplace distribution, counted from the centre next to its location, are a smooth function of two numbers:
where it lies between centres, and its scale. For scales within a factor of two that is a polynomial to
rounding, and the features of thousands of cases are one matrix product, where the closed form takes two error
functions for each of them. Some cases are compared with the closed form, and all of it is left to that where
they differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray

ClosedForm: TypeAlias = Callable[[NDArray, NDArray], NDArray]
"""Expected value of a feature at distances from locations, for scales: two arrays that broadcast."""

FEWEST = 2000
"""Cases with scales within a factor of two, from which a polynomial is worth finding."""

_IN_PLACE, IN_SCALE = 13, 17  # coefficients
_ERROR = 1e-14  # of a feature, whose largest value is one
_NEGLIGIBLE = 1e-16  # coefficient of a polynomial that is at most one
_LOOKED_AT = 64  # cases
_TAIL = 37.0  # scales: exp(-37) is rounding
_FURTHEST = 1024  # centres to either side
_SMALLEST = 1e-300  # scales


@dataclass(frozen=True)
class LaplaceFeatures:
    """Expected features of Laplace distributions on a line.

    Attributes
    ----------
    cells, step
        Numbers ``(M,)`` of the features, ascending, and the distance of neighbours: centres are products.
    closed
        The closed form.
    tables
        Polynomials for the scales that many have, by the logarithm of the least of them.

    Examples
    --------
    >>> x, scale, cells = np.zeros(1), np.ones(1), np.array([0.0, 2.0])
    >>> found = LaplaceFeatures.of(x, scale, cells, 0.5, 6.0, lambda z, s: np.exp(-np.abs(z) / s))
    >>> found.at(x, scale)
    array([[1.        , 0.36787944]])
    """

    cells: NDArray
    step: float
    closed: ClosedForm
    tables: dict[int, _Table]

    @classmethod
    def of(
        cls, x: NDArray, scale: NDArray, cells: NDArray, step: float, width: float, closed: ClosedForm
    ) -> LaplaceFeatures:
        """For distributions such as these, with locations and scales ``(n,)``.

        `width` is that of a feature: further away than that it is zero to rounding.
        """
        octaves = _octaves(scale)
        tables: dict[int, _Table] = {}
        for octave, count in zip(*np.unique(octaves, return_counts=True), strict=True):
            if count < FEWEST:
                continue
            some = np.flatnonzero(octaves == octave)
            table = _Table.of(float(octave), x[some], cells, step, width, closed)
            if table is not None and table.agrees(x[some], scale[some], closed):
                tables[int(octave)] = table
        return cls(cells, step, closed, tables)

    def at(self, x: NDArray, scale: NDArray) -> NDArray:
        """Features ``(n, M)`` of some of them."""
        out = np.empty((len(x), len(self.cells)))
        octaves = _octaves(scale)
        for octave in np.unique(octaves):
            some = np.flatnonzero(octaves == octave)
            table = self.tables.get(int(octave))
            for part in in_chunks(len(some), 8 * len(self.cells)):
                own = some[part]
                out[own] = (
                    self.closed(x[own, None] - self.cells * self.step, scale[own, None])
                    if table is None
                    else table.at(x[own], scale[own], self.cells)
                )
        return out


def _octaves(scale: NDArray) -> NDArray:
    return np.floor(np.log2(np.maximum(scale, _SMALLEST))).astype(int)


@dataclass(frozen=True)
class _Table:
    """Features about the nearest centre, for scales from `smallest` to twice that.

    Attributes
    ----------
    smallest, step
        The least scale, and the distance of centres.
    in_scale
        How many polynomials of the scale each of those of the place goes with, ``(_IN_PLACE,)``.
    coefficients
        ``(sum(in_scale), 2 K + 3)`` of products of Chebyshev polynomials, for K centres to either side, and
        one more without features.
    """

    smallest: float
    step: float
    in_scale: tuple[int, ...]
    coefficients: NDArray

    @property
    def sides(self) -> int:
        """Centres to either side."""
        return self.coefficients.shape[1] // 2 - 1

    @classmethod
    def of(
        cls, exponent: float, x: NDArray, cells: NDArray, step: float, width: float, closed: ClosedForm
    ) -> _Table | None:
        smallest = 2.0**exponent
        # No further than there is a centre, nor than the tail is above rounding.
        furthest = max(float(cells[-1]) - float(x.min()) / step, float(x.max()) / step - float(cells[0]))
        sides: int = math.ceil(min((width + _TAIL * 2.0 * smallest) / step, furthest)) + 1
        if not sides <= _FURTHEST:
            return None
        offsets: NDArray = np.arange(2 * sides + 1)
        places, scales = (np.cos(np.pi * (np.arange(k) + 0.5) / k) for k in (_IN_PLACE, IN_SCALE))
        away: NDArray = (0.5 * places[:, None, None] - (offsets - sides)) * step
        values = closed(away, smallest * 2.0 ** (0.5 * (1.0 + scales))[None, :, None])
        to_place, to_scale = (np.linalg.inv(_polynomials(at, len(at))) for at in (places, scales))
        found = np.einsum("ai,bj,ijk->abk", to_place, to_scale, values, optimize=True)
        return cls._of_large_ones(smallest, step, found)

    @classmethod
    def _of_large_ones(cls, smallest: float, step: float, found: NDArray) -> _Table:
        """Without the highest powers, whose coefficients ``(_IN_PLACE, IN_SCALE, 2 K + 1)`` are rounding."""
        large = np.abs(found).max(axis=2) > _NEGLIGIBLE
        in_scale = tuple(int(np.flatnonzero(row)[-1]) + 1 if row.any() else 0 for row in large)
        rows = np.concatenate([found[k, :count] for k, count in enumerate(in_scale)])
        return cls(smallest, step, in_scale, np.pad(rows, ((0, 0), (1, 1))))

    def at(self, x: NDArray, scale: NDArray, cells: NDArray) -> NDArray:
        """Features ``(n, M)`` of some cases."""
        values, nearest = self._about_the_nearest(x, scale)
        width = values.shape[1]
        place = cells.astype(np.intp) + (self.sides + 1 - nearest.astype(np.intp))[:, None]
        np.clip(place, 0, width - 1, out=place)
        place += np.arange(0, values.size, width)[:, None]
        return values.reshape(-1).take(place)

    def agrees(self, x: NDArray, scale: NDArray, closed: ClosedForm) -> bool:
        """Whether some cases have the features of the closed form, from the least to the largest scale."""
        spread = np.argsort(scale)[np.linspace(0, len(x) - 1, _LOOKED_AT).astype(int)]
        values, nearest = self._about_the_nearest(x[spread], scale[spread])
        away = x[spread, None] - (nearest[:, None] + np.arange(-self.sides, self.sides + 1)) * self.step
        return float(np.max(np.abs(values[:, 1:-1] - closed(away, scale[spread, None])))) <= _ERROR

    def _about_the_nearest(self, x: NDArray, scale: NDArray) -> tuple[NDArray, NDArray]:
        nearest = np.rint(x / self.step)
        place = _polynomials(2.0 * (x / self.step - nearest), _IN_PLACE)
        of_scale = _polynomials(2.0 * np.log2(scale / self.smallest) - 1.0, IN_SCALE)
        products = np.empty((len(x), len(self.coefficients)))
        start = 0
        for k, count in enumerate(self.in_scale):
            np.multiply(place[:, k : k + 1], of_scale[:, :count], out=products[:, start : start + count])
            start += count
        return products @ self.coefficients, nearest


def _polynomials(t: NDArray, count: int) -> NDArray:
    """Chebyshev polynomials ``(n, count)`` at numbers ``(n,)`` between -1 and 1."""
    rises = [np.ones_like(t), t]
    for _ in range(2, count):
        rises.append(2.0 * t * rises[-1] - rises[-2])
    return np.stack(rises[:count], axis=-1)
