"""The compiled exponential and sums over pairs, against mpmath and SciPy."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from wellcal._arrays.compiled_pairs import exponentials, pair_sums

WITHIN = 2e-16  # relatively: less than one unit of the last place


def _off(x: np.ndarray) -> float:
    """Largest relative error, against fifty digits."""
    with mpmath.workdps(50):
        true = [mpmath.exp(mpmath.mpf(float(value))) for value in x]
        pairs = zip(exponentials(x), true, strict=True)
        return float(max(abs(mpmath.mpf(float(found)) / value - 1) for found, value in pairs))


def test_the_exponential_has_all_digits_over_its_whole_range() -> None:
    rng = np.random.default_rng(0)
    everywhere = -rng.uniform(0.0, 708.0, 1500)
    small = -np.exp(rng.uniform(math.log(1e-300), math.log(30.0), 500))
    # Where one power of two goes over into the next, arguments of the series are as large as they get.
    turns = -math.log(2.0) * (np.arange(0.0, 1021.0, 5.0) + 0.5)
    around = np.concatenate([np.nextafter(turns, 0.0), turns, np.nextafter(turns, -np.inf)])
    ends = np.array([0.0, -0.0, -5e-324, -707.9999999, -708.0])
    for x in (everywhere, small, around, ends):
        assert _off(x) < WITHIN


def test_what_has_not_all_digits_is_zero() -> None:
    x = np.array([np.nextafter(-708.0, -np.inf), -709.0, -745.0, -1e6, -1e300, -np.inf])
    assert np.array_equal(exponentials(x), np.zeros(6))
    assert exponentials(np.zeros(1))[0] == 1.0


@pytest.mark.parametrize(("r", "m"), [(1, 1), (2, 3), (7, 40), (32, 129), (33, 700)])
@pytest.mark.parametrize(("size", "features"), [(1, 1), (3, 2), (10, 9), (12, 31)])
def test_sums_over_pairs_are_those_of_the_matrix(r: int, m: int, size: int, features: int) -> None:
    rng = np.random.default_rng(r + size)
    a, b = rng.dirichlet(np.ones(size + 1), r)[:, :size], rng.dirichlet(np.ones(size + 1), m)[:, :size]
    left, right = rng.normal(size=(r, features)), rng.normal(size=(m, features))
    kernel = np.exp(-2.3 * cdist(a, b, "cityblock"))
    h = kernel * (left @ right.T)
    whole = np.sum(kernel * (np.abs(left) @ np.abs(right).T))  # products may cancel
    for first in (None, np.arange(r) + 1, np.arange(r) - 3, np.full(r, m)):
        kept = h if first is None else np.where(np.arange(m) >= first[:, None], h, 0.0)
        across, down = pair_sums(a, b, left, right, -2.3, first)
        assert np.abs(across - kept.sum(axis=1)).max() < 1e-15 * whole
        assert np.abs(down - kept.sum(axis=0)).max() < 1e-15 * whole
