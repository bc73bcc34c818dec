"""Sums over pairs of tensors, in float64 or after rounding, by Triton or PyTorch, on one device or several.

Rounded sums have a small bias, which random tiles in both precisions tell, as in `mixed.py`. Tiles are those
of the very kernels that the sums come from: whatever lines up in these is seen.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal.engines import tensor_pairs, triton_pairs
from wellcal.engines.mixed import AUTO_ERROR, largest_sums, standard_error
from wellcal.engines.pair_terms import PairTerm
from wellcal.problem.telling_cases import few_say_most

TILES = (64, 1024, 4096)
"""How many are looked at in all, until they tell."""


@dataclass(frozen=True)
class Correction:
    """What rounding does to sums: its bias, and what is left when that is removed.

    Attributes
    ----------
    bias
        Mean of h in float64 minus h as it is rounded, over pairs.
    error
        Standard error of the sum over all pairs, in standard deviations of a sum whose pairs have the mean
        square of the observed h.
    """

    bias: float
    error: float


def sums_of(
    terms: Sequence[PairTerm], *, rows: bool, double: bool, triton: bool, devices: Sequence[Any] = ()
) -> tuple[Array, Array | None]:
    """Sum over pairs i < j and, where asked for, of each case over all others, in float64.

    Parameters
    ----------
    terms
        Terms of h.
    rows
        Whether sums of cases are wanted: all pairs are then visited twice by Triton.
    double
        Whether products are in float64.
    triton
        Whether Triton does it, and otherwise PyTorch.
    devices
        Devices that share the work; none for the one that the terms are on. Sums come back to that.
    """
    home = terms[0].features.device
    places = list(devices) or [home]
    parts: list[tuple[Array, Array | None]] = []
    for k, place in enumerate(places):  # kernels run on all of them while the loop goes on
        for term in terms:
            own = term if place == home else term.to(place)
            part = (k, len(places))
            if triton:
                layout = triton_pairs.laid_out(own, double)
                parts.append(triton_pairs.pair_sums(layout, rows=rows, part=part))
            else:
                parts.append(tensor_pairs.pair_sums(own if double else _single(own), rows=rows, part=part))
    total = sum(own.to(home) for own, _ in parts)
    return total, sum(own.to(home) for _, own in parts if own is not None) if rows else None


def _single(term: PairTerm) -> PairTerm:
    return term.to(sys.modules["torch"].float32)


def shortened(terms: Sequence[PairTerm]) -> list[PairTerm]:
    """The same without features that hold less of the energy than rounding does."""
    out: list[PairTerm] = []
    for term in terms:
        squares = to_numpy((term.features * term.features).sum(dim=0))
        kept = largest_sums(squares)
        whole = len(kept) == len(squares)
        features = term.features if whole else term.features[:, _index(kept, term.features)]
        out.append(PairTerm(term.points, features, term.degree, term.exponent, term.factor))
    return out


def _index(positions: NDArray, like: Array) -> Array:
    return sys.modules["torch"].as_tensor(positions, device=like.device)


def correction_of(
    exact: Sequence[PairTerm],
    rounded: Sequence[PairTerm],
    *,
    triton: bool,
    tiles: Sequence[int] | None = None,
) -> Correction:
    """Bias and error of rounded sums, from random tiles of the terms as they are and as they are shortened.

    So many `tiles` are looked at, and more until they tell. Where few cases say most, tiles would hardly ever
    see them, and kernels that sum cannot weigh by chances of cases: the error is unknown, and infinite.
    """
    own = sum(term.factor * (term.features * term.features).sum(dim=1) for term in exact)
    if few_say_most(own):
        return Correction(0.0, math.inf)
    n = exact[0].n
    side = max(triton_pairs.block_of(term, double=False) for term in rounded)
    differences: NDArray = np.empty(0)
    squares: NDArray = np.empty(0)
    found = Correction(0.0, np.inf)
    for count in TILES if tiles is None else tiles:
        some = _random_tiles(exact[0].features, count - len(differences), side, seed=len(differences))
        truth, second = tensor_pairs.couple_sums(exact, some)
        low = sum(_rounded_couples(term, some, triton=triton) for term in rounded)
        differences = np.concatenate([differences, to_numpy(truth - low)])
        squares = np.concatenate([squares, to_numpy(second)])
        unit = math.sqrt(0.5 * n * (n - 1) * float(np.mean(squares)))
        found = Correction(float(np.mean(differences)), standard_error(differences, n, unit))
        if found.error <= AUTO_ERROR:
            break
    return found


def _random_tiles(like: Array, tiles: int, side: int, seed: int) -> Array:
    """Cases ``(tiles, 2, side)``: in each tile different ones, drawn on the device."""
    torch = sys.modules["torch"]
    n = int(like.shape[0])
    generator = torch.Generator(device=like.device)
    generator.manual_seed(seed)
    whole = n // (2 * side)
    drawn = [
        torch.randperm(n, generator=generator, device=like.device)[: 2 * side * whole].reshape(-1, 2, side)
        for _ in range(-(-tiles // whole))
    ]
    return torch.cat(drawn)[:tiles]


def _rounded_couples(term: PairTerm, some: Array, *, triton: bool) -> Array:
    if not triton:
        return tensor_pairs.couple_sums([_single(term)], some)[0]
    layout = triton_pairs.laid_out(term.of(some.reshape(-1)), double=False, block=int(some.shape[2]))
    return triton_pairs.couple_means(layout)


def products_of(terms: Sequence[PairTerm], vectors: Array, *, double: bool, triton: bool) -> Array:
    """``sum_{j != i} h_ij v_j`` of vectors ``(n, R)``, in float64."""
    parts: list[Array] = []
    for term in terms:
        if triton:
            parts.append(triton_pairs.pair_products(triton_pairs.laid_out(term, double), vectors))
        else:
            parts.append(tensor_pairs.pair_products(term if double else _single(term), vectors))
    return sum(parts[1:], start=parts[0])
