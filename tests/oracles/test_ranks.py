"""Ranks against those of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from wellcal.measures.ranks import average_ranks, middle_ranks


@pytest.mark.parametrize("shape", [(1,), (50,), (4, 7), (3, 1), (2, 3, 9)])
@pytest.mark.parametrize("digits", [0, 1, 12])
def test_equal_values_share_the_mean_of_their_ranks(shape: tuple[int, ...], digits: int) -> None:
    values = np.random.default_rng(len(shape)).normal(size=shape).round(digits)
    ranks = stats.rankdata(values, axis=-1)
    assert_array_equal(average_ranks(values), ranks)
    assert_array_equal(middle_ranks(values), (ranks - 0.5) / shape[-1])
