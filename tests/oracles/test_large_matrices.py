"""Eigenvalues and linear systems from panel to panel, beside LAPACK's in one piece."""

from __future__ import annotations

import numpy as np
import pytest

from wellcal._arrays.large_matrices import eigenvalues, solved
from wellcal._arrays.namespaces import NDArray

RNG = np.random.default_rng(7)


def _symmetric(n: int) -> NDArray:
    values = RNG.normal(size=(n, n))
    return values + values.T


def _of_low_rank(n: int) -> NDArray:
    factor = RNG.normal(size=(n, 3))
    return factor @ factor.T


def _graded(n: int) -> NDArray:
    """Eigenvalues from 1 down to 1e-12, as kernels have them."""
    basis, _ = np.linalg.qr(RNG.normal(size=(n, n)))
    return (basis * np.logspace(0.0, -12.0, n)) @ basis.T


MATRICES = {
    "symmetric": _symmetric,
    "low rank": _of_low_rank,
    "graded": _graded,
    "diagonal": lambda n: np.diag(np.arange(float(n))),
    "zero": lambda n: np.zeros((n, n)),
}


@pytest.mark.parametrize("n", [129, 192, 200, 333])
@pytest.mark.parametrize("name", MATRICES)
def test_eigenvalues(name: str, n: int) -> None:
    matrix = MATRICES[name](n)
    matrix = 0.5 * (matrix + matrix.T)
    expected = np.linalg.eigvalsh(matrix)
    found = eigenvalues(matrix.copy(), small=0)
    assert np.abs(found - expected).max() <= 1e-13 * np.abs(expected).max()


@pytest.mark.parametrize(("n", "columns"), [(3, 1), (256, 4), (300, 700), (513, 2)])
def test_linear_systems(n: int, columns: int) -> None:
    values = RNG.normal(size=(n, n))
    matrix, right = values @ values.T / n + np.eye(n), RNG.normal(size=(n, columns))
    assert np.allclose(solved(matrix.copy(), right), np.linalg.solve(matrix, right), rtol=1e-11, atol=1e-11)


def test_what_is_not_positive_definite_is_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        solved(-np.eye(300), np.ones((300, 1)))
