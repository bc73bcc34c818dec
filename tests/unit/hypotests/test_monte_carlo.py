"""p-values from ranks among exchangeable sets."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from wellcal.hypotests.parts.part import Evaluated
from wellcal.hypotests.pvalues import (
    monte_carlo_pvalue,
    rank_pvalues,
    sequential_pvalue,
    smallest_pvalue,
    tie_width,
)
from wellcal.hypotests.resampling.components import smallest_ranks

values = arrays(np.float64, st.integers(1, 30), elements=st.integers(-5, 5).map(float))
law = settings(max_examples=50, derandomize=True, deadline=None)


@law
@given(values)
def test_ranks_are_shares_of_sets(x: np.ndarray) -> None:
    expected = [np.count_nonzero(x >= value) / len(x) for value in x]
    np.testing.assert_array_equal(rank_pvalues(x), expected)
    if len(x) > 1:
        assert rank_pvalues(x)[0] == pytest.approx(monte_carlo_pvalue(x[0], x[1:]))


@law
@given(values, st.randoms(use_true_random=False))
def test_sets_are_treated_alike(x: np.ndarray, random: object) -> None:
    order = np.random.default_rng(len(x)).permutation(len(x))
    np.testing.assert_array_equal(rank_pvalues(x[order]), rank_pvalues(x)[order])
    parts = [Evaluated("a", 1.0, x), Evaluated("b", 0.5, -x)]
    turned = [part._replace(values=part.values[order]) for part in parts]
    np.testing.assert_allclose(smallest_ranks(turned).pvalues, smallest_ranks(parts).pvalues[order])


@law
@given(values, st.floats(1e-3, 1.0))
def test_ranks_are_valid(x: np.ndarray, level: float) -> None:
    """Whatever the values: a set at random has p <= a with probability at most a."""
    assert np.count_nonzero(rank_pvalues(x) <= level) <= level * len(x)
    parts = [Evaluated("a", 1.0, x), Evaluated("b", 0.3, np.abs(x)), Evaluated("c", 1.0, -x)]
    assert np.count_nonzero(smallest_ranks(parts).pvalues <= level) <= level * len(x)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e12])
def test_rounding_makes_ties(scale: float) -> None:
    x = scale * np.array([1.0, 1.0 + 4e-16, 1.0 - 4e-16, 0.5, 2.0])
    np.testing.assert_array_equal(rank_pvalues(x), [0.8, 0.8, 0.8, 1.0, 0.2])
    assert monte_carlo_pvalue(x[0], x[1:]) == 0.8
    assert rank_pvalues(scale * np.array([1.0, 1.0 + 1e-6]))[0] == 1.0
    assert rank_pvalues(scale * np.array([1.0, 1.0 - 1e-6]))[0] == 0.5


def test_infinite_values_have_a_rank() -> None:
    x = np.array([np.inf, 1.0, -np.inf, np.inf])
    np.testing.assert_array_equal(rank_pvalues(x), [0.5, 0.75, 1.0, 0.5])
    assert monte_carlo_pvalue(np.inf, x) == 3 / 5
    assert tie_width(np.array([np.inf, 2.0])) == 2e-10
    assert tie_width(np.array([np.inf])) == 0.0


@pytest.mark.parametrize("call", [rank_pvalues, lambda x: monte_carlo_pvalue(x[0], x[1:])])
def test_values_that_are_no_numbers_are_refused(call: object) -> None:
    for bad in ([np.nan, 1.0, 2.0], [1.0, np.nan, 2.0]):
        with pytest.raises(ValueError, match="the statistic is nan for some targets"):
            call(np.array(bad))  # type: ignore[operator]
    with pytest.raises(ValueError, match="nan"):
        sequential_pvalue(np.array([1.0, np.nan, 2.0]), 1)


def test_weights_divide() -> None:
    least = smallest_pvalue([(1.0, np.array([0.3, 0.6])), (0.5, np.array([0.1, 0.4])), (2.0, np.ones(2))])
    np.testing.assert_allclose(least, [0.2, 0.5])


def test_one_part_keeps_its_order() -> None:
    x = np.array([3.0, 1.0, 2.0, 2.0, 7.0, 2.5])
    np.testing.assert_array_equal(smallest_ranks([Evaluated("a", 0.5, x)]).pvalues, rank_pvalues(x))


# -- early stopping ---------------------------------------------------------------------------------


def by_definition(x: np.ndarray, stop_after: int) -> tuple[float, int] | None:
    """Besag and Clifford: draw until h exceedances, p = h / l."""
    count = 0
    for drawn, value in enumerate(x[1:], start=1):
        count += value >= x[0]
        if count == stop_after:
            return stop_after / drawn, drawn
    return None


@law
@given(values, st.integers(1, 6))
def test_stopping_is_by_definition(x: np.ndarray, stop_after: int) -> None:
    assert sequential_pvalue(x, stop_after) == by_definition(x, stop_after)


@pytest.mark.parametrize("stop_after", [1, 2, 3])
@pytest.mark.parametrize("pattern", [[0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 2, 3]], ids=["no ties", "ties"])
def test_stopping_early_is_valid(stop_after: int, pattern: list[int]) -> None:
    """All orders of R + 1 exchangeable values: P(p <= a) <= a at every attainable a."""
    found: list[Fraction] = []
    for order in permutations(pattern):
        x = np.array(order, dtype=float)
        early = by_definition(x, stop_after)
        assert sequential_pvalue(x, stop_after) == early
        if early is None:
            found.append(Fraction(1 + int(np.count_nonzero(x[1:] >= x[0])), len(x)))
        else:
            found.append(Fraction(stop_after, early[1]))
    for level in set(found):
        assert Fraction(sum(p <= level for p in found), len(found)) <= level
