"""Two workers give the numbers of one process, and one that is lost loses nothing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from numpy.testing import assert_allclose
from tests.dask.examples import SMOOTH, example, in_memory, partitioned

import wellcal as wc
from wellcal._arrays.progress import Progress
from wellcal.engines import Tiled


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as found:
        yield found


@pytest.fixture(autouse=True)
def _on_the_cluster(client: Client) -> Iterator[None]:
    with dask.config.set(scheduler=client):
        yield


@pytest.mark.usefixtures("few_cases_are_many")
@pytest.mark.filterwarnings("ignore:with n_resamples:UserWarning")
def test_two_workers_give_the_numbers_of_one_process(client: Client) -> None:
    found = example("normal", 2500)
    assert len(client.scheduler_info()["workers"]) == 2
    expected = wc.calibration_test(*in_memory(found), rng=1, n_resamples=9)
    result = wc.calibration_test(*partitioned(found, 900), rng=1, n_resamples=9)
    assert result.pvalue == expected.pvalue
    assert result.provenance["pvalues"] == expected.provenance["pvalues"]
    assert_allclose(result.statistic, expected.statistic, rtol=1e-10)
    groups = {"rng": 1, "n_resamples": 19, "max_groups": 1}
    witness = wc.witness(*partitioned(found, 900), **groups)
    assert witness.pvalue == wc.witness(*in_memory(found), **groups).pvalue
    assert_allclose(float(wc.nll(*partitioned(found, 900))), float(wc.nll(*in_memory(found))), rtol=1e-12)


@pytest.mark.usefixtures("few_cases_are_many")
@pytest.mark.filterwarnings("ignore:with n_resamples:UserWarning")
def test_two_workers_tell_the_same_beside_the_pvalue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of cases that do not fit into memory: bets, blocks and squares of vectors travel."""
    monkeypatch.setattr("wellcal.dask.sampling.AT_HAND", 500)
    found = example("vectors", 2150)
    options: dict[str, Any] = {"rng": 1, "n_resamples": 5, "kernel": SMOOTH, "locations": 2}
    expected = wc.calibration_test(*in_memory(found), **options)
    result = wc.calibration_test(*partitioned(found, 1100), **options)
    assert result.pvalue == expected.pvalue
    told = [(float(r.estimate), r.effect_size, r.log_e_value) for r in (result, expected)]
    assert_allclose(*told, rtol=1e-10)
    groups = {"rng": 1, "n_resamples": 19, "max_groups": 1, "locations": 2, "kernel": SMOOTH}
    witness = wc.witness(*partitioned(found, 1100), **groups)
    assert witness.pvalue == wc.witness(*in_memory(found), **groups).pvalue


def test_tasks_on_a_cluster_are_told_and_can_be_ended(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Tasks wait for files: one is written when the run is told, the other when it hears of a task done."""
    monkeypatch.setattr("wellcal.dask.watching.INTERVAL", 0.01)
    heard, go_on, steps = tmp_path / "heard", tmp_path / "go on", list[tuple[str, float, float]]()

    def waits(values: Any) -> Any:
        patience, file = time.monotonic() + 60.0, go_on if len(values) == 50 else heard
        while not file.exists():
            assert time.monotonic() < patience, f"nobody has written {file}"
            time.sleep(0.01)
        return values

    y = da.map_blocks(waits, da.zeros(150, chunks=(100, 50)), dtype=float, meta=np.zeros(0))

    def listen(what: str, done: float, total: float) -> None:
        steps.append((what, done, total))
        heard.touch()
        if 0 < done < total:
            go_on.touch()

    call = {"progress": Progress(listen, interval=-1.0)}
    assert wc.skce(y, (da.zeros(150, chunks=(100, 50)), 1.0), **call).n_samples == 150
    assert {what for what, _, _ in steps} == {"tasks on partitions"}
    assert [total for _, done, total in steps if done == total]
    go_on.unlink()
    heard.unlink()

    def stop(what: str, done: float, total: float) -> None:
        heard.touch()
        if 0 < done < total:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        wc.skce(y, (da.zeros(150, chunks=(100, 50)), 1.0), progress=Progress(stop, interval=-1.0))
    go_on.touch()  # what is being done is done
    patience = time.monotonic() + 30.0
    while any(client.processing().values()) and time.monotonic() < patience:
        time.sleep(0.02)
    assert not any(client.processing().values())


def test_a_worker_that_is_lost_loses_nothing(tmp_path: Path) -> None:
    """The first task that makes a partition kills its worker, in the middle of the computation."""
    found = example("normal", 2000)
    marker, expected = str(tmp_path / "killed"), wc.skce(*in_memory(found), engine=Tiled(threads=1))

    def deadly(values: Any) -> Any:
        if len(values) == 500 and not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return values

    y, _, (mu, sigma) = found
    parts = [da.from_array(a, chunks=500) for a in (y, mu, sigma)]
    estimate = wc.skce(da.map_blocks(deadly, parts[0], dtype=float), (parts[1], parts[2]))
    assert os.path.exists(marker), "a worker must have been killed"
    assert_allclose(float(estimate), float(expected), rtol=1e-10)
    assert_allclose(estimate.standard_error, expected.standard_error, rtol=1e-10)
