"""The cost model counts what happens, and its clock is that of a simulation."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
import pytest
from dask.local import get_sync
from tests.dask.examples import example

import wellcal as wc
import wellcal.dask
from wellcal.dask import costs, effort, partitioned
from wellcal.dask.parquet import RowGroups
from wellcal.problem.target_resampling import BLOCK

MOVING = ("_split", "_counted", "sums_of", "_scattered", "within_sums", "between_sums")


def simulated(costs: Iterable[float], threads: int) -> float:
    """Time at which the last of some tasks ends if each begins, in turn, on the first free thread."""
    free = [0.0] * threads
    for cost in costs:
        heapq.heappush(free, heapq.heappop(free) + cost)
    return max(free)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Tasks, partitions that were read, and bytes that tasks gave to others."""
    found: Counter[str] = Counter()
    load, call = RowGroups.load, partitioned.called

    def counting_load(self: Any) -> Any:
        found["reads"] += self.roles is not None
        return load(self)

    def counting_call(function: Any, *values: Any, **shared: Any) -> Any:
        result = call(function, *values, **shared)
        if function.__name__ in MOVING:
            found["moved"] += size_of(result)
        if function.__name__ == "_levels":
            found["kept"] += size_of(result)
        return result

    def get(graph: Any, keys: Any, **options: Any) -> Any:
        tasks = graph.__dask_graph__() if hasattr(graph, "__dask_graph__") else graph
        found["tasks"] += len(tasks)
        return get_sync(tasks, keys, **options)

    monkeypatch.setattr(RowGroups, "load", counting_load)
    monkeypatch.setattr(partitioned, "called", counting_call)
    with dask.config.set(scheduler=get):
        yield found


def size_of(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, wc.Normal):
        return size_of((value.loc, value.scale))
    return sum(map(size_of, value)) if isinstance(value, (list, tuple)) else 0


def files(folder: Path, n: int, partitions: int) -> Any:
    y, _, (mu, _) = example("normal", n)
    sigma = np.random.default_rng(9).uniform(0.5, 2.0, n)  # all different: nothing travels once for several
    frame = pd.DataFrame({"y": y, "mu": mu, "sigma": sigma})
    frame.to_parquet(folder / "a.parquet", row_group_size=n // partitions)
    return wellcal.dask.read_parquet(folder, y="y", rows=n // partitions, normal=("mu", "sigma"))


@pytest.mark.parametrize(("bucket", "at_hand", "most"), [(10**9, 10**6, 10**9), (20_000, 1000, 150_000)])
@pytest.mark.filterwarnings("ignore:with n_resamples:UserWarning")
def test_what_a_test_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: int, at_hand: int, most: int
) -> None:
    n = 3 * BLOCK
    y, pred = files(tmp_path, n, 3)
    monkeypatch.setattr("wellcal.dask.ranks.BUCKET", bucket)
    monkeypatch.setattr(costs, "BUCKET", bucket)
    monkeypatch.setattr("wellcal.dask.sampling.AT_HAND", at_hand)
    monkeypatch.setattr(costs, "AT_HAND", at_hand)
    monkeypatch.setattr("wellcal.dask.beside.BUCKET", 100_000)  # two tasks for blocks
    monkeypatch.setattr("wellcal.dask.beside.MOST_NUMBERS", most)
    monkeypatch.setattr(costs, "MOST_NUMBERS", most)
    with counted(monkeypatch) as found:
        wc.calibration_test(y, pred, rng=0, n_resamples=25)
    expected = effort(n, partitions=3, threads=1, n_resamples=25)
    assert (found["reads"], found["tasks"]) == (expected.reads, expected.tasks)
    assert found["kept"] == expected.kept
    assert 0.8 * expected.moved <= found["moved"] <= expected.moved


@pytest.mark.parametrize("partitions", [1, 2, 9])
def test_what_skce_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int) -> None:
    n = 10 * partitions
    y, pred = files(tmp_path, n, partitions)
    with counted(monkeypatch) as found:
        wc.skce(y, pred)
    expected = effort(n, partitions=partitions, threads=1, computation="skce")
    assert (found["reads"], found["tasks"]) == (expected.reads, expected.tasks)
    assert found["moved"] == expected.moved


@pytest.mark.parametrize("partitions", [1, 8, 9, 70])
def test_what_a_score_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int) -> None:
    y, pred = files(tmp_path, 2 * partitions, partitions)
    with counted(monkeypatch) as found:
        wc.mse(y, pred)
    expected = effort(2 * partitions, partitions=partitions, threads=1, computation="score")
    assert (found["reads"], found["tasks"]) == (expected.reads, expected.tasks)


@pytest.mark.parametrize(("partitions", "threads"), [(40, 16), (64, 100), (200, 1600)])
def test_the_clock_of_all_pairs_is_that_of_a_simulation(partitions: int, threads: int) -> None:
    """Tasks go to whoever is free: whole rounds are hardly longer, once there are several for each thread."""
    n = 10**6 * partitions
    found = effort(n, partitions=partitions, threads=threads, computation="skce")
    each = (n / partitions) ** 2 * costs.COSTS["pair"]
    pairs = partitions * (partitions - 1) // 2
    clock = simulated([0.5 * each] * partitions + [each] * pairs, threads)
    working = found.seconds - costs.COSTS["task"] * found.tasks
    assert clock <= working <= 1.1 * clock
    assert found.cpu_seconds == pytest.approx(0.5 * n**2 * costs.COSTS["pair"])


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="computation"):
        effort(100, partitions=1, threads=1, computation="witness")
    with pytest.raises(ValueError, match="partitions"):
        effort(100, partitions=0, threads=1)
