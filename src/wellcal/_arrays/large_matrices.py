"""Eigenvalues and linear systems of large symmetric matrices, in steps that tell how far they are.

One call of LAPACK for all of it takes minutes in which nothing is told and Ctrl-C is not heard. Here the same
algorithms go from panel to panel, with matrix products for nearly all of the work.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, eigvals_banded, qr, solve_triangular

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.progress import reporter

SMALL = 2048
"""Rows up to which LAPACK does all of it at once, in less than a second."""

_BAND = 64  # wider bands are quicker to reach, and take longer from there on
_BLOCK = 256  # of a Cholesky decomposition
_TOGETHER = 256  # rows of a matrix that are brought up to date at a time: what is subtracted stays in a cache


def eigenvalues(matrix: NDArray, small: int = SMALL) -> NDArray:
    """Eigenvalues of a symmetric matrix in ascending order; it is overwritten.

    Reflections of some columns at a time leave a band, ``2 n^3`` operations in matrix products; of a band
    eigenvalues are quick.

    Examples
    --------
    >>> eigenvalues(np.array([[2.0, 1.0], [1.0, 2.0]])).round(12)
    array([1., 3.])
    """
    n = len(matrix)
    if n <= max(small, 2 * _BAND):
        return np.linalg.eigvalsh(matrix)
    told = reporter()
    for start in range(0, n - _BAND - 1, _BAND):
        told("eigenvalues", n**3 - (n - start) ** 3, n**3)
        _reflect(matrix[start:, start:])
    told("eigenvalues", n**3 - _BAND**3, n**3)
    band = np.zeros((_BAND + 1, n))
    for k in range(_BAND + 1):
        band[k, : n - k] = np.diagonal(matrix, -k)
    found = eigvals_banded(band, lower=True, overwrite_a_band=True)
    told("eigenvalues", n**3, n**3)
    return found


def _reflect(rest: NDArray) -> None:
    """Make the first columns zero below the band, in place, and bring what is right of them up to date.

    With ``Q = I - Y T Y'`` from the columns below the band, ``Q' A Q = A - Y W' - W Y'``.
    """
    below, inside = rest[_BAND:, :_BAND], rest[_BAND:, _BAND:]
    (raw, tau), _ = qr(below, mode="raw", check_finite=False)
    count = len(tau)
    y = np.tril(raw[:, :count], -1)
    np.fill_diagonal(y, 1.0)
    idle = tau == 0.0  # columns with nothing to reflect
    y[:, idle] = 0.0
    t = np.linalg.inv(np.triu(y.T @ y, 1) + np.diag(1.0 / np.where(idle, 1.0, tau)))
    below[:] = 0.0
    below[:count] = np.triu(raw[:count])
    image = inside @ (y @ t)
    w = image - 0.5 * y @ (t.T @ (y.T @ image))
    left, right = np.hstack([y, w]), np.hstack([w, y]).T
    for rows in in_chunks(len(left), within=_TOGETHER):
        inside[rows] -= left[rows] @ right


def solved(matrix: NDArray, right: NDArray) -> NDArray:
    """``A^-1 B`` for a positive definite matrix A, which is overwritten, and any number of columns of B.

    Examples
    --------
    >>> solved(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([[1.0], [1.0]])).ravel()
    array([0.5 , 0.25])
    """
    n, columns = right.shape
    told, total = reporter(), n**3 / 3.0 + 2.0 * n * n * columns
    for start in range(0, n, _BLOCK):
        told("linear system", (n**3 - (n - start) ** 3) / 3.0, total)
        own, rest = slice(start, start + _BLOCK), slice(start + _BLOCK, n)
        matrix[own, own] = np.linalg.cholesky(matrix[own, own])
        if start + _BLOCK < n:
            matrix[rest, own] = solve_triangular(matrix[own, own], matrix[rest, own].T, lower=True).T
            below, inside = matrix[rest, own], matrix[rest, rest]
            for rows in in_chunks(len(below), within=_TOGETHER):
                inside[rows] -= below[rows] @ below.T
    found = np.empty(right.shape)
    for some in in_chunks(columns, n):
        told("linear system", total - 2.0 * n * n * (columns - some.start), total)
        found[:, some] = cho_solve((matrix, True), right[:, some])
    told("linear system", total, total)
    return found
