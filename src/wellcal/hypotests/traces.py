"""Traces of powers of the matrix of h: by a product of matrices, by random vectors, or from some cases."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.engines.error_control import sampling_weights
from wellcal.engines.reductions import Sums
from wellcal.hypotests.draws import draw_signs
from wellcal.hypotests.passes import dense, products, sums_of
from wellcal.hypotests.setup import Setup
from wellcal.problem.feature_form import in_products
from wellcal.problem.problem import Problem

SET = 512
"""Cases of a set that all meet each other where sums over pairs and triples are sampled."""

MOST_SETS = 512
"""Sets of cases: 262,144 cases in all, which give k2 to half a percent and the skewness to a quarter."""

_FEWEST = 64  # sets: they take less time than passes over all pairs from 12,000 cases on

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
    carriers
        Cases of equal weight whose squares would add up likewise, ``(sum_i r_i)^2 / sum_i r_i^2`` with
        ``r_i = sum_j h_ij^2``; 0 where there are no squares.
    error
        Standard error of `triples` where random vectors were used, or some of the cases.
    shares
        Squares and triples of each set of cases over their mean, less one, ``(2, sets)``, where these are
        sampled: by so much would both be larger if all cases were like those of the set.
    unseen
        By how much one triangle more would raise `triples` where these are sampled: where few pairs interact
        there may be none in any set, which then do not differ.
    """

    squares: float
    triples: float
    sums: Sums
    carriers: float
    error: float | None = None
    shares: NDArray | None = None
    unseen: float = 0.0


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
    own = np.einsum("ij,ij->i", matrix, matrix)
    return Trace(float(own.sum()), math.fsum(strips), sums_of(matrix), _equal_weights(own))


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
        return Trace(0.0, 0.0, first.sums, 0.0, 0.0)
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
    carriers = _equal_weights(np.einsum("ij,ij->i", first.values, first.values))
    return Trace(first.squares, known + float(np.mean(rest)), first.sums, carriers, error)


def sampled_trace(setup: Setup, size: int, most: int) -> Trace:
    """The same from random sets of cases, within which all pairs and triples are visited.

    Only the sum of h itself is over all pairs, by the engine, which may know a way without the square. Sets
    are drawn by the generator of the test, each by itself, so that what they differ by gives the standard
    error. Cases that say much, or that have partners to say it to, are drawn more often: where few of very
    many carry the statistic, sets of equally likely cases would hardly see them, and would not know it. One
    triangle more, of the largest h that any set has seen, is always within the error.
    """
    n, problem = setup.n_samples, setup.problem
    sums = setup.engine.triangle(problem)
    count = min(max(n // size, _FEWEST), most)
    # h_ij^2 is at most h_ii h_jj; of calibrated predictions the square of a sum of h is on average the sum of
    # squares.
    chances = sampling_weights(np.ones(n), problem.diagonal(), abs(to_numpy(sums.rows)))
    cases = setup.rng.choice(n, (count, size), p=chances)
    exact = in_products(problem) or problem
    found: list[tuple[float, float, float, float]] = []
    setup.progress("sets of cases", 0, count)
    for one in setup.engine.map_items(problem, lambda own: set_sums(exact, own, chances), cases):
        found.append(one)
        setup.progress("sets of cases", len(found), count)
    *both, largest, doubled = np.array(found).T
    values = np.array(both)
    means = values.mean(axis=1)
    unseen = 6.0 * float(largest.max()) ** 3 / (count * size * (size - 1.0) * (size - 2.0))
    error = math.hypot(float(np.std(values[1], ddof=1)) / math.sqrt(count), unseen)
    shares = np.divide(values, means[:, None], out=np.ones_like(values), where=means[:, None] != 0.0) - 1.0
    together = float(doubled.mean())
    carriers = float(means[0]) ** 2 / together if together > 0.0 else 0.0
    return Trace(float(means[0]), float(means[1]), sums, carriers, error, shares, unseen)


def set_sums(problem: Problem, own: NDArray, chances: NDArray) -> tuple[float, float, float, float]:
    """Sums over all pairs and triples of different cases, as a set of independent draws of cases has them.

    A pair counts as often as it is unlikely: on average over draws both are the sums over all cases. The
    largest h of a pair that counts so is the third, and ``sum_i r_i^2`` of `Trace.carriers` the fourth.

    Parameters
    ----------
    problem
        Of all cases.
    own
        The cases that were drawn, at least 3; one may be there several times.
    chances
        Of all cases to be drawn.
    """
    size = len(own)
    with np.errstate(over="ignore", under="ignore"):
        h = np.asarray(problem.values(own, own))
    often = 1.0 / np.sqrt(chances[own])
    h = h * often * often[:, None]
    h[own[:, None] == own] = 0.0  # a case does not meet itself
    pairs = size * (size - 1.0)
    triples = pairs * (size - 2.0)
    largest = max(float(h.max()), -float(h.min()))
    cubes = float(np.vdot(h @ h, h)) / triples
    squares = h * h
    partners = squares.sum(axis=1)
    doubled = float(chances[own] @ (partners**2 - np.einsum("ij,ij->i", squares, squares))) / triples
    return float(partners.sum()) / pairs, cubes, largest, doubled


def _equal_weights(own: NDArray) -> float:
    """``(sum r)^2 / sum r^2``."""
    second = float(np.vdot(own, own))
    return float(own.sum()) ** 2 / second if second > 0.0 else 0.0


def _columns(a: NDArray, b: NDArray) -> NDArray:
    """Inner products of matching columns."""
    return np.einsum("ij,ij->j", a, b)
