"""Sums of rounded probabilities: what rounding explains is divided out, and nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import wellcal as wc
from wellcal.predictions.rounded_sums import decimals_shown, reach_of_rounding, with_sum_one
from wellcal.reading import as_cases


@pytest.mark.parametrize("classes", [2, 3, 4, 7, 20])
@pytest.mark.parametrize("decimals", [2, 3, 5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_whatever_was_rounded_is_taken(classes: int, decimals: int, dtype: type) -> None:
    rng = np.random.default_rng(0)
    exact = rng.dirichlet(np.ones(classes), 2000)
    rounded = exact.round(decimals).astype(dtype)
    assert decimals_shown(rounded) == decimals
    found = with_sum_one(rounded, "probs")
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)
    assert np.abs(found - exact).max() < 0.5 / 10**decimals + reach_of_rounding(classes, decimals)


def test_the_farthest_that_rounding_goes() -> None:
    """Seven classes with two decimals: four units are more than seven halves, and three are not."""
    down = np.array([[0.14] * 6 + [0.12], [0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1]])
    assert down[0].sum() == pytest.approx(0.96)
    with pytest.raises(wc.RowError, match=r"within 0.035 for normalise=True in row 0: found 0.96"):
        with_sum_one(down, "probs")
    down[0, 0] += 0.01
    assert with_sum_one(down, "probs")[0].sum() == pytest.approx(1.0)
    down[1, 0] = 0.3001  # four decimals leave less
    with pytest.raises(wc.RowError, match=r"within 0.01 for normalise=True in row 0: found 0.97"):
        with_sum_one(down, "probs")


def test_many_classes_do_not_take_everything() -> None:
    """A hundred classes with two decimals may have lost a half: that is not told by dividing."""
    probs = np.zeros((1, 100))
    probs[0, :60] = 0.01
    with pytest.raises(wc.RowError, match=r"within 0.1 for normalise=True in row 0: found 0.6; .*of 100"):
        with_sum_one(probs, "probs")


def test_columns_of_seven_classes() -> None:
    names = [f"p_{k}" for k in range(7)]
    rounded = pd.DataFrame([[0.19, 0.09, 0.31, 0.0, 0.16, 0.16, 0.07]], columns=names).assign(y=2)
    cases = as_cases(rounded, "y", probs="p_*", normalise=True)
    assert np.asarray(cases.pred.class_probs()).sum() == pytest.approx(1.0, abs=1e-15)


def test_single_precision_at_the_end_of_what_is_taken() -> None:
    probs = np.array([[0.33, 0.33, 0.16, 0.16], [0.34, 0.33, 0.19, 0.16]], dtype=np.float32)
    np.testing.assert_allclose(with_sum_one(probs, "probs").sum(axis=1), 1.0, rtol=1e-6)
