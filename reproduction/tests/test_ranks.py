"""Ranks among repeats: exact whatever the distribution; cells that cannot fail; errors that are found."""

import math

import numpy as np
import pytest
from scipy import stats

from reproduction.ranks import ALPHA, LINEAR, LOGARITHM, Repeated, asinh_scale, proportion_scale, rank

REPEATS = 99


def ranked(rows, scale=LINEAR, **options):
    return rank({i: Repeated(column[0], column[1:], scale) for i, column in enumerate(rows.T)}, **options)


def heavy_and_dependent(rng):
    """Cells that share a factor, with tails that have no variance."""
    return rng.standard_t(1.5, (REPEATS + 1, 6)) + 3.0 * rng.standard_t(1.5, (REPEATS + 1, 1))


@pytest.mark.parametrize("draw", [heavy_and_dependent, lambda rng: rng.normal(size=(REPEATS + 1, 6))])
def test_exchangeable_rows_fail_at_the_level(draw):
    """Both tests together reject with probability ALPHA at most, and each about as often as it may."""
    rng, count = np.random.default_rng(1), 1000
    cells = pooled = 0
    for _ in range(count):
        found = ranked(draw(rng), group=lambda index: index % 2)
        cells += bool(found.missed)
        pooled += not found.pooled_matched
    for failed in (cells, pooled):
        assert stats.binomtest(failed, count, 0.5 * ALPHA).pvalue > 1e-3


def test_the_published_row_is_treated_like_the_others():
    """Put any other row in its place: the ranks of the pooled statistic are a permutation."""
    rows = np.random.default_rng(2).normal(size=(100, 5))
    pooled = [ranked(np.roll(rows, shift, axis=0)).pooled for shift in range(100)]
    assert sorted(pooled) == pytest.approx(np.arange(1, 101) / 100)


def test_one_cell_far_off_is_named_and_its_bounds_end_before_it():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(200, 20))
    rows[0, 7] = 6.0
    found = ranked(rows)
    assert found.missed == [7]
    cell = found.cells[7]
    assert (cell.below, cell.count, cell.rank_pvalue, cell.corrected) == (199.0, 199, 0.01, 0.005)
    assert cell.low < rows[1:, 7].min() < rows[1:, 7].max() < cell.high < 6.0
    inside = rows.copy()
    inside[0, 7] = cell.high - 1e-9
    assert ranked(inside).missed == []
    inside[0, 7] = cell.high + 1e-9
    assert ranked(inside).missed == [7]


def test_many_small_shifts_show_in_the_pooled_test_alone():
    rows = np.random.default_rng(4).normal(size=(200, 100))
    rows[0] = 1.3 * np.sign(rows[0])
    found = ranked(rows)
    assert found.missed == []
    assert found.pooled == 0.005
    assert not found.matched


def test_a_combination_that_repeats_do_not_have_shows_in_the_pooled_test():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(200, 1)) + 0.05 * rng.normal(size=(200, 8))
    rows[0] = np.tile([1.0, -1.0], 4)
    assert ranked(rows).pooled == 0.005


def test_cells_that_cannot_fail_are_left_out():
    """p-values spread over all of [0, 1]: nothing could be too large or too small for them."""
    rng = np.random.default_rng(6)
    rows = np.column_stack([rng.uniform(size=200), rng.beta(2.0, 200.0, size=200)])
    rows[0] = 1.0, 0.01
    found = ranked(rows, proportion_scale(1000))
    assert found.left_out == [0]
    assert found.cells[0].matched
    assert math.isnan(found.cells[0].corrected)
    rows[0, 1] = 0.2
    assert ranked(rows, proportion_scale(1000)).missed == [1]


def test_a_number_that_is_always_the_same_must_be_that_number():
    rows = np.zeros((200, 3))
    rows[:, 2] = np.random.default_rng(7).binomial(500, 0.3, 200) / 500
    scale = proportion_scale(500)
    assert ranked(rows, scale).matched
    rows[5, 0] = 1 / 500  # one error in one repeat is chance, there and here
    rows[0, 1] = 1 / 500
    assert ranked(rows, scale).matched
    rows[0, 1] = 20 / 500
    assert ranked(rows, scale).missed == [1]
    exact = np.tile([1.0, 2.0], (200, 1))
    assert ranked(exact).matched
    exact[0, 1] = 2.5
    assert ranked(exact).missed == [1]


@pytest.mark.parametrize("scale", [LINEAR, LOGARITHM, asinh_scale(1e-3), proportion_scale(500)])
def test_scales_go_there_and_back(scale):
    values = np.array([0.01, 0.3, 0.9])
    np.testing.assert_allclose(scale.back(scale.there(values)), values, rtol=1e-12)


def test_set_aside_cells_are_placed_and_not_pooled():
    rows = np.random.default_rng(8).normal(size=(200, 5))
    rows[0, 0] = 30.0
    cells = {index: Repeated(column[0], column[1:]) for index, column in enumerate(rows.T)}
    assert not rank(cells).pooled_matched
    found = rank(cells, set_aside=frozenset({0}))
    assert found.pooled_matched
    assert found.missed == [0]


def test_too_few_repeats_to_show_anything_are_refused():
    with pytest.raises(ValueError, match="99 or more"):
        ranked(np.random.default_rng(9).normal(size=(50, 2)))


def test_the_cells_of_one_method_are_pooled_by_themselves():
    """Ten of 200 cells that are all a little off: lost among all, found in their group."""
    rng = np.random.default_rng(10)
    rows = rng.normal(size=(200, 200))
    rows[0, :10] = 2.2
    cells = {index: Repeated(column[0], column[1:]) for index, column in enumerate(rows.T)}
    assert rank(cells).pooled_matched
    found = rank(cells, group=lambda index: index // 10)
    assert found.missed == []
    assert not found.pooled_matched
