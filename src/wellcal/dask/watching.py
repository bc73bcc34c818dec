"""Computing values of Dask's, while whoever listens hears how far it is: on one machine, or on a cluster."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, cast

import dask
from dask.callbacks import Callback

from wellcal._arrays.progress import Progress, reporter

_TASKS = "tasks on partitions"

INTERVAL = 0.3
"""Seconds between two questions to the scheduler of a cluster."""


def computed(tasks: Sequence[Any]) -> list[Any]:
    """Values of Dask's, in one go, by the scheduler that is set: a cluster, threads, or one by one."""
    client = _cluster()
    if client is not None:
        return list(cast("Any", dask).compute(*_watched(client, tasks)))
    with Telling():
        return list(cast("Any", dask).compute(*tasks))


def kept(tasks: Sequence[Any]) -> list[Any]:
    """The same values, computed now and kept where they were computed, for more than one pass."""
    client = _cluster()
    if client is not None:
        return _watched(client, tasks)
    with Telling():
        return list(cast("Any", dask).persist(*tasks))


class Telling(Callback):
    """Whoever listens hears how many tasks are done.

    Schedulers of one machine call it from the thread that waits, so that an error of a listener ends the run.
    """

    def _start_state(self, _graph: Any, state: Any) -> None:
        self.tell, self.done = reporter(), 0
        self.total = len(state["ready"]) + len(state["waiting"])
        self.tell(_TASKS, 0, self.total)

    def _posttask(self, *_task: Any) -> None:
        self.done += 1
        self.tell(_TASKS, self.done, self.total)


# -- a cluster ---------------------------------------------------------------------------------


def _cluster() -> Any:
    """The client of the cluster that computes; None where this machine does by itself."""
    owner: Any = getattr(cast("Any", dask).base.get_scheduler(), "__self__", None)
    return owner if type(owner).__module__.partition(".")[0] == "distributed" else None


def _watched(client: Any, tasks: Sequence[Any]) -> list[Any]:
    """Values that are computed on a cluster, and stay there.

    An error of a listener, or Ctrl-C, ends it on the cluster, too. The scheduler is asked how many tasks are
    left, whosever they are; where it does not answer nothing is told.
    """
    distributed = importlib.import_module("distributed")
    found = list(cast("Any", dask).persist(*tasks))
    futures = distributed.futures_of(found)
    tell, most = reporter(), 0
    try:
        while True:
            try:
                distributed.wait(futures, timeout=INTERVAL)
                break
            except TimeoutError:
                most = _told(tell, client, most)
    except BaseException:
        client.cancel(futures)
        raise
    if most:
        tell(_TASKS, most, most)
    return found


def _told(tell: Progress, client: Any, most: int) -> int:
    """Tell how far the cluster is; the largest number of tasks that were left so far."""

    # Defined here, it travels as it is: a scheduler need not have this package.
    def left(dask_scheduler: Any) -> int:
        waiting = ("waiting", "queued", "processing", "no-worker")
        return sum(task.state in waiting for task in dask_scheduler.tasks.values())

    try:
        count = int(client.run_on_scheduler(left))
    except Exception:  # a scheduler that runs no functions of others, or is too busy: its own page tells
        return most
    if not most:
        tell(_TASKS, 0, max(count, 1))
    most = max(most, count, 1)
    tell(_TASKS, min(most - count, most - 0.5), most)
    return most
