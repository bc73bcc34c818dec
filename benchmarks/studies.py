"""Rejection rates of tests over simulated data sets, by processes, with fixed seeds."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.bank.store import slug
from wellcal._arrays.files import write_whole

ALPHA = 0.05
_EXPECTED = "with n_resamples|p = .* is the smallest|n SKCE_u is carried"  # warnings
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

    def between(self, least: float, most: float, alpha: float) -> bool:
        """Whether some probability between two gives such a number of rejections, at `alpha`."""
        above = stats.binom.sf(self.rejected - 1, self.total, most)
        return min(above, stats.binom.cdf(self.rejected, self.total, least)) >= 0.5 * alpha

    def __str__(self) -> str:
        return f"{self.value:.3f}"


def simulate(key: tuple[Any, ...], one: Callable[..., Any], repetitions: int, workers: int = 0) -> list[Any]:
    """``one(for_data, for_tests)`` for each of many data sets, by processes.

    Data set r of a study has generators of its own, made from the seed, the `key` and r: results do not
    depend on the number of workers (0: one for each core; 1: this process) or on other studies. Where a
    folder is kept (`keep_in`), what is in it is not computed again.
    """
    file = kept_file(key, repetitions)
    if file is not None and file.exists():
        return json.loads(file.read_text(encoding="utf-8"))
    found = _simulated(partial(_one, key=key, one=one), repetitions, workers)
    if file is not None:
        write_whole(file, json.dumps(found, default=_plain))
    return found


def _simulated(run: Callable[[int], Any], repetitions: int, workers: int) -> list[Any]:
    if workers == 1:
        return [run(r) for r in range(repetitions)]
    count = workers or len(os.sched_getaffinity(0))
    return list(_pool(count).map(run, range(repetitions), chunksize=max(1, repetitions // (count * 16))))


_KEPT: list[Path] = []  # at most one folder


def keep_in(folder: Path | None) -> None:
    """Keep the results of every cell of a study in a folder, so that a study that is broken off can go on.

    A folder belongs to one state of the code: results do not know what they were computed by.
    """
    _KEPT.clear()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        _KEPT.append(folder)


def kept_file(key: tuple[Any, ...], repetitions: int) -> Path | None:
    """Where the results of a cell are kept, by its key, the seed and the number of data sets."""
    if not _KEPT:
        return None
    exact = hashlib.sha256(repr((SEED, key, repetitions)).encode()).hexdigest()[:8]
    return _KEPT[0] / f"{slug('-'.join(map(str, key)))}-{repetitions}-{exact}.json"


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy as those of Python."""
    return value.tolist()


def rates(
    key: tuple[Any, ...], draw: Draw, n: int, pvalues: Callable[..., dict[str, float]], repetitions: int
) -> dict[str, Rate]:
    """Share of data sets on which each of the p-values of ``pvalues(y, pred, rng=...)`` is at most alpha."""
    found = simulate(key, partial(_pvalues, draw=draw, n=n, pvalues=pvalues), repetitions)
    return {name: Rate(sum(p[name] <= ALPHA for p in found), repetitions) for name in found[0]}


def rejection_rates(
    key: tuple[Any, ...], draw: Draw, n: int, tests: Tests, repetitions: int
) -> dict[str, Rate]:
    """The same for tests that give one p-value each, with a generator of its own for each test."""
    return rates(key, draw, n, partial(_each, tests=tests), repetitions)


def generators(key: Iterable[Any], r: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Generators for the data set and for the tests."""
    words = [SEED, r, *(int.from_bytes(str(part).encode(), "little") for part in key)]
    data, tests = np.random.SeedSequence(words).spawn(2)
    return np.random.default_rng(data), np.random.default_rng(tests)


def _one(r: int, *, key: tuple[Any, ...], one: Callable[..., Any]) -> Any:
    return one(*generators(key, r))


def _pvalues(for_data: Any, for_tests: Any, *, draw: Draw, n: int, pvalues: Any) -> dict[str, float]:
    y, pred = draw(n, for_data)
    return pvalues(y, pred, rng=for_tests)


def _each(y: Any, pred: Any, *, rng: np.random.Generator, tests: Tests) -> dict[str, float]:
    children = rng.spawn(len(tests))
    return {
        name: test(y, pred, rng=child) for (name, test), child in zip(tests.items(), children, strict=True)
    }


@cache
def _pool(count: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context()
    cores = context.SimpleQueue()
    for core in islice(cycle(sorted(os.sched_getaffinity(0))), count):
        cores.put(core)
    return ProcessPoolExecutor(count, context, initializer=_one_core, initargs=(cores,))


def _one_core(cores: Any) -> None:
    """Each process keeps to a core of its own, whatever engine a test takes; none warns of few resamples."""
    import warnings

    os.sched_setaffinity(0, {cores.get()})

    try:
        from threadpoolctl import threadpool_limits
    except ImportError:  # whoever starts the study says it in the environment
        pass
    else:
        threadpool_limits(1)
    warnings.filterwarnings("ignore", message=_EXPECTED)
