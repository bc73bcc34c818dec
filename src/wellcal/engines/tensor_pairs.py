"""Sums over pairs in PyTorch, on any device: what runs where there is no Triton, and what it is held to.

Tiles are as large as the budget of the device holds, and four arrays of that size are alive at a time.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, islice

from wellcal._arrays.chunks import Chunk, budget, entries_for
from wellcal._arrays.namespaces import Array, is_on_accelerator
from wellcal.engines import triton_pairs
from wellcal.engines.pair_terms import PairTerm
from wellcal.expectations.distances import tensor_distances

_FEW = 4  # coordinates up to which differences are taken one by one
_FEW_ON_DEVICE = 64  # the same on graphics cards, where `cdist` takes 2 ns a pair, however few they are


def in_triton(points: Array, degree: int) -> bool:
    """Whether distances between such points have a kernel of Triton: L1 distances of several coordinates."""
    return degree == 1 and points.shape[-1] > 2


def derived_in_triton(terms: Sequence[PairTerm]) -> str:
    """For what derivatives have kernels of Triton: "pairs" for all of it, "distances", or nothing."""
    if any(map(triton_pairs.in_one_kernel, terms)):
        return "pairs"
    return "distances" if any(in_triton(t.points, t.degree) for t in terms) else ""


def distances(a: Array, b: Array, degree: int, *, triton: bool = False) -> Array:
    """``sum_c |a_ic - b_jc|^degree`` of all pairs, ``(..., n, D)`` and ``(..., m, D)`` to ``(..., n, m)``."""
    if triton and in_triton(a, degree):
        return triton_pairs.l1_distances(a, b)
    if a.shape[-1] > (_FEW_ON_DEVICE if is_on_accelerator(a) else _FEW):
        return tensor_distances(a, b, degree)
    total: Array = None
    for c in range(a.shape[-1]):
        difference = a[..., :, None, c] - b[..., None, :, c]
        own = difference.abs_() if degree == 1 else difference.square_()
        total = own if total is None else total.add_(own)
    return total


def _raised(term: PairTerm, distance: Array) -> Array:
    """Distances to the power of the term, in an array of their own unless that is one."""
    if term.exponent == 1.0:
        return distance
    return distance.sqrt() if term.exponent == 0.5 else distance**term.exponent


def kernel_of(term: PairTerm, distance: Array) -> Array:
    """The kernel on predictions at a distance."""
    return (-_raised(term, distance)).exp_()


def tile(a: PairTerm, b: PairTerm) -> Array:
    """One term of h for all pairs, or for those within each batch of three axes."""
    near = kernel_of(a, distances(a.points, b.points, a.degree))
    return a.factor * near * (a.features @ b.features.mT)


def _tiles(n: int, side: int, part: tuple[int, int] = (0, 1)) -> Iterator[tuple[Chunk, Chunk]]:
    """Squares on and above the diagonal; of these every ``part[1]``-th, from ``part[0]`` on."""
    cuts = [slice(i, min(i + side, n)) for i in range(0, n, side)]
    return islice(combinations_with_replacement(cuts, 2), part[0], None, part[1])


def side_of(like: Array) -> int:
    """Cases on a side of a tile."""
    return max(8, math.isqrt(entries_for(like, 4 * budget.cache)))


def pair_sums(term: PairTerm, *, rows: bool, part: tuple[int, int] = (0, 1)) -> tuple[Array, Array | None]:
    """Sum over pairs i < j, and where asked for the sum of each case over all others, ``(n,)``, in float64.

    Of the tiles only every ``part[1]``-th is taken, from ``part[0]`` on: sums of all parts add up.
    """
    torch = sys.modules["torch"]
    wide = torch.float64
    total = torch.zeros((), dtype=wide, device=term.features.device)
    sums = torch.zeros(term.n, dtype=wide, device=term.features.device) if rows else None
    for i, j in _tiles(term.n, side_of(term.features), part):
        h = tile(term.of(i), term.of(j))
        if i == j:
            h.triu_(1)
        right = h.sum(dim=1, dtype=wide)
        total += right.sum()
        if sums is not None:
            sums[i] += right
            sums[j] += h.sum(dim=0, dtype=wide)
    return total, sums


def pair_products(term: PairTerm, vectors: Array) -> Array:
    """``sum_{j != i} h_ij v_j`` of vectors ``(n, R)``, in float64."""
    torch = sys.modules["torch"]
    out = torch.zeros(vectors.shape, dtype=torch.float64, device=vectors.device)
    own = vectors.to(term.features.dtype)
    for i, j in _tiles(term.n, side_of(term.features)):
        h = tile(term.of(i), term.of(j))
        if i == j:
            h.fill_diagonal_(0.0)
        else:
            out[j] += h.mT @ own[i]
        out[i] += h @ own[j]
    return out


def couple_sums(terms: Sequence[PairTerm], some: Array) -> tuple[Array, Array]:
    """Means of h and of its square over the pairs of tiles of cases ``(tiles, 2, side)``: ``(tiles,)``."""
    torch = sys.modules["torch"]
    means: list[Array] = []
    squares: list[Array] = []
    count, _, side = some.shape
    most = max(side, *(term.points.shape[1] + term.features.shape[1] for term in terms))
    step = max(1, entries_for(some, 4 * budget.cache) // (side * most))
    for start in range(0, count, step):
        own = some[start : start + step]
        h: Array = sum(tile(term.of(own[:, 0]), term.of(own[:, 1])) for term in terms)
        means.append(h.mean(dim=(1, 2), dtype=torch.float64))
        squares.append(h.square_().mean(dim=(1, 2), dtype=torch.float64))
    return torch.cat(means), torch.cat(squares)


def pair_gradients(term: PairTerm, *, triton: bool = False) -> tuple[Array, Array, Array]:
    """Sums of cases over all others ``(n,)``, and derivatives of the sum over pairs i < j.

    These are by features ``(n, M)`` and by points ``(n, D)``. With k the kernel and s the distance of a pair,
    ``d sum / d f_i = sum_j k_ij f_j``, and by points it is ``sum_j w_ij ds_ij / dx_i`` with
    ``w = <f_i, f_j> dk / ds``. Each tile is evaluated once for all of it.
    """
    if triton and triton_pairs.in_one_kernel(term):
        return triton_pairs.pair_gradients(term)
    torch = sys.modules["torch"]
    # Sums of products with points lose what these have in common.
    term = replace(term, points=term.points - term.points.median(dim=0).values)
    points, features = term.points, term.features
    by_points, by_features = torch.zeros_like(points), torch.zeros_like(features)
    for i, j in _tiles(term.n, side_of(features)):
        x, y = points[i], points[j]
        distance = distances(x, y, term.degree, triton=triton)
        raised = _raised(term, distance)
        k = (-raised).exp_()
        if i == j:  # all of the square: what it counts twice is on both sides of the diagonal
            k.fill_diagonal_(0.0)
        by_features[i].addmm_(k, features[j])
        if i != j:
            by_features[j].addmm_(k.mT, features[i])
        weights = _slopes(term, k.mul_(features[i] @ features[j].mT), raised, distance)
        _add_by_points(term, weights, (i, j), by_points, triton=triton)
    if term.factor != 1.0:
        by_features.mul_(term.factor)
        by_points.mul_(term.factor)
    # Each pair is in the sums of both of its cases, linear in the features of either.
    return (by_features * features).sum(dim=1), by_features, by_points


def _slopes(term: PairTerm, h: Array, raised: Array, distance: Array) -> Array:
    """Derivatives of h by the distance over ``-exponent``; all arrays are used up.

    Pairs of equal points have a derivative of zero, as in the middle of a cone.
    """
    if term.exponent == 1.0:
        return h
    if term.exponent != 0.5:
        h.mul_(raised)
        raised = distance
    return h.div_(raised.masked_fill_(raised == 0.0, math.inf))


def _add_by_points(
    term: PairTerm, w: Array, at: tuple[Chunk, Chunk], by_points: Array, *, triton: bool
) -> None:
    """Add the derivatives by points of a tile with slopes `w`."""
    i, j = at
    x, y = term.points[i], term.points[j]
    factor = -term.exponent * term.degree
    sides = [(i, x, y, w)] if i == j else [(i, x, y, w), (j, y, x, w.mT)]
    for own, a, b, weights in sides:
        out = by_points[own]
        if term.degree == 2:
            out.addcmul_(weights.sum(dim=1)[:, None], a, value=factor).addmm_(weights, b, alpha=-factor)
        elif triton:
            out.add_(triton_pairs.signed_sums(a, b, weights), alpha=factor)
        else:
            for c in range(a.shape[1]):
                signed = (a[:, None, c] - b[None, :, c]).sign_().mul_(weights)
                out[:, c].add_(signed.sum(dim=1), alpha=factor)


def differentiable_sum(term: PairTerm) -> Array:
    """Sum over pairs i < j by operations that PyTorch differentiates, all of them at once."""
    torch = sys.modules["torch"]
    i, j = torch.triu_indices(term.n, term.n, 1, device=term.features.device)
    difference = term.points[i] - term.points[j]
    distance = (difference.abs() if term.degree == 1 else difference * difference).sum(dim=1)
    if term.exponent != 1.0:
        near = distance == 0.0
        raised = torch.where(near, 1.0, distance) ** term.exponent
        distance = torch.where(near, 0.0, raised)
    return term.factor * ((-distance).exp() * (term.features[i] * term.features[j]).sum(dim=1)).sum()
