"""Traces of powers of the matrix of h: by a product of matrices, or by products with random vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.engines.reductions import Sums
from wellcal.hypotests.draws import draw_signs
from wellcal.hypotests.passes import dense, products, sums_of
from wellcal.hypotests.setup import Setup

_STRIP = 128  # rows of a product of two n x n matrices which are formed at a time


@dataclass(frozen=True)
class Trace:
    """Sums over pairs and triples of cases.

    Attributes
    ----------
    squares, triples
        ``sum_{i != j} h_ij^2`` and ``sum_{i, j, k distinct} h_ij h_jk h_ki``.
    sums
        Sums of h over all pairs.
    error
        Standard error of `triples` where random vectors were used.
    """

    squares: float
    triples: float
    sums: Sums
    error: float | None = None


def exact_trace(setup: Setup) -> Trace:
    """Sums over pairs and triples from the whole matrix.

    Its square is formed strip by strip, above the diagonal only: about half the work of a full product
    of two matrices, and no second matrix.
    """
    matrix = dense(setup, 'traces="exact"')

    def strip_sum(start: int) -> float:
        rows, after = slice(start, start + _STRIP), slice(start + _STRIP, None)
        within = np.vecdot(matrix[rows] @ matrix[:, rows], matrix[rows, rows])
        beyond = np.vecdot(matrix[rows] @ matrix[:, after], matrix[rows, after])
        return float(np.sum(within + 2.0 * beyond))

    # The engine's threads each take a strip: they do not wait for each other as those of BLAS do.
    strips = setup.engine.map_items(setup.problem, strip_sum, range(0, setup.n_samples, _STRIP))
    return Trace(float(np.einsum("ij,ij->", matrix, matrix)), math.fsum(strips), sums_of(matrix))


def hutchinson_trace(setup: Setup, probes: int) -> Trace:
    """The same from products with random signs, in two passes over the pairs.

    A = QMQ' + EQ' + QE' with M = Q' H0 Q and E = H0 Q - QM is the part of H0 that the subspace Q
    touches. Its cube has the trace tr M^3 + 3 tr M E'E, and v' (H0^3 - A^3) v has the trace of the rest
    as its mean.
    """
    half = probes // 2
    signs = draw_signs(setup.rng, setup.n_samples, probes).T
    first = products(setup, signs)
    if first.squares == 0.0:
        return Trace(0.0, 0.0, first.sums, 0.0)
    basis = np.linalg.qr(first.values[:, :half])[0]
    width = basis.shape[1]
    vectors = np.asarray(signs[:, half:], float)
    images = first.values[:, half:]
    second = products(setup, np.concatenate([basis, images], axis=1)).values
    inner = basis.T @ second[:, :width]
    outer = second[:, :width] - basis @ inner
    gram = outer.T @ outer
    known = float(np.trace(inner @ (inner @ inner + 3.0 * gram)))
    inside = basis.T @ vectors
    through = inner @ inside + outer.T @ vectors
    cubes = _columns(through, inner @ through + 2.0 * gram @ inside)
    rest = _columns(images, second[:, width:]) - cubes
    error = float(np.std(rest, ddof=1)) / math.sqrt(len(rest))
    return Trace(first.squares, known + float(np.mean(rest)), first.sums, error)


def _columns(a: NDArray, b: NDArray) -> NDArray:
    """Inner products of matching columns."""
    return np.einsum("ij,ij->j", a, b)
