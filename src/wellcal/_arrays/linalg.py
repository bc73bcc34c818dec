"""Cholesky factors of a batch of matrices, and products with their inverses."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from wellcal._arrays.checks import check_rows, real_array
from wellcal._arrays.namespaces import (
    Array,
    Namespace,
    NDArray,
    device_of,
    is_jax,
    is_torch,
    is_traced,
    namespace,
    to_numpy,
)
from wellcal._arrays.row_errors import Row, RowError


def checked_cholesky(cov: object, name: str, loc: Array) -> tuple[Array, Array]:
    """`cov` made exactly symmetric, and its lower Cholesky factor, ``(n, d, d)`` each.

    Raises
    ------
    ValueError
        For another shape than `loc` (n, d) asks for, an asymmetric matrix or one that is not
        positive definite beyond rounding, with the first such row.
    """
    matrix = at_least_single(real_array(cov, name, ndim=(3,), like=loc))
    n, d = loc.shape
    if tuple(matrix.shape) != (n, d, d):
        raise ValueError(
            f"{name} must have shape ({n}, {d}, {d}) for loc of shape ({n}, {d}), found {tuple(matrix.shape)}"
        )
    xp = namespace(matrix)
    transposed = xp.matrix_transpose(matrix)
    tolerance = 1e-8 if matrix.dtype == xp.float64 else 1e-4
    size = xp.max(xp.abs(matrix), axis=(1, 2))
    asymmetry = xp.max(xp.abs(matrix - transposed), axis=(1, 2))
    check_rows(
        name,
        matrix,
        asymmetry <= tolerance * size,
        f"must be symmetric (to {tolerance:g} of its largest entry)",
        f"pass ({name} + transpose) / 2 if the difference is rounding",
    )
    variances = xp.linalg.diagonal(matrix)
    low, high = _VARIANCES
    high = min(high, float(xp.finfo(matrix.dtype).max))
    inside = (variances <= 0) | ((variances >= low) & (variances <= high))  # others are not positive definite
    check_rows(
        name, variances, inside, f"must have variances between {low:g} and {high:g}", "change the unit"
    )
    matrix = 0.5 * (matrix + transposed)
    return matrix, _cholesky(matrix, name)


_VARIANCES = (1e-280, 1e280)
"""Entries between these can be multiplied in doubled precision, with each other's inverses."""


def at_least_single(x: Array) -> Array:
    """`x` in at least single precision: there are no factors of matrices in 16 bits."""
    xp = namespace(x)
    return xp.astype(x, xp.float32) if xp.finfo(x.dtype).bits < 32 else x


def _cholesky(matrix: Array, name: str) -> Array:
    xp = namespace(matrix)
    try:
        factor = xp.linalg.cholesky(matrix)
    except (ValueError, RuntimeError):  # NumPy and PyTorch raise, without a row; JAX returns NaN
        factor = None
    if is_traced(factor):
        return factor
    if factor is None or not bool(xp.all(_regular(xp, factor, matrix))):
        _reject(to_numpy(matrix), name)
    return factor


def _regular(xp: Namespace, factor: Array, matrix: Array) -> Array:
    """True for pivots, which are conditional variances, above rounding of their variance."""
    smallest = matrix.shape[-1] * float(xp.finfo(matrix.dtype).eps)
    return xp.linalg.diagonal(factor) ** 2 > smallest * xp.linalg.diagonal(matrix)


def _reject(matrices: NDArray, name: str) -> None:
    xp = namespace(matrices)
    for row, one in enumerate(matrices):
        try:
            if _regular(xp, np.linalg.cholesky(one), one).all():
                continue
        except np.linalg.LinAlgError:
            pass
        eigenvalues = np.linalg.eigvalsh(one)
        raise RowError(
            f"{name} must be positive definite in ",
            Row(row),
            f": its smallest eigenvalue is {eigenvalues[0]:.3g} and its largest {eigenvalues[-1]:.3g}",
            argument=name,
            remedy="add a small multiple of the identity (jitter), or drop coordinates that are "
            "functions of others",
        )
    raise ValueError(f"{name} must be positive definite; add a small multiple of the identity (jitter)")


def solve_lower(factor: Array, x: Array) -> Array:
    """``factor^-1 x`` for lower triangular `factor` (n, d, d) and vectors `x` (..., n, d).

    All vectors of a matrix are solved for at a time: its factors are taken to pieces once.
    """
    xp = namespace(factor, x)
    if x.ndim == 2:
        return _solve(xp, factor, x[..., None])[..., 0]
    n, d = (int(k) for k in x.shape[-2:])
    columns = xp.permute_dims(xp.reshape(x, (-1, n, d)), (1, 2, 0))
    return xp.reshape(xp.permute_dims(_solve(xp, factor, columns), (2, 0, 1)), x.shape)


def _solve(xp: Namespace, factor: Array, columns: Array) -> Array:
    if is_torch(xp):
        torch: Any = sys.modules["torch"]
        return torch.linalg.solve_triangular(factor, columns, upper=False)
    if is_jax(xp):
        import jax.scipy.linalg as jax_linalg

        return jax_linalg.solve_triangular(factor, columns, lower=True)
    return xp.linalg.solve(factor, columns)


def inverse_lower(factor: Array) -> Array:
    """``factor^-1`` of lower triangular matrices ``(n, d, d)``, for products with many vectors of each.

    Examples
    --------
    >>> inverse_lower(np.array([[[2.0, 0.0], [1.0, 0.5]]]))
    array([[[ 0.5,  0. ],
            [-1. ,  2. ]]])
    """
    xp = namespace(factor)
    one = xp.eye(factor.shape[-1], dtype=factor.dtype, device=device_of(factor))
    return _solve(xp, factor, xp.broadcast_to(one, factor.shape))


def log_determinant(factor: Array) -> Array:
    """Log determinant of ``factor factor'``, ``(n,)``."""
    xp = namespace(factor)
    return 2.0 * xp.sum(xp.log(xp.linalg.diagonal(factor)), axis=-1)
