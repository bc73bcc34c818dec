"""Kernel values where an error of numerical expectations would show: at points near each prediction.

A pairing of two predictions is a mean of pairings with points, so that an error found nowhere among the
latter cannot be found among the former.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from wellcal._arrays.chunks import budget, told_chunks
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    asarray,
    device_of,
    namespace,
    to_numpy,
    widen,
)
from wellcal._arrays.ops import Ops, ops_for
from wellcal.kernels.base import Kernel, TargetKernel, calls_user_function, is_constant, walk
from wellcal.kernels.matrix import values_matrix
from wellcal.kernels.targets import Gaussian

_FAR_APART = 1200.0  # squared distance, in length scales, at which a Gaussian kernel is 1e-260


@dataclass(frozen=True)
class Probe:
    """A kernel on targets, evaluated between the atoms of predictions and a few points for each of them.

    Attributes
    ----------
    kernel
        The kernel.
    like
        An array of the predictions. Kernels that hold arrays, or may do so, or call a user's function, are
        evaluated in its library; all others in NumPy.
    """

    kernel: Kernel
    like: Array

    def radii(self) -> tuple[float, ...]:
        """Length scales in the kernel, least and largest: distances at which it changes most."""
        found = [getattr(part, "lengthscale", None) for part in walk(self.kernel)]
        numbers = [float(scale) for scale in found if isinstance(scale, float)]
        return tuple(dict.fromkeys((min(numbers), max(numbers)))) if numbers else ()

    def expected(self, weights: NDArray, atoms: NDArray, at: NDArray) -> NDArray:
        """Weighted sums of k(atom, point) over atoms ``(p, a)``, for points ``(p, b)`` of each row.

        Vectors have a third axis of coordinates.
        """
        out = np.empty(at.shape[:2])
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for rows in told_chunks(len(atoms), atoms.shape[1] * at.shape[1], within=budget.cache):
                values = self._values(atoms[rows], at[rows])
                out[rows] = np.einsum("pa,pab->pb", weights[rows], values)
        return out

    def _values(self, x: NDArray, y: NDArray) -> NDArray:
        ops, left, right = self._placed(x, y)
        kernel = cast("TargetKernel", self.kernel)
        if type(kernel) is Gaussian and isinstance(kernel.lengthscale, float) and x.ndim == 2:
            # Most points are far from most atoms, and numbers that underflow take several times as long.
            gap = left[:, :, None] - right[:, None, :]
            gap *= gap
            return kernel.radial(ops, np.minimum(gap, _FAR_APART * kernel.lengthscale**2, out=gap))
        if not kernel.elementwise:
            rows = (values_matrix(ops, kernel, left[p], right[p]) for p in range(len(x)))
            return np.stack([to_numpy(row) for row in rows])
        return to_numpy(kernel.at(ops, _coordinates(left, 2), _coordinates(right, 1)))

    def _placed(self, x: NDArray, y: NDArray) -> tuple[Ops, Array, Array]:
        if is_constant(self.kernel) and not calls_user_function(self.kernel):
            return ops_for(namespace()), x, y
        like = widen(self.like)
        xp, device = namespace(like), device_of(like)
        left, right = (asarray(z, xp=xp, device=device, dtype=like.dtype) for z in (x, y))
        return ops_for(xp), left, right


def _coordinates(x: Array, axis: int) -> tuple[Array, ...]:
    """Coordinates of points ``(p, a)`` or ``(p, a, d)``, with a new axis to broadcast along."""
    xp = namespace(x)
    if x.ndim == 2:
        return (xp.expand_dims(x, axis=axis),)
    return tuple(xp.expand_dims(x[:, :, c], axis=axis) for c in range(x.shape[2]))


def finite_points(at: NDArray, instead: NDArray) -> NDArray:
    """Points ``(p, b)``, with those that overflowed replaced by a number ``(p,)`` of their row."""
    return np.where(np.isfinite(at), at, np.where(np.isfinite(instead), instead, 0.0)[:, None])
