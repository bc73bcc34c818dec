"""The published numbers are all there."""

from itertools import product

import pytest

from reproduction import published


def test_estimators():
    cells = published.estimator_errors()
    assert set(cells) == set(
        product(published.MODELS, published.DIMENSIONS, published.SIZES, published.ESTIMATORS)
    )
    assert cells["uncalibrated", 10, 1024, "SKCE (B = n)"].variance == 9.916205693537298e-6


def test_decisions():
    cells = published.decision_errors()
    assert set(cells) == set(
        product(published.MODELS, published.DIMENSIONS, published.SIZES, published.TESTS)
    )
    assert cells["calibrated", 1, 16, "CME"].rate == 0.882
    assert all(cell.errors == pytest.approx(500 * cell.rate) for cell in cells.values())


def test_friedman():
    cells = published.friedman()
    assert {data for data, _, _ in cells} == {"train", "test"}
    assert {statistic for _, _, statistic in cells} == set(published.STATISTICS)
    assert len(cells) == 2 * 21 * 6
    assert cells["train", 100, "MSE"].mean == 12.834374
