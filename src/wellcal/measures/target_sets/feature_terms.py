"""What sets of targets share with predictions that are features: products, and tables of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from wellcal._arrays.chunks import Chunk, budget, in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.rows import Rows
from wellcal.expectations.expansion import FeaturePlan, GridPlan, Plan
from wellcal.expectations.features import FeatureGrid
from wellcal.expectations.grids import grid_positions
from wellcal.expectations.signed_measures import Targets
from wellcal.predictions import Predictions

KEPT = 2  # temporary arrays that the kernel matrix on predictions may fill, to be kept between sets
ENCODED = 8  # temporary arrays that encoded targets may fill at a time

Encoded = TypeVar("Encoded")


class ResampledTerm(Protocol[Encoded]):
    """A kernel on targets, as far as sets of targets change it.

    Attributes
    ----------
    small_products
        Whether the work is done in many small products, in which threads of BLAS wait for each other.
    """

    small_products: ClassVar[bool]

    @property
    def entries(self) -> int:
        """Numbers that encode one target."""
        ...

    @property
    def cost(self) -> float:
        """Elementary evaluations for one pair and one set of targets, for choices between methods."""
        ...

    def tile_shape(self, n: int) -> tuple[int, int]:
        """Height and width of the tiles in which n cases are best visited."""
        ...

    def encode(self, targets: NDArray) -> Encoded:
        """Sets of targets ``(r, n, ...)`` as `tile` reads them."""
        ...

    def tile(self, kps: NDArray, i: Chunk, j: Chunk, encoded: Encoded) -> NDArray:
        """Sums over a tile of pairs, ``(r, q)``, for each set and each of q kernels on predictions.

        Their values there are `kps`, ``(q, len(i), len(j))``.
        """
        ...


def target_rows(scheme: Plan, targets: NDArray, predictions: Predictions) -> Rows:
    """Rows ``(r n, ...)`` of sets of targets ``(r, n, ...)``."""
    flat = targets.reshape(-1, *targets.shape[2:])
    return scheme.rows([(1.0, Targets(flat, predictions))])


# -- features --------------------------------------------------------------------------------


@dataclass(frozen=True)
class LargeProducts:
    """Terms that are evaluated by few and large matrix products."""

    rows: int

    small_products: ClassVar[bool] = False

    @property
    def entries(self) -> int:
        """Numbers that encode one target."""
        raise NotImplementedError

    @property
    def cost(self) -> float:
        """A product does about sixteen multiplications in the time of one evaluation."""
        return max(1.0, self.entries / 16.0)

    def tile_shape(self, n: int) -> tuple[int, int]:
        """Whole rows, as long as the kernel on predictions is kept."""
        return (self.rows, n) if n * n <= KEPT * budget.work else (self.rows, 8 * self.rows)


@dataclass(frozen=True)
class ProductTerm(LargeProducts):
    """Deviations of features, or of the probabilities of few classes: one product serves all sets."""

    scheme: Plan
    predictions: Predictions
    mean: NDArray
    gram: NDArray | None

    @property
    def entries(self) -> int:
        return self.mean.shape[1] * (1 if self.gram is None else 2)

    def encode(self, targets: NDArray) -> tuple[NDArray, NDArray]:
        """Mean features minus those of the targets, ``(n, r, M)``, and these times the kernel matrix."""
        r, n = targets.shape[:2]
        if isinstance(self.scheme, GridPlan):
            index = grid_index(self.scheme, targets, self.predictions)
            right = np.repeat(self.mean[:, None, :], r, axis=1)
            right[np.arange(n)[:, None], np.arange(r)[None, :], index.T] -= 1.0
        else:
            flat = target_rows(self.scheme, targets, self.predictions).weights.reshape(r, n, -1)
            right = np.subtract(self.mean[:, None, :], flat.transpose(1, 0, 2), order="C")
        return (right if self.gram is None else right @ self.gram), right

    def tile(self, kps: NDArray, i: Chunk, j: Chunk, encoded: tuple[NDArray, NDArray]) -> NDArray:
        left, right = encoded[0][i], encoded[1][j]
        flat = right.reshape(len(right), -1)
        sums = [np.einsum("irm,irm->r", left, (kp @ flat).reshape(left.shape)) for kp in kps]
        return np.stack(sums, axis=1)


# -- many features on a line ------------------------------------------------------------------


class _Tables(NamedTuple):
    """Sums over a tile: kp_ij <P_i, P_j>; kp_ij E psi(Z_j) for each i; kp_ij E psi(Z_i) for each j."""

    constant: float
    for_left: NDArray
    for_right: NDArray


@dataclass(frozen=True)
class TableTerm(LargeProducts):
    """Features whose products with all targets are looked up in tables; targets are compared directly."""

    scheme: FeaturePlan
    mean: NDArray
    kept: dict[tuple[int, int], list[_Tables]] = field(default_factory=lambda: {}, compare=False)

    @property
    def entries(self) -> int:
        features = self.scheme.features
        return 64 if isinstance(features, FeatureGrid) else features.size + 4

    @property
    def cost(self) -> float:
        """Targets with targets, and what the tables cost beside."""
        return 4.0

    def encode(self, targets: NDArray) -> tuple[NDArray, NDArray | None, NDArray]:
        """Targets, and their features ``(r, n, m)`` with the positions of these; None for all features."""
        features = self.scheme.features
        if isinstance(features, FeatureGrid):
            return (targets, *features.near(targets))
        flat = features.of_points(targets.reshape(-1, 1, targets.shape[-1]), None)
        return targets, None, flat.reshape(*targets.shape[:2], -1)

    def tile(
        self, kps: NDArray, i: Chunk, j: Chunk, encoded: tuple[NDArray, NDArray | None, NDArray]
    ) -> NDArray:
        targets, position, features = encoded
        columns: list[NDArray] = []
        for constant, for_left, for_right in self._tables(kps, i, j):
            total = np.full(len(targets), constant)
            for table, cases in ((for_left, i), (for_right, j)):
                if position is None:
                    total -= np.einsum("nm,rnm->r", table, features[:, cases])
                else:
                    rows = np.arange(len(table))[None, :, None]
                    total -= np.einsum("rnm,rnm->r", table[rows, position[:, cases]], features[:, cases])
            columns.append(total)
        return np.stack(columns, axis=1) + self._between(kps, targets[:, i], targets[:, j])

    def _tables(self, kps: NDArray, i: Chunk, j: Chunk) -> list[_Tables]:
        """Tables of a tile for each kernel on predictions, kept for other sets where they are small."""
        known = self.kept.get((i.start, j.start))
        if known is not None:
            return known
        left, right = self.mean[i], self.mean[j]
        found: list[_Tables] = []
        for kp in kps:
            for_left = kp @ right
            constant = float(np.einsum("im,im->", left, for_left))
            found.append(_Tables(constant, for_left, kp.T @ left))
        if 2 * len(kps) * self.mean.size <= ENCODED * budget.work and len(left) == len(self.mean):
            self.kept[i.start, j.start] = found
        return found

    def _between(self, kps: NDArray, left: NDArray, right: NDArray) -> NDArray:
        """Targets with targets, for each set and each kernel on predictions."""
        weights = kps.reshape(len(kps), -1).T
        scale = -0.5 / self.scheme.features.lengthscale**2
        left, right = (side.reshape(*side.shape[:2], -1) for side in (left, right))
        parts: list[NDArray] = []
        for sets in in_chunks(len(left), len(weights), within=budget.cache):
            total = np.zeros((len(left[sets]), left.shape[1], right.shape[1]))
            for c in range(left.shape[2]):
                values = left[sets, :, None, c] - right[sets, None, :, c]
                values *= values
                total += values
            total *= scale
            parts.append(np.exp(total, out=total).reshape(len(total), -1) @ weights)
        return np.concatenate(parts)


def grid_index(scheme: GridPlan, targets: NDArray, predictions: Predictions) -> NDArray:
    """Where sets of targets stand on the support of a plan."""
    found = np.asarray(grid_positions(Targets(targets, predictions), scheme.grid))
    return np.minimum(found, len(scheme.grid) - 1)  # counts beyond have a probability below 1e-13
