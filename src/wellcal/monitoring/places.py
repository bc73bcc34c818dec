"""Few targets from which what is known at many follows: distinct values, or nodes of a smooth function.

A witness is looked at in the targets that new cases might have had. Where these have values in common, each
value is looked at once. Where the kernel on targets is Gaussian, a witness is a sum of Gaussians of its
width: an analytic function of the target, known on an interval from its values at a few nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal.kernels.base import Kernel
from wellcal.kernels.targets import Gaussian
from wellcal.predictions import Predictions, Quantiles

_WIDEST = 4.0  # of a cell, in length scales
_NODES = 30  # of a cell
_STEP = 2.0**-20  # of nodes, relative to a cell, whose width has four bits: sums with its centre are exact
_FARTHEST = 2.0**24  # cells from zero
_NARROWEST = 1 / 32  # range of the candidates of a case, in cells, whose differences are far from rounding
_MULTIPLICATIONS = 30  # what a kernel value costs


def _reference() -> tuple[NDArray, NDArray]:
    """Nodes within a cell of width one around zero, and their barycentric weights."""
    angles = np.pi * (np.arange(_NODES) + 0.5) / _NODES
    nodes = np.round(-0.5 * np.cos(angles) / _STEP) * _STEP
    gaps = nodes[:, None] - nodes
    np.fill_diagonal(gaps, 0.25)  # the capacity of the interval, which keeps products near one
    return nodes, 1.0 / np.prod(gaps / 0.25, axis=1)


NODES, WEIGHTS = _reference()
"""Chebyshev's nodes: of a Gaussian on an interval of four length scales they leave out 1e-15."""


@dataclass(frozen=True)
class Places:
    """Targets that are looked at for all cases together.

    Attributes
    ----------
    targets, predictions
        The q targets, and predictions that they may belong to, of which the family counts, and of quantiles
        each. Nodes of cells come first.
    cells
        How many cells there are.
    inside, cell, weights
        Which of the candidates follow from nodes, of which cell, ``(k,)``, with which weights ``(k, J)``.
    alone, place
        Which of them are places themselves, and which ones.
    """

    targets: NDArray
    predictions: Predictions
    cells: int
    inside: NDArray
    cell: NDArray
    weights: NDArray
    alone: NDArray
    place: NDArray

    def at_candidates(self, values: NDArray) -> NDArray:
        """From values ``(m, W, q)`` of functions of the target to those at candidates, ``(m, W, R + 1)``."""
        m, functions, q = values.shape
        total = len(self.inside) + len(self.alone)
        count = total // m
        out = np.empty((m, functions, count))
        for cases in in_chunks(m, q * count, within=budget.cache // 2):
            first, last = cases.start * count, cases.stop * count
            table = np.zeros((last - first, q))
            a, b = np.searchsorted(self.inside, (first, last))
            by_cell = table[:, : self.cells * _NODES].reshape(last - first, self.cells, _NODES)
            by_cell[self.inside[a:b] - first, self.cell[a:b]] = self.weights[a:b]
            a, b = np.searchsorted(self.alone, (first, last))
            table[self.alone[a:b] - first, self.place[a:b]] = 1.0
            table = table.reshape(cases.stop - cases.start, count, q)
            out[cases] = values[cases] @ np.swapaxes(table, 1, 2)
        return out


def shared_places(kernel: Kernel, predictions: Predictions, flat: NDArray, cases: int) -> Places | None:
    """Places for all candidates of some cases, or None where each case had better look at its own.

    Parameters
    ----------
    kernel
        Kernel on targets.
    predictions
        Predictions of the cases; of quantiles those of the candidates.
    flat
        The candidates, those of a case one after the other.
    cases
        How many cases these are.
    """
    if flat.ndim != 1 or flat.dtype == object or cases == 1:
        return None
    scale = kernel.lengthscale if type(kernel) is Gaussian else None
    if isinstance(scale, float) and predictions.target_kind == "real":
        places = _nodes_and_values(scale, predictions, flat.astype(np.float64), cases)
    else:
        places = _values(predictions, flat)
    # Each place is looked at by every past case, and takes part in a product for every new one.
    together = len(places.targets) * (_MULTIPLICATIONS + cases)
    return places if together <= _MULTIPLICATIONS * len(flat) else None


def _values(predictions: Predictions, flat: NDArray) -> Places:
    """Each value once; of quantiles only the bin counts."""
    family = predictions.parts[0]
    binned = isinstance(family, Quantiles)
    _, first, place = np.unique(
        np.asarray(family.bins(flat)) if binned else flat, return_index=True, return_inverse=True
    )
    owners = predictions[first] if binned else predictions
    none = np.zeros(0, np.intp)
    every = np.arange(len(flat))
    return Places(flat[first], owners, 0, none, none, np.zeros((0, _NODES)), every, place)


def _nodes_and_values(lengthscale: float, predictions: Predictions, flat: NDArray, cases: int) -> Places:
    """In each cell nodes or the values themselves, whichever are fewer.

    Cells depend on the kernel alone: what is known of a case does not depend on which cases come with it.
    """
    digits, exponent = math.frexp(_WIDEST * lengthscale)
    width = math.ldexp(math.floor(16.0 * digits), exponent - 4)
    numbers, cell, counts = np.unique(np.floor(flat / width), return_inverse=True, return_counts=True)
    crowded = (counts > _NODES) & (np.abs(numbers) < _FARTHEST)
    wide = np.ptp(flat.reshape(cases, -1), axis=1) > _NARROWEST * width
    taken = crowded[cell] & np.repeat(wide, len(flat) // cases)
    inside, alone = np.flatnonzero(taken), np.flatnonzero(~taken)
    which = (np.cumsum(crowded) - 1)[cell[inside]]
    nodes = width * ((numbers[crowded] + 0.5)[:, None] + NODES)
    weights = _barycentric(flat[inside], nodes[which])
    return Places(
        targets=np.concatenate([nodes.ravel(), flat[alone]]),
        predictions=predictions,
        cells=len(nodes),
        inside=inside,
        cell=which,
        weights=weights,
        alone=alone,
        place=nodes.size + np.arange(len(alone)),
    )


def _barycentric(x: NDArray, nodes: NDArray) -> NDArray:
    """Weights ``(k, J)`` of values at nodes ``(k, J)`` in the polynomial through them, at x ``(k,)``."""
    gaps = x[:, None] - nodes
    hits = np.flatnonzero(~gaps.all(axis=1))  # at a node
    gaps[hits] = np.where(gaps[hits] == 0.0, 1.0, np.inf)
    out = np.divide(WEIGHTS, gaps, out=gaps)
    out /= out.sum(axis=1, keepdims=True)
    return out
