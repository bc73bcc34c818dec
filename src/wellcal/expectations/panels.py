"""Quadrature that refines itself: panels in the normal score, halved where a kernel asks for it.

A prediction that is much wider than the kernel, or whose mass sits at two ends with a thin bridge between,
has a quantile function in which few evenly spaced scores see almost nothing. Panels are halved until the
halves agree with the whole at points near the panel, so that nodes go where targets change on the scale of
the kernel, and every row gets as many as it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.expectations.quadrature_error import Probe, finite_points

Quantile = Callable[[NDArray, NDArray], NDArray]
"""Atoms ``(p, m)`` of some rows ``(p,)`` at normal scores ``(p, m)``."""

ORDER = 16
"""Nodes of a panel."""

_DEPTH = 24  # halvings, at most
# Ends lie at irregular places: symmetry of the rule must not hide a jump of a symmetric prediction.
_ENDS = np.array([-8.25, -4.87, -3.13, -1.71, -0.57, 0.46, 1.49, 2.93, 4.69, 8.25])
_SHARE = 0.25  # of the tolerance for one panel; those beside it add theirs
_SMOOTH = 0.01  # of that, for quantiles by interpolation

_X, _W = np.polynomial.legendre.leggauss(ORDER)


def _lagrange() -> NDArray:
    """From values at the nodes of a panel to those at the nodes of its halves, ``(2 m, m)``."""
    wanted = np.concatenate([0.5 * (_X - 1.0), 0.5 * (_X + 1.0)])
    gaps = _X[:, None] - _X[None, :] + np.eye(ORDER)
    scale = 1.0 / np.prod(gaps, axis=1)
    away = wanted[:, None] - _X[None, :]
    ratio = scale / away
    return ratio / ratio.sum(axis=1, keepdims=True)


_HALVES = _lagrange()


class Leaves(NamedTuple):
    """Panels that are not halved any more.

    Attributes
    ----------
    row, low, high
        Row of the batch and range of scores, ``(p,)``; sorted by row and score.
    atoms
        Quantiles at the nodes, ``(p, m)``.
    local
        Largest difference from the two halves at points near the panel, ``(p,)``.
    shared
        Differences at points that all panels of a row have in common, ``(p, c)``.
    """

    row: NDArray
    low: NDArray
    high: NDArray
    atoms: NDArray
    local: NDArray
    shared: NDArray

    def take(self, index: NDArray) -> Leaves:
        """Some of the panels."""
        return Leaves(*(field[index] for field in self))


def scores_in(low: NDArray, high: NDArray) -> NDArray:
    """Nodes ``(p, m)`` of panels."""
    return 0.5 * (low + high)[:, None] + 0.5 * (high - low)[:, None] * _X


def weights_in(low: NDArray, high: NDArray) -> NDArray:
    """Weights ``(p, m)`` of the nodes under the normal density."""
    density = np.exp(-0.5 * scores_in(low, high) ** 2) / np.sqrt(2.0 * np.pi)
    return 0.5 * (high - low)[:, None] * _W * density


def refine(
    quantile: Quantile, probe: Probe, shared: NDArray, tolerance: float, most: int
) -> tuple[Leaves, NDArray]:
    """Panels of each row of a batch, and the error ``(n,)`` that remains.

    Parameters
    ----------
    quantile
        The quantile function.
    probe
        The kernel.
    shared
        Points ``(n, c)`` at which all panels of a row are watched.
    tolerance
        Error at which panels are no longer halved.
    most
        Nodes for a row, at most.
    """
    n, first = len(shared), len(_ENDS) - 1
    row = np.repeat(np.arange(n), first)
    low, high = np.tile(_ENDS[:-1], n), np.tile(_ENDS[1:], n)
    atoms = quantile(row, scores_in(low, high))
    smooth = np.zeros(len(row), dtype=bool)
    room = np.full(n, most // ORDER - first)
    done: list[Leaves] = []
    for depth in range(_DEPTH + 1):
        middle = 0.5 * (low + high)
        ends = np.stack([low, middle], axis=1), np.stack([middle, high], axis=1)
        halves, smooth = _halves(quantile, probe, row, ends, atoms, smooth, shared, tolerance)
        near, common = _differences(probe, row, low, high, ends, atoms, halves, shared)
        local = np.maximum(near, np.abs(common).max(axis=1, initial=0.0))
        wanted = (local > _SHARE * tolerance) if depth < _DEPTH else np.zeros(len(row), dtype=bool)
        split = wanted & (_rank(row, np.where(wanted, local, -1.0)) < room[row])
        done.append(Leaves(row, low, high, atoms, near, common).take(np.flatnonzero(~split)))
        if not split.any():
            break
        room = room - np.bincount(row[split], minlength=n)
        row, smooth = np.repeat(row[split], 2), np.repeat(smooth[split], 2)
        low, high = (end[split].reshape(-1) for end in ends)
        atoms = halves[split].reshape(-1, ORDER)
    leaves = Leaves(*(np.concatenate(field) for field in zip(*done, strict=True)))
    leaves = leaves.take(np.lexsort((leaves.low, leaves.row)))
    return leaves, _row_errors(leaves, n)


def _halves(
    quantile: Quantile,
    probe: Probe,
    row: NDArray,
    ends: tuple[NDArray, NDArray],
    atoms: NDArray,
    smooth: NDArray,
    shared: NDArray,
    tolerance: float,
) -> tuple[NDArray, NDArray]:
    """Quantiles at the nodes of the halves, ``(p, 2 m)``, and where they can be interpolated from now on.

    Where interpolation was as good as the quantile function once, it is better still in smaller panels.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        halves = atoms @ _HALVES.T
    exact = np.flatnonzero(~smooth)
    if len(exact):
        low, high = (end[exact].reshape(-1) for end in ends)
        found = quantile(np.repeat(row[exact], 2), scores_in(low, high)).reshape(-1, 2 * ORDER)
        weights = weights_in(low, high).reshape(-1, 2 * ORDER)
        at = finite_points(
            np.concatenate([found[:, ORDER // 2 :: ORDER], shared[row[exact]]], axis=1),
            shared[row[exact], 0],
        )
        known, guess = (probe.expected(weights, x, at) for x in (found, halves[exact]))
        smooth = smooth.copy()
        smooth[exact] = np.abs(known - guess).max(axis=1) <= _SMOOTH * _SHARE * tolerance
        halves[exact] = found
    return halves, smooth


def _differences(
    probe: Probe,
    row: NDArray,
    low: NDArray,
    high: NDArray,
    ends: tuple[NDArray, NDArray],
    atoms: NDArray,
    halves: NDArray,
    shared: NDArray,
) -> tuple[NDArray, NDArray]:
    """What halving changes: at most, near the panel ``(p,)``; and at the shared points, ``(p, c)``."""
    middle = atoms[:, ORDER // 2]
    near = [atoms[:, 1], middle, halves[:, ORDER // 2], halves[:, ORDER + ORDER // 2]]
    near += [middle + sign * radius for radius in probe.radii() for sign in (-1.0, 1.0)]
    points = np.stack(near, axis=1)
    at = finite_points(np.concatenate([points, shared[row]], axis=1), shared[row, 0])
    fine = weights_in(*(end.reshape(-1) for end in ends)).reshape(-1, 2 * ORDER)
    change = probe.expected(weights_in(low, high), atoms, at) - probe.expected(fine, halves, at)
    change = np.where(np.isfinite(change), change, 0.0)
    return np.abs(change[:, : len(near)]).max(axis=1), change[:, len(near) :]


def _rank(row: NDArray, error: NDArray) -> NDArray:
    """Place of each panel among those of its row, the largest error first."""
    order = np.lexsort((-error, row))
    start = np.searchsorted(row[order], row[order], side="left")
    rank = np.empty(len(row), dtype=int)
    rank[order] = np.arange(len(row)) - start
    return rank


def _row_errors(leaves: Leaves, n: int) -> NDArray:
    """Error of each row: at shared points that of all panels, elsewhere that of three neighbours."""
    common = np.zeros((n, leaves.shared.shape[1]))
    np.add.at(common, leaves.row, leaves.shared)
    beside = leaves.local.copy()
    same = leaves.row[1:] == leaves.row[:-1]
    beside[1:] += np.where(same, leaves.local[:-1], 0.0)
    beside[:-1] += np.where(same, leaves.local[1:], 0.0)
    errors = np.abs(common).max(axis=1, initial=0.0)
    np.maximum.at(errors, leaves.row, beside)
    return errors
