"""Sums of bells at even centres, against each bell on its own."""

from __future__ import annotations

import numpy as np
import pytest

from wellcal._arrays.chunks import limited
from wellcal.expectations.even_features import even_sums

ROUNDING = 5e-15
"""Of a value: its exponent is at most 8, and eight products with a number whose exponent is at most 2.5."""


def plain(x: np.ndarray, weights: np.ndarray | None, centres: np.ndarray, lengthscale: float) -> np.ndarray:
    bells = np.exp(-(((x[:, :, None] - centres) / lengthscale) ** 2))
    return bells.mean(axis=1) if weights is None else np.einsum("ns,nsm->nm", weights, bells)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 63, 190])
@pytest.mark.parametrize("given", [True, False])
def test_sums_are_those_of_single_bells(count: int, given: bool) -> None:
    rng = np.random.default_rng(count)
    lengthscale, step, first = 0.7, 0.28, -3.1
    x = rng.uniform(-10.0, 60.0, (37, 11))
    weights = rng.dirichlet(np.ones(11), 37) if given else None
    found = even_sums(x, weights, 0.0, first, count, step, lengthscale)
    exact = plain(x, weights, first + step * np.arange(count), lengthscale)
    assert found.shape == exact.shape
    assert np.abs(found - exact).max() < ROUNDING
    with limited(cache=64):
        assert np.abs(even_sums(x, weights, 0.0, first, count, step, lengthscale) - exact).max() < ROUNDING


def test_small_values_are_right_relative_to_themselves() -> None:
    """Down to where a feature ends: a row without mass elsewhere has nothing else."""
    x = np.linspace(-6.0, 6.0, 300)[:, None]
    centres = -3.0 + 0.4 * np.arange(16)
    exact = plain(x, None, centres, 1.0)
    found = even_sums(x, None, 0.0, -3.0, 16, 0.4, 1.0)
    some = exact > 1e-20
    assert np.all(np.abs(found - exact)[some] <= 1e-13 * exact[some])


def test_atoms_far_away_add_nothing() -> None:
    x = np.array([[-1e300, -1e9, -101.0, 101.0, 1e9, 1e300, np.inf, 0.1]])
    found = even_sums(x, None, 0.0, -6.0, 31, 0.4, 1.0)
    centres = -6.0 + 0.4 * np.arange(31)
    assert np.abs(found - np.exp(-((0.1 - centres) ** 2)) / 8.0).max() < ROUNDING / 8.0


def test_data_far_from_zero_lose_nothing() -> None:
    rng = np.random.default_rng(2)
    away = rng.integers(-64, 64, (20, 9)) / 16.0  # sums with the origin are exact
    there = even_sums(2.0**30 + away, None, 2.0**30, -4.0, 25, 0.4, 1.0)
    assert np.array_equal(there, even_sums(away, None, 0.0, -4.0, 25, 0.4, 1.0))
