"""Passes over the pairs of cases: quadratic forms, products with vectors, or the whole matrix.

H0 is the matrix of h with a zero diagonal. Only :func:`dense` stores it, after a look at its size. Each
pass also gives the row sums of what it visited: the estimate reported with a p-value costs nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import linalg

from wellcal._arrays.chunks import Chunk, budget, in_chunks
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.engines.reductions import RowAccumulator, Sums
from wellcal.hypotests.setup import Setup
from wellcal.measures._skce import estimate_from_sums
from wellcal.measures.estimate import Estimate

Result = TypeVar("Result")

LARGEST_MATRIX = 4_000_000_000
"""Bytes that one n x n matrix may take: n = 22,360."""

_ARRAYS = 4  # as large as temporary ones, that one pass may fill with weights: each pass evaluates h again
_TILES = 4  # as large as a core's cache, that weights which meet a tile at a time may fill


@dataclass(frozen=True)
class QuadraticForms:
    """What :func:`quadratic_forms` found.

    Attributes
    ----------
    values
        ``w' H0 w`` for each column w of the weights.
    sums
        Sums of h over the same pairs.
    """

    values: NDArray
    sums: Sums


@dataclass(frozen=True)
class MatrixProducts:
    """What :func:`products` found.

    Attributes
    ----------
    values
        ``H0 V``.
    squares
        Sum of all squared entries of H0.
    sums
        Sums of h over all pairs.
    """

    values: NDArray
    squares: float
    sums: Sums


def dense(setup: Setup, what: str) -> NDArray:
    """H0 as an array ``(n, n)``, or an error that says which methods do without it."""
    n = setup.n_samples
    if matrix_bytes(n) > LARGEST_MATRIX:
        raise ValueError(
            f"{what} needs the whole matrix of {n:,} x {n:,} pairs, {matrix_bytes(n) / 1e9:.1f} GB; take "
            'method="pearson" or "multiplier", which do not store it, or "block", which is linear in n'
        )
    out = np.zeros((n, n))

    def fill(i: Chunk, j: Chunk, h: NDArray) -> None:
        if i.stop <= j.start:
            out[i, j] = h
            out[j, i] = h.T
        else:
            # A tile on the diagonal overlaps with its own transpose, where it is zero: hence the sums.
            out[i, j] += h
            out[j, i] += h.T

    for _ in _over_pairs(setup, fill):
        pass
    return out


def quadratic_forms(setup: Setup, weights: NDArray) -> QuadraticForms:
    """``w' H0 w`` for each column w of weights ``(n, R)``, in one pass over the pairs.

    Weights may be of any numeric type. They are read along the cases: the transpose of an array of R rows
    is the fastest form of them. Pairs of one cluster are left out where the setup has clusters.
    """
    lines = weights.T

    def reduce(i: Chunk, j: Chunk, h: NDArray) -> tuple[Chunk, Chunk, NDArray, NDArray, NDArray]:
        h = _between_clusters(setup, i, j, h)
        forms = np.empty(len(lines))
        for some in in_chunks(len(lines), max(h.shape), within=_TILES * budget.cache):
            left, right = np.asarray(lines[some, i], float), np.asarray(lines[some, j], float)
            forms[some] = np.vecdot(left, right @ h.T)
        return i, j, forms, h.sum(axis=1), h.sum(axis=0)

    values = np.zeros(len(lines))
    sums = RowAccumulator(setup.n_samples)
    for i, j, forms, right, down in _over_pairs(setup, reduce):
        sums.add(i, j, right, down)
        values += forms
    return QuadraticForms(2.0 * values, sums.result())


def products(setup: Setup, vectors: NDArray) -> MatrixProducts:
    """``H0 V`` for vectors ``(n, q)`` of any numeric type, with the sum of squares, in one pass."""
    values = np.zeros(vectors.shape)
    squares = 0.0

    def reduce(
        i: Chunk, j: Chunk, h: NDArray
    ) -> tuple[Chunk, Chunk, NDArray, NDArray, NDArray, NDArray, float]:
        right, down = h @ np.asarray(vectors[j], float), h.T @ np.asarray(vectors[i], float)
        return i, j, right, down, h.sum(axis=1), h.sum(axis=0), float(np.vdot(h, h))

    sums = RowAccumulator(setup.n_samples)
    for i, j, right, down, row, column, square in _over_pairs(setup, reduce):
        values[i] += right
        values[j] += down
        squares += square
        sums.add(i, j, row, column)
    return MatrixProducts(values, 2.0 * squares, sums.result())


def sums_of(matrix: NDArray) -> Sums:
    """Sums of h over all pairs, from H0."""
    rows = matrix.sum(axis=1)
    return Sums(0.5 * float(rows.sum()), rows)


def eigenvalues_of(setup: Setup, what: str) -> tuple[NDArray, Sums]:
    """Eigenvalues of H / n in ascending order, and the sums of h over all pairs."""
    diagonal = whole_diagonal(setup, what)
    matrix = dense(setup, what)
    sums = sums_of(matrix)
    np.fill_diagonal(matrix, diagonal)
    return linalg.eigvalsh(matrix.T, overwrite_a=True, check_finite=False) / setup.n_samples, sums


def estimate_from(setup: Setup, sums: Sums) -> Estimate:
    """Unbiased SKCE from sums over all pairs that a pass found."""
    check_finite(setup, sums.total)
    return setup.reported(estimate_from_sums(setup.problem, setup.engine, sums))


def between_clusters(setup: Setup, sums: Sums, groups: NDArray, sizes: NDArray) -> Estimate:
    """Mean of h over pairs of different clusters, with a standard error over clusters.

    With r_g the sum of h over pairs of cluster g with others, n_g its size and m the mean, cluster g
    adds ``psi_g = 2 (r_g - m n_g (n - n_g)) / pairs`` to the error; for clusters of one case the standard
    error is that of SKCE_u.
    """
    check_finite(setup, sums.total)
    pairs = float(setup.n_samples**2 - np.sum(sizes**2))
    value = 2.0 * float(sums.total) / pairs
    psi = 2.0 * (np.bincount(groups, weights=sums.rows) - value * sizes * (setup.n_samples - sizes)) / pairs
    count = len(sizes)
    error = float(np.sqrt(count / (count - 1.0) * np.sum(psi**2))) if count > 2 else None
    provenance = {
        **setup.problem.notes.as_dict(),
        **setup.engine.describe(setup.problem),
        "pairs": "between clusters",
    }
    name = "unbiased, between clusters"
    return setup.reported(Estimate(value, error, "SKCE", name, setup.n_samples, setup.kernel, provenance))


def whole_diagonal(setup: Setup, what: str) -> NDArray:
    """Diagonal of the matrix of h that belongs to H0, or an error where it is not known.

    For pooled draws it is that of the pooled problem: h_ii is the squared norm of what h_ij are the
    inner products of.
    """
    diagonal = np.asarray(to_numpy(setup.problem.diagonal()))
    correction = setup.problem.self_correction
    if correction is not None and np.isnan(to_numpy(correction())).any():
        raise ValueError(
            f"{what} needs h of a case with itself, so at least two draws for each prediction; "
            'take method="pearson" or "multiplier", or kind="atoms" if the one value is the prediction'
        )
    check_finite(setup, diagonal)
    return diagonal


def check_finite(setup: Setup, values: NDArray | float) -> None:
    """Raise an error where h is not finite: comparisons with nan would read as a small p-value."""
    if not np.all(np.isfinite(values)):
        raise ValueError(
            f"h is not finite for some pairs of cases under the kernel {setup.kernel!r}; "
            "check the values that it returns"
        )


def matrix_bytes(n: int) -> int:
    """Memory of one n x n matrix in float64."""
    return 8 * n * n


def in_passes(n: int, count: int, dtype: type[np.generic], multiple: int = 1) -> Iterator[Chunk]:
    """`count` columns of n weights of a type, in parts that one pass handles.

    All parts but the last have a whole multiple of `multiple` columns.

    Examples
    --------
    >>> list(in_passes(100_000, 1_000, np.int8))
    [slice(0, 640, None), slice(640, 1000, None)]
    """
    entries = n * np.dtype(dtype).itemsize / np.dtype(float).itemsize
    return in_chunks(count, entries, within=_ARRAYS * budget.work, multiple=multiple)


def _over_pairs(setup: Setup, reduce: Callable[[Chunk, Chunk, NDArray], Result]) -> Iterator[Result]:
    """Results of `reduce` on all tiles; progress is shown on the way."""

    def counted(i: Chunk, j: Chunk, h: NDArray) -> tuple[int, Result]:
        # Tiles on the diagonal hold pairs that do not count.
        columns = j.stop - np.maximum(j.start, np.arange(i.start, i.stop) + 1)
        return int(np.maximum(columns, 0).sum()), reduce(i, j, h)

    done, total = 0, setup.n_samples * (setup.n_samples - 1) // 2
    setup.progress("pairs", done, total)
    for pairs, result in setup.engine.map_tiles(setup.problem, counted):
        yield result
        done += pairs
        setup.progress("pairs", done, total)


def _between_clusters(setup: Setup, i: Chunk, j: Chunk, h: NDArray) -> NDArray:
    """h with pairs of one cluster left out."""
    if setup.groups is None:
        return h
    return np.where(setup.groups[i][:, None] == setup.groups[j][None, :], 0.0, h)
