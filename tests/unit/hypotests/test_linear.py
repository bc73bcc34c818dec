"""Methods that are linear in the number of cases ask the engine for so many pairs, and keep so little."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal._arrays.rows import first_array
from wellcal.engines import Engine, Tiled
from wellcal.hypotests import (
    METHODS,
    Block,
    DistributionFree,
    Exact,
    MeanEmbedding,
    Method,
    Omnibus,
    Regularised,
)
from wellcal.hypotests import setup as setups
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein

pytestmark = pytest.mark.filterwarnings("ignore:with n_resamples")

KERNEL = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)

LINEAR: dict[str, Method] = {
    "cme": MeanEmbedding(),
    "cme, chi2": MeanEmbedding(reference="chi2"),
    "regularised": Regularised(),
    "omnibus without pairs": Omnibus(pairs=False),
    "exact, cme": Exact(statistic="cme"),
    "exact, block": Exact(statistic="block", block_size=2),
    "block": Block(16),
    "distribution_free": DistributionFree(),
}
"""All of them, and for those with blocks a fixed size."""

AT_LOCATIONS = [MeanEmbedding(), Regularised(), Omnibus(pairs=False)]


@pytest.fixture(autouse=True)
def no_room_for_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates beside these tests are linear from the first case on, not only for many."""
    monkeypatch.setattr(setups, "LINEAR_ESTIMATE_BUDGET", 0.0)


class Counting(Engine):
    """Counts pairs of cases, and values at locations, that are asked for."""

    name = "counting"

    def __init__(self) -> None:
        self.pairs = 0
        self.elsewhere = 0

    def triangle(self, problem: Any) -> Any:
        self.pairs += problem.n * (problem.n - 1) // 2
        return Tiled(threads=1).triangle(problem)

    def blocks(self, problem: Any, block_size: int) -> Any:
        self.pairs += problem.n // block_size * (block_size * (block_size - 1) // 2)
        return Tiled(threads=1).blocks(problem, block_size)

    def rectangle(self, form: Any, ops: Any, a: Any, b: Any) -> Any:
        self.elsewhere += len(first_array(a)) * len(first_array(b))
        return super().rectangle(form, ops, a, b)

    def map_items(self, problem: Any, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        self.pairs += problem.n * (problem.n - 1) // 2
        return super().map_items(problem, work, items)


def case(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    mu = np.sort(rng.normal(size=n))
    return rng.normal(mu), wc.Normal(mu, np.ones(n))


def run(method: Any, n: int, **options: Any) -> Any:
    return wc.calibration_test(*case(n), method=method, n_resamples=19, rng=0, **options)


def asked(method: Any, n: int) -> int:
    engine = Counting()
    float(run(method, n, engine=engine, kernel=KERNEL).estimate)
    return engine.pairs + engine.elsewhere


@pytest.mark.parametrize("method", [MeanEmbedding(reference="chi2"), Regularised()], ids=lambda m: m.name)
def test_an_estimate_beside_the_test_waits_until_it_is_asked_for(method: Method) -> None:
    engine = Counting()
    result, other = (run(method, 300, engine=engine, kernel=KERNEL) for _ in range(2))
    assert engine.pairs == 0
    travelled = pickle.loads(pickle.dumps(result))
    visited = engine.pairs
    assert visited > 0, "what travels is the number, and not what it is made of"
    assert travelled.estimate == result.estimate
    assert travelled.effect_size == result.effect_size
    assert engine.pairs == visited
    y, pred = case(300)
    assert float(other.estimate) == float(wc.skce(y, pred, kernel=KERNEL))
    assert result == other


@pytest.mark.parametrize("method", LINEAR.values(), ids=LINEAR)
def test_what_is_asked_of_the_engine_grows_with_the_number_of_cases(method: Method) -> None:
    few, many = asked(method, 4096), asked(method, 16384)
    assert few > 0
    assert many <= 4.1 * few
    assert many <= 300 * 16384


def test_a_quadratic_method_would_be_noticed() -> None:
    assert asked(METHODS["exact"](), 2048) > 3.9 * asked(METHODS["exact"](), 1024)


def test_auto_is_linear_for_many_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the budget for pairs is spent much earlier."""
    monkeypatch.setattr("wellcal.hypotests.automatic.PAIRS_BUDGET", 1e6)
    found = []
    for n in (4096, 16384):
        engine = Counting()
        result = run("auto", n, engine=engine, kernel=KERNEL)
        assert "linear" in result.provenance["chosen"]
        assert result.estimate.estimator == "block"
        found.append(engine.pairs + engine.elsewhere)
    assert found[1] <= 4.1 * found[0]


@pytest.mark.parametrize(
    "method", [MeanEmbedding(), Regularised(), Omnibus(pairs=False)], ids=lambda m: m.name
)
def test_the_estimate_says_that_it_comes_from_blocks(method: Method) -> None:
    result = run(method, 4096)
    assert result.estimate.estimator == "block"
    assert result.estimate.provenance["block_size"] == 256
    assert result.estimate.provenance["blocks"] == 16
    assert result.estimate.provenance["shuffled"] is True
    assert "16 blocks of 256 cases in random order" in repr(result)
    assert result.estimate.standard_error > 0.0
    few = run(method, 500)
    assert few.estimate.estimator == "unbiased"
    assert float(few.estimate) == float(wc.skce(*case(500)))


def test_the_estimate_of_sorted_cases_is_unbiased() -> None:
    """Cases sorted by prediction, and wrong by an amount that follows it: neighbours are wrong alike."""
    n = 2048
    mu = np.linspace(-3.0, 3.0, n)
    y = mu + np.sin(4.0 * mu)
    pred = wc.Normal(mu, np.ones(n))
    whole = wc.skce(y, pred, kernel=KERNEL)
    found = wc.calibration_test(y, pred, method="cme", n_resamples=19, rng=0, kernel=KERNEL)
    neighbours = wc.skce(y, pred, kernel=KERNEL, estimator="block", block_size=256)
    off = abs(float(found.estimate) - float(whole))
    assert off < 4.0 * found.estimate.standard_error
    assert off < 0.05 * abs(float(neighbours) - float(whole))
    assert found.effect_size == pytest.approx(float(found.estimate) / _mean_diagonal(y, pred), rel=1e-12)


def _mean_diagonal(y: Any, pred: Any) -> float:
    """Mean of h_ii from the two estimators: n^2 SKCE_b = n (n - 1) SKCE_u + sum of h_ii."""
    n = len(y)
    biased = float(wc.skce(y, pred, kernel=KERNEL, estimator="biased"))
    return n * biased - (n - 1) * float(wc.skce(y, pred, kernel=KERNEL))


def test_blocks_are_mean_estimates_without_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over many data sets the mean of block estimates is that over all pairs, within its standard error."""
    monkeypatch.setattr(setups, "LINEAR_ESTIMATE_BUDGET", 1.0)
    monkeypatch.setattr(setups, "LARGEST_BLOCK", 16)
    rng = np.random.default_rng(3)
    differences = []
    for _ in range(60):
        mu = rng.normal(size=256)
        setup = setups.make_setup(rng.normal(mu + 0.4), wc.Normal(mu, np.ones(256)), KERNEL)
        whole = float(setup.estimate)
        blocks = replace(setup, linear=True).estimate
        assert (blocks.provenance["blocks"], blocks.provenance["shuffled"]) == (16, True)
        differences.append(float(blocks) - whole)
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    assert abs(np.mean(differences)) < 4.0 * error


@pytest.mark.parametrize(
    "method", [MeanEmbedding(), Regularised(), Omnibus(pairs=False)], ids=lambda m: m.name
)
def test_memory_grows_with_the_number_of_cases(method: Method) -> None:
    def peak(n: int) -> float:
        y, pred = case(n)
        tracemalloc.start()
        try:
            wc.calibration_test(y, pred, method=method, n_resamples=19, rng=0, kernel=KERNEL)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, many = peak(10_000), peak(40_000)
    assert many < 4.4 * few
    assert many < 40_000 * 8 * 400
