"""Findings about spreads say where a few cases carry them, and only there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.hypotests.findings.families import findings_in
from wellcal.hypotests.findings.finding import Finding

N = 500
Data = tuple[Any, Any]


def centres(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(3.0, 2.0, N)


def far_off(y: Any, some: Any, sizes: float) -> Any:
    """Some targets that lie far from where they were."""
    y = y.copy()
    y[some] += sizes * np.resize([1.0, -1.0], len(some)).reshape(-1, *[1] * (y.ndim - 1))
    return y


def normals(rng: np.random.Generator) -> Data:
    mu = centres(rng)
    return far_off(rng.normal(mu), [3, 40, 99, 270], 20.0), wc.Normal(mu, np.ones(N))


def trend(rng: np.random.Generator) -> Data:
    """All of the few have a large predicted mean."""
    mu = centres(rng)
    return far_off(rng.normal(mu), np.argsort(mu)[-40::10], 8.0), wc.Normal(mu, np.ones(N))


def counts(rng: np.random.Generator) -> Data:
    """Four counts that are far too large."""
    mean = rng.gamma(4.0, 1.0, N)
    y = rng.poisson(mean)
    y[[7, 50, 320, 410]] += 30
    return y, wc.Poisson(mean)


def draws(rng: np.random.Generator) -> Data:
    mu = centres(rng)
    y = far_off(rng.normal(mu), [3, 40, 99, 270, 300], 20.0)
    return y, wc.Samples(rng.normal(mu[:, None], 1.0, (N, 99)), kind="atoms")


def vectors(rng: np.random.Generator) -> Data:
    y = far_off(rng.normal(size=(N, 2)), [3, 40, 99, 270], 25.0)
    return y, wc.DiagonalNormal(np.zeros((N, 2)), np.ones((N, 2)))


def narrow(rng: np.random.Generator, by: float = 1.25) -> Data:
    mu = centres(rng)
    return rng.normal(mu, by), wc.Normal(mu, np.ones(N))


def narrow_for_some(rng: np.random.Generator) -> Data:
    mu = centres(rng)
    return rng.normal(mu, np.where(mu > 4.0, 1.5, 1.0)), wc.Normal(mu, np.ones(N))


def overdispersed(rng: np.random.Generator) -> Data:
    mean = rng.gamma(4.0, 1.0, N)
    return rng.poisson(rng.gamma(2.0 * mean, 0.5)), wc.Poisson(mean)


def narrow_draws(rng: np.random.Generator) -> Data:
    mu = centres(rng)
    return rng.normal(mu, 1.3), wc.Samples(rng.normal(mu[:, None], 1.0, (N, 99)), kind="atoms")


def heavy(rng: np.random.Generator) -> Data:
    """Tails that all cases have, and spreads that are too small for most of them."""
    mu = centres(rng)
    return mu + rng.standard_t(4, N), wc.Normal(mu, np.ones(N))


def of_spreads(make: Callable[[np.random.Generator], Data], seed: int) -> list[Finding]:
    found = findings_in(*make(np.random.default_rng(seed)), pooled=False)
    return [one for one in found if one.kind in ("spread", "dispersion", "trend of the spread")]


@pytest.mark.parametrize("make", [normals, trend, counts, draws, vectors])
def test_a_few_cases_that_carry_a_spread_are_told(make: Any) -> None:
    found = of_spreads(make, 1)
    assert found
    for finding in found:
        assert finding.carried in (3, 4, 5)
        words = f", because of {finding.carried} of 500 cases"
        assert str(finding).endswith(words)
        assert finding.short.endswith(words)
        assert finding.ratio is None, "it is no error that all cases have alike"


@pytest.mark.parametrize("make", [narrow, narrow_for_some, overdispersed, narrow_draws, heavy])
def test_spreads_that_are_wrong_in_all_cases_rest_on_none(make: Any) -> None:
    found = [of_spreads(make, seed) for seed in range(2)]
    assert all(found)
    assert all(one.carried is None and "because" not in str(one) for some in found for one in some)


def test_what_is_just_seen_rests_on_all_cases_too() -> None:
    """One case less, and it might not be seen: that is chance."""
    found = [of_spreads(lambda rng: narrow(rng, 1.1), seed) for seed in range(6)]
    told = [one for some in found for one in some]
    assert len(told) > 1
    assert all(one.carried is None for one in told)


def test_the_size_of_an_error_of_few_cases_is_not_that_of_a_model_with_wrong_spreads() -> None:
    y, pred = normals(np.random.default_rng(1))
    found = wc.calibration_test(y[:260], pred[:260], rng=0, n_resamples=99)
    assert found.findings[0].carried == 3
    assert "because of 3 of 260 cases" in found.verdict
    assert found.findings[0].size is not None
    assert found.findings[0].size < 0.6
    assert found.yardstick is not None
    assert found.yardstick.overall
    assert found.yardstick.ratio > 0.8, "most cases are right"
    assert Finding.from_json(found.findings[0].to_json()) == found.findings[0]
