"""The block test: layout of blocks, edge cases, what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wellcal as wc
from wellcal.hypotests.methods.block import Block
from wellcal.hypotests.setup import Setup, make_setup


def case(n: int = 30, seed: int = 1) -> Setup:
    rng = np.random.default_rng(seed)
    mu = rng.normal(size=n)
    return make_setup(rng.normal(mu) + 0.3, wc.Normal(mu, np.ones(n)), rng=5)


@pytest.mark.parametrize(
    ("method", "n", "layout"),
    [
        (Block(), 30, (5, 6, 0)),
        (Block("sqrt"), 40, (6, 6, 4)),
        (Block(2), 31, (2, 15, 1)),
        (Block(lambda n: n // 3), 30, (10, 3, 0)),
        (Block(n_blocks=7), 30, (4, 7, 2)),
        (Block(n_blocks=np.int64(12)), 30, (2, 12, 6)),
    ],
)
def test_layout(method: Block, n: int, layout: tuple[int, int, int]) -> None:
    found = method.run(case(n)).provenance
    assert (found["block_size"], found["blocks"], found["dropped"]) == layout


def test_estimate_is_that_of_skce() -> None:
    setup = case(31)
    expected = wc.skce(setup.targets, setup.predictions, kernel=setup.kernel, estimator="block", block_size=4)
    outcome = Block(4).run(setup)
    assert outcome.estimate is not None
    assert float(outcome.estimate) == pytest.approx(float(expected), rel=1e-11)
    assert outcome.statistic == pytest.approx(float(expected) / expected.standard_error, rel=1e-10)
    assert outcome.estimate.provenance["dropped"] == 3


def test_growing_blocks_agree_whichever_way_they_are_named() -> None:
    assert (
        Block("sqrt").run(case()).pvalue
        == Block(5).run(case()).pvalue
        == Block(math.isqrt).run(case()).pvalue
    )


def test_shuffling_is_another_order_of_the_same_cases() -> None:
    plain, shuffled = Block(2).run(case()), Block(2, shuffle=True).run(case())
    assert plain.statistic != shuffled.statistic
    assert shuffled.statistic == Block(2, shuffle=True).run(case()).statistic
    assert shuffled.provenance["shuffled"] is True
    setup = case()
    order = np.random.default_rng(5).permutation(30)
    again = make_setup(setup.targets[order], setup.predictions[order], setup.kernel)
    assert Block(2).run(again).statistic == pytest.approx(shuffled.statistic, rel=1e-10)


def constant_case(y: Any) -> Setup:
    return make_setup(np.array(y), wc.Bernoulli(np.full(len(y), 0.5)))


def test_equal_blocks_take_the_spread_of_pairs() -> None:
    """Four blocks of two, h = 1/2 in each: the standard deviation over blocks would make p zero."""
    outcome = Block(2).run(constant_case([1] * 8))
    assert outcome.statistic == pytest.approx(2.0)
    assert outcome.pvalue == pytest.approx(stats.norm.sf(2.0))
    assert outcome.label == "z"
    assert outcome.provenance["variance"] == "pairs"
    assert "same value" in outcome.provenance["note"]
    student = Block(2, quantiles="t").run(constant_case([1] * 8))
    assert student.pvalue == outcome.pvalue
    assert student.provenance["quantiles"] == "normal"


def test_equal_blocks_below_zero() -> None:
    outcome = Block(2).run(constant_case([1, 0] * 4))
    assert outcome.statistic == pytest.approx(-2.0)
    assert outcome.pvalue == pytest.approx(stats.norm.cdf(2.0))


def test_blocks_that_differ_by_rounding_are_equal() -> None:
    """0.1 + 0.2 is not 0.3: blocks whose values differ in the last digits have no spread."""
    rng = np.random.default_rng(0)
    p = np.tile([0.1, 0.2, 0.7], 20)
    scale = rng.uniform(1.0, 3.0)
    kernel = wc.kernels.ExpDistance(wc.kernels.TotalVariation()) @ wc.kernels.Delta()
    outcome = Block(3).run(make_setup(np.ones(60, int), wc.Bernoulli(p), scale * kernel))
    assert outcome.provenance["variance"] == "pairs"
    assert 0 < outcome.statistic < 20


def test_one_block_is_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match=r'one block of 20 of 30.*at most 15.*variance="pairs"'):
        Block(20).run(case())
    with pytest.raises(ValueError, match="one block"):
        Block(n_blocks=1).run(case())
    with pytest.raises(ValueError, match="one block"):
        Block().run(case(3))
    assert 0 < Block(20, variance="pairs").run(case()).pvalue < 1
    assert 0 < Block(n_blocks=1, null="weighted_chi2").run(case()).pvalue < 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variance": "rows"}, "unknown variance 'rows'; known are blocks, pairs"),
        ({"quantiles": "z"}, "unknown quantiles 'z'; known are normal, t"),
        ({"null": "chi2"}, "unknown null 'chi2'; known are normal, weighted_chi2"),
        ({"block_size": 2, "n_blocks": 2}, "not both"),
        ({"variance": "pairs", "quantiles": "t"}, "degrees of freedom"),
        ({"null": "weighted_chi2", "quantiles": "t"}, "leave them out"),
        ({"null": "weighted_chi2", "variance": "pairs"}, "leave them out"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Block(**options)


@pytest.mark.parametrize("count", [0, 16, 2.5, True])
def test_wrong_number_of_blocks(count: Any) -> None:
    with pytest.raises(ValueError, match=r"n_blocks of 30 cases .* whole number between 1 and 15"):
        Block(n_blocks=count).run(case())


@pytest.mark.parametrize("size", [1, 31, 2.5, "log"])
def test_wrong_block_size(size: Any) -> None:
    with pytest.raises(ValueError, match="block_size"):
        Block(size).run(case())


def test_only_the_weighted_chi_square_resamples() -> None:
    assert not Block().resamples
    assert Block(null="weighted_chi2").resamples
    assert Block(null="weighted_chi2") == Block(null="weighted_chi2")
