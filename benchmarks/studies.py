"""Rejection rates of tests over simulated data sets, by processes, with fixed seeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

ALPHA = 0.05
SEED = 20261115  # fixed before the first run

Draw = Callable[[int, np.random.Generator], Any]
Tests = dict[str, Callable[..., float]]


@dataclass(frozen=True)
class Rate:
    """A rejection rate over data sets."""

    rejected: int
    total: int

    @property
    def value(self) -> float:
        return self.rejected / self.total

    def within(self, probability: float, alpha: float, *, upper_only: bool = False) -> bool:
        """Whether a binomial of this probability gives such a number of rejections, at `alpha`."""
        above = stats.binom.sf(self.rejected - 1, self.total, probability)
        if upper_only:
            return above >= alpha
        return min(above, stats.binom.cdf(self.rejected, self.total, probability)) >= 0.5 * alpha

    def __str__(self) -> str:
        return f"{self.value:.3f}"


def rejection_rates(
    key: tuple[Any, ...], draw: Draw, n: int, tests: Tests, repetitions: int, workers: int | None = None
) -> dict[str, Rate]:
    """Share of data sets on which each test rejects at alpha = 0.05.

    Data set r of a study has a generator of its own, made from the seed, the `key` and r: results do not
    depend on the number of workers or on the other tests.
    """
    jobs = [(key, r) for r in range(repetitions)]
    run = partial(_one, draw=draw, n=n, tests=tests)
    count = workers or len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(count, initializer=_one_thread) as pool:
        found = list(pool.map(run, jobs, chunksize=max(1, repetitions // (count * 16))))
    return {name: Rate(sum(p[k] <= ALPHA for p in found), repetitions) for k, name in enumerate(tests)}


def generators(key: Iterable[Any], r: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Generators for the data set and for the tests."""
    words = [SEED, r, *(int.from_bytes(str(part).encode(), "little") for part in key)]
    data, tests = np.random.SeedSequence(words).spawn(2)
    return np.random.default_rng(data), np.random.default_rng(tests)


def _one(job: tuple[tuple[Any, ...], int], *, draw: Draw, n: int, tests: Tests) -> list[float]:
    for_data, for_tests = generators(*job)
    y, pred = draw(n, for_data)
    return [
        test(y, pred, rng=child)
        for test, child in zip(tests.values(), for_tests.spawn(len(tests)), strict=True)
    ]


def _one_thread() -> None:
    """Each process keeps to one core."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
