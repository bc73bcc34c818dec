"""Vectors under a Gaussian kernel: exponents of many pairs from one matrix product.

A squared distance is |x|^2 - 2 x'y + |y|^2, and the exponent of E k(Z, y) for a normal with independent
coordinates is linear in y and y^2 likewise. A matrix product has these for all pairs several times faster
than differences coordinate by coordinate. Rounding is that of |x|^2 in units of the kernel's squared
length scale, so that targets are centred first, and those that lie too far apart go another way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wellcal._arrays.chunks import Chunk, budget, in_chunks, tile_shape
from wellcal._arrays.namespaces import NDArray
from wellcal.kernels.base import Kernel
from wellcal.kernels.targets import Gaussian
from wellcal.predictions import DiagonalNormal, Predictions

_FARTHEST = 3e3  # |x|^2 / l^2 up to which rounding stays below 1e-12


@dataclass(frozen=True)
class GaussianTerm:
    """A Gaussian kernel between normals with independent coordinates and their targets.

    Attributes
    ----------
    centre
        Point that is subtracted from all, ``(d,)``.
    lengthscale
        Of the kernel.
    forward
        Coefficients ``(n, 2 d + 1)`` of (y, y^2, 1) in the exponent of E k(Z_i, y).
    loc, variance
        The predictions, centred.
    """

    centre: NDArray
    lengthscale: float
    forward: NDArray
    loc: NDArray
    variance: NDArray

    small_products: ClassVar[bool] = True

    @classmethod
    def prepare(cls, kernel: Kernel, predictions: Predictions) -> GaussianTerm | None:
        """What depends on the predictions alone; None where they are of another kind, or too far apart."""
        if type(kernel) is not Gaussian or not isinstance(predictions, DiagonalNormal):
            return None
        centre = np.asarray(predictions.loc).mean(axis=0)
        loc, scale = np.asarray(predictions.loc) - centre, np.asarray(predictions.scale)
        squared = float(kernel.lengthscale) ** 2
        farthest = (np.abs(loc) + 6.0 * scale) ** 2
        if float(farthest.sum(axis=1).max()) > _FARTHEST * squared:
            return None
        variance = scale**2
        weight = 1.0 / (squared + variance)
        constant = 0.5 * np.sum(np.log(squared * weight) - loc**2 * weight, axis=1)
        forward = np.concatenate([loc * weight, -0.5 * weight, constant[:, None]], axis=1)
        return cls(centre, float(kernel.lengthscale), forward, loc, variance)

    @property
    def entries(self) -> int:
        """Numbers that encode one target."""
        return 4 * self.loc.shape[1] + 5

    @property
    def cost(self) -> float:
        """Three exponentials for one pair and one set of targets."""
        return 6.0

    def tile_shape(self, n: int) -> tuple[int, int]:
        """Tiles of which two arrays fit the cache."""
        return tile_shape(1, budget.cache // 2)

    def encode(self, targets: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Factors of exponents: of targets among each other, left and right, and with predictions."""
        y = targets - self.centre
        scaled = y / self.lengthscale
        half = 0.5 * np.sum(scaled**2, axis=2, keepdims=True)
        one = np.ones_like(half)
        left = np.concatenate([scaled, -half, one], axis=2)
        right = np.concatenate([scaled, one, -half], axis=2)
        return left, right, np.concatenate([y, y**2, one], axis=2)

    def tile(self, kps: NDArray, i: Chunk, j: Chunk, encoded: tuple[NDArray, NDArray, NDArray]) -> NDArray:
        """Sums over a tile of pairs, ``(r, q)``."""
        left, right, powers = encoded
        count = len(kps)
        flat = kps.reshape(count, -1).T
        turned = np.swapaxes(kps, 1, 2).reshape(count, -1).T
        out = np.repeat((self._expected(i, j).ravel() @ flat)[None], len(left), axis=0)
        with np.errstate(under="ignore"):
            for sets in in_chunks(len(left), kps[0].size, within=budget.cache):
                out[sets] += _sums(left[sets, i] @ _transposed(right[sets, j]), flat)
                out[sets] -= _sums(self.forward[i] @ _transposed(powers[sets, j]), flat)
                out[sets] -= _sums(self.forward[j] @ _transposed(powers[sets, i]), turned)
        return out

    def _expected(self, i: Chunk, j: Chunk) -> NDArray:
        """E k(Z_i, Z_j), which is the same for all sets of targets."""
        squared = self.lengthscale**2
        total = np.zeros((len(self.loc[i]), len(self.loc[j])))
        for c in range(self.loc.shape[1]):
            spread = squared + self.variance[i, c][:, None] + self.variance[j, c][None, :]
            gap = self.loc[i, c][:, None] - self.loc[j, c][None, :]
            total += np.log(squared / spread) - gap**2 / spread
        return np.exp(0.5 * total)


def _transposed(rows: NDArray) -> NDArray:
    return np.swapaxes(rows, 1, 2)


def _sums(exponents: NDArray, weights: NDArray) -> NDArray:
    """Weighted sums of exponentials, for each set and each column of weights."""
    np.exp(exponents, out=exponents)
    return exponents.reshape(len(exponents), -1) @ weights
