"""A random order in which the place of each thing is a function of its number."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from wellcal._arrays.chunks import limited
from wellcal.hypotests.shuffling import random_order, random_places


@pytest.mark.parametrize("n", [*range(1, 40), 255, 256, 257, 1000, 30_011])
def test_each_place_is_taken_once(n: int) -> None:
    places = random_places(np.arange(n), n)
    assert np.array_equal(np.sort(places), np.arange(n))
    assert np.array_equal(places[random_order(n)], np.arange(n))


def test_some_have_the_places_that_they_have_among_all() -> None:
    numbers = np.random.default_rng(0).integers(0, 10**9, 1000)
    places = random_places(numbers, 10**9)
    assert places.min() >= 0
    assert places.max() < 10**9
    with limited(work=64):
        assert np.array_equal(random_places(numbers[::7], 10**9), places[::7])


def test_neighbours_are_no_more_often_together_than_others() -> None:
    """Pairs at a distance that are in one block of 100: a binomial bound of one in ten thousand each."""
    n, size = 200_000, 100
    block = random_places(np.arange(n), n) // size
    for distance in (1, 2, 447, 448, 1000, 100_000):  # 448 is the base
        together = int(np.sum(block[distance:] == block[:-distance]))
        law = stats.binom(n - distance, (size - 1) / (n - 1))
        assert law.ppf(5e-5) <= together <= law.isf(5e-5)
    assert stats.kstest(random_order(n)[: n // 10] / n, "uniform").pvalue > 1e-4
