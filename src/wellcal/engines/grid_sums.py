"""Sums over pairs of ``k(|x - x'|) <phi, phi'>`` on a grid, for points on a line or in a plane.

Features go to the nodes around each point by (bi)linear interpolation, meet there by FFT, and come back:
``khat(x, x') = w(x)' C w(x')`` is positive definite, and its diagonal is taken off exactly. C has the
cubic-B-spline coefficients of k and not its values, so that khat has the right mean over a cell; what is left
is the kink at zero, of relative size ``(step / lengthscale) ** 2`` in a plane. Equal points are exact. Points
off the window of the grid meet near points directly; clusters within few cells have finer grids of their own.

Arrays are NumPy's, with SciPy's sparse products and FFT, or tensors of PyTorch on any device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
from scipy.ndimage import label
from scipy.sparse import csr_array

from wellcal._arrays.namespaces import Array, NDArray, device_of, from_numpy, is_numpy, namespace, to_numpy
from wellcal.engines.kernel_sums import DecayKernel, Finished, PairSum, sum_pairs

CELLS = 1 << 18
"""Nodes of a grid: of 1,000,000 normals sums are off by 2e-4 null standard deviations, in 3 s."""

_MOST = 1 << 21  # nodes, where too many points would be off the window
_COARSEST = 20  # nodes in a length scale
_SPARED = (
    4.0  # times fewer nodes than there might be in a length scale, or a narrower window: few gain little
)
_FAR = 16.0  # of the exponent: points off the window meet those within exp(-16) = 1e-7
_LOOKED_AT = 10_000  # points that stand for all of them in choices
_DIRECT = 100.0  # pairs off the window for each case, up to which these are quicker than a wider grid
_CROWDED = 0.01  # share of the cases in a cell that makes a cluster
_DEEPEST, _IN_A_CLUSTER, _FEW_CELLS = 4, 1 << 16, 64  # grids within grids; their nodes; cells of a cluster


class Weights(NamedTuple):
    """Weights of cases at the nodes around them, and khat(x, x): on the grid, and on one half as fine."""

    spread: Any
    own: Array
    own_half: Array


class State(NamedTuple):
    """Features at the nodes, ``(nodes, m)``, and sums of khat(x, x) |phi|^2."""

    fields: Array
    own: float
    own_half: float


@dataclass(frozen=True)
class Grid:
    """Approximate sum over pairs on a grid of nodes: a `KernelSum`.

    Attributes
    ----------
    low, step, shape
        The first node, ``(d,)``, the distance between nodes, and how many there are along each axis.
    spectrum, period
        Transform of the coefficients C between nodes, and the shape in which it is taken.
    near
        Coefficients between the nodes around a point.
    half
        The grid of every other node.
    """

    low: Array
    step: float
    shape: tuple[int, ...]
    spectrum: Array
    period: tuple[int, ...]
    near: Array
    half: Grid | None
    batch: int = 1 << 22
    columns: int = 8

    @classmethod
    def of(
        cls, kernel: DecayKernel, low: Array, step: float, shape: tuple[int, ...], half: bool = True
    ) -> Grid:
        """Lay a grid; `low` tells the array library and the device."""
        xp, fft = namespace(low), _fft(low)
        period = tuple(scipy.fft.next_fast_len(2 * size - 1, real=True) for size in shape)
        squared: Array = 0.0
        for axis, count in enumerate(period):
            lag = xp.arange(count, dtype=low.dtype, device=device_of(low))
            lag = xp.minimum(lag, count - lag) * step
            squared = squared + xp.reshape(lag * lag, _along(axis, len(shape)))
        spectrum = xp.real(fft.rfftn(kernel(squared)))
        for axis, count in enumerate(period):
            wave = xp.arange(spectrum.shape[axis], dtype=low.dtype, device=device_of(low)) * (
                2 * math.pi / count
            )
            spectrum = spectrum / xp.reshape((2.0 + xp.cos(wave)) / 3.0, _along(axis, len(shape)))
        near = fft.irfftn(spectrum, s=period)[(slice(0, 2),) * len(shape)]
        corners = np.array(list(product((0, 1), repeat=len(shape))))
        apart = np.abs(corners[:, None] - corners) @ [2**k for k in range(len(shape))][::-1]
        near = xp.reshape(near, (-1,))[from_numpy(apart, low)]
        smaller = tuple(size // 2 + 1 for size in shape)
        coarse = cls.of(kernel, low, 2.0 * step, smaller, half=False) if half else None
        return cls(low, step, shape, spectrum, period, near, coarse)

    def cells(self, points: Array) -> tuple[Array, Array]:
        """Return the first of the nodes around each point, ``(n,)``, and weights of all of them."""
        xp = namespace(points)
        at = (points - self.low) / self.step
        last = from_numpy(np.array(self.shape) - 2, points)
        cell = xp.minimum(xp.astype(at, xp.int64), last)
        part = at - xp.astype(cell, at.dtype)
        weights = xp.ones_like(part[:, :1])
        for axis in range(len(self.shape)):
            sides = xp.stack([1.0 - part[:, axis], part[:, axis]], axis=1)
            weights = xp.reshape(weights[:, :, None] * sides[:, None, :], (points.shape[0], -1))
        first = cell[:, 0]
        for axis in range(1, len(self.shape)):
            first = first * self.shape[axis] + cell[:, axis]
        return first, weights

    def diagonal(self, weights: Array) -> Array:
        """Return khat(x, x)."""
        return namespace(weights).sum((weights @ self.near) * weights, axis=1)

    def encode(self, points: Array) -> Weights:
        """Return weights at the nodes around each point."""
        assert self.half is not None
        first, weights = self.cells(points)
        own, own_half = self.diagonal(weights), self.half.diagonal(self.half.cells(points)[1])
        jumps = np.array(list(product((0, 1), repeat=len(self.shape)))) @ _strides(self.shape)
        return Weights(_Spread.of(first, jumps, weights, math.prod(self.shape)), own, own_half)

    def chunk(self, encoded: Weights, phi: Array) -> State:
        """Return features at the nodes."""
        xp = namespace(phi)
        squares = xp.sum(phi * phi, axis=1)
        return State(
            encoded.spread.to_nodes(phi),
            float(xp.sum(encoded.own * squares)),
            float(xp.sum(encoded.own_half * squares)),
        )

    def merge(self, first: State, second: State) -> State:
        """Return features of both at the nodes."""
        return State(*(a + b for a, b in zip(first, second, strict=True)))

    def finish(self, state: State) -> Finished:
        """Return sums over pairs, and the potential at the nodes."""
        assert self.half is not None
        xp = namespace(state.fields)
        fields = xp.reshape(state.fields.T, (-1, *self.shape))
        potential, energy = self._meet(fields)
        for axis in range(1, len(self.shape) + 1):  # hats of every other node are sums of three of these
            fields = xp.moveaxis(fields, axis, 0)
            sides = 0.5 * fields[1::2]
            fields = fields[::2] + xp.concat([sides, 0.0 * sides[:1]]) + xp.concat([0.0 * sides[:1], sides])
            fields = xp.moveaxis(fields, 0, axis)
        half = self.half._meet(fields)[1]
        potential = xp.reshape(potential, (potential.shape[0], -1)).T
        return Finished(0.5 * (energy - state.own), 0.5 * (half - state.own_half), potential)

    def _meet(self, fields: Array) -> tuple[Array, float]:
        """Return the potential of features at the nodes, and the sum of products of both."""
        xp, fft, axes = namespace(fields), _fft(fields), tuple(range(1, fields.ndim))
        transform = fft.rfftn(fields, s=self.period, axes=axes)
        transform *= xp.astype(self.spectrum, fields.dtype)
        potential = fft.irfftn(transform, s=self.period, axes=axes)
        potential = potential[(slice(None), *(slice(0, size) for size in self.shape))]
        return potential, float(xp.sum(fields * potential, dtype=self.low.dtype))

    def rows(self, encoded: Weights, phi: Array, finished: Finished) -> Array:
        """Return sums over all other cases."""
        xp = namespace(phi)
        sums = xp.sum(encoded.spread.from_nodes(finished.potential) * phi, axis=1)
        return xp.astype(sums, encoded.own.dtype) - encoded.own * xp.sum(phi * phi, axis=1)


@dataclass(frozen=True)
class _Spread:
    """Weights ``(n, 2^d)`` at nodes as a matrix, sparse in NumPy."""

    matrix: Any
    nodes: Array
    count: int

    @classmethod
    def of(cls, first: Array, jumps: NDArray, weights: Array, count: int) -> _Spread:
        if not is_numpy(namespace(weights)):
            return cls(weights, first[:, None] + from_numpy(jumps, weights), count)
        n, corners = weights.shape
        nodes = (first[:, None] + jumps).astype(np.int32)
        entries = weights.astype(np.float32).ravel(), nodes.ravel(), np.arange(n + 1) * corners
        return cls(csr_array(entries, shape=(n, count)), nodes, count)

    def to_nodes(self, phi: Array) -> Array:
        """Return sums over cases, ``(nodes, m)``."""
        if isinstance(phi, np.ndarray):
            return self.matrix.T @ phi
        out = namespace(phi).zeros((self.count, phi.shape[1]), dtype=phi.dtype, device=device_of(phi))
        for k in range(self.nodes.shape[1]):
            out.index_add_(0, self.nodes[:, k], phi * self.matrix[:, k : k + 1].to(phi.dtype))
        return out

    def from_nodes(self, values: Array) -> Array:
        """Return values at the cases, ``(n, m)``."""
        if isinstance(values, np.ndarray):
            return self.matrix @ values
        columns = range(self.nodes.shape[1])
        return sum(values[self.nodes[:, k]] * self.matrix[:, k : k + 1].to(values.dtype) for k in columns)


def sum_on_grid(
    points: Array, phi: Array, kernel: DecayKernel, *, cells: int = CELLS, single: bool = True
) -> PairSum | None:
    """Return sums over pairs of points ``(n, d)``, d at most 2; None where they lie too far apart for a grid.

    Parameters
    ----------
    points, phi
        Points, and features at them ``(n, M)``: arrays of NumPy, or tensors on one device.
    kernel
        Kernel on points.
    cells
        Nodes of the grid.
    single
        Whether features are rounded to float32.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, phi = rng.normal(size=(500, 2)), rng.normal(size=(500, 1))
    >>> k = DecayKernel(1.0, 1.0)(((x[:, None] - x) ** 2).sum(axis=2)) - np.eye(500)
    >>> rows = sum_on_grid(x, phi, DecayKernel(1.0, 1.0)).rows
    >>> bool(np.abs(rows - phi[:, 0] * (k @ phi[:, 0])).max() < 0.02)
    True
    """
    while True:
        centre, reach, off = _window(points, kernel, cells)
        if off is None or (work := _pairs_off(points, off, kernel)) <= _DIRECT * len(points):
            break
        if cells >= _MOST:
            if work > _DIRECT**2 * len(points):
                return None
            break
        cells *= 2
    if off is None:
        return _on_a_grid(points, phi, kernel, centre, reach, cells, single, 0)
    xp = namespace(phi)
    rows = _direct(points, phi, kernel, off)
    inside = xp.nonzero(~off)[0]
    if not len(inside):
        return PairSum(rows, 0.0)
    found = _on_a_grid(points[inside], phi[inside], kernel, centre, reach, cells, single, 0)
    rows[inside] += found.rows
    return PairSum(rows, found.bias)


def _window(points: Array, kernel: DecayKernel, cells: int) -> tuple[Array, NDArray, Array | None]:
    """Return the centre and the half widths of the window, and which points are off it (None for none)."""
    xp, step = namespace(points), kernel.lengthscale / _COARSEST
    centre = from_numpy(np.median(to_numpy(_some(points)), axis=0), points)
    spread = xp.abs(points - centre)
    reach = to_numpy(xp.max(spread, axis=0)) * (1.0 + 1e-9) + 1e-300
    if math.prod(2.0 * reach / step + 5.0) <= cells:
        return centre, reach, None
    while math.prod(2.0 * reach / step + 5.0) > cells:
        reach[np.argmax(reach)] *= 0.95
    return centre, reach, xp.any(spread > from_numpy(reach, points), axis=1)


def _some(points: Array) -> Array:
    """Points spread over the batch."""
    return points[:: max(1, len(points) // _LOOKED_AT)]


def _pairs_off(points: Array, off: Array, kernel: DecayKernel) -> float:
    """Estimate how many pairs of points off the window with others are near."""
    some = to_numpy(_some(points))
    outside = to_numpy(points[off][:: max(1, int(off.sum()) // 200)])
    squared = ((outside[:, None] - some) ** 2).sum(axis=2)
    near = np.mean(squared <= (kernel.lengthscale * _FAR ** (1.0 / kernel.power)) ** 2)
    return float(off.sum()) * float(near) * len(points)


def _direct(points: Array, phi: Array, kernel: DecayKernel, off: Array) -> Array:
    """Return what pairs with points off the window add to the sums of both."""
    xp = namespace(phi)
    rows, which = xp.zeros_like(points[:, 0]), xp.nonzero(off)[0]
    which = which[xp.argsort(points[which, 0])]
    far = kernel.lengthscale * _FAR ** (1.0 / kernel.power)
    for start in range(0, len(which), 64):
        own = which[start : start + 64]
        box = points[own]
        near = (points >= xp.min(box, axis=0) - far) & (points <= xp.max(box, axis=0) + far)
        others = xp.nonzero(xp.all(near, axis=1))[0]
        squared: Array = 0.0
        for axis in range(points.shape[1]):
            squared = squared + (box[:, None, axis] - points[others][None, :, axis]) ** 2
        h = kernel(squared) * (phi[own] @ phi[others].T)
        h = xp.where(own[:, None] == others[None, :], xp.zeros_like(h), h)
        rows[own] += xp.sum(h, axis=1)
        rows[others] += xp.where(off[others], xp.zeros_like(h[0]), xp.sum(h, axis=0))
    return rows


def _on_a_grid(
    points: Array,
    phi: Array,
    kernel: DecayKernel,
    centre: Array,
    reach: NDArray,
    cells: int,
    single: bool,
    depth: int,
) -> PairSum:
    """Sums on a grid of so many nodes that covers all points; pairs of tied and crowded points again."""
    finest = _SPARED * cells ** (-1.0 / len(reach))
    step = finest * min(kernel.lengthscale, 2.0 * float(reach.max()))
    while math.prod(2.0 * reach / step + 5.0) > cells:
        step *= 1.05
    shape = tuple(2 * int(r / step) + 3 for r in reach)  # odd: every other node is a coarser grid
    xp = namespace(phi)
    grid = Grid.of(kernel, centre - from_numpy(reach, points), step, shape)
    rows, bias = sum_pairs(grid, points, phi, single=single)
    first, weights = grid.cells(points)
    alone = xp.ones_like(rows)
    for members in _clusters(first, grid) if depth < _DEEPEST else ():
        some, own = points[members], phi[members]
        low, high = xp.min(some, axis=0), xp.max(some, axis=0)
        half = 0.5 * to_numpy(high - low) * (1.0 + 1e-9) + 1e-300
        before = sum_pairs(grid, some, own, single=single)
        again = _on_a_grid(some, own, kernel, 0.5 * (low + high), half, _IN_A_CLUSTER, single, depth + 1)
        rows[members] += again.rows - before.rows
        bias += again.bias - before.bias
        alone[members] = 0.0
    ties = _ties(points)
    if ties is not None:
        sums = ties.from_nodes(ties.to_nodes(phi))
        alone *= xp.sum(phi * sums, axis=1) - xp.sum(phi * phi, axis=1)
        khat, khat_half = grid.diagonal(weights), grid.half.diagonal(grid.half.cells(points)[1])
        rows += alone * (1.0 - khat)
        bias -= 0.5 * float(xp.sum(alone * (khat - khat_half)))
    return PairSum(rows, bias)


def _clusters(first: Array, grid: Grid) -> Iterator[Array]:
    """Points that crowd in few cells, for which the grid is too coarse."""
    n = len(first)
    counts = to_numpy(namespace(first).bincount(first, minlength=math.prod(grid.shape)))
    if counts.max() <= max(_CROWDED * n, 1000):
        return
    dense = (counts > 0.05 * _CROWDED * n).reshape(grid.shape)
    labels, number = label(dense, np.ones((3,) * len(grid.shape)))
    which = labels.ravel()[to_numpy(first)]
    for k in range(1, number + 1):
        cells = np.flatnonzero(labels == k)
        if len(cells) <= _FEW_CELLS and counts[cells].max() > _CROWDED * n:
            yield from_numpy(np.flatnonzero(which == k), first)


def _ties(points: Array) -> _Spread | None:
    """Return which points are equal to each other; None where hardly any are."""
    some = to_numpy(_some(points))
    if len(np.unique(some, axis=0)) > 0.9 * len(some):
        return None
    xp, ones = namespace(points), namespace(points).ones_like(points[:, :1])
    if is_numpy(xp):
        whole = np.ascontiguousarray(points).view(np.complex128 if points.shape[1] == 2 else np.float64)
        at = np.unique(whole.ravel(), return_inverse=True)[1]
    else:
        at = xp.unique(points, dim=0, return_inverse=True)[1]
    return _Spread.of(at, np.zeros(1, dtype=np.int64), ones, int(at.max()) + 1)


def _fft(like: Array) -> Any:
    xp = namespace(like)
    return scipy.fft if is_numpy(xp) else xp.fft


def _along(axis: int, dimensions: int) -> tuple[int, ...]:
    return tuple(-1 if k == axis else 1 for k in range(dimensions))


def _strides(shape: tuple[int, ...]) -> NDArray:
    return np.array([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])
