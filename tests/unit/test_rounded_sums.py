"""Sums of rounded probabilities: what rounding explains is divided out, and nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import wellcal as wc
from wellcal.reading import as_cases


def normalised(rows: np.ndarray) -> np.ndarray:
    frame = pd.DataFrame(rows, columns=[f"p_{k}" for k in range(rows.shape[1])]).assign(y=0)
    return np.asarray(as_cases(frame, "y", probs="p_*", normalise=True).pred.class_probs())


@pytest.mark.parametrize("classes", [2, 3, 4, 7, 20])
@pytest.mark.parametrize("decimals", [2, 3, 5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounded_probabilities_are_taken(classes: int, decimals: int, dtype: type) -> None:
    exact = np.random.default_rng(0).dirichlet(np.ones(classes), 2000)
    found = normalised(exact.round(decimals).astype(dtype))
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)
    assert np.abs(found - exact).max() < 0.5 / 10**decimals + min(max(0.005 * classes, 0.01), 0.1)


def test_the_farthest_that_rounding_goes() -> None:
    """Seven classes with two decimals: four units are more than seven halves, and three are not."""
    down = np.array([[0.14] * 6 + [0.12], [0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1]])
    with pytest.raises(wc.RowError, match=r"within 0.035 for normalise=True in row 0: found 0.96"):
        normalised(down)
    down[0, 0] += 0.01
    assert normalised(down)[0].sum() == pytest.approx(1.0, abs=1e-15)


def test_many_classes_do_not_take_everything() -> None:
    """A hundred classes with two decimals may have lost a half: dividing does not restore that."""
    probs = np.zeros((1, 100))
    probs[0, :60] = 0.01
    with pytest.raises(wc.RowError, match=r"within 0.1 for normalise=True in row 0: found 0.6; .*of 100"):
        normalised(probs)


def test_single_precision_at_the_end_of_what_is_taken() -> None:
    probs = np.array([[0.33, 0.33, 0.16, 0.16], [0.34, 0.33, 0.19, 0.16]], dtype=np.float32)
    np.testing.assert_allclose(normalised(probs).sum(axis=1), 1.0, rtol=1e-6)
