"""Sizes and intervals on both sides of a trend: they hold the truth, whatever the other side is like."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special

import wellcal as wc
from wellcal.hypotests.findings.claims import Claims, Found
from wellcal.hypotests.findings.draws import DrawClaims
from wellcal.hypotests.findings.families import claims_of
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.findings.joint import CorrelationTrends, SpreadTrends
from wellcal.hypotests.findings.scalars import ScalarClaims
from wellcal.hypotests.findings.splits import Summary, log_spread_of
from wellcal.hypotests.findings.trends import spreads, trend_finding
from wellcal.hypotests.findings.vectors import VectorClaims
from wellcal.measures.wording import (
    Told,
    error_told,
    number_told,
    percent,
    ratio_told,
    shares_apart,
    shift_told,
)

FOUND = Found(0.0, 0.0, 1.0, 2.01, 100, 1e-6, 9.0)
SETS, N = 12, 300

Design = Callable[[np.random.Generator], tuple[Finding, tuple[float, float]]]
"""From random numbers to what is told of a trend, and the truth above 0 and below."""


def told(claims: Claims, targets: np.ndarray, name: str) -> Finding:
    found = claims.tell({name: FOUND}, defaultdict(lambda: FOUND), targets)
    return next(finding for finding in found if finding.by is not None)


def by_mean(claims: Claims | None) -> Claims:
    """Claims that tell cases by the predicted mean alone: predicted spreads have the same sides, in turn."""
    assert isinstance(claims, (ScalarClaims, DrawClaims))
    claims.summaries = claims.summaries[:1]
    return claims


def centres(rng: np.random.Generator) -> np.ndarray:
    """Centres with a gap about 0, so that each cut in it makes the same sides."""
    mu = rng.normal(size=N)
    return mu + 0.5 * np.sign(mu)


def numbers(rng: np.random.Generator) -> tuple[Finding, tuple[float, float]]:
    """Spreads that are a tenth of the true ones above 0, and 2.5 of them below."""
    mu = centres(rng)
    claims = by_mean(claims_of(wc.Normal(mu, np.where(mu > 0.0, 0.1, 2.5)), False))
    return told(claims, mu + rng.normal(size=N), "width 1"), (0.1, 2.5)


def numbers_by_spread(rng: np.random.Generator) -> tuple[Finding, tuple[float, float]]:
    """Spreads that are too small go with means that are, too."""
    mu, wide = rng.normal(size=N), rng.random(N) < 0.5
    claims = claims_of(wc.Normal(mu, np.where(wide, 2.0, 0.5)), False)
    assert claims is not None
    return told(claims, np.where(wide, 1.0, 1.5) * mu + rng.normal(size=N), "width 1"), (2.0, 0.5)


def vectors(rng: np.random.Generator) -> tuple[VectorClaims, np.ndarray, np.ndarray]:
    """Unit spreads, and true ones that are ten times as large where the second centre is above 0, with bias.

    Residuals have a correlation of .8 there, and of -.6 below.
    """
    mu = np.stack([rng.normal(size=N), centres(rng)], axis=1)
    above = mu[:, 1] > 0.0
    first, other = rng.normal(size=(2, N))
    both = np.where(above, [first, 0.8 * first + 0.6 * other], [first, -0.6 * first + 0.8 * other])
    claims = claims_of(wc.DiagonalNormal(mu, np.ones((N, 2))), False)
    assert isinstance(claims, VectorClaims)
    return claims, mu, mu + (np.where(above, 10.0, 0.4) * (both + above)).T


def of_another_coordinate(rng: np.random.Generator) -> tuple[Finding, tuple[float, float]]:
    claims, _, y = vectors(rng)
    return told(SpreadTrends(claims), y, "0 1"), (0.1, 2.5)


def of_correlations(rng: np.random.Generator) -> tuple[Finding, tuple[float, float]]:
    claims, mu, y = vectors(rng)
    trends = CorrelationTrends(claims, lambda size: rng.normal(mu, size=(size, *mu.shape)))
    return told(trends, y, "0 1 1"), (0.8, -0.6)


def samples(draws: bool) -> Design:
    """Points of normals: true spreads are ten times as large above 0, where there is a bias, too."""

    def design(rng: np.random.Generator) -> tuple[Finding, tuple[float, float]]:
        mu = 20.0 * centres(rng)
        above = mu > 0.0
        spread = np.where(above, 10.0, 1.0)
        noise = rng.normal(size=(N, 20)) if draws else special.ndtri((np.arange(20) + 0.5) / 20)
        points = mu[:, None] + (spread * np.where(above, 0.2, 2.5))[:, None] * noise
        y = mu + spread * (above + rng.normal(size=N))
        pool = np.concatenate([points, y[:, None]], axis=1) if draws else points
        claims = by_mean(claims_of(wc.Samples(pool, kind="draws" if draws else "atoms"), draws))
        width = 1.0 if draws else float(np.std(noise))
        return told(claims, y, "width 1"), (0.2 * width, 2.5 * width)

    return design


@pytest.mark.parametrize(
    "design",
    [
        pytest.param(numbers, id="numbers"),
        pytest.param(numbers_by_spread, id="numbers with a bias"),
        pytest.param(of_another_coordinate, id="another coordinate"),
        pytest.param(of_correlations, id="correlations"),
        pytest.param(samples(False), id="points"),
        pytest.param(samples(True), id="draws"),
    ],
)
def test_both_sides_of_a_trend_hold_the_truth(design: Design) -> None:
    """One side spreads much further than the other, or has a bias: nothing of it is told of the other."""
    held: list[bool] = []
    for seed in range(SETS):
        finding, (above, below) = design(np.random.default_rng(seed))
        first, other = (above, below) if " above " in finding.sentence else (below, above)
        assert finding.interval is not None
        assert finding.elsewhere is not None
        held.append(finding.interval[0] <= first <= finding.interval[1])
        held.append(finding.elsewhere[1] <= other <= finding.elsewhere[2])
    assert np.mean(held) >= 0.8


# -- digits ------------------------------------------------------------------------------------------------


def read(words: str) -> list[float]:
    return [
        float(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", words)
    ]


def lies_within(words: Told) -> bool:
    ends, size = read(words.ends), read(words.size)[0]
    return len(ends) != 2 or ends[0] <= size <= ends[1]


@pytest.mark.parametrize("half", [1e-4, 1e-3, 1e-2, 0.1])
def test_a_size_lies_within_its_interval_as_it_is_told(half: float) -> None:
    rng = np.random.default_rng(0)
    for value in rng.uniform(0.011, 0.985, 40):
        ends = value - half * rng.uniform(0.1, 1.0) * value, value + half * rng.uniform(0.1, 1.0) * value
        assert lies_within(number_told(value, ends, percent)), (value, ends)
        assert lies_within(shares_apart(value, ends, 0.5)), (value, ends)
        for factor in (0.005, 1.0, 30.0, 2000.0):
            size, interval = factor * value, (factor * ends[0], factor * ends[1])
            assert lies_within(number_told(size, interval)), (size, interval)
            assert lies_within(shift_told(size, interval)), (size, interval)
            assert lies_within(shift_told(-size, (-interval[1], -interval[0]))), (size, interval)
            assert lies_within(ratio_told(1.0 + size, (1.0 + interval[0], 1.0 + interval[1])))
        assert lies_within(ratio_told(value, ends)), (value, ends)
        assert lies_within(error_told("spreads", value, ends)), (value, ends)


def test_sizes_of_trends_have_the_digits_of_their_intervals() -> None:
    """They were told as 99% (98.6% to 98.7%)."""
    rng = np.random.default_rng(0)
    mu = rng.normal(size=4000)
    z = rng.normal(size=4000) / np.where(mu > 0.0, 0.0132, 2.5)
    finding = trend_finding(spreads(log_spread_of), z, [Summary("predicted mean", mu)], 2.0, 1e-6)
    assert finding is not None
    first, other = re.findall(r"([\d.]+)(?:%| times) too \w+ \(([\d.]+)%? to ([\d.]+)", finding.sentence)
    for size, low, high in (first, other):
        assert float(low) <= float(size) <= float(high)
    assert first[0].startswith("98.")
