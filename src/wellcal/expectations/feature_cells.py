"""Mean features of a batch of scalars, made once and kept where they are not negligible.

Features stand at whole multiples of a step, so that those of all batches and targets of a problem fit on one
grid: a batch has its own cells on it, and is zero in all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wellcal._arrays.memo import Memo
from wellcal._arrays.namespaces import NDArray
from wellcal.expectations.decompose import Components
from wellcal.expectations.gaussian_features import FeatureGrid, mean_features, step_of
from wellcal.expectations.needed_features import around, different, occupied_cells
from wellcal.expectations.nodes import in_order
from wellcal.predictions import Predictions

_BLOCK = 1024.0  # cells: origins are multiples of it, so that batches in one place share theirs


class Cells(NamedTuple):
    """Mean features of a batch.

    Attributes
    ----------
    origin
        From where cells are counted, in cells.
    centres
        Centres of the features relative to the origin, ``(M,)``, increasing.
    mean
        Mean features, ``(n, M)``.
    left_out
        Weight of atoms, in one row, that go without features.
    """

    origin: float
    centres: NDArray
    mean: NDArray
    left_out: float

    def on(self, grid: FeatureGrid) -> NDArray:
        """Mean features on a grid that has all of these cells, ``(n, M')``."""
        if len(grid.centres[0]) == len(self.centres):
            return self.mean
        out = np.zeros((len(self.mean), len(grid.centres[0])))
        out[:, np.searchsorted(grid.centres[0], self.centres)] = self.mean
        return out


_cells_of_batches: Memo[Cells | None] = Memo()


def cells_of(
    family: Predictions,
    key: Any,
    parts: list[tuple[NDArray | None, Components]],
    extents: list[tuple[NDArray, NDArray | None]],
    lengthscale: float,
) -> Cells | None:
    """Mean features of a batch in NumPy; None where they are too many.

    Parameters
    ----------
    family
        The batch, which remembers them.
    key
        What else they depend on.
    parts
        Its elementary distributions, with the rows that they belong to.
    extents
        Points that mark where these have mass, and their weights.
    lengthscale
        Of the Gaussian kernel.
    """

    def find() -> Cells | None:
        return _cells(len(family), parts, extents, lengthscale)

    return _cells_of_batches.get(family, (key, lengthscale), find)


def _cells(
    n: int,
    parts: list[tuple[NDArray | None, Components]],
    extents: list[tuple[NDArray, NDArray | None]],
    lengthscale: float,
) -> Cells | None:
    step = step_of(lengthscale)
    middle = float(np.median(np.concatenate([points.reshape(-1) for points, _ in extents])))
    origin = float(np.rint(middle / step / _BLOCK)) * _BLOCK
    found = occupied_cells(lengthscale, extents, n, origin * step)
    if found is None:
        return None
    cells, left_out = found
    grid = FeatureGrid(lengthscale, (cells * step,), (origin * step,))
    mean = np.empty((n, len(cells)))
    for rows, part in parts:
        mean[slice(None) if rows is None else rows] = mean_features(grid, part)
    return Cells(origin, grid.centres[0], mean, left_out)


def common_cells(lengthscale: float, batches: list[Cells], targets: list[NDArray]) -> FeatureGrid | None:
    """The grid of batches and targets that meet; None where batches count from different origins."""
    origin = batches[0].origin
    if any(batch.origin != origin for batch in batches):
        return None
    step = step_of(lengthscale)
    centres = batches[0].centres
    for batch in batches[1:]:
        if batch.centres is not centres:
            centres = np.union1d(centres, batch.centres)
    for values in targets:
        wanted = around(different(np.rint((values.reshape(-1) - origin * step) / step))) * step
        missing = wanted[centres[np.minimum(np.searchsorted(centres, wanted), len(centres) - 1)] != wanted]
        if len(missing):
            centres = np.union1d(centres, missing)
    return FeatureGrid(lengthscale, (centres,), (origin * step,))


# -- exact features --------------------------------------------------------------------------------

_exact: Memo[Cells] = Memo()


def exact_features(
    family: Predictions,
    parts: list[tuple[NDArray | None, Components]],
    extents: Callable[[], list[NDArray]],
    grid: FeatureGrid,
) -> NDArray:
    """Mean features of a batch of scalars in NumPy on a grid that reaches all of it, ``(n, M)``.

    Kernels on predictions and on targets ask for the same features, but for cells that only targets reach, in
    which the batch has none: it remembers those that it has.

    Parameters
    ----------
    family, parts
        The batch, and its elementary distributions with the rows that they belong to.
    extents
        Gives points, in whatever shape, that mark where these have mass.
    grid
        The features.
    """

    def find() -> Cells:
        step, (origin,) = step_of(grid.lengthscale), grid.origin
        occupied = [different(np.rint((points.reshape(-1) - origin) / step)) for points in extents()]
        centres = around(np.unique(np.concatenate(occupied))) * step
        own = FeatureGrid(grid.lengthscale, (centres,), grid.origin)
        return Cells(
            origin / step, centres, in_order([(rows, mean_features(own, part)) for rows, part in parts]), 0.0
        )

    return _exact.get(family, (grid.lengthscale, grid.origin), find).on(grid)
