"""A report tells one size of an error: that of the finding, and of the yardstick beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import special

import wellcal as wc
from wellcal.hypotests.findings.sizes import surely_not_slight, yardstick_with

N = 400
MU = np.linspace(-2.0, 2.0, N)
RATE = np.linspace(4.0, 8.0, N)
LOGITS = np.random.default_rng(3).normal(0.0, 1.5, (N, 4))

Design = Callable[[np.random.Generator], tuple[Any, Any]]


def _drawn(rng: np.random.Generator, logits: Any) -> Any:
    upto = special.softmax(logits, axis=1).cumsum(axis=1)
    return np.minimum((upto < rng.uniform(size=(len(logits), 1))).sum(axis=1), logits.shape[1] - 1)


# What was predicted over what is true, and predictions that are wrong by just that.
DESIGNS: dict[str, tuple[float, Design]] = {
    "normals": (0.75, lambda rng: (rng.normal(MU, 1.0), wc.Normal(MU, np.full(N, 0.75)))),
    "wide": (1.4, lambda rng: (rng.normal(MU, 1.0), wc.Normal(MU, np.full(N, 1.4)))),
    "vectors": (
        0.75,
        lambda rng: (
            rng.normal(size=(N, 2)),
            wc.DiagonalNormal(np.zeros((N, 2)), np.full((N, 2), 0.75)),
        ),
    ),
    "counts": (1 / 1.3, lambda rng: (rng.poisson(1.3 * RATE), wc.Poisson(RATE))),
    "dispersion": (3.0**-0.5, lambda rng: (rng.negative_binomial(3, 1 / 3, N), wc.Poisson(np.full(N, 6.0)))),
    "binary": (
        0.5,
        lambda rng: (rng.uniform(size=N) < special.expit(MU), wc.Bernoulli(special.expit(2.0 * MU))),
    ),
    "classes": (
        1 / 1.8,
        lambda rng: (_drawn(rng, LOGITS), wc.Categorical(special.softmax(1.8 * LOGITS, axis=1))),
    ),
    "cold": (
        2.0,
        lambda rng: (_drawn(rng, LOGITS), wc.Categorical(special.softmax(0.5 * LOGITS, axis=1))),
    ),
}


def new_outcome(name: str) -> wc.TestResult:
    y, pred = DESIGNS[name][1](np.random.default_rng(0))
    return wc.calibration_test(y, pred, n_resamples=199)


@cache
def outcome(name: str) -> wc.TestResult:
    """Made once for tests that only read it."""
    return new_outcome(name)


@pytest.mark.parametrize("name", DESIGNS)
def test_the_only_finding_is_the_yardstick(name: str) -> None:
    found = outcome(name)
    (told,) = found.findings
    size = found.yardstick
    assert size is not None
    assert told.ratio is not None
    assert size.ratio == told.ratio[0]
    assert {size.low, size.high} == set(told.ratio[1:])
    assert abs(size.low - 1.0) < abs(size.high - 1.0)
    assert size.directed
    assert not size.overall
    true = DESIGNS[name][0]
    assert min(told.ratio[1:]) <= true <= max(told.ratio[1:])


@pytest.mark.parametrize("name", ["normals", "classes", "counts"])
def test_a_stored_result_has_the_same_size(name: str) -> None:
    found = outcome(name)
    again = wc.TestResult.from_json(found.to_json())
    assert again.yardstick == found.yardstick
    assert again.verdict == found.verdict


def test_it_needs_no_kernel_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a finding tells is not computed again."""
    found = new_outcome("normals")
    asked: list[str] = []
    monkeypatch.setattr(wc.Estimate, "yardstick", property(lambda _: asked.append("yardstick")))
    assert found.yardstick is not None
    assert asked == []


def test_several_errors_together_are_no_smaller_than_one_of_them() -> None:
    rng = np.random.default_rng(0)
    skewed = (rng.gamma(2.0, size=N) - 2.0) / 2.0**0.5
    found = wc.calibration_test(MU + skewed, wc.Normal(MU, np.full(N, 0.6)), n_resamples=199)
    kinds = [finding.kind for finding in found.findings]
    assert {"spread", "skew"} <= set(kinds)
    spread = found.findings[kinds.index("spread")]
    size = found.yardstick
    assert size is not None
    assert size.overall
    assert size.sentence.startswith("all in all as far off as a model whose spreads are")
    assert abs(np.log(size.ratio)) >= abs(np.log(spread.ratio[0]))
    # A part that is larger than what KCE says of all: chance, and the part is told.
    large = replace(spread, ratio=(0.2, 0.1, 0.3))
    assert yardstick_with(found.estimate, (large, *found.findings[1:])).ratio == 0.2


@pytest.mark.parametrize("scale", [0.8, 0.1])
def test_what_spreads_that_are_too_large_cannot_be_as_far_off_as(scale: float) -> None:
    """However large they are, a shift of a standard deviation is farther off: spreads too small tell it."""
    rng = np.random.default_rng(0)
    found = wc.calibration_test(MU + rng.normal(1.0, scale, N), wc.Normal(MU, np.ones(N)), n_resamples=199)
    assert {"shift", "spread"} <= {finding.kind for finding in found.findings}
    size = found.yardstick
    assert size is not None
    assert size.overall
    assert not size.directed
    assert size.sentence.startswith("all in all as far off as a model whose spreads are ")
    assert "% too small (" in size.sentence
    assert size.sentence.endswith("), or 10 times too large or more")


def test_an_interval_that_reaches_the_other_side_ends_at_what_is_right() -> None:
    found = outcome("normals")
    unsure = replace(found.findings[0], ratio=(0.97, 0.93, 1.02))
    size = yardstick_with(found.estimate, (unsure,))
    assert (size.ratio, size.low, size.high) == (0.97, 1.0, 0.93)
    assert size.sentence == "as far off as a model whose spreads are 3% too small (0% to 7%)"


@pytest.mark.parametrize("ratio", [0.6, 0.96, 1.04, 1.5])
def test_the_quick_look_agrees(ratio: float) -> None:
    found = outcome("normals")
    findings = (replace(found.findings[0], ratio=(ratio, 0.99 * ratio, 1.01 * ratio)),)
    size = yardstick_with(found.estimate, findings)
    assert surely_not_slight(found.estimate, findings) == (not size.slight)


@pytest.mark.parametrize(
    ("spreads", "side"),
    [((0.5, 0.8), "small"), ((1.9, 1.3), "large"), ((0.6, 1.0), "small"), ((0.5, 1.5), None)],
)
def test_errors_that_differ_between_cases_have_a_direction_where_they_share_it(
    spreads: tuple[float, float], side: str | None
) -> None:
    rng = np.random.default_rng(5)
    mean = rng.normal(0.0, 2.0, 700)
    pred = wc.Normal(mean, np.where(mean > 0.0, *spreads))
    found = wc.calibration_test(rng.normal(mean, 1.0), pred, n_resamples=199)
    (told,) = found.findings
    assert told.kind == "trend of the spread"
    (first, *_), (second, low, high) = (told.size, *told.interval), told.elsewhere
    assert (first, second) == pytest.approx(sorted(spreads, key=lambda s: -abs(np.log(s))), rel=0.15)
    assert low < second < high
    size = found.yardstick
    assert size.sentence.startswith("all in all as far off as a model whose spreads are")
    assert [way for way in ("small", "large") if f"too {way} (" in size.sentence] == (
        [side] if side else ["small", "large"]
    )
    assert wc.TestResult.from_json(found.to_json()).yardstick == size


def test_what_is_known_of_differences_alone_has_no_direction() -> None:
    found = outcome("normals")
    (told,) = found.findings
    trend = replace(told, kind="trend of the spread", ratio=None, elsewhere=None)
    assert not yardstick_with(found.estimate, (trend,)).directed
    assert yardstick_with(found.estimate, (replace(trend, elsewhere=(0.8, 0.7, 0.9)),)).directed


@pytest.mark.parametrize(("spreads", "directed"), [((0.75, 1.0), True), ((0.75, 1.4), False)])
def test_a_coordinate_and_all_of_them_are_told_apart(spreads: tuple[float, float], directed: bool) -> None:
    rng = np.random.default_rng(6)
    mean = rng.normal(size=(400, 2))
    pred = wc.DiagonalNormal(mean, np.tile(spreads, (400, 1)))
    found = wc.calibration_test(rng.normal(mean, 1.0), pred, n_resamples=199)
    assert any(str(told).startswith("coordinate 1: spreads are") for told in found.findings)
    assert found.yardstick.sentence.startswith("all in all as far off as a model whose spreads are")
    assert "% too small (" in found.yardstick.sentence
    assert ("% too large (" in found.yardstick.sentence) != directed


def test_counts_that_are_too_high_everywhere_but_not_alike_have_a_direction() -> None:
    rng = np.random.default_rng(7)
    rate = np.exp(rng.normal(1.0, 0.7, 700))
    y = rng.poisson(rate * np.where(rate > 3.0, 1.5, 1.2))
    found = wc.calibration_test(y, wc.Poisson(rate), n_resamples=199)
    assert "trend of the centre" in {told.kind for told in found.findings}
    assert "means are" in found.yardstick.sentence
    assert "too small (" in found.yardstick.sentence
