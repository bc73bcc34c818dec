"""Global quantities in partitions: ranks, orthogonal columns, totals of classes, alignment."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import dask
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tests.dask.examples import cut, example, in_memory, partitioned

import wellcal as wc
from wellcal.dask.building import as_cases
from wellcal.dask.partitioned import on
from wellcal.dask.parts import parts_of
from wellcal.dask.ranks import levels_of
from wellcal.dask.watching import computed
from wellcal.hypotests.parts import families
from wellcal.measures.ranks import middle_ranks


def same(value: Any) -> Any:
    return value


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.lists(st.integers(-4, 4), min_size=1, max_size=9), min_size=1, max_size=5),
    st.integers(1, 12),
    st.integers(0, 99),
)
def test_levels_are_those_of_one_array(parts: list[list[int]], bucket: int, seed: int) -> None:
    """However cases are cut, wherever cuts between buckets are, and with ties: to the last digit."""
    rng = np.random.default_rng(seed)
    values = [np.stack([np.array(p, dtype=float), rng.normal(size=len(p)).round(1)], axis=1) for p in parts]
    whole = np.concatenate(values)
    sample = whole[rng.integers(len(whole), size=3)]
    with dask.config.set(scheduler="synchronous"):
        found = computed(levels_of([on(same, v) for v in values], len(whole), sample, bucket))
    expected = np.stack([middle_ranks(column) for column in whole.T], axis=1)
    assert_array_equal(np.concatenate(found), expected)


def parts_in_memory_and_not(found: Any, size: Any) -> tuple[Any, Any, Any, Any]:
    y, pred = in_memory(found)
    cases = as_cases(*partitioned(found, size))
    return families.parts_of(pred), parts_of(cases, pred[:50]), pred.check_targets(y), cases


@pytest.mark.parametrize("family", ["normal", "bernoulli", "categorical", "poisson", "vectors"])
def test_sums_of_parts_add_up(family: str) -> None:
    expected, found, targets, cases = parts_in_memory_and_not(example(family, 500), (90, 400, 10))
    sets = np.stack([targets, targets[::-1]])
    total, first = 0.0, 0
    for block, own in zip(computed(cases.blocks), computed(found.own), strict=True):
        here = slice(first, first + len(block.targets))
        total = total + found.make(block.predictions, own).sums(sets[:, here])
        first = here.stop
    assert_allclose(total, expected.sums(sets), rtol=1e-11, atol=1e-10)
    of_all = expected.sums(sets)
    for one, other in zip(found.parts.statistics(of_all), expected.statistics(of_all), strict=True):
        assert (one.name, one.weight) == (other.name, other.weight)
        assert_allclose(one.values, other.values, rtol=1e-9)


def test_columns_that_are_nearly_the_same_stay_orthogonal() -> None:
    """The spread follows the centre but for a few cases: what is new in it is a small part."""
    n = 2000
    rng = np.random.default_rng(0)
    mu = rng.normal(size=n)
    sigma = np.exp(mu)
    sigma[:20] *= 1.02
    found = (rng.normal(mu, sigma), wc.Normal, (mu, sigma))
    expected, parts, _, cases = parts_in_memory_and_not(found, 700)
    levels = computed(parts.own)
    batches = [block.predictions for block in computed(cases.blocks)]
    columns = np.concatenate(
        [parts.make(p, own).columns.columns for p, own in zip(batches, levels, strict=True)]
    )
    assert_allclose(columns.T @ columns / n, np.eye(columns.shape[1]), atol=1e-13)
    assert expected.columns.columns.shape == columns.shape, "the example must keep the spread"
    assert_allclose(columns, expected.columns.columns, atol=1e-9)


def test_predictions_without_spread_are_refused() -> None:
    mu, sigma = np.arange(60.0), np.ones(60)
    sigma[41] = 0.0
    cases = as_cases(cut(mu, 25), (cut(mu, 25), cut(sigma, 25)))
    with pytest.raises(ValueError, match=r"no spread.*leave these cases out"):
        parts_of(cases, wc.Normal(mu[:9], sigma[:9]))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(1, 40))
def test_aligned_cases_are_the_same_cases(sizes: list[int], multiple: int) -> None:
    n = sum(sizes)
    y = np.arange(float(n))
    with dask.config.set(scheduler="synchronous"):
        cases = as_cases(cut(y, tuple(sizes)), (cut(y, tuple(sizes)), 1.0)).aligned(multiple)
        blocks = computed(cases.blocks)
    assert tuple(len(block.targets) for block in blocks) == cases.sizes
    assert_array_equal(np.concatenate([block.targets for block in blocks]), y)
    assert all(start % multiple == 0 for start in cases.starts[:-1])
    assert len(blocks) <= len(sizes)
    assert all(a < b for a, b in pairwise(cases.starts.tolist()))


def test_rows_come_in_the_order_they_are_asked_for() -> None:
    y = np.arange(50.0)
    cases = as_cases(cut(y, (7, 40, 3)), (cut(y, (7, 40, 3)), 1.0))
    wanted = np.array([49, 3, 7, 7, 0, 46, 47])
    found = cases.rows(wanted)
    assert_array_equal(found.targets, wanted)
    assert_array_equal(found.predictions.loc, wanted)
