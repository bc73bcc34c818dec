"""Predictions known through samples and through quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats

import wellcal.predictions as wp

RNG = np.random.default_rng(9)
N, S = 5, 12
DRAWS = RNG.normal(size=(N, S))


# -- samples ------------------------------------------------------------------------------------------


def test_samples_are_the_empirical_distribution() -> None:
    pred = wp.Samples(DRAWS)
    assert_allclose(pred.mean(), DRAWS.mean(1))
    assert_allclose(pred.variance(), DRAWS.var(1))
    for u in (0.0, 0.01, 0.25, 0.3, 0.5, 0.99, 1.0):
        assert_allclose(pred.quantile(u), np.quantile(DRAWS, u, axis=1, method="inverted_cdf"))
    for i in range(N):
        reference = stats.ecdf(DRAWS[i]).cdf
        assert_allclose(pred.cdf(DRAWS[:, 3])[i], reference.evaluate(DRAWS[i, 3]))
        assert_allclose(pred.cdf(0.1)[i], reference.evaluate(0.1))
    with pytest.raises(ValueError, match=r"u must be numbers between 0 and 1, found -0\.1"):
        pred.quantile(-0.1)
    assert not hasattr(pred, "log_prob")


def test_levels_are_reached_up_to_rounding() -> None:
    pred = wp.Samples(np.arange(1.0, 11.0)[None])
    for k in range(1, 11):
        assert pred.quantile(k / 10) == k
        assert pred.quantile(k * 0.1) == k  # 3 * 0.1 is a little more than 3 / 10


def test_weights_repeat_atoms() -> None:
    weighted = wp.Samples([[3.0, 1.0, 2.0]], weights=[0.5, 0.25, 0.25], kind="atoms")
    repeated = wp.Samples([[3.0, 3.0, 1.0, 2.0]], kind="atoms")
    assert weighted.weights.shape == (1, 3)
    for method in ("mean", "variance", "interquartile_range"):
        assert_allclose(getattr(weighted, method)(), getattr(repeated, method)())
    for u in (0.0, 0.25, 0.26, 0.5, 0.51, 1.0):
        assert weighted.quantile(u) == repeated.quantile(u)
    for y in (0.5, 1.0, 2.5, 3.0):
        assert weighted.cdf(y) == repeated.cdf(y)


def test_rows_of_different_sizes_through_weights() -> None:
    pred = wp.Samples(
        [[4.0, 1.0, 99.0], [2.0, 99.0, -99.0]], [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], kind="atoms"
    )
    assert_allclose(pred.mean(), [2.5, 2.0])
    assert_allclose(pred.quantile(0.0), [1.0, 2.0])
    assert_allclose(pred.quantile(1.0), [4.0, 2.0])
    assert set(pred.sample(0, 200).ravel()) == {1.0, 2.0, 4.0}
    assert_allclose(pred.atom_weights(), pred.weights)
    assert_allclose(wp.Samples(DRAWS).atom_weights(), np.full((N, S), 1 / S))


def test_samples_of_vectors() -> None:
    values = RNG.normal(size=(N, S, 2))
    pred = wp.Samples(values)
    assert pred.event_shape == (2,)
    assert_allclose(pred.mean(), values.mean(1))
    assert_allclose(pred.variance(), values.var(1))
    for k in range(2):
        one = wp.Samples(values[:, :, k]).interquartile_range()
        assert_allclose(pred.interquartile_range()[:, k], one)
    drawn = pred.sample(0)
    assert all(any(np.array_equal(drawn[i], value) for value in values[i]) for i in range(N))
    for method in (pred.cdf, pred.quantile):
        with pytest.raises(TypeError, match="Samples of vectors has no"):
            method(0.5)


def test_samples_are_differentiable() -> None:
    values = torch.tensor(DRAWS, requires_grad=True)
    pred = wp.Samples(values)
    (pred.mean().sum() + pred.quantile(0.5).sum()).backward()
    assert_allclose(values.grad.sum().item(), 2.0 * N)


@pytest.mark.parametrize(
    "values",
    [
        [["ab", "c", "d"], ["e", "f", "g"]],
        [[(0, 1), (1, 2), ()], [(3,), (4,), (5,)]],
        [[{1}, {2}, {3}], [None, "x", 5]],
        np.array([["ab", "c", "d"], ["e", "f", "g"]]),
        np.array([["ab", "c", "d"], ["e", "f", "g"]], dtype=object),
    ],
    ids=str,
)
def test_samples_of_objects(values: Any) -> None:
    pred = wp.Samples(values)
    assert pred.holds_objects
    assert pred.values.shape == (2, 3)
    assert pred.event_shape == ()
    assert pred[1].values[0, 0] == values[1][0]
    assert pred.sample(0).shape == (2,)
    assert pred.sample(0, 4).dtype == object
    y = pred.check_targets([values[0][0], values[1][2]])
    assert y.dtype == object
    assert y.tolist() == [values[0][0], values[1][2]]
    assert_allclose(pred.atom_weights(), 1 / 3)
    weighted = wp.Samples(values, [0.0, 0.0, 1.0], kind="atoms")
    assert weighted.sample(0).tolist() == [values[0][2], values[1][2]]
    for method in ("mean", "variance", "interquartile_range"):
        with pytest.raises(TypeError, match="Samples of objects have no"):
            getattr(pred, method)()


# -- quantiles ----------------------------------------------------------------------------------------

LEVELS = np.array([0.1, 0.25, 0.5, 0.9])
VALUES = np.sort(RNG.normal(size=(N, 4)), axis=1)
QUANTILES = wp.Quantiles(LEVELS, VALUES)


def test_bins() -> None:
    assert_allclose(QUANTILES.bin_probs(), [0.1, 0.15, 0.25, 0.4, 0.1])
    assert isinstance(QUANTILES.bin_probs(), np.ndarray)
    for b in range(4):
        at = VALUES[:, b]
        assert QUANTILES.bins(at).tolist() == [b] * N  # a quantile belongs to the bin below it
        assert QUANTILES.bins(np.nextafter(at, np.inf)).tolist() == [b + 1] * N
    assert QUANTILES.bins(-1e9).tolist() == [0] * N
    assert_allclose(QUANTILES.check_targets(VALUES[:, 0]), VALUES[:, 0])


def test_interpolation_between_quantiles() -> None:
    for b, level in enumerate(LEVELS):
        assert_allclose(QUANTILES.quantile(level), VALUES[:, b], rtol=1e-14)
        assert_allclose(QUANTILES.cdf(VALUES[:, b]), level, rtol=1e-14)
    for u in (0.1, 0.13, 0.4, 0.5, 0.77, 0.9):
        expected = [np.interp(u, LEVELS, row) for row in VALUES]
        assert_allclose(QUANTILES.quantile(u), expected, rtol=1e-13)
        assert_allclose(QUANTILES.cdf(np.array(expected)), u, rtol=1e-13)
    assert_allclose(QUANTILES.quantile(np.full((2, N), 0.4)), np.stack([QUANTILES.quantile(0.4)] * 2))
    for u in (0.05, 0.95):
        with pytest.raises(ValueError, match=r"between the lowest and highest level, 0\.1 and 0\.9"):
            QUANTILES.quantile(u)
    assert_allclose(QUANTILES.cdf(-1e9), 0.1)
    assert_allclose(QUANTILES.cdf(1e9), 0.9)


def test_distribution_function_jumps_where_quantiles_coincide() -> None:
    pred = wp.Quantiles([0.1, 0.4, 0.6, 0.9], [[0.0, 1.0, 1.0, 2.0]])
    assert_allclose(pred.cdf(1.0), 0.6)
    assert_allclose(pred.cdf(1.0 - 1e-9), 0.4, rtol=1e-8)
    assert pred.bins(1.0) == 1
    assert_allclose(pred.quantile(0.5), 1.0)
    one = wp.Quantiles([0.5], [[3.0]])
    assert_allclose(one.cdf(3.0), 0.5)
    assert_allclose(one.quantile(0.5), 3.0)
    assert np.all(np.isfinite(one.sample(0, 100)))


def test_samples_fall_into_bins_with_their_probabilities() -> None:
    size = 40_000
    drawn = QUANTILES.sample(2, size)
    frequencies = np.stack([(QUANTILES.bins(drawn) == b).mean(0) for b in range(5)], axis=1)
    assert_allclose(frequencies, np.tile(QUANTILES.bin_probs(), (N, 1)), atol=5 * np.sqrt(0.25 / size))
    width = VALUES[:, -1] - VALUES[:, -2]
    assert np.all(drawn <= VALUES[:, -1] + width)
    # Uniform in a bin: its mean is the middle.
    for i in range(N):
        inside = drawn[:, i][QUANTILES.bins(drawn)[:, i] == 3]
        low, high = VALUES[i, 2], VALUES[i, 3]
        error = (high - low) / np.sqrt(12 * len(inside))
        assert abs(inside.mean() - 0.5 * (low + high)) < 5 * error


def test_interquartile_range_of_quantiles() -> None:
    wide = wp.Quantiles([0.25, 0.75], VALUES[:, :2])
    assert_allclose(wide.interquartile_range(), VALUES[:, 1] - VALUES[:, 0])
    narrow = wp.Quantiles([0.4, 0.6], VALUES[:, :2])
    assert_allclose(narrow.interquartile_range(), 2.5 * (VALUES[:, 1] - VALUES[:, 0]))
    with pytest.raises(TypeError, match="no two levels span the middle half"):
        wp.Quantiles([0.5], VALUES[:, :1]).interquartile_range()
