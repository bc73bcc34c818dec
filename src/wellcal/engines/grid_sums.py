"""Sums over pairs of ``k(|x - x'|) <phi, phi'>`` on a grid, for points in a plane.

Features go to the nodes around each point by bilinear interpolation, meet there by FFT, and come back:
``khat(x, x') = w(x)' C w(x')`` is positive definite, and its diagonal is taken off exactly. C has the
cubic-B-spline coefficients of k and not its values, so that khat has the right mean over a cell; the rest
is the kink at zero, of relative size ``(step / lengthscale) ** 2``. Equal points are exact. Points
off the window of the grid meet near points directly; clusters within few cells have finer grids of their own.

Arrays are NumPy's, with SciPy's sparse products and FFT, or tensors of PyTorch on any device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
from scipy.ndimage import label
from scipy.sparse import csr_array

from wellcal._arrays.namespaces import Array, NDArray, from_numpy, is_numpy, namespace, to_numpy
from wellcal.engines.kernel_sums import DecayKernel, Finished, KernelSum, PairSum, State, sum_pairs

CELLS = 1 << 18
"""Nodes of a grid: of 1,000,000 normals sums are off by 2e-4 null standard deviations, in 3 s."""

_MOST, _FOR_A_CASE = 1 << 21, 16  # nodes, where too many points would be off the window
_COARSEST = 20  # nodes in a length scale
_SPARED = 4.0  # times fewer nodes than there might be in a length scale: more gain little
_FAR = 16.0  # of the exponent: points off the window meet those within exp(-16) = 1e-7
_LOOKED_AT = 10_000  # points that stand for all of them in choices
_FEW, _ENTRIES = 1000, 1 << 24  # cases that meet directly, and pairs of those that do so at a time
_DIRECT, _TOO_MANY = 100, 10_000  # pairs off the window for each case: quicker than a wider grid; than tiles
_CROWDED, _FEW_CELLS = 0.01, 64  # share of the cases in a cell that makes a cluster, and cells of one
_DEEPEST, _IN_A_CLUSTER = 4, 1 << 16  # grids within grids, and their nodes


class Weights(NamedTuple):
    """Weights of cases at the nodes around them, and khat(x, x): on the grid, and on one half as fine."""

    spread: _Spread
    own: Array
    own_half: Array


@dataclass(frozen=True)
class Grid(KernelSum):
    """Approximate sum over pairs on a grid of nodes.

    Attributes
    ----------
    low, step, shape
        The first node, ``(2,)``, the distance between nodes, and how many there are along each axis, an odd
        number.
    spectrum, period
        Transform of the coefficients C between nodes, and the shape in which it is taken.
    near
        Coefficients between the nodes around a point, ``(2, 2)``.
    half
        The grid of every other node.
    """

    low: Array
    step: float
    shape: tuple[int, int]
    spectrum: Array
    period: tuple[int, ...]
    near: Array
    half: Grid | None
    batch: int = 1 << 22
    columns: int = 8

    @classmethod
    def of(
        cls, kernel: DecayKernel, low: Array, step: float, shape: tuple[int, int], fine: bool = True
    ) -> Grid:
        """Lay a grid, with one half as fine; `low` tells the array library and the device."""
        xp, fft = namespace(low), _fft(low)
        place: Any = {} if is_numpy(xp) else {"dtype": low.dtype, "device": low.device}
        period: Any = tuple(scipy.fft.next_fast_len(2 * size - 1, real=True) for size in shape)
        x, y = (fft.fftfreq(count, **place) * (count * step) for count in period)
        spectrum = fft.rfftn(kernel(x[:, None] ** 2 + y**2)).real
        for waves in (fft.fftfreq(period[0], **place)[:, None], fft.rfftfreq(period[1], **place)):
            spectrum = spectrum * (3.0 / (2.0 + xp.cos(2.0 * math.pi * waves)))
        near = fft.irfftn(spectrum, s=period)[:2, :2]
        m, n = (size // 2 + 1 for size in shape)
        half = cls.of(kernel, low, 2.0 * step, (m, n), fine=False) if fine else None
        return cls(low, step, shape, spectrum, period, near, half)

    def place(self, points: Array) -> tuple[Array, Array, Array]:
        """Return the first of the nodes around each point, weights of all four, and khat(x, x)."""
        xp = namespace(points)
        at = (points - self.low) / self.step
        cell = xp.minimum(xp.astype(at, xp.int64), from_numpy(np.array(self.shape) - 2, points))
        u, v = (at - xp.astype(cell, at.dtype)).T
        weights = xp.stack([(1.0 - u) * (1.0 - v), (1.0 - u) * v, u * (1.0 - v), u * v], axis=1)
        f, g, c = 2.0 * u * (1.0 - u), 2.0 * v * (1.0 - v), self.near
        khat = (1.0 - g) * ((1.0 - f) * c[0, 0] + f * c[1, 0]) + g * ((1.0 - f) * c[0, 1] + f * c[1, 1])
        return cell[:, 0] * self.shape[1] + cell[:, 1], weights, khat

    def encode(self, points: Array) -> Weights:
        """Return weights at the nodes around each point."""
        assert self.half is not None
        first, weights, own = self.place(points)
        jumps = np.array([0, 1, self.shape[1], self.shape[1] + 1])
        spread = _Spread.of(first, jumps, weights, math.prod(self.shape))
        return Weights(spread, own, self.half.place(points)[2])

    def chunk(self, encoded: Weights, phi: Array) -> State:
        """Return features at the nodes, and sums of khat(x, x) |phi|^2."""
        squares = _products(phi, phi)
        own, own_half = (float((khat * squares).sum()) for khat in encoded[1:])
        return State(encoded.spread.to_nodes(phi), own, own_half)

    def finish(self, state: State) -> Finished:
        """Return sums over pairs, and the potential at the nodes."""
        assert self.half is not None
        xp = namespace(state.fields)
        fields = xp.reshape(state.fields.T, (-1, *self.shape))
        potential, energy = self._meet(fields)
        for _ in range(2):  # hats of every other node are sums of three of these
            sides = 0.5 * fields[:, 1::2]
            fields = 1.0 * fields[:, ::2]
            fields[:, 1:] += sides
            fields[:, :-1] += sides
            fields = xp.moveaxis(fields, 1, 2)
        half = self.half._meet(fields)[1]
        potential = xp.reshape(potential, (potential.shape[0], -1)).T
        return Finished(0.5 * (energy - state.own), 0.5 * (half - state.own_half), potential)

    def _meet(self, fields: Array) -> tuple[Array, float]:
        """Return the potential of features at the nodes, and the sum of products of both."""
        xp, fft = namespace(fields), _fft(fields)
        transform = fft.rfftn(fields, s=self.period, axes=(1, 2))
        transform *= xp.astype(self.spectrum, fields.dtype)
        potential = fft.irfftn(transform, s=self.period, axes=(1, 2))
        potential = potential[:, : self.shape[0], : self.shape[1]]
        return potential, float(xp.sum(fields * potential, dtype=self.low.dtype))

    def rows(self, encoded: Weights, phi: Array, finished: Finished) -> Array:
        """Return sums over all other cases."""
        sums = _products(encoded.spread.from_nodes(finished.potential), phi)
        return sums - encoded.own * _products(phi, phi)


@dataclass(frozen=True)
class _Spread:
    """Weights ``(n, k)`` at nodes ``(n, k)`` as a matrix, sparse in NumPy."""

    matrix: Any
    nodes: Array
    count: int

    @classmethod
    def of(cls, first: Array, jumps: NDArray, weights: Array, count: int) -> _Spread:
        nodes = first[:, None] + from_numpy(jumps, first)
        if not is_numpy(namespace(weights)):
            return cls(weights, nodes, count)
        starts = np.arange(len(nodes) + 1) * len(jumps)
        entries = weights.astype(np.float32).ravel(), nodes.astype(np.int32).ravel(), starts
        return cls(csr_array(entries, shape=(len(nodes), count)), nodes, count)

    def to_nodes(self, phi: Array) -> Array:
        """Return sums over cases, ``(nodes, m)``."""
        if isinstance(phi, np.ndarray):
            return self.matrix.T @ phi
        out = phi.new_zeros((self.count, phi.shape[1]))
        for nodes, weights in zip(self.nodes.T, self.matrix.T, strict=True):
            out.index_add_(0, nodes, phi * weights[:, None].to(phi.dtype))
        return out

    def from_nodes(self, values: Array) -> Array:
        """Return values at the cases, ``(n, m)``."""
        if isinstance(values, np.ndarray):
            return self.matrix @ values
        pairs = zip(self.nodes.T, self.matrix.T, strict=True)
        return sum(values[nodes] * weights[:, None].to(values.dtype) for nodes, weights in pairs)


def sum_on_grid(points: Array, phi: Array, kernel: DecayKernel, *, cells: int = CELLS) -> PairSum | None:
    """Return sums over pairs of points in a plane; None where they lie too far apart for a grid.

    Parameters
    ----------
    points, phi
        Points ``(n, 2)`` or ``(n, 1)``, and features at them ``(n, M)``, in float32 or float64: arrays of
        NumPy, or tensors on one device.
    kernel
        Kernel on points.
    cells
        Nodes of the grid; more are taken where too many points would be off it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, phi = rng.normal(size=(500, 2)), rng.normal(size=(500, 1))
    >>> k = DecayKernel(1.0, 1.0)(((x[:, None] - x) ** 2).sum(axis=2)) - np.eye(500)
    >>> rows = sum_on_grid(x, phi, DecayKernel(1.0, 1.0)).rows
    >>> bool(np.abs(rows - phi[:, 0] * (k @ phi[:, 0])).max() < 0.02)
    True
    """
    xp, n = namespace(phi), len(points)
    far = kernel.lengthscale * _FAR ** (1.0 / kernel.power)
    if n <= _FEW:
        return PairSum(_direct(points, phi, kernel, xp.ones_like(points[:, 0]) > 0.0, far), 0.0)
    if points.shape[1] == 1:
        points = xp.concat([points, xp.zeros_like(points)], axis=1)
    some = to_numpy(_some(points))
    centre = np.median(some, axis=0)
    spread = xp.abs(points - from_numpy(centre, points))
    most = min(_MOST, max(cells, _FOR_A_CASE * n))
    while True:
        reach = to_numpy(xp.max(spread, axis=0)) * (1.0 + 1e-9) + 1e-300
        if _nodes(reach, kernel.lengthscale / _COARSEST) <= cells:
            return _on_a_grid(points, phi, kernel, centre, reach, cells, 0)
        while _nodes(reach, kernel.lengthscale / _COARSEST) > cells:
            reach[np.argmax(reach)] *= 0.95
        off = xp.any(spread > from_numpy(reach, points), axis=1)
        outside = to_numpy(points[off])
        apart = outside[:: len(outside) // 200 + 1, None] - some
        near: NDArray = np.sum(apart**2, axis=2) <= far**2
        work = len(outside) * float(np.mean(near))
        if work <= _DIRECT or 2 * cells > most:
            break
        cells *= 2
    if work > min(_TOO_MANY, 0.5 * n):
        return None
    rows, inside = _direct(points, phi, kernel, off, far), xp.nonzero(~off)[0]
    if not len(inside):
        return PairSum(rows, 0.0)
    of_inside = _on_a_grid(points[inside], phi[inside], kernel, centre, reach, cells, 0)
    rows[inside] += of_inside.rows
    return PairSum(rows, of_inside.bias)


def _direct(points: Array, phi: Array, kernel: DecayKernel, off: Array, far: float) -> Array:
    """Return what pairs with points off the window add to the sums of both."""
    xp = namespace(phi)
    rows, which = xp.zeros_like(points[:, 0]), xp.nonzero(off)[0]
    which = which[xp.argsort(points[which, 0])]
    step = max(1, min(64, _ENTRIES // len(points)))
    for start in range(0, len(which), step):
        own = which[start : start + step]
        box = points[own]
        near = (points >= xp.min(box, axis=0) - far) & (points <= xp.max(box, axis=0) + far)
        others = xp.nonzero(xp.all(near, axis=1))[0]
        squared = xp.sum((box[:, None] - points[others]) ** 2, axis=2)
        h = kernel(squared) * (phi[own] @ phi[others].T)
        h[own[:, None] == others] = 0.0
        rows[own] += xp.sum(h, axis=1)
        h[:, off[others]] = 0.0
        rows[others] += xp.sum(h, axis=0)
    return rows


def _on_a_grid(
    points: Array,
    phi: Array,
    kernel: DecayKernel,
    centre: NDArray,
    reach: NDArray,
    cells: int,
    depth: int = 0,
) -> PairSum:
    """Sum on a grid of so many nodes that covers all points, and again over tied and crowded points."""
    xp = namespace(phi)
    step = min(_SPARED * kernel.lengthscale, 2.0 * float(reach.max())) / math.sqrt(cells)
    while _nodes(reach, step) > cells:
        step *= 1.05
    m, n = (2 * int(r / step) + 3 for r in reach)
    grid = Grid.of(kernel, from_numpy(centre - reach, points), step, (m, n))
    rows, bias = sum_pairs(grid, points, phi)
    first, _, own = grid.place(points)
    tied = _tied(points, phi)
    for members in _clusters(first, grid) if depth < _DEEPEST else ():
        some, features = points[members], phi[members]
        low, high = (to_numpy(end(some, axis=0)) for end in (xp.min, xp.max))
        half = 0.5 * (high - low) * (1.0 + 1e-9) + 1e-300
        before = sum_pairs(grid, some, features)
        again = _on_a_grid(some, features, kernel, 0.5 * (low + high), half, _IN_A_CLUSTER, depth + 1)
        rows[members] += again.rows - before.rows
        bias += again.bias - before.bias
        if tied is not None:
            tied[members] = 0.0
    if tied is not None:
        assert grid.half is not None
        rows += tied * (1.0 - own)
        bias -= 0.5 * float(xp.sum(tied * (own - grid.half.place(points)[2])))
    return PairSum(rows, bias)


def _clusters(first: Array, grid: Grid) -> Iterator[Array]:
    """Yield positions of points that crowd in few cells, for which the grid is too coarse."""
    least = max(_CROWDED * len(first), 1000)
    counts = to_numpy(namespace(first).bincount(first, minlength=math.prod(grid.shape)))
    if counts.max() <= least:
        return
    labels, number = label((counts > 0.05 * least).reshape(grid.shape), np.ones((3, 3)))
    labels, which = labels.ravel(), labels.ravel()[to_numpy(first)]
    for k in range(1, number + 1):
        cells = counts[labels == k]
        if len(cells) <= _FEW_CELLS and cells.max() > least:
            yield from_numpy(np.flatnonzero(which == k), first)


def _as_numbers(points: Array) -> NDArray:
    """Return each point of a plane as a complex number."""
    return np.ascontiguousarray(to_numpy(points)).view(np.complex128).ravel()


def _tied(points: Array, phi: Array) -> Array | None:
    """Return sums of <phi, phi'> over all other cases at equal points; None where hardly any are equal."""
    some = _as_numbers(_some(points))
    if len(np.unique(some)) > 0.9 * len(some):
        return None
    at = np.unique(_as_numbers(points), return_inverse=True)[1]
    ones = namespace(points).ones_like(points[:, :1])
    spread = _Spread.of(from_numpy(at, points), np.zeros(1, dtype=np.int64), ones, int(at.max()) + 1)
    wide = namespace(phi).astype(phi, points.dtype)
    return _products(spread.from_nodes(spread.to_nodes(wide)) - wide, wide)


def _products(a: Array, b: Array) -> Array:
    return namespace(a).sum(a * b, axis=1)


def _nodes(reach: NDArray, step: float) -> float:
    return math.prod(2.0 * reach / step + 5.0)


def _some(points: Array) -> Array:
    """Points spread over the batch."""
    return points[:: max(1, len(points) // _LOOKED_AT)]


def _fft(like: Array) -> Any:
    xp = namespace(like)
    return scipy.fft if is_numpy(xp) else xp.fft
