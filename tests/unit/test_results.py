"""What an estimate shows and refuses."""

import dataclasses

import numpy as np
import pytest

import wellcal as wc
from wellcal.results import Estimate


def test_float_and_interval():
    estimate = Estimate(0.25, 0.05, "SKCE", "unbiased", 100)
    assert float(estimate) == 0.25
    interval = estimate.confidence_interval()
    assert (interval.low, interval.high) == pytest.approx((0.25 - 1.959964 * 0.05, 0.25 + 1.959964 * 0.05))
    assert interval.level == 0.95
    wider = estimate.confidence_interval(0.99)
    assert wider.low < interval.low < interval.high < wider.high


@pytest.mark.parametrize("level", [0.0, 1.0, -1, 95])
def test_levels_outside_the_unit_interval(level):
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        Estimate(0.25, 0.05).confidence_interval(level)


def test_no_interval_without_a_standard_error():
    with pytest.raises(ValueError, match="no standard error is known for the biased estimator of SKCE"):
        Estimate(0.25, None, "SKCE", "biased").confidence_interval()


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Estimate(0.25).value = 1.0


def test_repr_tells_value_error_kernel_and_scheme():
    rng = np.random.default_rng(0)
    pred = wc.StudentT(4.0, rng.normal(size=20), np.ones(20))
    text = repr(wc.skce(pred.sample(1), pred))
    for part in (
        "SKCE = ",
        "+-",
        "unbiased, 20 cases",
        "kernel: ExpDistance",
        "numerical, estimated error",
        "StudentT",
    ):
        assert part in text


def test_provenance_of_a_closed_form():
    estimate = wc.skce(np.zeros(5), wc.Normal(np.arange(5.0), np.ones(5)))
    assert estimate.provenance["expectations"] == "closed"
    assert estimate.provenance["precision"] == "float64"
    assert "closed form" in estimate.provenance["rules"][0]
    assert "lowered" not in estimate.provenance
