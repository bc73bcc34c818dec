"""Competitors take turns, so that a machine that slows down slows all of them."""

from __future__ import annotations

import importlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.competitors import full_matrix_h

AGREEMENT = 1e-12
"""Largest difference between two values, relative to the mean of |h|: the value itself may be near zero."""


@dataclass
class Timing:
    """Value and running times of one competitor on one case."""

    value: float = math.nan
    wall: list[float] = field(default_factory=lambda: [])
    cpu: list[float] = field(default_factory=lambda: [])

    @property
    def best(self) -> float:
        return min(self.wall)

    @property
    def best_cpu(self) -> float:
        return min(self.cpu)

    @property
    def spread(self) -> float:
        """How far the median is above the best, as a fraction: the noise of the machine."""
        return float(np.median(self.wall)) / self.best - 1.0

    def add(self, run: Callable[[], float]) -> None:
        cpu, wall = time.process_time(), time.perf_counter()
        self.value = run()
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch and BLAS on one thread: waiting threads would be counted as work."""
    limits: Any = importlib.import_module("threadpoolctl").threadpool_limits(1)
    torch: Any = sys.modules.get("torch")
    before = None if torch is None else torch.get_num_threads()
    if torch is not None:
        torch.set_num_threads(1)
    try:
        with limits:
            yield
    finally:
        if torch is not None:
            torch.set_num_threads(before)


def take_turns(runs: dict[str, Callable[[], float]], *, budget: float, rounds: int) -> dict[str, Timing]:
    """Time each run once in each round, until it has used its budget of seconds.

    The first round warms up and is not counted, except for a competitor that uses up its budget in it.
    """
    timings = {name: Timing() for name in runs}
    for name, run in runs.items():
        timings[name].add(run)
    used = {name: timing.wall[0] for name, timing in timings.items()}
    again = [name for name in runs if used[name] < budget]
    for name in again:
        timings[name] = Timing()
    for done in range(rounds):
        for name in again:
            if done == 0 or used[name] < budget:
                timings[name].add(runs[name])
                used[name] += timings[name].wall[-1]
    return timings


def mean_magnitude(case: Case, n: int = 500) -> float:
    """Mean of the absolute value of h over the pairs of a few predictions."""
    h = full_matrix_h(case.first(n))
    return float(np.abs(h[~np.eye(len(h), dtype=bool)]).mean())


def check_agreement(values: dict[str, float], magnitude: float) -> float:
    """Largest difference between two values relative to `magnitude`; an error where it is too large."""
    difference = float(np.ptp(list(values.values()))) / magnitude  # NaN if one is, unlike max and min
    if not difference <= AGREEMENT:
        raise AssertionError(
            f"competitors disagree by {difference:.1e} of the mean |h| {magnitude:.3g}: {values}"
        )
    return difference
