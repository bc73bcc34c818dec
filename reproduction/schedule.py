"""Tasks on processes. Results do not depend on how many there are.

Every process runs one thread, in BLAS too: the order of additions, and with it the last digit, does not
depend on the machine's number of cores, and times are those of one core.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from reproduction.store import Store
from reproduction.tasks import Record, Task

Advance = Callable[[float], None]
"""Called with the cost of tasks that are done."""

_ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def total_cost(tasks: Iterable[Task]) -> float:
    """Expected seconds of all tasks, on one core."""
    return sum(task.cost for task in tasks)


def _silent(cost: float) -> None:
    """Nobody wants to know how far it is."""


def run_tasks(tasks: Sequence[Task], store: Store, pool: Executor, *, advance: Advance | None = None) -> None:
    """Run the tasks whose records are not yet in `store`, and store each as soon as it is known.

    Parameters
    ----------
    tasks
        In any order: the longest is started first, so that the last one to finish is short.
    store
        Where records go.
    pool
        Processes, from :func:`worker_pool`.
    advance
        Called with the cost of each task that is done, those found in the store included.
    """
    report = advance or _silent
    report(sum(task.cost for task in tasks if task.key in store))
    waiting = sorted((task for task in tasks if task.key not in store), key=lambda task: -task.cost)
    for task, record, seconds in _completed(pool, waiting):
        store.add(task.key, record, seconds)
        report(task.cost)


def _completed(pool: Executor, tasks: Iterable[Task]) -> Iterator[tuple[Task, Record, float]]:
    """Tasks with their records and times, as they come."""
    running: dict[Future[tuple[Record, float]], Task] = {
        pool.submit(_timed, task.function, task.arguments): task for task in tasks
    }
    while running:
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield running.pop(future), *future.result()


def _timed(function: Callable[..., Record], arguments: tuple[Any, ...]) -> tuple[Record, float]:
    begin = time.perf_counter()
    return function(*arguments), time.perf_counter() - begin


@contextmanager
def worker_pool(workers: int | None = None) -> Generator[ProcessPoolExecutor]:
    """Processes that run one thread each, and end with this one however it ends; None: one for each core.

    They are started when there is something to do.
    """
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))  # inherited by the processes that are started
    others = set(multiprocessing.active_children())
    pool = _Workers(
        workers or available_cores(),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_follow_parent,
    )
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        left = set(multiprocessing.active_children()) - others
        for child in left:
            child.terminate()  # their tasks are run again
        for child in left:
            child.join()
        raise
    finally:
        pool.shutdown()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class _Workers(ProcessPoolExecutor):
    """Processes that are not interrupted, not even before `_follow_parent` runs: imports take seconds."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        with _interruptions_later():
            return super().submit(fn, *args, **kwargs)


@contextmanager
def _interruptions_later() -> Generator[None]:
    """Hold back interruptions; processes that are started in here inherit it for good."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _follow_parent() -> None:
    """Leave interruptions to the parent, and leave when it is gone: killed, it cannot say so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent: Any = multiprocessing.parent_process()

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
